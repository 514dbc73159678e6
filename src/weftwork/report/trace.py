"""A training run as a trace for Perfetto and Chrome's tracing.

It shows stages, communication, tiers and pipeline sends.

Source: Trace Event Format, Google, the JSON object format: complete events (X), nestable asynchronous ones (b, e),
counters (C), flows (s, f) and metadata (M); instants are microseconds.
A process is a stage of a job and its threads are ranks, with passes and inside them pieces; a process of its own has
the communication of a job, another the rates of the tiers. Events come in the order of time.
Leaves out: runs of several seeds, whose times have nothing in common, and runs without training.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final, TextIO

import numpy as np

from weftwork.base.errors import ConfigError, Mistake
from weftwork.report.pipeline import KINDS, PASSES, is_training, read_pipeline
from weftwork.report.training_answer import jobs_of
from weftwork.spec.time_kinds import TIME_KINDS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from weftwork.report.pipeline import PipelineRow
    from weftwork.store.runs import Run

__all__ = ["trace_events", "write_trace"]

_PS_PER_US: Final = 1e6
_SORT: Final = {"M": 0, "e": 1, "C": 2, "X": 3, "b": 4, "s": 5, "f": 6}  # of events at one instant: ends come first
_NONE: Final = -1
_WAITS: Final = (KINDS.index("bubble"), KINDS.index("pipeline"))  # what a block of waiting for a neighbour is made of


def write_trace(run: Run, out: TextIO) -> int:
    """Write the trace as a JSON object with one event per line.

    Parameters
    ----------
    run : of training jobs, one seed
    out : where to

    Returns
    -------
    how many events there are

    Raises
    ------
    ConfigError : the run has several seeds, or nothing is trained in it
    """
    events = trace_events(run)
    about = {**run.about, "weftwork": str(run.provenance["weftwork"]), "run": str(run.path)}
    out.write(f'{{"displayTimeUnit": "ns", "otherData": {json.dumps(about)}, "traceEvents": [\n')
    out.writelines(f"{',' if place else ''}{json.dumps(event)}\n" for place, event in enumerate(events))
    out.write("]}\n")
    return len(events)


def trace_events(run: Run) -> list[dict[str, Any]]:
    """Make the events, by their instants.

    Raises
    ------
    ConfigError : the run has several seeds, or nothing is trained in it
    """
    text = ""
    if run.seeds:
        text = f"holds several seeds; a trace is of one run, such as {run.seeds[0].path}"
    elif not is_training(run):
        text = "trains nothing; a trace shows the stages of training jobs"
    if text:
        raise ConfigError(str(run.path), [Mistake(path="run", text=text)])
    pipeline = read_pipeline(run, most_rows=None, most_pieces=None)
    rows = pipeline.rows if pipeline is not None else ()
    stages = list(dict.fromkeys((row.job, row.stage) for row in rows))
    pids = {stage: number for number, stage in enumerate(stages, 1)}
    jobs = [job["job"] for job in jobs_of(run)]
    several = len(jobs) > 1
    found: list[dict[str, Any]] = []
    for (job, stage), pid in pids.items():
        found += _named(pid, f"{job} stage {stage}" if several else f"stage {stage}")
    for row in rows:
        pid = pids[row.job, row.stage]
        same = f" and {row.ranks - 1:,} alike" if row.ranks > 1 else ""
        found.append(_meta("thread_name", pid, row.rank, f"rank {row.rank}{same}"))
        found += _of_row(row, pid)
    found += _sends(rows, pids)
    for number, job in enumerate(jobs, len(pids) + 1):
        found += _named(number, f"{job} communication" if several else "communication")
        found += _communication(run, job, number)
    found += _rates(run, len(pids) + len(jobs) + 1)
    return sorted(found, key=lambda event: (event["ph"] != "M", event.get("ts", 0), _SORT[event["ph"]]))


def _meta(name: str, pid: int, tid: int, text: str) -> dict[str, Any]:
    return {"ph": "M", "name": name, "pid": pid, "tid": tid, "args": {"name": text}}


def _named(pid: int, name: str) -> list[dict[str, Any]]:
    order = {"ph": "M", "name": "process_sort_index", "pid": pid, "tid": 0, "args": {"sort_index": pid}}
    return [_meta("process_name", pid, 0, name), order]


def _us(at_ps: float) -> float:
    return at_ps / _PS_PER_US


def _of_row(row: PipelineRow, pid: int) -> Iterator[dict[str, Any]]:
    """Passes and their pieces.

    If two begin together, the longer comes first.
    """
    first = np.flatnonzero(np.diff(row.pieces["block"], prepend=-1))
    last = np.append(first[1:], len(row.pieces)) - 1
    for place, block in enumerate(row.blocks):
        pieces = row.pieces[first[place] : last[place] + 1]
        batch, virtual_stage, which = (int(block[name]) for name in ("micro_batch", "virtual_stage", "pass"))
        common = {"ph": "X", "pid": pid, "tid": row.rank}
        args = {
            **({"micro batch": batch} if batch != _NONE else {}),
            **({"virtual_stage": virtual_stage} if virtual_stage != _NONE else {}),
            "pass": PASSES[which],
        }
        if len(pieces) > 1:
            start, end = int(pieces["start_ps"][0]), int(pieces["end_ps"][-1])
            name = f"{PASSES[which] or 'other'}{f' {batch}' if batch != _NONE else ''}"
            name = f"before {name}" if pieces["kind"][0] in _WAITS else name
            yield {**common, "name": name, "cat": "pass", "ts": _us(start), "dur": _us(end - start), "args": args}
        for piece in pieces:
            start, end, kind = int(piece["start_ps"]), int(piece["end_ps"]), KINDS[int(piece["kind"])]
            yield {
                **common, "name": TIME_KINDS[kind].short, "cat": kind, "ts": _us(start), "dur": _us(end - start),
                "args": args,
            }  # fmt: skip


def _sends(rows: Iterable[PipelineRow], pids: dict[tuple[str, int], int]) -> Iterator[dict[str, Any]]:
    """Arrows from a pass to its micro batch's next pass.

    They lead to the next stage and back; from the last stage they go to the first stage's next virtual stage.

    Micro batches that pass virtual stage 1 alone go up the pipeline (DualPipe).
    """
    passes: dict[tuple[str, int, int, int, int], tuple[int, int, int]] = {}  # to rank, begin and last piece's middle
    last_stage: dict[str, int] = {}
    for row in rows:
        last_stage[row.job] = max(last_stage.get(row.job, 0), row.stage)
        first = np.flatnonzero(np.diff(row.pieces["block"], prepend=-1))
        last = np.append(first[1:], len(row.pieces)) - 1
        waits = np.isin(row.pieces["kind"][first], _WAITS)
        for place in np.flatnonzero(~waits & (row.blocks["micro_batch"] != _NONE)).tolist():
            block = row.blocks[place]
            key = (row.job, row.stage, int(block["micro_batch"]), int(block["virtual_stage"]), int(block["pass"]))
            end = row.pieces[last[place]]
            middle = (int(end["start_ps"]) + int(end["end_ps"])) // 2
            begin = passes[key][1] if key in passes else int(row.pieces["start_ps"][first[place]])
            if key not in passes or passes[key][0] == row.rank:  # one arrow, though several ranks did it
                passes[key] = (row.rank, begin, middle)
    starts_down = {(job, batch) for job, _, batch, virtual_stage, _ in passes if virtual_stage == 0}
    number = 0
    for (job, stage, batch, virtual_stage, which), (rank, _, middle) in passes.items():
        step = {"forward": 1, "backward": -1}.get(PASSES[which])
        if step is None:
            continue
        if (job, batch) not in starts_down:
            step = -step
        there = stage + step
        if not 0 <= there <= last_stage[job]:
            there, next_virtual_stage = (0 if step > 0 else last_stage[job]), virtual_stage + step
        else:
            next_virtual_stage = virtual_stage
        target = passes.get((job, there, batch, next_virtual_stage, which))
        if target is None or target[1] < middle:
            continue
        number += 1
        arrow = {"name": "pipeline send", "cat": "pipeline", "id": number}
        yield {**arrow, "ph": "s", "pid": pids[job, stage], "tid": rank, "ts": _us(middle)}
        yield {**arrow, "ph": "f", "bp": "e", "pid": pids[job, there], "tid": target[0], "ts": _us(target[1])}


def _communication(run: Run, job: str, pid: int) -> Iterator[dict[str, Any]]:
    rows = [row for row in run.table("activities").to_pylist() if row["job"] == job]
    for number, row in enumerate(rows):
        common = {"pid": pid, "tid": 0, "cat": row["kind"], "id": f"{pid}-{number}",
                  "name": f"{row['kind']} {row['operation']}"}  # fmt: skip
        args = {name: row[name] for name in ("ranks", "instances", "flows", "size_bytes")}
        waited = {"waited_us": _us(row["start_ps"] - row["posted_ps"])}
        yield {**common, "ph": "b", "ts": _us(row["start_ps"]), "args": {**args, **waited}}
        yield {**common, "ph": "e", "ts": _us(row["end_ps"])}


def _rates(run: Run, pid: int) -> list[dict[str, Any]]:
    rows = run.table("tiers").to_pylist()
    if not rows:
        return []
    found = _named(pid, "network")
    for row in rows:
        length = max(row["at_ps"] - row["start_ps"], 1)
        for name, value in (("Gb/s", row["bytes"] * 8e3 / length), ("flows", row["flows"])):
            found.append({"ph": "C", "pid": pid, "tid": 0, "name": f"{row['tier']}, {name}", "cat": "tier",
                          "ts": _us(row["start_ps"]), "args": {name: value}})  # fmt: skip
    return found
