"""CPU time of commands in two trees, measured in turns: what a change has made of it.

Every row is a process of its own, user and system time together; the first round warms the caches and is left out. Each
tree needs its own core (`_native*.so` beside `weftwork/engine`), and its compiled modules are kept apart.
Usage: python benchmarks/command_time.py OLD_TREE NEW_TREE [--rounds 7] [--json]
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

from machine import circumstances

# Name of each row, and words of the command; RUN stands for a folder that the command writes.
COMMANDS: Final[dict[str, tuple[str, ...]]] = {
    "--help": ("--help",),
    "list": ("list",),
    "list topology": ("list", "topology"),
    "run --help": ("run", "--help"),
    "quick start": ("run", "examples/quickstart.yaml", "-o", "RUN"),
}
BEGIN: Final = "from weftwork import cli; getattr(cli, 'program', cli.main)()"  # as the script that pip installs


def cpu_s(tree: Path, words: tuple[str, ...], kept: Path) -> float:
    """CPU time of a command of a tree, s.

    Parameters
    ----------
    tree : a checkout with its core
    words : of the command
    kept : folder of its compiled modules
    """
    where = os.environ | {"PYTHONPATH": str(tree / "src"), "PYTHONPYCACHEPREFIX": str(kept)}
    where.pop("PYTHONDONTWRITEBYTECODE", None)
    with tempfile.TemporaryDirectory() as folder:
        asked = [word.replace("RUN", f"{folder}/run") for word in words]
        process = subprocess.Popen(
            [sys.executable, "-c", BEGIN, *asked], cwd=tree, env=where, stdout=subprocess.DEVNULL
        )
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{tree}: weftwork {' '.join(words)} ended with {process.returncode}")
    return used.ru_utime + used.ru_stime


def main() -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("old", type=Path)
    parser.add_argument("new", type=Path)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    trees = (given.old.resolve(), given.new.resolve())
    rows = []
    with tempfile.TemporaryDirectory() as kept:
        for name, words in COMMANDS.items():
            rounds = [
                [cpu_s(tree, words, Path(kept, str(place))) for place, tree in enumerate(trees)]
                for _ in range(given.rounds + 1)
            ][1:]
            old_s, new_s = (statistics.median(taken) for taken in zip(*rounds, strict=True))
            rows.append({"command": name, "old_s": old_s, "new_s": new_s, "ratio": new_s / old_s})
    if given.json:
        print(json.dumps(circumstances(given.rounds) | {"rows": rows}, indent=2))
        return
    print("| command | old | new | ratio |\n|---|---|---|---|")
    for row in rows:
        print(f"| {row['command']} | {row['old_s']:.3f} s | {row['new_s']:.3f} s | {row['ratio']:.2f} |")


if __name__ == "__main__":
    main()
