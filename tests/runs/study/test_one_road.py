"""One road from a scenario to its results: what `prepare` returns is what `run` runs, whatever it is."""

from __future__ import annotations

from pathlib import Path

import pytest
from helpers.examples import as_a_run
from helpers.road import differences, plan_of_run

import weftwork
from weftwork.base.errors import ConfigError, PolicyError
from weftwork.engine import packet
from weftwork.engine.flow import run as flow
from weftwork.report.answer import answer
from weftwork.study.answer.improvements.fast_fabric import CASE as FAST_FABRIC
from weftwork.study.answer.improvements.fast_nvlink import CASE as FAST_NVLINK
from weftwork.study.answer.improvements.infinite_network import CASE as INFINITE_NETWORK
from weftwork.study.answer.suspicions.neighbour_job import ALONE
from weftwork.study.run.execute import Progress
from weftwork.topology.build import fabric_of

ROOT = Path(__file__).resolve().parents[3]
LONG = ("all_reduce_64", "goodput_scale", "plan_405b", "which_fabric_405b")  # more than a second to prepare twice
EXAMPLES = [
    pytest.param(
        path.relative_to(ROOT).as_posix(), marks=[pytest.mark.deep] if place % 6 or path.parent.name in LONG else []
    )
    for place, path in enumerate(sorted(ROOT.glob("examples/**/*.yaml")))
]

FABRIC = "fabric: {topology: rail-optimized, gpus: 16, node: dgx-h100, switch: tomahawk-5}"
WORKLOADS = {
    "traffic": "traffic: {pattern: poisson, sizes: web-search, load: 0.2, flows: 20}",
    "collective": "collective: {operation: all-reduce, algorithm: hierarchical, size: 1MiB}",
    "training": "training: {model: tiny.json, tensor: 2, pipeline: 2, global_batch: 16}",
    "jobs": "jobs: [{model: tiny.json, tensor: 2, gpus: 8, global_batch: 8},"
    " {model: tiny.json, pipeline: 2, gpus: 8, global_batch: 8, placement: packed}]",
}
TINY = """{"model_type": "llama", "hidden_size": 256, "intermediate_size": 512, "num_hidden_layers": 4,
"num_attention_heads": 8, "vocab_size": 1024, "max_position_embeddings": 512}"""
ITERATION = ("iteration_ps", "tokens_per_s", "tokens_per_s_per_gpu", "mfu", "model_flops", "memory_bytes")
WHERE_TIME_GOES = ("compute_ps", "exposed_ps", "bubble_ps", "exposed_share", "bubble_share", "exposed_tensor_ps")


def written(folder: Path, workload: str, *, fidelity: str = "flow", more: str = "") -> Path:
    (folder / "tiny.json").write_text(TINY, encoding="utf-8")
    file = folder / "asked.yaml"
    engine = f"engine: {{fidelity: {fidelity}, seed: 3}}"
    file.write_text(f"schema: 3\n{FABRIC}\n{WORKLOADS[workload]}\n{engine}\n{more}\n", encoding="utf-8")
    return file


@pytest.mark.parametrize("example", EXAMPLES)
def test_prepare_returns_what_the_run_of_an_example_runs(example: str, monkeypatch: pytest.MonkeyPatch) -> None:
    overrides = as_a_run(ROOT / example)
    prepared = weftwork.prepare(weftwork.read_scenario(ROOT / example, overrides))
    assert differences(prepared.engine_input, plan_of_run(ROOT / example, monkeypatch, overrides=overrides)) == []


@pytest.mark.parametrize("fidelity", ["packet", "flow", "reference"])
@pytest.mark.parametrize("workload", ["traffic", "collective", "training"])
def test_prepare_returns_what_runs_at_every_fidelity(
    workload: str, fidelity: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = written(tmp_path, workload, fidelity=fidelity)
    prepared = weftwork.prepare(weftwork.read_scenario(file))
    assert differences(prepared.engine_input, plan_of_run(file, monkeypatch)) == []
    assert differences(prepared.engine_input, plan_of_run(file, monkeypatch, overrides={"transport.mtu": "1KiB"})) != []


def test_several_jobs_are_prepared_with_all_their_ranks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = written(tmp_path, "jobs")
    prepared = weftwork.prepare(weftwork.read_scenario(file))
    assert prepared.job.ranks == 16
    assert [one.name for one in prepared.jobs] == ["job0", "job1"]
    assert differences(prepared.engine_input, plan_of_run(file, monkeypatch)) == []


@pytest.mark.parametrize(
    ("workload", "fidelity"),
    [("traffic", "packet"), ("collective", "flow"), ("training", "packet"), ("training", "flow"), ("jobs", "flow")],
)
def test_three_steps_by_hand_give_what_a_run_folder_holds(workload: str, fidelity: str, tmp_path: Path) -> None:
    file = written(tmp_path, workload, fidelity=fidelity)
    prepared = weftwork.prepare(weftwork.read_scenario(file))
    found = weftwork.results(prepared, weftwork.execute(prepared))
    run = weftwork.run(file, out=tmp_path / "run")
    assert (found.status, found.digest) == (run.status, run.provenance["digest"])
    assert {name: number.value for name, number in found.summary.items()} == {
        name: run.value(name) for name in run.summary
    }
    assert all(run.table(name).equals(table) for name, table in found.tables.items())


@pytest.mark.parametrize("fidelity", ["packet", "reference", "flow"])
def test_an_iteration_has_the_same_numbers_at_every_fidelity(fidelity: str, tmp_path: Path) -> None:
    run = weftwork.run(written(tmp_path, "training", fidelity=fidelity), out=tmp_path / "run", what_if="none")
    assert run.status == "complete"
    assert all(run.value(name) is not None for name in ITERATION)
    # packets do not tell where the time of a GPU goes
    assert all((run.value(name) is None) == (fidelity != "flow") for name in WHERE_TIME_GOES)
    (row,) = run.table("jobs").to_pylist()
    assert row["iteration_ps"] == run.value("iteration_ps")
    assert row["tokens_per_s"] == pytest.approx(16 * 512 / (row["iteration_ps"] * 1e-12))


def test_a_fabric_from_python_is_prepared_as_it_is_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = written(tmp_path, "collective", fidelity="packet")
    fabric = fabric_of(topology="rail-optimized", gpus=16, node="dgx-h100", switch="plain", radix=64)
    prepared = weftwork.prepare(weftwork.read_scenario(file), fabric=fabric)
    assert differences(prepared.engine_input, plan_of_run(file, monkeypatch, fabric=fabric)) == []
    assert differences(prepared.engine_input, plan_of_run(file, monkeypatch)) != []


def test_other_worlds_are_runs_of_their_own(tmp_path: Path) -> None:
    prepared = weftwork.prepare(weftwork.read_scenario(written(tmp_path, "jobs")))
    found = weftwork.execute(prepared)
    asked = [(world.case, world.job) for world, _, _ in found.worlds]
    assert asked[:3] == [(ALONE, 0), (ALONE, 1), (INFINITE_NETWORK, None)]
    assert {case for case, _ in asked[3:]} >= {FAST_FABRIC, FAST_NVLINK}
    for _, other, ran in found.worlds:
        again = weftwork.execute(other, what_if="none")
        assert again.outcome.digest() == ran.outcome.digest()
        assert again.worlds == ()
    told = weftwork.results(prepared, found).tables["what_if"].to_pylist()
    ideal = next(ran for world, _, ran in found.worlds if world.case == INFINITE_NETWORK).outcome.milestones
    ranks = {"job0": ideal["rank"] < 8, "job1": ideal["rank"] >= 8}
    for row in told:
        if row["change"] == INFINITE_NETWORK:
            assert row["iteration_ps"] == ideal["at_ps"][ranks[row["job"]]].max()
    assert weftwork.execute(prepared, what_if="none").worlds == ()


def test_other_worlds_can_be_interrupted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flow, "_SLICE_S", 1e-9)  # so that progress is told every few events
    prepared = weftwork.prepare(weftwork.read_scenario(written(tmp_path, "jobs")))
    reached_ps = [0]

    def stop_in_the_second(now: Progress) -> None:
        if now.simulated_ps < reached_ps[0]:
            raise KeyboardInterrupt
        reached_ps[0] = now.simulated_ps

    execution = weftwork.execute(prepared, stop_in_the_second)
    assert execution.outcome.complete
    assert not execution.interrupted  # the run itself had ended
    assert execution.worlds == ()
    found = weftwork.results(prepared, execution)
    assert found.status == "complete"
    every = weftwork.execute(prepared)
    assert execution.left_worlds == len(every.worlds) + len(every.refused)
    whole = weftwork.results(prepared, every)
    assert found.tables["what_if"].num_rows < whole.tables["what_if"].num_rows
    assert found.summary["iteration_ps"].value == whole.summary["iteration_ps"].value


FAILING = """\
from weftwork.policies.interface import CongestionControl, Kind, SenderState, Signal
class Params: ...
class State(SenderState):
    acks: int
def step(params: Params, state: State, signal: Signal) -> None:
    state.acks += 1
    if state.acks > 40:
        state.rate_bps = -1.0
PLUGIN = CongestionControl(params=Params, state=State, step=step, signals=frozenset({Kind.ACK}), source="none")
"""


def test_a_run_that_is_repeated_for_a_failed_step_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packet, "_SLICE_S", 1e-9)  # so that progress is told every few windows
    (tmp_path / "mine.py").write_text(FAILING, encoding="utf-8")
    more = f"transport: {{congestion_control: {tmp_path / 'mine.py'}}}"
    prepared = weftwork.prepare(weftwork.read_scenario(written(tmp_path, "traffic", fidelity="packet", more=more)))
    told: list[Progress] = []
    with pytest.raises(PolicyError, match=r"mine\.py, line 8: rate_bps became -1\.0"):
        weftwork.execute(prepared, told.append)
    begin = [now.is_repeat for now in told].index(True)
    assert all(now.is_repeat for now in told[begin:])
    first, repeated = told[:begin], told[begin:]
    assert [now.packet_hops for now in repeated] == [now.packet_hops for now in first]
    assert (repeated[0].share, repeated[-1].share) == (0, 1)  # of the work up to the failure
    assert first[-1].share is not None
    assert 0 < first[-1].share < 1  # of the whole run


@pytest.mark.parametrize("until", ["20us", "60us", "150us"])
def test_a_link_of_a_run_that_was_stopped_is_busy_for_a_share_of_the_time(until: str, tmp_path: Path) -> None:
    overrides = {"engine.until": until, "traffic": "{pattern: permutation, size: 64MiB}"}
    run = weftwork.run(written(tmp_path, "traffic"), out=tmp_path / "run", overrides=overrides)
    assert run.status == "stopped"
    busiest = run.value("busiest_link")
    assert busiest is not None
    assert 0.2 < busiest <= 1 + 1e-6


def test_weeks_are_asked_of_packets_too(tmp_path: Path) -> None:
    file = written(tmp_path, "training", fidelity="packet", more="reliability: {}")
    run = weftwork.run(file, out=tmp_path / "run")
    share = run.value("effective_share")
    assert share is not None
    assert 0.9 < share < 1
    said = " ".join(answer(run))
    assert "Over weeks" in said
    assert f"Took {run.value('iteration_ps') / 1e9:.3g} ms" in said


def test_an_iteration_of_packets_that_does_not_end_has_no_time(tmp_path: Path) -> None:
    file = written(tmp_path, "training", fidelity="packet")
    run = weftwork.run(file, out=tmp_path / "run", overrides={"engine.until": "1ms"})
    assert run.status == "stopped"
    assert run.value("iteration_ps") is None
    assert run.value("model_flops") is not None


@pytest.mark.parametrize("fidelity", ["packet", "flow", "reference"])
def test_spraying_under_go_back_n_runs_where_it_is_forced(fidelity: str, tmp_path: Path) -> None:
    sprayed = written(tmp_path, "traffic", fidelity=fidelity, more="transport: {load_balancing: spray, force: true}")
    assert weftwork.run(sprayed, out=tmp_path / "run", what_if="none").status == "complete"


def test_what_a_fidelity_cannot_do_is_refused_when_it_is_prepared(tmp_path: Path) -> None:
    for workload, fidelity, more, text in (
        ("jobs", "packet", "", "several jobs on one fabric run as flows"),
        ("training", "flow", "transport: {load_balancing: spray}", "reorder_tolerant: true"),
    ):
        with pytest.raises(ConfigError, match=text):
            weftwork.prepare(weftwork.read_scenario(written(tmp_path, workload, fidelity=fidelity, more=more)))
    recorded = weftwork.read_scenario(written(tmp_path, "training"), {"engine.record": "{flows: all}"})
    with pytest.raises(ConfigError, match="the flow engine keeps no series"):
        weftwork.prepare(recorded)
