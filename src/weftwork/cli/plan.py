"""``weftwork plan``: the fastest parallel plans for a model on so many GPUs."""

from __future__ import annotations

import json
import sys
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self

import typer
import yaml
from rich.table import Table
from rich.text import Text

from weftwork.base.errors import ConfigError, Mistake
from weftwork.base.whole_file import write_whole
from weftwork.cli.console import console
from weftwork.cli.plan_confirmed import print_confirmation
from weftwork.cli.progress import ProgressLine
from weftwork.cli.settings import overrides
from weftwork.report.page_plan import plan_page
from weftwork.report.plan_words import PLAN_FILE, SCENARIO_FILE, front_rows, left_out, plan_verdict
from weftwork.report.words import amount, plural
from weftwork.spec.scenario.migrations import SCHEMA
from weftwork.spec.scenario.scenario import dump
from weftwork.spec.scenario.yaml_tree import write_tree
from weftwork.store.runs import fresh_folder, new_folder, refuse_existing
from weftwork.study.plan.best import MOST, sweep_of_best
from weftwork.study.plan.confirm import confirm
from weftwork.study.plan.confirm_words import confirmation_document
from weftwork.study.plan.search import BEST, search
from weftwork.study.plan.words import loss, search_document, short_words
from weftwork.study.prepare.prepare import read_scenario

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rich.console import Console

    from weftwork.study.plan.confirm import Confirmation
    from weftwork.study.plan.search import Ranked, Search

__all__ = ["Question", "plan", "question"]

PAGE: Final = "page.html"
SWEEP_FILE: Final = "best.yaml"
SWITCH: Final = "tomahawk-5"  # chosen: of the fabric where no file names one: 64 ports of 800 Gb/s
TOKENS: Final = 4 * 2**20  # chosen: of a batch that nobody gives; Llama 3 trained with 4 to 16 Mi (arXiv:2407.21783)
SEQUENCE: Final = 8_192  # chosen: of a batch that nobody gives; the length of Llama 3's first stage
OPTIONS: Final = {  # by the key that each sets
    "training.model": "--model", "fabric.node": "--node", "fabric.gpus": "--gpus", "training": "--gpus",
    "training.global_batch": "--global-batch", "training.sequence": "--sequence",
}  # fmt: skip


@dataclass(frozen=True, kw_only=True, slots=True)
class Question:
    """What is planned where no file says it.

    Attributes
    ----------
    model : of the catalogue, or a config.json
    node : server of the catalogue
    gpus : how many
    global_batch, sequence : sequences of an iteration, tokens of a sequence; None: chosen
    """

    model: str
    node: str
    gpus: int
    global_batch: int | None = None
    sequence: int | None = None

    def scenario_text(self) -> str:
        """The scenario that asks it."""
        sequence = self.sequence or SEQUENCE
        model = str(Path(self.model).absolute()) if self.model.endswith(".json") else self.model
        batch = self.global_batch or max(1, TOKENS // sequence)
        tree: dict[str, Any] = {
            "schema": SCHEMA,
            "name": f"{self.model} on {self.gpus} GPUs",
            "fabric": {"topology": "rail-optimized", "gpus": self.gpus, "node": self.node, "switch": SWITCH},
            "training": {"model": model, "global_batch": batch, "sequence": sequence},
            "engine": {"fidelity": "flow"},
        }
        return write_tree(tree)


def plan(
    asked: Path | Question,
    *,
    out: Path | None,
    jobs: int | None,
    settings: Sequence[str] | None,
    user_code: bool,
    as_json: bool,
    confirms: bool = False,
) -> None:
    """Search plans, print the best, and write the best one as a scenario.

    Parameters
    ----------
    asked : a scenario whose ``training`` may leave keys out, or what a scenario would say
    out : folder to write
    jobs : processes side by side; by default one for each core
    settings : ``key=value`` texts of ``--set``; such keys are not searched
    user_code : False refuses every Python file of the user's own that the scenario names
    as_json : one JSON object instead of words
    confirms : whether the best plan runs packet by packet too

    Raises
    ------
    ConfigError : with all mistakes, or where no plan can be
    """
    given = overrides(settings)
    name = f"plan-{asked.stem}" if not isinstance(asked, Question) else f"plan-{Path(asked.model).stem}-{asked.gpus}"
    folder = new_folder(name) if out is None else out
    refuse_existing(folder)
    if isinstance(asked, Question):
        found = _answered(asked, given, jobs, user_code=user_code)
    else:
        found = _found(asked, given, _set_by(given) | _set_in(asked), jobs, user_code=user_code)
    document = search_document(found)
    with fresh_folder(folder) as fresh:
        scenario = dump(found.winner)
        write_whole(fresh / SCENARIO_FILE, scenario)
        write_whole(fresh / SWEEP_FILE, sweep_of_best(found))
        write_whole(fresh / PLAN_FILE, json.dumps(document, indent=2) + "\n")
        write_whole(fresh / PAGE, plan_page(document, str(folder), scenario))
    confirmed = None
    if confirms:  # behind the folder: who loses patience with the packets keeps the search
        with ProgressLine() as line:
            confirmed = confirm(found.winner, on_progress=line)
        document["confirmation"] = confirmation_document(confirmed)
        write_whole(folder / PLAN_FILE, json.dumps(document, indent=2) + "\n")
        write_whole(folder / PAGE, plan_page(document, str(folder), scenario))
    if as_json:
        typer.echo(json.dumps({"folder": str(folder), **document}, indent=2))
        return
    _print(found, document, folder, console(), confirmed)


def _answered(asked: Question, given: dict[str, str], jobs: int | None, *, user_code: bool) -> Search:
    """Search by a scenario that nobody has written: mistakes name the options."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "question.yaml"
        file.write_text(asked.scenario_text(), encoding="utf-8")
        try:
            return _found(file, given, _set_by(given), jobs, user_code=user_code)
        except ConfigError as error:
            raise _of_options(error) from error


def _found(file: Path, given: dict[str, str], fixed: frozenset[str], jobs: int | None, *, user_code: bool) -> Search:
    with _Told() as told:
        scenario = read_scenario(file, given, user_code=user_code)
        return search(scenario, fixed=fixed, workers=jobs, progress=told)


def _set_by(given: dict[str, str]) -> frozenset[str]:
    """Keys of ``training`` that ``--set`` names."""
    named = (key for key in given if key.startswith("training."))
    return frozenset(key.removeprefix("training.").partition(".")[0] for key in named)


def _set_in(file: Path) -> frozenset[str]:
    """Keys of ``training`` that a file gives; a file that cannot be read is told of by whoever reads it next."""
    try:
        tree = yaml.safe_load(file.read_text(encoding="utf-8-sig"))
    except (OSError, ValueError, yaml.YAMLError):
        return frozenset()
    section = tree.get("training") if isinstance(tree, dict) else None
    return frozenset(section) if isinstance(section, dict) else frozenset()


def _of_options(error: ConfigError) -> ConfigError:
    """Mistakes of a scenario that nobody has written, by the options that it was made of."""
    return ConfigError(
        "command line",
        [replace(one, path=OPTIONS.get(one.path, one.path), line=None) for one in error.mistakes],
    )


class _Told:
    """Progress on standard error, where that is a terminal."""

    def __init__(self) -> None:
        self._is_on = sys.stderr is not None and sys.stderr.isatty()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._is_on:
            sys.stderr.write("\r\033[K")

    def __call__(self, what: str, done: int, of: int) -> None:
        if not self._is_on:
            return
        kinds = {
            "counting": "ways to spread the GPUs counted",
            "running": "plans, at most, run on the flow engine",
            "placing": "other placements of the best plans run",
        }
        words = f"{done:,} of {of:,} {kinds[what]}"
        sys.stderr.write(f"\r\033[K{words}")
        sys.stderr.flush()


def _print(
    found: Search, document: Mapping[str, Any], folder: Path, out: Console, confirmed: Confirmation | None
) -> None:
    best = found.best[0]
    for text in plan_verdict(document):
        out.print(Text(text), soft_wrap=True)
    out.print()
    if confirmed is not None:
        print_confirmation(confirmed, out)
    out.print(_table(found.best[:BEST], best))
    out.print()
    for text in left_out(document):
        out.print(Text(text), soft_wrap=True)
    out.print()
    out.print(Text("Time against memory, by closed forms:"))
    out.print(_front_table(document))
    out.print()
    out.print(Text(f"The best plan as a scenario: weftwork run {folder / SCENARIO_FILE}"), soft_wrap=True)
    several = plural(min(MOST, len(found.best)), "best plan")
    text = f"The {several} against any other key: weftwork sweep {folder / SWEEP_FILE} --set KEY=VALUE,VALUE"
    out.print(Text(text), soft_wrap=True)
    out.print(Text(f"page: {folder / PAGE}"), soft_wrap=True)


def _table(ranked: Sequence[Ranked], best: Ranked) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column("plan")
    for name in ("time", "tokens/s", "MFU", "memory", "exposed"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("loses by")
    for one in ranked:
        kind, more_ps = loss(one, best)
        table.add_row(
            short_words(one.candidate.keys),
            amount(one.iteration_ps, "ps"),
            f"{one.numbers['tokens_per_s'].value:,.0f}",
            amount(one.numbers["mfu"].value, "share"),
            amount(one.candidate.memory_bytes, "B"),
            amount(one.numbers["exposed_share"].value, "share"),
            "" if one is best else f"{kind}, {amount(more_ps, 'ps')}",
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


def question(
    *, model: str | None, node: str | None, gpus: int | None, global_batch: int | None, sequence: int | None
) -> Question:
    """What ``--model``, ``--node`` and ``--gpus`` ask.

    Raises
    ------
    ConfigError : one of the three is missing
    """
    given = {"--model": model, "--node": node, "--gpus": gpus}
    if model is None or node is None or gpus is None:
        examples = {"--model": "llama-3-70b", "--node": "dgx-h100", "--gpus": "512"}
        raise ConfigError(
            "command line",
            [
                Mistake(path=name, text=f"is missing without FILE; such as {name} {examples[name]}")
                for name, value in given.items()
                if value is None
            ],
        )
    return Question(model=model, node=node, gpus=gpus, global_batch=global_batch, sequence=sequence)
