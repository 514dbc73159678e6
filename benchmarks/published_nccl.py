"""Collectives beside nccl-tests as others published it: bus bandwidth by size, and how far Weftwork is off.

    python benchmarks/published_nccl.py [--full] [--only all-to-all]... [--markdown]

Fabric and transport: `published_nccl.yaml`. Servers and the efficiency of their NVLink:
src/weftwork/hardware/servers.toml. Latencies and efficiencies of NCCL's protocols:
src/weftwork/workload/collectives/protocols.toml; what was fitted on the curves of one server at Azure, so that those
two judge little: src/weftwork/workload/collectives/figures.toml. Nothing is fitted row by row. The tables do not say
which algorithm NCCL took: each operation has the two that it may have taken, and one choice holds for all rows. In one
server the protocol is the fastest at that size, which is what NCCL's tuning wants.
Source of channels and pieces: NCCL's defaults, beside `NVLS` and the others below.
Leaves out: NVLSTree (here the rails of `hierarchical`), the search for rings and trees, EFA's own packets and its SRD.
"""

from __future__ import annotations

import argparse
import datetime as dt
import sys
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

from weftwork.base.clock import SECOND_PS
from weftwork.data.measured import measured
from weftwork.study.prepare.prepare import read_scenario
from weftwork.study.run.collective import collective_scenario, measure_collective
from weftwork.topology.build import fabric_of_section
from weftwork.workload.collectives.call import bus_bandwidth_factor

if TYPE_CHECKING:
    from weftwork.spec.fabric import Fabric

__all__ = ["CURVES", "Curve", "Method", "Row", "bus_bandwidth_gbyte_per_s", "main", "rows_of", "servers_of"]

SCENARIO: Final = Path(__file__).with_name("published_nccl.yaml")
KIB: Final = 1 << 10
MIB: Final = 1 << 20
LARGE_BYTES: Final = 256 * MIB  # from here on bandwidth decides and not latency
QUICK_BYTES: Final = 1024 * MIB  # larger messages only with --full
PIECE_BYTES: Final = 512 * KIB  # NCCL, Simple: 4 MiB of buffer in 8 steps
NVLS_PIECE_BYTES: Final = 128 * KIB  # NCCL, NCCL_NVLS_CHUNKSIZE
GPUS_OF_A_SERVER: Final = 8
MOST_CHUNKS: Final = 1_024  # that collective.chunks allows; no part here has as many


@dataclass(frozen=True, kw_only=True, slots=True)
class Method:
    """A method of NCCL to do an operation.

    Parameters
    ----------
    algorithm, inner : in Weftwork's catalogue
    channels : share the bytes
    least_chunk_bytes : size of the pieces that follow each other; 0: parts are sent whole
    protocols : among which the fastest is taken
    """

    algorithm: str
    channels: int
    inner: Literal["ring", "direct", "nvls"] = "nvls"
    least_chunk_bytes: int = 0
    protocols: tuple[str, ...] = ("simple",)


# Channels: 16 of NVLS on sm90 (NCCL, NVLS_NCHANNELS_SM90); a ring on each of 32 NICs; one for each NIC of a GPU.
NVLS: Final = Method(algorithm="hierarchical", channels=16, least_chunk_bytes=NVLS_PIECE_BYTES)
RINGS: Final = Method(algorithm="ring", channels=32, least_chunk_bytes=PIECE_BYTES)
DIRECT: Final = Method(algorithm="direct", channels=4)
PXN: Final = Method(algorithm="hierarchical", channels=4, least_chunk_bytes=PIECE_BYTES)
ONE_NODE_NVLS: Final = Method(algorithm="nvls", channels=16, least_chunk_bytes=NVLS_PIECE_BYTES)
ONE_NODE_RINGS: Final = Method(
    algorithm="ring", channels=16, least_chunk_bytes=PIECE_BYTES, protocols=("simple", "ll128", "ll")
)
ONE_NODE_TREE: Final = Method(
    algorithm="tree", channels=16, least_chunk_bytes=PIECE_BYTES, protocols=("simple", "ll128", "ll")
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Curve:
    """One published curve: its table and column, on what it was measured, and the methods that NCCL may have taken."""

    text: str
    table: str
    node: str
    operation: str
    methods: tuple[Method, ...]
    column: str = "bus_bandwidth_gbyte_per_s"


CURVES: Final[dict[str, Curve]] = {
    "all-reduce": Curve(
        text="All-reduce on AWS p5, 2 and 8 servers",
        table="nccl-all-reduce-h100-efa",
        node="p5",
        operation="all-reduce",
        methods=(NVLS, RINGS),
    ),
    "all-gather": Curve(
        text="All-gather on AWS p5, 2 and 8 servers",
        table="nccl-all-gather-h100-efa",
        node="p5",
        operation="all-gather",
        methods=(RINGS, NVLS),
    ),
    "all-to-all": Curve(
        text="All-to-all on AWS p5, 2 and 8 servers",
        table="nccl-all-to-all-h100-efa",
        node="p5",
        operation="all-to-all",
        methods=(DIRECT, PXN),
    ),
    "one-node-h100": Curve(
        text="All-reduce in one server of 8 H100 (its curve is fitted)",
        table="nccl-all-reduce-one-node",
        node="azure-nd-h100-v5",
        operation="all-reduce",
        methods=(ONE_NODE_NVLS, ONE_NODE_RINGS),
        column="h100_bus_bandwidth_gbyte_per_s",
    ),
    "one-node-a100": Curve(
        text="All-reduce in one server of 8 A100 (its curve is fitted)",
        table="nccl-all-reduce-one-node",
        node="azure-nd-a100-v4",
        operation="all-reduce",
        methods=(ONE_NODE_RINGS, ONE_NODE_TREE),
        column="a100_bus_bandwidth_gbyte_per_s",
    ),
    "a100-nvlink": Curve(
        text="All-reduce of 8 A100 over NVLink, another laboratory (nothing fitted on it)",
        table="nccl-all-reduce-a100-nvlink",
        node="azure-nd-a100-v4",
        operation="all-reduce",
        methods=(ONE_NODE_RINGS, ONE_NODE_TREE),
    ),
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Row:
    """One size: what was measured and what Weftwork says by each method, in 10^9 bytes per second of bus bandwidth."""

    gpus: int
    size_bytes: int
    measured: float
    weftwork: tuple[float, ...]

    def errors(self) -> tuple[float, ...]:
        """Weftwork over measured, less one, by method."""
        return tuple(found / self.measured - 1 for found in self.weftwork)


def bus_bandwidth_gbyte_per_s(
    servers: Mapping[str, str], fabric: Fabric, *, operation: str, method: Method, gpus: int, size_bytes: int
) -> float:
    """Simulate one operation, by each protocol of a method, and return the bus bandwidth of the fastest.

    Parameters
    ----------
    servers : keys of the scenario that name them
    fabric : that is built from them
    operation, method, gpus, size_bytes : what is done, by whom, with how much as nccl-tests counts it
    """
    fastest_ps = min(
        _took_ps(servers, fabric, operation, method, protocol, gpus, size_bytes) for protocol in method.protocols
    )
    return size_bytes * SECOND_PS / fastest_ps / 1e9 * float(bus_bandwidth_factor(operation, gpus))


def _took_ps(
    servers: Mapping[str, str],
    fabric: Fabric,
    operation: str,
    method: Method,
    protocol: str,
    gpus: int,
    size_bytes: int,
) -> int:
    keys: dict[str, Any] = {
        "operation": operation,
        "algorithm": method.algorithm,
        "protocol": protocol,
        "gpus": gpus,
        "size": size_bytes,
        "channels": max(1, min(method.channels, size_bytes // gpus)),
        "chunks": min(MOST_CHUNKS, max(1, size_bytes // method.least_chunk_bytes)) if method.least_chunk_bytes else 1,
        "least_chunk": max(1, method.least_chunk_bytes),
    }
    if method.algorithm == "hierarchical":
        keys["inner"] = method.inner
    scenario = collective_scenario(keys, file=SCENARIO, overrides=servers)
    (found,) = measure_collective(scenario, fabric, [size_bytes])
    if found.time_ps is None:
        raise SystemExit(f"{method.algorithm} {operation} of {size_bytes:,} B did not complete")
    return found.time_ps


def servers_of(curve: Curve, gpus: int) -> tuple[dict[str, str], Fabric]:
    """Keys of the scenario and the fabric on which so many GPUs of a curve run.

    Parameters
    ----------
    curve : one of `CURVES`
    gpus : whole servers of eight
    """
    hosts = max(2, gpus // GPUS_OF_A_SERVER)  # one server alone has no fabric
    servers = {"fabric.node": curve.node, "fabric.hosts": str(hosts)}
    section = read_scenario(SCENARIO, servers).fabric
    return servers, fabric_of_section(section, directory=SCENARIO.parent)


def rows_of(curve: Curve, *, largest_bytes: int) -> Iterable[Row]:
    """Simulate the rows of a curve.

    Parameters
    ----------
    curve : one of `CURVES`
    largest_bytes : larger rows are left out
    """
    fabrics: dict[int, tuple[dict[str, str], Fabric]] = {}
    for row in measured(curve.table).to_pylist():
        gpus, size_bytes = row.get("gpus", GPUS_OF_A_SERVER), row["size_bytes"]
        if size_bytes > largest_bytes:
            continue
        if gpus not in fabrics:
            fabrics[gpus] = servers_of(curve, gpus)
        servers, fabric = fabrics[gpus]
        if sys.stderr.isatty():
            print(f"\r\033[K{curve.text}: {gpus} GPUs, {_size(size_bytes)}", end="", file=sys.stderr)
        found = tuple(
            bus_bandwidth_gbyte_per_s(
                servers, fabric, operation=curve.operation, method=method, gpus=gpus, size_bytes=size_bytes
            )
            for method in curve.methods
        )
        yield Row(gpus=gpus, size_bytes=size_bytes, measured=row[curve.column], weftwork=found)
    if sys.stderr.isatty():
        print("\r\033[K", end="", file=sys.stderr)


def main() -> None:
    """Run the curves and print a table for each."""
    arguments = _arguments()
    print(f"{dt.datetime.now(dt.UTC).date().isoformat()}, sizes up to ", end="")
    print("those published" if arguments.full else _size(QUICK_BYTES))
    for name in arguments.only or CURVES:
        curve = CURVES[name]
        begin_s = time.perf_counter()
        rows = list(rows_of(curve, largest_bytes=1 << 62 if arguments.full else QUICK_BYTES))
        print(f"\n{'### ' if arguments.markdown else ''}{curve.text}\n")
        print(_table(curve, rows, is_markdown=arguments.markdown))
        print(f"\n{_errors(curve, rows)} ({time.perf_counter() - begin_s:.0f} s)", flush=True)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--full", action="store_true", help="all sizes, up to 8 GiB: some fifteen minutes")
    parser.add_argument("--only", action="append", choices=list(CURVES), help="only this curve; may be repeated")
    parser.add_argument("--markdown", action="store_true", help="print tables for docs/models/published.md")
    return parser.parse_args()


def _size(size_bytes: int) -> str:
    for unit, name in ((KIB * MIB, "GiB"), (MIB, "MiB"), (KIB, "KiB")):
        if size_bytes >= unit:
            return f"{size_bytes / unit:g} {name}"
    return f"{size_bytes} B"


def _table(curve: Curve, rows: list[Row], *, is_markdown: bool) -> str:
    head = ["GPUs", "size", "measured"]
    for method in curve.methods:
        head += [_name(method), "error"]
    cells = [head]
    for row in rows:
        cells.append([str(row.gpus), _size(row.size_bytes), f"{row.measured:g}"])
        for found, error in zip(row.weftwork, row.errors(), strict=True):
            cells[-1] += [f"{found:.4g}", f"{error:+.0%}"]
    if is_markdown:
        lines = [f"| {' | '.join(line)} |" for line in cells]
        lines.insert(1, "|---:" * len(head) + "|")
        return "\n".join(lines)
    widths = [max(len(line[column]) for line in cells) for column in range(len(head))]
    return "\n".join("  ".join(cell.rjust(width) for cell, width in zip(line, widths, strict=True)) for line in cells)


def _name(method: Method) -> str:
    return (
        f"{method.algorithm}, {method.inner}"
        if method.algorithm == "hierarchical" and method is NVLS
        else method.algorithm
    )


def _errors(curve: Curve, rows: list[Row]) -> str:
    """Mean absolute error from 256 MiB on, by GPUs and method."""
    parts = []
    for gpus in sorted({row.gpus for row in rows}):
        large = [row.errors() for row in rows if row.gpus == gpus and row.size_bytes >= LARGE_BYTES]
        for index, method in enumerate(curve.methods):
            mean = sum(abs(errors[index]) for errors in large) / len(large)
            parts.append(f"{gpus} GPUs, {_name(method)}: {mean:.0%}")
    return f"mean absolute error from {_size(LARGE_BYTES)} on: {'; '.join(parts)}"


if __name__ == "__main__":
    main()
