"""`just test FILE` finds the tests that belong to a file."""

import ast
from pathlib import Path

import pytest
from planner.import_graph import imported_names
from steps import tests_of
from steps.wheel import RELEASES, describe

ROOT = Path(__file__).parents[2]


def test_a_module_has_the_tests_that_import_it() -> None:
    found = tests_of.tests_of(ROOT / "src/weftwork/base/version.py")
    (build,) = (name for name in found if name.endswith("/test_build.py"))
    assert found[build] == "imports weftwork.base.version"
    assert "tests/runs/test_tests_of.py" not in found


@pytest.mark.parametrize(
    ("test", "parts", "is_mirrored"),
    [
        ("tests/unit/base/test_clock.py", ("base", "clock"), True),
        ("tests/runs/base/test_clock.py", ("base", "clock"), True),
        ("tests/unit/test_clock.py", ("base", "clock"), False),
        ("tests/unit/base/test_clocks.py", ("base", "clock"), False),
    ],
)
def test_the_mirrored_place_has_the_folders_and_the_name(
    test: str, parts: tuple[str, ...], *, is_mirrored: bool
) -> None:
    assert tests_of.is_mirrored(ROOT / test, parts) is is_mirrored


def test_imports_are_read_in_all_their_forms() -> None:
    text = "import a.b\nfrom c.d import e as f\nfrom . import g\ndef test() -> None:\n    from h import i\n"
    assert imported_names(ast.parse(text)) == {"a.b", "c.d", "c.d.e", "h", "h.i"}


def test_a_source_of_an_engine_has_its_tests_and_those_that_have_to_see_its_mistakes() -> None:
    found = tests_of.tests_of(ROOT / "native/flow/router.cpp")
    assert any(reason.startswith("has to see weights-of-flows") for reason in found.values())
    engine = {path.relative_to(ROOT).as_posix() for path in (ROOT / "tests").glob("*/engine/flow/test_*.py")}
    assert engine
    assert engine <= set(found)


def test_a_shared_header_has_the_tests_of_both_engines() -> None:
    found = tests_of.tests_of(ROOT / "native/base/ids.hpp")
    assert {Path(name).parent.name for name in found} >= {"engine", "flow"}


@pytest.mark.parametrize("arguments", [[], ["no/such/file.py"], ["LICENSE"]])
def test_what_has_no_tests_is_told(
    arguments: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(ROOT)
    assert tests_of.main(arguments) == 2
    assert capsys.readouterr().out


def test_a_wheel_tells_the_oldest_release_of_each_family(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    wheel = tmp_path / "weftwork-0.1.0-cp311-cp311-manylinux_2_34_x86_64.whl"
    wheel.write_bytes(b"")
    describe(wheel)
    told = capsys.readouterr().out
    assert "glibc 2.34 or later" in told
    for release, is_oldest in {"Debian 12": True, "Debian 13": False, "Debian 11": False, "RHEL 9": True}.items():
        assert (f"  {release} " in told) is is_oldest


def test_the_page_says_of_each_release_what_the_step_says() -> None:
    page = (ROOT / "docs/howto/install-from-a-wheel.md").read_text(encoding="utf-8")
    for release in RELEASES:
        assert f"| {release.name} | {release.glibc[0]}.{release.glibc[1]} |" in page
        assert release.source in page
