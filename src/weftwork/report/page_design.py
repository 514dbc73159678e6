"""The page of a design.

It has the recommended fabric, the front, its fabrics, why losers lose, and what was pruned.

Takes the document that `weftwork design` writes as ``result.json``. Leaves out: the pages of single runs, which
`weftwork report` makes of their folders.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any, Final

from weftwork.base.grammar import plural
from weftwork.base.version import VERSION
from weftwork.report.design_folder import FABRICS
from weftwork.report.design_tables import KIND_COLUMNS, PLACED_COLUMNS, DesignRow, kind_rows, marks, placed_rows
from weftwork.report.design_words import (
    design_verdict,
    failed_words,
    loser_words,
    of_front,
    taken,
    unfinished_words,
    work_amount,
)
from weftwork.report.figures.axes import figure
from weftwork.report.figures.front import FrontDot, FrontLimit, front_chart
from weftwork.report.figures.stacked import StackedBar, stacked
from weftwork.report.money import money_words, power_words
from weftwork.report.page_confirmation import confirmation_section
from weftwork.report.page_elements import PageSection, Tile, notice, paragraphs, render, table, tiles
from weftwork.report.words import amount, amounts_apart, typeset
from weftwork.spec.numbers import NUMBERS
from weftwork.spec.study_ends import STUDY_ENDS

__all__ = ["PAGE", "design_page"]

PAGE: Final = "page.html"
_KINDS: Final = {  # of the bill, with the colour of their bars
    "switch": ("switches", "k0"),
    "module": ("transceivers", "k6"),
    "cable": ("cables and fibres", "k4"),
    "nic": ("NICs", "k9"),
    "optical": ("optical switches", "k12"),
    "appliance": ("appliances", "k15"),
}
_NEAR: Final = 0.0005  # chosen: shares that round to 0.0 %


def design_page(document: Mapping[str, Any], folder: str, resume: str, scenarios: Mapping[str, str]) -> str:
    """Make the page.

    Parameters
    ----------
    document : of ``result.json``
    folder : that holds it
    resume : command that goes on with the design, or shows it again
    scenarios : YAML by the name of each candidate that was left

    Returns
    -------
    HTML, one file
    """
    confirmed = document.get("confirmation")
    sections = [
        _answer(document, resume),
        *_kinds(document),
        *_as_placed(document),
        *_front(document),
        *_fabrics(document, folder, scenarios),
        *([] if confirmed is None else [_confirmed(confirmed)]),
        *_losers(document),
        *_pruned(document),
        _behind(document, folder, resume),
    ]
    what = [
        ("design", f"a fabric for {plural(document['gpus'], 'GPU')} in {document['node']} servers"),
        ("judged by", f"{_CRITERIA.get(document['criterion'], document['criterion'])}; {_by(document)}"),
        ("prices", document["prices"]),
    ]
    limits = _limits(document)
    return render(document["name"], what + ([("limits", limits)] if limits else []), sections)


def _by(document: Mapping[str, Any]) -> str:
    return "closed forms alone" if _is_closed(document) else "the flow engine"


def _is_closed(document: Mapping[str, Any]) -> bool:
    return bool(document["by"] != "flow engine")


def _time_name(document: Mapping[str, Any]) -> str:
    name = NUMBERS.get(document["number"], NUMBERS["completion_ps"]).noun
    return f"{name} that counts" if any(one["useful_share"] < 1 for one in document["candidates"]) else name


def _limits(document: Mapping[str, Any]) -> str:
    found = [
        f"at most {words(document[key])}"
        for key, words in (("budget_usd", money_words), ("power_budget_w", power_words))
        if document[key] is not None
    ]
    return " and ".join(found)


def _timed(document: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return [one for one in document["candidates"] if one["counting_time_ps"] is not None]


_CRITERIA: Final = {
    "work-per-dollar": "work for a dollar of the whole cluster",
    "knee": "the knee of network money and time",
    "time": "the least time",
    "money": "the least money of the network",
    "power": "the least power of the network",
}


def _answer(document: Mapping[str, Any], resume: str) -> PageSection:
    take = taken(document)
    left = len(document["candidates"])
    shown = []
    if take is not None:
        price, draw = take["price_usd"], take["power_w"]
        if take["work_per_usd"] is not None:
            work = work_amount([take["work_per_usd"]], document["cluster"]["work_unit"])[0]
            shown.append(
                Tile(
                    name="work for a dollar", value=work, note=f"cluster: {money_words(take['cluster_usd']['typical'])}"
                )
            )
        shown += [
            Tile(name="money of the network", value=money_words(price["typical"]), note=_range(price, money_words)),
            Tile(name="power of the network", value=power_words(draw["typical"]), note=_range(draw, power_words)),
            Tile(name=_time_name(document), value=amount(take["counting_time_ps"], "ps"), note=_most(take)),
        ]
        if take["placed_time_ps"] is not None:
            placed = amount(take["placed_time_ps"], "ps")
            shown.append(Tile(name="as a scheduler places", value=placed, note="mean of its runs"))
    counted = document["counted"]
    shown += [
        Tile(name="candidates counted", value=f"{counted:,}"),
        Tile(name="pruned by closed forms", value=f"{counted - left:,}"),
        Tile(name="left", value=f"{left:,}", note=f"{len(of_front(document)):,} on the front"),
    ]
    content = (
        notice(_warnings(document, resume))
        + paragraphs(design_verdict(document, has_ending=False), "answer")
        + tiles(shown)
    )
    return PageSection(id="answer", short="Answer", title="The fabric to take", content=content)


def _range(value: Mapping[str, float], words: Any) -> str:  # noqa: ANN401 - of money or of power
    low, high = words(value["low"]), words(value["high"])
    return "" if low == high else f"{low} to {high}"


def _most(one: Mapping[str, Any]) -> str:
    return f"most: {one['limited_by']}" if one["limited_by"] else ""


def _warnings(document: Mapping[str, Any], resume: str) -> list[str]:
    """Warnings that a reader must not overlook."""
    found = []
    if _is_closed(document):
        found.append(
            "Closed forms alone: nothing was run. Times are as if all traffic crossed the tier with the least"
            " bandwidth, so the order of fabrics, the front and the knee can differ from those of runs. Leave"
            " --closed-forms out to run the fabrics."
        )
    found += failed_words(document, taken(document))
    waiting = [one for one in document["candidates"] if one["time_ps"] is None and not one.get("has_failed")]
    if not STUDY_ENDS[document["end"]].is_done:
        found += [f"{text} Continue with: {resume}" for text in unfinished_words(document)]
    else:
        found += [f"{one['name']} ({one['words']}) has no time: {one['reason']}" for one in waiting[:5]]
        found += [f"And {len(waiting) - 5:,} more without a time."] if len(waiting) > 5 else []
    return found


def _kinds(document: Mapping[str, Any]) -> list[PageSection]:
    """Named topologies side by side, for whoever signs."""
    if not document["kinds"]:
        return []
    rows = _linked(kind_rows(document), 1)
    return [
        PageSection(
            id="kinds",
            short="Side by side",
            title="The named topologies side by side",
            lead="The best fabric of each topology that was named, also of those that lose. A dead leaf is the switch"
            " of the first server, without which the job runs again.",
            content=table([name for name, _ in KIND_COLUMNS], rows, texts=(1, 4, 8, 9)),
        )
    ]


def _as_placed(document: Mapping[str, Any]) -> list[PageSection]:
    """Candidates that ran as a scheduler places ranks."""
    judged = [one for one in document["candidates"] if one["placed"]]
    if not judged:
        return []
    rows = _linked(placed_rows(document, judged), 0)
    return [
        PageSection(
            id="placed",
            short="As placed",
            title="As a scheduler places ranks",
            lead="The last candidates run packed, with whole servers at random, and in fragments of neighbouring"
            " servers in random order. The choice goes by the mean of the last two.",
            content=table([name for name, _ in PLACED_COLUMNS], rows, texts=(1,)),
        )
    ]


def _linked(rows: Sequence[DesignRow], place: int) -> list[list[str]]:
    """Cells of rows, those of the recommended candidate in bold."""
    found = []
    for row in rows:
        cells = [escape(typeset(cell)) for cell in row.cells]
        tag = ' <span class="tag">take</span>' if row.is_take else ""
        cells[place] += tag
        found.append([f"<b>{cell}</b>" if row.is_take and cell else cell for cell in cells])
    return found


def _front(document: Mapping[str, Any]) -> list[PageSection]:
    timed = _timed(document)
    if not timed:
        return []
    time = _time_name(document)
    budget, most = document["budget_usd"], document["power_budget_w"]
    by_money = front_chart(
        ("money", time),
        _dots(timed, "price_usd"),
        words=money_words,
        short=_dollars,
        limit=None if budget is None else FrontLimit(at=budget, words=f"budget: {money_words(budget)}"),
    )
    by_power = front_chart(
        ("power", time),
        _dots(timed, "power_w"),
        words=power_words,
        short=_watts,
        limit=None if most is None else FrontLimit(at=most, words=f"at most {power_words(most)}"),
        height_px=280,
    )
    note = (
        "Neither axis begins at zero. The line is the least time at each cost. A dot of the front above the line is"
        " better in the third cost. A click on a dot leads to its fabric."
    )
    by = "by closed forms alone" if _is_closed(document) else "run on the flow engine"
    return [
        PageSection(
            id="front",
            short="Front",
            title="Money, power and time",
            lead=f"Each dot is a fabric that was not pruned, {by}; less is better on both axes. For a fabric of the"
            " front, no other fabric is better in one of money, power and time without being worse in another.",
            content=figure(f"Money against {time}", by_money, note=note)
            + figure(f"Power against {time}", by_power)
            + _front_table(document),
        )
    ]


def _dots(timed: Sequence[Mapping[str, Any]], key: str) -> list[FrontDot]:
    return [
        FrontDot(
            name=one["name"],
            words=one["words"],
            x=one[key]["typical"],
            y=one["counting_time_ps"],
            anchor=_anchor(one["name"]),
            is_front=one["is_front"],
            is_knee=one["is_knee"],
        )
        for one in timed
    ]


def _anchor(name: str) -> str:
    return f"fabric-{name}"


def _link(name: str) -> str:
    return f'<a href="#{escape(_anchor(name), quote=True)}">{escape(name)}</a>'


def _dollars(value_usd: float) -> str:
    """Dollars at a tick, without zeros behind the point."""
    steps = ((1e9, "B"), (1e6, "M"), (1e3, "k"))
    found = next(((step, name) for step, name in steps if value_usd >= step), (1.0, ""))
    return f"${round(value_usd / found[0], 3):,g}{found[1]}"


def _watts(value_w: float) -> str:
    found = next(((step, name) for step, name in ((1e6, "MW"), (1e3, "kW")) if value_w >= step), (1.0, "W"))
    return f"{round(value_w / found[0], 3):,g} {found[1]}"


def _front_table(document: Mapping[str, Any]) -> str:
    """The front in numbers, and the cost of each step."""
    rows = []
    before: Mapping[str, Any] | None = None
    times = amounts_apart([one["counting_time_ps"] for one in of_front(document)], "ps")
    for one, time_words in zip(of_front(document), times, strict=True):
        step = ""
        if before is not None:
            step = _step(one, before)
        name = _link(one["name"])
        cells = [
            " ".join([name, *(f'<span class="tag">{mark}</span>' for mark in marks(one))]),
            escape(typeset(one["words"])),
            *(
                escape(typeset(text))
                for text in (
                    money_words(one["price_usd"]["typical"]),
                    power_words(one["power_w"]["typical"]),
                    time_words,
                    step,
                )
            ),
        ]
        rows.append([f"<b>{cell}</b>" if one["is_take"] and cell else cell for cell in cells])
        before = one
    return table(("name", "fabric", "money", "power", "time", "after the one above"), rows, texts=(1,))


def _step(one: Mapping[str, Any], before: Mapping[str, Any]) -> str:
    """Extra cost and gain of a fabric over the one before it."""
    dollars = one["price_usd"]["typical"] - before["price_usd"]["typical"]
    share = one["counting_time_ps"] / before["counting_time_ps"] - 1
    if abs(share) < _NEAR:
        brings = "the same time"
    else:
        brings = f"{amount(abs(share), 'share')} {'more' if share > 0 else 'less'} time"
    return f"{money_words(dollars)} more, {brings}"


def _fabrics(document: Mapping[str, Any], folder: str, scenarios: Mapping[str, str]) -> list[PageSection]:
    best = of_front(document)
    if not best:
        return []
    bars = [
        StackedBar(
            name=typeset(f"{one['name']}: {one['words']}"),
            lengths=tuple(one["money_by_kind_usd"].get(kind, {"typical": 0.0})["typical"] for kind in _KINDS),
            note=money_words(one["price_usd"]["typical"]),
            is_best=one["is_knee"],
        )
        for one in best
    ]
    drawn = figure(
        "Where the money goes", stacked(list(_KINDS.values()), bars, "count"), aside="typical prices, in dollars"
    )
    cards = "".join(_card(one, document, folder, scenarios.get(one["name"], "")) for one in best)
    return [
        PageSection(
            id="fabrics",
            short="Fabrics",
            title="The fabrics of the front",
            lead="Parts and costs of each fabric, the cheapest first.",
            content=(drawn if len(best) > 1 else "") + cards,
        )
    ]


def _card(one: Mapping[str, Any], document: Mapping[str, Any], folder: str, scenario: str) -> str:
    """The card of one fabric."""
    name = escape(one["name"])
    tag = "".join(f'<span class="tag">{mark}</span>' for mark in marks(one))
    shown = [
        Tile(name="money", value=money_words(one["price_usd"]["typical"]), note=_range(one["price_usd"], money_words)),
        Tile(name="power", value=power_words(one["power_w"]["typical"]), note=_range(one["power_w"], power_words)),
        Tile(name=_time_name(document), value=amount(one["counting_time_ps"], "ps"), note=_most(one)),
        Tile(name="switches", value=f"{sum(one['switches']):,}", note=plural(sum(one["links"]), "link")),
    ]
    run = one["run"]
    parts = [f"its run <code>{escape(run)}</code>"] if run else []
    parts.append(f"its scenario <code>{FABRICS}/{name}.yaml</code>")
    file = f"{folder}/{FABRICS}/{one['name']}.yaml"
    command = f"weftwork report {shlex.quote(f'{folder}/{run}')}" if run else f"weftwork run {shlex.quote(file)}"
    where = f"In the folder of the design: {', '.join(parts)}. A page of it: <code>{escape(command)}</code>"
    return (
        f'<div class="flow" id="{_anchor(name)}"><div class="head"><h3>{name}</h3>{tag}'
        f"<span>{escape(typeset(one['words']))}</span></div>{tiles(shown)}"
        f"{paragraphs(_told(one, document), 'told')}"
        f'<div class="pair">{_tiers(one)}{_bill(one)}</div>'
        f'<p class="note">{where}</p>'
        f"<details><summary>{name} as a scenario</summary><pre>{escape(scenario)}</pre></details></div>"
    )


def _told(one: Mapping[str, Any], document: Mapping[str, Any]) -> list[str]:
    """The tree of a fabric, and its run with its closed forms."""
    found = []
    if one["tree"]:
        count = one["networks"] or 1
        several = f", {count:,} times, one for each rail or plane" if count > 1 else ""
        found.append(f"Tree: {one['tree']}{several}.")
    share = one["least_bandwidth_share"]
    if share is not None and one.get("family"):
        found.append(
            "It carries uniform traffic at the full rate of the NICs."
            if share > 1 - _NEAR
            else f"It carries uniform traffic, and traffic across its middle, at {amount(share, 'share')}."
        )
    elif share is not None:
        found.append(
            "A server has its whole bandwidth to every other server."
            if share > 1 - _NEAR
            else f"A server has {amount(share, 'share')} of its bandwidth to the farthest server."
        )
    forms = one["closed_form_ps"]
    if forms is not None:
        found.append(_bracket(one, forms, is_run=not _is_closed(document)))
    if one["useful_share"] < 1:
        found.append(
            f"{amount(one['useful_share'], 'share')} of the time is useful; the rest goes to failures and checkpoints:"
            f" {amount(one['time_ps'], 'ps')} without them, {amount(one['counting_time_ps'], 'ps')} with them."
        )
    return found


def _bracket(one: Mapping[str, Any], forms: Mapping[str, float], *, is_run: bool) -> str:
    least, most = forms["least"], forms["most"]
    both = amount(least, "ps")
    if most > least * (1 + _NEAR):
        both += (
            f" (nobody shares a link) to {amount(most, 'ps')} (all traffic crosses the tier with the least bandwidth)"
        )
    if not is_run:
        return f"Closed forms: {both}."
    time = one["time_ps"]
    where = "between the two" if most > least * (1 + _NEAR) else "equal to it"
    if time > most * (1 + _NEAR):
        where = f"{amount(time / most - 1, 'share')} above"
    elif time < least * (1 - _NEAR):
        where = f"{amount(1 - time / least, 'share')} below"
    return f"Closed forms: {both}; the run: {amount(time, 'ps')}, {where}."


def _tiers(one: Mapping[str, Any]) -> str:
    if one.get("family"):
        down, between = one["links"]
        row = [f"{sum(one['switches']):,}", f"{down:,}", f"{between:,}"]
        return table(("switches", "links to NICs", "links between switches"), [row])
    last = len(one["switches"]) - 1
    names = ["leaves", *(["spines"] if last == 1 else ["spines", *["core"] * (last - 1)] if last > 1 else [])]
    rows = [
        [f"{place + 1}, {escape(names[place])}", f"{switches:,}", f"{links:,}"]
        for place, (switches, links) in enumerate(zip(one["switches"], one["links"], strict=False))
    ]
    return table(("tier", "switches", "links below"), rows)


def _bill(one: Mapping[str, Any]) -> str:
    rows = [
        [escape(_KINDS.get(kind, (kind, ""))[0]), money_words(found["typical"]), _range(found, money_words)]
        for kind, found in one["money_by_kind_usd"].items()
        if found["typical"]
    ]
    whole = one["price_usd"]
    rows.append(["<b>all</b>", f"<b>{money_words(whole['typical'])}</b>", f"<b>{_range(whole, money_words)}</b>"])
    return table(("bill", "typical", "low to high"), rows)


def _confirmed(found: Mapping[str, Any]) -> PageSection:
    return confirmation_section(found, f"{found['candidate']} packet by packet")


def _losers(document: Mapping[str, Any]) -> list[PageSection]:
    losers = sorted(
        (one for one in document["candidates"] if not one["is_front"]),
        key=lambda one: (one["time_ps"] is None, sum(one.get("loses_by", {}).values())),
    )
    if not losers:
        return []
    rows = []
    for one in losers:
        better = one.get("loses_to")
        why = escape(typeset(loser_words(one)))
        if better is not None:
            why = why.replace(f"to {escape(better)}", f"to {_link(better)}", 1)
        name = escape(one["name"])
        rows.append(
            [
                f'<span id="{_anchor(name)}">{name}</span>',
                escape(typeset(one["words"])),
                *(
                    escape(typeset(text))
                    for text in (
                        f"{sum(one['switches']):,}",
                        money_words(one["price_usd"]["typical"]),
                        power_words(one["power_w"]["typical"]),
                        amount(one["counting_time_ps"], "ps"),
                    )
                ),
                why,
            ]
        )
    head = ("name", "fabric", "switches", "money", "power", "time", "loses")
    lead = (
        "Fabrics that closed forms did not prune and another fabric beats, the narrowest defeat first. The folder of"
        " the design has the scenario of each."
    )
    content = table(head, rows, texts=(1, 6))
    return [PageSection(id="losers", short="Losers", title="Why the others lose", lead=lead, content=content)]


def _pruned(document: Mapping[str, Any]) -> list[PageSection]:
    if not document["pruned"]:
        return []
    left = {one["name"] for one in document["candidates"]}
    rows = []
    for one in document["pruned"]:
        better = one["better"] or ""
        by = _link(better) if better in left else escape(better)
        rows.append(
            [
                f"{one['count']:,}",
                escape(one["reason"]),
                escape(typeset(one["example"])),
                by,
                escape(typeset(one["detail"])),
            ]
        )
    gone = sum(one["count"] for one in document["pruned"])
    lead = (
        f"{gone:,} of {plural(document['counted'], 'candidate')} needed no run. One fabric beats another if it costs"
        " and draws no more, and if it gives every server at least as much bandwidth over at most as many hops, at"
        " every distance. Closed forms do not see colliding flows."
    )
    content = table(("candidates", "why", "such as", "better", "in detail"), rows, texts=(1, 2, 4))
    return [PageSection(id="pruned", short="Pruned", title="What was pruned, and why", lead=lead, content=content)]


def _behind(document: Mapping[str, Any], folder: str, resume: str) -> PageSection:
    candidates = document["candidates"]
    shares = {key: [one[f"unverified_{key}_share"] for one in candidates] for key in ("money", "power")}
    plan = ", ".join(f"{key}: {value}" for key, value in document["plan"].items())
    times = (
        "closed forms alone; no fabric of this page was run"
        if _is_closed(document)
        else f"runs of the flow engine, one for each fabric that was not pruned; {document['kept']:,} from before"
    )
    facts = [
        ("times", times),
        ("prices", document["prices"]),
        *((f"unverified share of {key}", _span(found)) for key, found in shares.items() if found),
        ("plan of the job", f"searched on a non-blocking fabric: {plan}" if plan else "as in the file"),
        ("keys of fabric not kept", ", ".join(f"fabric.{key}" for key in document["chosen_anew"])),
        ("not looked at", "mixed switches, fabrics without a generator, hashed flows that collide while pruning"),
        ("file", document["file"]),
        ("folder", folder),
        ("again, or continue", resume),
        ("Weftwork", VERSION),
    ]
    rows = [
        [escape(name), escape(text)] for name, text in facts if text
    ]  # paths and commands are copied: no typography
    doubt = notice(_warnings(document, resume)[:1]) if _is_closed(document) else ""
    lead = "Every fabric that was left is a scenario in the folder fabrics, which weftwork run takes."
    return PageSection(
        id="behind",
        short="Behind it",
        title="What stands behind it",
        lead=lead,
        content=doubt + table(("", ""), rows, texts=(1,)),
    )


def _span(shares: Sequence[float]) -> str:
    low, high = amount(min(shares), "share"), amount(max(shares), "share")
    return low if low == high else f"{low} to {high}, by fabric"
