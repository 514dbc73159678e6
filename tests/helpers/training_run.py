"""A run folder of a training job, made by hand: 1F1B with known durations, so that its sums are known too.

Times are those of a schedule that is worked out here, not of an engine; everything a page shows of it can be checked.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
from helpers.run_folders import ANSWER, PROVENANCE

from weftwork.base.caveat import Caveat, caveats_by_subject, caveats_to_json
from weftwork.report.pipeline import KINDS
from weftwork.spec.port_counts import PORT_COUNTS
from weftwork.spec.result import TABLES, Quantity
from weftwork.spec.time_kinds import TIME_KINDS
from weftwork.store.runs import Run, write_run

MS = 10**9
Segment = tuple[int, int, str, str, int, int]  # stage, micro batch, pass, kind, start, end
_TYPES = {"int64": pa.int64(), "float64": pa.float64(), "string": pa.string()}


@dataclass(frozen=True, kw_only=True)
class Plan:
    """Durations in ps of what one stage does for one micro batch, layer by layer."""

    stages: int = 4
    micro_batches: int = 8
    layers: int = 2
    forward_ps: int = 10 * MS
    tensor_ps: int = 2 * MS
    send_ps: int = MS
    data_ps: int = 15 * MS
    optimizer_ps: int = 5 * MS
    slow: Mapping[int, float] = field(default_factory=dict)  # stage to factor
    job: str = "pretrain"


def one_f_one_b(stage: int, stages: int, micro_batches: int) -> list[tuple[str, int]]:
    """Order of the passes of a stage (Narayanan et al., SC 2021, figure 4)."""
    warm = min(stages - 1 - stage, micro_batches)
    order = [("forward", i) for i in range(warm)]
    for i in range(micro_batches - warm):
        order += [("forward", warm + i), ("backward", i)]
    return order + [("backward", micro_batches - warm + i) for i in range(warm)]


def segments_of(plan: Plan) -> list[Segment]:
    """Work the schedule out: a pass begins when its stage is free and its neighbour has sent."""
    done: dict[tuple[str, int, int], int] = {}
    orders = [one_f_one_b(stage, plan.stages, plan.micro_batches) for stage in range(plan.stages)]
    place, free = [0] * plan.stages, [0] * plan.stages
    found: list[Segment] = []

    def step(stage: int) -> bool:
        if place[stage] == len(orders[stage]):
            return False
        which, batch = orders[stage][place[stage]]
        before = stage - 1 if which == "forward" else stage + 1
        ready = 0
        if 0 <= before < plan.stages:
            if (which, batch, before) not in done:
                return False
            ready = done[which, batch, before] + plan.send_ps
        now = free[stage]
        if ready > now:
            transfer = max(now, ready - plan.send_ps)
            found.extend(
                (stage, batch, which, kind, a, b)
                for kind, a, b in (("bubble", now, transfer), ("pipeline", transfer, ready))
                if b > a
            )
            now = ready
        times = 1 if which == "forward" else 2
        for _ in range(plan.layers):
            own = round(times * plan.forward_ps * plan.slow.get(stage, 1.0))
            for kind, length in (("compute", own), ("tensor", times * plan.tensor_ps)):
                found.append((stage, batch, which, kind, now, now + length))
                now += length
        done[which, batch, stage] = free[stage] = now
        place[stage] += 1
        return True

    while sum(step(stage) for stage in range(plan.stages)):
        pass
    last = max(free)
    for stage in range(plan.stages):
        rest = (("skew", free[stage], last), ("data", last, last + plan.data_ps))
        found += [(stage, -1, "update", kind, a, b) for kind, a, b in rest if b > a]
        begin = last + plan.data_ps
        found.append((stage, -1, "update", "optimizer", begin, begin + plan.optimizer_ps))
    return sorted(found, key=lambda one: (one[0], one[4]))


def table(name: str, rows: Sequence[Mapping[str, Any]]) -> pa.Table:
    """Rows as the table of that name; what they leave out is null."""
    fields = [pa.field(c.name, _TYPES[c.type], nullable=c.optional) for c in TABLES[name]]
    return pa.Table.from_pylist([dict(row) for row in rows], schema=pa.schema(fields))


def _job(plan: Plan, segments: Sequence[Segment], gpus: int) -> dict[str, Any]:
    iteration = max(one[5] for one in segments)
    spent: dict[str, int] = {}
    for _, _, _, kind, start, end in segments:
        spent[kind] = spent.get(kind, 0) + end - start
    mean = {kind: total // plan.stages for kind, total in spent.items()}
    exposed = sum(mean.get(kind, 0) for kind in ("tensor", "pipeline", "data"))
    tokens = plan.micro_batches * 8 * 8192
    flops = 6 * 70e9 * tokens
    return {
        "job": plan.job, "model": "llama-3-70b", "plan": f"TP 8, PP {plan.stages}, DP 8", "gpus": gpus, "start_ps": 0,
        "iteration_ps": iteration, "tokens": tokens, "tokens_per_s": tokens / iteration * 1e12,
        "tokens_per_s_per_gpu": tokens / iteration * 1e12 / gpus, "model_flops": flops, "mfu": 0.41,
        "compute_ps": mean["compute"], "exposed_ps": exposed, "bubble_ps": mean["bubble"],
        "exposed_share": exposed / iteration, "bubble_share": mean["bubble"] / iteration, "memory_bytes": 61 * 10**9,
    }  # fmt: skip


def _spent(plan: Plan, segments: Sequence[Segment], lead: str) -> dict[str, Quantity]:
    """Time of an average rank by kind; every stage has as many ranks."""
    total_ps = dict.fromkeys(KINDS, 0)
    for _, _, which, kind, start, end in segments:
        total_ps[which if kind == "compute" else kind] += end - start
    return {
        f"{lead}{TIME_KINDS[kind].number}_ps": Quantity(value=ps / plan.stages, unit="ps", text=f"Time of {kind}.")
        for kind, ps in total_ps.items()
    }


def _activities(plan: Plan, segments: Sequence[Segment]) -> list[dict[str, Any]]:
    operation = {"tensor": ("all-reduce", 8, 0, 67 * 10**6), "pipeline": ("send", 2, 1, 16 * 10**6),
                 "data": ("reduce-scatter", 8, 8, 4 * 10**9)}  # fmt: skip
    return [
        {"job": plan.job, "kind": kind, "operation": operation[kind][0], "ranks": operation[kind][1], "instances": 8,
         "flows": operation[kind][2], "size_bytes": operation[kind][3], "posted_ps": start, "start_ps": start,
         "end_ps": end}
        for _, _, _, kind, start, end in segments
        if kind in operation
    ]  # fmt: skip


def _tiers(segments: Sequence[Segment], bins: int = 60) -> list[dict[str, Any]]:
    end = max(one[5] for one in segments)
    edges = [end * place // bins for place in range(bins + 1)]
    rows = []
    for tier, kinds in (("nvlink", {"tensor"}), ("host->leaf", {"pipeline", "data"}), ("leaf->spine", {"data"})):
        for start, at in pairwise(edges):
            busy = sum(max(0, min(b, at) - max(a, start)) for *_, kind, a, b in segments if kind in kinds)
            flows = 64 * busy / (at - start)
            rows.append({"start_ps": start, "at_ps": at, "tier": tier, "bytes": busy * 50e-3, "flows": flows,
                         "entropy": 6.0 if flows else None})  # fmt: skip
    return rows


def _what_if(plan: Plan, job: Mapping[str, Any]) -> list[dict[str, Any]]:
    less: Mapping[str, Callable[[], int]] = {
        "infinite network": lambda: job["iteration_ps"] - job["exposed_ps"],
        "no bubble": lambda: job["iteration_ps"] - job["bubble_ps"],
        "perfect overlap": lambda: job["iteration_ps"] - job["exposed_ps"] // 2,
    }
    return [
        {
            "job": plan.job,
            "change": case,
            "iteration_ps": time(),
            "text": "simulated again" if case == "infinite network" else "a bound: a sum",
        }
        for case, time in less.items()
    ]


_NODES = [
    *({"node": n, "name": f"host{n}", "kind": "host", "role": "host", "tier": 0} for n in range(8)),
    *({"node": 8 + n, "name": f"leaf{n}", "kind": "switch", "role": "leaf", "tier": 1} for n in range(2)),
    {"node": 10, "name": "spine0", "kind": "switch", "role": "spine", "tier": 2},
]


def _links() -> list[dict[str, Any]]:
    pairs = [(host, 8 + host // 4) for host in range(8)] + [(8, 10), (9, 10)]
    rows: list[dict[str, Any]] = []
    for one, other in pairs:
        for node, peer in ((one, other), (other, one)):
            names = (str(_NODES[node]["name"]), str(_NODES[peer]["name"]))
            used = 0.62 if node >= 8 and peer >= 8 else 0.2 + 0.01 * node
            counts = {each.name: 0 for each in PORT_COUNTS if each.is_column}
            rows.append(counts | {
                "port": len(rows), "name": "->".join(names), "link": "-".join(sorted(names)), "node": node,
                "peer": peer, "rate_bps": 400 * 10**9, "mean_rate_bps": 400 * 10**9,
                "utilisation": used, "bytes": int(used * 10**10),
            })  # fmt: skip
    return rows


def training_run(folder: Path, *plans: Plan, caveats: Sequence[Caveat] = (), status: str = "complete") -> Run:
    """Write the run of one or several jobs.

    Parameters
    ----------
    folder : that does not exist yet
    plans : of the jobs; one of four stages without them
    """
    plans = plans or (Plan(),)
    rows: dict[str, list[Mapping[str, Any]]] = {name: [] for name in TABLES}
    every: list[Segment] = []
    spent: dict[str, Quantity] = {}
    first = 0
    for plan in plans:
        gpus = 64 * plan.stages
        found = segments_of(plan)
        every += found
        job = _job(plan, found, gpus)
        rows["jobs"].append(job)
        rows["segments"] += [
            {"job": plan.job, "stage": stage, "rank": first + 64 * stage, "ranks": 64, "micro_batch": batch,
             "virtual_stage": 0 if batch >= 0 else -1, "pass": which, "kind": kind, "start_ps": start, "end_ps": end,
             "gpu": first + 64 * stage}
            for stage, batch, which, kind, start, end in found
        ]  # fmt: skip
        spent |= _spent(plan, found, lead=f"{plan.job}." if first else "")
        rows["activities"] += _activities(plan, found)
        rows["what_if"] += _what_if(plan, job)
        first += gpus
    rows["tiers"], rows["nodes"], rows["links"] = list(_tiers(every)), list(_NODES), list(_links())
    slowest = max(rows["jobs"], key=lambda job: job["iteration_ps"])
    units = {"iteration_ps": "ps", "tokens_per_s": "1/s", "tokens_per_s_per_gpu": "1/s", "mfu": "share",
             "model_flops": "FLOP", "exposed_share": "share", "bubble_share": "share", "memory_bytes": "B"}  # fmt: skip
    summary = {name: Quantity(value=slowest[name], unit=unit, text=f"The {name}.") for name, unit in units.items()}
    summary |= {name: number for name, number in spent.items() if name not in summary}
    return write_run(
        folder,
        scenario="schema: 3\nname: training\n",
        about={
            "name": "training", "workload": f"an iteration of {slowest['model']} on {first:,} GPUs",
            "fabric": "two leaves and a spine", "transport": "RoCE",
        },
        summary=summary,
        answer=ANSWER,
        tables={name: table(name, content) for name, content in rows.items()},
        provenance={
            **PROVENANCE, "status": status, "engine": "flow", "digest": sha256(repr(plans).encode()).hexdigest(),
            "caveats": caveats_to_json(caveats_by_subject(caveats)),
        },
    )  # fmt: skip
