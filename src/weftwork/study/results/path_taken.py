"""The path that each flow took, where its routing keeps it on one path whatever the load is.

A message alone on an empty fabric takes that path too, so that its ideal time follows it
(`weftwork.study.results.ideal`). A path that depends on the load, and several paths side by side, are not taken as
ideal.
Needs the table of paths, which the packet engine and the flow engine record, and the reference does not.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from weftwork.spec.fabric import HOST
from weftwork.spec.routings import ROUTINGS
from weftwork.study.results.intra_server import PACKETS, carriers

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from weftwork.engine.outcome import Outcome
    from weftwork.study.prepare.prepared import Prepared

__all__ = ["PathsTaken", "paths_taken", "queue_pair_of"]

_BY_HASH: Final = frozenset({"hash", "weighted-hash"})
_MEGA: Final = 1_000_000
_LONGEST: Final = 64  # chosen: ports of a path; more than any routing takes


@dataclass(frozen=True, kw_only=True, slots=True)
class PathsTaken:
    """Paths of messages; those that look alike share an example.

    Attributes
    ----------
    of_message : shape (messages,), index into ``examples``; -1: not known, or not one path
    examples : sending ports of each path, from the NIC to the last switch
    """

    of_message: NDArray[np.int64]
    examples: tuple[tuple[int, ...], ...]


def queue_pair_of(messages: NDArray[np.void]) -> NDArray[np.int64]:
    """Number of the queue pair of each message, in the order of source, destination and channel.

    Parameters
    ----------
    messages : `weftwork.engine.rows.outcome.MESSAGE_DTYPE`, in the order of an outcome
    """
    begins = np.ones(len(messages), np.bool_)
    begins[1:] = False
    for name in ("source", "destination", "channel"):
        begins[1:] |= messages[name][1:] != messages[name][:-1]
    return np.cumsum(begins) - 1


def paths_taken(prepared: Prepared, outcome: Outcome) -> PathsTaken:
    """Collect the paths of a run's messages.

    Parameters
    ----------
    prepared : what was run
    outcome : of it
    """
    messages, paths = outcome.messages, outcome.paths
    unknown = PathsTaken(of_message=np.full(len(messages), -1, np.int64), examples=())
    if not len(paths) or not len(messages) or not _keeps_paths(prepared):
        return unknown
    ports, links = prepared.fabric.ports, prepared.fabric.links
    paths = paths[np.lexsort((ports.node[paths["port"]], paths["queue_pair"]))]
    pair, port = paths["queue_pair"], paths["port"]
    node = ports.node[port]
    first = np.flatnonzero(np.append(True, pair[1:] != pair[:-1]))
    branches = np.append(False, (pair[1:] == pair[:-1]) & (node[1:] == node[:-1]))  # a node that sent by two ports
    delay_ps, rate_mbps = links["delay_ps"][ports.link[port]], links["rate_bps"][ports.link[port]] // _MEGA
    looks = np.stack(
        [
            np.add.reduceat(column, first)
            for column in (np.ones(len(port), np.int64), delay_ps, rate_mbps, rate_mbps * (delay_ps // 1_000 + 1))
        ],
        axis=1,
    )
    is_path = ~np.logical_or.reduceat(branches, first)
    _, example, kind = np.unique(looks, axis=0, return_index=True, return_inverse=True)
    ends = np.append(first[1:], len(port))
    every = queue_pair_of(messages)
    kind_of_pair = np.full(int(every[-1]) + 1, -1, np.int64)
    kind_of_pair[pair[first][is_path]] = kind.reshape(-1)[is_path]
    examples = tuple(
        _in_order(prepared, port[first[at] : ends[at]].tolist()) if is_path[at] else () for at in example.tolist()
    )
    found = kind_of_pair[every]
    is_walk = np.array([bool(walk) for walk in examples])
    found = np.where((found >= 0) & is_walk[np.maximum(found, 0)], found, -1)
    found[carriers(prepared.engine_input, messages["source"], messages["destination"]) != PACKETS] = -1
    return PathsTaken(of_message=found, examples=examples)


def _keeps_paths(prepared: Prepared) -> bool:
    """Whether a flow has one path, which no load changes."""
    path, port = (prepared.policies[kind].plugin for kind in ("path_selection", "port_selection"))
    is_fixed = getattr(port, "spreads", None) in _BY_HASH
    is_fixed &= all(getattr(plugin, "reorders", "never") == "never" for plugin in (path, port))
    return is_fixed and ROUTINGS[prepared.scenario.fabric.routing].detour != "adaptive"


def _in_order(prepared: Prepared, ports: list[int]) -> tuple[int, ...]:
    """The ports of one path from its host on; empty if they do not follow each other."""
    on = prepared.fabric.ports
    by_node = {int(on.node[port]): port for port in ports}
    reached = {int(on.node[on.peer[port]]) for port in ports}
    starts = [node for node in by_node if node not in reached]
    if len(starts) != 1:
        return ()
    walk = [by_node[starts[0]]]
    while len(walk) < min(len(ports), _LONGEST):
        port = by_node.get(int(on.node[on.peer[walk[-1]]]))
        if port is None:
            return ()
        walk.append(port)
    kind, ends = prepared.fabric.node_kind, (int(on.node[walk[0]]), int(on.node[on.peer[walk[-1]]]))
    is_whole = len(walk) == len(ports) and all(
        kind[node] == HOST for node in ends
    )  # a run that was cut has a part of it
    return tuple(walk) if is_whole else ()
