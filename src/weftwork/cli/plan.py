"""``weftwork plan``: the fastest parallel plans for a model."""

from __future__ import annotations

import json
import tempfile
from contextlib import suppress
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
from weftwork.cli.plan_watch import SearchWatch
from weftwork.cli.progress import CountLine, ProgressLine
from weftwork.cli.settings import overrides, parse_seconds, parse_share
from weftwork.report.page_plan import plan_page
from weftwork.report.plan_words import (
    PLAN_FILE,
    SCENARIO_FILE,
    argument_lines,
    front_rows,
    left_out,
    loss_words,
    megatron_notes,
    overlap_words,
    own_plan,
    plan_verdict,
)
from weftwork.report.words import amount, amounts_apart
from weftwork.spec.scenario.written import dump
from weftwork.spec.training import HEADROOM
from weftwork.store.runs import fresh_folder, new_folder, refuse_existing, write_files
from weftwork.study.plan.best import MOST, sweep_of_best
from weftwork.study.plan.confirm import confirm
from weftwork.study.plan.confirm_words import confirmation_document
from weftwork.study.plan.search import BEST, search, section_with
from weftwork.study.plan.space import SEARCHED
from weftwork.study.plan.trainers import ANY, trainer
from weftwork.study.plan.words import search_document
from weftwork.study.prepare.prepare import read_scenario
from weftwork.study.record.kept_files import FILES, kept_files

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rich.console import Console

    from weftwork.spec.scenario.scenario import Scenario
    from weftwork.study.plan.confirm import Confirmation
    from weftwork.study.plan.search import Known, Search
    from weftwork.study.plan.trainers import Trainer

__all__ = ["SearchLimits", "plan"]

PAGE: Final = "page.html"
SWEEP_FILE: Final = "best.yaml"
MEGATRON_FILE: Final = "megatron.txt"
_SIZES_AND_PLAN: Final = (
    "These set sizes and plan; keep or add the other arguments of your model, such as --normalization."
)
_KINDS: Final = {  # what is counted while a search goes on
    "looking": "ways to spread the GPUs looked at",
    "counting": "ways to spread the GPUs counted",
    "running": "plans, at most, run on the flow engine",
    "placing": "other placements of the best plans run",
}


@dataclass(frozen=True, kw_only=True, slots=True)
class SearchLimits:
    """Texts of the options that limit a search.

    Attributes
    ----------
    headroom : share of a GPU's memory that every plan leaves free; `HEADROOM` by default
    within : wall time that the search may take; None: until it is done
    trainer : that has to run the plans
    """

    headroom: str | None = None
    within: str | None = None
    trainer: str = ANY


def plan(
    asked: Path | Question,
    *,
    out: Path | None,
    jobs: int | None,
    settings: Sequence[str] | None,
    user_code: bool,
    as_json: bool,
    confirms: bool = False,
    limits: SearchLimits = SearchLimits(),
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
    limits : texts of the options that limit the search

    Raises
    ------
    ConfigError : with all mistakes, or where no plan can be
    """
    given = overrides(settings)
    question = asked if isinstance(asked, Question) else None
    folder = out or new_folder(question.name if question is not None else f"plan-{Path(str(asked)).stem}")
    refuse_existing(folder)
    left_free = HEADROOM if limits.headroom is None else parse_share(limits.headroom, "--headroom")
    within_s = None if limits.within is None else parse_seconds(limits.within, "--within")
    made = trainer(limits.trainer)
    with CountLine(_KINDS) as told:
        watch = SearchWatch(told, as_json=as_json)
        how = _How(
            given=given, jobs=jobs, user_code=user_code, headroom=left_free, within_s=within_s, trainer=made,
            known=watch.known,
        )  # fmt: skip
        try:
            found = _of_file(asked, how) if isinstance(asked, Path) else _answered(asked, how)
        except KeyboardInterrupt:
            watch.print_known()
            raise
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
    """The settings of a search: ``--set``, processes, user code, memory left free, time, trainer and who watches."""

    given: dict[str, str]
    jobs: int | None
    user_code: bool
    headroom: float
    within_s: float | None
    trainer: Trainer | None
    known: Known

    def search(self, scenario: Scenario, *, fixed: frozenset[str], own: Scenario | None) -> Search:
        """Search so."""
        return search(
            scenario, fixed=fixed, workers=self.jobs, own=own, headroom=self.headroom, within_s=self.within_s,
            trainer=self.trainer, known=self.known,
        )  # fmt: skip


def _answered(asked: Question, how: _How) -> Search:
    """Search with a scenario made from options.

    Mistakes name the options.
    """
    with tempfile.TemporaryDirectory() as folder:
        try:
            scenario = read_scenario(asked.write(Path(folder)), how.given, user_code=how.user_code)
            return how.search(scenario, fixed=_set_by(how.given), own=scenario if asked.has_own else None)
        except ConfigError as error:
            raise asked.of_options(error) from error


def _of_file(file: Path, how: _How) -> Search:
    """Search with a scenario; keys of its file stay, except those that ``--set KEY=null`` opens.

    The plan of the file runs too, where it has keys of a plan and can be.
    """
    opened, of_file = _opened_by(how.given), _set_in(file)
    fixed = (_set_by(how.given) | of_file) - opened
    kept = {key: text for key, text in how.given.items() if key.removeprefix("training.") not in opened}
    has_own = bool(of_file & frozenset(SEARCHED))
    own = None
    with suppress(ConfigError):  # what is opened may be what cannot be
        own = read_scenario(file, kept, user_code=how.user_code) if has_own else None
    scenario = read_scenario(file, how.given, user_code=how.user_code)
    found = how.search(scenario, fixed=fixed, own=own)
    return replace(found, own_mistakes=())  # a file with some keys of a plan need not be one that can be


def _set_by(given: dict[str, str]) -> frozenset[str]:
    """Keys of ``training`` in ``--set``."""
    return frozenset(key.partition(".")[0] for key, value in _given_keys(given) if value is not None)


def _opened_by(given: dict[str, str]) -> frozenset[str]:
    """Keys of ``training`` that ``--set KEY=null`` takes out of the file."""
    return frozenset(key for key, value in _given_keys(given) if value is None)


def _given_keys(given: dict[str, str]) -> list[tuple[str, Any]]:
    """Keys behind ``training.``, with their values."""
    named = ((key.removeprefix("training."), text) for key, text in given.items() if key.startswith("training."))
    return [(key, yaml.safe_load(text)) for key, text in named]


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
    for text in overlap_words(document):
        out.print(Text(text), soft_wrap=True)
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
    times = amounts_apart([one["iteration_ps"] for one in best], "ps")
    for one, time in zip(best, times, strict=True):
        table.add_row(
            one["short"],
            time,
            f"{one['tokens_per_s']:,.0f}",
            amount(one["mfu"], "share"),
            amount(one["memory_bytes"], "B"),
            amount(one["exposed_share"], "share"),
            *([one["limited_by"]] if has_bottleneck else []),
            loss_words(one),
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
