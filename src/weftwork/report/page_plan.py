"""The page of a search for parallel plans.

It has the winner and its reason, time against memory, parts of the time, and what was left out.

Takes the document that `weftwork plan` writes as ``plan.json``. Leaves out: the pages of single runs, which
`weftwork report` makes of their folders.
"""

from __future__ import annotations

import shlex
from html import escape
from typing import TYPE_CHECKING, Any, Final

from weftwork.base.grammar import plural
from weftwork.base.version import VERSION
from weftwork.report.figures.axes import figure
from weftwork.report.figures.scatter import ScatterDot, highest_shown, scatter
from weftwork.report.figures.stacked import StackedBar, stacked
from weftwork.report.page_confirmation import confirmation_section
from weftwork.report.page_elements import PageSection, Tile, notice, paragraphs, render, table, tiles
from weftwork.report.pipeline import KINDS
from weftwork.report.plan_words import (
    argument_lines,
    front_rows,
    left_out,
    loss_words,
    megatron_notes,
    overlap_words,
    own_plan,
    plan_verdict,
)
from weftwork.report.words import amount, amounts_apart, change, sentence, typeset

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["plan_page"]

_BEST: Final = 10  # rows and bars, as the terminal has them
_ROUNDING_PS: Final = 1_000  # each kind is a mean over ranks, rounded
_OTHER: Final = "other"  # what the kinds of a document leave of an iteration
_REASONS: Final = {  # by the key that stood in the way; others are told by their key
    "memory": "needs more memory than a GPU has, less the headroom",
    "global_batch": "its micro batches do not divide the batch",
    "tensor": "its tensor ranks do not divide the model",
    "virtual_stages": "its virtual stages do not divide the layers",
    "expert": "its expert ranks do not divide the experts or the ranks",
}
_ASSUMED: Final = {
    "times": "the flow engine for the ten best and for all bars; closed forms for the cloud and the front, as if each"
    " collective were alone on its links",
    "placement": "the three best plans also ran with their ranks placed by rail, and over pods where there are any;"
    " all other plans ran with the placement of the scenario",
    "not searched": "offloading, uneven stages, plans that leave GPUs idle",
    "rules": "only as much recomputation as the memory requires, and ZeRO 2 only if ZeRO 1 requires more"
    " recomputation; unless the key is given, tensor ranks stay in an NVLink domain, a context rank has at least 1,024"
    " tokens, and a pass has at most 16 sequences",
}


def plan_page(document: Mapping[str, Any], folder: str, scenario: str) -> str:
    """Make the page.

    Parameters
    ----------
    document : of ``plan.json``
    folder : that holds it
    scenario : the winner's, as YAML

    Returns
    -------
    HTML, one file
    """
    sections = [
        _answer(document),
        _front(document),
        _time(document),
        _table(document),
        _pruned(document),
        *_confirmed(document),
        _run(document, folder),
        _megatron(document),
        _assumed(document, folder, scenario),
    ]
    about = document["about"]
    what = [
        (key, sentence(about[key]) if key == "workload" else about[key])
        for key in ("workload", "fabric", "transport", "assumes", "calibrated")
        if key in about
    ]
    return render(document["name"], what, sections)


def _answer(document: Mapping[str, Any]) -> PageSection:
    best = document["best"][0]
    ran = f"{plural(document['run'], 'plan')} run on the flow engine"
    shown = [
        Tile(name="time of an iteration", value=amount(best["iteration_ps"], "ps"), note=f"most: {best['limited_by']}"),
        Tile(name="tokens per second", value=f"{best['tokens_per_s']:,.0f}"),
        Tile(name="model FLOP utilisation", value=amount(best["mfu"], "share")),
        Tile(
            name="memory of the fullest GPU",
            value=amount(best["memory_bytes"], "B"),
            note=f"of {amount(document['gpu_bytes'], 'B')}",
        ),
        Tile(name="exposed communication", value=amount(best["exposed_share"], "share")),
        Tile(name="plans counted", value=f"{document['counted']:,}", note=ran),
    ]
    _, *unsure = left_out(document)
    content = paragraphs([*plan_verdict(document), *own_plan(document)], "answer") + tiles(shown) + notice(unsure)
    return PageSection(id="answer", short="Answer", title="The best plan", content=content)


def _front(document: Mapping[str, Any]) -> PageSection:
    cloud, front = (
        [
            ScatterDot(x=one["memory_bytes"], y=one["closed_form_ps"], name=one["short"], note="by closed form")
            for one in document[name]
        ]
        for name in ("cloud", "front")
    )
    best = [
        ScatterDot(x=one["memory_bytes"], y=one["iteration_ps"], name=one["short"], note="by the flow engine")
        for one in document["best"][:_BEST]
    ]
    chart = scatter(
        ("memory of the fullest GPU", "time of an iteration"),
        ("B", "ps"),
        cloud=cloud,
        front=front,
        best=best,
        limit=(document["limit_bytes"], _limit_words(document)),
    )
    slower = sum(one.y > highest_shown(front, best) for one in cloud)
    note = (
        f"Each dot is a plan: {len(cloud):,} of {plural(document['counted'], 'counted plan')}, evenly spaced in their"
        " order by time."
    )
    if slower:
        note += f" {plural(slower, 'plan is', 'plans are')} slower than the axis shows."
    rows = [
        [
            escape(one["short"]),
            escape(typeset(amount(one["memory_bytes"], "B"))),
            escape(typeset(amount(one["closed_form_ps"], "ps"))),
            escape(typeset(change(one["closed_form_ps"] / front[0].y - 1)))
            if one["closed_form_ps"] > front[0].y
            else "",
        ]
        for one in front_rows(document)
    ]
    shorter = table(("plan", "memory", "time, closed form", "against the fastest"), rows)
    return PageSection(
        id="front",
        short="Memory",
        title="Time against memory",
        lead="No plan is both faster and smaller than a plan on the line. Memory is the memory of the fullest GPU.",
        content=figure("", chart, note=note) + shorter,
    )


def _limit_words(document: Mapping[str, Any]) -> str:
    """What the line of the limit means."""
    has = f"the GPU has {amount(document['gpu_bytes'], 'B')}"
    return f"{has}, less {amount(document['headroom'], 'share')}" if document["headroom"] else has


def _time(document: Mapping[str, Any]) -> PageSection:
    kinds: dict[str, str] = document["kinds"]
    best = document["best"][:_BEST]
    parts = [(name, _colour(key)) for key, name in kinds.items()]
    parts.append((_OTHER, f"k{KINDS.index(_OTHER)}"))
    times = [_times(one, kinds) for one in best]
    whole = [
        StackedBar(name=one["short"], lengths=parts_of, note=amount(one["iteration_ps"], "ps"), is_best=one is best[0])
        for one, parts_of in zip(best, times, strict=True)
    ]
    content = figure("An iteration", stacked(parts, whole, "ps"))
    if len(best) > 1:
        lost = [
            StackedBar(
                name=one["short"],
                lengths=tuple(own - of_best for own, of_best in zip(parts_of, times[0], strict=True)),
                note=f"+{amount(one['iteration_ps'] - best[0]['iteration_ps'], 'ps')}",
            )
            for one, parts_of in zip(best[1:], times[1:], strict=True)
        ]
        content += figure(
            "Against the best plan",
            stacked(parts, lost, "ps"),
            aside="right of the line: time that a plan loses; left of it: time that it saves",
        )
    lead = "Parts of an iteration, and the parts in which each plan loses. Only exposed communication is counted."
    return PageSection(id="time", short="Time", title="Why each plan loses", lead=lead, content=content)


def _times(one: Mapping[str, Any], kinds: Mapping[str, str]) -> tuple[float, ...]:
    """Time of each kind, and the rest if it exceeds rounding."""
    found = [float(one.get(key) or 0) for key in kinds]
    rest_ps = one["iteration_ps"] - sum(found)
    return (*found, rest_ps if rest_ps > _ROUNDING_PS else 0.0)


def _colour(key: str) -> str:
    """CSS class of a number such as ``exposed_tensor_ps``.

    The chart of a pipeline has the same classes.
    """
    kind = key.removesuffix("_ps").removeprefix("exposed_").removeprefix("spent_")
    return f"k{KINDS.index(kind if kind in KINDS else 'forward')}"


def _table(document: Mapping[str, Any]) -> PageSection:
    cells = []
    best = document["best"][:_BEST]
    times = amounts_apart([one["iteration_ps"] for one in best], "ps")
    for number, (one, time) in enumerate(zip(best, times, strict=True), 1):
        made = [
            f"{number}",
            escape(one["short"]),
            *(
                escape(typeset(text))
                for text in (
                    time,
                    amount(one["closed_form_ps"], "ps"),
                    change(one["closed_form_ps"] / one["iteration_ps"] - 1),
                    f"{one['tokens_per_s']:,.0f}",
                    amount(one["mfu"], "share"),
                    amount(one["memory_bytes"], "B"),
                    amount(one["exposed_share"], "share"),
                    one["limited_by"],
                    loss_words(one),
                )
            ),
        ]
        cells.append([f"<b>{text}</b>" if text else "" for text in made] if number == 1 else made)
    head = (
        "",
        "plan",
        "time",
        "closed form",
        "off by",
        "tokens/s",
        "MFU",
        "memory",
        "exposed",
        "bottleneck",
        "loses by",
    )
    lead = (
        "The ten best plans by the flow engine. The closed form and its error are next to each time. Exposed is the"
        " share of an iteration with communication that no computing hides."
    )
    lead = " ".join([lead, *overlap_words(document)])
    return PageSection(
        id="plans",
        short="Plans",
        title="The ten best" if len(cells) > 1 else "The plan",
        lead=lead,
        content=table(head, cells, texts=(1,)),
    )


def _pruned(document: Mapping[str, Any]) -> PageSection:
    counts = [("feasible: counted by its closed form", document["counted"])]
    counts += [
        (_REASONS.get(key, f"training.{key} does not suit the model, the batch or the GPUs"), count)
        for key, count in document["pruned"].items()
    ]
    bars = [StackedBar(name=text, lengths=(count,), note=f"{count:,}") for text, count in counts]
    content = figure("", stacked([("plans", "k0")], bars, "count"))
    return PageSection(
        id="left-out", short="Left out", title="What was left out", lead=left_out(document)[0], content=content
    )


def _run(document: Mapping[str, Any], folder: str) -> PageSection:
    place = shlex.quote(folder)
    several = min(5, len(document["best"]))
    commands = [
        "# one iteration of the best plan, with its own page",
        f"weftwork run {place}/scenario.yaml -o {place}-run",
        f"weftwork report {place}-run",
        "",
        f"# the {plural(several, 'best plan')} with other values of any key, such as two rates of the links",
        f"weftwork sweep {place}/best.yaml --set fabric.link_rate=200Gbps,400Gbps",
    ]
    content = f"<pre>{escape(chr(10).join(commands))}</pre>"
    return PageSection(id="run", short="Run it", title="How to run it", content=content)


def _megatron(document: Mapping[str, Any]) -> PageSection:
    written = document["megatron"]
    content = paragraphs(megatron_notes(document), "told")
    if written is not None:
        content = f"<pre>{escape(argument_lines(written['arguments']))}</pre>" + content
    return PageSection(id="megatron", short="Megatron-LM", title="As arguments of Megatron-LM", content=content)


def _confirmed(document: Mapping[str, Any]) -> list[PageSection]:
    """The packet-level confirmation of the best plan, if there is one."""
    found = document.get("confirmation")
    return [] if found is None else [confirmation_section(found)]


def _headroom_words(document: Mapping[str, Any]) -> str:
    """The memory that plans leave free, with the plans near the best one that others measured."""
    said = (
        f"{amount(document['headroom'], 'share')} of a GPU's {amount(document['gpu_bytes'], 'B')}: no plan needs more "
        f"than {amount(document['limit_bytes'], 'B')}"
    )
    rows = [
        f"{one['row']}: {amount(one['predicted_bytes'], 'B')} predicted, "
        f"{'more than ' if one['quantity'] == 'exceeded' else ''}{amount(one['measured_bytes'], 'B')} {one['quantity']}"
        for one in document["best"][0]["near_peaks"]
    ]
    return f"{said}; nearest to the best plan, {'; '.join(rows)}" if rows else f"{said}; no measured row is near"


def _assumed(document: Mapping[str, Any], folder: str, scenario: str) -> PageSection:
    fixed = ", ".join(f"training.{key}" for key in document["fixed"])
    facts = [
        ("given, not searched", fixed or "no key of the plan"),
        ("headroom", _headroom_words(document)),
        *(item for item in _ASSUMED.items() if item[0] not in document["fixed"]),
        ("folder", folder),
        ("Weftwork", VERSION),
    ]
    rows = [[escape(name), escape(text)] for name, text in facts]  # a folder is copied: no typography
    content = table(("", ""), rows, texts=(1,))
    content += f"<details><summary>The best plan as a scenario</summary><pre>{escape(scenario)}</pre></details>"
    return PageSection(id="assumed", short="Assumed", title="What this rests on", content=content)
