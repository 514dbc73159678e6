"""Which of the candidates to take, by which criterion, and on what that rests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import TYPE_CHECKING, Final

from weftwork.study.design.front import front, knee
from weftwork.study.design.worth import WORK, ClusterMoney, PriceRegion, choices_at, regions

if TYPE_CHECKING:
    from weftwork.study.design.runs import Ran

__all__ = ["LAST", "ChosenCandidate", "are_placed", "chosen", "judged_ps", "last_of", "near_best", "value_of"]

LAST: Final = 10  # candidates that run as a scheduler places ranks
NEAR: Final = 0.03  # chosen: work for a dollar below the best that further seeds might turn round


@dataclass(frozen=True, kw_only=True, slots=True)
class ChosenCandidate:
    """The candidate to take.

    Attributes
    ----------
    name : of it; None without any time
    criterion : of `weftwork.study.design.worth.CRITERIA`, as it was applied
    packed : what the criterion takes if every job is packed; None: placements were not varied
    regions : by price of a GPU-hour; empty without prices of GPUs
    corners : choice at low and high prices
    """

    name: str | None
    criterion: str
    packed: str | None = None
    regions: tuple[PriceRegion, ...] = ()
    corners: tuple[tuple[str, str], ...] = ()


def last_of(ran: Sequence[Ran], money: ClusterMoney | None, criterion: str) -> list[Ran]:
    """Candidates that run as placed: half as they did packed, half as closed forms say of ranks far apart."""
    timed = [one for one in ran if isfinite(one.counting_ps)]
    by_packed = sorted(timed, key=lambda one: _badness(one, one.counting_ps, money, criterion))
    by_guess = sorted(timed, key=lambda one: _badness(one, one.guessed_ps, money, criterion))
    found: dict[str, Ran] = {}
    for pair in zip(by_packed, by_guess, strict=True):
        for one in pair:
            if len(found) < LAST:
                found.setdefault(one.name, one)
    return list(found.values())


def near_best(last: Sequence[Ran], money: ClusterMoney | None, criterion: str) -> list[Ran]:
    """Of candidates that ran as placed those whose order further seeds may change."""
    badness = {one.name: _badness(one, judged_ps(one, as_placed=True), money, criterion) for one in last}
    if not badness:
        return []
    least = min(one[0] for one in badness.values())
    return [one for one in last if badness[one.name][0] <= least * (1 + NEAR)]


def chosen(ran: Sequence[Ran], last: Sequence[str], money: ClusterMoney | None, criterion: str) -> ChosenCandidate:
    """The candidate to take.

    Parameters
    ----------
    ran : all candidates with their times
    last : names of those that run as placed; empty: placements were not varied. If one of them has not run so yet, all
        are judged by their packed runs: who happened to run first is no reason
    money : of the whole cluster; None: a price book that knows only networks
    criterion : of `weftwork.study.design.worth.CRITERIA`
    """
    used = "knee" if criterion == WORK and money is None else criterion
    timed = [one for one in ran if isfinite(one.counting_ps)]
    if not timed:
        return ChosenCandidate(name=None, criterion=used)
    if used == "knee":
        plane = {one.name: (one.built.price_usd.typical, one.counting_ps) for one in timed}
        return ChosenCandidate(name=knee({name: plane[name] for name in front(plane)}), criterion=used)
    as_placed = are_placed([one for one in ran if one.name in last])
    judged = [one for one in timed if one.name in last] if as_placed else timed
    by_packed = min(timed, key=lambda one: _badness(one, one.counting_ps, money, used)).name
    packed = by_packed if as_placed else None
    times_ps = {one.name: judged_ps(one, as_placed=as_placed) for one in judged}
    name = min(judged, key=lambda one: _badness(one, times_ps[one.name], money, used)).name
    if used != WORK or money is None:
        return ChosenCandidate(name=name, criterion=used, packed=packed)
    ended = [one for one in judged if isfinite(times_ps[one.name])]
    networks = {one.name: money.network_usd(one.built.price_usd, one.built.power_w) for one in ended}
    lines = {one.name: (times_ps[one.name], networks[one.name].typical) for one in ended}
    work = {one.name: 1 / times_ps[one.name] for one in ended}
    return ChosenCandidate(
        name=name,
        criterion=used,
        packed=packed,
        regions=tuple(regions(lines, money.gpus * money.hours)),
        corners=tuple(choices_at(work, money, networks)) if work else (),
    )


def are_placed(last: Sequence[Ran]) -> bool:
    """Whether all of some candidates ran as a scheduler places ranks, so that they are judged by that."""
    return bool(last) and all(one.is_placed for one in last)


def judged_ps(one: Ran, *, as_placed: bool) -> float:
    """The time that counts by which a candidate is judged: packed, or as placed where it ran so."""
    placed_ps = one.placed_ps if as_placed else None
    return one.counting_ps if placed_ps is None else placed_ps


def _badness(one: Ran, time_ps: float, money: ClusterMoney | None, criterion: str) -> tuple[float, float]:
    """What the criterion wants little of, and dollars between equal ones."""
    price_usd, power_w = one.built.price_usd, one.built.power_w
    each: Mapping[str, float] = {
        "time": time_ps, "money": price_usd.typical, "power": power_w.typical, "knee": time_ps,
        WORK: time_ps if money is None else time_ps * money.total_usd(price_usd, power_w).typical,
    }  # fmt: skip
    return each[criterion], price_usd.typical


def value_of(one: Ran, money: ClusterMoney | None, criterion: str, *, as_placed: bool) -> tuple[float, float]:
    """What the criterion wants little of, for a candidate as it is judged, and dollars between equal ones."""
    return _badness(one, judged_ps(one, as_placed=as_placed), money, criterion)
