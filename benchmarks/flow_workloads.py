"""The traffic of `flow_fluid`: flows on a fat tree with paths by hash, as arrays that both simulators read.

Links are directed, in six blocks of as many as there are hosts: host to leaf and back, leaf to aggregation and back,
aggregation to core and back. All have 400 Gb/s. Sizes are whole bytes, since SimGrid takes no others.
Source of the web-search sizes: Alizadeh et al., SIGCOMM 2010 (DCTCP), doi:10.1145/1851182.1851192, figure 4, in the
piecewise linear form that is usual in simulators; mean about 1.7 MB.
Leaves out: latency.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["WORKLOADS", "Workload"]

RATE_BPS: Final = 400_000_000_000
WEB_SEARCH_BYTES: Final = 1e3 * np.array([1, 10, 20, 30, 50, 80, 200, 1000, 2000, 5000, 10000, 30000], np.float64)
WEB_SEARCH_SHARE: Final = np.array([0, 0.15, 0.2, 0.3, 0.4, 0.53, 0.6, 0.7, 0.8, 0.9, 0.97, 1])


@dataclass(frozen=True, kw_only=True)
class Workload:
    """Flows in order of their start, and the paths of the pairs that they use.

    Attributes
    ----------
    text : what it is
    hosts : of the fat tree
    path_ptr, path_link : rows of links of each path, compressed
    pair : shape (paths, 2), source and destination of each path
    at_ps, path, size_bytes : of each flow
    """

    text: str
    hosts: int
    path_ptr: NDArray[np.int64]
    path_link: NDArray[np.int32]
    pair: NDArray[np.int32]
    at_ps: NDArray[np.float64]
    path: NDArray[np.int32]
    size_bytes: NDArray[np.int64]

    @property
    def links(self) -> int:
        """Directed links of the fat tree."""
        return 6 * self.hosts

    def write(self, file: Path) -> None:
        """For `simgrid_max_min.cpp`: whitespace between numbers, instants in seconds."""
        with file.open("w", encoding="ascii") as out:
            out.write(f"{self.hosts} {self.links} {RATE_BPS / 8:.0f} {len(self.pair)} {len(self.path)}\n")
            for row, (source, destination) in enumerate(self.pair):
                links = self.path_link[self.path_ptr[row] : self.path_ptr[row + 1]]
                out.write(f"{source} {destination} {len(links)} {' '.join(map(str, links))}\n")
            for at_ps, path, size_bytes in zip(self.at_ps, self.path, self.size_bytes, strict=True):
                out.write(f"{at_ps * 1e-12:.17g} {path} {size_bytes}\n")


def permutation(k: int = 16) -> Workload:
    """Every host sends 10 MB to one other."""
    hosts = k**3 // 4
    draw = np.random.default_rng(7)
    order = draw.permutation(hosts)
    destination = np.empty(hosts, np.int64)
    destination[order] = np.roll(order, 1)  # one cycle, so that nobody sends to itself
    flows = np.column_stack([np.arange(hosts), destination])
    return _workload(f"permutation of {hosts:,} hosts, 10 MB", k, flows, np.full(hosts, 10_000_000))


def all_to_all(*, equal: bool) -> Workload:
    """Every one of 128 hosts sends to every other, all at once."""
    k = 8
    hosts = k**3 // 4
    flows = np.array([(a, b) for a in range(hosts) for b in range(hosts) if a != b])
    sizes = np.full(len(flows), 1_000_000)
    if not equal:
        sizes = np.random.default_rng(7).integers(1, 2_000_001, len(flows))
    return _workload(f"{len(flows):,} flows, {'1 MB' if equal else 'distinct sizes to 2 MB'}", k, flows, sizes)


def poisson(count: int) -> Workload:
    """Web-search sizes between random pairs of 1,024 hosts, 60 % load."""
    k = 16
    hosts = k**3 // 4
    draw = np.random.default_rng(7)
    sizes = np.ceil(np.interp(draw.random(count), WEB_SEARCH_SHARE, WEB_SEARCH_BYTES)).astype(np.int64)
    mean_bytes = np.diff(WEB_SEARCH_SHARE) @ (WEB_SEARCH_BYTES[1:] + WEB_SEARCH_BYTES[:-1]) / 2
    gap_ps = mean_bytes * 8e12 / (0.6 * RATE_BPS * hosts)
    at_ps = draw.exponential(gap_ps, count).cumsum()
    source = draw.integers(hosts, size=count)
    destination = (source + draw.integers(1, hosts, size=count)) % hosts
    return _workload(
        f"Poisson, web-search sizes, {count:,} flows", k, np.column_stack([source, destination]), sizes, at_ps
    )


WORKLOADS: Final[dict[str, Callable[[], Workload]]] = {
    "permutation": permutation,
    "equal": lambda: all_to_all(equal=True),
    "distinct": lambda: all_to_all(equal=False),
    "poisson": lambda: poisson(10_000),
    "poisson-100k": lambda: poisson(100_000),
}


def _workload(
    text: str, k: int, flows: NDArray[np.int64], sizes: NDArray[np.int64], at_ps: NDArray[np.float64] | None = None
) -> Workload:
    pair, path = np.unique(flows, axis=0, return_inverse=True)
    rows = [_path(k, int(source), int(destination)) for source, destination in pair]
    return Workload(
        text=text,
        hosts=k**3 // 4,
        path_ptr=np.cumsum([0, *map(len, rows)]).astype(np.int64),
        path_link=np.concatenate(rows).astype(np.int32),
        pair=pair.astype(np.int32),
        at_ps=np.zeros(len(flows)) if at_ps is None else at_ps,
        path=path.reshape(-1).astype(np.int32),
        size_bytes=sizes.astype(np.int64),
    )


def _path(k: int, source: int, destination: int) -> list[int]:
    """Links from host to host; which of the equal paths is a hash of the pair."""
    half, hosts = k // 2, k**3 // 4
    leaf_of, leaf_to = source // half, destination // half
    pod_of, pod_to = leaf_of // half, leaf_to // half
    mixed = _mix(1 ^ _mix(source << 32 | destination))
    aggregation, core = (mixed & 0xFFFFFFFF) % half, (mixed >> 32) % half
    path = [source]
    if leaf_of != leaf_to:
        path.append(2 * hosts + leaf_of * half + aggregation)
        if pod_of != pod_to:
            path.append(4 * hosts + (pod_of * half + aggregation) * half + core)
            path.append(5 * hosts + (pod_to * half + aggregation) * half + core)
        path.append(3 * hosts + leaf_to * half + aggregation)
    return [*path, hosts + destination]


def _mix(x: int) -> int:
    """splitmix64 (Steele, Lea and Flood, OOPSLA 2014)."""
    mask = 2**64 - 1
    x = (x + 0x9E3779B97F4A7C15) & mask
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & mask
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & mask
    return x ^ (x >> 31)
