"""Describe a design as one document for file, page and screen.

It has names, numbers with units, and why each loser loses.

Leaves out: sentences, which `weftwork.report.design_words` makes of the document.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from weftwork.base.version import VERSION
from weftwork.spec.training import HEADROOM

if TYPE_CHECKING:
    from weftwork.hardware.price_rows import Range
    from weftwork.study.design.built import Built
    from weftwork.study.design.search import Design, Ran

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
        "assumed": list(found.assumed),
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
        "end": found.end,
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
        "run": one.folder,
        "reason": one.reason,
        "is_front": one.name in found.front,
        "is_knee": one.name == found.knee,
    }
    if one.beaten_by is not None:
        better = found.of(one.beaten_by)
        mine, its = one.costs, better.costs
        shares = [round(own / other - 1, 6) if other else 0.0 for own, other in zip(mine, its, strict=True)]
        document["loses_to"] = one.beaten_by
        document["loses_by"] = dict(zip(("money", "power", "time"), shares, strict=True))
    return document


def _parts(built: Built) -> dict[str, Any]:
    tree = built.tree
    return {
        "fabric_name": built.name,
        "tree": "" if tree is None else tree.notation(),
        "networks": None if tree is None else tree.networks,
        "switches": list(built.switches),
        "links": list(built.links),
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
