"""``weftwork test``: check a user's Python file by the conformance kit."""

from __future__ import annotations

import json
import sys
import time
from typing import TYPE_CHECKING, Any, Final

import typer
import yaml
from rich.text import Text

from weftwork.base.errors import ConfigError, Mistake
from weftwork.base.grammar import plural
from weftwork.base.whole_file import write_whole
from weftwork.cli.console import console
from weftwork.cli.leave import FAILED
from weftwork.cli.printable import printable
from weftwork.cli.settings import overrides
from weftwork.spec.verdicts import verdict_text
from weftwork.testing.files import check_file

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from weftwork.testing.files import Failure, FileReport

__all__ = ["test_file"]

_QUIET_S: Final = 1.0  # what is done in a second needs no progress


def test_file(file: Path, *, out: Path | None, settings: Sequence[str] | None, as_json: bool) -> int:
    """Run the conformance kit on a file, and print its failures.

    Parameters
    ----------
    file : runs with all rights of the user
    out : folder for pictures; made where it is not there
    settings : ``key=value`` texts of ``--set``, parameters of a policy or keys of a choice
    as_json : one JSON object instead of words

    Returns
    -------
    exit code: 0, or 1 where a check fails

    Raises
    ------
    CodeError : the file cannot be read or loaded, with its line
    ConfigError : a setting is wrong, or a picture cannot be written
    """
    given = {key: _value(key, text) for key, text in overrides(settings).items()}
    report = check_file(file, given, progress=_Progress())
    pictures = [] if out is None else _write(report, file.stem, out)
    if as_json:
        typer.echo(json.dumps(_document(report, file, pictures), indent=2))
    else:
        _print(report, file, pictures)
        if out is not None and not pictures:
            console().print(Text("no picture: this kind has none, or its check did not run"))
    return FAILED if report.failures else 0


def _value(key: str, text: str) -> Any:  # noqa: ANN401 - whatever YAML holds
    try:
        return yaml.safe_load(text)
    except yaml.YAMLError as error:
        mistake = Mistake(path=f"--set {key}", text=f"found '{text}', wanted a value as in a scenario")
        raise ConfigError("command line", [mistake]) from error


class _Progress:
    """The current check on standard error, after a second."""

    def __init__(self) -> None:
        self._began_s = time.monotonic()
        self._is_on = sys.stderr is not None and sys.stderr.isatty()

    def __call__(self, words: str) -> None:
        if self._is_on and time.monotonic() - self._began_s > _QUIET_S:
            typer.echo(f"checking {printable(words)} ...", err=True)


def _write(report: FileReport, name: str, folder: Path) -> list[Path]:
    from weftwork.report.figures.conformance import conformance_pictures
    from weftwork.topology.draw import draw

    try:
        folder.mkdir(parents=True, exist_ok=True)
        written = []
        for what, text in conformance_pictures(name, report.messages, [u.frames for u in report.usages]).items():
            written.append(folder / f"{name}-{what}.svg")
            write_whole(written[-1], text)
    except OSError as error:
        raise ConfigError(str(folder), [Mistake(path="--out", text=f"cannot be written: {error.strerror}")]) from error
    if report.fabric is not None:
        written.append(folder / f"{name}-fabric.svg")
        draw(report.fabric, written[-1])
    return written


def _document(report: FileReport, file: Path, pictures: Sequence[Path]) -> dict[str, Any]:
    return {
        "file": str(file),
        "kind": report.kind,
        "passes": not report.failures,
        "checks": report.checks,
        "left_out": list(report.left_out),
        "failures": [
            {
                "check": failure.check,
                "case": failure.case,
                "done": failure.done,
                "wanted": failure.wanted,
                "came": failure.came,
            }
            for failure in report.failures
        ],
        "more": report.more,
        "pictures": [str(path) for path in pictures],
    }


def _print(report: FileReport, file: Path, pictures: Sequence[Path]) -> None:
    kind = report.kind.replace("_", " ")
    failed = {failure.check for failure in report.failures}
    made = plural(len(report.checks), "check")
    said = f"{len(failed)} of {made} failed" if failed else verdict_text("test.all-passed", checks=made)
    lines = [f"{file}: {kind}; {said}"]
    for failure in report.failures:
        lines += ["", *_lines(failure)]
    for check, count in report.more.items():
        lines += ["", f"{check} failed in {plural(count, 'more case')}"]
    if report.left_out:
        lines += ["", f"not checked, because of the failures above: {', '.join(report.left_out)}"]
    lines += [f"picture: {path}" for path in pictures]
    for line in lines:
        console().print(Text(line), soft_wrap=True)


def _lines(failure: Failure) -> list[str]:
    case = f" ({failure.case})" if failure.case else ""
    first, *rest = failure.came.splitlines() or [""]
    return [
        failure.check,
        f"  done    {failure.done}{case}",
        f"  wanted  {failure.wanted}",
        f"  found   {first}",
        *(f"          {line}" for line in rest),
    ]
