"""Sentences about a design: the recommended fabric, its price, and why others lose.

Takes the document that `weftwork design` writes as ``result.json``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from weftwork.base.grammar import plural
from weftwork.report.money import money_words, power_words
from weftwork.report.words import amount, amounts_apart, assumptions, interval_sentence
from weftwork.spec.numbers import NUMBERS
from weftwork.spec.study_ends import STUDY_ENDS

__all__ = [
    "design_verdict",
    "failed_words",
    "has_run",
    "loser_words",
    "of_front",
    "pruned_lines",
    "rests_on",
    "taken",
    "unfinished_words",
    "unverified_words",
    "work_amount",
    "work_words",
]

_PLACEMENTS: Final = {"random-servers": "with servers at random", "random-fragments": "in fragments"}
_SAME: Final = 0.0005  # chosen: shares that round to 0.0 %


def of_front(document: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Candidates of the front, the cheapest first."""
    return [one for one in document["candidates"] if one["is_front"]]


def design_verdict(document: Mapping[str, Any], *, has_ending: bool = True) -> list[str]:
    """The answer in sentences, the recommended fabric first.

    Parameters
    ----------
    document : of the design
    has_ending : whether they say what a design that has not ended lacks; a page warns of it above them
    """
    best = of_front(document)
    if not best:
        return ["No fabric has a time yet.", *failed_words(document, None), *_about(document)]
    take = taken(document) or best[0]
    what = NUMBERS.get(document["number"], NUMBERS["completion_ps"]).subject
    with_failures = ""
    if take["useful_share"] < 1:
        with_failures = f", {amount(take['counting_time_ps'], 'ps')} with failures and checkpoints"
    lines = [
        (
            f"{_take_words(document)} {take['name']}: {take['words']}. Its network costs"
            f" {money_words(take['price_usd']['typical'])} ({money_words(take['price_usd']['low'])} to"
            f" {money_words(take['price_usd']['high'])}) and draws"
            f" {power_words(take['power_w']['typical'])}; {what} takes {amount(take['time_ps'], 'ps')}"
            f"{with_failures}{_placed_words(take)}."
        ),
        *(unfinished_words(document) if has_ending else []),
        *interval_sentence(take["time_ps"], take.get("interval")),
        *failed_words(document, take),
        *work_words(document, take),
        *rests_on(document, take),
    ]
    cheaper = [one for one in best if one["price_usd"]["typical"] < take["price_usd"]["typical"]
               and one["counting_time_ps"] > take["counting_time_ps"]]  # fmt: skip
    faster = [one for one in best if one["price_usd"]["typical"] > take["price_usd"]["typical"]
              and one["counting_time_ps"] < take["counting_time_ps"]]  # fmt: skip
    if cheaper:
        lines.append(_step(cheaper[-1], take, "The next cheaper"))
    if faster:
        lines.append(_step(faster[0], take, "The next faster"))
    if len(best) > 1:
        knee = next((one for one in best if one["is_knee"]), None)
        bend = f"; its knee is {knee['name']}" if knee is not None else ""
        lines.append(
            f"{plural(len(best), 'fabric is', 'fabrics are')} on the front of network money, power and packed time"
            f"{bend}."
        )
    return [*lines, *_about(document)]


def taken(document: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The recommended candidate."""
    return next((one for one in document["candidates"] if one["is_take"]), None)


def _take_words(document: Mapping[str, Any]) -> str:
    """How an answer begins: a design that has not ended chooses so far."""
    return "Take" if STUDY_ENDS[document["end"]].is_done else "So far take"


def _placed_words(one: Mapping[str, Any]) -> str:
    """The times of a candidate as a scheduler places ranks."""
    said = []
    for placement, words in _PLACEMENTS.items():
        times = [each["counting_time_ps"] for each in one["placed"] if each["placement"] == placement and has_run(each)]
        if not times:
            continue
        if None in times:
            said.append(f"no time {words}")
            continue
        low, high = amounts_apart([min(times), max(times)], "ps")
        said.append(f"{low if low == high else f'{low} to {high}'} {words}")
    return f" packed, {' and '.join(said)}" if said else ""


def has_run(placed: Mapping[str, Any]) -> bool:
    """Whether a run as a scheduler places ranks has been made; folders of older versions know only such runs."""
    return bool(placed.get("has_run", True))


def unfinished_words(document: Mapping[str, Any]) -> list[str]:
    """What a design that has not ended does not know, and by what it chose meanwhile."""
    end = STUDY_ENDS[document["end"]]
    if end.is_done:
        return []
    how = end.cause
    candidates = document["candidates"]
    packed = sum(one["time_ps"] is None and not one.get("has_failed") for one in candidates)
    placed = [each for one in candidates for each in one["placed"]]
    waiting = sum(not has_run(each) for each in placed)
    lacks = [f"{packed:,} of {plural(len(candidates), 'fabric')} have no time"] if packed else []
    if waiting:
        judged = "" if document.get("is_placed") else ", so that the choice goes by packed jobs alone"
        lacks.append(f"{waiting:,} of {len(placed):,} runs as a scheduler places ranks are missing{judged}")
    elif document["placed_key"] and not placed:
        lacks.append("nothing has run as a scheduler places ranks, so that the choice goes by packed jobs alone")
    if document["kinds"] and any(kind["dead_leaf"] is None for kind in document["kinds"]):
        lacks.append("no dead leaf was simulated")
    return [
        f"This design has not ended: {how}; {'; '.join(lacks) or 'nothing else is missing'}. It may choose otherwise."
    ]


def work_words(document: Mapping[str, Any], take: Mapping[str, Any]) -> list[str]:
    """What the money of the whole cluster buys, and where the price of a GPU-hour turns the choice round."""
    cluster = document["cluster"]
    if cluster is None:
        return [
            (
                f"The price book ({document['prices']}) has no price of servers, so that only the network's money"
                " counts: [[server]] and [cluster] give it."
            )
        ]
    if take["work_per_usd"] is None:
        return []
    years, unit = cluster["life_hours"] / 8_766, cluster["work_unit"]
    total, network = take["cluster_usd"]["typical"], take["network_life_usd"]["typical"]
    buys = "trains" if unit == "token" else "does"
    work = work_amount([take["work_per_usd"]], unit)[0]
    low, high = (money_words(take["cluster_usd"][end]) for end in ("low", "high"))
    whole = f"{money_words(total)} in {years:g} years ({low} to {high})"
    of_network = f"the network with its electricity {money_words(network)}, {amount(network / total, 'share')}"
    lines = [f"The cluster {buys} {work} per dollar: {whole}, of which {of_network}."]
    hour = cluster["gpu_hour_usd"]
    price = f"${hour['typical']:.2f}"
    if cluster["is_given"]:
        lines.append(f"A GPU-hour costs {price}, as given.{_regions_words(document, take)}")
    else:
        mark = "" if cluster["verified"] else ", unverified"
        lines.append(
            f"A GPU-hour costs {price} (${hour['low']:.2f} to ${hour['high']:.2f}) with server and electricity"
            f" ({cluster['source']}{mark}); --gpu-hour gives another price.{_regions_words(document, take)}"
        )
    return lines


def work_amount(values: Sequence[float | None], unit: str) -> list[str]:
    """Work for a dollar, with the digits that the differences need.

    Examples
    --------
    >>> work_amount([24_871_000.0, 24_640_000.0], "token"), work_amount([0.0213, None], "job")
    (['24.9 M tokens', '24.6 M tokens'], ['21,300 millionths of jobs', '-'])
    """
    known = [value for value in values if value is not None]
    is_large = bool(known) and max(known) >= 10**6
    is_small = bool(known) and max(known) < 1
    name = f"{'M ' if is_large else 'millionths of ' if is_small else ''}{unit}s"
    scale = 10**-6 if is_large else 10**6 if is_small else 1
    words = amounts_apart([None if value is None else value * scale for value in values], "ratio")
    return [text if value is None else f"{text} {name}" for text, value in zip(words, values, strict=True)]


def _regions_words(document: Mapping[str, Any], take: Mapping[str, Any]) -> str:
    """At which prices of a GPU-hour another fabric buys more."""
    regions = document["price_regions"]
    if not regions:
        return ""
    words = {one["name"]: one["words"] for one in document["candidates"]}
    if len(regions) == 1:
        return f" {take['name']} is the choice at every price of a GPU-hour."
    said = []
    for one in regions:
        if one["name"] == take["name"]:
            continue
        if one["to_usd"] is None:
            where = f"above ${one['from_usd']:.2f} a GPU-hour:"
        elif one["from_usd"] == 0:
            where = f"below ${one['to_usd']:.2f} a GPU-hour:"
        else:
            where = f"from ${one['from_usd']:.2f} to ${one['to_usd']:.2f} a GPU-hour:"
        said.append(f"{where} {one['name']} ({words[one['name']]})")
    return f" Another fabric is the choice {', '.join(said)}."


def rests_on(document: Mapping[str, Any], take: Mapping[str, Any]) -> list[str]:
    """What the choice rests on: placement, prices, and what all candidates share."""
    names = {one["name"]: one for one in document["candidates"]}
    does, does_not, unknown = [], [], ["the plan and its overlap, which all candidates share"]
    packed = document["take_packed"]
    shares = ", ".join(f"{name} {amount(share, 'share')}" for name, share in document.get("overlap", {}).items())
    if shares:
        unknown = [f"the plan and its overlap (computing hides at most: {shares}), which all candidates share"]
    if packed is not None and packed != take["name"]:
        other = names[packed]
        does.append(
            f"placement: if every job is packed, take {packed} ({other['words']}), {amount(other['time_ps'], 'ps')}"
            f"{_placed_words(other)}"
        )
    elif packed is not None:
        does_not.append("placement: packed jobs choose the same fabric")
    elif document["placed_key"]:
        unknown.append("placement, which has not run to its end")
    elif document["criterion"] != "knee":
        unknown.append("placement, which stays as the file has it")
    others = [(one["prices"], one["name"]) for one in document["price_corners"] if one["name"] != take["name"]]
    if others:
        does.append("prices: " + "; ".join(f"{prices} choose {name}" for prices, name in others))
    elif document["price_corners"]:
        does_not.append("prices: low and high prices choose the same fabric")
    said = [f"The choice rests on {'; and on '.join(does)}."] if does else []
    said += [f"It does not rest on {'; nor on '.join(does_not)}."] if does_not else []
    return [" ".join([*said, f"Not varied: {'; '.join(unknown)}."])]


def _step(other: Mapping[str, Any], knee: Mapping[str, Any], which: str) -> str:
    dollars = other["price_usd"]["typical"] - knee["price_usd"]["typical"]
    share = other["counting_time_ps"] / knee["counting_time_ps"] - 1
    less, longer = ("less", "longer") if dollars < 0 else ("more", "less time")
    each = abs(dollars) / abs(share * 100)
    return (
        f"{which}, {other['name']} ({other['words']}), costs {money_words(abs(dollars))} {less} and takes"
        f" {amount(abs(share), 'share')} {longer}: {money_words(each)} for each percent."
    )


def failed_words(document: Mapping[str, Any], knee: Mapping[str, Any] | None) -> list[str]:
    """What nobody knows, since Weftwork itself failed, and which money it is about.

    Parameters
    ----------
    document : of the design
    knee : the recommended candidate, or None
    """
    failed = [one for one in document["candidates"] if one.get("has_failed")]
    if not failed:
        return []
    first = min(failed, key=lambda one: one["price_usd"]["typical"])
    lines = (
        f"Weftwork could not judge {plural(len(failed), 'candidate')}, such as {first['name']} ({first['words']}): "
        f"{first['reason']}. This is a fault of Weftwork, not of the fabric; please report it with the folder "
        f"{first['run'] or 'of this design'}."
    )
    if knee is not None:
        less_usd = knee["price_usd"]["typical"] - first["price_usd"]["typical"]
        if less_usd > 0:
            lines += f" It costs {money_words(less_usd)} less than {knee['name']}, and may be the better choice."
    return [lines]


def _about(document: Mapping[str, Any]) -> list[str]:
    left = len(document["candidates"])
    gone = document["counted"] - left
    how = (
        "the flow engine ran each"
        if document["by"] == "flow engine"
        else "times are from closed forms alone, as if all traffic crossed the tier with the least bandwidth; no fabric"
        " on this front was run"
    )
    lines = [f"{plural(document['counted'], 'candidate')}: {gone:,} pruned by closed forms, {left:,} left; {how}."]
    failed = [one for one in document["candidates"] if one["time_ps"] is None and not one.get("has_failed")]
    if failed:
        lines.append(
            f"{plural(len(failed), 'candidate has', 'candidates have')} no time, such as {failed[0]['name']}:"
            f" {failed[0]['reason']}"
        )
    lines += unverified_words([one["unverified_money_share"] for one in document["candidates"]], document["prices"])
    if document["chosen_anew"]:
        keys = ", ".join(f"fabric.{key}" for key in document["chosen_anew"])
        lines.append(f"The candidates replace these keys of the file: {keys}.")
    if document.get("not_searched"):
        lines.append(f"The topology of the file takes no part: {document['not_searched']}.")
    if document["plan"]:
        keys = ", ".join(f"{key} {value}" for key, value in document["plan"].items() if value not in (1, None, False))
        headroom = document.get("headroom")  # folders of older versions have none: their search left nothing free
        free = f", which leaves {amount(headroom, 'share')} of a GPU's memory free" if headroom else ""
        lines.append(f"The plan is the best one of a search on a non-blocking fabric{free}: {keys}.")
    return [*lines, *assumptions(document.get("assumed", ()))]


def unverified_words(shares: Sequence[float], prices: str) -> list[str]:
    """How much of the money of some fabrics rests on unverified prices; nothing where none does.

    Parameters
    ----------
    shares : of the money of each fabric
    prices : name of the price book

    Examples
    --------
    >>> unverified_words([1.0, 1.0], "street-2025"), unverified_words([0.0], "mine")
    (['All of the money rests on unverified prices (street-2025).'], [])
    """
    if not shares or max(shares) == 0:
        return []
    of = "All" if min(shares) == 1 else f"At least {amount(min(shares), 'share')}"
    return [f"{of} of the money rests on unverified prices ({prices})."]


def loser_words(one: Mapping[str, Any]) -> str:
    """The margin by which a candidate loses, and the candidate that beats it."""
    if "loses_to" not in one:
        return str(one["reason"])
    by = one["loses_by"]
    parts = [f"{key} +{amount(share, 'share')}" for key, share in by.items() if share > _SAME]
    return f"to {one['loses_to']}: {', '.join(parts) or 'equal in all'}"


def pruned_lines(document: Mapping[str, Any]) -> list[str]:
    """The number of pruned candidates by reason, the most frequent first."""
    return [
        f"{one['count']:,}: {one['reason']}"
        + (f" (such as {one['example']}" + (f", by {one['better']}" if one["better"] else "") + ")")
        for one in document["pruned"]
    ]
