"""Run the packet engine on one engine input.

The native core reports progress and obeys control ten times a second. The core keeps nothing for the case that a
policy's step fails. A run is deterministic: it is repeated up to the call that failed, and plain Python replays this
call, which names file, line and reason.

Source: docs/models/packet-engine.md; `weftwork.engine.reference.simulation` computes the same in plain Python.
Leaves out: everything that the page leaves out; series are sampled here and have no mirror in the reference.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

import weftwork.policies
from weftwork.base.caveat import Caveat, caveats_by_subject
from weftwork.base.errors import ConfigError, EngineError, Mistake, PolicyError
from weftwork.base.flow_identity import flow_identity
from weftwork.base.units import DURATION, format_quantity
from weftwork.base.work_done import simulated
from weftwork.engine import _native
from weftwork.engine.capture import CaptureRequest, earliest
from weftwork.engine.columns import single
from weftwork.engine.outcome import Outcome, ending
from weftwork.engine.packet_input import PACKET_INPUT, ROUTE_TABLE
from weftwork.engine.rows.outcome import (
    CAPTURE_DTYPE,
    COUNTERS_DTYPE,
    EVENT_DTYPE,
    EVENT_KINDS,
    MESSAGE_DTYPE,
    MILESTONE_DTYPE,
    PATH_DTYPE,
    PORT_DTYPE,
    PROGRESS_DTYPE,
    QUEUE_PAIR_DTYPE,
    SERIES_DTYPE,
    SERIES_KINDS,
    TIMELINE_DTYPE,
)
from weftwork.engine.rows.packet_run import (
    CAPTURE_REQUEST,
    CONGESTION,
    PATH_CHOICE,
    PORT_CHOICE,
    SERIES_REQUEST,
    STATE_FIELD_ROW,
)
from weftwork.engine.rows.transport import TRANSPORT
from weftwork.engine.rows.waits import DEADLOCK_DTYPE, WAIT_DTYPE
from weftwork.engine.waits import in_order
from weftwork.policies.interface import CongestionControl, Kind, PathSelection, PortSelection

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from weftwork.engine.packet_input import PacketInput
    from weftwork.policies.layout import RecordLayout
    from weftwork.policies.load import LoadedPolicy
    from weftwork.spec.transport import Transport

    Progress = Callable[[int, int, int], object]

__all__ = ["Series", "StateField", "run"]

# The hash is the core's own, so the catalogue's own ECMP needs no call; a copy of the file under another name gets one.
_CATALOGUE_ECMP: Final = Path(weftwork.policies.__file__).parent / "port_selection" / "ecmp.py"
SERIES_ROWS: Final = 4_000_000  # chosen: 128 MB in the engine, and some 500 MB where they become a table
# Fields of records of policies for which packets or queue pairs have parts, or which the core fills only then.
_EXTENDED_FIELDS: Final = {("Signal", "hops"), ("PortSignal", "hops"), ("PortSignal", "from_edge")}
_WIDE_FIELDS: Final = {
    ("PortSignal", "word"), ("PortSignal", "via"), ("Signal", "marked_bytes"), ("Signal", "request_bytes"),
    ("State", "request_bytes"),
}  # fmt: skip
_ORIGIN_FIELDS: Final = {("PortSignal", name) for name in ("queue_pair_hash", "from_edge", "to_edge")}
_BROKEN: Final = "the run has ended, since an invariant of the packet engine does not hold:"
_WHAT_TO_SEND: Final = "Send this text, the scenario with the files that it names, and the seed of the run"
_SLICE_S: Final = 0.1  # chosen: control returns about ten times a second, as the design asks


@dataclass(frozen=True, kw_only=True, slots=True)
class _Failure:
    """The step that stopped a run, by the names of `PolicyFailure` in native/packet/policy.hpp."""

    kind: str
    of_receiver: bool
    call: int
    state: bytes
    shared: bytes
    signal: bytes
    candidates: bytes
    ports: bytes
    via_changes: int
    stands_still: bool

    @property
    def cause(self) -> tuple[str, bool, int]:
        """Kind of policy, whether it was the receiver's step, and number of the call."""
        return self.kind, self.of_receiver, self.call


@dataclass(frozen=True, kw_only=True, slots=True)
class StateField:
    """One recorded number of the state of a queue pair's policies.

    Parameters
    ----------
    name : in the tables, such as ``alpha`` or ``ring[3]``
    of_path : of the path selection's state, else of the congestion control's at the sender
    place : in the record, in numbers of eight bytes
    is_float : float64, else int64, which is recorded as the nearest float64
    """

    name: str
    of_path: bool
    place: int
    is_float: bool


@dataclass(frozen=True, kw_only=True, slots=True)
class Series:
    """Recorded time series; without a request they cost nothing.

    Parameters
    ----------
    every_ps : between two samples; 0: no samples of ports and flows
    row_limit : samples that are kept. Beyond it every second instant is dropped and the interval doubles, whenever
        there would be more; `Outcome.caveats` says so
    ports : global port ids whose queues are recorded
    flows : (source rank, destination rank, channel) whose rate and window are recorded; None: all of them
    state : what more of these flows is recorded; kinds of samples from `SERIES_KINDS` on, in this order
    timeline_bins : how many bins of time the timeline of all ports may have; 0: no timeline. Bins begin at 1 us and
        double in length whenever there would be more. A row takes 64 bytes for each port and bin with traffic.
    path_sample : every so many data packets of a queue pair are followed on their path; 0: none
    """

    every_ps: int = 0
    row_limit: int = SERIES_ROWS
    ports: tuple[int, ...] = ()
    flows: tuple[tuple[int, int, int], ...] | None = ()
    state: tuple[StateField, ...] = ()
    timeline_bins: int = 0
    path_sample: int = 0


def run(
    engine_input: PacketInput,
    *,
    series: Series | None = None,
    event_limit: int = 0,
    capture: CaptureRequest | None = None,
    on_progress: Progress | None = None,
    on_repeat: Callable[[], object] | None = None,
) -> Outcome:
    """Run an engine input to its end.

    Parameters
    ----------
    engine_input : what to run
    series : what to record over time
    event_limit : how many pauses, marks, drops, timeouts and returns to record with their instants; 0: none
    capture : frames to keep; None: none
    on_progress : called at the start and about ten times a second with simulated picoseconds, packet-hops and delivered
        bytes; a KeyboardInterrupt that it raises, or that arrives meanwhile, ends the run with what there is
    on_repeat : called where a policy's step has failed, before the run is repeated to find line and reason;
        ``on_progress`` then begins at 0 again

    Raises
    ------
    PolicyError : a policy's step failed or wrote what it may not; with file and line. If somebody interrupts the
        repeated run, the line is where the step begins and the reason is not known
    ConfigError : the engine input exceeds a limit of the engine
    EngineError : an invariant of the engine does not hold (docs/dev/invariants.md), or a step failed only once
    """
    keep: list[Any] = []  # compiled steps must outlive the run
    capture = capture or CaptureRequest(ports=(), packet_limit=0)
    raw = _raw_input(engine_input, series, keep, event_limit)
    raw["capture"] = CAPTURE_REQUEST.values(
        None, {"ports": np.array(capture.ports, np.int32), "row_limit": capture.packet_limit}
    )
    engine, interrupted = _advanced(raw, on_progress)
    failure = _failure(engine)
    if failure is None:
        found = _outcome(engine_input, engine, interrupted=interrupted, caveats=_series_caveats(series, engine))
        captured, left_out = earliest(capture, _view(engine.captured(), CAPTURE_DTYPE))
        return replace(found, captured=captured, captured_left_out=left_out + engine.captured_left_out())
    del engine  # so that two runs are never in memory at once
    policy = _policy_of(engine_input, failure.kind)
    repeated: _Failure | None = failure
    if not interrupted:
        if on_repeat is not None:
            on_repeat()
        again, interrupted = _advanced(raw | {"stop_before_call": failure.call}, on_progress)
        repeated = _failure(again)
    if not interrupted or (repeated is not None and repeated.state):
        _replay(policy, repeated, failed=failure)
    raise _unexplained(policy, of_receiver=failure.of_receiver, call=failure.call)


def _failure(engine: _native.PacketEngine) -> _Failure | None:
    failure: dict[str, Any] | None = engine.failure()
    return None if failure is None else _Failure(**failure)


def _advanced(raw: dict[str, Any], on_progress: Progress | None) -> tuple[_native.PacketEngine, bool]:
    """The core after a run, and whether the run was interrupted.

    The run goes to the end unless a step fails.
    """
    try:
        engine = _native.PacketEngine(raw)
        try:
            _tell(engine, on_progress)
            while not engine.advance(_SLICE_S):
                _tell(engine, on_progress)
        except KeyboardInterrupt:
            return engine, True
    except _native.LimitError as error:
        raise ConfigError("packet engine", [Mistake(path="engine", text=str(error))]) from error
    except _native.BrokenInvariant as error:
        raise EngineError(f"{_BROKEN} {error}. {_WHAT_TO_SEND}") from error
    return engine, False


def _tell(engine: _native.PacketEngine, on_progress: Progress | None) -> None:
    if on_progress is not None:
        reached = _progress(engine)
        on_progress(reached["simulated_ps"], reached["packet_hops"], reached["delivered_bytes"])


def _progress(engine: _native.PacketEngine) -> dict[str, int]:
    """Instant, packet-hops and payload of a run, by the names of `PROGRESS_DTYPE`."""
    return single(engine.progress().view(PROGRESS_DTYPE))


def _series_caveats(series: Series | None, engine: _native.PacketEngine) -> dict[str, Caveat]:
    """Caveats of samples that are further apart than asked for."""
    asked_ps, kept_ps = 0 if series is None else series.every_ps, engine.series_every_ps()
    if kept_ps == asked_ps or series is None:
        return {}
    every, asked = (format_quantity(DURATION, value) for value in (kept_ps, asked_ps))
    text = f"samples are {every} apart and not {asked}, which would be more than {series.row_limit:,} of them"
    return caveats_by_subject([Caveat(subject="engine.record.every", kind="approximate", text=text)])


def _policy_of(engine_input: PacketInput, kind: str) -> LoadedPolicy:
    policies: dict[str, LoadedPolicy | None] = {
        "congestion_control": engine_input.congestion_control,
        "path_selection": engine_input.path_selection,
        "port_selection": engine_input.port_selection,
    }
    policy = policies[kind]
    if policy is None:
        raise EngineError("a step failed that the engine input does not have")
    return policy


def _replay(policy: LoadedPolicy, stopped: _Failure | None, *, failed: _Failure) -> None:
    """Repeat in plain Python the step that failed.

    The repeated run has stopped before it. The error names file and line.

    Parameters
    ----------
    stopped : of the repeated run
    failed : of the first run
    """
    if stopped is None or stopped.cause != failed.cause or not stopped.state:
        raise EngineError(f"{policy.source_path}: a step failed, and not when the run was repeated")
    policy.replay(
        stopped.state,
        stopped.signal,
        candidate_bytes=stopped.candidates,
        port_bytes=stopped.ports,
        shared_bytes=stopped.shared or None,
        receiver=stopped.of_receiver,
        via_changes=stopped.via_changes,
        stands_still=failed.stands_still,
    )
    step = "receiver's step" if stopped.of_receiver else "step"
    text = f"the compiled {step} failed where plain Python does not; an integer may have left 64 bits"
    raise EngineError(f"{policy.source_path}: {text}")


def _unexplained(policy: LoadedPolicy, *, of_receiver: bool, call: int) -> PolicyError:
    """Return the error of a failed call whose repeated run was interrupted."""
    plugin = policy.plugin
    step = plugin.receive if of_receiver and isinstance(plugin, CongestionControl) else plugin.step
    if step is None:
        raise EngineError(f"{policy.source_path}: a step failed that the policy does not have")
    text = f"'{step.__name__}' failed at call {call:,} of a step; the run that repeats it to say why was interrupted"
    return PolicyError(str(policy.source_path), step.__code__.co_firstlineno, text)


def _outcome(
    engine_input: PacketInput, engine: _native.PacketEngine, *, interrupted: bool, caveats: dict[str, Caveat]
) -> Outcome:
    messages = _view(engine.messages(), MESSAGE_DTYPE)
    order = np.lexsort((messages["ordinal"], messages["channel"], messages["destination"], messages["source"]))
    milestones = _view(engine.milestones(), MILESTONE_DTYPE)
    series = _view(engine.series(), SERIES_DTYPE)
    pairs = engine.queue_pairs().view(QUEUE_PAIR_DTYPE)
    used = np.unique(flow_identity(*(messages[name] for name in ("source", "destination", "channel"))))
    place = np.searchsorted(
        used, flow_identity(*(pairs[name] for name in QUEUE_PAIR_DTYPE.names or ()))
    )  # among all that carry messages, inside servers too
    flows = series["kind"] != SERIES_KINDS.index("queue_bytes")
    series["index"][flows] = place[series["index"][flows]]
    events = _view(engine.events(), EVENT_DTYPE)
    of_pairs = np.isin(events["kind"], (EVENT_KINDS.index("timeout"), EVENT_KINDS.index("go back")))
    events["place"][of_pairs] = place[events["place"][of_pairs]]
    paths = _view(engine.paths(), PATH_DTYPE)
    paths["queue_pair"] = place[paths["queue_pair"]]
    counters = single(engine.counters().view(COUNTERS_DTYPE))
    simulated("packet", counters["packet_hops"])
    deadlock = _view(engine.deadlock(), DEADLOCK_DTYPE)
    complete, simulated_ps = ending(
        is_done=engine.finished(),
        interrupted_at_ps=_progress(engine)["simulated_ps"] if interrupted else None,
        end_ps=counters["end_ps"],
        until_ps=engine_input.until_ps,
        has_clock_ended=engine.clock_ended() and not len(deadlock),
    )
    return Outcome(
        messages=messages[order],
        ports=_view(engine.ports(), PORT_DTYPE),
        counters=counters,
        milestones=milestones[np.lexsort((milestones["at_ps"], milestones["rank"]))],
        series=series,
        complete=complete,
        simulated_ps=simulated_ps,
        events=events[np.argsort(events["at_ps"], kind="stable")],
        events_left_out=engine.events_left_out(),
        timeline=_view(engine.timeline(), TIMELINE_DTYPE),
        timeline_bin_ps=engine.timeline_bin_ps(),
        paths=paths[np.lexsort((paths["port"], paths["queue_pair"]))],
        caveats=caveats,
        waits=in_order(_view(engine.waits(), WAIT_DTYPE)),
        deadlock=deadlock,
    )


def _view(raw: NDArray[np.uint8], dtype: np.dtype[np.void]) -> NDArray[np.void]:
    return raw.view(dtype)


def _raw_input(
    engine_input: PacketInput, series: Series | None, keep: list[Any], event_limit: int = 0
) -> dict[str, object]:
    raw = PACKET_INPUT.values(engine_input, _packet_parts(engine_input) | {"stop_before_call": 0})
    raw["routes"] = [ROUTE_TABLE.values(table) for table in engine_input.routes]
    raw["transport"] = _raw_transport(engine_input.transport)
    raw["congestion_control"] = _raw_congestion(engine_input.congestion_control, keep)
    raw["path_selection"] = _raw_path(engine_input.path_selection, keep)
    raw["port_selection"] = _raw_port(engine_input.port_selection, keep)
    raw["series"] = _raw_series(series or Series(), event_limit)
    return raw


def _raw_series(series: Series, event_limit: int) -> dict[str, object]:
    flows = np.array(series.flows or (), np.int64).reshape(-1, 3)
    state = np.zeros(len(series.state), STATE_FIELD_ROW.dtype)
    for row, recorded in zip(state, series.state, strict=True):
        for name in STATE_FIELD_ROW.names:
            row[name] = getattr(recorded, name)
    others = {
        "all_flows": series.flows is None,
        "event_limit": event_limit,
        "ports": np.array(series.ports, np.int32),
        "flows": flow_identity(*flows.T).astype(np.uint64),
        "state": state,
    }
    return SERIES_REQUEST.values(series, others)


def _packet_parts(engine_input: PacketInput) -> dict[str, object]:
    """Return the parts of packets and queue pairs that are used.

    The core keeps no other parts.
    """
    chosen = (engine_input.congestion_control, engine_input.path_selection, engine_input.port_selection)
    policies = [policy for policy in chosen if policy is not None]
    fields = {field for policy in policies for field in policy.fields}
    cuts = any(Kind.TRIM in policy.kinds | getattr(policy.plugin, "signals", frozenset()) for policy in policies)
    return {
        "extended": cuts or not fields.isdisjoint(_EXTENDED_FIELDS),
        "wide": engine_input.has_path_load or not fields.isdisjoint(_WIDE_FIELDS),
        "keeps_segments": ("State", "segment_bytes") in fields,
    }


def _raw_transport(transport: Transport) -> dict[str, object]:
    others = {
        "go_back_n": transport.recovery == "go-back-n",
        "selective_repeat": transport.recovery == "selective-repeat",
        "in_any_order": transport.ordering != "connection",
        "matches_any": transport.ordering == "none",
        "resends_at_once": transport.resend == "at-once",
        "replies_follow": transport.reply_entropy == "echoed",
    }
    return TRANSPORT.values(transport, others)


def _bits(kinds: frozenset[Kind]) -> int:
    return sum(1 << int(kind) for kind in kinds)


def _first(layout: RecordLayout | None) -> NDArray[np.uint8]:
    """The bytes of a record with its initial values, whose size its class decides; empty: there is no such record."""
    return np.frombuffer(b"" if layout is None else layout.initial_bytes, np.uint8)


def _records(policy: LoadedPolicy) -> dict[str, object]:
    """Parameters and first state of a policy."""
    return {"params": np.frombuffer(policy.params_bytes, np.uint8), "state": _first(policy.state)}


def _raw_congestion(policy: LoadedPolicy, keep: list[Any]) -> dict[str, object]:
    plugin = policy.plugin
    if not isinstance(plugin, CongestionControl):
        raise EngineError(f"{policy.name} is no congestion control")
    compiled = policy.compile()
    keep.append(compiled)
    settings = {
        "step_address": compiled.step_address,
        "receive_address": compiled.receive_address or 0,
        "signals": _bits(plugin.signals | {Kind.START, Kind.TIMER}),
        "receive_all": plugin.receiver_signals == "data",
        "receiver_state": _first(policy.receiver),
        "shared_state": _first(policy.shared),
    }
    return CONGESTION.values(plugin, settings | _records(policy))


def _raw_path(policy: LoadedPolicy | None, keep: list[Any]) -> dict[str, object]:
    if policy is None:
        none = {"step_address": 0, "signals": 0, "per_message": False, "params": _first(None), "state": _first(None)}
        return PATH_CHOICE.values(None, none)
    plugin = policy.plugin
    if not isinstance(plugin, PathSelection):
        raise EngineError(f"{policy.name} is no path selection")
    compiled = policy.compile()
    keep.append(compiled)
    settings = {
        "step_address": compiled.step_address,
        "signals": _bits(plugin.signals),
        "per_message": plugin.per == "message",
    }
    return PATH_CHOICE.values(None, settings | _records(policy))


def _raw_port(policy: LoadedPolicy, keep: list[Any]) -> dict[str, object]:
    plugin = policy.plugin
    if not isinstance(plugin, PortSelection):
        raise EngineError(f"{policy.name} is no port selection")
    compiled = policy.compile()
    keep.append(compiled)
    settings = {
        "step_address": compiled.step_address,
        "queue": "queue" in plugin.needs,
        "paused": "queue" in plugin.needs and ("Candidate", "paused") in policy.fields,
        "origin": not policy.fields.isdisjoint(_ORIGIN_FIELDS),
        "plain_ecmp": policy.source_path == _CATALOGUE_ECMP,
        "hops_left": "hops-left" in plugin.needs,
        "non_minimal": "non-minimal" in plugin.needs,
        "channel": "channel" in plugin.needs,
        "detour": "detour" in plugin.needs,
        "via": ("PortSignal", "via") in policy.fields,
        "port_state": _first(policy.port_state),
    }
    return PORT_CHOICE.values(plugin, settings | _records(policy))
