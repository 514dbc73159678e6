"""Speed of the packet engine: CPU nanoseconds per packet-hop, row by row, beside the reference engine and ns-3.

    python benchmarks/packet_engine.py [--rounds 7] [--only NAME]... [--json FILE] [--markdown]

A packet-hop is one packet, data or control, that crosses one link. Every row lives in a process of its own; the rounds
of all rows are interleaved, so that a noisy minute of the machine spoils a round and not a row. Medians are shown.
All rows live at the same time and hold 4 GB together, 1 GB of it in ns-3.
Leaves out: wall-clock time, and more than one thread.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from contextlib import ExitStack
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final, Self

from machine import circumstances
from rows import ROWS
from tables import markdown, text

__all__ = ["main"]

HERE: Final = Path(__file__).resolve().parent
NS3: Final = "ns3"
RATIOS: Final = (
    ("reference engine / packet engine", "small-reference", "small", None),
    ("ns-3 / packet engine", NS3, "as-ns3", ">= 50"),
    ("series on / off", "series", "permutation", None),
    ("16,384 flowlets / ECMP", "flowlets", "permutation", "<= 1.5"),
    ("one flow among 8,192 hosts / among 128", "one-flow-8192", "one-flow", None),
    ("8,192 hosts / 128 hosts, sprayed", "spray-8192", "spray", None),
    ("50 ns / 1 us to a host", "short-links", "permutation", None),
)  # fmt: skip


class _Worker:
    """A process that runs one row each time it is asked."""

    def __init__(self, name: str) -> None:
        script = ["ns3_permutation.py"] if name == NS3 else ["measure.py", name]
        command = [sys.executable, str(HERE / script[0]), *script[1:]]
        self.name = name
        self.errors = tempfile.TemporaryFile("w+")  # noqa: SIM115 - closed with the process; ns-3 warns at every start
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.errors, text=True
        )
        self.prepared = self._answer()
        self.runs: list[dict[str, Any]] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.stdin is not None:
            self.process.stdin.close()
        self.process.wait()
        self.errors.close()

    def run(self) -> None:
        if self.process.stdin is None:
            raise SystemExit(f"{self.name}: no pipe to the process")
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        self.runs.append(self._answer())

    def _answer(self) -> dict[str, Any]:
        if self.process.stdout is None:
            raise SystemExit(f"{self.name}: no pipe from the process")
        for line in self.process.stdout:
            if line.startswith("{"):  # ns-3 has more to say
                answer: dict[str, Any] = json.loads(line)
                return answer
        code = self.process.wait()
        self.errors.seek(0)
        raise SystemExit(f"{self.errors.read()}{self.name}: the process ended with code {code}")


def main() -> None:
    """Run the rows and print the tables."""
    arguments = _arguments()
    names = arguments.only or [*ROWS, *([NS3] if find_spec("ns") is not None else [])]
    if NS3 not in names and not arguments.only:
        print("ns-3 is not installed (pip install 'weftwork[bench]'): no comparison with it")
    figures = _measure(names, arguments.rounds)
    if len({figures[name]["digest"] for name in ("small", "small-reference") if name in figures}) > 1:
        raise SystemExit("the two engines differ in their results")
    report = {**circumstances(arguments.rounds), "rows": figures}
    report["ratios"] = _ratios(figures)
    print(markdown(report) if arguments.markdown else text(report))
    if arguments.json is not None:
        arguments.json.write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--rounds", type=_positive, default=7, help="runs of each row; the table shows the median")
    parser.add_argument("--only", action="append", choices=[*ROWS, NS3], help="only this row; may be repeated")
    parser.add_argument("--json", type=Path, help="also write all figures here")
    parser.add_argument("--markdown", action="store_true", help="print tables for docs/models/speed.md")
    return parser.parse_args()


def _positive(text_: str) -> int:
    number = int(text_)
    if number < 1:
        raise argparse.ArgumentTypeError(f"found {number}, wanted at least 1")
    return number


def _measure(names: list[str], rounds: int) -> dict[str, dict[str, Any]]:
    with ExitStack() as stack:
        workers = [stack.enter_context(_Worker(name)) for name in names]
        for round_ in range(rounds):
            for worker in workers:
                if sys.stderr.isatty():
                    print(f"\r\033[Kround {round_ + 1} of {rounds}: {worker.name}", end="", file=sys.stderr)
                worker.run()
        if sys.stderr.isatty():
            print("\r\033[K", end="", file=sys.stderr)
        return {worker.name: _figures(worker) for worker in workers}


def _figures(worker: _Worker) -> dict[str, Any]:
    last = worker.runs[-1]
    if len({run.get("digest") for run in worker.runs}) > 1:
        raise SystemExit(f"{worker.name}: rounds differ in their results")
    per_hop = [run["run_s"] * 1e9 / run["packet_hops"] for run in worker.runs]
    figures = {
        **worker.prepared,
        **last,
        "run_s": statistics.median(run["run_s"] for run in worker.runs),
        "set_up_s": statistics.median(run["set_up_s"] for run in worker.runs),
        "ns_per_hop": statistics.median(per_hop),
        "ns_per_hop_least": min(per_hop),
        "ns_per_hop_rounds": per_hop,
        "pauses_per_100_data": 100 * last["pauses"] / last["data_packets"],
    }
    if worker.name == NS3:
        return figures
    row = ROWS[worker.name]
    figures["text"] = row.text + (f", {last['samples']:,} samples" if last["samples"] else "")
    figures["target_ns_per_hop"] = row.target_ns
    lacks = []
    if row.target_ns is not None and figures["ns_per_hop"] > row.target_ns:
        lacks.append(f"{figures['ns_per_hop'] / row.target_ns - 1:.0%} too slow")
    if row.peak_rss_bytes is not None and last["peak_rss_bytes"] > row.peak_rss_bytes:
        lacks.append(f"more than {row.peak_rss_bytes / 2**20:.0f} MiB")
    if figures["pauses_per_100_data"] < row.least_pauses:
        lacks.append("too few pauses")
    figures["lacks"] = lacks
    return figures


def _ratios(figures: dict[str, dict[str, Any]]) -> list[dict[str, Any]]:
    return [
        {
            "text": what,
            "of_medians": figures[over]["ns_per_hop"] / figures[under]["ns_per_hop"],
            "of_least": figures[over]["ns_per_hop_least"] / figures[under]["ns_per_hop_least"],
            "wanted": wanted,
        }
        for what, over, under, wanted in RATIOS
        if over in figures and under in figures
    ]


if __name__ == "__main__":
    main()
