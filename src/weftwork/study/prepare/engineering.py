"""Planned paths of a controller as pins of queue pairs.

They follow from the job's traffic matrix, candidate paths and a scheme.

The controller computes paths before the run for all links, and again at the first multiple of its interval at which
routes know of a fault. The same job on links in the same state has the same paths.
Source: docs/models/load-balancing-central.md.
Leaves out: how the controller measures traffic and reaches the switches: it knows all that the job will send, and its
paths hold at once.
"""

from __future__ import annotations

from dataclasses import dataclass
from time import perf_counter
from typing import TYPE_CHECKING, Final, cast

import numpy as np

from weftwork.base.errors import ConfigError, Mistake
from weftwork.base.grammar import plural
from weftwork.engine.instants import link_states
from weftwork.spec.engineering import PathProblem, Planned
from weftwork.spec.fabric import HOST
from weftwork.spec.job import Arrivals
from weftwork.spec.routing import EVERY_CHANNEL, MOST_PATHS, Pin
from weftwork.spec.routings import ROUTINGS
from weftwork.spec.scenario.choices import SCHEMES
from weftwork.study.prepare.traffic_matrix import traffic_matrix
from weftwork.topology.candidate_paths import candidate_paths
from weftwork.topology.routing import attachments

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from weftwork.base.findings import Findings
    from weftwork.engine.instants import LinkState
    from weftwork.policies.interface import PathSelection, PortSelection
    from weftwork.policies.load import LoadedPolicy
    from weftwork.spec.fabric import Fabric
    from weftwork.spec.job import Job
    from weftwork.spec.scenario.engineering import EngineeringSection
    from weftwork.spec.scenario.scenario import Scenario
    from weftwork.spec.transport import Transport
    from weftwork.study.prepare.faults import Occurrence
    from weftwork.study.prepare.traffic_matrix import TrafficMatrix

__all__ = ["Computed", "Engineering", "check_engineering", "note_engineering", "planned_paths"]

MOST_PAIRS: Final = 1 << 18  # chosen: an all-to-all of 512 hosts; a scheme takes about a minute for them
_KEY: Final = "fabric.engineering"


@dataclass(frozen=True, kw_only=True, slots=True)
class Computed:
    """One computation of the paths.

    Attributes
    ----------
    at_ps : from when on they hold
    busiest_share : load of the most loaded link between switches over its capacity, while the busiest NIC port sends
        or receives at its line rate
    pairs : pairs of NIC ports with a path
    planned : the answer of the scheme; its paths are those of the problem that it was asked
    took_s : time of the scheme on this machine
    """

    at_ps: int
    busiest_share: float
    pairs: int
    planned: Planned
    took_s: float


@dataclass(frozen=True, kw_only=True, slots=True)
class Engineering:
    """The paths that a controller plans for a run.

    Attributes
    ----------
    scheme : name, or file
    pins : of the queue pairs; their later paths are those of the later computations
    computed : in the order of time, the first for time 0
    first_paths : by NIC ports of sender and receiver, the ports of the first path
    most_candidates : of one pair of switches; `MOST_PATHS` may have cut them off
    knows_arrivals : whether the matrix holds messages whose arrival is drawn
    """

    scheme: str
    pins: tuple[Pin, ...]
    computed: tuple[Computed, ...]
    first_paths: Mapping[tuple[int, int], tuple[int, ...]]
    most_candidates: int
    knows_arrivals: bool

    @property
    def plan_at_ps(self) -> tuple[int, ...]:
        """Instants with new paths."""
        return tuple(one.at_ps for one in self.computed[1:])


def check_engineering(scenario: Scenario, policies: Mapping[str, LoadedPolicy], findings: Findings) -> None:
    """Find policies that would leave the planned paths.

    Parameters
    ----------
    scenario : its section ``fabric.engineering``
    policies : by kind
    findings : take them
    """
    if scenario.fabric.engineering is None:
        return
    path, port = policies["path_selection"], policies["port_selection"]
    if cast("PathSelection", path.plugin).spreads != "constant":
        text = f"planned paths are found by the entropy of a queue pair, which '{path.name}' changes; take ecmp"
        findings.wrong("transport.path_selection", text, "ecmp")
    if cast("PortSelection", port.plugin).layer_by_word:
        text = f"'{port.name}' chooses among layers of paths by itself and would leave the planned paths; take ecmp"
        findings.wrong("transport.port_selection", text, "ecmp")


def planned_paths(
    scenario: Scenario, fabric: Fabric, job: Job, transport: Transport, occurrences: Sequence[Occurrence]
) -> Engineering | None:
    """Let the controller of a scenario compute its paths.

    Parameters
    ----------
    scenario : that is run
    fabric, job : without mistakes
    transport : whose priority is that of messages without one
    occurrences : what happens

    Returns
    -------
    None where the scenario has no controller

    Raises
    ------
    ConfigError : the job has more pairs of NIC ports than a controller takes
    CodeError : a scheme of the user's own is wrong
    """
    section = scenario.fabric.engineering
    if section is None:
        return None
    controller = _Controller(scenario, section, fabric, traffic_matrix(fabric, job), transport)
    faults = [fault for occurrence in occurrences for fault in occurrence.faults]
    states = list(_epochs(section, scenario.fabric.reconvergence_delay_ps, link_states(fabric, faults)))
    laid = [controller.paths(at_ps, state) for at_ps, state in states]
    kept = [0, *(at for at in range(1, len(laid)) if laid[at][0] != laid[at - 1][0])]
    return Engineering(
        scheme=section.scheme,
        pins=controller.pins([laid[at][0] for at in kept]),
        computed=tuple(laid[at][1] for at in kept),
        first_paths={
            (source, destination): path
            for (source, destination), path in zip(controller.ends.tolist(), laid[0][0], strict=True)
            if path
        },
        most_candidates=controller.most_candidates,
        knows_arrivals=any(isinstance(one, Arrivals) for program in job.programs for s in program.streams for one in s),
    )


def _epochs(
    section: EngineeringSection, reconvergence_delay_ps: int, states: Sequence[LinkState]
) -> Iterator[tuple[int, LinkState]]:
    """Yield the instants of computations, and the state of links for each.

    Of several changes in one interval the last counts.
    """
    yield 0, states[0]
    if section.interval_ps is None:
        return
    due: dict[int, LinkState] = {}
    for state in states[1:]:
        turns = -(-(state.at_ps + reconvergence_delay_ps) // section.interval_ps)
        due[max(turns, 1) * section.interval_ps] = state
    yield from due.items()


class _Controller:
    """A controller with its demands and the computed paths."""

    def __init__(
        self,
        scenario: Scenario,
        section: EngineeringSection,
        fabric: Fabric,
        matrix: TrafficMatrix,
        transport: Transport,
    ) -> None:
        self._section, self._fabric, self._matrix = section, fabric, matrix
        self._seed, self._paths = scenario.engine.seed, _usual_paths(scenario)
        self._up_down = ROUTINGS[scenario.fabric.routing].paths == "up then down"
        self._known: dict[tuple[bytes, bytes], tuple[tuple[tuple[int, ...], ...], Computed]] = {}
        self.most_candidates = 0
        ports = fabric.ports
        rates_bps = fabric.links["rate_bps"][ports.link]
        bits = np.zeros((2, len(ports.node)))
        np.add.at(bits[0], matrix.source_port, matrix.size_bytes * 8)
        np.add.at(bits[1], matrix.destination_port, matrix.size_bytes * 8)
        busy_s = float(np.max(bits / rates_bps, initial=0.0))  # the pace of the busiest NIC port
        attach_node, attachment = attachments(fabric)
        starts, goals = attachment[matrix.source_port], attachment[matrix.destination_port]
        over = (starts != goals) & (fabric.node_kind[attach_node[starts]] != HOST)
        over &= fabric.node_kind[attach_node[goals]] != HOST
        self._rows = np.flatnonzero(over)
        ends = np.stack([matrix.source_port, matrix.destination_port], axis=1)[over]
        self.ends, first, pair = np.unique(ends, axis=0, return_index=True, return_inverse=True)
        self._pair = pair.ravel()
        if len(self.ends) > MOST_PAIRS:
            text = (
                f"the job has {plural(len(self.ends), 'pair')} of NIC ports, wanted at most {MOST_PAIRS:,}; take a"
                " smaller job, or leave engineering out and use load_balancing"
            )
            raise ConfigError(scenario.source, [Mistake(path=_KEY, text=text)])
        demand = np.zeros(len(self.ends))
        np.add.at(demand, self._pair, matrix.size_bytes[over] * 8)
        self._demand_bps = demand / busy_s if busy_s else demand
        self._priority = np.zeros(len(self.ends), np.int64)
        priority = np.where(matrix.priority < 0, transport.data_priority, matrix.priority)[over]
        np.maximum.at(self._priority, self._pair, priority)
        relations = np.stack([starts, goals], axis=1)[over][first].astype(np.int64)
        self._relations, relation = np.unique(relations, axis=0, return_inverse=True)
        self._relation = relation.ravel()

    def paths(self, at_ps: int, state: LinkState) -> tuple[tuple[tuple[int, ...], ...], Computed]:
        """The path of each pair over links in a state.

        The path is empty if no links join the pair.
        """
        key = state.works.tobytes(), state.rate_bps.tobytes()
        if key not in self._known:
            self._known[key] = self._compute(at_ps, state)
        chosen, computed = self._known[key]
        return chosen, Computed(
            at_ps=at_ps,
            busiest_share=computed.busiest_share,
            pairs=computed.pairs,
            planned=computed.planned,
            took_s=computed.took_s,
        )

    def _compute(self, at_ps: int, state: LinkState) -> tuple[tuple[tuple[int, ...], ...], Computed]:
        pairs = [(start, goal) for start, goal in self._relations.tolist()]
        found = candidate_paths(
            self._fabric, state.works, pairs, paths=self._paths, most=MOST_PATHS, up_down=self._up_down
        )
        candidates = [found[pair] for pair in pairs]
        self.most_candidates = max(self.most_candidates, *map(len, candidates), 0)
        is_joined = np.array([len(each) > 0 for each in candidates], np.bool_)
        joined = np.flatnonzero(is_joined[self._relation]) if pairs else np.empty(0, np.int64)
        every = [path for each in candidates for path in each]
        ports, link = np.unique([port for path in every for port in path], return_inverse=True)
        ports = ports.astype(np.int64)
        problem = PathProblem(
            demand_bps=self._demand_bps[joined],
            priority=self._priority[joined],
            relation=(np.cumsum(is_joined) - 1)[self._relation[joined]],
            path_ptr=np.append(0, np.cumsum([len(each) for each in candidates if each])).astype(np.int64),
            link_ptr=np.append(0, np.cumsum([len(path) for path in every])).astype(np.int64),
            link=link.ravel().astype(np.int64),
            capacity_bps=state.rate_bps[self._fabric.ports.link[ports]].astype(np.float64),
            seed=self._seed,
        )
        began_s = perf_counter()
        planned = self._placed(problem)
        took_s = perf_counter() - began_s
        paths: list[tuple[int, ...]] = [()] * len(self.ends)
        for pair, path in zip(joined.tolist(), planned.chosen.tolist(), strict=True):
            paths[pair] = every[path]
        busiest = float(np.max(problem.shares(planned.chosen), initial=0.0))
        computed = Computed(at_ps=at_ps, busiest_share=busiest, pairs=len(joined), planned=planned, took_s=took_s)
        return tuple(paths), computed

    def _placed(self, problem: PathProblem) -> Planned:
        """Ask the scheme for paths, and check its answer."""
        label = self._section.scheme
        if not len(problem.demand_bps):
            return Planned(chosen=np.empty(0, np.int64), bound=0.0)
        with SCHEMES.blaming(label):
            made = SCHEMES.load(label).place(self._section.options, problem)
        planned = SCHEMES.want(label, made, Planned, "place")
        chosen = np.asarray(planned.chosen)
        first, end = problem.path_ptr[problem.relation], problem.path_ptr[problem.relation + 1]
        if chosen.shape != problem.relation.shape or not ((chosen >= first) & (chosen < end)).all():
            raise SCHEMES.wrong(label, "place chose a path outside the pair's candidates")
        return planned

    def pins(self, plans: Sequence[tuple[tuple[int, ...], ...]]) -> tuple[Pin, ...]:
        """Pins of all queue pairs.

        Queue pairs with the same switches and paths share a pin.
        """
        rows_of: list[list[int]] = [[] for _ in self.ends]
        for row, pair in zip(self._rows.tolist(), self._pair.tolist(), strict=True):
            rows_of[pair].append(row)
        of_path: dict[tuple[int, tuple[tuple[int, ...], ...]], list[int]] = {}
        for pair, relation in enumerate(self._relation.tolist()):
            paths = tuple(plan[pair] for plan in plans)
            if paths[0]:
                of_path.setdefault((relation, paths), []).append(pair)
        named = self._named()
        return tuple(
            Pin(
                sources=tuple(sorted({int(self.ends[pair, 0]) for pair in pairs})),
                destinations=tuple(sorted({int(self.ends[pair, 1]) for pair in pairs})),
                ports=paths[0],
                later=paths[1:],
                queue_pairs=tuple(sorted({named[row] for pair in pairs for row in rows_of[pair]})),
            )
            for (_, paths), pairs in of_path.items()
        )

    def _named(self) -> list[tuple[int, int, int]]:
        """The queue pair of each row.

        It is both ranks with any channel if all their channels use the same NIC ports.
        """
        matrix = self._matrix
        ports_of: dict[tuple[int, int], set[tuple[int, int]]] = {}
        columns = (matrix.source, matrix.destination, matrix.channel, matrix.source_port, matrix.destination_port)
        rows = list(zip(*(column.tolist() for column in columns), strict=True))
        for source, destination, _, out, into in rows:
            ports_of.setdefault((source, destination), set()).add((out, into))
        return [
            (source, destination, EVERY_CHANNEL if len(ports_of[source, destination]) == 1 else channel)
            for source, destination, channel, *_ in rows
        ]


def _usual_paths(scenario: Scenario) -> int:
    section = scenario.fabric
    return (section.paths or 0) if ROUTINGS[section.routing].paths == "several" else 0


def note_engineering(found: Engineering | None, findings: Findings) -> None:
    """Note what a user should know of planned paths.

    Parameters
    ----------
    found : None where paths are not planned
    """
    if found is None:
        return
    findings.note(_KEY, "note", _words(found))
    limits = [one for one in found.computed if one.planned.limit]
    if limits:
        worst = max(limits, key=_gap)
        gap = f"{_gap(worst):.1%} above its lower bound" if worst.planned.bound else "with no lower bound"
        text = f"the {worst.planned.limit} ended a search for paths early; the load of the most loaded link is {gap}"
        if any(one.planned.depends_on_machine for one in limits):
            text += "; another machine may choose other paths: pin the paths in planned_paths.yaml of the run folder"
        findings.note(f"{_KEY}.scheme", "approximate", text)
    if found.most_candidates >= MOST_PATHS:
        text = f"the candidates of two switches are {MOST_PATHS} of their shortest paths; there may be more"
        findings.note("fabric.paths", "approximate", text)
    if found.knows_arrivals:
        text = "paths are planned from all messages of the run, even random ones; no real controller knows these"
        findings.note(f"{_KEY}.interval", "approximate", text)


def _gap(one: Computed) -> float:
    return one.busiest_share / one.planned.bound - 1 if one.planned.bound else np.inf


def _words(found: Engineering) -> str:
    first = found.computed[0]
    text = (
        f"'{found.scheme}' planned a path for {plural(first.pairs, 'pair')} of NIC ports; the most loaded link between"
        f" switches has a load of {first.busiest_share:.2f} at the line rate of the busiest NIC port"
    )
    if first.planned.bound is not None:
        text += f", and {first.planned.bound:.2f} is a lower bound for all choices of paths"
    if first.planned.limit:
        text += f"; the {first.planned.limit} ended the search early"
    if first.planned.overloaded:
        text += f"; {plural(first.planned.overloaded, 'pair')} found no path with room"
    if len(found.computed) > 1:
        text += f"; new paths at {plural(len(found.computed) - 1, 'later instant')}, with at most"
        text += f" {max(one.busiest_share for one in found.computed[1:]):.2f}"
    return text
