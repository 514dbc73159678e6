"""Faults of a scenario: what repeats is written out, what lasts is undone, and each does what it says."""

from __future__ import annotations

import pytest

from weftwork.base.clock import US_PS
from weftwork.base.errors import ConfigError
from weftwork.spec.scenario.scenario import loads
from weftwork.study.prepare.prepare import known_names, prepare
from weftwork.study.prepare.prepared import Prepared

HEAD = "{schema: 3, fabric: {radix: 4, link_rate: 100Gbps}, traffic: {pattern: permutation, size: 256KiB}"


def prepared(fault: str) -> Prepared:
    return prepare(loads(f"{HEAD}, faults: [{fault}]}}", known=known_names()))


def told(fault: str) -> list[tuple[int, str, str]]:
    return [(occurrence.at_ps, occurrence.event, occurrence.where) for occurrence in prepared(fault).faults]


def test_a_flapping_link_goes_down_and_comes_up_as_often_as_it_says() -> None:
    name = "host0-leaf0"
    found = told(f"{{at: 10us, link: {name}, event: down, for: 2us, every: 5us, times: 3}}")
    assert found == [
        (at * US_PS, event, name)
        for at, event in ((10, "down"), (12, "down ends"), (15, "down"), (17, "down ends"), (20, "down"),
                          (22, "down ends"))
    ]  # fmt: skip


def test_a_nic_that_is_down_is_its_link() -> None:
    nic = prepared("{at: 1us, nic: host1/nic0, event: down}")
    link = prepared("{at: 1us, link: host1-leaf0, event: down}")
    assert nic.engine_input.instants.tolist() == link.engine_input.instants.tolist()


@pytest.mark.parametrize(
    ("fault", "text"),
    [
        ("{at: 1us, nic: hots1, event: down}", "did you mean 'host1'"),
        ("{at: 1us, nic: host1/nic4, event: down}", "wanted host1/nic0 to host1/nic0, or host1 for all"),
        ("{at: 1us, nic: leaf0, event: down}", "which is no host of the fabric"),
        ("{at: 1us, link: host1-leaf9, event: down}", "which is no link of the fabric"),
        ("{at: 1us, link: leaf0-host1, event: down}", "did you mean 'host1-leaf0'"),
        ("{at: 1us, switch: host1, event: down}", "which is no switch of the fabric"),
    ],
)
def test_a_place_that_is_not_there_is_told_with_its_nearest(fault: str, text: str) -> None:
    with pytest.raises(ConfigError) as wrong:
        prepared(fault)
    assert text in str(wrong.value)
