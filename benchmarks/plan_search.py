"""What a search for parallel plans takes: two jobs of the documentation, by the command line, with all cores.

Prints a row for each job: plans counted, plans run on the flow engine, seconds of both parts and in all, CPU time.
With `--within SECONDS`: every model of the catalogue on 16 to 16,384 B200 instead, each with that limit of wall time,
so that `run` says how many plans there were when it passed; `--sample N` takes N of them, evenly.
Usage: python benchmarks/plan_search.py [--only TEXT] [--within SECONDS [--sample N]] [--json]
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

from weftwork.workload.models.catalogue import MODELS

JOBS: Final = {
    "Llama 3 70B on 512 GPUs": ("--model", "llama-3-70b", "--node", "dgx-h100", "--gpus", "512"),
    "Llama 3.1 405B on 16,384 GPUs": ("--model", "llama-3-405b", "--node", "dgx-h100", "--gpus", "16384"),
}
GPU_COUNTS: Final = (16, 128, 1_024, 4_096, 16_384)
REFUSED: Final = 2  # exit code of bad input, and of a question without an answer
COMMAND: Final = "import sys; from weftwork.cli import main; sys.exit(main())"


def searched(arguments: tuple[str, ...]) -> dict[str, float] | None:
    """Search once; None where no plan fits."""
    with tempfile.TemporaryDirectory() as folder:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        begin_s = time.perf_counter()
        command = [sys.executable, "-c", COMMAND, "plan", *arguments, "-o", str(Path(folder) / "plan"), "--json"]
        ended = subprocess.run(command, check=False, capture_output=True, text=True)
        wall_s = time.perf_counter() - begin_s
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if ended.returncode == REFUSED and "no plan for" in ended.stderr:
        return None
    ended.check_returncode()
    found = json.loads(ended.stdout)
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


def every_model(within_s: float, sample: int | None) -> dict[str, tuple[str, ...]]:
    """Searches for models of the catalogue with a limit of time."""
    limit = ("--node", "dgx-b200", "--within", f"{within_s:g}s")
    jobs = {
        f"{name} on {gpus:,} GPUs": ("--model", name, "--gpus", str(gpus), *limit)
        for name in MODELS
        for gpus in GPU_COUNTS
    }
    names = list(jobs)
    count = len(names) if sample is None else min(sample, len(names))
    return {name: jobs[name] for name in (names[place * len(names) // count] for place in range(count))}


def main() -> None:
    """Search, and print the rows."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="jobs whose name has this text")
    parser.add_argument("--within", type=float, default=None, metavar="SECONDS")
    parser.add_argument("--sample", type=int, default=None, metavar="N")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    jobs = JOBS if given.within is None else every_model(given.within, given.sample)
    results = {name: searched(arguments) for name, arguments in jobs.items() if given.only in name}
    rows = {name: row for name, row in results.items() if row is not None}
    if given.json:
        print(json.dumps({"cores": os.cpu_count(), "rows": rows}, indent=2))
        return
    print(f"{os.cpu_count()} cores")
    print("| search | plans counted | run | closed forms | flow engine | in all | CPU time |")
    print("|---|---|---|---|---|---|---|")
    for name, row in rows.items():
        seconds = (row["closed_form_s"], row["flow_s"], row["wall_s"], row["cpu_s"])
        cells = " | ".join(f"{length_s:.1f} s" for length_s in seconds)
        print(f"| {name} | {row['counted']:,} | {row['run']} | {cells} |")
    for name in results.keys() - rows.keys():
        print(f"| {name} | no plan fits |  |  |  |  |  |")


if __name__ == "__main__":
    main()
