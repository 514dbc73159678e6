"""Every combination of what may be chosen: how many there are, that a scenario reads each, and what ``--only`` says."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from weftwork.hardware.prices import price_book
from weftwork.study.design.built import Built, FabricAsked, build
from weftwork.study.design.candidates import FabricCandidate, candidates, choices_of

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
