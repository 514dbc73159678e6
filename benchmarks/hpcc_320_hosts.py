"""Slowdown of flows under six congestion controls on the HPCC paper's fabric of 320 hosts, beside what the paper shows.

    python benchmarks/hpcc_320_hosts.py [--ms 10] [--seed 1]... [--hosts 320] [--only HPCC]... [--json FILE]
        [--markdown] [--svg FILE]

Web-search flows at a load of 50 %, and at 30 % with incasts of 60 to 1, 500 kB each, at 2 % of capacity. 320 hosts take
about half a minute of CPU time for each control, load and 10 ms of arrivals. The tables and the figure of
docs/models/congestion-control-compared.md are what this prints. `hpcc_setup` has fabric, traffic and controls. On a
terminal the standard error tells what runs; elsewhere it gets a line for each run that is done.
Leaves out: Hadoop's flow sizes, which the paper's own large figure takes; its curves are here in words.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

from hpcc_setup import CONTROLS, SCENARIOS, Found, Shape, percentiles, run
from machine import circumstances

from weftwork.base.clock import MS_PS
from weftwork.report.figures.cards import Polyline, lines

__all__ = ["SHAPES", "STATEMENTS", "main"]

# 320: fat.txt, of 20 racks in 5 pods; 32: four racks of 8 at two spines, with the same rates and no oversubscription
SHAPES: Final = {
    32: Shape(pods=1, leaves=4, uplinks=2, hosts_per_leaf=8, cores_per_uplink=0),
    320: Shape(pods=5, leaves=4, uplinks=4, hosts_per_leaf=16, cores_per_uplink=4),
}
INCASTS: Final = {32: 20, 320: 60}  # senders; 32 hosts have no 60
EDGES: Final = (0, 10_000, 20_000, 30_000, 50_000, 80_000, 200_000, 1_000_000, 2_000_000, 5_000_000, 10_000_000,
                30_000_000)  # fmt: skip
SHORT_BYTES: Final = 30_000
MIDDLE_BYTES: Final = 200_000
LONG_BYTES: Final = 5_000_000
WINDOWED: Final = ("TIMELY+win", "DCQCN+win")
UNBOUND: Final = ("TIMELY", "DCQCN")
Row = dict[str, Any]


def _short(rows: dict[str, Row], name: str, percent: str) -> float:
    return float(rows[name]["short"][percent])


def _is_order(rows: dict[str, Row], percent: str) -> bool:
    """Every control of a step is faster than every control of the next one."""
    steps = (("HPCC",), ("DCTCP",), WINDOWED, UNBOUND)
    return all(
        _short(rows, one, percent) < _short(rows, other, percent)
        for step, following in pairwise(steps)
        for one in step
        for other in following
    )


def _window_helps(rows: dict[str, Row], percent: str) -> bool:
    return all(_short(rows, w, percent) < _short(rows, u, percent) for w, u in zip(WINDOWED, UNBOUND, strict=True))


# What the authors publish of both loads, in words: hpcc-group.github.io/results.html (web search, 30 and 50 %), the
# abstract, and liyuliang001.github.io/projects/hpcc. The order of all six is read off figure 11: unverified.
STATEMENTS: Final = {
    "HPCC has the lowest slowdown of all up to 200 kB at the 95th percentile": lambda rows: all(
        rows["HPCC"]["middle"]["95"] < rows[name]["middle"]["95"] for name in rows if name != "HPCC"
    ),
    "the same at the 99th percentile": lambda rows: all(
        rows["HPCC"]["middle"]["99"] < rows[name]["middle"]["99"] for name in rows if name != "HPCC"
    ),
    "a window makes DCQCN and TIMELY better for flows up to 30 kB, 95th percentile": lambda rows: _window_helps(
        rows, "95"
    ),
    "HPCC < DCTCP < both with a window < both without, up to 30 kB, 95th percentile (unverified)": lambda rows: (
        _is_order(rows, "95")
    ),
    "the same at the 99th percentile (unverified)": lambda rows: _is_order(rows, "99"),
    "HPCC's flows beyond 5 MB are slower than those of DCQCN+win: telemetry takes its bytes": lambda rows: (
        rows["HPCC"]["long"]["50"] > rows["DCQCN+win"]["long"]["50"]
    ),
}


def main() -> None:
    """Run all and print the tables."""
    arguments = _arguments()
    shape = SHAPES[arguments.hosts]
    names = arguments.only or list(CONTROLS)
    seeds = arguments.seed or [1]
    begin_s = time.process_time()
    report: dict[str, Any] = {**circumstances(1), "hosts": arguments.hosts, "ms": arguments.ms, "seeds": seeds}
    report["loads"] = {}
    for load, given in SCENARIOS.items():
        scenario = replace(given, incast=INCASTS[arguments.hosts] if given.incast else 0)
        rows: dict[str, Row] = {}
        for name in names:
            _progress(f"{load}, {name}")
            run_s = time.process_time()
            last_ps = round(arguments.ms * MS_PS)
            founds = [run(shape, scenario, CONTROLS[name], seed=seed, last_ps=last_ps) for seed in seeds]
            rows[name] = {**_row(founds), "cpu_s": time.process_time() - run_s}
            if not sys.stderr.isatty():
                print(f"{load}, {name}: {' '.join(_cells(name, rows[name])[1:])}", file=sys.stderr, flush=True)
        report["loads"][load] = rows
    _progress("")
    report["cpu_s"] = time.process_time() - begin_s
    print(_text(report, is_markdown=arguments.markdown))
    if arguments.json is not None:
        arguments.json.write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")
    if arguments.svg is not None:
        arguments.svg.write_text(_picture(report), encoding="utf-8")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--ms", type=float, default=10.0, help="time in which flows arrive")
    parser.add_argument("--seed", type=int, action="append", help="may be repeated: all flows are judged together")
    parser.add_argument("--hosts", type=int, choices=list(SHAPES), default=320)
    parser.add_argument("--only", action="append", choices=list(CONTROLS), help="may be repeated")
    parser.add_argument("--json", type=Path, help="also write all figures here")
    parser.add_argument("--svg", type=Path, help="also draw the 95th percentile at the first load here")
    parser.add_argument("--markdown", action="store_true", help="print tables for the page")
    return parser.parse_args()


def _progress(text: str) -> None:
    if sys.stderr.isatty():
        print(f"\r\033[K{text}", end="", file=sys.stderr)


def _row(founds: list[Found]) -> Row:
    def of(above: int, most: int) -> dict[str, float]:
        values = percentiles(founds, above, most, (50, 95, 99))
        return dict(zip(("50", "95", "99"), values, strict=True))

    return {
        "short": of(0, SHORT_BYTES),
        "middle": of(0, MIDDLE_BYTES),
        "long": of(LONG_BYTES, EDGES[-1]),
        "by_size": [of(above, most) for above, most in pairwise(EDGES)],
        "flows": sum(len(found.size_bytes) for found in founds),
        "pauses": sum(found.pauses for found in founds),
        "paused_share": sum(found.paused_share for found in founds) / len(founds),
        "max_queue_bytes": max(found.max_queue_bytes for found in founds),
        "packet_hops": sum(found.packet_hops for found in founds),
        "unfinished": sum(found.unfinished for found in founds),
        "drops": sum(found.drops for found in founds),
    }


def _size(size_bytes: int) -> str:
    return f"{size_bytes // 1_000_000} MB" if size_bytes >= 1_000_000 else f"{size_bytes // 1_000} kB"


def _text(report: dict[str, Any], *, is_markdown: bool) -> str:
    machine = f"{report['date']}, commit {report['commit']}, Python {report['python']}, {report['cpu']}"
    seeds = ", ".join(map(str, report["seeds"]))
    what = f"{report['hosts']} hosts, arrivals of {report['ms']:g} ms, seeds {seeds}"
    out = [f"{machine}; {what}; {report['cpu_s']:.0f} s of CPU time"]
    for load, rows in report["loads"].items():
        count = next(iter(rows.values()))["flows"]
        out += ["", f"Load {load}: slowdown of {count:,} flows", ""]
        head = ["control", "<= 30 kB p50", "p95", "p99", "<= 200 kB p95", "p99", "> 5 MB p50", "p95",
                "pauses", "longest queue kB", "CPU s"]  # fmt: skip
        out += _table(head, [_cells(name, row) for name, row in rows.items()], is_markdown=is_markdown)
        out += ["", f"Load {load}: slowdown by size, 95th percentile", ""]
        sizes = [f"<= {_size(most)}" for most in EDGES[1:]]
        body = [[name, *(f"{part['95']:.2f}" for part in row["by_size"])] for name, row in rows.items()]
        out += _table(["control", *sizes], body, is_markdown=is_markdown)
        if len(rows) == len(CONTROLS):
            out += ["", f"Load {load}: what the authors show", ""]
            said = [[text, "yes" if holds(rows) else "no"] for text, holds in STATEMENTS.items()]
            out += _table(["statement", "here"], said, is_markdown=is_markdown)
    return "\n".join(out)


def _cells(name: str, row: Row) -> list[str]:
    short, middle, long = row["short"], row["middle"], row["long"]
    return [
        name,
        *(f"{short[percent]:.2f}" for percent in ("50", "95", "99")),
        *(f"{middle[percent]:.2f}" for percent in ("95", "99")),
        *(f"{long[percent]:.2f}" for percent in ("50", "95")),
        f"{row['pauses']:,}",
        f"{row['max_queue_bytes'] / 1_000:,.0f}",
        f"{row['cpu_s']:.0f}",
    ]


def _table(head: list[str], rows: list[list[str]], *, is_markdown: bool) -> list[str]:
    if is_markdown:
        rule = ["---", *["---:"] * (len(head) - 1)]
        return [f"| {' | '.join(cells)} |" for cells in (head, rule, *rows)]
    widths = [max(len(row[place]) for row in (head, *rows)) for place in range(len(head))]
    return [
        "  ".join(cell.rjust(width) if place else cell.ljust(width)
                  for place, (cell, width) in enumerate(zip(row, widths, strict=True)))
        for row in (head, *rows)
    ]  # fmt: skip


def _picture(report: dict[str, Any]) -> str:
    load, rows = next(iter(report["loads"].items()))
    drawn = [
        Polyline(
            name=name,
            points=tuple((most, part["95"]) for most, part in zip(EDGES[1:], row["by_size"], strict=True)),
        )
        for name, row in rows.items()
    ]
    ticks = [(size, _size(size)) for size in (10_000, 30_000, 80_000, 200_000, 1_000_000, 5_000_000, 30_000_000)]
    return lines(
        f"Web-search flows at a load of {load}, {report['hosts']} hosts",
        drawn,
        x_axis="size of the flows, up to",
        y_axis="times as long as alone, 95th percentile",
        x_ticks=ticks,
    )


if __name__ == "__main__":
    main()
