"""What each policy needs of switches and NICs is said by its file, and the list tells it."""

from __future__ import annotations

from typing import get_args

import pytest

from weftwork.policies.interface import Need
from weftwork.policies.load import load
from weftwork.policies.needed import WORDS, Needed, needed


def test_every_need_has_its_words_for_a_switch_or_a_nic() -> None:
    assert set(WORDS) >= set(get_args(Need))
    assert all(switch or nic for switch, nic in WORDS.values())


@pytest.mark.parametrize(
    ("name", "switch", "nic"),
    [
        ("dcqcn", ("marks (ECN)",), ("rate", "window", "CNPs")),
        ("fixed-window", (), ("window",)),
        ("none", (), ()),
    ],
)
def test_a_control_says_by_its_file_what_it_needs(name: str, switch: tuple[str, ...], nic: tuple[str, ...]) -> None:
    assert needed(load("congestion_control", name)) == Needed(switch=switch, nic=nic)


@pytest.mark.parametrize(
    ("name", "switch", "nic"),
    [
        ("ecmp", (), ()),
        ("letflow", ("flow table",), ()),
        ("conga", ("flow table", "port meters", "header field between switches"), ()),
        ("adaptive", ("port meters", "queue lengths"), ("keeps early packets",)),
        ("drill", ("queue lengths",), ("keeps early packets",)),
        ("wcmp", ("capacity behind ports",), ()),
    ],
)
def test_a_port_selection_says_by_its_file_what_it_needs(
    name: str, switch: tuple[str, ...], nic: tuple[str, ...]
) -> None:
    assert needed(load("port_selection", name)) == Needed(switch=switch, nic=nic)
