"""``weftwork design``: the fabric to build, and the cost of each step."""

from __future__ import annotations

import json
import re
import shlex
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import typer
from rich.table import Table
from rich.text import Text

from weftwork.base.errors import ConfigError, Mistake
from weftwork.base.nearest import nearest
from weftwork.base.whole_file import write_whole
from weftwork.cli import progress
from weftwork.cli.console import console
from weftwork.cli.leave import FAILED, INTERRUPTED
from weftwork.cli.plan_confirmed import print_confirmation
from weftwork.cli.progress import CountLine, ProgressLine
from weftwork.cli.settings import overrides
from weftwork.report.design_folder import FABRICS, RESULT
from weftwork.report.design_tables import KIND_COLUMNS, PLACED_COLUMNS, kind_rows, marks, placed_rows
from weftwork.report.design_words import design_verdict, loser_words, pruned_lines
from weftwork.report.money import money_words, power_words
from weftwork.report.page_design import PAGE, design_page
from weftwork.report.words import amount, amounts_apart
from weftwork.spec.study_ends import STUDY_ENDS
from weftwork.store.runs import new_folder
from weftwork.store.sweeps import write_command
from weftwork.study.design.prune import Limits
from weftwork.study.design.search import Design, DesignQuestion, design, fabric_named
from weftwork.study.design.words import design_document
from weftwork.study.design.worth import CRITERIA, WORK
from weftwork.study.plan.confirm import confirm
from weftwork.study.plan.confirm_words import confirmation_document
from weftwork.study.prepare.prepare import read_scenario

if TYPE_CHECKING:
    from weftwork.report.design_tables import DesignRow
    from weftwork.study.design.runs import Ran
    from weftwork.study.plan.confirm import Confirmation

__all__ = ["design_command", "parse_amount"]

_KINDS: Final = {  # what is counted while a design goes on
    "plan.looking": "ways to spread the GPUs looked at, for a plan that the file does not have",
    "plan.counting": "ways to spread the GPUs counted, for a plan that the file does not have",
    "plan.running": "plans, at most, run on a non-blocking fabric",
    "plan.placing": "other placements of the best plans run",
    "building": "candidates built and priced",
    "running": "fabrics run on the flow engine",
    "placing": "runs as a scheduler places ranks",
    "losing": "named fabrics run without a leaf",
}
_SHOWN: Final = 12  # chosen: losers that a screen still holds
_PREFIX: Final = {"": 1.0, "k": 1e3, "m": 1e6, "g": 1e9, "b": 1e9}
_EXAMPLES: Final = {"--budget": "80M", "--power": "2MW", "--gpu-hour": "2.50"}
_AMOUNT: Final = re.compile(
    r"\$?\s*(?P<number>[0-9]+(?:\.[0-9]+)?)\s*(?P<prefix>[kmgb]?)(?P<unit>w|usd)?", re.IGNORECASE
)


def parse_amount(text: str, option: str) -> float:
    """Read dollars or watts with a prefix, such as ``500M`` or ``2MW``.

    Raises
    ------
    ConfigError : it is none

    Examples
    --------
    >>> parse_amount("$80M", "--budget"), parse_amount("1.5MW", "--power")
    (80000000.0, 1500000.0)
    """
    match = _AMOUNT.fullmatch(text.strip())
    if match is None or float(match["number"]) <= 0:
        text = f"found '{text}', wanted an amount above 0 such as {_EXAMPLES[option]}"
        raise ConfigError("command line", [Mistake(path=option, text=text)])
    return float(match["number"]) * _PREFIX[match["prefix"].lower()]


def design_command(  # noqa: PLR0913 - the options, all by name
    file: Path,
    *,
    gpus: int | None,
    budget: str | None,
    most_power: str | None,
    only: Sequence[str] | None,
    prices: str | None,
    closed_only: bool,
    confirms: str | None,
    out: Path | None,
    jobs: int | None,
    settings: Sequence[str] | None,
    user_code: bool,
    as_json: bool,
    criterion: str = WORK,
    gpu_hour: str | None = None,
) -> int:
    """Find the fabrics that no other fabric beats, and print them.

    Parameters
    ----------
    file : scenario with the job
    gpus : of all servers
    budget, most_power : dollars and watts as texts
    only : ``key=value,value`` texts of what may be chosen
    prices : a price book by name or file
    closed_only : run nothing
    confirms : name of a candidate that runs packet by packet, or ``knee``
    out : folder of the design, new or to go on with
    jobs : processes side by side
    settings : ``key=value`` texts of ``--set``
    user_code : False refuses Python files of the user's own
    as_json : one JSON object instead of words
    criterion : of `weftwork.study.design.worth.CRITERIA`
    gpu_hour : dollars of a GPU-hour in place of the price book's

    Returns
    -------
    exit code: 0; 1 where a candidate has no time; 130 after Ctrl-C

    Raises
    ------
    ConfigError : with all mistakes
    """
    question = DesignQuestion(
        file=file,
        gpus=gpus,
        limits=Limits(
            price_usd=None if budget is None else parse_amount(budget, "--budget"),
            power_w=None if most_power is None else parse_amount(most_power, "--power"),
        ),
        only=_only(only or ()),
        prices=prices,
        settings=overrides(settings),
        closed_only=closed_only,
        user_code=user_code,
        criterion=_criterion(criterion),
        gpu_hour_usd=None if gpu_hour is None else parse_amount(gpu_hour, "--gpu-hour"),
        on_first=None if as_json else _First(),
    )
    folder = new_folder(f"{file.stem}-design") if out is None else out
    with CountLine(_KINDS) as line:
        found = design(question, folder, workers=jobs, progress=None if as_json else line)
    options = {"--budget": budget, "--power": most_power, "--gpu-hour": gpu_hour, "--confirm": confirms}
    resume = _resume(found, options, only or (), settings or ())
    document = design_document(found)
    texts = {one.name: fabric_named(found, one.name) for one in found.ran}
    _write_fabrics(found, texts, resume)
    _write(found, document, resume, texts)
    confirmed = None
    end = STUDY_ENDS[found.end]
    if confirms is not None and end.is_done:
        confirmed, name = _confirmed(found, confirms)
        document["confirmation"] = {"candidate": name, **confirmation_document(confirmed)}
        _write(found, document, resume, texts)
    if as_json:
        typer.echo(json.dumps({"folder": str(folder), "resume": resume, **document}, indent=2))
    else:
        _print(found, document, confirmed)
    if not end.is_done:
        typer.echo(f"{end.why.format(study='design')}: finished runs are kept; continue with: {resume}", err=True)
        return INTERRUPTED if end.is_by_hand else FAILED
    return 0 if all(one.time_ps is not None for one in found.ran) else FAILED


def _only(texts: Sequence[str]) -> dict[str, list[str]]:
    mistakes = [
        Mistake(path="--only", text=f"found '{text}', wanted KEY=VALUE,VALUE such as topology=rail-only,fat-tree")
        for text in texts
        if "=" not in text or not text.partition("=")[2]
    ]
    if mistakes:
        raise ConfigError("command line", mistakes)
    found: dict[str, list[str]] = {}
    for text in texts:
        key, _, values = text.partition("=")
        found.setdefault(key.strip(), []).extend(value.strip() for value in values.split(","))
    return found


def _criterion(text: str) -> str:
    if text not in CRITERIA:
        mistake = Mistake(
            path="--criterion", text=f"found '{text}', wanted {', '.join(CRITERIA)}", fix=nearest(text, CRITERIA)
        )
        raise ConfigError("command line", [mistake])
    return text


class _First:
    """Prints the best packed candidate once, if other runs follow after a while."""

    def __init__(self) -> None:
        self._begin_s = time.monotonic()

    def __call__(self, best: Ran) -> None:
        elapsed_s = time.monotonic() - self._begin_s
        if elapsed_s > progress.FIRST_ANSWER_S and sys.stderr is not None:
            time_words = amount(best.time_ps, "ps")
            start = "\r\033[K" if sys.stderr.isatty() else ""
            sys.stderr.write(
                f"{start}After {elapsed_s:.0f} s, with packed jobs: {best.name} ({best.built.candidate.words}),"
                f" {time_words}. Placements as a scheduler gives them follow.\n"
            )


def _resume(found: Design, given: Mapping[str, str | None], only: Sequence[str], settings: Sequence[str]) -> str:
    """The command that continues this design, with its folder."""
    question = found.question
    words = ["weftwork", "design", str(question.file)]
    criterion = None if question.criterion == WORK else question.criterion
    options = {"--gpus": question.gpus, "--prices": question.prices, "--criterion": criterion, **given}
    words += [str(word) for name, value in options.items() if value is not None for word in (name, value)]
    words += [
        word for name, texts in (("--only", only), ("--set", settings)) for text in texts for word in (name, text)
    ]
    words += ["--closed-forms"] if question.closed_only else []
    words += [] if question.user_code else ["--no-user-code"]
    return shlex.join([*words, "-o", str(found.folder)])


def _write_fabrics(found: Design, texts: Mapping[str, str], resume: str) -> None:
    """Write a scenario for every kept candidate, and the continuing command."""
    write_command(found.folder, resume)
    (found.folder / FABRICS).mkdir(exist_ok=True)
    for name, text in texts.items():
        write_whole(found.folder / FABRICS / f"{name}.yaml", text)


def _write(found: Design, document: Mapping[str, Any], resume: str, texts: Mapping[str, str]) -> None:
    """Write the document and the page."""
    write_whole(found.folder / RESULT, json.dumps(document, indent=2) + "\n")
    write_whole(found.folder / PAGE, design_page(document, str(found.folder), resume, texts))


def _confirmed(found: Design, wanted: str) -> tuple[Confirmation, str]:
    """Run a candidate's job packet by packet, as much of it as fits."""
    name = {"knee": found.knee or "", "take": found.choice.name or ""}.get(wanted, wanted)
    names = [one.name for one in found.ran]
    if name not in names:
        text = f"found '{wanted}', wanted take, knee or a candidate that was not pruned: {', '.join(names)}"
        raise ConfigError("command line", [Mistake(path="--confirm", text=text, fix=nearest(wanted, names))])
    scenario = read_scenario(found.folder / FABRICS / f"{name}.yaml", {}, user_code=found.question.user_code)
    if not scenario.workload_kind.is_single_job:
        text = "confirms only training jobs; run other jobs with: weftwork run"
        text += f" {found.folder / FABRICS / f'{name}.yaml'} --set engine.fidelity=packet"
        raise ConfigError("command line", [Mistake(path="--confirm", text=text)])
    with ProgressLine() as line:
        return confirm(scenario, on_progress=line), name


def _print(found: Design, document: Mapping[str, Any], confirmed: Confirmation | None) -> None:
    out = console()
    first, *others = design_verdict(document)
    out.print(Text(first, style="bold"), soft_wrap=True)
    for text in others:
        out.print(Text(text), soft_wrap=True)
    out.print()
    if confirmed is not None:
        print_confirmation(confirmed, out)
    candidates = document["candidates"]
    if document["kinds"]:
        out.print(_rows_table(KIND_COLUMNS, kind_rows(document)))
        out.print()
    judged = [one for one in candidates if one["placed"]]
    if judged:
        out.print(Text("As a scheduler places ranks, the best first:"))
        out.print(_rows_table(PLACED_COLUMNS, placed_rows(document, judged)))
        out.print()
    best = [one for one in candidates if one["is_front"]]
    losers = sorted(
        (one for one in candidates if not one["is_front"]),
        key=lambda one: (one["time_ps"] is None, sum(one.get("loses_by", {}).values())),
    )
    out.print(_table(best, losers=False))
    if losers:
        out.print()
        shown = losers[:_SHOWN]
        more = "" if len(shown) == len(losers) else f", the {len(shown)} narrowest losers of {len(losers)}"
        out.print(Text(f"Not on the front{more}:"))
        out.print(_table(shown, losers=True))
    out.print()
    if document["pruned"]:
        out.print(Text("Pruned:"))
        for text in pruned_lines(document):
            out.print(Text(f"  {text}"), soft_wrap=True)
        out.print()
    out.print(Text(f"Each fabric as a scenario: weftwork run {found.folder / FABRICS}/NAME.yaml"), soft_wrap=True)
    out.print(Text(f"page: {found.folder / PAGE}"), soft_wrap=True)


def _rows_table(columns: Sequence[tuple[str, bool]], rows: Sequence[DesignRow]) -> Table:
    """Rows under headings, of which those with True have numbers; the choice in bold."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for name, has_numbers in columns:
        table.add_column(name, justify="right" if has_numbers else "left", no_wrap=has_numbers)
    for row in rows:
        table.add_row(*row.cells, style="bold" if row.is_take else "")
    return table


def _table(candidates: Sequence[Mapping[str, Any]], *, losers: bool) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column("name", no_wrap=True)
    table.add_column("fabric")
    for heading in ("switches", "money", "power", "time"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("loses" if losers else "")
    times = amounts_apart([one["counting_time_ps"] for one in candidates], "ps")
    for one, time_words in zip(candidates, times, strict=True):
        table.add_row(
            one["name"],
            one["words"],
            f"{sum(one['switches']):,}",
            money_words(one["price_usd"]["typical"]),
            power_words(one["power_w"]["typical"]),
            "none" if one["counting_time_ps"] is None else time_words,
            loser_words(one) if losers else ", ".join(marks(one)),
            style="bold" if one["is_take"] else "",
        )
    return table
