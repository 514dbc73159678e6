"""One iteration of training from 16,384 to 1,048,576 GPUs: the whole command, as a user types it.

Each row is a process of its own: reading, building the fabric, the programs, folding, the iteration, the run folder.
CPU time and peak memory are those of that process and its children.

    python benchmarks/training_scale.py            # to 131,072 GPUs
    python benchmarks/training_scale.py --full     # and 1,048,576

Leaves out: the page of the run.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from weftwork.store.runs import open_run

SCENARIO = Path(__file__).with_suffix(".yaml")
ROUTINGS = {
    "sprayed": {"transport.load_balancing": "spray", "transport.reorder_tolerant": "true"},
    "deterministic": {"transport.port_selection": "destination-modulo"},
    "hashed": {"transport.load_balancing": "ecmp"},
}
SEQUENCES_OF_A_COPY = 16  # micro batches of each pipeline
RANKS_OF_A_COPY = 8 * 16  # tensor x pipeline
MOST_OF_A_SWITCH = 524_288  # GPUs that three tiers of 128 ports join; beyond, switches of twice the ports
TARGETS_S = {16_384: 10, 131_072: 30, 1_048_576: 60}  # of CPU time, for the whole command


@dataclass(frozen=True, kw_only=True)
class Seen:
    """One command: the iteration that it found, and what it took."""

    iteration_s: float
    folding: str
    approximate: str
    cpu_s: float
    wall_s: float
    peak_bytes: int


def settings_of(gpus: int, routing: str) -> dict[str, str]:
    """Keys of the scenario that make a row.

    Parameters
    ----------
    gpus : a multiple of those of a copy
    routing : one of `ROUTINGS`
    """
    batch = gpus // RANKS_OF_A_COPY * SEQUENCES_OF_A_COPY
    settings = {"fabric.gpus": str(gpus), "training.global_batch": str(batch), **ROUTINGS[routing]}
    if gpus > MOST_OF_A_SWITCH:
        settings["fabric.switch"] = "tomahawk-6"
    return settings


def measure(gpus: int, routing: str) -> Seen:
    """Run ``weftwork run`` for so many GPUs.

    Parameters
    ----------
    gpus, routing : as for `settings_of`
    """
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, __file__, "--one", str(SCENARIO), f"{folder}/run"]
        for key, value in settings_of(gpus, routing).items():
            command += ["--set", f"{key}={value}"]
        begin_s = time.perf_counter()
        done = subprocess.run(command, check=False, capture_output=True, text=True)
        if done.returncode:
            raise SystemExit(done.stderr)
        wall_s = time.perf_counter() - begin_s
        used = json.loads(done.stdout.splitlines()[-1])
        run = Path(folder) / "run"
        numbers = json.loads((run / "summary.json").read_text(encoding="utf-8"))["numbers"]
        caveats = open_run(run).caveats
    approximate = [caveat.text for caveat in caveats if caveat.subject.endswith(".iteration_ps")]
    folding = [caveat.text for caveat in caveats if caveat.subject == "engine.folding"]
    return Seen(
        iteration_s=numbers["iteration_ps"]["value"] / 1e12,
        folding=" ".join(folding),
        approximate=" ".join(approximate),
        cpu_s=used["cpu_s"],
        wall_s=wall_s,
        peak_bytes=used["peak_bytes"],
    )


def one(arguments: list[str]) -> None:
    """Run ``weftwork run`` in this process and print what it used, as JSON on the last line."""
    from weftwork.cli import main as weftwork

    file, folder, *settings = arguments
    try:
        weftwork(["run", file, "-o", folder, *settings])
    except SystemExit as left:
        if left.code:
            raise
    used = resource.getrusage(resource.RUSAGE_SELF)
    print(json.dumps({"cpu_s": used.ru_utime + used.ru_stime, "peak_bytes": used.ru_maxrss * 1024}))


def main() -> None:
    """Measure all rows and print a table."""
    if sys.argv[1:2] == ["--one"]:
        one(sys.argv[2:])
        return
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--full", action="store_true", help="also 1,048,576 GPUs")
    parser.add_argument("--routing", action="append", choices=list(ROUTINGS), help="only this; may be repeated")
    arguments = parser.parse_args()
    sizes = [16_384, 131_072, *([1_048_576] if arguments.full else [])]
    print("| GPUs | routing | iteration | CPU | target | elapsed | peak memory | between |")
    print("|---:|---|---:|---:|---:|---:|---:|---|")
    for gpus in sizes:
        for routing in arguments.routing or ROUTINGS:
            seen = measure(gpus, routing)
            target = f"{TARGETS_S[gpus]} s" if gpus in TARGETS_S else ""
            between = seen.approximate.partition("between ")[2]
            print(
                f"| {gpus:,} | {routing} | {seen.iteration_s:.3f} s | {seen.cpu_s:.1f} s | {target} "
                f"| {seen.wall_s:.1f} s | {seen.peak_bytes / 2**30:.2f} GiB | {between} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
