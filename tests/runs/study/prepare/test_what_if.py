"""Other worlds differ from the run in the one thing that they are about, and in what follows from it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import weftwork
from weftwork.study.answer.improvements import fast_nvlink
from weftwork.study.answer.improvements.no_oversubscription import CASE as NO_OVERSUBSCRIPTION
from weftwork.study.answer.worlds import chosen, worlds
from weftwork.study.prepare import what_if
from weftwork.study.prepare.prepared import Prepared
from weftwork.study.results.measure import computed_ps
from weftwork.topology.oversubscription import oversubscription_by_tier

TRAINING = """schema: 3
fabric: {topology: rail-optimized, gpus: 32, pods: 2, node: dgx-h100, switch: tomahawk-5, oversubscription: 2}
training: {model: llama-3-8b, tensor: 8, pipeline: 2, global_batch: 32}
engine: {fidelity: FIDELITY}
"""
PACKETS = """schema: 3
fabric: {topology: leaf-spine, leaves: 2, spines: 2, hosts_per_leaf: 2, link_rate: 400Gbps}
transport: {congestion_control: none}
traffic: {pattern: permutation, size: 64KiB}
"""


def prepared(text: str, tmp_path: Path) -> Prepared:
    file = tmp_path / "scenario.yaml"
    file.write_text(text, encoding="utf-8")
    return weftwork.prepare(weftwork.read_scenario(file))


@pytest.fixture
def training(tmp_path: Path) -> Prepared:
    return prepared(TRAINING.replace("FIDELITY", "flow"), tmp_path)


def test_the_next_nic_speeds_up_every_link_alike(training: Prepared) -> None:
    assert what_if.next_nic_rate_bps(training.fabric) == 800 * 10**9
    other = what_if.with_next_nic(training)
    assert (other.fabric.links["rate_bps"] == 2 * training.fabric.links["rate_bps"]).all()
    assert (other.engine_input.port_rate_bps == 2 * training.engine_input.port_rate_bps).all()


def test_a_fast_fabric_has_no_delay_and_memory_for_its_rate(tmp_path: Path) -> None:
    run = prepared(PACKETS, tmp_path)
    other = what_if.with_fast_fabric(run)
    assert (other.fabric.links["rate_bps"] == what_if.FAST * run.fabric.links["rate_bps"]).all()
    assert (other.fabric.links["delay_ps"] == 1).all()
    assert [one.buffer_bytes for one in other.fabric.switches] == [
        what_if.FAST * one.buffer_bytes for one in run.fabric.switches
    ]
    took, without = (weftwork.execute(one, what_if="none").outcome.counters["end_ps"] for one in (run, other))
    assert without < took  # switches forward as fast as before


def test_fast_nvlink_leaves_the_fabric_as_it_is(training: Prepared) -> None:
    other = what_if.with_fast_nvlink(training)
    assert (other.fabric.links == training.fabric.links).all()
    own, fast = training.fabric.servers[0], other.fabric.servers[0]
    assert (fast.nvlink_rate_bps, fast.nvlink_latency_ps) == (what_if.FAST * own.nvlink_rate_bps, 0)


@pytest.mark.parametrize(
    "plan",
    [
        "model: llama-3-8b, tensor: 8, pipeline: 2, global_batch: 32",
        "model: llama-3-8b, tensor: 4, pipeline: 2, global_batch: 32, zero: 3, overlap: {tensor: 0.5, data: 0.9}",
        "model: mixtral-8x7b, tensor: 2, expert: 8, pipeline: 2, global_batch: 32, overlap: {expert: 0.5}",
    ],
)
@pytest.mark.parametrize(
    "world", [what_if.with_fast_fabric, what_if.with_fast_nvlink, what_if.with_next_nic, what_if.with_fast_host_links]
)
def test_a_world_has_the_programs_that_would_be_written_for_it(
    plan: str, world: Callable[[Prepared], Prepared], tmp_path: Path
) -> None:
    text = TRAINING.replace("FIDELITY", "flow")
    begin, end = text.index("training: {"), text.index("engine:")
    other = world(prepared(f"{text[:begin]}training: {{{plan}}}\n{text[end:]}", tmp_path))
    fresh = weftwork.prepare(other.scenario, fabric=other.fabric)
    assert other.job.programs == fresh.job.programs
    for name in ("ops", "streams", "collects", "axes", "class_priority", "rank_program", "rank_ports"):
        assert np.array_equal(getattr(other.engine_input, name), getattr(fresh.engine_input, name)), name


def test_a_world_with_the_same_programs_takes_them_and_their_table(training: Prepared) -> None:
    other = what_if.with_next_nic(training)
    assert other.job is training.job
    assert other.engine_input.ops is training.engine_input.ops
    assert what_if.with_fast_nvlink(training).job is not training.job  # its collectives take other ways


def test_without_oversubscription_no_tier_has_more_below_than_above(training: Prepared) -> None:
    assert max(oversubscription_by_tier(training.fabric).values()) > 1.5
    other = what_if.without_oversubscription(training)
    assert max(oversubscription_by_tier(other.fabric).values()) <= 1
    hosts = np.minimum(*(training.fabric.node_tier[training.fabric.links[end]] for end in "ab")) == 0
    assert (other.fabric.links["rate_bps"][hosts] == training.fabric.links["rate_bps"][hosts]).all()


def test_balanced_stages_compute_as_much_together(training: Prepared) -> None:
    computed = computed_ps(training)
    assert len(set(computed.values())) > 1
    other = what_if.with_balanced_stages(training, computed)
    factor = other.engine_input.rank_factor  # type: ignore[union-attr] - of flows
    program = training.job.rank_program
    each = np.array([computed[int(index)] for index in program]) * factor
    assert each == pytest.approx(np.full(len(each), each[0]))
    assert each.sum() == pytest.approx(sum(computed[int(index)] for index in program))


def test_what_only_flows_can_be_is_refused_to_packets(tmp_path: Path) -> None:
    run = prepared(PACKETS, tmp_path)
    with pytest.raises(TypeError, match="packet engine"):
        what_if.on_infinite_network(run)
    with pytest.raises(TypeError, match="packet engine"):
        what_if.with_balanced_stages(run, {})


def test_a_suspect_that_one_can_buy_is_simulated_once_and_told_in_both_places(tmp_path: Path) -> None:
    text = TRAINING.replace("tensor: 8, pipeline: 2", "tensor: 1, pipeline: 1, overlap: {data: 0}")
    run = prepared(text.replace("FIDELITY", "flow").replace("llama-3-8b", "gpt-1.7b"), tmp_path)
    found = weftwork.execute(run, what_if="all")
    assert [one.case for one in found.suspects] == [NO_OVERSUBSCRIPTION]
    cases = [world.case for world, _, _ in found.worlds]
    assert len(cases) == len(set(cases))
    told = weftwork.results(run, found)
    (row,) = (row for row in told.tables["what_if"].to_pylist() if row["change"] == NO_OVERSUBSCRIPTION)
    (tried,) = (one for one in (told.answer.culprit, *told.answer.others) if one.name == "oversubscription")
    assert tried.how == "simulated"
    assert told.answer.took.seconds is not None
    assert (told.answer.took.seconds - (tried.cost_s or 0)) * 1e12 == pytest.approx(row["iteration_ps"], abs=2)


def test_what_nobody_suspects_can_still_be_bought(training: Prepared) -> None:
    found = weftwork.execute(training, what_if="all")
    assert not any(one.case for one in found.suspects)  # no link up was in use for long
    (world,) = (world for world, _, _ in found.worlds if world.case == NO_OVERSUBSCRIPTION)
    assert world.suspect is None


def test_a_world_that_cannot_be_is_a_note_of_the_answer(training: Prepared, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(_: Prepared) -> Prepared:
        raise weftwork.ConfigError("scenario", [])

    monkeypatch.setattr(fast_nvlink, "IMPROVEMENT", replace(fast_nvlink.IMPROVEMENT, make=refused))
    found = weftwork.execute(training, what_if="all")
    assert [world.case for world, _ in found.refused] == ["infinitely fast NVLink"]
    told = weftwork.results(training, found)
    assert "what_if.infinitely fast NVLink" in told.caveats
    assert "infinitely fast NVLink" not in told.tables["what_if"]["change"].to_pylist()


@pytest.mark.parametrize("work", [1, 4_000_000, 10**9])
def test_worlds_together_cost_no_more_than_the_run_or_a_second(training: Prepared, work: int) -> None:
    from dataclasses import replace

    suspects = weftwork.execute(training, what_if="none").suspects
    every = list(worlds(training, suspects))
    large = replace(training, estimate=replace(training.estimate, work=work))
    found = chosen(large, suspects, "auto")
    assert 1 <= len(found) <= len(every)
    assert len(found) == {1: len(every), 4_000_000: 1, 10**9: 1}[work]
    assert [one.name for one in found] == [one.name for one in every][: len(found)]
    assert len(chosen(large, suspects, "all")) == len(every)
    assert chosen(large, suspects, "none") == []
