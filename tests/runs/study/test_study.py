"""Studies: from a scenario to a run, ideal times against the engine, seeds, comparison and interruption."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from helpers.cases import case_count
from helpers.gallery import Gallery
from hypothesis import given, settings
from hypothesis import strategies as st

from weftwork.base.errors import ConfigError
from weftwork.engine.lower import lower
from weftwork.engine.reference import simulation as reference
from weftwork.engine.settings import EngineSettings
from weftwork.policies.load import load
from weftwork.spec.device import Nic, Switch
from weftwork.spec.fabric import HOST, SWITCH
from weftwork.spec.result import TABLES
from weftwork.spec.scenario.scenario import Scenario
from weftwork.spec.transport import Transport
from weftwork.store.runs import Run, open_run
from weftwork.study.prepare.prepare import prepare, read_scenario
from weftwork.study.prepare.prepared import Prepared
from weftwork.study.record.run import run_scenario
from weftwork.study.results.compare_runs import compare_runs
from weftwork.study.results.ideal import ideal_times_ps
from weftwork.study.results.seeds import interval
from weftwork.study.run.execute import Progress
from weftwork.topology.assemble import assemble, links_between
from weftwork.workload.traffic.patterns.incast import incast

TINY = """schema: 3
name: tiny
fabric: {topology: leaf-spine, leaves: 2, spines: 2, hosts_per_leaf: 2, link_rate: 100Gbps}
transport: {congestion_control: fixed-window}
engine: {fidelity: reference}
"""


INCAST = TINY + "traffic: {pattern: incast, senders: 3, size: 20KB}\n"


Write = Callable[[str], Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def file(text: str) -> Path:
        path = tmp_path / "scenario.yaml"
        path.write_text(text, encoding="utf-8")
        return path

    return file


@settings(max_examples=case_count(plain=20, deep=200))
@given(
    rates_gbps=st.lists(st.sampled_from([10, 25, 100, 400, 333]), min_size=1, max_size=4),
    delay_ps=st.integers(1_000, 3_000_000),
    size_bytes=st.integers(0, 40_000),
    mtu_bytes=st.sampled_from([256, 1024, 4096]),
    pcie=st.sampled_from([(0, 0), (64, 100_000), (500, 0)]),
)
def test_a_lone_flow_takes_its_ideal_time(
    rates_gbps: list[int], delay_ps: int, size_bytes: int, mtu_bytes: int, pcie: tuple[int, int]
) -> None:
    switches = len(rates_gbps) - 1
    ends = [0, *range(2, 2 + switches), 1]
    rates = [rate * 10**9 for rate in rates_gbps]
    fabric = assemble(
        name="line",
        node_names=["a", "b", *(f"s{i}" for i in range(switches))],
        node_kind=[HOST, HOST, *[SWITCH] * switches],
        node_tier=[0, 0, *[1] * switches],
        links=links_between(ends[:-1], ends[1:], rate_bps=rates, delay_ps=delay_ps),
        switches=(Switch(buffer_bytes=10**9),) if switches else (),
        nics=(Nic(pcie_rate_bps=pcie[0] * 10**9, pcie_latency_ps=pcie[1], receive_latency_ps=77),),
    )
    engine_input = lower(
        fabric=fabric,
        job=incast(hosts=2, size_bytes=max(size_bytes, 1), seed=1, receiver=1),
        transport=Transport(mtu_bytes=mtu_bytes),
        congestion_control=load("congestion_control", "none"),
        settings=EngineSettings(port_selection=load("port_selection", "ecmp")),
    )
    outcome = reference.run(engine_input)
    ideal = ideal_times_ps(
        engine_input, engine_input.rank_ports[:1, 0], engine_input.rank_ports[1:, 0], outcome.messages["size_bytes"]
    )
    assert outcome.messages["delivered_at_ps"].tolist() == ideal.tolist()


def test_a_run_has_every_table_with_units(gallery: Gallery, write: Write, tmp_path: Path) -> None:
    run = gallery.run(INCAST)
    assert run.is_complete
    for name, columns in TABLES.items():
        schema = run.table(name).schema
        assert schema.names == [column.name for column in columns]
        assert [schema.field(i).metadata[b"unit"].decode() for i in range(len(columns))] == [c.unit for c in columns]
    assert all(set(number) == {"value", "unit", "text"} for number in run.summary.values())
    assert run.provenance["digest"] == run_scenario(write(INCAST), out=tmp_path / "again").provenance["digest"]


def test_the_numbers_follow_from_the_tables(gallery: Gallery) -> None:
    run = gallery.run(INCAST)
    flows = run.flows.to_pylist()
    assert len(flows) == 3 == run.value("flows_completed")
    assert run.value("payload_bytes") == 60_000
    assert run.value("completion_ps") == max(flow["delivered_ps"] for flow in flows)
    assert run.value("fct_max_ps") == max(flow["fct_ps"] for flow in flows)
    assert all(flow["slowdown"] == flow["fct_ps"] / flow["ideal_fct_ps"] >= 1 for flow in flows)
    assert {flow["destination"] for flow in flows} == {"host0"}
    (last,) = run.query("select * from links where name = 'leaf0->host0'").to_pylist()
    frames = 3 * 5
    assert (last["frames"], last["bytes"]) == (frames, 60_000 + frames * 62 + 3 * 16)
    wire_s = (last["bytes"] + frames * 20) * 8 / 100e9
    assert last["utilisation"] == pytest.approx(wire_s / (run.value("simulated_ps") or 0) * 1e12)


def test_a_run_folder_holds_the_whole_scenario(write: Write, tmp_path: Path) -> None:
    run = run_scenario(write(INCAST), out=tmp_path / "run", seed=7)
    again = run_scenario(run.path / "scenario.yaml", out=tmp_path / "again")
    assert again.provenance["seed"] == 7
    assert again.provenance["digest"] == run.provenance["digest"]
    assert again.scenario == run.scenario


def test_a_scenario_that_was_read_runs_too(write: Write, tmp_path: Path) -> None:
    scenario = read_scenario(write(INCAST), {"engine.seed": "4"})
    run = run_scenario(scenario, out=tmp_path / "run")
    assert run.provenance["seed"] == 4
    with pytest.raises(ConfigError, match="overrides are for a file or a dict"):
        run_scenario(scenario, out=tmp_path / "again", overrides={"engine.seed": "5"})


def test_both_engines_make_the_same_run(gallery: Gallery) -> None:
    runs = [gallery.run(INCAST, overrides={"engine.fidelity": fidelity}) for fidelity in ("reference", "packet")]
    found = compare_runs(runs)
    assert found.is_same_result
    assert [(d.key, *d.values) for d in found.differences] == [("engine.fidelity", "reference", "packet")]
    assert [one for one in found.numbers if one.values[0] != one.values[1]] == []
    assert runs[0].flows.equals(runs[1].flows)


def test_an_all_reduce_has_a_row_for_every_time(gallery: Gallery) -> None:
    run = gallery.run(TINY + "collective: {size: 1MB, repeat: 3}\n", what_if="none")
    rows = run.collectives.to_pylist()
    assert [row["repetition"] for row in rows] == [0, 1, 2]
    for row in rows:
        assert row["duration_ps"] == row["end_ps"] - row["start_ps"]
        algorithm = 8e6 / row["duration_ps"] * 1e12
        assert row["algorithm_bandwidth_bps"] == pytest.approx(algorithm)
        assert row["bus_bandwidth_bps"] == pytest.approx(1.5 * algorithm)  # 2 (n - 1) / n of four ranks
        assert row["bus_bandwidth_bps"] < 100e9


def test_time_series_are_kept_for_what_was_named(gallery: Gallery) -> None:
    record = {"engine.fidelity": "packet", "engine.record": "{flows: [1], ports: [leaf0->host0], every: 100ns}"}
    run = gallery.run(INCAST, overrides=record)
    kinds = run.query("select kind, place, max(value) as most from series group by all order by all").to_pylist()
    assert [(row["kind"], row["place"]) for row in kinds] == [
        ("queue_bytes", "leaf0->host0"), ("rate_bps", "1"), ("window_bytes", "1"),
    ]  # fmt: skip
    assert kinds[0]["most"] > 10_000
    assert kinds[1]["most"] == 100e9


def test_names_that_the_fabric_does_not_have_are_told_with_lines(write: Write, tmp_path: Path) -> None:
    faults = "faults:\n  - {at: 1us, link: leaf0-spine2, event: down}\n  - {at: 1us, switch: host1, event: down}\n"
    with pytest.raises(ConfigError) as error:
        prepare(read_scenario(write(INCAST + faults)))
    assert [mistake.line for mistake in error.value.mistakes] == [8, 9]
    assert "did you mean 'leaf0-spine" in str(error.value)
    record = {"engine.record": "{flows: [3], ports: [leaf0->host9, leaf9]}"}
    with pytest.raises(ConfigError) as error:
        run_scenario(write(INCAST), out=tmp_path / "run", overrides=record)
    assert len(error.value.mistakes) == 4  # two ports, a flow, and an engine that records nothing
    assert not (tmp_path / "run").exists()


def test_a_fault_is_an_event(gallery: Gallery) -> None:
    fault = "faults: [{at: 1us, link: leaf0-spine0, event: degrade, fraction: 0.5}]\n"
    run = gallery.run(INCAST + fault)
    (row,) = run.query("select detail, place, at_ps from events where event = 'fault'").to_pylist()
    assert row == {"detail": "degrade", "place": "leaf0-spine0", "at_ps": 1_000_000}


def test_seeds_give_a_mean_and_an_interval(gallery: Gallery) -> None:
    text = INCAST.replace("size: 20KB", "size: 20KB, start_jitter: 3us")
    run = gallery.run(text, seeds=3, seed=10)
    assert run.is_complete
    assert [part.provenance["seed"] for part in run.seeds] == run.provenance["seeds"] == [10, 11, 12]
    values = [part.value("fct_p50_ps") for part in run.seeds]
    number = run.summary["fct_p50_ps"]
    assert (number["value"], number["low"], number["high"]) == interval([v for v in values if v is not None])
    assert number["low"] < number["value"] < number["high"]
    assert compare_runs([run, run]).numbers[0].is_clear == (None, False)


@pytest.mark.parametrize("arguments", [{"seeds": 0}, {"seed": -1}, {"seed": 2**31 - 1, "seeds": 2}])
def test_seeds_out_of_range_are_refused(write: Write, tmp_path: Path, arguments: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=r"engine\.seed|seeds  found 0"):
        run_scenario(write(INCAST), out=tmp_path / "run", **arguments)


@pytest.mark.usefixtures("python_hears_sigint")
@pytest.mark.parametrize("fidelity", ["reference", "packet"])
def test_an_interrupted_run_keeps_what_it_has_and_says_so(write: Write, tmp_path: Path, fidelity: str) -> None:
    pressed = []  # a second Ctrl-C would end this process

    def press(now: Progress) -> None:
        if now.simulated_ps > 100_000_000 and not pressed:  # the first flows take some microseconds
            pressed.append(now.simulated_ps)
            os.kill(os.getpid(), signal.SIGINT)

    many = INCAST.replace("size: 20KB", "size: 20KB, repeat: 20000")
    before = signal.getsignal(signal.SIGINT)
    run = run_scenario(write(many), out=tmp_path / "run", overrides={"engine.fidelity": fidelity}, progress=press)
    assert signal.getsignal(signal.SIGINT) is before
    assert run.status == "interrupted"
    done, posted = run.value("flows_completed") or 0, run.value("flows") or 0
    assert 0 < done <= posted < 60_000
    assert open_run(run.path).flows.num_rows == posted


@pytest.mark.usefixtures("python_hears_sigint")
def test_interrupted_seeds_keep_the_whole_ones(write: Write, tmp_path: Path) -> None:
    calls: list[float | None] = []

    def press(now: Progress) -> None:
        calls.append(now.share)
        if len(calls) == 3:
            os.kill(os.getpid(), signal.SIGINT)

    text = INCAST.replace("size: 20KB", "size: 20KB, repeat: 60")  # some progress in each run of the reference
    run = run_scenario(write(text), out=tmp_path / "run", seeds=50, progress=press)
    assert run.status == "interrupted"
    assert run.provenance["seeds_wanted"] == 50
    assert 0 < len(run.seeds) < 50


@pytest.mark.usefixtures("python_hears_sigint")
def test_an_interrupt_while_a_run_is_prepared_leaves_nothing(
    write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("weftwork.study.record.run.prepare", lambda *_, **__: os.kill(os.getpid(), signal.SIGINT))
    file = write(INCAST)
    with pytest.raises(KeyboardInterrupt):
        run_scenario(file, out=tmp_path / "run", seeds=2)
    assert list(tmp_path.iterdir()) == [file]


@pytest.mark.usefixtures("python_hears_sigint")
def test_an_interrupt_of_goodput_over_weeks_keeps_the_iteration(
    write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = (
        "schema: 3\nfabric: {topology: rail-optimized, gpus: 16, node: dgx-h100, switch: tomahawk-5}\n"
        "training: {model: llama-3-8b, tensor: 8, pipeline: 2, micro_batch: 1, global_batch: 4}\n"
    )
    whole = run_scenario(write(text), out=tmp_path / "whole")
    monkeypatch.setattr("weftwork.study.results.goodput.goodput", lambda *_, **__: os.kill(os.getpid(), signal.SIGINT))
    run = run_scenario(write(text + "reliability: {}\n"), out=tmp_path / "run")
    assert (whole.status, run.status) == ("complete", "interrupted")
    assert run.value("iteration_ps") == whole.value("iteration_ps")
    assert "effective_share" not in run.summary
    assert open_run(run.path).table("jobs").num_rows == 1


@pytest.mark.usefixtures("python_hears_sigint")
def test_seeds_are_there_as_soon_as_they_have_finished(
    write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[tuple[str, list[int], int]] = []

    def prepare_two(scenario: Scenario, **options: Any) -> Prepared:
        if scenario.engine.seed > 1:
            run = open_run(tmp_path / "run")
            seen.append((run.status, run.provenance["seeds"], len(run.seeds)))
        if scenario.engine.seed == 3:
            os.kill(os.getpid(), signal.SIGINT)
        return prepare(scenario, **options)

    monkeypatch.setattr("weftwork.study.record.run.prepare", prepare_two)
    run = run_scenario(write(INCAST), out=tmp_path / "run", seeds=4)
    assert seen == [("interrupted", [1], 1), ("interrupted", [1, 2], 2)]
    assert (run.status, [part.status for part in run.seeds]) == ("interrupted", ["complete", "complete"])
    assert run.summary["completion_ps"]["seeds"] == 2
    assert not list(tmp_path.rglob(".*"))


def test_a_run_that_ends_at_a_given_instant_is_partial(gallery: Gallery) -> None:
    run = gallery.run(INCAST, overrides={"engine.until": "2us"})
    assert run.status == "stopped"
    assert (run.value("flows_completed"), run.value("flows")) == (0, 3)
    assert run.value("fct_p50_ps") is None
    assert run.flows["fct_ps"].null_count == 3


def test_a_run_that_can_never_finish_says_so(gallery: Gallery) -> None:
    down = "faults: [{at: 1us, link: host0-leaf0, event: down}]\n"
    hopeless = {"transport.timeout": "10us", "transport.retry_limit": "1"}
    run = gallery.run(INCAST + down, overrides=hopeless)
    assert run.status == "gave-up"
    assert run.value("queue_pair_errors") == 3


def test_comparison_sees_missing_numbers_and_keys(gallery: Gallery) -> None:
    first = gallery.run(INCAST)
    second = gallery.run(TINY + "collective: {size: 1MB}\n")
    found = compare_runs([first, second])
    assert not found.is_same_result
    keys = {difference.key: difference for difference in found.differences}
    assert keys["traffic.pattern"].values == ("incast", None)
    numbers = {number.name: number for number in found.numbers}
    assert numbers["collective_duration_ps"].values[0] is None
    assert numbers["payload_bytes"].values == (60_000, 6_000_000)
    for name in ("collective_duration_ps", "payload_bytes"):  # other workloads are not measured against each other
        assert numbers[name].changes == (None, None)


def test_tables_are_arrow(gallery: Gallery) -> None:
    run: Run = gallery.run(INCAST)
    assert isinstance(run.flows, pa.Table)
    assert isinstance(run.query("from links"), pa.Table)


def test_files_are_relative_to_the_scenario(write: Write, tmp_path: Path) -> None:
    (tmp_path / "mine.csv").write_text("size_bytes,cumulative_percent\n1000,0\n2000,100\n", encoding="utf-8")
    (tmp_path / "mine.py").write_text(load("congestion_control", "none").source_text, encoding="utf-8")
    poisson = "traffic: {pattern: poisson, sizes: mine.csv, flows: 30, load: 0.2}\n"
    text = TINY.replace("fixed-window", "./mine.py") + poisson
    run = run_scenario(write(text), out=tmp_path / "run")
    assert run.is_complete
    assert run.flows.num_rows == 30
    assert run.provenance["policies"]["congestion_control"]["name"] == "mine"
    (tmp_path / "mine.csv").write_text("size_bytes,cumulative_percent\n1000,0\n900,100\n", encoding="utf-8")
    with pytest.raises(ConfigError, match=r"mine\.csv: 1 mistake.*\n  line 3"):
        run_scenario(write(text), out=tmp_path / "again")
