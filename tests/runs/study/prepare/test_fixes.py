"""What a mistake proposes can be taken: applied, it leads to a run or to another mistake.

For every golden error, and for each kind of proposal with the one that is expected.
Leaves out: random scenarios (`tests/laws/test_fixes.py`).
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import yaml
from helpers.mended import Sets, failures
from helpers.tame_draws import BASES

from weftwork.base.errors import ConfigError
from weftwork.study.prepare.prepare import prepare

GOLDEN = Path(__file__).parents[3] / "golden/scenario_errors"
NOT_TEXT = {"not_utf8", "utf16"}  # nothing of it can be set
WRONG_FILES = sorted(path for path in GOLDEN.glob("*.yaml") if path.stem not in NOT_TEXT)


def refused_at(path: Path) -> Callable[[Sets], ConfigError | None]:
    def refused(sets: Sets) -> ConfigError | None:
        try:
            prepare(path, sets or None)
        except ConfigError as error:
            return error
        return None

    return refused


@pytest.mark.parametrize("path", WRONG_FILES, ids=lambda path: path.stem)
def test_a_fix_of_a_golden_error_leads_on(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(path.parent)
    wrong = failures(path.read_text(encoding="utf-8"), refused_at(path))
    assert not wrong, "\n".join(map(str, wrong))


@pytest.mark.parametrize("number", range(len(BASES)))
def test_a_fix_of_a_refused_scenario_leads_on(number: int, tmp_path: Path) -> None:
    text = yaml.safe_dump({"schema": 3, **BASES[number]}, sort_keys=False)
    path = tmp_path / "refused.yaml"
    path.write_text(text, encoding="utf-8")
    wrong = failures(text, refused_at(path))
    assert not wrong, "\n".join(map(str, wrong))


PERMUTATION = "traffic: {pattern: permutation, size: 16KiB}"
DGX = "topology: rail-optimized, node: dgx-h100, switch: tomahawk-5"
JELLYFISH = "topology: jellyfish, network_ports: 3, hosts_per_switch: 2"
RAILS = "fabric: {topology: rail-only, hosts: 4, node: {model: plain, gpus: 4, nic_ports: 4}, radix: 16}"

# A scenario, the key that is wrong, and what is proposed; None where nothing that one setting could change mends it.
PROPOSALS = {
    # a routing that a port has queues for
    "channels": (f"fabric: {{{JELLYFISH}, switches: 16, routing: k-shortest, paths: 4}}\n{PERMUTATION}",
                 "fabric.routing", "--set fabric.routing=minimal --set fabric.paths=null"),
    "no tree, wide torus": (f"fabric: {{topology: torus, shape: [16, 16], routing: up-down}}\n{PERMUTATION}",
                            "fabric.routing", "dimension-order"),
    "no groups": (f"fabric: {{{JELLYFISH}, switches: 64, routing: par}}\n{PERMUTATION}", "fabric.routing", None),
    "circle": (f"fabric: {{topology: tpu-pod, slice: [4, 4, 4], routing: shortest}}\n{PERMUTATION}",
               "fabric.routing", "dimension-order"),
    "port selection": ((f"fabric: {{topology: torus, shape: [4, 4], routing: valiant}}\n{PERMUTATION}\n"
                       "transport: {load_balancing: conga}"), "transport.load_balancing", "ecmp"),
    # degrees of parallelism that heads, experts, batch and memory accept
    "tensor above the heads": ((f"fabric: {{{DGX}, gpus: 16}}\ntraining: {{model: gpt-1.7b, tensor: 788, "
                               "global_batch: 4}"), "training.tensor", "--set training.tensor=8 --set training.data=2"),
    "pipeline": ((f"fabric: {{{DGX}, gpus: 128}}\ntraining: {{model: llama-3-70b, tensor: 8, pipeline: 3, "
                 "micro_batch: 1, global_batch: 64}"), "training.pipeline",
                 "--set training.pipeline=4 --set training.data=4"),
    "data": ((f"fabric: {{{DGX}, gpus: 128}}\ntraining: {{model: llama-3-8b, tensor: 8, pipeline: 2, data: 3, "
             "micro_batch: 1, global_batch: 64}"), "training.data", "--set training.data=8"),
    "too large a model": ((f"fabric: {{{DGX}, gpus: 8}}\ntraining: {{model: llama-3-70b, tensor: 3, "
                          "global_batch: 8}"), "training.tensor", None),
    # an algorithm that the servers can run
    "rails with NVLink": (("fabric: {topology: rail-only, node: dgx-h100, switch: tomahawk-5, gpus: 32}\n"
                          "collective: {operation: all-to-all, algorithm: direct, size: 1MiB}"),
                          "collective.algorithm", "hierarchical"),
    "rails without NVLink": (f"{RAILS}\ncollective: {{operation: all-reduce, algorithm: ring, size: 64KiB}}",
                             "collective.algorithm", None),
    # GPUs that the fabric has
    "54 hosts": (("fabric: {topology: fat-tree, tiers: 3, radix: 6}\n"
                 "collective: {operation: all-reduce, algorithm: halving-doubling, size: 64KiB}"),
                 "collective.gpus", "32"),
    "more than all": (("fabric: {topology: fat-tree, tiers: 3, radix: 4}\n"
                      "collective: {operation: all-reduce, algorithm: ring, gpus: 99, size: 64KiB}"),
                      "collective.gpus", "16"),
    "one GPU": (
        "fabric: {topology: torus, shape: [2], hosts: 1}\ncollective: {operation: all-reduce, gpus: 7, size: 64KiB}",
        "collective.gpus",
        None,
    ),
    "room for a server": (
        ("fabric: {topology: fat-tree, tiers: 2, radix: 7, node: dgx-h100}\n"
        "collective: {operation: all-reduce, size: 64KiB}"),
        "fabric.radix",
        "16",
    ),
    # a key that means something where it is proposed
    "key of another topology": (f"fabric: {{topology: fat-tree, tiers: 3, radix: 4, leafs: 2}}\n{PERMUTATION}",
                                "fabric.leafs", None),
    "key of another pattern": ((f"fabric: {{topology: fat-tree, tiers: 3, radix: 4}}\n{PERMUTATION}\n"
                               "transport: {flows: 3}"), "transport.flows", None),
    "key twice": (f"fabric: {{topology: fat-tree, tiers: 3, radix: 4, radx: 8}}\n{PERMUTATION}", "fabric.radx", None),
    "value of another kind": ((f"fabric: {{{DGX}, gpus: 16}}\ntraining: {{model: llama-3-8b, tensor: 8, "
                              "overlap: {gradients: 0.5}, global_batch: 4}"), "training.overlap.gradients", None),
    "in its item": ((f"fabric: {{topology: fat-tree, tiers: 3, radix: 4}}\n{PERMUTATION}\n"
                    "faults: [{at: 1us, link: leaf0-agg0, event: down}, {at: 1us, link: leaf0-agg0, down: true}]"),
                    "faults.1.down", "event: down"),
    # one item of a list
    "port": ((f"fabric: {{topology: fat-tree, tiers: 3, radix: 4}}\n{PERMUTATION}\n"
             "engine: {record: {ports: [host0, leef0], every: 1us}}"), "engine.record.ports", "leaf0"),
    # what was only said
    "reordering": ((f"fabric: {{topology: fat-tree, tiers: 3, radix: 4}}\n{PERMUTATION}\n"
                   "transport: {load_balancing: spray}"), "transport.load_balancing",
                   "--set transport.reorder_tolerant=true"),
    "sweep": (f"fabric: {{topology: fat-tree, tiers: 3, radix: 4}}\n{PERMUTATION}\nsweep: {{grid: {{}}}}",
              "sweep", "--set sweep=null"),
}  # fmt: skip


@pytest.mark.parametrize("kind", PROPOSALS)
def test_what_is_proposed(kind: str, tmp_path: Path) -> None:
    text, key, proposal = PROPOSALS[kind]
    path = tmp_path / "refused.yaml"
    path.write_text(f"schema: 3\n{text}\n", encoding="utf-8")
    error = refused_at(path)({})
    assert error is not None
    fixes = {mistake.path: None if mistake.fix is None else str(mistake.fix) for mistake in error.mistakes}
    assert fixes[key] == proposal, str(error)
    wrong = failures(path.read_text(encoding="utf-8"), refused_at(path))
    assert not wrong, "\n".join(map(str, wrong))
