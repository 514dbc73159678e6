"""The topologies that a user has named, side by side: the best candidate of each, and what a dead leaf costs it.

Whoever names topologies wants to see all of them, also those that lose. So closed forms never prune the last candidate
of a named topology by one of another: what they say across kinds of networks may be far off.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from weftwork.base.errors import ConfigError
from weftwork.spec.fabric import HOST, Fabric
from weftwork.study.design.built import overrides_of
from weftwork.study.design.candidates import topology_word
from weftwork.study.design.judge import are_placed, value_of
from weftwork.study.loss import HOST_LOST, job_without
from weftwork.study.prepare.prepare import read_scenario
from weftwork.topology.build import fabric_of_section

if TYPE_CHECKING:
    from weftwork.study.design.prune import Pruned
    from weftwork.study.design.runs import Ran
    from weftwork.study.design.worth import ClusterMoney
    from weftwork.study.pool.side_by_side import Workers

__all__ = ["DeadLeaf", "NamedKind", "best_of_kinds", "dead_leaves"]


@dataclass(frozen=True, kw_only=True, slots=True)
class DeadLeaf:
    """What the loss of the switch of the first server costs a job.

    Attributes
    ----------
    switch : its name
    slowdown : of the job; None where it does not end
    cut_off : GPUs without a NIC port
    stopped : why the job does not go on; empty where it does
    """

    switch: str
    slowdown: float | None
    cut_off: int
    stopped: str


@dataclass(frozen=True, kw_only=True, slots=True)
class NamedKind:
    """A named topology.

    Attributes
    ----------
    topology : its name
    name : of its best candidate; None where none has a time
    reason : why none has
    dead_leaf : of the best candidate; None where it was not asked for
    """

    topology: str
    name: str | None
    reason: str = ""
    dead_leaf: DeadLeaf | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class _LeafQuestion:
    file: Path
    overrides: Mapping[str, str]
    user_code: bool


def best_of_kinds(
    topologies: Sequence[str], ran: Sequence[Ran], pruned: Sequence[Pruned], money: ClusterMoney | None, criterion: str
) -> list[NamedKind]:
    """The best candidate of each named topology, or why there is none."""
    found, as_placed = [], are_placed([one for one in ran if one.placed])
    for topology in dict.fromkeys(topologies):
        own = [one for one in ran if one.built.candidate.fabric["topology"] == topology and isfinite(one.counting_ps)]
        own = [one for one in own if one.placed and as_placed] or own  # judged alike
        if own:
            best = min(own, key=lambda one: value_of(one, money, criterion, as_placed=as_placed))
            found.append(NamedKind(topology=topology_word(topology), name=best.name))
            continue
        failed = [one.reason for one in ran if one.built.candidate.fabric["topology"] == topology]
        gone = [one.reason for one in pruned if one.built.candidate.fabric["topology"] == topology]
        reasons = dict.fromkeys([*failed, *gone]) or {"no combination of the allowed values makes it": None}
        found.append(NamedKind(topology=topology_word(topology), name=None, reason="; ".join(reasons)))
    return found


def dead_leaves(
    ran: Sequence[Ran], file: Path, settings: Mapping[str, str], *, user_code: bool, processes: Workers,
    told: Callable[[str, int, int], None],
) -> dict[str, DeadLeaf]:  # fmt: skip
    """What a dead leaf costs the job on each of some candidates."""
    asked = [
        _LeafQuestion(file=file, overrides=overrides_of(one.built.candidate, settings), user_code=user_code)
        for one in ran
    ]
    found = {}
    for place, leaf in enumerate(processes.answers(_dead_leaf, asked)):
        told("losing", place + 1, len(asked))
        found[ran[place].name] = leaf
    return found


def _dead_leaf(asked: _LeafQuestion) -> DeadLeaf:
    scenario = read_scenario(asked.file, asked.overrides, user_code=asked.user_code)
    switch = _first_leaf(fabric_of_section(scenario.fabric, directory=asked.file.parent))
    try:
        found = job_without(asked.file, [switch], overrides=asked.overrides, user_code=asked.user_code)
    except ConfigError as error:
        return DeadLeaf(switch=switch, slowdown=None, cut_off=0, stopped=error.mistakes[0].text)
    stopped = "its servers are lost" if found.status_after == HOST_LOST else found.stopped
    return DeadLeaf(switch=switch, slowdown=found.slowdown, cut_off=len(found.cut_off), stopped=stopped)


def _first_leaf(fabric: Fabric) -> str:
    """The switch of the first NIC port of the first server."""
    host = int(fabric.hosts[0])
    links, kind = fabric.links, fabric.node_kind
    at = np.flatnonzero((links["a"] == host) | (links["b"] == host))
    ends = {int(end) for end in (*links["a"][at], *links["b"][at])} - {host}
    leaf = min(end for end in ends if kind[end] != HOST)
    return fabric.node_names[leaf]
