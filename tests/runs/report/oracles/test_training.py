"""What a page and an answer say of training jobs, computed again from the tables of the run.

Two runs: jobs of unequal size on one fabric, one of them of two iterations with a checkpoint and a slow GPU, so that
what is alike happens a different number of times; and one job alone, whose answer is another text.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from io import StringIO
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from helpers.gallery import Gallery
from helpers.shown import (
    Element,
    charts,
    columns,
    is_shown,
    is_told,
    printed_beside,
    prose,
    rows,
    section,
    three_lines,
    told,
    value_of,
    wrong,
)
from helpers.training_run import Plan, training_run
from numpy.typing import NDArray
from rich.console import Console

from weftwork.report.answer import print_answer
from weftwork.report.page import run_page
from weftwork.store.runs import Run

SCENARIOS = {
    "jobs": """schema: 3
fabric: {topology: rail-optimized, gpus: 64, pods: 2, node: dgx-h100, switch: tomahawk-5, oversubscription: 4}
jobs:
  - {name: large, model: llama-3-8b, tensor: 4, pipeline: 2, gpus: 32, global_batch: 16, recompute: selective,
     placement: pods, iterations: 2, checkpoint: {every: 2}}
  - {name: small, model: llama-3-8b, zero: 3, prefetch: false, gpus: 16, global_batch: 16, recompute: full,
     placement: pods}
reliability: {spares: 1}
stragglers: [{gpu: 3, factor: 1.1}]
""",
    "alone": """schema: 3
fabric: {topology: rail-optimized, gpus: 32, node: dgx-h100, switch: tomahawk-5}
training: {model: llama-3-8b, tensor: 4, pipeline: 2, global_batch: 24, recompute: selective, iterations: 2,
           checkpoint: {every: 1}}
reliability: {spares: 1, gpu: 9, host: 4, days: 20}
""",
}
ITERATIONS = {"large": 2, "small": 1, "training": 2}
EXPOSED = {"tensor", "context", "expert", "pipeline", "data"}
WORDS = {
    "forward": "forward passes", "backward": "backward passes", "recompute": "recomputation",
    "optimizer": "the optimizer", "tensor": "tensor parallel", "pipeline": "pipeline", "data": "data parallel",
    "bubble": "the bubble", "skew": "waiting for other ranks", "checkpoint": "checkpoints",
}  # fmt: skip
ON_PAGE = {
    "forward": "forward", "backward": "backward", "recompute": "recomputation", "optimizer": "optimizer",
    "tensor": "tensor parallel, exposed", "pipeline": "pipeline sends, exposed", "data": "data parallel, exposed",
    "bubble": "bubble", "skew": "waiting for other ranks", "checkpoint": "checkpoint",
}  # fmt: skip
SHORT = {"tensor": "tensor", "pipeline": "pipeline", "data": "data", "skew": "waiting for ranks"}  # in a terminal
PS = 1e12


class Trained:
    """A run, its page and its answer, and what the tests compute from its tables."""

    def __init__(self, run: Run) -> None:
        self.run, self.page = run, run_page(run)
        console = Console(width=200, record=True, file=StringIO())
        print_answer(run, console)
        self.terminal = console.export_text()
        self.jobs = [dict(zip(names, values, strict=True)) for names, values in _records(run, "jobs")]
        self.segments, self.links = columns(run.path, "segments"), columns(run.path, "links")
        self.activities, self.tiers = columns(run.path, "activities"), columns(run.path, "tiers")
        self.what_if = [dict(zip(names, values, strict=True)) for names, values in _records(run, "what_if")]
        self.numbers: dict[str, dict[str, Any]] = json.loads((run.path / "summary.json").read_text())["numbers"]

    def took_ps(self, job: str) -> float:
        """Of an iteration, from the first segment of the job to the last."""
        mine = self.segments["job"] == job
        span = self.segments["end_ps"][mine].max() - self.segments["start_ps"][mine].min()
        return float(span) / ITERATIONS[job]

    def spent_ps(self, job: str) -> dict[str, float]:
        """Time of an average GPU in an iteration, by what it went to."""
        found: defaultdict[str, float] = defaultdict(float)
        ranks: dict[tuple[float, float], float] = {}
        names = ("job", "kind", "pass", "stage", "rank", "ranks", "start_ps", "end_ps")
        for one, kind, which, stage, rank, alike, start, end in zip(
            *(self.segments[name] for name in names), strict=True
        ):
            if one == job:
                found[which if kind == "compute" else kind] += float(end - start) * float(alike)
                ranks[stage, rank] = float(alike)
        return {kind: total / sum(ranks.values()) / ITERATIONS[job] for kind, total in found.items() if total}

    def exposed_ps(self, job: str) -> float:
        return sum(ps for kind, ps in self.spent_ps(job).items() if kind in EXPOSED)

    def is_bound(self, job: str, case: str) -> bool:
        (text,) = (row["text"] for row in self.what_if if (row["job"], row["change"]) == (job, case))
        return str(text).startswith("a bound")

    def cases(self, job: str) -> dict[str, float]:
        return {row["change"]: float(row["iteration_ps"]) for row in self.what_if if row["job"] == job}


def _records(run: Run, name: str) -> list[tuple[list[str], list[Any]]]:
    table = columns(run.path, name)
    return [
        (list(table), [values[place] for values in table.values()]) for place in range(len(next(iter(table.values()))))
    ]


@pytest.fixture(scope="module", params=SCENARIOS)
def trained(request: pytest.FixtureRequest, gallery: Gallery) -> Trained:
    return Trained(gallery.run(SCENARIOS[request.param], name=request.param))


Shown = list[tuple[str, str, float | None]]


def test_the_runs_are_what_the_oracles_need(trained: Trained) -> None:
    if trained.run.path.name == "jobs":
        assert [job["gpus"] for job in trained.jobs] == [32, 16]
        assert len(set(trained.activities["instances"].tolist())) > 2
    assert "checkpoint" in trained.spent_ps(trained.jobs[0]["job"])


def test_the_kinds_of_time_add_up_to_the_iteration(trained: Trained) -> None:
    for job in trained.jobs:
        assert job["iteration_ps"] == pytest.approx(trained.took_ps(job["job"]), abs=1)
        assert sum(trained.spent_ps(job["job"]).values()) == pytest.approx(job["iteration_ps"], rel=1e-9)
        exposed = trained.exposed_ps(job["job"])
        assert job["exposed_ps"] == pytest.approx(exposed, abs=1)
        assert job["exposed_share"] == pytest.approx(exposed / job["iteration_ps"])
        assert job["bubble_ps"] == pytest.approx(trained.spent_ps(job["job"]).get("bubble", 0.0), abs=1)
        assert job["bubble_share"] == pytest.approx(job["bubble_ps"] / job["iteration_ps"])
        assert job["tokens_per_s"] == pytest.approx(job["tokens"] * PS / job["iteration_ps"])
        assert job["tokens_per_s_per_gpu"] == pytest.approx(job["tokens_per_s"] / job["gpus"])


GROUPS = {
    "computing": {"forward", "backward", "compute", "recompute", "optimizer", "launch"},
    "exposed communication": EXPOSED, "the bubble": {"bubble"}, "waiting for other ranks": {"skew"},
    "checkpoints": {"checkpoint"}, "loading data": {"loading"}, "other things": {"other"},
}  # fmt: skip


@pytest.mark.parametrize("where", ["page", "terminal"])
def test_the_three_lines(trained: Trained, where: str) -> None:
    """Of the first job, whose numbers have no lead in the summary."""
    part = section(trained.page, "answer")
    lines = three_lines(part if where == "page" else trained.terminal)
    job = trained.jobs[0]
    whole, spent = trained.took_ps(job["job"]), trained.spent_ps(job["job"])
    took, rate, each, mfu = told(lines["took"], "{} an iteration: {} tokens/s, {} for each GPU, MFU {}")
    pairs: Shown = [
        ("took", took, whole), ("rate", rate, job["tokens"] * PS / whole),
        ("each", each, job["tokens"] * PS / whole / job["gpus"]), ("mfu", mfu, job["mfu"]),
    ]  # fmt: skip
    wanted = {name: sum(spent.get(kind, 0.0) for kind in kinds) / whole for name, kinds in GROUPS.items()}
    wanted = {name: share for name, share in sorted(wanted.items(), key=lambda one: -one[1]) if share >= 0.005}
    words = lines["limited by"].split(", ")
    shown = {" ".join(one.split()[:-2]): " ".join(one.split()[-2:]) for one in words}
    assert list(shown) == list(wanted)
    pairs += [(name, shown[name], share) for name, share in wanted.items()]
    assert wrong(pairs) == []


@pytest.mark.parametrize("where", ["page", "terminal"])
def test_who_is_to_blame(trained: Trained, where: str) -> None:
    part = section(trained.page, "answer")
    line = three_lines(part if where == "page" else trained.terminal)["to blame"]
    marked = [one.text for one in part.all("b", kind="culprit")]
    if trained.run.path.name == "alone":  # as it came from the factory
        (cost,) = told(line, "writing checkpoints (training.checkpoint) stops training: {} (recorded)")
        assert is_shown(cost, trained.spent_ps(trained.jobs[0]["job"])["checkpoint"])
        assert marked == ["writing checkpoints"]
        return
    assert line.startswith("GPU 3 (stragglers.0) computes 1.1 times as long as the others: ")
    assert marked == ["GPU 3"]
    cost, share = told(line, "others: {}, {} of the time of large (simulated again without it)")
    known = json.loads((trained.run.path / "summary.json").read_text())["answer"]["culprit"]
    assert known["cost_share"] == pytest.approx(known["cost_s"] * PS / trained.took_ps("large"))
    assert wrong([("cost", cost, known["cost_s"] * PS), ("share", share, known["cost_share"])]) == []
    # with nothing but computing a factor of 1.1 costs an eleventh, and no more than that
    assert 0 < known["cost_share"] <= 1 - 1 / 1.1


def test_what_stands_behind_the_lines(trained: Trained) -> None:
    for text in (" ".join(trained.terminal.split()), prose(section(trained.page, "answer"))):
        if len(trained.jobs) == 1:
            (memory,) = told(text, "A GPU needs up to {} of memory,")
            assert is_shown(memory, trained.jobs[0]["memory_bytes"])
    if len(trained.jobs) > 1:
        named = ", ".join(f"{job['job']} ({job['model']} on {job['gpus']} GPUs)" for job in trained.jobs)
        assert f"{len(trained.jobs)} training jobs on one fabric: {named}" in trained.terminal


def test_the_tables_of_where_time_goes(trained: Trained) -> None:
    pairs: Shown = []
    head, other = "time goes to", "what it would be with"
    shown, others = printed_beside(trained.terminal, head, other)
    cells, worlds = ({row[name]: row for row in found} for name, found in ((head, shown), (other, others)))
    large: set[str] = set()
    for job in trained.jobs:
        name, whole = job["job"], trained.took_ps(job["job"])
        spent, cases = trained.spent_ps(name), trained.cases(name)
        column = "time" if len(trained.jobs) == 1 else name
        labels = {SHORT.get(kind, WORDS[kind]) + (", exposed" if kind in EXPOSED else ""): ps
                  for kind, ps in spent.items()}  # fmt: skip
        large |= {label for label, ps in labels.items() if ps >= 0.001 * whole}
        assert {label for label in cells if cells[label][column] == "-"} == set(cells) - set(labels)
        pairs += [(f"{name} {label}", cells[label][column], labels[label]) for label in set(cells) & set(labels)]
        for case, ps in cases.items():
            text = worlds[case][column]
            assert text.startswith(">= ") == trained.is_bound(name, case)
            pairs.append((f"{name} {case}", text.removeprefix(">= "), ps))
            if len(trained.jobs) == 1:
                less, change = ps / whole - 1, worlds[case]["change"]
                assert abs(less) < 0.0005 if change == "the same" else is_shown(change, less)
    assert set(cells) == large
    assert set(worlds) == {case for job in trained.jobs for case in trained.cases(job["job"])}
    assert wrong(pairs) == []


def _falls(part: Element) -> list[dict[str, tuple[str, str]]]:
    return [
        {one.all("span")[0].text: (one.all("b")[0].text, one.all("em")[0].text) for one in chart.all(kind="fall")}
        for chart in part.all(kind="falls")
    ]


def typeset_rate(case: str) -> str:
    """The name of a what-if with a blank before the unit of its rate, if it has one."""
    return re.sub(r"(?<=\d)(?=[TGM]bps)", " ", case)


def test_the_waterfalls(trained: Trained) -> None:
    pairs: Shown = []
    for job, bars in zip(trained.jobs, _falls(section(trained.page, "time")), strict=True):
        name, whole = job["job"], trained.took_ps(job["job"])
        spent, cases = trained.spent_ps(name), trained.cases(name)
        assert set(bars) == {
            *(ON_PAGE[kind] for kind in spent),
            "an iteration",
            *(f"what if: {typeset_rate(case)}" for case in cases),
        }
        pairs += [(f"{name} {kind}", bars[ON_PAGE[kind]][0], ps) for kind, ps in spent.items()]
        pairs += [(f"{name} {kind} share", bars[ON_PAGE[kind]][1], ps / whole) for kind, ps in spent.items()]
        pairs.append((f"{name} iteration", bars["an iteration"][0], whole))
        for case, ps in cases.items():
            time, change = bars[f"what if: {typeset_rate(case)}"]
            pairs.append((f"{name} {case}", time, ps))
            if abs(ps / whole - 1) < 0.0005:
                assert change == "the same"
            else:
                pairs.append((f"{name} {case} change", change, ps / whole - 1))
    assert wrong(pairs) == []


def test_shares_are_of_the_iteration_also_where_something_would_take_longer(tmp_path: Path) -> None:
    run = training_run(tmp_path / "run", Plan())
    table = run.table("what_if").to_pylist()
    whole = run.table("jobs")["iteration_ps"][0].as_py()
    table[0]["iteration_ps"] = 2 * whole
    pq.write_table(pa.Table.from_pylist(table, run.table("what_if").schema), run.path / "what_if.parquet")
    (bars,) = _falls(section(run_page(Run(run.path)), "time"))
    spent = {kind: bars[name] for kind, name in ON_PAGE.items() if name in bars}
    assert len(spent) > 4
    assert wrong([(kind, share, value_of(time) / whole) for kind, (time, share) in spent.items()], 0.005) == []


def test_the_legend_of_the_pipeline_is_of_an_average_gpu(trained: Trained) -> None:
    gpus = sum(job["gpus"] for job in trained.jobs)
    wanted: defaultdict[str, float] = defaultdict(float)
    for job in trained.jobs:
        for kind, ps in trained.spent_ps(job["job"]).items():
            wanted[ON_PAGE[kind]] += ps * job["gpus"] / gpus
    whole = sum(wanted.values())
    legend = section(trained.page, "pipeline").all(kind="kinds")[0]
    pairs: Shown = []
    for one in legend.all("span"):
        time = one.all("b")[0].text
        name, _, share = one.text.partition(f" {time} ")
        pairs += [(name, time, wanted[name]), (f"{name} share", share, wanted.pop(name) / whole)]
    assert dict(wanted) == {}
    assert wrong(pairs) == []


def test_the_jobs_side_by_side(trained: Trained) -> None:
    if len(trained.jobs) == 1:
        assert 'id="jobs"' not in trained.page
        return
    shown = rows(section(trained.page, "jobs"), "job")
    pairs: Shown = []
    for job, row in zip(trained.jobs, shown, strict=True):
        assert [row["job"], row["model"], row["plan"]] == [job["job"], job["model"], job["plan"]]
        whole = trained.took_ps(job["job"])
        wanted = {
            "GPUs": job["gpus"], "iteration": whole, "tokens/s": job["tokens"] * PS / whole,
            "per GPU": job["tokens"] * PS / whole / job["gpus"], "MFU": job["mfu"], "exposed": job["exposed_share"],
            "bubble": job["bubble_share"], "alone": trained.cases(job["job"])["alone"],
        }  # fmt: skip
        assert set(row) == {"job", "model", "plan", *wanted}
        pairs += [(f"{job['job']} {name}", row[name], value) for name, value in wanted.items()]
    assert wrong(pairs) == []


class Network:
    """Flows under way between two instants at which one begins or ends: their number, their rate, their entropy."""

    def __init__(self, found: dict[str, NDArray[Any]]) -> None:
        kept = (found["flows"] > 0) & (found["end_ps"] > found["start_ps"]) & (found["size_bytes"] > 0)
        self.start, self.end = (found[name][kept].astype(float) for name in ("start_ps", "end_ps"))
        self.count = (found["flows"] * found["instances"])[kept].astype(float)
        self.size = found["size_bytes"][kept].astype(float)
        self.at = np.unique(np.concatenate([self.start, self.end]))
        self.flows, self.together, self.entropy = np.zeros((3, len(self.at) - 1))
        for place, instant in enumerate(self.at[:-1]):
            mine = (self.start <= instant) & (self.end > instant)
            each = self.size[mine] / (self.end - self.start)[mine]
            if mine.any():
                share = each / (each * self.count[mine]).sum()
                self.flows[place] = self.count[mine].sum()
                self.together[place] = (each * self.count[mine]).sum()
                self.entropy[place] = -(self.count[mine] * share * np.log2(share)).sum()

    def mean(self, value: NDArray[np.float64], low: float, high: float) -> float:
        """Integral of a value between two instants."""
        length = np.clip(np.minimum(self.at[1:], high) - np.maximum(self.at[:-1], low), 0, None)
        return float((value * length).sum())


def test_how_many_flows_the_network_carries(trained: Trained) -> None:
    found = Network(trained.activities)
    low, high = float(found.at[0]), float(found.at[-1])
    busy = found.mean((found.flows > 0).astype(float), low, high)
    total = found.mean(found.together, low, high)
    text = section(trained.page, "traffic").text
    whose = "the job has" if len(set(trained.activities["job"].tolist())) == 1 else "the jobs have"
    flows, entropy, size = told(
        text, f"While communicating, {whose} {{}} concurrent flows on the network (entropy {{}} bits). "
        "An average byte is part of a flow of {}."
    )  # fmt: skip
    pairs: Shown = [
        ("flows", flows, found.mean(found.flows, low, high) / busy),
        ("entropy", entropy, found.mean(found.entropy * found.together, low, high) / total),
        ("size", size, float((found.count * found.size**2).sum() / (found.count * found.size).sum())),
    ]
    both = [
        chart for chart in charts(section(trained.page, "traffic")) if chart.heading.startswith("flows on the network")
    ]
    last = float(trained.activities["end_ps"].max())
    for chart in both:
        ((name, texts),) = chart.lines.items()
        edges = np.linspace(0, last, len(texts) + 1).astype(np.int64)
        for place, (text, (a, b)) in enumerate(zip(texts, pairwise(edges.tolist()), strict=True)):
            carried = found.mean(found.together, a, b)
            value = found.mean(found.flows, a, b) / (b - a)
            if name != "flows":
                value = (
                    found.mean(found.entropy * found.together, a, b) / carried
                    if carried > 1e-6 * total / len(texts)
                    else 0.0
                )
            if name == "flows" or carried > 1e-6 * total / len(texts):
                pairs.append((f"{name} {place}", text, value))
    assert len(both) == 2
    assert wrong(pairs, 1e-6) == []


def arrow(name: str) -> str:
    return name.replace("->", " \u2192 ")


def test_the_tiers(trained: Trained) -> None:
    hold_tiers(trained.page, trained.tiers)


def test_the_tiers_where_the_engine_tells_their_entropy(tmp_path: Path) -> None:
    run = training_run(tmp_path / "run", Plan())
    table = run.table("tiers").to_pylist()
    last_ps = max(row["at_ps"] for row in table)
    for place, row in enumerate(table):
        row["entropy"] = None if row["entropy"] is None else 1.0 + place % 5
        row["bytes"] *= 1 + place % 3
        if row["at_ps"] == last_ps:  # a short last bin
            row["at_ps"] -= 3 * (row["at_ps"] - row["start_ps"]) // 4
    pq.write_table(pa.Table.from_pylist(table, run.table("tiers").schema), run.path / "tiers.parquet")
    hold_tiers(run_page(Run(run.path)), columns(run.path, "tiers"))


def hold_tiers(page: str, found: dict[str, NDArray[Any]]) -> None:
    part = section(page, "traffic")
    shown = {row["tier"]: row for row in rows(part, "tier")}
    drawn = {chart.heading: chart for chart in charts(part)}
    pairs: Shown = []
    names = {str(name) for name in found["tier"][found["bytes"] > 0]}
    assert set(shown) == {arrow(name) for name in names}
    entropy = np.array([np.nan if value is None else value for value in found["entropy"]], float)
    length = (found["at_ps"] - found["start_ps"]).astype(float)
    sent = found["bytes"].astype(float)
    for name in names:
        every = found["tier"] == name
        mine, told_ = every & (sent > 0), every & (sent > 0) & ~np.isnan(entropy)
        wanted = {
            "carried": sent[mine].sum(),
            "mean while busy": sent[mine].sum() / length[mine].sum() * 8 * PS,
            "most in a step": (sent / length)[mine].max() * 8 * PS,
        }
        if np.isfinite(entropy[sent > 0]).any():
            wanted["entropy, bits"] = (entropy * sent)[told_].sum() / sent[told_].sum() if told_.any() else None
        assert set(shown[arrow(name)]) == {"tier", *wanted}
        pairs += [(f"{name} {what}", shown[arrow(name)][what], value) for what, value in wanted.items()]
        rates = dict(zip(found["at_ps"][every].tolist(), (sent * 8 * PS / length)[every].tolist(), strict=True))
        chart = drawn[f"{arrow(name)} all links together"]
        edges = sorted({0.0, *found["start_ps"][every].tolist(), *found["at_ps"][every].tolist()})[1:]
        until = [text.removeprefix("until ") for text in chart.until]
        (texts,) = chart.lines.values()
        pairs += [(f"{name} until", text, edge) for text, edge in zip(until, edges, strict=True)]
        pairs += [(f"{name} {edge}", text, rates.get(edge, 0.0)) for text, edge in zip(texts, edges, strict=True)]
    assert wrong(pairs) == []


def weighted(values: NDArray[np.float64], weights: NDArray[np.float64], share: float) -> float:
    """The smallest value that this share of the weights does not exceed."""
    order = np.argsort(values)
    at = np.searchsorted(np.cumsum(weights[order]), share * weights.sum() * (1 - 1e-12))
    return float(values[order][at])


def test_the_table_of_communication(trained: Trained) -> None:
    hold_communication(trained.page, trained.activities)


def test_the_table_of_communication_where_alike_calls_differ_in_everything(tmp_path: Path) -> None:
    run = training_run(tmp_path / "run", Plan(), Plan(job="second", stages=2))
    table = run.table("activities").to_pylist()
    for place, row in enumerate(table):
        row["instances"] = 1 + place * 7 % 5
        row["size_bytes"] = int(row["size_bytes"] * (1 + place % 4))
        row["posted_ps"] = max(row["start_ps"] - place % 3 * 10**9, 0)
        row["ranks"] += place % 2
    pq.write_table(pa.Table.from_pylist(table, run.table("activities").schema), run.path / "activities.parquet")
    hold_communication(run_page(Run(run.path)), columns(run.path, "activities"))


def hold_communication(page: str, found: dict[str, NDArray[Any]]) -> None:
    shown = rows(section(page, "traffic"), "communication")
    several = len(set(found["job"])) > 1
    groups = sorted(set(zip(found["job"], found["kind"], found["operation"], strict=True)))
    assert len(shown) == len(groups)
    pairs: Shown = []
    for job, kind, operation in groups:
        mine = (found["job"] == job) & (found["kind"] == kind) & (found["operation"] == operation)
        (row,) = (
            row
            for row in shown
            if row["communication"] == (f"{job}: {kind}" if several else kind) and row["operation"] == operation
        )
        often = found["instances"][mine].astype(float)
        length = (found["end_ps"] - found["start_ps"])[mine].astype(float)
        late = (found["start_ps"] - found["posted_ps"])[mine].astype(float)
        wanted = {
            "how often": often.sum(), "ranks": found["ranks"][mine].max(), "flows of one": found["flows"][mine].max(),
            "size of one": (found["size_bytes"][mine] * often).sum() / often.sum(),
            "time p50": weighted(length, often, 0.5), "p99": weighted(length, often, 0.99),
            "waited for members": (late * often).sum() / often.sum(),
        }  # fmt: skip
        assert set(row) == {"communication", "operation", *wanted}
        pairs += [(f"{job} {kind} {operation} {name}", row[name], float(value)) for name, value in wanted.items()]
    assert wrong(pairs) == []


def test_the_hottest_links(trained: Trained) -> None:
    links, nodes = trained.links, columns(trained.run.path, "nodes")
    kinds = np.array(
        [
            f"{nodes['role'][int(a)]} \u2192 {nodes['role'][int(b)]}"
            for a, b in zip(links["node"], links["peer"], strict=True)
        ]
    )
    used = links["utilisation"].astype(float)
    pairs: Shown = []
    for row in rows(section(trained.page, "traffic"), "links"):
        mine = (kinds == row["links"]) & (links["bytes"] > 0)
        assert used[list(links["name"]).index(row["hottest"])] == used[mine].max()
        pairs += [
            ("in use", row["in use"], float(used[mine].max())),
            ("mean", row["mean of all in use"], float(used[mine].mean())),
            ("how many", row["how many in use"], int(mine.sum())),
            ("rate", row["rate"], float(links["rate_bps"][mine][0])),
        ]  # fmt: skip
    text = " ".join(trained.terminal.split())
    name, others, share = told(text, "The busiest link is {w} and {} like it, in use {} of the time.")
    top = used.max()
    assert used[list(links["name"]).index(name)] == top
    assert 0 < int(others) <= int((used >= 0.99 * top).sum()) - 1  # alike to three digits
    pairs.append(("hottest", share, float(top)))
    assert wrong(pairs) == []


def test_the_goodput_over_weeks(trained: Trained) -> None:
    known = {name: number["value"] for name, number in trained.numbers.items()}
    text = " ".join(trained.terminal.split())
    every, saved, share, rate, low, high = told(
        text, "a failure interrupts training every {}; with a checkpoint every {} of training, "
        "{} of the time is useful, {} tokens/s ({} to {} in nine of ten runs)."
    )  # fmt: skip
    pairs: Shown = [
        ("interrupted", every, known["interruption_every_s"] * PS), ("saved", saved, known["checkpoint_every_s"] * PS),
        ("share", share, known["effective_share"]), ("rate", rate, known["effective_tokens_per_s"]),
        ("p5", low, known["effective_share_p5"]), ("p95", high, known["effective_share_p95"]),
    ]  # fmt: skip
    names = {"recovery_share": "detection and restart", "lost_share": "lost work", "checkpoint_share": "checkpoints",
             "no_spare_share": "waiting for a spare server"}  # fmt: skip
    rest = text.partition("The rest: ")[2]
    pairs += [(name, told(rest, f"{words} {{}}")[0], known[name]) for name, words in names.items() if known[name]]
    keys = {one.text.rpartition(" %")[0] for one in section(trained.page, "goodput").all(kind="kinds")[0].all("span")}
    names["effective_share"] = "training that counts"
    for name, words in names.items():
        (key,) = (one for one in keys if one.startswith(words))
        pairs.append((f"page {name}", f"{key.removeprefix(words).strip()} %", known[name]))
    if trained.run.path.name == "alone":  # fails often enough that runs differ
        assert known["effective_share_p5"] < 0.995 * known["effective_share_p95"]
    # what is left of an iteration without its checkpoints is what counts between two of them
    job = trained.jobs[0]["job"]
    pure_ps = trained.took_ps(job) - trained.spent_ps(job)["checkpoint"]
    assert known["checkpoint_every_s"] * PS == pytest.approx(pure_ps * {"large": 2, "training": 1}[job], rel=0.02)
    assert wrong(pairs) == []


def test_the_tiles(trained: Trained) -> None:
    shown = {one.all("span")[0].text: one.all("b")[0].text for one in section(trained.page, "answer").all(kind="tile")}
    job = trained.jobs[0]
    whole = trained.took_ps(job["job"])
    wanted = {
        "time of an iteration": whole, "model FLOP utilisation": job["mfu"],
        "tokens per second": job["tokens"] * PS / whole,
        "exposed communication": job["exposed_share"], "bubble": job["bubble_share"],
        "memory of the fullest GPU": job["memory_bytes"],
        "busiest link in use": float(trained.links["utilisation"].max()),
    }  # fmt: skip
    part = section(trained.page, "answer")
    words = "; ".join([*three_lines(part).values(), prose(part)])
    in_words = {name for name, value in wanted.items() if is_told(words, value)}
    assert in_words >= {"time of an iteration", "model FLOP utilisation", "tokens per second", "exposed communication"}
    assert set(shown) == set(wanted) - in_words
    assert wrong([(name, text, wanted[name]) for name, text in shown.items()]) == []
    assert trained.numbers["memory_bytes"]["value"] == wanted["memory of the fullest GPU"]
