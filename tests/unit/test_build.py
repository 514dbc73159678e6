"""What the build promises: one version, a core without Python, and arithmetic that is the same on every machine."""

import re
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import pytest

from weftwork.base.version import VERSION
from weftwork.engine import _native

ROOT = Path(__file__).parents[2]


CORE_FILES = sorted(
    path for folder in ("base", "paths", "packet", "flow") for path in (ROOT / "native" / folder).glob("*.[ch]pp")
)


@pytest.mark.sanitize
def test_the_compiled_core_is_of_this_version() -> None:
    assert _native.version() == VERSION


def test_the_installed_package_is_of_this_version() -> None:
    try:
        installed = version("weftwork")
    except PackageNotFoundError:
        pytest.skip("weftwork is not installed, its source folder is on the path")
    assert installed == VERSION


@pytest.mark.parametrize("path", CORE_FILES, ids=lambda path: path.name)
def test_the_core_knows_no_python(path: Path) -> None:
    includes = re.findall(r'#include\s*[<"]([^>"]+)', path.read_text(encoding="utf-8"))
    assert not [name for name in includes if name.startswith(("nanobind", "Python.h", "numpy"))]


def test_there_is_a_core() -> None:
    assert CORE_FILES


def test_nothing_is_compiled_for_one_machine_or_with_fused_arithmetic() -> None:
    build = "\n".join(
        line.partition("#")[0]
        for name in ("CMakeLists.txt", "native/CMakeLists.txt")
        for line in (ROOT / name).read_text(encoding="utf-8").splitlines()
    )
    assert "-march" not in build
    assert "-mtune" not in build
    assert "-ffast-math" not in build
    assert "-ffp-contract=off" in build
