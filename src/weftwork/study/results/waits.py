"""Waiting ranks of an unfinished run, and their causes.

A cause is the fault or the rule that stopped a rank.

The rows are those of `weftwork.engine.waits`; here they get words of the job, the rank that each waits for, and a
cause, which is found from the state in which the run ended and never from what is likely.
Leaves out: sentences, see `weftwork.report.waiting`.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from weftwork.engine.flow.flow_input import FlowInput
from weftwork.engine.rows.fabric import Instant
from weftwork.engine.rows.job import Op
from weftwork.engine.rows.waits import WAIT_KINDS, WAIT_STATES
from weftwork.spec.fabric import SWITCH
from weftwork.spec.result import TABLES
from weftwork.study.run.ending import is_done
from weftwork.topology.port_names import port_names
from weftwork.workload.training.turns import PASSES

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from weftwork.study.prepare.prepared import Prepared
    from weftwork.study.run.execute import Execution

__all__ = ["wait_rows"]

MOST_ROWS: Final = 50_000  # chosen: some megabytes
_PASS: Final = 0  # `weftwork.workload.training.programs.MILESTONES`: a pass of the pipeline begins


def wait_rows(prepared: Prepared, execution: Execution) -> dict[str, dict[str, Any]]:
    """Columns of the tables ``waits`` and ``deadlock``.

    Empty if no rank waits.

    Parameters
    ----------
    prepared : what was run
    execution : of it
    """
    found: dict[str, dict[str, Any]] = {}
    if len(execution.outcome.deadlock):
        found["deadlock"] = _deadlock(prepared, execution)
    if len(execution.outcome.waits) and not is_done(prepared, execution):
        rows = _Waits(prepared, execution).rows()
        found["waits"] = {column.name: [row[column.name] for row in rows] for column in TABLES["waits"]}
    return found


def _deadlock(prepared: Prepared, execution: Execution) -> dict[str, Any]:
    cycle, fabric = execution.outcome.deadlock, prepared.fabric
    ports = fabric.ports
    peers = ports.node[ports.peer[cycle["port"]]]
    return {
        "step": np.arange(len(cycle)),
        "port": cycle["port"],
        "name": port_names(fabric, cycle["port"]),
        "paused_by": [fabric.node_names[node] for node in peers.tolist()],
        "priority": prepared.engine_input.class_priority[cycle["traffic_class"]],
        "waiting_bytes": cycle["waiting_bytes"],
        "held_bytes": cycle["held_bytes"],
    }


@dataclass(frozen=True, slots=True)
class _Cause:
    """A cause: a word of ``stopped_by``, and a fault's place and instant."""

    word: str
    where: str | None = None
    since_ps: int | None = None


class _Fabric:
    """The state of the links at the end of the run."""

    def __init__(self, prepared: Prepared, end_ps: int) -> None:
        self.fabric = prepared.fabric
        self.ports = prepared.fabric.ports
        self.down_since: dict[int, int] = {}  # by link
        for at_ps, code, port, _ in prepared.engine_input.instants.tolist():
            if at_ps >= end_ps or code not in (Instant.LINK_DOWN, Instant.LINK_UP):
                continue
            link = int(self.ports.link[port])
            if code == Instant.LINK_DOWN:
                self.down_since[link] = at_ps
            else:
                self.down_since.pop(link, None)

    def dead_link(self, *ports: int) -> _Cause | None:
        """The first of some ports with a link that is down."""
        links = [int(self.ports.link[port]) for port in ports if port >= 0]
        dead = next((link for link in links if link in self.down_since), None)
        if dead is None:
            return None
        return _Cause("dead link", self.fabric.link_names[dead], self.down_since[dead])

    def between(self, source: int, destination: int) -> _Cause | None:
        """The obstacle between two NIC ports.

        None if there is none, or if the ports are unknown.
        """
        if source < 0 or destination < 0:
            return None
        cause = self.dead_link(source, destination)
        if cause is None and not self._joins(source, destination):
            names = [self.fabric.link_names[link] for link in sorted(self.down_since)[:3]]
            since_ps = max(self.down_since.values(), default=None)
            cause = _Cause("no path", ", ".join(names) or None, since_ps)
        return cause

    def _joins(self, source: int, destination: int) -> bool:
        if int(self.ports.peer[source]) == destination:
            return True
        ends = [int(self.ports.node[self.ports.peer[port]]) for port in (source, destination)]
        return bool(self._component[ends[0]] == self._component[ends[1]])

    @cached_property
    def _component(self) -> NDArray[np.int64]:
        """Number of the connected group of each switch; shape (nodes,).

        Links that are up connect switches.
        """
        links, is_switch = self.fabric.links, self.fabric.node_kind == SWITCH
        is_up = np.ones(len(links), np.bool_)
        is_up[list(self.down_since)] = False
        ends = np.stack([links["a"], links["b"]], axis=1)[is_up & is_switch[links["a"]] & is_switch[links["b"]]]
        number = np.arange(len(is_switch))
        while True:  # each round a number spreads over a link, and then over all that have it
            lowest = number.copy()
            for own, other in ((0, 1), (1, 0)):
                np.minimum.at(lowest, ends[:, own], number[ends[:, other]])
            lowest = lowest[lowest]
            if np.array_equal(lowest, number):
                return number
            number = lowest


class _Waits:
    """The maker of the rows of ``waits``."""

    def __init__(self, prepared: Prepared, execution: Execution) -> None:
        self.prepared, self.execution = prepared, execution
        self.input = prepared.engine_input
        self.waits = execution.outcome.waits
        is_cut = execution.interrupted or not execution.outcome.complete
        self.is_at_rest = not is_cut or len(execution.outcome.deadlock) > 0
        self.fabric = _Fabric(prepared, execution.outcome.simulated_ps if is_cut else self.input.until_ps)
        self.streams_of: defaultdict[int, set[int]] = defaultdict(set)
        for rank, stream in np.unique(self.waits[["rank", "stream"]]).tolist():
            self.streams_of[rank].add(stream)
        flows = execution.flows
        self.ranks_of = {} if flows is None else dict(flows.actors[["rank", "ranks"]].tolist())
        self._known: dict[tuple[int, int, int, int], _Cause | None] = {}

    def rows(self) -> list[dict[str, Any]]:
        """One row for each row of the engine, in its order.

        If there are very many, failed ones or those with a dead link come first.
        """
        kept = np.arange(len(self.waits))
        if len(kept) > MOST_ROWS:
            dead = np.flatnonzero(np.isin(self.fabric.ports.link, list(self.fabric.down_since)))
            is_first = self.waits["state"] == WAIT_STATES.index("failed")
            is_first |= np.isin(self.waits["source_port"], dead) | np.isin(self.waits["destination_port"], dead)
            _, begin, stream = np.unique(self.waits[["rank", "stream"]], return_index=True, return_inverse=True)
            place = kept - begin[stream]  # within its stream, so that every rank has rows
            kept = np.sort(np.lexsort((place, ~is_first))[:MOST_ROWS])
        return [self._row(wait) for wait in self.waits[kept]]

    def _row(self, wait: np.void) -> dict[str, Any]:
        rank, cause = int(wait["rank"]), self._cause(wait)
        blocked_by = None if cause is not None else self._blocked_by(wait)
        found = self._words(wait) | {
            "rank": rank,
            "host": self._host(rank),
            "ranks": int(self.ranks_of.get(rank, 1)),
            "stream": int(wait["stream"]),
            "waits_for": WAIT_KINDS[wait["kind"]],
            "step": int(wait["turn"]),
            "state": WAIT_STATES[wait["state"]],
            "missing": int(wait["missing"]),
            "blocked_by": blocked_by,
            "stopped_by": None if cause is None else cause.word,
            "place": None if cause is None else cause.where,
            "since_ps": None if cause is None else cause.since_ps,
        }
        for name in ("peer", "channel", "ordinal", "size_bytes"):
            found[name] = int(wait[name]) if wait[name] >= 0 else None
        found["peer_host"] = None if found["peer"] is None else self._host(found["peer"])
        return found

    def _host(self, rank: int) -> str:
        host = self.prepared.job.placement.host[rank]
        return self.prepared.fabric.node_names[int(self.prepared.fabric.hosts[host])]

    # Words of the job

    def _words(self, wait: np.void) -> dict[str, Any]:
        """Job, operation, pass and micro batch of a rank's wait."""
        prepared, rank = self.prepared, int(wait["rank"])
        operation = self._operation(wait)
        if not prepared.scenario.workload_kind.is_training:
            return {"job": prepared.job.name, "operation": operation, "pass": "", "micro_batch": -1}
        program = int(prepared.job.rank_program[rank])
        passes = prepared.passes(program)
        number = self._passed.get(rank, 0) - 1
        about = passes[number] if 0 <= number < len(passes) else None
        return {
            "job": prepared.jobs[int(prepared.job_of_program[program])].name,
            "operation": operation,
            "pass": "" if about is None else PASSES[about["pass"]],
            "micro_batch": -1 if about is None else int(about["micro_batch"]),
        }

    def _operation(self, wait: np.void) -> str:
        """Name of an operation, such as ``data all-reduce``.

        It is from the program, or from the scenario's collective.
        """
        ops, labels = self.input.ops, self.prepared.job.labels
        known = [int(ops["label"][at]) for at in (wait["op"], wait["stands_at"])] + self._label_of.get(
            int(wait["channel"]), []
        )
        found = [labels[label] for label in known if label >= 0][:1]
        if isinstance(self.input, FlowInput) and WAIT_KINDS[wait["kind"]] == "collective":
            found.append(self.input.operations[int(ops["value"][wait["op"]])])
        elif not found and self.prepared.scenario.workload_kind.is_collective:
            found.append(str(self.prepared.scenario.collective_section.operation))
        return " ".join(found)

    @cached_property
    def _label_of(self) -> dict[int, list[int]]:
        """The one label of the sends of each channel.

        A RECEIVE has no label of its own.
        """
        ops = self.input.ops
        sends = ops[(ops["code"] == Op.SEND) & (ops["label"] >= 0)]
        pairs = np.unique(sends[["channel", "label"]])
        channels, counts = np.unique(pairs["channel"], return_counts=True)
        single = set(channels[counts == 1].tolist())
        return {channel: [label] for channel, label in pairs.tolist() if channel in single}

    @cached_property
    def _passed(self) -> dict[int, int]:
        """Number of passes that each rank has begun."""
        milestones = self.execution.outcome.milestones
        ranks, counts = np.unique(milestones["rank"][milestones["name"] == _PASS], return_counts=True)
        return dict(zip(ranks.tolist(), counts.tolist(), strict=True))

    # Causes

    def _cause(self, wait: np.void) -> _Cause | None:
        """The cause of a wait.

        None if it is for another rank, or if the operation was only in progress.
        """
        kind, state = WAIT_KINDS[wait["kind"]], WAIT_STATES[wait["state"]]
        rank, peer = int(wait["rank"]), int(wait["peer"])
        if kind == "token" and self.streams_of[rank] == {int(wait["stream"])} and self.is_at_rest:
            return _Cause("never notified")
        if state == "not posted":
            word = {"receive": "never sent", "collective": "never joined"}.get(kind)
            is_over = peer >= 0 and self.is_at_rest and self._representative(peer) not in self.streams_of
            return _Cause(word) if word is not None and is_over else None
        if kind == "collective":
            return self._cause_of_collective(wait)
        source, destination = (rank, peer) if kind == "send" else (peer, rank)
        ports = (int(wait["source_port"]), int(wait["destination_port"]))
        if ports[0] < 0 and self._host(source) != self._host(destination):
            ports = self._ports_of(source, destination, int(wait["channel"]))
        key = (*ports, int(wait["state"]), -1 if ports[0] >= 0 else source << 32 | destination)
        if key not in self._known:
            self._known[key] = self._cause_of_message(source, destination, ports, state)
        cause = self._known[key]
        if kind == "send" and (cause is None or cause.word == "held back") and self._lacks_receives(wait):
            return _Cause("receive missing") if self._representative(peer) not in self.streams_of else None
        return cause

    def _cause_of_message(self, source: int, destination: int, ports: tuple[int, int], state: str) -> _Cause | None:
        is_inside = self._host(source) == self._host(destination)
        cause = self.fabric.between(*ports)
        if cause is not None:
            return cause
        if state == "failed":
            return _Cause("retries exhausted")
        if is_inside or not self.is_at_rest:
            return None
        if len(self.execution.outcome.deadlock):
            return _Cause("deadlock")
        return _Cause("held back" if self.execution.flows is None else "no route")

    def _ports_of(self, source: int, destination: int, channel: int) -> tuple[int, int]:
        """NIC ports of a message of a folded flow.

        A folded flow keeps no ports; they are those of its channel's sends, if all agree.
        """
        sends = self._sends_of.get(channel, [])
        if len(sends) != 1:
            return (-1, -1)
        column, is_peer_rail = sends[0]
        ends = [int(self.input.rank_ports[rank, column]) for rank in (source, destination)]
        if is_peer_rail:
            base, node = self.input.port_base, self.input.port_node
            ends[0] = int(base[node[ends[0]]] + ends[1] - base[node[ends[1]]])
        return (ends[0], ends[1])

    @cached_property
    def _sends_of(self) -> dict[int, list[tuple[int, int]]]:
        """Columns of NIC ports and rails of the sends of each channel."""
        ops, found = self.input.ops, defaultdict[int, list[tuple[int, int]]](list)
        for channel, column, rail in np.unique(ops[ops["code"] == Op.SEND][["channel", "nic", "peer_rail"]]).tolist():
            found[channel].append((column, rail))
        return found

    def _lacks_receives(self, wait: np.void) -> bool:
        """Whether a message lacks credits, since no rank receives earlier ones.

        Earlier messages fill the buffers.
        """
        return 0 < self.prepared.transport.end_to_end_credits <= int(wait["missing"])

    def _cause_of_collective(self, wait: np.void) -> _Cause | None:
        """A dead link of a member, or a missing path between neighbours."""
        members = self._members(wait)
        ports = self.input.rank_ports[members]
        cause = self.fabric.dead_link(*ports.reshape(-1).tolist())
        first = ports[:, 0].tolist()
        for source, destination in zip(first, [*first[1:], *first[:1]], strict=True):
            if cause is None and self.input.port_node[source] != self.input.port_node[destination]:
                cause = self.fabric.between(source, destination)
        return cause if cause is not None or not self.is_at_rest else _Cause("no route")

    def _members(self, wait: np.void) -> NDArray[np.int64]:
        """Ranks of a collective of the flow engine."""
        if not isinstance(self.input, FlowInput):
            return np.array([wait["rank"]])
        row = self.input.collects[int(self.input.ops["value"][wait["op"]])]
        program = int(self.prepared.job.rank_program[wait["rank"]])
        starts = self.input.program_first_rank
        first = int(starts[program]) if len(starts) else 0
        members = np.array([int(wait["rank"]) - first])
        for stride, size in self.input.axes[int(row["first_axis"]) : int(row["first_axis"] + row["axes"])].tolist():
            members = members - members // stride % size * stride
            members = (members[:, None] + np.arange(size)[None, :] * stride).reshape(-1)
        return np.sort(members + first)

    # Ranks

    def _blocked_by(self, wait: np.void) -> int | None:
        """The rank whose wait has to end first."""
        kind, state = WAIT_KINDS[wait["kind"]], WAIT_STATES[wait["state"]]
        rank, peer = int(wait["rank"]), int(wait["peer"])
        if kind == "token" or (kind == "collective" and state == "not posted" and peer < 0):
            return rank  # another stream of its own, or an earlier call of its group
        if kind == "send" and self._lacks_receives(wait):
            return self._representative(peer)
        if state != "not posted" or peer < 0:
            return None
        return self._representative(peer)

    def _representative(self, rank: int) -> int:
        """The rank that represents a folded rank.

        It is the rank itself, or one with the same program.
        """
        if not self.ranks_of or rank in self.ranks_of:
            return rank
        program = self.prepared.job.rank_program
        return next((other for other in self.ranks_of if program[other] == program[rank]), rank)
