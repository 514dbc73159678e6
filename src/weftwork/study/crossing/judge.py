"""The verdict of a crossing from its runs.

It has ratios to the base by seed, the best of each setting, and standings.

Runs with one seed share flows, placement and hashes, so that two contenders are compared seed by seed: the logarithm of
the ratio is averaged, and its 95 % interval is Student's t over the seeds. This removes what seeds have in common, as a
paired t test does. No correction is made for how many pairs are compared: of 20 that differ by nothing, one is named.
Leaves out: seeds of which a run is missing; a cell without all of its runs has no value.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from weftwork.spec.crossing import BASE, Contender, CrossingCell, Standing
from weftwork.study.crossing.contenders import PLAIN
from weftwork.study.results.seeds import interval

if TYPE_CHECKING:
    from weftwork.spec.crossing import Setting

__all__ = ["BEST", "best_policies", "judged_cells", "ratio_of", "standings_of", "three_best"]

BEST: Final = 3  # controls and balancers that are crossed, and crossings that are named


_Ratio = tuple[float, float | None, float | None]  # a mean, and the ends of its interval where there is more than one


def ratio_of(values: Sequence[float], base: Sequence[float]) -> _Ratio | None:
    """Geometric mean of the ratios by seed, with its 95 % interval.

    None without a ratio.

    One seed has no interval: its ends are None.

    Parameters
    ----------
    values, base : of the same seeds in the same order; less is better

    Examples
    --------
    >>> ratio_of([1.0, 2.0], [2.0, 4.0])
    (0.5, 0.5, 0.5)
    >>> [round(x, 2) for x in ratio_of([1.0, 4.0], [1.0, 1.0])]
    [2.0, 0.0, 13365.3]
    >>> ratio_of([3.0], [2.0])
    (1.5, None, None)
    """
    if not values or len(values) != len(base) or min(*values, *base) <= 0:
        return None
    return _geometric([math.log(one / other) for one, other in zip(values, base, strict=True)])


def _geometric(logs: Sequence[float]) -> _Ratio:
    """Geometric mean of ratios, and the ends of its interval.

    Both follow from the logarithms by seed.
    """
    mean, low, high = (math.exp(min(value, 700.0)) for value in interval(logs))  # 700: what a float can hold
    return (mean, low, high) if len(logs) > 1 else (mean, None, None)


def judged_cells(cells: Sequence[CrossingCell], settings: Sequence[Setting], base: int) -> tuple[CrossingCell, ...]:
    """Cells with ratios to the base and to their setting's best.

    Parameters
    ----------
    cells : one for each contender and setting, by contender, then by setting
    settings : of the crossing
    base : place of the contender that all are measured against
    """
    count = len(settings)
    best: dict[int, CrossingCell] = {}
    for cell in cells:
        if cell.values and (cell.setting not in best or _level(cell) < _level(best[cell.setting])):
            best[cell.setting] = cell
    return tuple(_judged(cell, cells[base * count + cell.setting], best.get(cell.setting)) for cell in cells)


def _level(cell: CrossingCell) -> float:
    """Mean of the logarithms of a cell's values."""
    return math.fsum(math.log(max(value, 1e-300)) for value in cell.values) / len(cell.values)


def _judged(cell: CrossingCell, base: CrossingCell, best: CrossingCell | None) -> CrossingCell:
    against = ratio_of(cell.values, base.values)
    behind = None if best is None else ratio_of(cell.values, best.values)
    if against is not None:
        cell = replace(cell, ratio=against[0], low=against[1], high=against[2])
    if behind is not None:
        cell = replace(cell, behind=behind[0], behind_low=behind[1], behind_high=behind[2])
    return replace(cell, is_best=best is not None and cell.contender == best.contender)


def standings_of(cells: Sequence[CrossingCell], settings: int, base: int) -> tuple[Standing, ...]:
    """Contenders with values in every setting, the best first.

    Parameters
    ----------
    cells : judged, by contender, then by setting
    settings : how many
    base : place of the contender that all are measured against
    """
    rows = [cells[place : place + settings] for place in range(0, len(cells), settings)]
    logs_of: dict[int, list[float]] = {}
    for contender, row in enumerate(rows):
        if any(ratio_of(cell.values, other.values) is None for cell, other in zip(row, rows[base], strict=True)):
            continue
        seeds = range(len(row[0].values))
        logs_of[contender] = [
            math.fsum(
                math.log(cell.values[seed] / other.values[seed]) for cell, other in zip(row, rows[base], strict=True)
            )
            / settings
            for seed in seeds
        ]
    if not logs_of:
        return ()
    best = min(logs_of, key=lambda contender: (math.fsum(logs_of[contender]), contender))
    found = [_standing(contender, logs, logs_of[best]) for contender, logs in logs_of.items()]
    return tuple(sorted(found, key=lambda one: (one.ratio, one.contender)))


def _standing(contender: int, logs: Sequence[float], best: Sequence[float]) -> Standing:
    ratio, low, high = _geometric(logs)
    _, least, _ = _geometric([own - other for own, other in zip(logs, best, strict=True)])
    is_as_good = logs is best or (least is not None and least <= 1.0)
    return Standing(contender=contender, ratio=ratio, low=low, high=high, is_as_good=is_as_good)


def best_policies(standings: Sequence[Standing], contenders: Sequence[Contender]) -> tuple[list[str], list[str]]:
    """The best three controls and the best three balancers.

    A control is judged by its better run with ECMP or spraying.

    A balancer is judged by the geometric mean over the controls that every balancer ran with, so that one which only
    one of them ran with is not ahead by that control.

    Returns
    -------
    names of controls and of balancers, the best first
    """
    controls: dict[str, float] = {}
    shares: dict[str, list[float]] = {}
    by_balancer = [one for one in contenders if one.origin == "balancers" or one.balancer in PLAIN]
    common = {one.control for one in contenders if one.origin in {"balancers", "all"}} or {BASE[0]}
    for standing in standings:
        one = contenders[standing.contender]
        if one.origin in {"controls", "all"} or one.balancer in PLAIN:
            controls.setdefault(one.control, standing.ratio)  # the best first
        if one.control in common and (one in by_balancer or one.origin == "all"):
            shares.setdefault(one.balancer, []).append(math.log(standing.ratio))
    most = max((len(logs) for logs in shares.values()), default=0)
    balancers = {name: math.fsum(logs) / len(logs) for name, logs in shares.items() if len(logs) == most}
    return (
        sorted(controls, key=lambda name: (controls[name], name))[:BEST],
        sorted(balancers, key=lambda name: (balancers[name], name))[:BEST],
    )


def three_best(
    standings: Sequence[Standing], contenders: Sequence[Contender], controls: Sequence[str], balancers: Sequence[str]
) -> tuple[int, ...]:
    """Places of the three best pairs of these controls and balancers."""
    found = [
        one.contender
        for one in standings
        if contenders[one.contender].control in controls and contenders[one.contender].balancer in balancers
    ]
    return tuple(found[:BEST])
