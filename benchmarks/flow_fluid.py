"""Speed of the fluid engine: CPU seconds of four kinds of traffic, beside SimGrid on the same links and paths.

    python benchmarks/flow_fluid.py [--rounds 3] [--full] [--only NAME]... [--json FILE] [--markdown]

SimGrid is its max-min model alone (CM02, no TCP window, no cross traffic, latency 0), compiled here with g++ from
`simgrid_max_min.cpp` where libsimgrid-dev is installed; else it is left out. CPU time of the run, without reading or
building anything; rounds are interleaved and medians shown. A workload that takes SimGrid more than a minute is run
once there. Completion times are compared flow by flow: they have to agree within 1e-6, or within SimGrid's clock of
1 ns. Once more with a clock of 1 ps, SimGrid shows how much of the difference is its clock.
Leaves out: memory, and wall-clock time.
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import numpy as np
from flow_workloads import RATE_BPS, WORKLOADS, Workload
from machine import circumstances
from numpy.typing import NDArray

from weftwork.engine import _native
from weftwork.engine.rows.flow_outcome import FLUID_REPORT_DTYPE
from weftwork.engine.rows.flow_run import FLUID_RUN

__all__ = ["main"]

HERE: Final = Path(__file__).resolve().parent
EXACT: Final = 1e-9
DEFAULT: Final = 1e-6
WANTED: Final = {"permutation": 10, "equal": 500, "distinct": 90, "poisson": 500, "poisson-100k": 500}  # exact
WANTED_DEFAULT: Final = WANTED | {"distinct": 100}
LONG_S: Final = 60.0  # of SimGrid; such a workload is run there once
CLOCK_S: Final = 1e-9  # SimGrid's
AGREED: Final = 1e-6
SHORT_FLOWS: Final = 2_000  # a workload of so few is run several times in each round
SHORT_RUNS: Final = 5
SHORT_S: Final = 60.0  # of SimGrid; such a workload is run there once more, with a finer clock


@dataclass(kw_only=True)
class Row:
    """One workload with what the rounds gave."""

    name: str
    workload: Workload
    file: Path
    cpu_s: dict[str, list[float]] = field(default_factory=lambda: {"exact": [], "default": [], "simgrid": []})
    completed_s: dict[str, NDArray[np.float64]] = field(default_factory=dict)
    stats: dict[str, Any] = field(default_factory=dict)


def main() -> None:
    """Run the workloads and print the table."""
    arguments = _arguments()
    names = arguments.only or [name for name in WORKLOADS if arguments.full or name != "poisson-100k"]
    with tempfile.TemporaryDirectory() as folder:
        simgrid = _simgrid(Path(folder))
        rows = [Row(name=name, workload=WORKLOADS[name](), file=Path(folder) / name) for name in names]
        for row in rows:
            row.workload.write(row.file)
        for round_ in range(arguments.rounds):
            for row in rows:
                if sys.stderr.isatty():
                    print(f"\r\033[Kround {round_ + 1} of {arguments.rounds}: {row.name}", end="", file=sys.stderr)
                for turn in range(SHORT_RUNS if len(row.workload.path) <= SHORT_FLOWS else 1):
                    _run(row, simgrid, is_exact_first=(round_ + turn) % 2 == 0)
        if simgrid is not None:
            for row in rows:
                if statistics.median(row.cpu_s["simgrid"]) < SHORT_S:
                    _, row.completed_s["simgrid-fine"] = _run_simgrid(simgrid, row.file, "--cfg=surf/precision:1e-12")
    if sys.stderr.isatty():
        print("\r\033[K", end="", file=sys.stderr)
    report = {**circumstances(arguments.rounds), "rows": {row.name: _figures(row) for row in rows}}
    print(_table(report, markdown=arguments.markdown))
    if arguments.json is not None:
        arguments.json.write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument(
        "--rounds", type=int, choices=range(1, 100), metavar="N", default=3, help="runs of each workload"
    )
    parser.add_argument("--full", action="store_true", help="also 100,000 flows, which take SimGrid twenty minutes")
    parser.add_argument("--only", action="append", choices=WORKLOADS, help="only this workload; may be repeated")
    parser.add_argument("--json", type=Path, help="also write all figures here")
    parser.add_argument("--markdown", action="store_true", help="print a table for docs/models/flow-speed.md")
    return parser.parse_args()


def _simgrid(folder: Path) -> Path | None:
    program = folder / "simgrid_max_min"
    if shutil.which("g++") is None:
        print("there is no g++: no comparison with SimGrid")
        return None
    command = ["g++", "-O2", "-std=c++17", str(HERE / "simgrid_max_min.cpp"), "-o", str(program), "-lsimgrid"]
    built = subprocess.run(command, capture_output=True, text=True, check=False)
    if built.returncode == 0:
        return program
    print("SimGrid is not installed (apt-get install libsimgrid-dev), or its driver does not compile: no comparison")
    return None


def _run(row: Row, simgrid: Path | None, *, is_exact_first: bool) -> None:
    turns = (("exact", EXACT), ("default", DEFAULT))  # the second finds its memory warm
    for name, tolerance in turns if is_exact_first else reversed(turns):
        row.completed_s[name], row.stats[name] = _run_weftwork(row.workload, tolerance)
        row.cpu_s[name].append(row.stats[name]["cpu_s"])
    if simgrid is not None and max(row.cpu_s["simgrid"], default=0) < LONG_S:
        cpu_s, row.completed_s["simgrid"] = _run_simgrid(simgrid, row.file)
        row.cpu_s["simgrid"].append(cpu_s)


def _run_weftwork(w: Workload, tolerance: float) -> tuple[NDArray[np.float64], dict[str, Any]]:
    capacity = np.full(w.links, RATE_BPS / 8e12)  # bytes per ps
    weight = np.ones(len(w.path_link))
    size_bytes = w.size_bytes.astype(np.float64)
    asked = {
        "capacity": capacity,
        "variable_ptr": w.path_ptr,
        "hop_constraint": w.path_link,
        "hop_weight": weight,
        "start_at_ps": w.at_ps,
        "start_variable": w.path,
        "start_amount": size_bytes,
        "tolerance": tolerance,
        "check_every": 0,
    }
    run = _native.fluid_run(FLUID_RUN.values(None, asked))
    completed_ps, carried_bytes = (run[name].view(np.float64) for name in ("completed_at_ps", "carried_units"))
    (report,) = run["report"].view(FLUID_REPORT_DTYPE)
    stats = {name: report[name].item() for name in FLUID_REPORT_DTYPE.names or ()}
    crossings = np.diff(w.path_ptr)[w.path]
    if not np.isclose(carried_bytes.sum(), (crossings * size_bytes).sum(), rtol=1e-9):
        raise SystemExit("the links have not carried what was sent")
    return completed_ps * 1e-12, stats


def _run_simgrid(program: Path, file: Path, *options: str) -> tuple[float, NDArray[np.float64]]:
    completions = file.with_suffix(".completions")
    ran = subprocess.run(
        [program, file, completions, "--log=root.threshold:critical", *options],
        capture_output=True,
        text=True,
        check=False,
    )
    if ran.returncode != 0:
        raise SystemExit(f"SimGrid failed:\n{ran.stderr}")
    return json.loads(ran.stdout)["cpu_s"], np.loadtxt(completions)


def _figures(row: Row) -> dict[str, Any]:
    median_s = {name: statistics.median(cpu_s) for name, cpu_s in row.cpu_s.items() if cpu_s}
    figures: dict[str, Any] = {
        "text": row.workload.text,
        "flows": len(row.workload.path),
        "cpu_s": median_s,
        "rounds_cpu_s": row.cpu_s,
        "stats": row.stats,
        "tolerance": _difference(row.completed_s["default"], row.completed_s["exact"]),
    }
    if "simgrid" in median_s:
        for name, wanted in (("exact", WANTED), ("default", WANTED_DEFAULT)):
            figures[name] = {
                "ratio": median_s["simgrid"] / median_s[name],
                "wanted": wanted[row.name],
                **_difference(row.completed_s[name], row.completed_s["simgrid"]),
            }
    if "simgrid-fine" in row.completed_s:
        figures["fine"] = _difference(row.completed_s["exact"], row.completed_s["simgrid-fine"])
    return figures


def _difference(ours_s: NDArray[np.float64], theirs_s: NDArray[np.float64]) -> dict[str, Any]:
    apart_s = np.abs(ours_s - theirs_s)
    return {
        "max_s": float(apart_s.max()),
        "max_relative": float((apart_s / theirs_s).max()),
        "off": int(((apart_s > CLOCK_S) & (apart_s > AGREED * theirs_s)).sum()),
    }


def _cells(row: dict[str, Any]) -> list[str]:
    cpu_s = row["cpu_s"]
    cells = [row["text"], f"{cpu_s['simgrid']:.4g}" if "simgrid" in cpu_s else ""]
    for name in ("exact", "default"):
        beside = row.get(name)
        cells.append(f"{cpu_s[name]:.4g}")
        cells += [f"{beside['ratio']:.1f}", str(beside["wanted"])] if beside else ["", ""]
    apart = row.get("default")
    cells += [f"{apart['max_s']:.1e}", f"{apart['max_relative']:.1e}", str(apart["off"])] if apart else [""] * 3
    return [*cells, f"{row['fine']['max_s']:.1e}" if "fine" in row else ""]


def _table(report: dict[str, Any], *, markdown: bool) -> str:
    head = ["workload", "SimGrid s"]
    for name in ("exact", "default"):
        head += [f"{name} s", "ratio", "wanted"]
    head += ["max diff s", "max rel.", "flows off", "max diff s at 1 ps"]
    cells = [_cells(row) for row in report["rows"].values()]
    above = (
        f"{report['date']}, commit {report['commit']}{' with changes' if report['uncommitted_changes'] else ''}, "
        f"{report['cpu']}; median CPU seconds of {report['rounds']} rounds, one thread"
    )
    if markdown:
        lines = ["| " + " | ".join(line) + " |" for line in [head, ["---"] + ["---:"] * (len(head) - 1), *cells]]
    else:
        widths = [max(len(line[i]) for line in [head, *cells]) for i in range(len(head))]
        lines = [
            "  ".join(
                cell.ljust(width) if i == 0 else cell.rjust(width)
                for i, (cell, width) in enumerate(zip(line, widths, strict=True))
            )
            for line in [head, *cells]
        ]
    return "\n".join([above, "", *lines])


if __name__ == "__main__":
    main()
