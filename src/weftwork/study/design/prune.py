"""Prune candidates before any run.

Pruned are infeasible ones, those over a limit, and those that another beats by closed forms.

A candidate is bettered where another costs at most as much, draws at most as much and offers every server at least as
much bandwidth over at most as many hops, whatever the distance (`weftwork.study.design.profile`). Only a tree betters:
the bandwidth of a direct network depends on the traffic. It is pruned where a tree is at least as good as its best.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from weftwork.study.design.built import Built

__all__ = ["Limits", "Pruned", "prune"]

SAME = "it is another candidate's tree, by another name"
DEAR, HUNGRY = "it costs more than the budget", "it draws more than the budget"
UNPRICED = "its cost is not known, since the price book lacks a part"
KEPT_OF_KIND = 4  # chosen: candidates of a named topology that loses, at most
WORSE = "another candidate costs and draws no more, and has at least as much bandwidth at every distance"


@dataclass(frozen=True, kw_only=True, slots=True)
class Limits:
    """Limits of a fabric: dollars and watts; None is no limit."""

    price_usd: float | None = None
    power_w: float | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Pruned:
    """A pruned candidate with its reason and details, and the better candidate."""

    built: Built
    reason: str
    detail: str = ""
    better: Built | None = None


def prune(built: Sequence[Built], limits: Limits, named: Sequence[str] = ()) -> tuple[list[Built], list[Pruned]]:
    """Split candidates into kept and pruned ones, in the given order.

    Parameters
    ----------
    built : every candidate
    limits : of money and power
    named : topologies that the user has named: of each some candidate is kept that none of its own kind betters
    """
    gone: dict[int, Pruned] = {}
    seen: dict[object, Built] = {}
    for one in built:
        found = _alone(one, limits)
        if found is None:
            shape = one.tree if one.family == "" else one.name
            key = (shape, one.candidate.fabric["switch"], one.candidate.fabric["nic"], one.power_w, one.price_usd)
            twin = seen.setdefault(key, one)
            found = None if twin is one else Pruned(built=one, reason=SAME, better=twin)
        if found is not None:
            gone[one.candidate.number] = found
    left = sorted((one for one in built if one.candidate.number not in gone), key=_order)
    kept = _not_bettered(left, gone)
    for topology in named:
        if not any(one.candidate.fabric["topology"] == topology for one in kept):
            own = _not_bettered([one for one in left if one.candidate.fabric["topology"] == topology], {})
            kept += _spread(own)
            for one in _spread(own):
                del gone[one.candidate.number]
    kept.sort(key=lambda one: one.candidate.number)
    return kept, [gone[number] for number in sorted(gone)]


def _not_bettered(left: Sequence[Built], gone: dict[int, Pruned]) -> list[Built]:
    """Candidates that no other one betters, and notes of the others."""
    kept: list[Built] = []
    for one in left:  # the cheapest first, so that whoever betters one is there before
        better = next((other for other in kept if _betters(other, one)), None)
        if better is None:
            kept.append(one)
        else:
            gone[one.candidate.number] = Pruned(built=one, reason=WORSE, better=better)
    return kept


def _spread(own: Sequence[Built]) -> Sequence[Built]:
    """Some of the candidates of a kind, from the cheapest to the dearest."""
    step = max(1, -(-(len(own) - 1) // (KEPT_OF_KIND - 1)))
    return [*own[:-1:step], *own[-1:]]


def _alone(one: Built, limits: Limits) -> Pruned | None:
    """The candidate pruned by its own properties, or None."""
    if one.reason:
        return Pruned(built=one, reason=one.reason, detail=one.detail)
    if one.not_priced:
        return Pruned(built=one, reason=UNPRICED, detail=", ".join(one.not_priced))
    if limits.price_usd is not None and one.price_usd.typical > limits.price_usd:
        return Pruned(built=one, reason=DEAR, detail=f"${one.price_usd.typical:,.0f}")
    if limits.power_w is not None and one.power_w.typical > limits.power_w:
        return Pruned(built=one, reason=HUNGRY, detail=f"{one.power_w.typical:,.0f} W")
    return None


def _order(one: Built) -> tuple[float, float, float, int]:
    least = 0.0 if one.profile is None else one.profile.least_bps
    return one.price_usd.typical, one.power_w.typical, -least, one.candidate.number


def _betters(one: Built, other: Built) -> bool:
    return (
        one.profile is not None
        and not one.family
        and other.profile is not None
        and one.price_usd.typical <= other.price_usd.typical
        and one.power_w.typical <= other.power_w.typical
        and one.profile.dominates(other.profile)
    )
