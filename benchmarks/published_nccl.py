"""Collectives beside nccl-tests as others published it: bus bandwidth by size, and how far Weftwork is off.

    python benchmarks/published_nccl.py [--full] [--only all-to-all]... [--markdown]

Each size is done as NCCL's tuner takes it (`algorithm: auto`), packet by packet, on the fabric and transport of
`published_nccl.yaml`: blind on AWS p5, with what NCCL and AWS publish (networks.toml). What was fitted on the curves of
one server at Azure, so that those two judge little: figures.toml. Nothing is fitted row by row.
Leaves out: EFA's own packets and its SRD, and the share of its NICs that libfabric reaches (the scorecard has that).
"""

from __future__ import annotations

import argparse
import datetime as dt
import sys
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from weftwork.base.clock import SECOND_PS
from weftwork.data.measured import measured
from weftwork.study.prepare.prepare import read_scenario
from weftwork.study.record.collective import collective_scenario, measure_collective
from weftwork.topology.build import fabric_of_section
from weftwork.workload.collectives.call import bus_bandwidth_factor

if TYPE_CHECKING:
    from weftwork.spec.fabric import Fabric

__all__ = ["CURVES", "Curve", "Row", "main", "rows_of", "servers_of", "simulated"]

SCENARIO: Final = Path(__file__).with_name("published_nccl.yaml")
KIB: Final = 1 << 10
MIB: Final = 1 << 20
LARGE_BYTES: Final = 256 * MIB  # from here on bandwidth decides and not latency
QUICK_BYTES: Final = 1024 * MIB  # larger messages only with --full
GPUS_OF_A_SERVER: Final = 8


@dataclass(frozen=True, kw_only=True, slots=True)
class Curve:
    """One published curve: its table and column, and on what it was measured."""

    text: str
    table: str
    node: str
    operation: str
    column: str = "bus_bandwidth_gbyte_per_s"


CURVES: Final[dict[str, Curve]] = {
    "all-reduce": Curve(
        text="All-reduce on AWS p5, 2 and 8 servers",
        table="nccl-all-reduce-h100-efa",
        node="p5",
        operation="all-reduce",
    ),
    "all-gather": Curve(
        text="All-gather on AWS p5, 2 and 8 servers",
        table="nccl-all-gather-h100-efa",
        node="p5",
        operation="all-gather",
    ),
    "all-to-all": Curve(
        text="All-to-all on AWS p5, 2 and 8 servers",
        table="nccl-all-to-all-h100-efa",
        node="p5",
        operation="all-to-all",
    ),
    "one-node-h100": Curve(
        text="All-reduce in one server of 8 H100 (its curve is fitted)",
        table="nccl-all-reduce-one-node",
        node="azure-nd-h100-v5",
        operation="all-reduce",
        column="h100_bus_bandwidth_gbyte_per_s",
    ),
    "one-node-a100": Curve(
        text="All-reduce in one server of 8 A100 (its curve is fitted)",
        table="nccl-all-reduce-one-node",
        node="azure-nd-a100-v4",
        operation="all-reduce",
        column="a100_bus_bandwidth_gbyte_per_s",
    ),
    "a100-nvlink": Curve(
        text="All-reduce of 8 A100 over NVLink, another laboratory (nothing fitted on it)",
        table="nccl-all-reduce-a100-nvlink",
        node="azure-nd-a100-v4",
        operation="all-reduce",
    ),
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Row:
    """One size: what was measured and what Weftwork says, in 10^9 bytes per second of bus bandwidth, and by what."""

    gpus: int
    size_bytes: int
    measured: float
    weftwork: float
    algorithm: str
    protocol: str

    def error(self) -> float:
        """Weftwork over measured, less one."""
        return self.weftwork / self.measured - 1


def simulated(
    servers: Mapping[str, str], fabric: Fabric, *, operation: str, gpus: int, size_bytes: int
) -> tuple[float, str, str]:
    """Simulate one operation as NCCL takes it: bus bandwidth, algorithm and protocol.

    Parameters
    ----------
    servers : keys of the scenario that name them
    fabric : that is built from them
    operation, gpus, size_bytes : what is done, by whom, with how much as nccl-tests counts it
    """
    keys: dict[str, Any] = {"operation": operation, "algorithm": "auto", "gpus": gpus, "size": size_bytes}
    scenario = collective_scenario(keys, file=SCENARIO, overrides=servers)
    (found,) = measure_collective(scenario, fabric, [size_bytes])
    if found.time_ps is None:
        raise SystemExit(f"{found.algorithm} {operation} of {size_bytes:,} B did not complete")
    bus = float(bus_bandwidth_factor(operation, gpus))
    return size_bytes * SECOND_PS / found.time_ps / 1e9 * bus, found.algorithm, found.protocol


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
        found, algorithm, protocol = simulated(
            servers, fabric, operation=curve.operation, gpus=gpus, size_bytes=size_bytes
        )
        yield Row(
            gpus=gpus, size_bytes=size_bytes, measured=row[curve.column], weftwork=found, algorithm=algorithm,
            protocol=protocol,
        )  # fmt: skip
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
        print(_table(rows, is_markdown=arguments.markdown))
        print(f"\n{_errors(rows)} ({time.perf_counter() - begin_s:.0f} s)", flush=True)


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


def _table(rows: list[Row], *, is_markdown: bool) -> str:
    cells = [["GPUs", "size", "measured", "Weftwork", "error", "by"]]
    for row in rows:
        by = f"{row.algorithm}, {row.protocol}"
        numbers = [f"{row.measured:g}", f"{row.weftwork:.4g}", f"{row.error():+.0%}"]
        cells.append([str(row.gpus), _size(row.size_bytes), *numbers, by])
    if is_markdown:
        lines = [f"| {' | '.join(line)} |" for line in cells]
        lines.insert(1, "|---:|---:|---:|---:|---:|---|")
        return "\n".join(lines)
    widths = [max(len(line[column]) for line in cells) for column in range(len(cells[0]))]
    return "\n".join("  ".join(cell.rjust(width) for cell, width in zip(line, widths, strict=True)) for line in cells)


def _errors(rows: list[Row]) -> str:
    """Mean absolute error from 256 MiB on and below, by GPUs."""
    parts = []
    for gpus in sorted({row.gpus for row in rows}):
        for is_large, words in ((True, "from"), (False, "below")):
            errors = [
                abs(row.error()) for row in rows if row.gpus == gpus and (row.size_bytes >= LARGE_BYTES) == is_large
            ]
            if errors:
                parts.append(f"{gpus} GPUs {words} {_size(LARGE_BYTES)}: {sum(errors) / len(errors):.0%}")
    return f"mean absolute error: {'; '.join(parts)}"


if __name__ == "__main__":
    main()
