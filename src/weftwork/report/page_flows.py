"""The parts of a page about flows and collectives.

They are completion times, and why the slowest flows were slow.
"""

from __future__ import annotations

from collections import Counter
from html import escape
from typing import TYPE_CHECKING, Final

import numpy as np

from weftwork.base.grammar import plural
from weftwork.base.units import SIZE, format_quantity
from weftwork.report.figures.axes import DASHES
from weftwork.report.figures.distribution import distribution
from weftwork.report.page_elements import PageSection, bar, notice, table
from weftwork.report.page_series import read_series, window_and_rate
from weftwork.report.slow_flows import slow_flows, why
from weftwork.report.tables import flows_by_size
from weftwork.report.words import amount, typeset

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from weftwork.report.over_time import OverTime
    from weftwork.report.page_series import RecordedSeries
    from weftwork.report.slow_flows import SlowFlow
    from weftwork.store.runs import Run

__all__ = ["completion", "flow_values", "slowest"]

_MOST_REPETITIONS: Final = 20
_MOST_OF_A_KIND: Final = 3  # chosen: what follows says nothing new
_MOST_NAMED: Final = len(DASHES)  # recorded flows, of which each has a line with its name in the part about series
_KEYS: Final = (
    ("behind", "waited behind its own queue pair"),
    ("own", "the port sent this flow"),
    ("others", "the port sent other traffic"),
    ("paused", "the port was paused"),
    ("idle", "none of these"),
)


def flow_values(run: Run, column: str) -> NDArray[np.float64]:
    """A column of the completed flows, over all seeds."""
    parts = [one.query(f"select {column} from flows where {column} is not null") for one in run.seeds or (run,)]  # noqa: S608 - a name of ours
    return np.concatenate([part[column].to_numpy().astype(np.float64) for part in parts])


def completion(run: Run) -> PageSection:
    """Times of collectives, and the distributions of completion times and slowdowns."""
    parts = [_collectives(run)] if not run.seeds else []
    found = run.seeds[:6] or (run,)
    times = [(_name(one), flow_values(one, "fct_ps")) for one in found]
    slowdowns = [(_name(one), flow_values(one, "slowdown")) for one in found]
    which = "messages" if "collective_duration_ps" in run.summary else "flows"
    charts = [
        distribution(f"Completion time of {which}", times, "ps"),
        distribution(
            f"Slowdown of {which}",
            slowdowns,
            "ratio",
            note="Slowdown: completion time over the time of the same message alone on an empty fabric.",
        ),
    ]
    parts.append(f'<div class="two">{"".join(charts)}</div>')
    if not run.seeds:
        parts.append(_by_size(run))
    lead = f"A curve shows the share of {which} that completed within a time."
    if not any(len(values) for _, values in times):
        lead = f"None of the {which} completed."
    elif len(run.seeds) > len(found):
        lead += f" Drawn: the first {len(found)} of {plural(len(run.seeds), 'seed')}."
    return PageSection(id="times", short="Times", title="How long it took", lead=lead, content="".join(parts))


def _name(run: Run) -> str:
    return run.path.name.replace("seed-", "seed ") if run.path.name.startswith("seed-") else "all flows"


def _collectives(run: Run) -> str:
    rows = run.collectives.to_pylist()
    if not rows:
        return ""
    longest = max((row["duration_ps"] or 0 for row in rows), default=0) or 1
    cells = [
        [
            f"{escape(row['operation'])} {row['repetition'] + 1}",
            typeset(format_quantity(SIZE, row["size_bytes"])),
            f"{row['ranks']:,}",
            bar((row["duration_ps"] or 0) / longest) + _cell(row["duration_ps"], "ps"),
            _cell(row["algorithm_bandwidth_bps"], "b/s"),
            _cell(row["bus_bandwidth_bps"], "b/s"),
            _cell(None if row["bus_bandwidth_bps"] is None else row["bus_bandwidth_bps"] / 8, "B/s"),
        ]
        for row in rows[:_MOST_REPETITIONS]
    ]
    caption = (
        "" if len(rows) <= _MOST_REPETITIONS else f"The first {_MOST_REPETITIONS} of {plural(len(rows), 'repetition')}"
    )
    return table(
        ("operation", "size", "GPUs", "time", "algorithm bandwidth", "bus bandwidth", "the same in bytes"),
        cells,
        caption=caption,
    )


def _cell(value: float | None, unit: str) -> str:
    return escape(typeset(amount(value, unit)))


def _by_size(run: Run) -> str:
    rows = flows_by_size(run).to_pylist()
    if len(rows) < 2:
        return ""
    cells = [
        [
            escape(row["size"]),
            f"{row['flows']:,}",
            *(_cell(row[f"fct_{name}_ps"], "ps") for name in ("p50", "p99", "p999")),
            *(_cell(row[f"slowdown_{name}"], "ratio") for name in ("p50", "p99", "p999")),
            _cell(row["goodput_mean_bps"], "b/s"),
        ]
        for row in rows
    ]
    head = ("size", "flows", "p50", "p99", "p99.9", "slowdown p50", "p99", "p99.9", "mean goodput")
    return table(head, cells, caption="By size of the flow")


def slowest(run: Run, over_time: OverTime | None) -> PageSection:
    """Some ten flows, each with parts of its time and reasons."""
    title, short = "The slowest flows, and why", "Slow flows"
    found = slow_flows(run, over_time)
    if not found:
        return PageSection(id="slow", short=short, title=title, content=notice(["There were no flows."]))
    alike: dict[tuple[tuple[str, str], ...], list[SlowFlow]] = {}
    for slow in found:  # flows with one story are told together
        alike.setdefault(tuple((reason.kind, reason.where) for reason in why(slow)), []).append(slow)
    shown, folded = _stories(list(alike.values()))
    recorded = read_series(run)
    cards = [_card(recorded, number, flows) for number, flows in enumerate(shown, 1)]
    cards += [_folded(folded)] if folded else []
    lead = (
        "The flows with the largest slowdown: completion time over the time of the flow alone. The bar splits the time "
        "of a flow by what the port that delayed it most did meanwhile."
    )
    has_split = any(slow.held is not None and slow.held.own_ps is not None for slow in found)
    keys = "".join(f'<span><i class="{kind}"></i>{name}</span>' for kind, name in _KEYS) if has_split else ""
    pairs = ", ".join(str(pair) for pair in sorted({slow.queue_pair for slow in found}))
    hint = ""
    if "rate_bps" not in recorded:
        hint = (
            '<p class="note">Rate and window over time were not recorded. '
            f"<code>weftwork run FILE --set 'engine.record={{flows: [{pairs}]}}'</code> records them for "
            "these flows.</p>"
        )
    return PageSection(
        id="slow",
        short=short,
        title=title,
        lead=lead,
        content=f'<div class="keys">{keys}</div>' + "".join([*cards, hint]),
    )


def _stories(alike: list[list[SlowFlow]]) -> tuple[list[list[SlowFlow]], list[SlowFlow]]:
    """The first few of similar stories, and the flows of all others.

    Similar stories have the same reasons at other ports.
    """
    shown: list[list[SlowFlow]] = []
    folded: list[SlowFlow] = []
    told: Counter[tuple[str, ...]] = Counter()
    for flows in alike:
        kinds = tuple(reason.kind for reason in why(flows[0]))
        told[kinds] += 1
        if told[kinds] <= _MOST_OF_A_KIND:
            shown.append(flows)
        else:
            folded += flows
    return shown, folded


def _folded(flows: list[SlowFlow]) -> str:
    heading = f"{plural(len(flows), 'more slow flow')} with the same reasons at other ports"
    rows = "".join(_line(one, why(one)[0].text) for one in flows)
    return f'<article class="flow"><details><summary>{heading}</summary><ul>{rows}</ul></details></article>'


def _line(slow: SlowFlow, text: str = "") -> str:
    facts = ", ".join(_facts(slow))
    said = f" {escape(typeset(text))}" if text else ""
    return f"<li><b>{escape(slow.name)}</b> <span>{escape(typeset(facts))}.</span>{said}{_split(slow)}</li>"


def _card(recorded: dict[str, list[RecordedSeries]], number: int, flows: list[SlowFlow]) -> str:
    """The first flow of similar stories, with the names of the others.

    It has its rate and window.
    """
    slow, others = flows[0], flows[1:]
    told = "".join(f"<span>{escape(typeset(text))}</span>" for text in _facts(slow))
    reasons = "".join(f"<li>{escape(typeset(reason.text))}</li>" for reason in why(slow))
    also = ""
    if others:
        heading = f"{plural(len(others), 'more slow flow')} with the same reasons at the same ports"
        also = f"<details><summary>{heading}</summary><ul>{''.join(_line(one) for one in others)}</ul></details>"
    return (
        f'<article class="flow"><div class="head"><h3>{number}. {escape(slow.name)}</h3>{told}</div>{_split(slow)}'
        f"<ul>{reasons}</ul>{_rate_and_window(recorded, slow.queue_pair)}{also}</article>"
    )


def _facts(slow: SlowFlow) -> list[str]:
    facts = [format_quantity(SIZE, slow.size_bytes)]
    facts.append(f"{amount(slow.took_ps, 'ps')}" if slow.is_done else f"not done after {amount(slow.took_ps, 'ps')}")
    if slow.slowdown is not None:
        facts.append(f"slowdown {amount(slow.slowdown, 'ratio')}")
    return [*facts, f"posted at {amount(slow.start_ps, 'ps')}", f"flow {slow.flow}, queue pair {slow.queue_pair}"]


def _split(slow: SlowFlow) -> str:
    held = slow.held
    if held is None or held.own_ps is None:
        return ""
    took = max(slow.took_ps, 1)
    shares = {
        "behind": slow.behind_ps / took,
        "own": held.own_ps / took,
        "others": (held.others_ps or 0.0) / took,
        "paused": (held.paused_ps or 0.0) / took,
    }
    names = dict(_KEYS)
    told = "; ".join(f"{names[kind]} {amount(share, 'share')}" for kind, share in shares.items() if share > 0.0005)
    parts = "".join(
        f'<i class="{kind}" style="width:{100 * share:.2f}%"></i>' for kind, share in shares.items() if share > 0.0005
    )
    label = escape(typeset(f"{held.name}: {told}"))
    return f'<div class="split" role="img" aria-label="{label}" title="{label}">{parts}</div>'


def _rate_and_window(recorded: dict[str, list[RecordedSeries]], queue_pair: int) -> str:
    """Rate and window of a flow, or a link to their chart."""
    rates = recorded.get("rate_bps", [])
    if all(one.queue_pair != queue_pair for one in rates):
        return ""
    if len(rates) > _MOST_NAMED:
        return window_and_rate(recorded, queue_pair)
    return '<p class="note"><a href="#series">Rate and window of this flow</a> are drawn above.</p>'
