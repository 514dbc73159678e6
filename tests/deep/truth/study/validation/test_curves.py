"""Curves of nccl-tests on the scorecard: rows are scenarios that anybody can run, and what was fitted is fitted."""

from __future__ import annotations

import pytest

from weftwork.study.validation.network_fit import P5_FITTED, fit_p5


def test_what_the_network_of_p5_adds_is_that_of_16_gpus() -> None:
    found = fit_p5()
    assert found.network_share == pytest.approx(P5_FITTED.network_share, abs=0.005)
    assert found.nic_latency_ps == pytest.approx(P5_FITTED.nic_latency_ps, rel=0.03)
    assert found.nic_flush_ps == pytest.approx(P5_FITTED.nic_flush_ps, rel=0.05)
    assert found.peer_ps == pytest.approx(P5_FITTED.peer_ps, rel=0.10)
