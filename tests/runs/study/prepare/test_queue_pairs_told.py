"""Queue pairs change the result of a collective and of training, or the run says why they cannot."""

from __future__ import annotations

from pathlib import Path

import pytest

from weftwork.store.runs import Run
from weftwork.study.prepare.prepare import prepare, read_scenario
from weftwork.study.record.run import run_scenario

SCENARIO = """schema: 3
fabric: {{topology: leaf-spine, leaves: 4, spines: 2, hosts_per_leaf: 2, link_rate: 100Gbps}}
transport: {{congestion_control: none, queue_pairs: {pairs}, load_balancing: {balancing}, reorder_tolerant: true}}
engine: {{fidelity: {fidelity}}}
{workload}
"""
COLLECTIVE = "collective: {operation: all-reduce, algorithm: ring, size: 1MiB, protocol: none}"
POISSON = "traffic: {pattern: poisson, flows: 20, load: 0.3}"


def scenario(tmp_path: Path, workload: str, *, pairs: int, fidelity: str = "packet", balancing: str = "ecmp") -> Path:
    file = tmp_path / f"{fidelity}{pairs}.yaml"
    text = SCENARIO.format(pairs=pairs, fidelity=fidelity, balancing=balancing, workload=workload)
    file.write_text(text, encoding="utf-8")
    return file


@pytest.mark.parametrize("fidelity", ["packet", "flow", "reference"])
def test_a_collective_takes_another_time_with_more_queue_pairs(tmp_path: Path, fidelity: str) -> None:
    def ran(pairs: int) -> Run:
        file = scenario(tmp_path, COLLECTIVE, pairs=pairs, fidelity=fidelity)
        return run_scenario(file, out=tmp_path / f"{fidelity}-{pairs}", what_if="none")

    one, four = ran(1), ran(4)
    assert one.value("collective_duration_ps") != four.value("collective_duration_ps")
    assert one.value("payload_bytes") == four.value("payload_bytes")


@pytest.mark.parametrize(
    ("workload", "keys", "told"),
    [
        ("traffic: {pattern: permutation, size: 10KB}", {}, "1 of the 4 queue pairs of each connection carry"),
        ("traffic: {pattern: permutation, size: 10KB, repeat: 3}", {}, "3 of the 4 queue pairs of each connection"),
        ("traffic: {pattern: permutation, size: 10KB, repeat: 4}", {}, None),
        (POISSON, {}, "each flow has its own queue pair here"),
        (COLLECTIVE, {}, None),
        (COLLECTIVE, {"fidelity": "flow"}, None),
        (COLLECTIVE, {"fidelity": "flow", "balancing": "switch-spray"}, "have the same paths here"),
    ],
)
def test_queue_pairs_that_change_nothing_are_told(
    tmp_path: Path, workload: str, keys: dict[str, str], told: str | None
) -> None:
    found = prepare(read_scenario(scenario(tmp_path, workload, pairs=4, **keys))).notes
    assert told is None or told in found["transport.queue_pairs"].text
    assert ("transport.queue_pairs" in found) == (told is not None)


USES = {
    "e-ecmp": (4, "in-turn"),
    "flow-splitting": (4, "split"),
    "ecmp": (1, "split"),
}


@pytest.mark.parametrize("preset", sorted(USES))
def test_a_preset_sets_queue_pairs_and_their_use_unless_the_user_does(tmp_path: Path, preset: str) -> None:
    file = scenario(tmp_path, COLLECTIVE, pairs=4)
    read = read_scenario(file, {"transport.load_balancing": preset, "transport.queue_pairs": "null"}).transport
    assert (read.queue_pairs, read.queue_pair_use) == USES[preset]
    given = {"transport.load_balancing": preset, "transport.queue_pairs": "3", "transport.queue_pair_use": "split"}
    own = read_scenario(file, given).transport
    assert (own.queue_pairs, own.queue_pair_use) == (3, "split")
    traffic = read_scenario(scenario(tmp_path, POISSON, pairs=2)).transport
    assert (traffic.queue_pairs, traffic.queue_pair_use) == (2, "in-turn")


MIXED = "traffic: {pattern: mixed, all_reduce: 64KiB, incast: 16KiB, flows: 20}"


@pytest.mark.parametrize("workload", [COLLECTIVE, pytest.param(MIXED, marks=pytest.mark.deep)])
def test_turns_and_parts_carry_the_same_bytes_and_both_packet_engines_agree(tmp_path: Path, workload: str) -> None:
    found = {}
    for use in ("in-turn", "split"):
        for fidelity in ("packet", "reference"):
            file = scenario(tmp_path, workload, pairs=4, fidelity=fidelity)
            found[use, fidelity] = run_scenario(
                file, overrides={"transport.queue_pair_use": use}, out=tmp_path / f"{use}-{fidelity}", what_if="none"
            )
    for use in ("in-turn", "split"):
        assert found[use, "packet"].provenance["digest"] == found[use, "reference"].provenance["digest"]
    assert found["in-turn", "packet"].provenance["digest"] != found["split", "packet"].provenance["digest"]
    assert len({run.value("payload_bytes") for run in found.values()}) == 1


def test_collectives_of_training_that_take_no_turns_in_flows_are_told(tmp_path: Path) -> None:
    text = """schema: 3
fabric: {{topology: rail-optimized, hosts: 2, node: dgx-h100, radix: 16}}
transport: {{load_balancing: {balancing}}}
training: {{model: llama-3-8b, tensor: 8, data: 2, global_batch: 2, sequence: 4096}}
engine: {{fidelity: flow}}
"""
    told = {}
    for balancing in ("e-ecmp", "flow-splitting"):
        file = tmp_path / f"{balancing}.yaml"
        file.write_text(text.format(balancing=balancing), encoding="utf-8")
        told[balancing] = prepare(read_scenario(file)).notes.get("transport.queue_pairs")
    assert told["flow-splitting"] is None
    assert told["e-ecmp"] is not None
    assert "do not alternate" in told["e-ecmp"].text
