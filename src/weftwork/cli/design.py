"""``weftwork design``: the fabric to build, and the cost of each step."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import typer
from rich.table import Table
from rich.text import Text

from weftwork.base.errors import ConfigError, Mistake
from weftwork.base.nearest import nearest
from weftwork.base.whole_file import write_whole
from weftwork.cli.console import console
from weftwork.cli.leave import FAILED, INTERRUPTED
from weftwork.cli.plan_confirmed import print_confirmation
from weftwork.cli.progress import CountLine, ProgressLine
from weftwork.cli.settings import overrides
from weftwork.report.design_folder import FABRICS, RESULT
from weftwork.report.design_words import design_verdict, loser_words, money, power, pruned_lines
from weftwork.report.page_design import PAGE, design_page
from weftwork.report.words import amount
from weftwork.store.runs import new_folder
from weftwork.store.sweeps import write_command
from weftwork.study.design.prune import Limits
from weftwork.study.design.search import Design, DesignQuestion, design, fabric_named
from weftwork.study.design.words import design_document
from weftwork.study.plan.confirm import confirm
from weftwork.study.plan.confirm_words import confirmation_document
from weftwork.study.prepare.prepare import read_scenario

if TYPE_CHECKING:
    from weftwork.study.plan.confirm import Confirmation

__all__ = ["design_command", "parse_amount"]

_KINDS: Final = {  # what is counted while a design goes on
    "planning": "steps of the search for a plan done",
    "building": "candidates built and priced",
    "running": "fabrics run on the flow engine",
}
_SHOWN: Final = 12  # chosen: losers that a screen still holds
_PREFIX: Final = {"": 1.0, "k": 1e3, "m": 1e6, "g": 1e9, "b": 1e9}
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
        text = f"found '{text}', wanted an amount above 0 such as {'80M' if option == '--budget' else '2MW'}"
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
    )
    folder = new_folder(f"{file.stem}-design") if out is None else out
    with CountLine(_KINDS) as line:
        found = design(question, folder, workers=jobs, progress=None if as_json else line)
    resume = _resume(found, budget, most_power, only or (), settings or (), confirms)
    document = design_document(found)
    texts = {one.name: fabric_named(found, one.name) for one in found.ran}
    _write_fabrics(found, texts, resume)
    _write(found, document, resume, texts)
    confirmed = None
    if confirms is not None and found.end == "done":
        confirmed, name = _confirmed(found, confirms)
        document["confirmation"] = {"candidate": name, **confirmation_document(confirmed)}
        _write(found, document, resume, texts)
    if as_json:
        typer.echo(json.dumps({"folder": str(folder), "resume": resume, **document}, indent=2))
    else:
        _print(found, document, confirmed)
    if found.end != "done":
        why = "the disk is full" if found.end == "full" else "the design was interrupted"
        typer.echo(f"{why}: finished runs are kept; continue with: {resume}", err=True)
        return INTERRUPTED if found.end == "interrupted" else FAILED
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


def _resume(
    found: Design, budget: str | None, most_power: str | None, only: Sequence[str], settings: Sequence[str],
    confirms: str | None,
) -> str:  # fmt: skip
    """The command that continues this design, with its folder."""
    question = found.question
    words = ["weftwork", "design", str(question.file)]
    options = {"--gpus": question.gpus, "--budget": budget, "--power": most_power, "--prices": question.prices,
               "--confirm": confirms}  # fmt: skip
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
    name = (found.knee or "") if wanted == "knee" else wanted
    names = [one.name for one in found.ran]
    if name not in names:
        text = f"found '{wanted}', wanted knee or a candidate that was not pruned: {', '.join(names)}"
        raise ConfigError("command line", [Mistake(path="--confirm", text=text, fix=nearest(wanted, names))])
    scenario = read_scenario(found.folder / FABRICS / f"{name}.yaml", {}, user_code=found.question.user_code)
    if scenario.training is None:
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


def _table(candidates: Sequence[Mapping[str, Any]], *, losers: bool) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column("name", no_wrap=True)
    table.add_column("fabric")
    for heading in ("switches", "money", "power", "time"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("loses" if losers else "")
    for one in candidates:
        table.add_row(
            one["name"],
            one["words"],
            f"{sum(one['switches']):,}",
            money(one["price_usd"]["typical"]),
            power(one["power_w"]["typical"]),
            "none" if one["counting_time_ps"] is None else amount(one["counting_time_ps"], "ps"),
            loser_words(one) if losers else "knee" if one["is_knee"] else "",
            style="bold" if one["is_knee"] else "",
        )
    return table
