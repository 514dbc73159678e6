"""What it takes to build a fabric of a million GPUs, to place a job on it and to find the paths of its flows.

Prints CPU seconds of every step and the most memory of the process so far.
Usage: python benchmarks/million_gpus.py [GPUS] [SWITCH]
"""

from __future__ import annotations

import resource
import sys
import time
from functools import partial
from typing import TYPE_CHECKING, Final, TypeVar

import numpy as np

from weftwork.engine.flow.paths import MODES, FlowPaths
from weftwork.spec.fabric import HOST
from weftwork.topology.build import fabric_of
from weftwork.workload.placement import PLACEMENTS

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")

# chosen: trees of other kinds with a million endpoints
TREES: Final = (
    {"topology": "fat-tree", "radix": 160},
    {"topology": "rail-only", "gpus": 1_048_576, "node": "dgx-h100", "radix": 256},
    {"topology": "hpn", "segments": 1_024},
    {"topology": "three-tier", "hosts": 1_048_576, "radix": 512, "redundancy": 64, "oversubscription": 4},
)

GPUS: Final = 1_048_576
SWITCH: Final = "tomahawk-6"  # 256 ports of 400 Gb/s; three tiers of 128 join half as many GPUs
PARTNERS: Final = (8 * 4_096 + 8, 8 * 20_000 + 8)  # ports to the right: two servers in other blocks of pods


def timed(what: str, work: Callable[[], T]) -> T:
    """Do it, and print what it took."""
    began = time.process_time()
    result = work()
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(f"{what:<46} {time.process_time() - began:6.2f} s  {most:5.2f} GiB", flush=True)
    return result


def main() -> None:
    """Run every step."""
    gpus = int(sys.argv[1]) if len(sys.argv) > 1 else GPUS
    switch = sys.argv[2] if len(sys.argv) > 2 else SWITCH
    for tree in TREES:
        timed(f"{tree['topology']} of a million endpoints", partial(fabric_of, **tree))
    shape = partial(fabric_of, topology="rail-optimized", gpus=gpus, node="dgx-h100", switch=switch)
    fabric = timed(f"fabric of {gpus:,} GPUs", shape)
    for name, place in PLACEMENTS.items():
        timed(f"placement {name}", partial(place, fabric, gpus, seed=1))
    ports = np.flatnonzero(fabric.node_kind[fabric.ports.node] == HOST)
    sources = np.concatenate([ports] * len(PARTNERS))
    targets = np.concatenate([np.roll(ports, -shift) for shift in PARTNERS])
    one_down = np.ones(len(fabric.links), np.bool_)
    one_down[fabric.link("leaf3-spine5")] = False
    for mode in MODES:
        router = timed(f"router, {mode}", partial(FlowPaths, fabric, mode))
        found = timed(f"paths of {len(sources):,} flows", partial(router.paths, sources, targets))
        print(f"{'':4}{len(found.hops):,} hops, {int(found.about['reachable'].sum()):,} flows with a path")
        timed("routes after a link has failed", partial(router.use, one_down))
        timed("paths after it", partial(router.paths, sources, targets))


if __name__ == "__main__":
    main()
