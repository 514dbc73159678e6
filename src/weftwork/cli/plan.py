"""``weftwork plan``: the fastest parallel plans for a model."""

from __future__ import annotations

import json
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import typer
import yaml
from rich.table import Table
from rich.text import Text

from weftwork.base.errors import ConfigError
from weftwork.base.grammar import plural
from weftwork.base.whole_file import write_whole
from weftwork.cli.console import console
from weftwork.cli.imported import import_document, print_import
from weftwork.cli.plan_confirmed import print_confirmation
from weftwork.cli.plan_question import Question
from weftwork.cli.progress import CountLine, ProgressLine
from weftwork.cli.settings import overrides, parse_share
from weftwork.report.page_plan import plan_page
from weftwork.report.plan_words import (
    PLAN_FILE,
    SCENARIO_FILE,
    argument_lines,
    front_rows,
    left_out,
    megatron_notes,
    own_plan,
    plan_verdict,
)
from weftwork.report.words import amount
from weftwork.spec.scenario.written import dump
from weftwork.spec.training import HEADROOM
from weftwork.store.runs import fresh_folder, new_folder, refuse_existing, write_files
from weftwork.study.plan.best import MOST, sweep_of_best
from weftwork.study.plan.confirm import confirm
from weftwork.study.plan.confirm_words import confirmation_document
from weftwork.study.plan.search import BEST, search, section_with
from weftwork.study.plan.words import search_document
from weftwork.study.prepare.prepare import read_scenario
from weftwork.study.run.kept_files import FILES, kept_files

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rich.console import Console

    from weftwork.study.plan.confirm import Confirmation
    from weftwork.study.plan.search import Search

__all__ = ["plan"]

PAGE: Final = "page.html"
SWEEP_FILE: Final = "best.yaml"
MEGATRON_FILE: Final = "megatron.txt"
_SIZES_AND_PLAN: Final = (
    "These set sizes and plan; keep or add the other arguments of your model, such as --normalization."
)
_KINDS: Final = {  # what is counted while a search goes on
    "counting": "ways to spread the GPUs counted",
    "running": "plans, at most, run on the flow engine",
    "placing": "other placements of the best plans run",
}


def plan(
    asked: Path | Question,
    *,
    out: Path | None,
    jobs: int | None,
    settings: Sequence[str] | None,
    user_code: bool,
    as_json: bool,
    confirms: bool = False,
    headroom: str | None = None,
) -> None:
    """Search for plans, print the best, and write the best as a scenario.

    Parameters
    ----------
    asked : a scenario whose ``training`` may leave keys out, or what a scenario would say
    out : folder to write
    jobs : processes side by side; by default one for each core
    settings : ``key=value`` texts of ``--set``; such keys are not searched
    user_code : False refuses every Python file of the user's own that the scenario names
    as_json : one JSON object instead of words
    confirms : whether the best plan runs packet by packet too
    headroom : share of a GPU's memory that every plan leaves free; `HEADROOM` by default

    Raises
    ------
    ConfigError : with all mistakes, or where no plan can be
    """
    given = overrides(settings)
    question = asked if isinstance(asked, Question) else None
    folder = out or new_folder(question.name if question is not None else f"plan-{Path(str(asked)).stem}")
    refuse_existing(folder)
    left_free = HEADROOM if headroom is None else parse_share(headroom, "--headroom")
    with CountLine(_KINDS) as told:
        how = _How(given=given, jobs=jobs, user_code=user_code, headroom=left_free, told=told)
        if isinstance(asked, Path):
            found = _found(asked, how, fixed=_set_by(given) | _set_in(asked))
        else:
            found = _answered(asked, how)
    document = search_document(found)
    if question is not None and question.imported is not None:
        document["imported"] = import_document(question.imported)
    config = None if question is None else question.config
    kept = found if config is None else _with_model(found, config[0])
    # the folder runs again from anywhere: it has copies of the user's own files
    own = kept_files(found.winner, without=frozenset() if config is None else frozenset({"training.model"}))
    namer = own.namer(None if config is None else {"training.model": config[0]})
    scenario = dump(kept.winner, name_file=namer)
    with fresh_folder(folder) as fresh:
        if config is not None:
            write_whole(fresh / config[0], config[1])
        write_whole(fresh / SCENARIO_FILE, scenario)
        write_whole(fresh / SWEEP_FILE, sweep_of_best(kept, name_file=namer))
        write_files(fresh, {f"{FILES}/{name}": content for name, content in own.contents().items()})
        if document["megatron"] is not None:
            write_whole(fresh / MEGATRON_FILE, argument_lines(document["megatron"]["arguments"]))
        _write_document(document, scenario, fresh, folder)
    confirmed = None
    if confirms:  # behind the folder: who loses patience with the packets keeps the search
        here = found if config is None else _with_model(found, str((folder / config[0]).absolute()))
        with ProgressLine() as line:
            confirmed = confirm(here.winner, on_progress=line)
        document["confirmation"] = confirmation_document(confirmed)
        _write_document(document, scenario, folder, folder)
    if as_json:
        typer.echo(json.dumps({"folder": str(folder), **document}, indent=2))
        return
    screen = console()
    _print(document, folder, screen, confirmed)
    if question is not None and question.imported is not None:
        screen.print()
        print_import(screen, question.imported)


def _write_document(document: Mapping[str, Any], scenario: str, into: Path, folder: Path) -> None:
    """Write the document and the page of a search.

    ``folder`` is the name of ``into`` for the user, when it is complete.
    """
    write_whole(into / PLAN_FILE, json.dumps(document, indent=2) + "\n")
    write_whole(into / PAGE, plan_page(document, str(folder), scenario))


def _with_model(found: Search, model: str) -> Search:
    """The same search with another name of the model."""
    training = section_with(found.scenario, {"model": model})
    return replace(found, scenario=found.scenario.model_copy(update={"training": training}))


@dataclass(frozen=True, kw_only=True, slots=True)
class _How:
    """The settings of a search: ``--set``, processes, user code, memory left free and progress."""

    given: dict[str, str]
    jobs: int | None
    user_code: bool
    headroom: float
    told: CountLine


def _answered(asked: Question, how: _How) -> Search:
    """Search with a scenario made from options.

    Mistakes name the options.
    """
    with tempfile.TemporaryDirectory() as folder:
        try:
            return _found(asked.write(Path(folder)), how, fixed=_set_by(how.given), has_own=asked.has_own)
        except ConfigError as error:
            raise asked.of_options(error) from error


def _found(file: Path, how: _How, *, fixed: frozenset[str], has_own: bool = False) -> Search:
    scenario = read_scenario(file, how.given, user_code=how.user_code)
    return search(scenario, fixed=fixed, workers=how.jobs, has_own=has_own, headroom=how.headroom, progress=how.told)


def _set_by(given: dict[str, str]) -> frozenset[str]:
    """Keys of ``training`` in ``--set``."""
    named = (key for key, text in given.items() if key.startswith("training.") and yaml.safe_load(text) is not None)
    return frozenset(key.removeprefix("training.").partition(".")[0] for key in named)


def _set_in(file: Path) -> frozenset[str]:
    """Keys of ``training`` in a file.

    A file that cannot be read is reported by its next reader.
    """
    try:
        tree = yaml.safe_load(file.read_text(encoding="utf-8-sig"))
    except (OSError, ValueError, yaml.YAMLError):
        return frozenset()
    section = tree.get("training") if isinstance(tree, dict) else None
    if not isinstance(section, dict):
        return frozenset()
    return frozenset(str(key) for key, value in section.items() if value is not None)


def _print(document: Mapping[str, Any], folder: Path, out: Console, confirmed: Confirmation | None) -> None:
    for text in [*plan_verdict(document), *own_plan(document)]:
        out.print(Text(text), soft_wrap=True)
    out.print()
    if confirmed is not None:
        print_confirmation(confirmed, out)
    best = document["best"][:BEST]
    bottlenecks = {one["limited_by"] for one in best}
    out.print(_table(best, has_bottleneck=len(bottlenecks) > 1))
    if len(bottlenecks) == 1 and len(best) > 1:
        out.print(Text(f"The bottleneck of all of them is {bottlenecks.pop()}."), soft_wrap=True)
    out.print()
    for text in left_out(document):
        out.print(Text(text), soft_wrap=True)
    out.print()
    out.print(Text("Time against memory, by closed forms:"))
    out.print(_front_table(document))
    out.print()
    out.print(Text(f"The best plan as a scenario: weftwork run {folder / SCENARIO_FILE}"), soft_wrap=True)
    if document["megatron"] is None:
        out.print(Text(megatron_notes(document)[0]), soft_wrap=True)
    else:
        out.print(Text(f"As arguments of Megatron-LM: {folder / MEGATRON_FILE}"), soft_wrap=True)
        out.print(Text(f"  {_SIZES_AND_PLAN}"), soft_wrap=True)
        for text in megatron_notes(document):
            out.print(Text(f"  {text}"), soft_wrap=True)
    several = plural(min(MOST, len(document["best"])), "best plan") if len(document["best"]) > 1 else "best plan"
    text = f"The {several} with other values of any key: weftwork sweep {folder / SWEEP_FILE} --set KEY=VALUE,VALUE"
    out.print(Text(text), soft_wrap=True)
    out.print(Text(f"page: {folder / PAGE}"), soft_wrap=True)


def _table(best: Sequence[Mapping[str, Any]], *, has_bottleneck: bool) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column("plan")
    for name in ("time", "tokens/s", "MFU", "memory", "exposed"):
        table.add_column(name, justify="right", no_wrap=True)
    for name in ("bottleneck", "loses by") if has_bottleneck else ("loses by",):
        table.add_column(name)
    for one in best:
        table.add_row(
            one["short"],
            amount(one["iteration_ps"], "ps"),
            f"{one['tokens_per_s']:,.0f}",
            amount(one["mfu"], "share"),
            amount(one["memory_bytes"], "B"),
            amount(one["exposed_share"], "share"),
            *([one["limited_by"]] if has_bottleneck else []),
            f"{one['loses_by']}, {amount(one['loses_ps'], 'ps')}" if "loses_by" in one else "",
        )
    return table


def _front_table(document: Mapping[str, Any]) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column("memory", justify="right", no_wrap=True)
    table.add_column("time", justify="right", no_wrap=True)
    table.add_column("plan")
    for one in front_rows(document):
        table.add_row(amount(one["memory_bytes"], "B"), amount(one["closed_form_ps"], "ps"), one["short"])
    return table
