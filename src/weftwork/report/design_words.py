"""Sentences about a design: the recommended fabric, its price, and why others lose.

Takes the document that `weftwork design` writes as ``result.json``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from weftwork.base.grammar import plural
from weftwork.report.words import amount, assumptions

__all__ = ["design_verdict", "loser_words", "money", "of_front", "power", "pruned_lines", "unverified_words"]

_KINDS: Final = {"iteration_ps": "an iteration", "collective_duration_ps": "the collective", "completion_ps": "the job"}
_SAME: Final = 0.0005  # chosen: shares that round to 0.0 %


def money(value_usd: float) -> str:
    """Dollars in words.

    Examples
    --------
    >>> money(68_512_000), money(4_200)
    ('$68.5M', '$4,200')
    """
    if value_usd >= 10**9:
        return f"${value_usd / 10**9:,.3g}G"
    return f"${value_usd / 10**6:,.1f}M" if value_usd >= 10**6 else f"${value_usd:,.0f}"


def power(value_w: float) -> str:
    """Watts in words.

    Examples
    --------
    >>> power(1_082_000), power(5_300)
    ('1.08 MW', '5.3 kW')
    """
    if value_w >= 10**6:
        return f"{value_w / 10**6:,.2f} MW"
    return f"{value_w / 10**3:,.1f} kW" if value_w >= 1_000 else f"{value_w:,.0f} W"


def of_front(document: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Candidates of the front, the cheapest first."""
    return [one for one in document["candidates"] if one["is_front"]]


def design_verdict(document: Mapping[str, Any]) -> list[str]:
    """The answer in sentences, the recommended fabric first."""
    best = of_front(document)
    if not best:
        return ["No fabric has a time yet.", *_about(document)]
    knee = next((one for one in best if one["is_knee"]), best[0])
    what = _KINDS.get(document["number"], "the job")
    with_failures = ""
    if knee["useful_share"] < 1:
        with_failures = f", {amount(knee['counting_time_ps'], 'ps')} with failures and checkpoints"
    lines = [
        (
            f"Take {knee['name']}: {knee['words']}. It costs {money(knee['price_usd']['typical'])}"
            f" ({money(knee['price_usd']['low'])} to {money(knee['price_usd']['high'])}), draws"
            f" {power(knee['power_w']['typical'])}, and {what} takes {amount(knee['time_ps'], 'ps')}"
            f"{with_failures}."
        )
    ]
    place = best.index(knee)
    cheaper = [one for one in best[:place] if one["counting_time_ps"] > knee["counting_time_ps"]]
    faster = [one for one in best[place + 1 :] if one["counting_time_ps"] < knee["counting_time_ps"]]
    if cheaper:
        lines.append(_step(cheaper[-1], knee, "The next cheaper"))
    if faster:
        lines.append(_step(faster[0], knee, "The next faster"))
    if len(best) > 1:
        lines.append(
            f"{plural(len(best), 'fabric is', 'fabrics are')} on the front of money, power and time; the knee is the "
            "one above."
        )
    return [*lines, *_about(document)]


def _step(other: Mapping[str, Any], knee: Mapping[str, Any], which: str) -> str:
    dollars = other["price_usd"]["typical"] - knee["price_usd"]["typical"]
    share = other["counting_time_ps"] / knee["counting_time_ps"] - 1
    less, longer = ("less", "longer") if dollars < 0 else ("more", "less time")
    each = abs(dollars) / abs(share * 100)
    return (
        f"{which}, {other['name']} ({other['words']}), costs {money(abs(dollars))} {less} and takes"
        f" {amount(abs(share), 'share')} {longer}: {money(each)} for each percent."
    )


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
    failed = [one for one in document["candidates"] if one["time_ps"] is None]
    if failed:
        lines.append(
            f"{plural(len(failed), 'candidate has', 'candidates have')} no time, such as {failed[0]['name']}:"
            f" {failed[0]['reason']}"
        )
    lines += unverified_words([one["unverified_money_share"] for one in document["candidates"]], document["prices"])
    if document["chosen_anew"]:
        keys = ", ".join(f"fabric.{key}" for key in document["chosen_anew"])
        lines.append(f"The candidates replace these keys of the file: {keys}.")
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
