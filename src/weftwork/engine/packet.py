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
from weftwork.engine.columns import column
from weftwork.engine.outcome import (
    CAPTURE_DTYPE,
    COUNTERS,
    EVENT_DTYPE,
    EVENT_KINDS,
    MESSAGE_DTYPE,
    MILESTONE_DTYPE,
    PATH_DTYPE,
    PORT_DTYPE,
    QUEUE_PAIR_DTYPE,
    SERIES_DTYPE,
    SERIES_KINDS,
    TIMELINE_DTYPE,
    Outcome,
    ending,
)
from weftwork.engine.waits import DEADLOCK_DTYPE, WAIT_DTYPE, in_order
from weftwork.policies.interface import CongestionControl, Kind, PathSelection, PortSelection

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from weftwork.engine.packet_input import PacketInput
    from weftwork.policies.load import LoadedPolicy
    from weftwork.spec.transport import Transport

    Progress = Callable[[int, int, int], object]
    # As `_native.PacketEngine.failure` tells it.
    _Failure = tuple[str, bool, int, bytes, bytes, bytes, bytes, bytes, bool]

__all__ = ["Series", "StateField", "run"]

# The hash is the core's own, so the catalogue's own ECMP needs no call; a copy of the file under another name gets one.
_CATALOGUE_ECMP: Final = Path(weftwork.policies.__file__).parent / "port_selection" / "ecmp.py"
SERIES_ROWS: Final = 4_000_000  # chosen: 128 MB in the engine, and some 500 MB where they become a table
_EXTENDED_FIELDS: Final = (".hops", ".from_edge", "Kind.TRIM")
_WIDE_FIELDS: Final = (".word", ".via", "marked_bytes", "request_bytes")
_ORIGIN_FIELDS: Final = (".queue_pair_hash", ".from_edge", ".to_edge")
_SLICE_S: Final = 0.1  # chosen: control returns about ten times a second, as the design asks


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
    EngineError : an invariant of the engine does not hold
    """
    keep: list[Any] = []  # compiled steps must outlive the run
    capture = capture or CaptureRequest(ports=(), packet_limit=0)
    raw = _raw_input(engine_input, series, keep, event_limit)
    raw["capture"] = {"ports": list(capture.ports), "row_limit": capture.packet_limit}
    engine, interrupted = _advanced(raw, on_progress)
    failure = engine.failure()
    if failure is None:
        found = _outcome(engine_input, engine, interrupted=interrupted, caveats=_series_caveats(series, engine))
        captured, left_out = earliest(capture, _view(engine.captured(), CAPTURE_DTYPE))
        return replace(found, captured=captured, captured_left_out=left_out + engine.captured_left_out())
    stands_still = engine.stands_still()
    del engine  # so that two runs are never in memory at once
    kind, of_receiver, call, *_ = failure
    policy = _policy_of(engine_input, kind)
    if not interrupted:
        if on_repeat is not None:
            on_repeat()
        again, interrupted = _advanced(raw | {"stop_before_call": call}, on_progress)
        failure = again.failure()
    if not interrupted or (failure is not None and failure[3]):
        _replay(policy, failure, failed=(kind, of_receiver, call), stands_still=stands_still)
    raise _unexplained(policy, of_receiver=of_receiver, call=call)


def _advanced(raw: dict[str, Any], on_progress: Progress | None) -> tuple[_native.PacketEngine, bool]:
    """The core after a run, and whether the run was interrupted.

    The run goes to the end unless a step fails.
    """
    try:
        engine = _native.PacketEngine(raw)
        try:
            if on_progress is not None:
                on_progress(*engine.progress())
            while not engine.advance(_SLICE_S):
                if on_progress is not None:
                    on_progress(*engine.progress())
        except KeyboardInterrupt:
            return engine, True
    except _native.LimitError as error:
        raise ConfigError("packet engine", [Mistake(path="engine", text=str(error))]) from error
    return engine, False


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


def _replay(
    policy: LoadedPolicy, stopped: _Failure | None, *, failed: tuple[str, bool, int], stands_still: bool
) -> None:
    """Repeat in plain Python the step that failed.

    The repeated run has stopped before it. The error names file and line.

    Parameters
    ----------
    stopped : what the repeated run tells
    failed : kind of policy, whether it was the receiver's step, and number of the call that failed in the first run
    stands_still : whether it failed by setting a timer to its own instant once too often
    """
    if stopped is None or stopped[:3] != failed or not stopped[3]:
        raise EngineError(f"{policy.source_path}: a step failed, and not when the run was repeated")
    _, of_receiver, _, state, shared, signal, candidates, ports, via_changes = stopped
    policy.replay(
        state,
        signal,
        candidate_bytes=candidates,
        port_bytes=ports,
        shared_bytes=shared or None,
        receiver=of_receiver,
        via_changes=via_changes,
        stands_still=stands_still,
    )
    step = "receiver's step" if of_receiver else "step"
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
    counters = dict(zip(COUNTERS, (int(value) for value in engine.counters().view(np.int64)), strict=True))
    simulated("packet", counters["packet_hops"])
    deadlock = _view(engine.deadlock(), DEADLOCK_DTYPE)
    complete, simulated_ps = ending(
        is_done=engine.finished(),
        interrupted_at_ps=engine.progress()[0] if interrupted else None,
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
) -> dict[str, Any]:
    arrays = (
        "node_kind", "node_device", "port_base", "port_node", "port_peer", "port_rate_bps", "port_delay_ps",
        "port_loss", "port_corruption", "port_headroom_bytes", "port_kmin_bytes", "port_kmax_bytes",
        "port_credit_bytes",
        "shared_bytes", "node_tier", "node_group", "attachment", "switches", "nics",
        "destination_number", "port_stride", "attach_node", "port_kind", "detour_order", "detour_base",
        "detour_group",
        "class_priority", "class_lossless", "instants", "ops", "streams", "tables", "digits", "rank_program",
        "rank_ports", "rank_gpu", "pins",
    )  # fmt: skip
    tables = (
        "group_of", "group_ptr", "group_ports", "group_weights", "second_of", "distance", "layer_group", "layer_of",
    )  # fmt: skip
    raw: dict[str, Any] = {name: column(getattr(engine_input, name)) for name in arrays}
    raw["channel_rule"] = column(engine_input.channel_rule.ravel())
    raw["link_kinds"] = engine_input.channel_rule.shape[3]
    raw["routes"] = [
        {name: column(getattr(table, name)) for name in tables}
        | {"pinned_ways": table.pinned_ways, "ways": table.layer_of.shape[2]}
        for table in engine_input.routes
    ]
    numbers = (
        "seed", "until_ps", "control_class", "trim_class", "virtual_channels", "tokens", "has_receives",
        "has_telemetry", "has_path_load", "echoes_time", "echoes_entropy", "detour_by_group",
        "fabric_base_rtt_ps", "watch_ps",
    )  # fmt: skip
    for name in numbers:
        raw[name] = getattr(engine_input, name)
    raw |= _packet_parts(engine_input)
    raw["stop_before_call"] = 0
    raw["transport"] = _raw_transport(engine_input.transport)
    raw["congestion_control"] = _raw_congestion(engine_input.congestion_control, keep)
    raw["path_selection"] = _raw_path(engine_input.path_selection, keep)
    raw["port_selection"] = _raw_port(engine_input.port_selection, keep)
    chosen = series or Series()
    raw["series"] = {
        "every_ps": chosen.every_ps,
        "all_flows": chosen.flows is None,
        "row_limit": chosen.row_limit,
        "event_limit": event_limit,
        "timeline_bins": chosen.timeline_bins,
        "path_sample": chosen.path_sample,
        "ports": list(chosen.ports),
        "state": [{"of_path": f.of_path, "place": f.place, "is_float": f.is_float} for f in chosen.state],
        "flows": flow_identity(*np.array(chosen.flows or (), np.int64).reshape(-1, 3).T).tolist(),
    }
    return raw


def _packet_parts(engine_input: PacketInput) -> dict[str, bool]:
    """Return the parts of packets and queue pairs that are used.

    The core keeps no other parts.
    """
    policies = (engine_input.congestion_control, engine_input.path_selection, engine_input.port_selection)
    texts = "".join(policy.source_text for policy in policies if policy is not None)
    return {
        "extended": any(name in texts for name in _EXTENDED_FIELDS),
        "wide": engine_input.has_path_load or any(name in texts for name in _WIDE_FIELDS),
        "keeps_segments": "segment_bytes" in texts,
    }


def _raw_transport(transport: Transport) -> dict[str, int]:
    fields = (
        "mtu_bytes", "data_overhead_bytes", "first_extra_bytes", "telemetry_bytes", "ack_bytes", "cnp_bytes",
        "credit_bytes", "pause_frame_bytes", "interframe_bytes", "reorder_tolerant", "reorder_window_packets",
        "ack_every", "retransmission_timeout_ps", "retry_limit", "end_to_end_credits", "reorder_threshold_packets",
        "telemetry_hop_bytes", "echo_bytes", "trim_bytes", "timeout_low_ps", "timeout_low_packets",
        "link_credits", "credit_quantum_bytes", "inflight_cap_bytes", "connection_state_bytes", "host_packet_ps",
        "host_byte_ps",
    )  # fmt: skip
    return {name: int(getattr(transport, name)) for name in fields} | {
        "go_back_n": int(transport.recovery == "go-back-n"),
        "selective_repeat": int(transport.recovery == "selective-repeat"),
        "in_any_order": int(transport.ordering != "connection"),
        "matches_any": int(transport.ordering == "none"),
        "resends_at_once": int(transport.resend == "at-once"),
        "replies_follow": int(transport.reply_entropy == "echoed"),
    }


def _bits(kinds: frozenset[Kind]) -> int:
    return sum(1 << int(kind) for kind in kinds)


def _raw_step(policy: LoadedPolicy, keep: list[Any]) -> dict[str, Any]:
    """Return the compiled steps and records of any kind of policy."""
    compiled = policy.compile()
    keep.append(compiled)
    return {
        "step": compiled.step_address,
        "receive": compiled.receive_address or 0,
        "params": policy.params_bytes,
        "state": policy.initial_state_bytes,
    }


def _raw_congestion(policy: LoadedPolicy, keep: list[Any]) -> dict[str, Any]:
    plugin = policy.plugin
    if not isinstance(plugin, CongestionControl):
        raise EngineError(f"{policy.name} is no congestion control")
    return _raw_step(policy, keep) | {
        "receiver_state": policy.receiver.initial_bytes if policy.receiver is not None else b"",
        "shared_state": policy.shared.initial_bytes if policy.shared is not None else b"",
        "signals": _bits(plugin.signals | {Kind.START, Kind.TIMER}),
        "receive_all": plugin.receiver_signals == "data",
        "moves_departures": plugin.moves_departures,
    }


def _raw_path(policy: LoadedPolicy | None, keep: list[Any]) -> dict[str, Any]:
    if policy is None:
        return {"step": 0, "params": b"", "state": b"", "signals": 0, "per_message": False}
    plugin = policy.plugin
    if not isinstance(plugin, PathSelection):
        raise EngineError(f"{policy.name} is no path selection")
    return _raw_step(policy, keep) | {
        "signals": _bits(plugin.signals),
        "per_message": plugin.per == "message",
    }


def _raw_port(policy: LoadedPolicy, keep: list[Any]) -> dict[str, Any]:
    plugin = policy.plugin
    if not isinstance(plugin, PortSelection):
        raise EngineError(f"{policy.name} is no port selection")
    return _raw_step(policy, keep) | {
        "port_state": policy.port_state.initial_bytes if policy.port_state is not None else b"",
        "queue": "queue" in plugin.needs,
        "paused": "queue" in plugin.needs and ".paused" in policy.source_text,
        "origin": any(name in policy.source_text for name in _ORIGIN_FIELDS),
        "hops_left": "hops-left" in plugin.needs,
        "non_minimal": "non-minimal" in plugin.needs,
        "channel": "channel" in plugin.needs,
        "detour": "detour" in plugin.needs,
        "via": ".via" in policy.source_text,
        "always": plugin.always,
        "at_delivery": plugin.at_delivery,
        "waits_for_routes": plugin.waits_for_routes,
        "layer_by_word": plugin.layer_by_word,
        "plain_ecmp": policy.source_path == _CATALOGUE_ECMP,
    }
