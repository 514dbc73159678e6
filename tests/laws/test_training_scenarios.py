"""Random training scenarios, from the file to the run folder: a clear ConfigError, or an iteration that adds up.

What adds up is read from the folder, as a user would: the times of every rank fill the iteration, nothing takes less
than no time, an infinitely fast network is never slower, no link carries more than it can.
Leaves out: scenarios without training (`test_fuzz_scenarios.py`), and whether the times are right (`test_training_*`).
"""

import math
import random
import time
from collections import Counter
from pathlib import Path
from typing import Any, Final, Literal
from zlib import crc32

import numpy as np
import pytest
import yaml
from helpers.cases import Saw, case_count
from helpers.kept_seeds import kept_first
from helpers.road import differences, plan_of_run

from weftwork.base.errors import ConfigError
from weftwork.hardware.catalogue import GPUS, SERVERS
from weftwork.store.runs import Run
from weftwork.study.prepare.prepare import prepare, read_scenario
from weftwork.study.prepare.prepared import Prepared
from weftwork.study.record.run import run_scenario
from weftwork.study.run.execute import Progress
from weftwork.workload.models.catalogue import MODELS
from weftwork.workload.models.software import SOFTWARE

SEEDS: Final = range(15, 15 + case_count(plain=15, deep=75))
PREPARED_SEEDS: Final = range(165, 165 + case_count(plain=15, deep=30))
PATIENCE_S: Final = 120  # the slowest of hundreds took a few seconds; a machine may be busy
ROUNDING: Final = 1e-6
MEANS: Final = 2  # picoseconds by which a mean over ranks may be off


def some(draw: random.Random, options: dict[str, Any], share: float = 0.5) -> dict[str, Any]:
    """Some of the keys, each with one of its values."""
    return {key: draw.choice(values) for key, values in options.items() if draw.random() < share}


def fabric_of(draw: random.Random) -> dict[str, Any]:
    node = draw.choice(["dgx-a100", "dgx-h100", "dgx-b200", "p5", "gb200-nvl72", "plain", draw.choice(list(SERVERS))])
    each = int(SERVERS[node].figures["gpus"].value) if "gpus" in SERVERS[node].figures else 1
    gpus = each * draw.choice([1, 2] if each > 8 else [1, 2, 4, 8])
    topology = draw.choice(["rail-optimized", "rail-optimized", "fat-tree", "leaf-spine"])
    fabric: dict[str, Any] = {"topology": topology, "node": node, "gpus": gpus, "switch": "plain"}
    fabric["radix"] = draw.choice([32, 64, 256] if each <= 8 else [64, 256, 1024])
    if topology == "rail-optimized":
        fabric |= some(draw, {"topology": ["rail-only"], "nodes_per_pod": [1, 2]}, 0.3)
        if draw.random() < 0.15 or node == "p5":
            fabric["planes"] = 2
    if fabric["topology"] not in {"fat-tree", "rail-only"}:
        fabric |= some(draw, {"oversubscription": [1, 2, 4]}, 0.2)
    if draw.random() < 0.2:
        del fabric["radix"]
        fabric["switch"] = draw.choice(["tomahawk-5", "spectrum-4"])
    return fabric


def training_of(draw: random.Random, fabric: dict[str, Any], most: int) -> dict[str, Any]:
    """A job that is likely to fit ``most`` GPUs, and by chance does not."""
    names = list(MODELS)
    small = [name for name in names if any(size in name for size in ("7b", "8b", "1.7b", "3.6b", "20b", "13b", "nano"))]
    name = draw.choice(small if draw.random() < 0.7 else names)
    mixtures = ("mixtral", "deepseek", "-a3b", "-a22b", "gpt-oss", "nemotron-3", "grok")
    has_experts = any(part in name for part in mixtures)
    wild = draw.random() < 0.1  # nothing has to fit
    fits = [degree for degree in (1, 2, 3, 4, 8) if wild or most % degree == 0]
    tensor = draw.choice(fits)
    pipeline = draw.choice([degree for degree in fits if wild or most % (tensor * degree) == 0])
    context = draw.choice([degree for degree in fits[:3] if wild or most % (tensor * pipeline * degree) == 0])
    copies = max(1, most // (tensor * pipeline * context))
    micro = draw.choice([1, 1, 2, 4])
    passes = draw.choice([1, 2, 4, 8, 16])
    section: dict[str, Any] = {
        "model": name,
        "tensor": tensor,
        "pipeline": pipeline,
        "context": context,
        "micro_batch": micro,
        "global_batch": copies * micro * passes,
        **some(
            draw,
            {
                "schedule": ["gpipe", "1f1b", "zb-h1", "dualpipe"],
                "sequence": [128, 1024, 4096, 100_000],
                "phase": ["long-context", "fine-tuning-lora", "pre-training"],
                "order": ["tp-cp-pp-dp"],
                "sequence_parallel": [has_experts],
                "zero": [0, 1, 2, 3],
                "recompute": ["none", "selective", "full"],
                "offloaded_layers": [1, 4, 100],
                "gradients": ["fp32"],
                "placement": ["packed", "rails", "pods", "random"],
                "software": list(SOFTWARE),
                "iterations": [2, 3],
                "loading": ["10ms"],
                "balanced_ends": [True],
                "checkpoint": [{"every": 1}, {"every": 2, "rate": "1Gbps"}, {"every": 1, "asynchronous": True}],
                "overlap": [{"tensor": 1, "data": 1, "pipeline": 1, "expert": 1, "context": 1}, {"data": 0.5}],
            },
            0.3,
        ),
    }
    section |= some(draw, {"precision": ["bf16", "fp8", "mxfp8", "nvfp4"]}, 0.15)
    if has_experts or wild:
        section |= some(draw, {"expert": fits, "expert_tensor": [1, 2]}, 0.4)
    if (pipeline > 1 and section.get("schedule", "1f1b") == "1f1b") or wild:
        section |= some(draw, {"virtual_stages": [1, 2, 4]}, 0.4)
    if draw.random() < 0.85:
        section["memory"] = "100TB"  # else most are refused for their memory
    if section.get("zero") == 3:
        section |= some(draw, {"prefetch": [False]})
    if fabric["node"] == "plain" and not wild:
        section["gpu"] = draw.choice(list(GPUS))
    return section


def faults_of(draw: random.Random) -> list[dict[str, Any]]:
    found = []
    for _ in range(draw.choice([1, 1, 2])):
        place = draw.choice(
            [
                {"link": draw.choice(["host0-leaf0", "host1-leaf0", "leaf0-spine0", "leaf1-spine0"])},
                {"nic": draw.choice(["host0/nic0", "host1/nic1", "host0"])},
                {"switch": draw.choice(["leaf0", "spine0"])},
            ]
        )
        events: list[dict[str, Any]] = [{"event": "down"}]
        events += [{"event": "degrade", "fraction": draw.choice([0.001, 0.3, 1])}] if "link" in place else []
        events += [{"event": "slow", "fraction": draw.choice([0.001, 0.3])}] if "nic" in place else []
        fault = {"at": draw.choice(["0ps", "1ms", "300ms", "2s"]), **place, **draw.choice(events)}
        found.append(fault | some(draw, {"for": ["1ns", "10ms", "1s"]}, 0.6))
    return found


def scenario_of(seed: int) -> dict[str, Any]:
    """Draw a scenario; the same for the same seed."""
    draw = random.Random(seed)
    fabric = fabric_of(draw)
    gpus = fabric["gpus"]
    tree: dict[str, Any] = {"schema": 3, "name": "fuzz", "fabric": fabric}
    if draw.random() < 0.25 and gpus >= 4:
        parts = [gpus // 2, gpus // 4]
        tree["jobs"] = [training_of(draw, fabric, part) | {"gpus": part} for part in parts]
    else:
        tree["training"] = training_of(draw, fabric, gpus)
    if draw.random() < 0.25:
        tree["stragglers"] = [{"gpu": draw.randrange(gpus), "factor": draw.choice([1, 1.5, 10])}]
    if draw.random() < 0.3:
        tree["faults"] = faults_of(draw)
    if draw.random() < 0.2:
        tree["reliability"] = {"runs": 3, **some(draw, {"gpu": [0, 5, 1e5], "spares": [0, 1], "days": [1, 9]})}
    if draw.random() < 0.15:
        tree["engine"] = {"until": draw.choice(["1us", "50ms", "3s"])}
    kinds = draw.choice(["ecmp", "ecmp", "spray", "destination-modulo"])
    if kinds != "ecmp":
        tree["transport"] = {"port_selection": kinds, "reorder_tolerant": True}
    return tree


def patience(begin_s: float) -> Any:
    """Fail where a run goes on and on."""

    def told(now: Progress) -> None:
        assert time.monotonic() - begin_s < PATIENCE_S, f"still running at {now.simulated_ps:,} ps"

    return told


def worlds_of(path: Path) -> Literal["auto", "none"]:
    """Every fourth scenario asks for other worlds too, which take as long as the run itself each."""
    return "none" if crc32(path.read_bytes()) % 4 else "auto"


def run_or_refuse(tree: dict[str, Any], folder: Path) -> Run | ConfigError:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "fuzz.yaml"
    path.write_text(yaml.dump(tree), encoding="utf-8")
    try:
        return run_scenario(path, out=folder / "run", what_if=worlds_of(path), progress=patience(time.monotonic()))
    except ConfigError as error:
        refused = error
    assert refused.mistakes
    assert refused.source == str(path), refused
    assert all(mistake.path and mistake.text for mistake in refused.mistakes)
    assert all(mistake.line is not None for mistake in refused.mistakes), str(refused)
    assert not (folder / "run").exists()
    return refused


def finite(table: Any, text: str) -> None:
    """No number of a table is negative or not a number."""
    for name in table.column_names:
        column = table[name].drop_null()
        values = column.to_numpy()
        if values.dtype.kind in "if":
            assert np.isfinite(values).all(), f"{text}.{name}"
            assert (values >= (-1 if values.dtype.kind == "i" else 0)).all(), f"{text}.{name}"


def check_sums(run: Run, tree: dict[str, Any]) -> None:
    assert run.status in {"complete", "stopped", "stuck"}
    assert run.status != "stuck" or tree.get("faults"), "ranks wait for each other without a fault"
    for name in ("jobs", "segments", "activities", "links", "tiers", "what_if"):
        finite(run.table(name), name)
    assert all(q["value"] is None or math.isfinite(q["value"]) for q in run.summary.values())
    links = run.links["utilisation"].to_numpy(zero_copy_only=False)
    assert links.max(initial=0) <= 1 + ROUNDING
    jobs = {row["job"]: row for row in run.table("jobs").to_pylist()}
    for job in jobs.values():
        check_job(run, job, iterations(tree, job["job"]))
    for row in run.table("what_if").to_pylist():
        whole = jobs[row["job"]]["iteration_ps"]
        is_bound = row["change"] in {"infinite network", "no bubble", "perfect overlap"}
        assert not is_bound or row["iteration_ps"] <= whole * (1 + ROUNDING) + MEANS, row | {"whole": whole}
        assert row["iteration_ps"] > 0
    if run.status == "complete":
        assert all(job["iteration_ps"] is not None for job in jobs.values())


def iterations(tree: dict[str, Any], name: str) -> int:
    sections = tree.get("jobs") or [tree["training"]]
    place = int(name.removeprefix("job")) if "jobs" in tree else 0
    return int(sections[place].get("iterations", 1))


def check_job(run: Run, job: dict[str, Any], iterations: int) -> None:
    segments = run.query(f"select * from segments where job = '{job['job']}'").to_pydict()  # noqa: S608
    if job["iteration_ps"] is None:
        return
    assert job["iteration_ps"] > 0
    assert job["mfu"] is None or 0 < job["mfu"] < 1
    told = job["compute_ps"] + job["exposed_ps"] + job["bubble_ps"]
    assert told <= job["iteration_ps"] + MEANS
    each: Counter[int] = Counter()
    end: dict[int, int] = {}
    for rank, start_ps, end_ps in zip(segments["rank"], segments["start_ps"], segments["end_ps"], strict=True):
        assert start_ps <= end_ps
        each[rank] += end_ps - start_ps
        assert start_ps >= end.get(rank, 0), "segments of a rank lie over each other"
        end[rank] = end_ps
    if run.status == "complete":
        whole = job["iteration_ps"] * iterations
        assert all(abs(total - whole) <= iterations for total in each.values()), (each, whole)


def test_a_clear_error_or_an_iteration_that_adds_up(tmp_path: Path, saw: Saw) -> None:
    seen: Counter[str] = Counter()
    for seed in kept_first("test_training_scenarios", SEEDS):
        tree = scenario_of(seed)
        run = run_or_refuse(tree, tmp_path / str(seed))
        if isinstance(run, Run):
            check_sums(run, tree)
        seen["refused" if isinstance(run, ConfigError) else run.status] += 1
    saw(len(SEEDS), ", ".join(f"{name}: {count}" for name, count in sorted(seen.items())))
    assert seen["refused"] >= 2
    assert seen["complete"] >= len(SEEDS) // 4


def prepared_or_refused(path: Path) -> Prepared | str:
    try:
        return prepare(read_scenario(path))
    except ConfigError as refused:
        return str(refused)


def test_what_is_prepared_is_what_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, saw: Saw) -> None:
    path, seen = tmp_path / "fuzz.yaml", 0
    for seed in kept_first("test_training_scenarios", PREPARED_SEEDS):
        path.write_text(yaml.dump(scenario_of(seed)), encoding="utf-8")
        found = prepared_or_refused(path)
        if isinstance(found, str):
            with pytest.raises(ConfigError) as again:
                run_scenario(path, out=tmp_path / "run")
            assert str(again.value) == found
        else:
            assert differences(found.engine_input, plan_of_run(path, monkeypatch)) == []
            seen += 1
    saw(len(PREPARED_SEEDS), f"{seen} run")
    assert seen >= len(PREPARED_SEEDS) // 4
