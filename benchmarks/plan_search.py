"""What a search for parallel plans takes: two jobs of the documentation, by the command line, with all cores.

Prints a row for each job: plans counted, plans run on the flow engine, seconds of both parts and in all, CPU time.
Usage: python benchmarks/plan_search.py [--only TEXT] [--json]
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Final

JOBS: Final = {
    "Llama 3 70B on 512 GPUs": ("--model", "llama-3-70b", "--node", "dgx-h100", "--gpus", "512"),
    "Llama 3.1 405B on 16,384 GPUs": ("--model", "llama-3-405b", "--node", "dgx-h100", "--gpus", "16384"),
}
COMMAND: Final = "import sys; from weftwork.cli import main; sys.exit(main())"


def searched(arguments: tuple[str, ...]) -> dict[str, float]:
    """Search once."""
    with tempfile.TemporaryDirectory() as folder:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        begin_s = time.perf_counter()
        command = [sys.executable, "-c", COMMAND, "plan", *arguments, "-o", str(Path(folder) / "plan"), "--json"]
        told = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        wall_s = time.perf_counter() - begin_s
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
    found = json.loads(told)
    cpu_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return {
        "counted": found["counted"],
        "run": found["run"],
        "closed_form_s": found["closed_form_s"],
        "flow_s": found["flow_s"],
        "wall_s": wall_s,
        "cpu_s": cpu_s,
        "best_iteration_s": found["best"][0]["iteration_ps"] / 1e12,
    }


def main() -> None:
    """Search, and print the rows."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="jobs whose name has this text")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    rows = {name: searched(arguments) for name, arguments in JOBS.items() if given.only in name}
    if given.json:
        print(json.dumps({"cores": os.cpu_count(), "rows": rows}, indent=2))
        return
    print(f"{os.cpu_count()} cores")
    print("| search | plans counted | run | closed forms | flow engine | in all | CPU time |")
    print("|---|---|---|---|---|---|---|")
    for name, row in rows.items():
        seconds = (row["closed_form_s"], row["flow_s"], row["wall_s"], row["cpu_s"])
        cells = " | ".join(f"{one:.1f} s" for one in seconds)
        print(f"| {name} | {row['counted']:,} | {row['run']} | {cells} |")


if __name__ == "__main__":
    main()
