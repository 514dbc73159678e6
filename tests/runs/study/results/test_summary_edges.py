"""Edges of summaries: seeds of which some did not end, repetitions that were cut off, iterations with checkpoints, jobs
of unequal size, and fabrics of which only the busiest links are kept.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from io import StringIO
from pathlib import Path
from statistics import fmean, harmonic_mean, stdev
from typing import Any

import numpy as np
import pytest
from helpers.gallery import Gallery
from helpers.shown import columns, printed, told, value_of, wrong
from rich.console import Console
from scipy.stats import t as student

from weftwork.report.answer import answer, print_answer
from weftwork.report.page import run_page
from weftwork.store.runs import Run
from weftwork.study.prepare.prepare import prepare, read_scenario
from weftwork.study.record.run import run_scenario
from weftwork.study.results import record

PS = 1e12
TINY = "topology: leaf-spine, leaves: 2, spines: 2, hosts_per_leaf: 3, link_rate: 100Gbps"
POISSON = f"""schema: 3
fabric: {{{TINY}}}
transport: {{congestion_control: fixed-window}}
traffic: {{pattern: poisson, load: 0.5, flows: 12, sizes: facebook-hadoop}}
"""
RAILS = "topology: rail-optimized, node: dgx-h100, switch: tomahawk-5"


def ran(
    gallery: Gallery,
    text: str,
    name: str = "run",
    *,
    seeds: int = 1,
    files: Mapping[str, str] | None = None,
    **settings: str,
) -> Run:
    overrides = {key.replace("__", "."): value for key, value in settings.items()}
    run: Run = gallery.run(text, name=name, seeds=seeds, files=files, overrides=overrides, what_if="none")
    return run


def numbers(folder: Path) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = json.loads((folder / "summary.json").read_text())["numbers"]
    return found


@pytest.fixture(scope="module")
def seeds(gallery: Gallery) -> Run:
    """Five seeds, of which some have delivered everything when the run is stopped."""
    whole = ran(gallery, POISSON, "whole", seeds=5)
    ends = sorted(numbers(one.path)["simulated_ps"]["value"] for one in whole.seeds)
    until = (ends[2] + ends[3]) // 2
    return ran(gallery, POISSON, "partial", seeds=5, engine__until=f"{until:.0f}ps")


def test_seeds_of_which_some_were_stopped_are_all_counted_and_told(seeds: Run) -> None:
    done = [one.status == "complete" for one in seeds.seeds]
    assert (len(done), sum(done)) == (5, 3)
    assert seeds.status == "stopped"
    each = [numbers(one.path) for one in seeds.seeds]
    for name, number in numbers(seeds.path).items():
        values = [one[name]["value"] for one in each if one[name]["value"] is not None]
        assert number["seeds"] == len(values), name
        if not values:
            assert number["value"] is number["low"] is number["high"] is None
            continue
        mean = fmean(values)
        half = student.ppf(0.975, len(values) - 1) * stdev(values) / len(values) ** 0.5 if len(values) > 1 else 0.0
        most = 1.0 if number["unit"] == "share" or name == "jain_index" else np.inf
        assert number["value"] == pytest.approx(mean), name
        assert number["low"] == pytest.approx(max(mean - half, 0.0), rel=1e-9, abs=1e-9), name
        assert number["high"] == pytest.approx(min(mean + half, most)), name
    said = " ".join(answer(seeds))
    assert told(said, "NOT FINISHED: {} of {} seeds delivered everything, so there is no average time.") == ["3", "5"]
    assert "Half of" not in said
    assert "took" not in said
    completed, posted = told(said, "{} of {} flows completed")
    assert (
        wrong(
            [("completed", completed, fmean(one["flows_completed"]["value"] for one in each)), ("posted", posted, 12)]
        )
        == []
    )


NAMES = {
    "completion": "completion_ps", "goodput": "goodput_bps", "FCT p50": "fct_p50_ps", "slowdown p99": "slowdown_p99",
    "Jain index": "jain_index", "busiest link": "busiest_link",
}  # fmt: skip


def test_the_tables_of_seeds(seeds: Run) -> None:
    console = Console(width=200, record=True, file=StringIO())
    print_answer(seeds, console)
    text = console.export_text()
    known = numbers(seeds.path)
    shown = printed(text, "mean of 5 seeds, 3 finished")
    assert len(shown) > 8
    pairs = []
    for row in shown:
        cells = list(row.values())
        if (name := NAMES.get(cells[0])) is not None:
            pairs += [
                (f"{name} {key}", cell, known[name][key])
                for key, cell in zip(("value", "low", "high"), cells[1:], strict=True)
            ]
    assert len(pairs) == 18
    assert wrong(pairs) == []
    page = run_page(seeds)
    assert all(f"seed-{number}" in page for number in range(1, 6))
    assert page.count("<td>stopped</td>") == 2
    assert page.count("<td>complete</td>") == 3


def test_a_number_that_some_seeds_lack_is_the_mean_of_the_others(gallery: Gallery) -> None:
    """Stopped so early that one seed has delivered nothing and has no percentiles."""
    starts = ran(gallery, POISSON, "whole", seeds=3)
    first = sorted(min(one.table("flows")["delivered_ps"].to_pylist()) for one in starts.seeds)
    run = ran(gallery, POISSON, "early", seeds=3, engine__until=f"{(first[0] + first[1]) // 2}ps")
    known = numbers(run.path)
    own = [numbers(one.path)["fct_p50_ps"]["value"] for one in run.seeds]
    (only,) = (value for value in own if value is not None)
    assert (known["fct_p50_ps"]["seeds"], known["flows_completed"]["seeds"]) == (1, 3)
    assert known["fct_p50_ps"]["value"] == known["fct_p50_ps"]["low"] == known["fct_p50_ps"]["high"] == only
    assert "None of 3 seeds delivered everything" in " ".join(answer(run))


def test_repetitions_that_were_cut_off_have_no_time_and_do_not_count(gallery: Gallery) -> None:
    work = "operation: all-reduce, size: 100KB, repeat: 4, protocol: none"
    text = f"schema: 3\nfabric: {{{TINY}}}\ncollective: {{{work}}}\n"
    whole = columns(ran(gallery, text, "whole").path, "collectives")
    first, last = int(whole["first_end_ps"][2]), int(whole["end_ps"][2])
    until = (first + last) // 2  # of the third repetition some ranks have their result, and others do not
    assert first < until < last
    run = ran(gallery, text, "cut", engine__until=f"{until}ps")
    rows = run.table("collectives").to_pylist()
    known = {name: number["value"] for name, number in numbers(run.path).items()}
    assert [row["duration_ps"] is None for row in rows] == [False, False] + [True] * (len(rows) - 2)
    assert rows[2]["end_ps"] is rows[2]["bus_bandwidth_bps"] is rows[2]["last_rank"] is None
    assert rows[2]["first_end_ps"] == first
    done = rows[:2]
    for row in done:
        assert row["duration_ps"] == row["end_ps"] - row["start_ps"]
        assert row["algorithm_bandwidth_bps"] == pytest.approx(100_000 * 8 * PS / row["duration_ps"])
        assert row["bus_bandwidth_bps"] == pytest.approx(row["algorithm_bandwidth_bps"] * 2 * 5 / 6)
        assert row["start_ps"] < row["first_end_ps"] <= row["end_ps"]
    assert known["collective_repetitions"] == len(rows) == len({row["start_ps"] for row in rows}) >= 3
    assert known["collective_duration_ps"] == pytest.approx(fmean(row["duration_ps"] for row in done))
    for name in ("bus_bandwidth_bps", "algorithm_bandwidth_bps"):
        assert known[f"collective_{name}"] == pytest.approx(harmonic_mean([row[name] for row in done]))


@pytest.mark.parametrize("fidelity", ["flow", "packet"])
def test_several_iterations_with_checkpoints(gallery: Gallery, fidelity: str) -> None:
    """Five iterations with a checkpoint after the second and the fourth: two fifths of it each, on the mean."""
    model = (
        '{"model_type": "llama", "hidden_size": 512, "intermediate_size": 1024, "num_hidden_layers": 2,'
        ' "vocab_size": 1000, "num_attention_heads": 8, "num_key_value_heads": 8, "max_position_embeddings": 4096}'
    )
    files = {"tiny.json": model}
    head = f"schema: 3\nfabric: {{{RAILS}, gpus: 16}}\nengine: {{fidelity: {fidelity}}}\nreliability: {{}}\n"
    work = "model: ./tiny.json, sequence: 512, tensor: 1, data: 16, global_batch: 16"
    plain = ran(gallery, f"{head}training: {{{work}}}\n", "plain", files=files)
    more = "iterations: 5, checkpoint: {every: 2}"
    run = ran(gallery, f"{head}training: {{{work}, {more}}}\n", "saved", files=files)
    (job,), (alone,) = run.table("jobs").to_pylist(), plain.table("jobs").to_pylist()
    known = {name: number["value"] for name, number in numbers(run.path).items()}
    one_ps = (5 * job["iteration_ps"] - 5 * alone["iteration_ps"]) / 2  # of a checkpoint, where iterations are alike
    assert one_ps > 0.05 * alone["iteration_ps"]
    assert job["tokens"] == alone["tokens"] == 16 * 512
    assert job["tokens_per_s"] == pytest.approx(job["tokens"] * PS / job["iteration_ps"])
    assert job["mfu"] == pytest.approx(alone["mfu"] * alone["iteration_ps"] / job["iteration_ps"])
    assert known["iteration_ps"] == job["iteration_ps"]
    # weeks count checkpoints by themselves: what lies between two of them is the work alone
    assert known["checkpoint_every_s"] * PS == pytest.approx(2 * alone["iteration_ps"], rel=1e-3)
    if fidelity == "flow":
        segments = columns(run.path, "segments")
        saving = segments["kind"] == "checkpoint"
        length = (segments["end_ps"] - segments["start_ps"])[saving]
        assert (length * segments["ranks"][saving]).sum() / 16 == pytest.approx(2 * one_ps, rel=1e-3)
        assert job["iteration_ps"] * 5 == pytest.approx(segments["end_ps"].max() - segments["start_ps"].min(), abs=5)
        assert job["exposed_ps"] + job["compute_ps"] + 2 * one_ps / 5 <= job["iteration_ps"] * (1 + 1e-6)


@pytest.fixture(scope="module")
def jobs(gallery: Gallery) -> Run:
    work = "model: llama-3-8b, recompute: full, placement: pods"
    text = f"""schema: 3
fabric: {{{RAILS}, gpus: 64, pods: 2, oversubscription: 2, fabric_rate: 800Gbps}}
jobs:
  - {{name: large, tensor: 4, pipeline: 2, gpus: 32, global_batch: 16, {work}}}
  - {{name: small, zero: 3, gpus: 16, global_batch: 16, {work}}}
"""
    return ran(gallery, text)


def test_the_numbers_of_each_job_are_its_own(jobs: Run) -> None:
    known, rows = numbers(jobs.path), jobs.table("jobs").to_pylist()
    assert [row["gpus"] for row in rows] == [32, 16]
    names = [name for name in rows[0] if name in known]
    assert {"iteration_ps", "tokens_per_s", "mfu", "memory_bytes", "exposed_share", "compute_ps"} <= set(names)
    for lead, row in (("", rows[0]), ("small.", rows[1])):
        assert {name: known[f"{lead}{name}"]["value"] for name in names} == {name: row[name] for name in names}
    segments = columns(jobs.path, "segments")
    for lead, row in (("", rows[0]), ("small.", rows[1])):
        for kind in ("tensor", "pipeline", "data"):
            mine = (segments["job"] == row["job"]) & (segments["kind"] == kind)
            spent = ((segments["end_ps"] - segments["start_ps"]) * segments["ranks"])[mine].sum() / row["gpus"]
            assert known[f"{lead}exposed_{kind}_ps"]["value"] == pytest.approx(spent, abs=1)
    assert known["network_bytes"]["value"] > 0
    assert known["busiest_link"]["value"] == columns(jobs.path, "links")["utilisation"].max()


def test_of_very_many_links_the_busiest_are_kept(jobs: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(record, "MOST_LINKS", 20)
    monkeypatch.setattr(record, "KEPT_LINKS", 7)
    some = run_scenario(jobs.path / "scenario.yaml", out=tmp_path / "some")
    every, kept = columns(jobs.path, "links"), columns(some.path, "links")
    carried = every["utilisation"] * every["rate_bps"]
    assert set(every["port"][np.argsort(-carried, kind="stable")[:7]]) != set(kept["port"])  # rates differ
    assert len(kept["port"]) == 7
    assert list(kept["port"]) == sorted(kept["port"])
    assert sorted(kept["utilisation"]) == sorted(every["utilisation"])[-7:]
    by_name = {name: place for place, name in enumerate(every["name"])}
    for place, name in enumerate(kept["name"]):
        for column in ("port", "link", "node", "peer", "rate_bps", "utilisation"):
            assert kept[column][place] == every[column][by_name[name]], (name, column)
    a, b = numbers(jobs.path), numbers(some.path)
    assert a["network_bytes"] == b["network_bytes"]  # of all links, kept or not
    assert a["busiest_link"] == b["busiest_link"]
    text = " ".join(answer(some))
    share = value_of(told(text, "in use {} of the time")[0])
    assert share == pytest.approx(a["busiest_link"]["value"], rel=0.01)
    assert "kept only the 7 busiest directions of its links" in run_page(some)


def test_the_busiest_port_inside_a_server_is_that_of_who_sends_or_receives_most(gallery: Gallery) -> None:
    """All GPUs of a server send to one, which receives seven times what each sends."""
    text = f"schema: 3\nfabric: {{{RAILS}, gpus: 16}}\n"
    run = ran(gallery, text + "collective: {operation: reduce, algorithm: direct, size: 1MB, channels: 1}\n")
    flows, known = columns(run.path, "flows"), numbers(run.path)
    inside = flows["carrier"] == "nvlink"
    sent, received = np.zeros((2, 16))
    np.add.at(sent, flows["source_rank"][inside].astype(int), flows["size_bytes"][inside])
    np.add.at(received, flows["destination_rank"][inside].astype(int), flows["size_bytes"][inside])
    assert received.max() == 7 * sent.max()
    rate_bps = prepare(read_scenario(run.path / "scenario.yaml")).engine_input.rank_gpu["nvlink_rate_bps"][0]
    share = received.max() * 8 * PS / float(rate_bps) / known["simulated_ps"]["value"]
    assert known["busiest_nvlink"]["value"] == pytest.approx(share)
    assert known["nvlink_bytes"]["value"] == flows["size_bytes"][inside].sum()
    assert known["packets_bytes"]["value"] == flows["size_bytes"][~inside].sum() > 0
    said = " ".join(answer(run))
    between, within = told(said, "{} went between servers, by packet, and {} inside servers by NVLink, by message.")
    (used,) = told(said, "The busiest NVLink port was in use {} of the time.")
    assert wrong([
        ("between", between, known["packets_bytes"]["value"]), ("within", within, known["nvlink_bytes"]["value"]),
        ("used", used, share),
    ]) == []  # fmt: skip
