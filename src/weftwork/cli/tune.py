"""``weftwork tune``: search the parameters of a scenario.

It prints the gain with its interval, and writes a page and a scenario.
"""

from __future__ import annotations

import json
import shlex
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Final

import typer
from rich.table import Table
from rich.text import Text

from weftwork.base.grammar import plural
from weftwork.base.whole_file import write_whole
from weftwork.cli.console import console
from weftwork.cli.leave import FAILED, INTERRUPTED
from weftwork.cli.pool_line import PoolLine
from weftwork.cli.progress import clock_words
from weftwork.cli.settings import overrides
from weftwork.report.page_tune import tune_page
from weftwork.report.tune_words import (
    loss_words,
    parameter_names,
    range_words,
    tune_verdict,
    tune_warnings,
    tuned_comment,
)
from weftwork.report.words import change
from weftwork.spec.study_ends import STUDY_ENDS
from weftwork.store.sweeps import write_command
from weftwork.store.tunings import write_tuning
from weftwork.study.tune.question import TuneQuestion
from weftwork.study.tune.search import run_tune

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from weftwork.spec.tuning import TuneResult
    from weftwork.study.tune.search import TuneProgress, TuneRun, TuneStart

__all__ = ["tune"]

PAGE: Final = "page.html"
_PHASES: Final = {"search": "search", "finalists": "finalists on seeds of their own", "fresh": "best on fresh seeds"}


def tune(  # noqa: PLR0913 - the options, all by name
    files: Sequence[Path],
    *,
    parameters: Sequence[str] | None,
    objective: str | None,
    maximises: bool,
    trials: int,
    seeds: int,
    fresh: int,
    out: Path | None,
    jobs: int | None,
    settings: Sequence[str] | None,
    user_code: bool,
    as_json: bool,
) -> int:
    """Tune scenarios and print the result.

    Parameters
    ----------
    files : scenarios that are tuned together
    parameters : texts of ``--parameter``
    objective : number of the summary or expression
    maximises : more of the objective is better
    trials, seeds, fresh : as `weftwork.study.tune.question.TuneQuestion` has them
    out : folder of the tuning
    jobs : runs side by side
    settings : ``key=value`` texts of ``--set``
    user_code : False refuses every Python file of the user's own that a scenario names
    as_json : one JSON object instead of words

    Returns
    -------
    exit code: 0; 1 where the disk is full; 130 after Ctrl-C

    Raises
    ------
    ConfigError : with all mistakes
    """
    question = TuneQuestion(
        files=tuple(files), parameters=tuple(parameters or ()), objective=objective, maximises=maximises, trials=trials,
        seeds=seeds, fresh=fresh, settings=overrides(settings), user_code=user_code,
    )  # fmt: skip
    line = PoolLine(is_silent=as_json)
    try:
        found = run_tune(
            question,
            out=out,
            workers=jobs,
            on_start=lambda start: line.say(_start_words(start)),
            on_progress=lambda now: line.show(_progress_words(now)),
        )
    finally:
        line.clear()
    resume = _resume(found.folder, question, settings or (), jobs)
    write_command(found.folder, resume)
    if found.result is None:
        _tell_end(found, question, resume)
        if as_json:
            typer.echo(json.dumps(_document(found, resume), indent=2))
        return INTERRUPTED if STUDY_ENDS[found.end].is_by_hand else FAILED
    files_of = {one.tuned: one.file for one in found.result.scenarios}
    tuned = {name: tuned_comment(found.result, files_of[name]) + text for name, text in found.tuned.items()}
    write_tuning(found.folder, found.result, tuned)
    write_whole(found.folder / PAGE, tune_page(found.result, str(found.folder), resume))
    if as_json:
        typer.echo(json.dumps(_document(found, resume), indent=2))
    else:
        _print(found, found.result)
    return 0


def _resume(folder: Path, question: TuneQuestion, settings: Sequence[str], jobs: int | None) -> str:
    """The command that continues this tuning, with its folder."""
    words = ["weftwork", "tune", *map(str, question.files)]
    words += [word for text in question.parameters for word in ("--parameter", text)]
    words += [word for text in settings for word in ("--set", text)]
    options = {
        "--objective": question.objective,
        "--trials": question.trials,
        "--seeds": question.seeds,
        "--fresh": question.fresh,
        "-j": jobs,
    }
    words += [str(word) for name, value in options.items() if value is not None for word in (name, value)]
    words += ["--maximise"] if question.maximises else []
    return shlex.join([*words, *([] if question.user_code else ["--no-user-code"]), "-o", str(folder)])


def _tell_end(found: TuneRun, question: TuneQuestion, resume: str) -> None:
    end = STUDY_ENDS[found.end]
    done = f"{found.trials:,} of {plural(question.trials, 'trial')} have ended, and their runs are kept"
    typer.echo(f"{end.why.format(study='tuning')}: {done}; {end.then}: {resume}", err=True)


def _document(found: TuneRun, resume: str) -> dict[str, Any]:
    document: dict[str, Any] = {
        "tuning": str(found.folder),
        "end": found.end,
        "runs": found.runs,
        "kept": found.kept,
        "repeated": found.repeated,
        "resume": resume,
    }
    if found.result is not None:
        told = {"said": tune_verdict(found.result), "warnings": tune_warnings(found.result)}
        document |= {**asdict(found.result), **told}
    return document


def _print(found: TuneRun, result: TuneResult) -> None:
    out = console()
    first, *others = tune_verdict(result)
    out.print(Text(first, style="bold"), soft_wrap=True)
    for text in others:
        out.print(Text(text), soft_wrap=True)
    for text in tune_warnings(result):
        out.print(Text(f"warning: {text}"), soft_wrap=True)
    out.print()
    out.print(_table(result))
    out.print()
    kept = f", {found.kept:,} of them from before" if found.kept else ""
    tuned = ", ".join(str(found.folder / one.tuned) for one in result.scenarios)
    out.print(Text(f"{plural(found.runs, 'run')}{kept}; {plural(len(result.trials), 'trial')}"), soft_wrap=True)
    out.print(Text(f"scenario: {tuned}"), soft_wrap=True)
    out.print(Text(f"page, trials and runs: {found.folder}"), soft_wrap=True)


def _table(result: TuneResult) -> Table:
    """Parameters, the most important first."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column("parameter", no_wrap=True)
    for name in ("before", "best", "searched", "worse if set back"):
        table.add_column(name, justify="right")
    names = parameter_names(result)
    ordered = sorted(result.parameters, key=lambda one: -(one.loss.mean if one.loss is not None else -1.0))
    for one in ordered:
        style = "bold" if one.best != one.before else ""
        table.add_row(names[one.key], one.before, one.best, range_words(one), loss_words(result, one), style=style)
    return table


def _start_words(start: TuneStart) -> str:
    """The work of a tuning, and how it is shared out."""
    side = f"{start.workers} at a time" if start.workers > 1 else "one at a time"
    parameters, trials = plural(start.parameters, "parameter"), plural(start.trials, "trial")
    return f"{parameters}, {trials}, at most {plural(start.runs, 'run')}, {side}"


def _progress_words(now: TuneProgress) -> str:
    """Finished trials, the best so far, and the time left."""
    left = "" if now.left_s is None else f"  {clock_words(now.left_s)} left"
    best = "" if now.best is None else f"  best {change(now.best)}"
    return f"{_PHASES[now.phase]}: {now.trials:,} of {plural(now.wanted, 'trial')}{best}{left}"
