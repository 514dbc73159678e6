"""Tables of a comparison on a page.

They have a row for each run, and a row for each different fabric.
"""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from weftwork.base.grammar import plural
from weftwork.report.comparison_words import (
    different_fabrics,
    fabric_names,
    has_prices_apart,
    price_doubts,
    ratio_words,
    switch_words,
    time_noun,
)
from weftwork.report.money import money_words, power_words
from weftwork.report.page_elements import PageSection, notice, table
from weftwork.report.words import amount, change, typeset
from weftwork.spec.sweep import SAME

if TYPE_CHECKING:
    from collections.abc import Callable

    from weftwork.spec.comparison import ComparedRun, RunComparison, Spread, WorkloadGroup

__all__ = ["fabric_tables", "run_tables"]

_NONE = "\u2013"


def run_tables(found: RunComparison) -> str:
    """A table for each workload, with a row for each run.

    Time, change and price come first, since a narrow screen shows the first columns.
    """
    return "".join(_run_table(found, group) for group in found.groups)


def _run_table(found: RunComparison, group: WorkloadGroup) -> str:
    own = [found.runs[place] for place in group.runs]
    is_grouped = len(found.groups) > 1
    has_change = len(own) > 1
    speeds = list(dict.fromkeys(run.speed_name for run in own if run.speed_name))
    has_exposed = any(run.exposed_share is not None for run in own)
    has_price = has_prices_apart(found)
    has_fabric = any(run.fabric is not None for run in own)
    heads = ["run", time_noun(own[0])]
    heads += ["change"] if has_change else []
    heads += ["price of the fabric", "per GPU"] if has_price else []
    heads += speeds
    heads += ["exposed"] if has_exposed else []
    heads += ["oversubscription"] if has_fabric else []
    heads += ["to blame"]
    rows = []
    for place, run in zip(group.runs, own, strict=True):
        cells = [escape(run.short if is_grouped else run.label), _time(run)]
        cells += [_change(run, is_first=place == group.first)] if has_change else []
        cells += list(_price(run)) if has_price else []
        cells += [_cell(amount(run.speed, run.speed_unit)) if run.speed_name == name else _NONE for name in speeds]
        cells += (
            [_NONE if run.exposed_share is None else _cell(amount(run.exposed_share, "share"))] if has_exposed else []
        )
        cells += [_NONE if run.fabric is None else _cell(ratio_words(run.fabric))] if has_fabric else []
        rows.append([*cells, _culprit(run)])
    words = tuple(place for place, head in enumerate(heads) if head in {"oversubscription", "to blame"})
    return _named(table(heads, rows, caption=group.name if is_grouped else "", texts=words))


def _named(content: str) -> str:
    """A table whose long names wrap, so that its numbers stay on the screen."""
    return f'<div class="named">{content}</div>'


def _cell(text: str) -> str:
    return escape(typeset(text))


def _time(run: ComparedRun) -> str:
    if run.value_ps is None:
        return escape(run.status)
    told = _cell(amount(run.value_ps, "ps"))
    if run.low_ps is None or run.high_ps is None:
        return told
    low, high = (amount(end, "ps") for end in (run.low_ps, run.high_ps))
    return f"{told} <small>{_cell(f'{low} to {high}')}</small>"


def _change(run: ComparedRun, *, is_first: bool) -> str:
    if is_first or run.change is None:
        return _NONE
    seeds = "" if run.is_clear is None else " (clear)" if run.is_clear else " (within the seeds)"
    return _cell((change(run.change) if abs(run.change) >= SAME else "the same") + seeds)


def _price(run: ComparedRun) -> tuple[str, str]:
    if run.fabric is None or run.fabric.price_usd is None:
        return _NONE, _NONE
    dollars = run.fabric.price_usd.typical
    return money_words(dollars), money_words(dollars / run.fabric.gpus)


def _culprit(run: ComparedRun) -> str:
    if not run.culprit:
        return _NONE
    if not run.culprit_share:
        return escape(run.culprit)
    bound = "at most " if run.culprit_how == "bound" else ""
    return f"{escape(run.culprit)} <small>{_cell(bound + amount(run.culprit_share, 'share'))}</small>"


def fabric_tables(found: RunComparison) -> list[PageSection]:
    """A row for each different fabric; empty without a rebuilt one."""
    fabrics, names = different_fabrics(found), fabric_names(found)
    if not fabrics:
        return []
    sizes = {one.gpus for one in fabrics.values()}
    rows = []
    for place, one in fabrics.items():
        each = None if one.price_usd is None else money_words(one.price_usd.typical / one.gpus)
        rows.append([
            escape("all runs" if len(fabrics) == 1 else names[place]),
            *([f"{one.gpus:,}"] if len(sizes) > 1 else []),
            _spread(one.price_usd, money_words),
            each or _NONE,
            _spread(one.power_w, power_words),
            _cell(ratio_words(one)),
            escape(switch_words(one)),
            f"{one.links:,}",
        ])  # fmt: skip
    gpus = ("GPUs",) if len(sizes) > 1 else ()
    heads = ("fabric", *gpus, "price", "per GPU", "power", "oversubscription", "switches", "links")
    size = "" if gpus else f" Each fabric has {plural(min(sizes), 'GPU')}."
    lead = (
        "Switches, NICs, optics and cables, counted on the links of each fabric. Oversubscription is that of the fabric"
        f" as built.{size} Small figures are the low and the high values of the price book."
    )
    words = (len(heads) - 3, len(heads) - 2)
    content = _named(table(heads, rows, texts=words)) + ("" if has_prices_apart(found) else notice(price_doubts(found)))
    return [
        PageSection(id="fabrics", short="Fabrics", title="The fabrics and their prices", lead=lead, content=content)
    ]


def _spread(value: Spread | None, words: Callable[[float], str]) -> str:
    if value is None:
        return _NONE
    return f"{words(value.typical)}<br><small>{words(value.low)} to {words(value.high)}</small>"
