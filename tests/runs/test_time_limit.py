"""A test that hangs fails, also in native code that keeps the GIL; it says where, and the tests after it are run."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
HANG = """
import ctypes

def test_that_hangs():
    ctypes.PyDLL(None).pause()  # PyDLL keeps the GIL; pause() waits for a signal, and no signal comes

def test_after_it():
    pass
"""


def test_a_test_that_hangs_fails_and_the_next_is_run(tmp_path: Path) -> None:
    (tmp_path / "test_hang.py").write_text(HANG, encoding="utf-8")
    config = ["-c", str(ROOT / "pyproject.toml"), "-p", "helpers.time_limit"]
    command = [sys.executable, "-m", "pytest", *config, "-n", "1", "--timeout=0.2", "test_hang.py"]
    # a hook of the tests around this one may not reach in, and the plugin lies below `tests`
    where = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    where["PYTHONPATH"] = os.pathsep.join([str(ROOT / "tests"), *sys.path])
    done = subprocess.run(command, cwd=tmp_path, env=where, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 1, done.stdout + done.stderr
    assert "crashed while running '::test_that_hangs'" in done.stdout
    assert "1 failed, 1 passed" in done.stdout
    assert 'test_hang.py", line 5 in test_that_hangs' in done.stderr
