"""Every combination of what may be chosen: how many there are, that a scenario reads each, and what ``--only`` says."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from weftwork.base.errors import ConfigError
from weftwork.hardware.prices import price_book
from weftwork.study.design.built import Built, FabricAsked, build
from weftwork.study.design.candidates import DIMENSIONS, FabricCandidate, candidates, choices_of, nic_for

BOOK = price_book(None)
JOB = "schema: 3\ncollective: {operation: all-reduce, size: 1MB}\n"
GBPS = 10**9


def of(gpus: int, **only: Sequence[str]) -> list[FabricCandidate]:
    return list(candidates("dgx-h100", gpus, choices_of("dgx-h100", BOOK, only), BOOK, {}, {}))


@pytest.fixture
def file(tmp_path: Path) -> Path:
    made = tmp_path / "job.yaml"
    made.write_text(JOB, encoding="utf-8")
    return made


def test_a_cluster_of_16384_has_hundreds_of_candidates_that_all_differ() -> None:
    found = of(16_384)
    assert len(found) > 200
    assert [one.number for one in found] == list(range(len(found)))
    assert len({one.name for one in found}) == len(found)
    assert len({repr(sorted(one.fabric.items(), key=str)) for one in found}) == len(found)
    assert len({one.words for one in found}) == len(found)


@pytest.mark.parametrize("gpus", [128, pytest.param(16_384, marks=pytest.mark.deep)])
def test_each_is_built_or_refused_with_a_reason_that_others_share(file: Path, gpus: int) -> None:
    """Every 13th, which meets all topologies, switches, rates and planes."""
    found = [build(FabricAsked(candidate=one, file=file, settings={}, book=BOOK)) for one in of(gpus)[::13]]
    assert {one.candidate.fabric["topology"] for one in found} >= {"rail-optimized", "rail-only", "multi-plane"}
    for one in found:
        if one.family:
            assert one.tree is None
            assert len(one.switches) == 1
            assert one.least_share is not None
            assert 0 < one.least_share <= 1
        elif one.reason:
            assert one.tree is None
            assert one.detail.startswith("fabric.") or "--set fabric." in one.detail, one.detail
            assert not one.reason.startswith("--set"), one.reason
        else:
            assert one.tree is not None
            assert one.profile is not None
            assert len(one.switches) == len(one.links) == len(one.tree.tiers) + 1
            assert one.price_usd.low <= one.price_usd.typical <= one.price_usd.high
            assert one.money_by_kind is not None
            parts = sum(money.typical for money in one.money_by_kind.values())
            assert parts == pytest.approx(one.price_usd.typical)
    assert sum(not one.reason for one in found) > 5
    assert len({one.reason for one in found}) < 10


def built_one(file: Path, **only: Sequence[str]) -> Built:
    (one,) = of(64, switch=["spectrum-4"], oversubscription=["1"], upper=["1"], **only)
    found = build(FabricAsked(candidate=one, file=file, settings={}, book=BOOK))
    assert not found.reason, found.detail
    return found


def test_a_candidate_has_the_rate_that_it_is_named_by(file: Path) -> None:
    for planes, ports in ((1, 8), (2, 16), (4, 32)):
        found = built_one(file, topology=["rail-only"], link_rate=["800Gbps"], planes=[str(planes)])
        assert found.tree is not None
        assert found.profile is not None
        assert found.tree.server.nic_ports == ports
        assert found.tree.host_rate_bps == 800 * GBPS // planes
        assert found.profile.same_bps[0] == 8 * 800 * GBPS
        assert found.profile.port_bps == 800 * GBPS / planes


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


@pytest.mark.parametrize("topology", ["dragonfly", "dragonfly-plus", "hyperx", "slim-fly", "torus"])
@pytest.mark.parametrize("gpus", [256, 2_048])
def test_direct_networks_have_a_shape_with_few_places_left(file: Path, topology: str, gpus: int) -> None:
    (candidate,) = of(gpus, topology=[topology], switch=["tomahawk-5"], link_rate=["400Gbps"], planes=["1"])
    assert candidate.fabric["routing"] == "minimal"
    found = build(FabricAsked(candidate=candidate, file=file, settings={}, book=BOOK))
    assert not found.reason, found.detail
    assert found.family == topology
    assert found.profile is not None
    assert found.profile.same_bps[0] == 8 * 400 * GBPS
    down, _ = found.links
    assert down == gpus


def test_a_user_leaves_direct_networks_out_and_keeps_the_routing_of_the_file() -> None:
    trees = of(1_024, topology=["fat-tree", "rail-only"])
    assert {one.fabric["topology"] for one in trees} == {"fat-tree", "rail-only"}
    only = choices_of("dgx-h100", BOOK, {"topology": ["dragonfly"]})
    found = list(candidates("dgx-h100", 1_024, only, BOOK, {"routing": "shortest"}, {}))
    assert {one.fabric["routing"] for one in found} == {"shortest"}
