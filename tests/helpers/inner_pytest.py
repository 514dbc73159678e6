"""A session of pytest inside a test: on files of its own, with plugins of the suite."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

__all__ = ["inner_pytest"]

TESTS = Path(__file__).parents[1]


def inner_pytest(
    folder: Path, files: Mapping[str, str], *options: str, markers: tuple[str, ...] = ()
) -> subprocess.CompletedProcess[str]:
    """Write files of tests and run pytest on them.

    Parameters
    ----------
    folder : an empty one
    files : text by name
    options : of pytest, such as ``-p helpers.file_queue``
    markers : that the tests may use
    """
    (folder / "pytest.ini").write_text(
        "[pytest]\nmarkers =\n" + "".join(f"  {each}\n" for each in markers), encoding="utf-8"
    )
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    # a hook of the tests around this one may not reach in, and the plugins lie below `tests`
    where = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    where["PYTHONPATH"] = os.pathsep.join([str(TESTS), *sys.path])
    where["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"  # what is not asked for would be imported in each process
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "xdist", *options],
        cwd=folder,
        env=where,
        capture_output=True,
        text=True,
        check=False,
    )
