"""The gallery: runs that many tests read, each made once for the whole session and shared by all of its processes.

`gallery("incast")` opens the run of tests/runs/gallery/incast.yaml; whoever asks first makes it. `gallery.run(text)`
does the same for a scenario of a test's own, which other tests may share by writing the same text: a run is known by
the digest of what was asked. Runs lie in a folder of the session. A test that changes a run takes `gallery.copy`;
where one changed the shared run, the next that asks for it fails and says so.
Leaves out: runs of another working tree or of an earlier session, which are never read.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

__all__ = ["CANONICAL", "Gallery", "gallery_folder", "runs_made"]

CANONICAL = Path(__file__).parents[1] / "runs" / "gallery"


class Gallery:
    """Runs by what was asked.

    Parameters
    ----------
    folder : of the session; processes share it
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)

    def __call__(self, name: str, **arguments: Any) -> Any:
        """The run of a canonical scenario, with further arguments of `weftwork.run`."""
        text = (CANONICAL / f"{name}.yaml").read_text(encoding="utf-8")
        files = {
            each.name: each.read_text(encoding="utf-8")
            for each in CANONICAL.iterdir()
            if each.suffix not in {".yaml", ".md"} and each.name in text
        }
        return self.run(text, name=name, files=files, **arguments)

    def run(self, text: str, *, name: str = "run", files: Mapping[str, str] | None = None, **arguments: Any) -> Any:
        """The run of a scenario.

        Parameters
        ----------
        text : of the scenario's file
        name : of that file and of the run's folder
        files : text by name, which lie beside the scenario
        arguments : of `weftwork.run`, such as ``overrides`` and ``what_if``
        """
        from weftwork.store.runs import open_run
        from weftwork.study.record.run import run_scenario

        files = files or {}
        asked = json.dumps([name, text, sorted(files.items()), sorted(arguments.items())], default=repr)
        place = self.folder / f"{name}-{hashlib.sha256(asked.encode()).hexdigest()[:16]}"
        with self._held(place):
            if not (place / name).is_dir():
                place.mkdir(exist_ok=True)
                for other, content in files.items():
                    (place / other).write_text(content, encoding="utf-8")
                (place / f"{name}.yaml").write_text(text, encoding="utf-8")
                run_scenario(place / f"{name}.yaml", out=place / name, **arguments)
                place.with_suffix(".json").write_text(json.dumps(_state_of(place / name)), encoding="utf-8")
            elif json.loads(place.with_suffix(".json").read_text(encoding="utf-8")) != _state_of(place / name):
                pytest.fail(f"a test has changed the run {place / name}, which others read; it wants gallery.copy")
        return open_run(place / name)

    def copy(self, run: Any, folder: Path) -> Any:
        """A copy of a run that a test may change."""
        from weftwork.store.runs import open_run

        shutil.copytree(run.path, folder)
        return open_run(folder)

    @contextmanager
    def _held(self, place: Path) -> Iterator[None]:
        """One process at a time makes a run; the others wait and read it."""
        with place.with_suffix(".lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield


def _state_of(folder: Path) -> list[list[Any]]:
    """Names, sizes and times of the files of a run: what changes when a test writes into it."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return [[str(path.relative_to(folder)), path.stat().st_size, path.stat().st_mtime_ns] for path in files]


def gallery_folder(request: pytest.FixtureRequest) -> Path:
    """The folder of this session, the same in each of its processes."""
    base: Path = request.getfixturevalue("tmp_path_factory").getbasetemp()
    return (base.parent if hasattr(request.config, "workerinput") else base) / "gallery"


def runs_made(folder: Path) -> int:
    """How many runs lie in a gallery."""
    return sum(1 for _ in folder.glob("*/*.yaml"))
