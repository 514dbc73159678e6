"""What folding costs and finds: jobs of 1,024 to 1,048,576 GPUs on sprayed, deterministic and hashed routes.

    python benchmarks/flow_fold.py                    # all sizes, folding alone
    python benchmarks/flow_fold.py --core             # hashed: the core and its bracket beside the exact run
    python benchmarks/flow_fold.py --gpus 16384 --routes hashed --expert 64

The job: TP 8, PP 16, data parallelism over the rest, 1F1B with 64 micro-batches of 16 MiB, gradients of 1 GiB as a
ring. ``near``: the stages of a pipeline are neighbours; ``far``: its replicas are. CPU seconds of the process and its
largest resident set, each row in a process of its own.
Leaves out: what runs on the network (`weftwork run` shows that), and models: computing takes 1 ms a micro-batch.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time
from dataclasses import replace
from typing import Any, Final

import numpy as np

from weftwork.engine.flow import run as flow
from weftwork.engine.flow.flow_input import FlowInput, Mode
from weftwork.engine.flow.folding import FlowFolding
from weftwork.engine.flow.lower import lower_flow
from weftwork.engine.settings import EngineSettings
from weftwork.policies.load import load
from weftwork.spec.job import (
    Collect,
    Compute,
    Grid,
    Group,
    Job,
    Loop,
    Milestone,
    Operation,
    Peer,
    Program,
    Receive,
    Send,
    Size,
    Wait,
)
from weftwork.spec.transport import Transport
from weftwork.topology.build import fabric_of
from weftwork.workload.placement import packed

__all__ = ["main"]

TENSOR: Final = 8
STAGES: Final = 16
MICRO_BATCHES: Final = 64
ACTIVATION_BYTES: Final = 16 << 20
GRADIENT_BYTES: Final = 1 << 30
COMPUTE_PS: Final = 1_000_000_000
SIZES: Final = (1_024, 4_096, 16_384, 131_072, 1_048_576)
ROUTES: Final = {"spray": Mode.SPRAY, "deterministic": Mode.DETERMINISTIC, "hashed": Mode.HASHED}
FORWARD, BACKWARD, TENSORS, GRADIENTS, EXPERTS = range(5)  # channels


def _job(gpus: int, *, is_near: bool, expert: int) -> tuple[tuple[Program, ...], int]:
    """Programs of the stages, and the stride of the pipeline."""
    replicas = gpus // TENSOR // STAGES
    stride, data = (TENSOR, TENSOR * STAGES) if is_near else (TENSOR * replicas, TENSOR)
    line = Group(stride=stride, size=STAGES)
    size = Size(total_bytes=ACTIVATION_BYTES)

    def collect(axis: tuple[int, int], channel: int, amount: int, *, is_ring: bool = True) -> Collect:
        return Collect(
            operation="all-reduce" if is_ring else "all-to-all", size_bytes=amount, group=Grid(axes=(axis,)),
            channel=channel, pattern="ring" if is_ring else "all-to-all", amount_bytes=amount,
        )  # fmt: skip

    layer: tuple[Operation, ...] = (
        Compute(duration_ps=COMPUTE_PS), collect((1, TENSOR), TENSORS, ACTIVATION_BYTES), Wait(),
    )  # fmt: skip
    if expert:
        layer += (collect((data, expert), EXPERTS, ACTIVATION_BYTES, is_ring=False), Wait())

    def program(stage: int) -> Program:
        def pass_(channel: int, step: int) -> tuple[Operation, ...]:
            source, goal = stage - step, stage + step
            begin: tuple[Operation, ...] = ()
            if 0 <= source < STAGES:
                begin = (Receive(peer=Peer(rule="shift", group=line, shift=-step), channel=channel), Wait())
            end: tuple[Operation, ...] = ()
            if 0 <= goal < STAGES:
                end = (Send(peer=Peer(rule="shift", group=line, shift=step), size=size, channel=channel),)
            return (*begin, *layer, *end)

        forward, backward = pass_(FORWARD, 1), pass_(BACKWARD, -1)
        warm = min(STAGES - 1 - stage, MICRO_BATCHES)
        return Program(
            streams=(
                (
                    Loop(count=warm, body=forward),
                    Loop(count=MICRO_BATCHES - warm, body=(*forward, *backward)),
                    Loop(count=warm, body=backward),
                    collect((data, replicas), GRADIENTS, 2 * GRADIENT_BYTES * (replicas - 1) // replicas),
                    Wait(),
                    Milestone(name=0),
                ),
            )
        )

    return tuple(program(stage) for stage in range(STAGES)), stride


def flow_input_of(gpus: int, route: str, place: str, expert: int) -> FlowInput:
    """A plan of the flow engine.

    Parameters
    ----------
    gpus, expert : degrees
    route : spray, deterministic or hashed
    place : near or far
    """
    radix = 64 if gpus <= 65_536 else 128 if gpus <= 524_288 else 256  # 256 ports of 400 Gb/s: a chip of 102.4 Tb/s
    switch = {"radix": radix, "hash": {"seed": 0, "offset": 0}}  # all switches alike, so that hashed flows collide
    fabric = fabric_of(
        topology="rail-optimized", hosts=gpus // 8, node={"model": "dgx-h100"}, switch=switch,
        tiers=3 if gpus > 2_048 else 2,
    )  # fmt: skip
    programs, stride = _job(gpus, is_near=place == "near", expert=expert)
    job = Job(
        name="fold",
        ranks=gpus,
        programs=programs,
        rank_program=(np.arange(gpus) // stride % STAGES).astype(np.int32),
        placement=packed(fabric, gpus),
        milestone_names=("end",),
    )
    plan = lower_flow(
        fabric=fabric,
        job=job,
        transport=Transport(),
        settings=EngineSettings(port_selection=load("port_selection", "ecmp")),
    )
    return replace(plan, mode=ROUTES[route])


def _measure(gpus: int, route: str, place: str, expert: int) -> dict[str, Any]:
    plan = flow_input_of(gpus, route, place, expert)
    begin_s = time.process_time()
    folded = FlowFolding(plan)
    took_s = time.process_time() - begin_s
    kind = "core" if folded.network["approximate"] else "exact" if folded.network["folded"] else "no"
    return {"gpus": gpus, "place": place, "route": route, "expert": expert, "folded": kind, "cpu_s": took_s,
            "gib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20, **folded.facts}  # fmt: skip


def _measure_core(gpus: int, place: str, expert: int) -> dict[str, Any]:
    """Ends of the iteration: exact, core, and its bracket."""
    plan = flow_input_of(gpus, "hashed", place, expert)
    found: dict[str, Any] = {"gpus": gpus, "place": place, "expert": expert}
    for folding in ("core", "exact"):
        begin_s = time.process_time()
        outcome = flow.run(replace(plan, fold=folding))
        found[f"{folding}_cpu_s"] = time.process_time() - begin_s
        found[f"{folding}_s"] = outcome.milestones["at_ps"].max() / 1e12
        if outcome.bracket_milestones is not None:
            found["fastest_s"], found["slowest_s"] = (
                float(marks["at_ps"].max() / 1e12) for marks in outcome.bracket_milestones
            )
    sprayed = flow.run(replace(plan, mode=Mode.SPRAY, fold="exact"))
    found["sprayed_s"] = sprayed.milestones["at_ps"].max() / 1e12
    return {name: float(value) if isinstance(value, np.floating) else value for name, value in found.items()}


def _show(row: dict[str, Any]) -> str:
    if "core_s" in row:
        return (
            f"{row['gpus']:>9,} {row['place']:>5} {row['expert']:>3}  exact {row['exact_s']:.4f} s"
            f" ({row['exact_cpu_s']:.1f} s CPU), core {row['core_s']:.4f} s"
            f" ({row['core_s'] / row['exact_s'] - 1:+.2%}, {row['core_cpu_s']:.1f} s CPU),"
            f" bracket {row['fastest_s']:.4f} to {row['slowest_s']:.4f} s, sprayed {row['sprayed_s']:.4f} s"
        )
    return (
        f"{row['gpus']:>9,} {row['place']:>5} {row['route']:>13} {row['expert']:>3} {row['folded']:>6}"
        f" {row['actors']:>7,} {row['activities']:>10,} {row['activity_cells']:>7,} {row['links']:>11,}"
        f" {row['link_cells']:>8,} {row['hops']:>12,} {row['kept']:>8,} {row['cpu_s']:>7.2f} {row['gib']:>6.2f}"
    )


def main() -> None:
    """Print the table; a child prints its row as JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gpus", type=int, nargs="*", default=None)
    parser.add_argument("--routes", nargs="*", choices=tuple(ROUTES), default=tuple(ROUTES))
    parser.add_argument("--places", nargs="*", choices=("near", "far"), default=("near", "far"))
    parser.add_argument("--expert", type=int, nargs="*", default=(0,))
    parser.add_argument("--core", action="store_true")
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    sizes = given.gpus or ((1_024, 4_096) if given.core else SIZES)
    if given.child:
        gpus, place, expert = sizes[0], given.places[0], given.expert[0]
        found = _measure_core(gpus, place, expert) if given.core else _measure(gpus, given.routes[0], place, expert)
        sys.stdout.write(json.dumps(found) + "\n")
        return
    if not given.core:
        sys.stdout.write(
            "     GPUs place         route  EP folded  actors activities   cells       links    cells         hops"
            "     kept   CPU s    GiB\n"
        )
    for gpus in sizes:
        for expert in given.expert:
            for place in given.places:
                for route in ("hashed",) if given.core else given.routes:
                    child = [sys.executable, __file__, "--child", "--gpus", str(gpus), "--routes", route, "--places",
                             place, "--expert", str(expert), *(["--core"] if given.core else [])]  # fmt: skip
                    done = subprocess.run(child, capture_output=True, text=True, check=True)
                    sys.stdout.write(_show(json.loads(done.stdout)) + "\n")
                    sys.stdout.flush()


if __name__ == "__main__":
    main()
