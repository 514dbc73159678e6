"""How far off the estimate of memory is: the most memory of a run's process beside what was told before it.

Every row is a run of its own by the command line, so that nothing is shared. Prints a table; with --markdown that of
the documentation.
Usage: python benchmarks/run_memory.py [--markdown] [--only TEXT]
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parent.parent
# What wait4(2) tells of a process counts the one that started it, so that it says itself what it had at its most.
COMMAND: Final = """\
import sys
from weftwork.base.memory import peak_memory_bytes
from weftwork.cli import main
try:
    main()
finally:
    print(peak_memory_bytes(), file=sys.stderr)
"""
LARGE: Final = """\
schema: 3
fabric: {topology: fat-tree, tiers: 3, radix: 8, link_rate: 400Gbps}
transport: {congestion_control: fixed-window, load_balancing: ecmp}
traffic: {pattern: permutation, size: 4KiB}
"""
TRAINING: Final = """\
schema: 3
fabric: {topology: rail-optimized, gpus: 64, node: dgx-h100, switch: tomahawk-6}
training: {model: llama-3-70b, tensor: 8, pipeline: 4, micro_batch: 1, global_batch: 32, recompute: selective}
"""


def _alone(path: Path) -> tuple[str, ...]:
    """The setting with which the scenario of a sweep is a run."""
    return ("sweep=null",) if "\nsweep:" in path.read_text(encoding="utf-8") else ()


CASES: Final[tuple[tuple[str, str, tuple[str, ...]], ...]] = (
    *((str(path.relative_to(ROOT)), "", _alone(path)) for path in sorted(ROOT.glob("examples/**/*.yaml"))),
    ("640,000 messages", LARGE, ("traffic.repeat=5000",)),
    ("8,192 hosts", LARGE, ("fabric.radix=32",)),
    ("1,047,552 queue pairs", LARGE, ("fabric.radix=16", "traffic.pattern=all-to-all")),
    ("384,000 messages as flows", LARGE, ("traffic.repeat=3000", "engine.fidelity=flow")),
    ("262,656 links as flows", LARGE, (
        "fabric={topology: leaf-spine, leaves: 512, spines: 512, hosts_per_leaf: 1, link_rate: 400Gbps}",
        "engine.fidelity=flow",
    )),
    ("50 iterations", TRAINING, ("training.iterations=50",)),
    ("131,072 GPUs, of 324 kinds", TRAINING, ("fabric.gpus=131072", "training.global_batch=32768")),
)  # fmt: skip


def measured(text: str, name: str, settings: tuple[str, ...]) -> tuple[int, int]:
    """Run a case; what was told, and the most memory, both in bytes."""
    with tempfile.TemporaryDirectory() as folder:
        path = ROOT / name
        if text:
            path = Path(folder) / "case.yaml"
            path.write_text(text, encoding="utf-8")
        sets = [part for setting in settings for part in ("--set", setting)]
        command = [sys.executable, "-c", COMMAND, "run", str(path), "--out", f"{folder}/run", *sets]
        ended = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, check=False)
        if ended.returncode != 0:
            raise SystemExit(f"{name}: exit code {ended.returncode}: {ended.stderr}")
        told = json.loads((Path(folder) / "run" / "provenance.json").read_text(encoding="utf-8"))["estimate"]
        return int(told["memory_bytes"]), int(ended.stderr.split()[-1])


def main() -> None:
    """Run every case and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--markdown", action="store_true")
    parser.add_argument("--only", default="")
    asked = parser.parse_args()
    if asked.markdown:
        print("| run | told MiB | measured MiB | told / measured |\n| --- | ---: | ---: | ---: |")
    for name, text, settings in CASES:
        if asked.only not in name:
            continue
        told, most = (size / 2**20 for size in measured(text, name, settings))
        row = (name, f"{told:,.0f}", f"{most:,.0f}", f"{told / most:.2f}")
        form = "| {} | {} | {} | {} |" if asked.markdown else "{:40} {:>8} {:>8} {:>6}"
        print(form.format(*row), flush=True)


if __name__ == "__main__":
    main()
