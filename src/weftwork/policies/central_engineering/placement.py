"""Placement: all demands at once, with the smallest possible peak link load.

A mixed-integer linear program: minimise U, where each demand takes one path and no link carries more than U times its
capacity. Equal demands of one relation are one integer variable a path: how many take it. The same program with
fractions of demands is its lower bound, which no routing over these paths can beat. HiGHS solves both. Where the paths
of `greedy`, or the rounded fractions, are within the gap of the bound, there is no search.
Source: the min-max multicommodity flow problem (unverified: Fortz and Thorup, INFOCOM 2000, states the linear form);
Huangfu and Hall, Math. Program. Comput. 2018, doi:10.1007/s12532-017-0130-5 (HiGHS), through scipy.optimize.milp.
Leaves out: the loads of all links but the fullest; a start from known paths, which scipy does not offer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from weftwork.base.clock import SECOND_PS
from weftwork.policies.least_loaded_paths import least_loaded_paths
from weftwork.spec.plug_in import DURATION, Measure, Number, PathProblem, PathScheme, Planned, Record, Whole, row

if TYPE_CHECKING:
    from scipy.optimize import Bounds, LinearConstraint

__all__ = ["SCHEME", "PlacementKeys"]

OPTIMAL: Final = 0  # scipy.optimize.milp, `status`; a limit of nodes gives 4, "other"
STOPPED: Final = 1  # a limit of time
ROUNDING: Final = 1e-6  # of HiGHS: mip_feasibility_tolerance


class PlacementKeys(Record):
    """Limits of the search."""

    time_limit_ps: int = row(
        "time_limit",
        Measure(quantity=DURATION, low=SECOND_PS // 1_000),
        default="60s",
        text="Time of the machine after which the search ends with the best paths so far. Where it ends a search,"
        " another machine may choose other paths, and the run says so.",
        source="chosen: what somebody waits for before a run",
    )
    node_limit: int = row(
        "node_limit",
        Whole(low=1, unit="nodes"),
        default=1_000,
        text="Nodes of the search tree after which the search ends; the same on every machine.",
        source="chosen: permutations of 256 hosts need one",
    )
    gap: float = row(
        "gap",
        Number(low=0, high=1, unit="share"),
        default=0.01,
        text="The search ends when the most loaded link is within this share of the lower bound.",
        source="chosen: a difference below that of two seeds of hashing",
    )


class _Classes(NamedTuple):
    """Equal demands of one relation as one row.

    Each path of the row has a variable.
    """

    of_pair: NDArray[np.int64]  # class of each pair
    members: NDArray[np.int64]  # pairs of each class
    first: NDArray[np.int64]  # variable at which each class begins, and how many there are
    variable_class: NDArray[np.int64]
    variable_path: NDArray[np.int64]
    demand_bps: NDArray[np.float64]  # of one member, by class


def _place(keys: PlacementKeys, problem: PathProblem) -> Planned:
    from scipy.optimize import milp  # a third of a second, which nobody waits for who lists keys

    classes = _classes(problem)
    cost, constraints = _program(problem, classes)
    bounds = _bounds(classes, _alone(problem))
    options = {"time_limit": keys.time_limit_ps / SECOND_PS}
    relaxed = milp(cost, constraints=constraints, bounds=bounds, options=options)
    is_bounded = relaxed.status == OPTIMAL
    bound = max(float(relaxed.fun) if is_bounded else 0.0, float(bounds.lb[-1]))
    answers = [least_loaded_paths(problem)]
    if relaxed.x is not None:
        answers.append(_chosen(classes, _rounded(classes, relaxed.x[:-1])))
    best, share = _best(problem, answers)
    if share <= bound * (1 + keys.gap) + ROUNDING:
        return Planned(chosen=best, bound=bound)
    options |= {"node_limit": keys.node_limit, "mip_rel_gap": keys.gap}
    is_whole = np.append(np.ones(len(cost) - 1), 0)
    found = milp(cost, constraints=constraints, bounds=bounds, integrality=is_whole, options=options)
    if found.x is not None:
        whole = np.rint(found.x[:-1]).astype(np.int64)
        best, share = _best(problem, [best, _chosen(classes, whole)])
    limit, by_time = _limit(keys, found.status if is_bounded else relaxed.status)
    proved = getattr(found, "mip_dual_bound", None)
    if proved is not None and np.isfinite(proved):
        bound = max(bound, float(proved))
    if not by_time and share <= bound * (1 + keys.gap) + ROUNDING:
        limit = ""
    return Planned(chosen=best, bound=bound, limit=limit, depends_on_machine=by_time)


def _best(problem: PathProblem, answers: list[NDArray[np.int64]]) -> tuple[NDArray[np.int64], float]:
    """The best of several answers, and the share of its most loaded link.

    The first of equal answers wins.
    """
    shares = [float(np.max(problem.shares(chosen), initial=0.0)) for chosen in answers]
    place = int(np.argmin(shares))
    return answers[place], shares[place]


def _classes(problem: PathProblem) -> _Classes:
    keys = np.stack([problem.relation, problem.demand_bps.view(np.int64)], axis=1)  # equal to the bit
    rows, first_pair, of_pair, members = np.unique(
        keys, axis=0, return_index=True, return_inverse=True, return_counts=True
    )
    relation = rows[:, 0]
    width = np.diff(problem.path_ptr)[relation]
    first = np.append(0, np.cumsum(width))
    variable_class = np.repeat(np.arange(len(rows)), width)
    inside = np.arange(int(first[-1])) - first[variable_class]
    return _Classes(
        of_pair=of_pair.ravel(),
        members=members,
        first=first,
        variable_class=variable_class,
        variable_path=problem.path_ptr[relation[variable_class]] + inside,
        demand_bps=problem.demand_bps[first_pair],
    )


def _program(problem: PathProblem, classes: _Classes) -> tuple[NDArray[np.float64], list[LinearConstraint]]:
    """The cost and the rules of the linear program.

    The cost is U. Each link carries at most U, and each member is on a path.
    """
    from scipy.optimize import LinearConstraint
    from scipy.sparse import coo_array, csr_array

    hops = np.diff(problem.link_ptr)[classes.variable_path]
    variable = np.repeat(np.arange(len(hops)), hops)
    starts = np.repeat(problem.link_ptr[classes.variable_path] - np.append(0, np.cumsum(hops))[:-1], hops)
    link = problem.link[starts + np.arange(len(variable))]
    share = classes.demand_bps[classes.variable_class[variable]] / problem.capacity_bps[link]
    links, variables = len(problem.capacity_bps), len(hops)
    matrix = csr_array(coo_array((share, (link, variable)), shape=(links, variables)))
    used = np.flatnonzero(np.diff(matrix.indptr))
    minus_u = coo_array((-np.ones(len(used)), (np.arange(len(used)), np.full(len(used), variables))))
    below = coo_array(matrix[used])
    rows = np.append(below.row, minus_u.row)
    loads = coo_array(
        (np.append(below.data, minus_u.data), (rows, np.append(below.col, minus_u.col))),
        shape=(len(used), variables + 1),
    )
    ones = np.ones(variables)
    whole = coo_array(
        (ones, (classes.variable_class, np.arange(variables))), shape=(len(classes.members), variables + 1)
    )
    cost = np.append(np.zeros(variables), 1.0)
    constraints = [
        LinearConstraint(csr_array(loads), -np.inf, 0),
        LinearConstraint(csr_array(whole), classes.members, classes.members),
    ]
    return cost, constraints


def _bounds(classes: _Classes, alone: float) -> Bounds:
    from scipy.optimize import Bounds

    most = np.append(classes.members[classes.variable_class].astype(np.float64), np.inf)
    return Bounds(np.append(np.zeros(len(most) - 1), alone), most)


def _alone(problem: PathProblem) -> float:
    """The largest link share of any single demand on its best path."""
    rows, capacity = problem.padded()
    narrowest_bps = np.minimum.reduceat(capacity[rows].min(axis=1) * -1, problem.path_ptr[:-1]) * -1
    return float(np.max(problem.demand_bps / narrowest_bps[problem.relation], initial=0.0))


def _rounded(classes: _Classes, parts: NDArray[np.float64]) -> NDArray[np.int64]:
    """Round parts to whole members by the largest remainders."""
    counts = np.floor(parts + ROUNDING).astype(np.int64)
    cut = parts - counts
    for number, members in enumerate(classes.members.tolist()):
        own = slice(int(classes.first[number]), int(classes.first[number + 1]))
        left = members - int(counts[own].sum())
        counts[own][np.argsort(-cut[own], kind="stable")[: max(left, 0)]] += 1
    return counts


def _chosen(classes: _Classes, counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """Give the paths of each class to its pairs in order."""
    chosen = np.empty(len(classes.of_pair), np.int64)
    order = np.argsort(classes.of_pair, kind="stable")  # pairs by class, as variables are
    chosen[order] = np.repeat(classes.variable_path, counts)
    return chosen


def _limit(keys: PlacementKeys, status: int) -> tuple[str, bool]:
    """The limit that ended a search, and whether it is a time limit."""
    if status == OPTIMAL:
        return "", False
    if status == STOPPED:
        return f"time_limit of {keys.time_limit_ps / SECOND_PS:g} s", True
    return f"node_limit of {keys.node_limit:,}", False


SCHEME: Final = PathScheme(
    keys=PlacementKeys,
    place=_place,
    source="HiGHS: doi:10.1007/s12532-017-0130-5; the linear program: unverified: Fortz and Thorup, INFOCOM 2000",
)
