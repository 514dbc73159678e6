"""Describe a design as one document for file, page and screen.

It has names, numbers with units, and why each loser loses.

Leaves out: sentences, which `weftwork.report.design_words` makes of the document.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict
from math import isfinite
from typing import TYPE_CHECKING, Any

from weftwork.base.clock import SECOND_PS
from weftwork.base.version import VERSION
from weftwork.spec.training import HEADROOM
from weftwork.study.design.judge import judged_ps

if TYPE_CHECKING:
    from weftwork.hardware.price_rows import Range
    from weftwork.study.design.built import Built
    from weftwork.study.design.kinds import NamedKind
    from weftwork.study.design.runs import Ran
    from weftwork.study.design.search import Design

__all__ = ["design_document"]


def design_document(found: Design) -> dict[str, Any]:
    """Convert a design to JSON values.

    Parameters
    ----------
    found : by `weftwork.study.design.search.design`
    """
    reasons = Counter(one.reason for one in found.pruned)
    examples = {one.reason: one for one in reversed(found.pruned)}
    ran = sorted(found.ran, key=lambda one: (one.built.price_usd.typical, one.name))
    return {
        "weftwork": VERSION,
        "name": found.name,
        "node": found.node,
        "gpus": found.gpus,
        "file": str(found.question.file),
        "prices": found.question.prices or "street-2025",
        "budget_usd": found.question.limits.price_usd,
        "power_budget_w": found.question.limits.power_w,
        "number": found.number,
        "by": "closed forms" if found.question.closed_only else "flow engine",
        "plan": dict(found.plan),
        "headroom": HEADROOM if found.plan else None,  # of the search for it
        "chosen_anew": list(found.chosen_anew),
        **({"not_searched": found.not_searched} if found.not_searched else {}),
        "assumed": list(found.assumed),
        "overlap": dict(found.overlap),
        "counted": found.counted,
        "pruned": [
            {
                "reason": reason,
                "count": count,
                "example": examples[reason].built.candidate.words,
                "detail": examples[reason].detail,
                "better": None if (better := examples[reason].better) is None else better.candidate.name,
            }
            for reason, count in reasons.most_common()
        ],
        "front": list(found.front),
        "knee": found.knee,
        "criterion": found.choice.criterion,
        "take": found.choice.name,
        "take_packed": found.choice.packed,
        "placed_key": found.placed_key,
        "cluster": _cluster(found),
        "price_regions": [
            {"name": one.name, "from_usd": one.from_usd, "to_usd": one.to_usd} for one in found.choice.regions
        ],
        "price_corners": [{"prices": prices, "name": name} for prices, name in found.choice.corners],
        "kinds": [_kind(one) for one in found.kinds],
        "end": found.end,
        "is_placed": found.is_placed,
        "kept": found.kept,
        "candidates": [_ran(one, found) for one in ran],
    }


def _ran(one: Ran, found: Design) -> dict[str, Any]:
    built = one.built
    document = {
        "name": one.name,
        "words": built.candidate.words,
        "fabric": dict(built.candidate.fabric),
        **_parts(built),
        "time_ps": one.time_ps,
        "useful_share": one.useful,
        "counting_time_ps": None if one.time_ps is None else one.time_ps / one.useful,
        "closed_form_ps": None if one.closed_ps is None else {"least": one.closed_ps[0], "most": one.closed_ps[1]},
        "limited_by": one.limited_by,
        "exposed_share": one.exposed_share,
        "interval": None if one.interval is None else asdict(one.interval),
        "run": one.folder,
        "reason": one.reason,
        "has_failed": one.has_failed,
        "is_front": one.name in found.front,
        "is_knee": one.name == found.knee,
        "is_take": one.name == found.choice.name,
        "placed": [
            {
                "placement": each.placement,
                "seed": each.seed,
                "counting_time_ps": None if each.time_ps is None else each.time_ps / each.useful,
                "run": each.folder,
                "reason": each.reason,
                "has_run": each.has_run,
            }
            for each in one.placed
        ],
        "placed_time_ps": None if (placed_ps := one.placed_ps) is None or not isfinite(placed_ps) else placed_ps,
        **_of_cluster(one, found),
    }
    if one.beaten_by is not None:
        better = found.of(one.beaten_by)
        mine, its = one.costs, better.costs
        shares = [round(own / other - 1, 6) if other else 0.0 for own, other in zip(mine, its, strict=True)]
        document["loses_to"] = one.beaten_by
        document["loses_by"] = dict(zip(("money", "power", "time"), shares, strict=True))
    return document


def _cluster(found: Design) -> dict[str, Any] | None:
    """Prices of the whole cluster; None where the price book knows only networks."""
    money = found.money
    if money is None:
        return None
    return {
        "gpus": money.gpus,
        "life_hours": money.hours,
        "gpu_hour_usd": _range(money.gpu_hour_usd),
        "is_given": money.is_given,
        "source": money.source,
        "date": money.date,
        "verified": money.verified,
        "work": found.work[0],
        "work_unit": found.work[1],
    }


def _of_cluster(one: Ran, found: Design) -> dict[str, Any]:
    """Dollars of the whole cluster on a candidate over its life, and what they buy."""
    money = found.money
    if money is None:
        return {"cluster_usd": None, "network_life_usd": None, "work_per_usd": None}
    total = money.total_usd(one.built.price_usd, one.built.power_w)
    time_ps = judged_ps(one, as_placed=found.is_placed)
    pieces = money.hours * 3_600 * SECOND_PS / time_ps if isfinite(time_ps) else None
    return {
        "cluster_usd": _range(total),
        "network_life_usd": _range(money.network_usd(one.built.price_usd, one.built.power_w)),
        "work_per_usd": None if pieces is None else pieces * found.work[0] / total.typical,
    }


def _kind(kind: NamedKind) -> dict[str, Any]:
    leaf = kind.dead_leaf
    return {
        "topology": kind.topology,
        "name": kind.name,
        "reason": kind.reason,
        "dead_leaf": None
        if leaf is None
        else {"switch": leaf.switch, "slowdown": leaf.slowdown, "cut_off": leaf.cut_off, "stopped": leaf.stopped},
    }


def _parts(built: Built) -> dict[str, Any]:
    tree = built.tree
    return {
        "fabric_name": built.name,
        "tree": "" if tree is None else tree.notation(),
        "networks": None if tree is None else tree.networks,
        "switches": list(built.switches),
        "links": list(built.links),
        "cables": built.cables,
        "is_custom_nic": built.candidate.is_custom,
        "price_usd": _range(built.price_usd),
        "power_w": _range(built.power_w),
        "money_by_kind_usd": {kind: _range(money) for kind, money in (built.money_by_kind or {}).items()},
        "unverified_money_share": built.unverified_money_share,
        "unverified_power_share": built.unverified_power_share,
        "family": built.family,
        "least_bandwidth_share": built.least_share,
    }


def _range(value: Range) -> dict[str, float]:
    return {"low": value.low, "typical": value.typical, "high": value.high}
