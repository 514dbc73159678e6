"""What is told of memory and work before a run is what the run is made of."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from weftwork.base.errors import ConfigError
from weftwork.base.memory import MemoryLimit
from weftwork.study.prepare import estimate as module
from weftwork.study.prepare import prepare as preparing
from weftwork.study.prepare.estimate import Amounts, amounts_asked, amounts_of, estimate
from weftwork.study.prepare.prepare import prepare, read_scenario
from weftwork.study.prepare.recording import queue_pairs
from weftwork.study.record.run import run_scenario
from weftwork.topology import room

FABRIC = {"topology": "leaf-spine", "leaves": 2, "spines": 2, "hosts_per_leaf": 3}
sized = st.fixed_dictionaries({"size": st.just("9KB"), "repeat": st.integers(1, 5)})
traffics = st.one_of(
    sized.map(lambda keys: {"pattern": "permutation", **keys}),
    sized.map(lambda keys: {"pattern": "all-to-all", **keys}),
    sized.flatmap(lambda keys: st.integers(1, 3).map(lambda count: {"pattern": "incast", "senders": count, **keys})),
    sized.map(lambda keys: {"pattern": "incast", "senders": 2, "victim_source": 4, "victim_receiver": 5, **keys}),
    st.integers(1, 30).map(lambda flows: {"pattern": "poisson", "flows": flows, "load": 0.1}),
)


def written(folder: Path, **sections: Any) -> Path:
    path = folder / "estimate.yaml"
    path.write_text(yaml.safe_dump({"schema": 3, "fabric": FABRIC, **sections}), encoding="utf-8")
    return path


@given(traffic=traffics, pairs=st.integers(1, 3))
def test_keys_alone_count_what_the_job_then_has(
    traffic: dict[str, Any], pairs: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = written(tmp_path_factory.mktemp("asked"), traffic=traffic, transport={"queue_pairs": pairs})
    scenario = read_scenario(path)
    made = prepare(scenario)
    asked, counted = amounts_asked(scenario), amounts_of(scenario, made.fabric, made.job, made.volume)
    for name in ("nodes", "links", "leaves", "ranks", "messages", "queue_pairs"):
        assert getattr(asked, name) == getattr(counted, name), name
    if traffic["pattern"] != "poisson":  # of which the keys know the mean
        assert asked.payload_bytes == counted.payload_bytes
    assert counted.messages == (0 if made.volume is None else made.volume.messages)
    assert counted.queue_pairs == len(queue_pairs(made.job))
    assert counted.operations + sum(len(program.streams) for program in made.job.programs) == len(made.engine_input.ops)


@pytest.mark.parametrize("fidelity", ["packet", "flow", "reference"])
@pytest.mark.parametrize("name", ["nodes", "links", "ranks", "messages", "queue_pairs", "operations"])
def test_more_of_anything_never_takes_less(tmp_path: Path, fidelity: str, name: str) -> None:
    scenario = read_scenario(written(tmp_path, traffic={"pattern": "permutation"}, engine={"fidelity": fidelity}))
    few = Amounts(
        nodes=40, links=100, leaves=4, ranks=20, messages=10, queue_pairs=10, operations=9, payload_bytes=10**9
    )
    sizes = [
        estimate(scenario, replace(few, **{name: getattr(few, name) * 10**power + power})).memory_bytes
        for power in range(7)
    ]
    assert sizes == sorted(sizes)
    is_kept = not (fidelity == "flow" and name == "nodes")  # the flow engine searches paths, it keeps no routes
    assert (sizes[-1] > sizes[0] + 10**6) == is_kept


def test_a_run_that_memory_does_not_hold_is_refused_before_its_fabric_is_built(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def built(*_: object, **__: object) -> None:
        raise AssertionError("the fabric was built")

    few = MemoryLimit(limit_bytes=10**9, owner="the memory of a small machine")
    monkeypatch.setattr(module, "memory_limit", lambda: few)
    monkeypatch.setattr(preparing, "fabric_of_section", built)
    path = written(tmp_path, traffic={"pattern": "permutation", "repeat": 1_000_000})
    with pytest.raises(ConfigError) as refused:
        run_scenario(path, out=tmp_path / "run")
    (mistake,) = refused.value.mistakes
    assert mistake.path == "traffic.repeat"
    assert "wanted at most 954 MiB, the memory of a small machine: job 1.8 GiB" in mistake.text
    assert mistake.text.endswith("take less of traffic.repeat, fabric.hosts")
    assert not (tmp_path / "run").exists()


def test_a_fabric_that_memory_does_not_hold_names_its_largest_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    few = MemoryLimit(limit_bytes=10**6, owner="the memory of a toy")
    monkeypatch.setattr(room, "memory_limit", lambda: few)
    monkeypatch.setattr(module, "memory_limit", lambda: replace(few, limit_bytes=2**60))
    fabric = {**FABRIC, "spines": 400, "leaves": 100}
    with pytest.raises(ConfigError) as refused:
        prepare(read_scenario(written(tmp_path, fabric=fabric, traffic={"pattern": "permutation"})))
    (mistake,) = refused.value.mistakes
    assert (mistake.path, mistake.line is not None) == ("fabric.spines", True)
    assert "40,300 links between 300 hosts and 500 switches need 5.2 MiB of memory" in mistake.text
    assert mistake.text.endswith("take less of spines, hosts, leaves, hosts_per_leaf")


def test_the_estimate_is_told_with_the_progress_and_kept(tmp_path: Path) -> None:
    seen = []
    path = written(tmp_path, traffic={"pattern": "permutation", "size": "3MB", "repeat": 40})
    run = run_scenario(path, out=tmp_path / "run", progress=seen.append)
    kept = run.provenance["estimate"]
    assert kept["unit"] == "packet-hops"
    hops = run.value("packet_hops")
    assert hops is not None
    assert hops / 2 < kept["work"] < hops * 2
    assert run.provenance["peak_memory_bytes"] > 10**8
    assert seen
    assert all(now.estimate is not None and now.estimate.memory_bytes == kept["memory_bytes"] for now in seen)


@pytest.mark.parametrize(
    ("routing", "path", "text"),
    [
        ("minimal", "training.iterations", "the links make 1,000 kinds of ranks differ, so the run needs about"),
        (
            "ugal",
            "fabric.routing",
            "under ugal routing the flow engine folds nothing: with 1,000 ranks the run needs about",
        ),
    ],
)
def test_a_job_that_folds_too_little_is_refused_with_what_keeps_its_ranks_apart(
    routing: str, path: str, text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fabric = {
        "topology": "dragonfly", "hosts_per_router": 2, "routers_per_group": 2, "global_ports": 1, "node": "dgx-h100",
        "routing": routing,
    }  # fmt: skip
    training = {"model": "llama-3-8b", "tensor": 8, "global_batch": 12}
    prepared = prepare(read_scenario(written(tmp_path, fabric=fabric, training=training, engine={"fidelity": "flow"})))
    steps = prepared.estimate.step_bytes
    few = MemoryLimit(limit_bytes=prepared.estimate.memory_bytes + 998 * steps, owner="the memory of a toy")
    monkeypatch.setattr(module, "memory_limit", lambda: few)
    module.refuse_actors(prepared, 999)
    with pytest.raises(ConfigError) as refused:
        module.refuse_actors(prepared, 1_000)
    (mistake,) = refused.value.mistakes
    assert mistake.path == path
    assert mistake.text.startswith(f"{text} ")
    assert "the memory of a toy; take " in mistake.text
