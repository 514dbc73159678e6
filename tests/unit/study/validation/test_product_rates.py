"""The figures of GPUs are what the tables of published times give."""

from __future__ import annotations

import pytest

from weftwork.hardware.catalogue import GPUS
from weftwork.study.validation.product_rates import burst_rates, sustained_shares, table


def test_bursts_are_those_of_the_table() -> None:
    rates = {(rate.gpu, rate.figure): rate.flops for rate in burst_rates()}
    figures = {
        (name, key): GPUS[name].value(key) for name in GPUS for key in GPUS[name].figures if key.startswith("burst_")
    }
    assert figures.keys() == rates.keys()
    assert figures == pytest.approx(rates, abs=0.6e12)


def test_verified_shares_are_those_of_the_table() -> None:
    shares = {(share.gpu, share.figure): share.share for share in sustained_shares()}
    figures = {
        (name, key): row.value(key)
        for name, row in GPUS.items()
        for key, figure in row.figures.items()
        if key.startswith("sustained_") and figure.verified
    }
    assert figures == pytest.approx(shares, abs=6e-4)


def test_the_table_has_a_line_for_each() -> None:
    lines = [line for line in table().splitlines() if line]
    assert len(lines) == 2 + len(burst_rates()) + len(sustained_shares())
