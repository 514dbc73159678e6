"""The end of a command's process: what was asked for happens, and the exit code and the output arrive.

Leaves out: signals, which `tests/runs/base/test_stop.py` sends.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

BEGIN: Final = "import sys, threading, time; from weftwork.cli import program; sys.argv = ['weftwork', *sys.argv[1:]];"
AT_EXIT: Final = f"import atexit; atexit.register(print, 'asked for'); {BEGIN} program()"
THREAD: Final = f"""
{BEGIN}
is_over = threading.Event()
threading.Thread(target=lambda: (is_over.wait(), print("has worked"))).start()
threading.Thread(target=lambda: (threading.main_thread().join(), is_over.set()), daemon=True).start()
program()
"""
PROFILER: Final = f"""
{BEGIN}
import cProfile
watch = cProfile.Profile()
watch.enable()
try:
    program()
finally:
    watch.disable()
    print("measured")
"""


@pytest.mark.parametrize(("script", "last"), [(AT_EXIT, "asked for"), (THREAD, "has worked"), (PROFILER, "measured")])
def test_a_process_ends_behind_all_that_others_do(script: str, last: str) -> None:
    done = subprocess.run([sys.executable, "-c", script, "list"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    first, *_, end = done.stdout.splitlines()
    assert first
    assert end == last


def test_a_mistake_keeps_its_exit_code() -> None:
    done = subprocess.run(
        [sys.executable, "-c", AT_EXIT, "list", "nothing-like-it"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert done.stdout.splitlines() == ["asked for"]
    assert done.stderr


PACKETS: Final = """
schema: 3
fabric: {topology: leaf-spine, leaves: 2, spines: 1, hosts_per_leaf: 2, link_rate: 100Gbps}
transport: {congestion_control: dcqcn, load_balancing: ecmp}
traffic: {pattern: permutation, size: 64KiB}
"""


@pytest.mark.parametrize("function", ["main", "program"])
@pytest.mark.parametrize("fidelity", ["packet", "flow"])
def test_nobody_but_the_command_speaks_at_the_end(function: str, fidelity: str, tmp_path: Path) -> None:
    """Libraries report on standard error what is left when a process ends: NumPy, Arrow, Numba, DuckDB, nanobind."""
    (tmp_path / "small.yaml").write_text(f"{PACKETS}engine: {{fidelity: {fidelity}}}\n", encoding="utf-8")
    script = f"from weftwork.cli import {function}; {function}()"
    done = subprocess.run(
        [sys.executable, "-c", script, "run", "small.yaml", "--out", "run"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
