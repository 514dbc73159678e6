"""Ctrl-C and SIGTERM: a program ends with the right code, in time, and removes what is unfinished."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from weftwork.base.stop import Stopped, state, unfinished

pytestmark = pytest.mark.usefixtures("python_hears_sigint")


STUBBORN = """
import select, sys
from pathlib import Path
from weftwork.base import stop
stop.GRACE_S = 0.05
def command():
    stop.state.is_keeping = sys.argv[2] == "keeping"
    with stop.unfinished(Path(sys.argv[1])) as folder:
        folder.mkdir()
        told = False
        while True:  # as C code does, and a library that takes any exception for its own
            try:
                if not told:
                    told = True
                    print("ready", flush=True)
                select.select([], [], [])
            except KeyboardInterrupt:
                pass
sys.exit(stop.stoppable(command, is_program=True))
"""


LOADING = """
import enum, os, sys
from importlib.machinery import ExtensionFileLoader
from traceback import walk_stack
from weftwork.base.stop import stoppable
number = int(sys.argv[1])
ordinary = enum.EnumMeta.__setattr__
def pressed(owner, *arguments):
    if any(frame.f_code is ExtensionFileLoader.exec_module.__code__ for frame, _ in walk_stack(None)):
        enum.EnumMeta.__setattr__ = ordinary
        print("pressed", flush=True)
        os.kill(os.getpid(), number)
    ordinary(owner, *arguments)
def command():
    enum.EnumMeta.__setattr__ = pressed
    import duckdb  # its native code builds enumerations of Python
    while True:
        pass
sys.exit(stoppable(command, is_program=True))
"""


def test_what_is_unfinished_goes_with_an_exception_and_stays_without(tmp_path: Path) -> None:
    folder, kept = tmp_path / "half", tmp_path / "kept"

    def half() -> None:
        with unfinished(folder):
            folder.mkdir()
            (folder / "file").touch()
            raise Stopped(signal.SIGTERM)

    with pytest.raises(KeyboardInterrupt):
        half()
    with unfinished(kept):
        kept.touch()
    assert list(tmp_path.iterdir()) == [kept]
    assert not state.files


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("mode", ["plain", "keeping"])
def test_what_does_not_end_by_itself_is_ended(tmp_path: Path, number: int, mode: str) -> None:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", STUBBORN, str(tmp_path / "half"), mode]
    with subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline() == "ready\n"
        assert (tmp_path / "half").is_dir()
        process.send_signal(number)
        if mode == "keeping":  # the first is a wish, and the program says so where it takes its time
            assert "what was done is being written" in process.stderr.readline()
            assert process.poll() is None
            process.send_signal(number)
        assert process.wait(timeout=60) == 128 + number
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_loading_of_a_native_library_is_not_disturbed(number: int) -> None:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", LOADING, str(number)]
    ended = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=60)
    assert ended.stdout == "pressed\n"
    assert (ended.returncode, ended.stderr) == (128 + number, f"stopped by {signal.Signals(number).name}\n")
