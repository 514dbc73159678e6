"""Every combination of what may be chosen: how many there are, that a scenario reads each, and what ``--only`` says."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from weftwork.base.errors import ConfigError
from weftwork.hardware.prices import price_book
from weftwork.study.design.candidates import DIMENSIONS, FabricCandidate, candidates, choices_of, nic_for

BOOK = price_book(None)


GBPS = 10**9


def of(gpus: int, **only: Sequence[str]) -> list[FabricCandidate]:
    return list(candidates("dgx-h100", gpus, choices_of("dgx-h100", BOOK, only), BOOK, {}, {}))


def test_what_a_topology_does_not_know_is_left_out() -> None:
    for one in of(16_384):
        topology, fabric = one.fabric["topology"], one.fabric
        if topology not in {"rail-optimized", "rail-only", "multi-plane"}:
            assert "planes" not in fabric
        if topology == "fat-tree":
            assert "oversubscription" not in fabric
        if topology == "leaf-spine":
            assert set(fabric.get("oversubscription", {})) <= {"leaf"}


def test_only_restricts_each_dimension() -> None:
    found = of(
        1_024, topology=["rail-only"], switch=["tomahawk-5", "spectrum-4"], link_rate=["400Gbps"], planes=["2"],
        oversubscription=["7:1"], upper=["1"],
    )  # fmt: skip
    assert [one.fabric["switch"] for one in found] == ["tomahawk-5", "spectrum-4"]
    assert {one.words for one in found} == {
        f"rail-only, {switch}, 400Gbps, 2 planes, 7:1 at the leaf" for switch in ("tomahawk-5", "spectrum-4")
    }


@pytest.mark.parametrize(
    ("only", "said", "fix"),
    [
        ({"topolgy": ["fat-tree"]}, "found 'topolgy', wanted one of topology,", "topology"),
        ({"topology": ["rail-onyl"]}, "found 'rail-onyl'", "rail-only"),
        ({"switch": ["tomahawk5"]}, "found 'tomahawk5'", "tomahawk-5"),
        ({"planes": ["1.5"]}, "wanted a whole number above 0", None),
        ({"planes": ["0"]}, "wanted a whole number above 0", None),
        ({"oversubscription": ["2:0"]}, "wanted a ratio such as 2:1", None),
        ({"upper": ["nan"]}, "wanted a ratio such as 2:1", None),
        ({"link_rate": ["400"]}, "found '400'", None),
    ],
)
def test_what_is_not_known_is_refused_with_the_nearest(only: dict[str, list[str]], said: str, fix: str | None) -> None:
    with pytest.raises(ConfigError) as caught:
        choices_of("dgx-h100", BOOK, only)
    (mistake,) = caught.value.mistakes
    assert said in mistake.text
    assert fix is None or mistake.fix == fix


def test_all_mistakes_are_told_at_once() -> None:
    with pytest.raises(ConfigError) as caught:
        choices_of("dgx-h100", BOOK, {key: ["x"] for key in (*DIMENSIONS, "more")})
    assert len(caught.value.mistakes) == len(DIMENSIONS) + 1


def test_a_server_keeps_its_nic_where_that_is_fast_enough() -> None:
    assert nic_for("dgx-h100", 400 * GBPS, BOOK) == "connectx-7"
    assert nic_for("dgx-h100", 200 * GBPS, BOOK) == "connectx-7"
    assert nic_for("dgx-h100", 800 * GBPS, BOOK) not in {"connectx-7", None}
    assert nic_for("dgx-h100", 10**15, BOOK) is None


def test_a_user_leaves_direct_networks_out_and_keeps_the_routing_of_the_file() -> None:
    trees = of(1_024, topology=["fat-tree", "rail-only"])
    assert {one.fabric["topology"] for one in trees} == {"fat-tree", "rail-only"}
    only = choices_of("dgx-h100", BOOK, {"topology": ["dragonfly"]})
    found = list(candidates("dgx-h100", 1_024, only, BOOK, {"routing": "shortest"}, {}))
    assert {one.fabric["routing"] for one in found} == {"shortest"}
