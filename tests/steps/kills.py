"""End commands at random instants by SIGINT, SIGTERM and SIGKILL: nothing half-written passes for whole.

Half of the instants are counted from the start, half from the first file that a command makes. Half of the signals come
once, the others two or three times at random gaps; SIGINT goes to the whole group, as from a terminal. What holds after
each: no process is left; a run folder that says ``complete`` equals that of an undisturbed run in all tables and
numbers, another says what it is and can be read, or is refused with exit code 2; a page, an export or a plan is there
whole or not at all; a sweep or a design goes on, and ends as an undisturbed one; after SIGINT and SIGTERM no temporary
file is left, nothing was said but who stopped it, and the end came in time. Prints how many ended when, and the worst
times.
Usage: python tests/steps/kills.py [RUNS] [SEED] [--turn T]
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

import pyarrow.parquet as pq

sys.path.insert(0, str(Path(__file__).parents[1]))

from planner.plan import TURNS

SEED_OF_TURNS: Final = 1  # chosen: any, so that the ten turns share one list of cases
START: Final = "import signal; signal.signal(2, signal.default_int_handler); from weftwork.cli import main; main()"
WITHIN_CPU_S: Final = 1.5  # a second is promised where a core is free; half of one for caches that others empty
GAPS_S: Final = (0.005, 0.02, 0.05, 0.09, 0.11, 0.15, 0.3, 0.6)  # about what counts as one press, and beyond
GONE_S: Final = 5.0  # chosen: in which workers have heard of the end of their parent, where others keep all cores busy
WITHIN_S: Final = 20.0  # chosen: where others keep all cores busy
TICKS: Final = os.sysconf("SC_CLK_TCK")
HEAD: Final = """schema: 3
name: kills
transport: {congestion_control: fixed-window}
fabric: {topology: leaf-spine, leaves: 4, spines: 4, hosts_per_leaf: 8, link_rate: 100Gbps}
"""
SCENARIOS: Final = {
    "traffic": HEAD + "traffic: {pattern: poisson, load: 0.5, flows: 2000, sizes: web-search}\n",
    "reference": HEAD + "traffic: {pattern: incast, senders: 7, size: 300KB}\nengine: {fidelity: reference}\n",
    "collective": HEAD + "collective: {operation: all-reduce, algorithm: ring, gpus: 16, size: 64MB}\n",
    "training": """schema: 3
name: kills
fabric: {topology: rail-optimized, gpus: 64, node: dgx-h100, switch: tomahawk-5}
training: {model: llama-3-8b, tensor: 8, pipeline: 2, micro_batch: 1, global_batch: 32}
reliability: {runs: 1000}
""",
}


class Ended(NamedTuple):
    code: int
    took_s: float
    took_cpu_s: float
    errors: str


class Instant(NamedTuple):
    is_of_writing: bool  # counted from the first file or folder that the command makes, not from its start
    after_s: float
    gaps_s: tuple[float, ...] = ()  # to each further signal

    def __str__(self) -> str:
        again = f", again after {', '.join(map(str, self.gaps_s))} s" if self.gaps_s else ""
        return f"{self.after_s:.3f} s after its {'first file' if self.is_of_writing else 'start'}{again}"


class Command(NamedTuple):
    arguments: tuple[str, ...]
    writes: str  # name of what it leaves in its folder
    equal: str = ""  # of a folder that goes on: the file that has to be as that of an undisturbed command
    is_whole: bool = False  # the folder is there whole or not at all


DESIGN: Final = ("topology=rail-only,rail-optimized", "switch=spectrum-4", "link_rate=400Gbps", "planes=1",
                 "oversubscription=1,2")  # fmt: skip


def commands() -> dict[str, Command]:
    runs = {name: Command(("run", f"../{name}.yaml", "-o", "out"), "out") for name in SCENARIOS}
    return {
        **runs,
        "seeds": Command(("run", "../reference.yaml", "-o", "out", "--seeds", "3"), "out"),
        "report": Command(("report", "../whole-traffic/out", "-o", "page.html"), "page.html"),
        "compared": Command(
            ("report", "../whole-traffic/out", "../whole-reference/out", "-o", "page.html"), "page.html"
        ),
        "export": Command(("topology", "../training.yaml", "--export", "fabric.json"), "fabric.json"),
        "plan": Command(
            ("plan", "--model", "llama-3-8b", "--node", "dgx-h100", "--gpus", "8", "-j", "2", "-o", "out"),
            "out",
            is_whole=True,
        ),
        "sweep": Command(
            ("sweep", "../training.yaml", "--set", "training.micro_batch=1,2", "-j", "2", "-o", "out"),
            "out",
            equal="table.csv",
        ),
        "design": Command(
            (
                "design",
                "../training.yaml",
                *(word for text in DESIGN for word in ("--only", text)),
                "-j",
                "2",
                "-o",
                "out",
            ),
            "out",
            equal="result.json",
        ),
    }


def errors_of(folder: Path) -> Path:
    return folder.with_name(f"{folder.name}.errors")


def started(arguments: tuple[str, ...], folder: Path) -> subprocess.Popen[bytes]:
    with errors_of(folder).open("wb") as errors:
        return subprocess.Popen(
            [sys.executable, "-c", START, *arguments],
            cwd=folder,
            stdout=subprocess.DEVNULL,
            stderr=errors,
            start_new_session=True,
        )


def ended(process: subprocess.Popen[bytes], number: int, instant: Instant, folder: Path) -> Ended | None:
    """End a command at an instant; None where it had ended by itself."""
    try:
        while instant.is_of_writing and not any(folder.iterdir()) and process.poll() is None:
            with suppress(subprocess.TimeoutExpired):
                process.wait(timeout=0.001)
        process.wait(timeout=instant.after_s)
    except subprocess.TimeoutExpired:
        began_s = time.monotonic()
        spent = Path(f"/proc/{process.pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
        _signal(process, number)
        again = threading.Thread(target=_signal_again, args=(process, number, instant.gaps_s))
        again.start()
        with Timer(60.0, process.kill):
            _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        again.join()
        took_s = time.monotonic() - began_s
        took_cpu_s = usage.ru_utime + usage.ru_stime - (int(spent[11]) + int(spent[12])) / TICKS
        told = errors_of(folder).read_text(encoding="utf-8")
        return Ended(code=process.returncode, took_s=took_s, took_cpu_s=took_cpu_s, errors=told)
    return None


def _signal(process: subprocess.Popen[bytes], number: int) -> None:
    """Send a signal: that of Ctrl-C to the whole group, as a terminal does."""
    with suppress(ProcessLookupError):
        if number == signal.SIGINT:
            os.killpg(process.pid, number)
        else:
            os.kill(process.pid, number)


def _signal_again(process: subprocess.Popen[bytes], number: int, gaps_s: tuple[float, ...]) -> None:
    for gap_s in gaps_s:
        time.sleep(gap_s)
        if process.returncode is None:
            _signal(process, number)


def left_processes(session: int) -> list[int]:
    """Processes of a session that have not ended after a while."""
    until_s = time.monotonic() + GONE_S
    while (found := _processes_of(session)) and time.monotonic() < until_s:
        time.sleep(0.01)
    return found


def _processes_of(session: int) -> list[int]:
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            state, _, _, of, *_ = (folder / "stat").read_text(encoding="utf-8").rpartition(")")[2].split()
            if int(of) == session and state != "Z":
                found.append(int(folder.name))
    return found


class Timer(threading.Timer):
    """Ends what hangs, where the body takes too long."""

    def __enter__(self) -> None:
        self.start()

    def __exit__(self, *_: object) -> None:
        self.cancel()


def tables(folder: Path) -> dict[str, object]:
    return {file.name: pq.read_table(file) for file in folder.glob("*.parquet")}


def status_of(run: Path, whole: Path, folder: Path) -> str:
    """What a run's folder says it is; raises where it passes for what it is not."""
    asked = subprocess.run(
        [sys.executable, "-c", START, "compare", str(run), str(whole), "--json"],
        cwd=folder,
        capture_output=True,
        check=False,
    )
    if asked.returncode == 2:
        return "refused"
    assert asked.returncode == 0, asked.stderr.decode()
    told = json.loads(asked.stdout)
    status = str(told["runs"][0]["status"])
    if status == "complete":
        for part in sorted(path.relative_to(whole) for path in [whole, *whole.glob("seed-*")]):
            assert tables(run / part) == tables(whole / part), f"{run / part} is not whole"
        assert all(len(set(number["values"])) == 1 for number in told["numbers"])
    return status


def is_of_python_itself(errors: str) -> bool:
    """Whether the signal came before Weftwork was there to hear it."""
    lines = errors.splitlines()
    return lines[-1:] == ["KeyboardInterrupt"] and not any("weftwork/" in line for line in lines)


def after(name: str, command: Command, number: int, found: Ended, folder: Path, root: Path) -> str:
    """Look at what a command has left; returns what that is."""
    hidden = list(folder.rglob(".*"))
    if number != signal.SIGKILL:
        has_workers = command.is_whole or bool(command.equal)  # whose whole CPU time counts as that of their parent
        is_in_time = (has_workers or found.took_cpu_s <= WITHIN_CPU_S) and found.took_s <= WITHIN_S
        assert is_in_time, f"took {found.took_s:.2f} s to end, {found.took_cpu_s:.2f} s of CPU"
        assert not hidden, f"left {hidden}"
        is_right = found.code in (0, 128 + number, -number) or is_of_python_itself(found.errors)
        assert is_right, f"left with {found.code}: {found.errors}"
        is_quiet = not any(word in found.errors for word in ("Traceback", "Error", "Exception"))
        assert is_quiet or is_of_python_itself(found.errors), found.errors
    whole = root / f"whole-{name}" / command.writes
    left = folder / command.writes
    for path in hidden:
        if path.is_dir():
            seed = re.match(r"\.(seed-\d+)-", path.name)
            assert status_of(path, whole / seed[1] if seed else whole, folder) in {"refused", "complete", "interrupted"}
    what = "nothing left"
    if left.is_file():
        assert left.read_bytes() == whole.read_bytes(), f"{left} is not whole"
        what = "a whole file"
    elif left.exists() and command.is_whole:
        assert {path.name for path in left.iterdir()} == {path.name for path in whole.iterdir()}, f"{left} is not whole"
        what = "a whole folder"
    elif left.exists() and command.equal:
        what = went_on(command, folder, whole)
    elif left.exists():
        what = f"a run, {status_of(left, whole, folder)}"
    is_late = found.code == 0  # the signal came when all was written and the process about to end
    assert not is_late or what in {"a whole file", "a whole folder", "what goes on", "a run, complete"}, what
    return what


def went_on(command: Command, folder: Path, whole: Path) -> str:
    """Go on with what was ended; its result is that of an undisturbed command."""
    again = started(command.arguments, folder)
    assert again.wait() == 0, f"does not go on: {errors_of(folder).read_text(encoding='utf-8')}"
    now, usual = (result_of(path / command.equal) for path in (folder / command.writes, whole))
    assert now == usual, f"{command.equal} differs from that of an undisturbed command"
    return "what goes on"


def result_of(file: Path) -> object:
    """What a result says, without how it came about."""
    if file.suffix != ".json":
        return file.read_text(encoding="utf-8")
    told = json.loads(file.read_text(encoding="utf-8"))
    return {key: value for key, value in told.items() if key != "kept"}


def case(
    known: dict[str, Command], root: Path, place: int, name: str, number: int, instant: Instant
) -> tuple[str, float, float]:
    """End one command; returns what was left, in words, and how long the end took."""
    folder = root / f"case-{place}"
    folder.mkdir()
    process = started(known[name].arguments, folder)
    found = ended(process, number, instant, folder)
    what, took_s, took_cpu_s = "had ended by itself", 0.0, 0.0
    if found is not None:
        signal_name, took_s, took_cpu_s = signal.Signals(number).name, found.took_s, found.took_cpu_s
        try:
            left = left_processes(process.pid)
            assert not left, f"left processes {left}"
            what = f"{signal_name}: {after(name, known[name], number, found, folder, root)}"
        except AssertionError as error:
            print(f"case {place}: {name}, {signal_name} {instant}: {error}", flush=True)
            raise
    shutil.rmtree(folder)
    return what, took_s, took_cpu_s


def main() -> None:
    """Run every case; the first that does not hold ends the script with what was wrong."""
    signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored in the background of a shell
    asked = parsed()
    runs, seed = asked.runs, asked.seed
    if seed is None:
        seed = SEED_OF_TURNS if asked.turn is not None else random.randrange(10**6)
    print(f"seed {seed}: python tests/steps/kills.py {runs} {seed}", flush=True)
    draw = random.Random(seed)
    known = commands()
    with tempfile.TemporaryDirectory(prefix="weftwork-kills-") as place:
        root = Path(place)
        os.environ["WEFTWORK_CACHE_DIR"] = str(root / "cache")
        for name, text in SCENARIOS.items():
            (root / f"{name}.yaml").write_text(text, encoding="utf-8")
        lengths_s: dict[str, float] = {}
        for name, command in known.items():
            folder = root / f"whole-{name}"
            folder.mkdir()
            began_s = time.monotonic()
            process = started(command.arguments, folder)
            assert process.wait() == 0, f"{name}: see {folder}.errors"
            lengths_s[name] = time.monotonic() - began_s
        cases = []
        for turn in range(runs):
            name = draw.choice(list(known))
            number = draw.choice((signal.SIGINT, signal.SIGTERM, signal.SIGKILL))
            is_of_writing = turn % 2 == 1
            longest_s = lengths_s[name] * (0.6 if name == "seeds" else 0.1) if is_of_writing else 1.05 * lengths_s[name]
            gaps_s = tuple(draw.choice(GAPS_S) for _ in range(draw.choice((0, 0, 1, 2))))
            after_s = draw.uniform(0, longest_s)
            cases.append((name, number, Instant(is_of_writing=is_of_writing, after_s=after_s, gaps_s=gaps_s)))
        places = range(runs) if asked.turn is None else range(asked.turn % TURNS, runs, TURNS)
        with ThreadPoolExecutor(max_workers=2) as pool:
            told = list(pool.map(lambda place: case(known, root, place, *cases[place]), places))
        cases = [cases[place] for place in places]
    for what, count in sorted(Counter(what for what, _, _ in told).items()):
        print(f"{count:>4}  {what}")
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGKILL):
        took = [
            (wall_s, 0.0 if known[name].is_whole or known[name].equal else cpu_s)
            for (_, wall_s, cpu_s), (name, each, _) in zip(told, cases, strict=True)
            if each == number
        ]
        if took:
            wall_s, cpu_s = (max(column) for column in zip(*took, strict=True))
            print(f"{number.name} ended the slowest in {wall_s:.2f} s, {cpu_s:.2f} s of CPU")
    print(f"bounds for SIGINT and SIGTERM: {WITHIN_S} s, and {WITHIN_CPU_S} s of CPU")
    print(
        f"{len(cases)} of {runs} runs ended at random instants, seed {seed}:"
        " no half-written folder passes for a whole one"
    )


def parsed() -> argparse.Namespace:
    """The arguments, as the docstring of the file names them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", nargs="?", type=int, default=100)
    parser.add_argument("seed", nargs="?", type=int)
    parser.add_argument("--turn", type=int, help="of every ten runs this one alone")
    return parser.parse_args()


if __name__ == "__main__":
    main()
