"""Notes on keys that a user has set without effect in this run.

Only keys that stand in the user's file or in ``--set`` are told; defaults are nobody's wish.
Source: docs/models/flow-engine.md, what the flow engine leaves out; the tests compare the results of two values.
Leaves out: keys that mean nothing beside another key or another choice, which reading refuses
(`weftwork.spec.scenario.reader`); queue pairs, of which messages decide.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from weftwork.base.caveat import Caveat, caveats_by_subject

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from weftwork.spec.fabric import Fabric
    from weftwork.spec.scenario.scenario import Scenario
    from weftwork.spec.scenario.training import TrainingSection
    from weftwork.spec.transport import Transport

__all__ = ["FLOWS_LEAVE_OUT", "ignored_fields", "ignored_keys"]

_NO_QUEUES: Final = "share links and fill no queues"
_NO_LOSS: Final = "lose nothing and send nothing again"
_NO_ACKS: Final = "send no acknowledgements"
_NO_ORDER: Final = "have no packets that could overtake each other"
_NO_PRIORITIES: Final = "share links alike, whatever their priority"

# key -> what flows do instead
FLOWS_LEAVE_OUT: Final[Mapping[str, str]] = {
    "fabric.switch.buffer": _NO_QUEUES,
    "fabric.switch.reserve": _NO_QUEUES,
    "fabric.switch.headroom": _NO_QUEUES,
    "fabric.switch.alpha": _NO_QUEUES,
    "fabric.switch.xon_offset": _NO_QUEUES,
    "fabric.switch.egress_alpha": _NO_QUEUES,
    "fabric.switch.pause_quanta": _NO_QUEUES,
    "fabric.switch.ecn.kmin": _NO_QUEUES,
    "fabric.switch.ecn.kmax": _NO_QUEUES,
    "fabric.switch.ecn.pmax": _NO_QUEUES,
    "fabric.switch.ecn.at": _NO_QUEUES,
    "fabric.switch.scheduling.weights": _NO_PRIORITIES,
    "fabric.detour_bias": _NO_QUEUES,
    "fabric.cycles": _NO_QUEUES,
    "fabric.switch.telemetry": "have no congestion control that would read it",
    "fabric.nic.receive_buffer": _NO_QUEUES,
    "fabric.nic.xoff": _NO_QUEUES,
    "fabric.nic.xon": _NO_QUEUES,
    "fabric.nic.pause_quanta": _NO_QUEUES,
    "transport.congestion_control": "get their fair share of every link immediately",
    "transport.flow_control": _NO_QUEUES,
    "transport.credit_quantum": _NO_QUEUES,
    "transport.trimming": _NO_QUEUES,
    "transport.trim_priority": _NO_QUEUES,
    "transport.recovery": _NO_LOSS,
    "transport.ack_every": _NO_ACKS,
    "transport.reply_entropy": _NO_ACKS,
    "transport.timeout": _NO_LOSS,
    "transport.retry_limit": _NO_LOSS,
    "transport.reorder_tolerant": _NO_ORDER,
    "transport.reorder_window": _NO_ORDER,
    "transport.reorder_threshold": _NO_ORDER,
    "transport.resend": _NO_LOSS,
    "transport.end_to_end_credits": _NO_ACKS,
    "transport.data_priority": _NO_PRIORITIES,
    "transport.control_priority": _NO_PRIORITIES,
    "traffic.priority": _NO_PRIORITIES,
}

_LETS_REORDER: Final = ("transport.reorder_tolerant", "transport.recovery")
_FAST_HOST: Final = ("fabric.nic.receive_buffer", "fabric.nic.xoff", "fabric.nic.xon", "fabric.nic.pause_quanta")
_PAUSES: Final = (
    "fabric.switch.headroom",
    "fabric.switch.alpha",
    "fabric.switch.xon_offset",
    "fabric.switch.pause_quanta",
    "fabric.nic.xoff",
    "fabric.nic.xon",
    "fabric.nic.pause_quanta",
)
_SHARES: Final = ("fabric.switch.reserve", "fabric.switch.egress_alpha")  # of a buffer that ports share
_DEGREES: Final = ("tensor", "context", "pipeline", "expert", "data")


def ignored_keys(scenario: Scenario, fabric: Fabric, *, moves: bool, reorders: bool) -> dict[str, Caveat]:
    """Find the keys that the user has set without effect.

    Parameters
    ----------
    scenario : that was read; of one that was made in Python nobody knows what was set
    fabric : on which it runs
    moves : whether a queue pair's packets leave its NIC with more than one entropy
    reorders : whether packets of a connection take several paths, which is refused unless the receiver is told to cope

    Returns
    -------
    a note for each of them, by the key
    """
    told: dict[str, str] = {}
    if scenario.engine.fidelity == "flow":
        told |= {key: f"changes nothing: flows {why}; take fidelity: packet" for key, why in FLOWS_LEAVE_OUT.items()}
        if reorders:
            told = {key: text for key, text in told.items() if key not in _LETS_REORDER}
    else:
        told |= dict(_beside_packets(fabric, moves=moves)) | dict(_without_pauses(scenario.transport.flow_control))
    told |= dict(_without_faults(scenario)) | dict(_of_training(scenario))
    notes = [Caveat(subject=key, kind="note", text=text) for key, text in told.items() if scenario.is_set(key)]
    return caveats_by_subject(notes)


def ignored_fields(scenario: Scenario, transport: Transport) -> dict[str, Caveat]:
    """Fields of a transport's file that flows leave out.

    No key of a scenario sets these fields.

    Parameters
    ----------
    scenario : its engine
    transport : resolved

    Returns
    -------
    a note about the transport, or none
    """
    if scenario.engine.fidelity != "flow":
        return {}
    fields = (
        (transport.ordering != "connection", "the order of delivery"),
        (transport.inflight_cap_bytes > 0, f"the cap of {transport.inflight_cap_bytes:,} B in flight"),
        (transport.connection_state_bytes > 0, "the state of a connection at its NIC"),
    )
    left_out = [words for is_there, words in fields if is_there]
    if not left_out:
        return {}
    text = f"flows leave out {' and '.join(left_out)} of '{transport.name}'; take fidelity: packet"
    return caveats_by_subject([Caveat(subject="transport.protocol", kind="approximate", text=text)])


def _beside_packets(fabric: Fabric, *, moves: bool) -> Iterator[tuple[str, str]]:
    if not moves:
        text = "changes nothing: all packets of a queue pair have its own entropy; take a path_selection that sprays"
        yield "transport.reply_entropy", text
    if not any(nic.has_host_interface for nic in fabric.nics):
        text = "changes nothing: the host takes every packet at once; set fabric.nic.pcie_rate"
        yield from ((key, text) for key in _FAST_HOST)


def _without_pauses(flow_control: str) -> Iterator[tuple[str, str]]:
    if flow_control == "pfc":
        return
    gives = flow_control == "credits"
    nobody = "links use credits, not pauses" if gives else "there are no pauses"
    for key in (*_PAUSES, *(_SHARES if gives else ())):
        yield key, f"changes nothing: {nobody}; take flow_control: pfc"


def _without_faults(scenario: Scenario) -> Iterator[tuple[str, str]]:
    if not scenario.faults:
        for key in ("fabric.reconvergence_delay", "fabric.failover_delay"):
            yield key, "changes nothing: the scenario has no faults"


def _of_training(scenario: Scenario) -> Iterator[tuple[str, str]]:
    for index, job in enumerate(scenario.trainings):
        path = "training" if scenario.training is not None else f"jobs.{index}"
        if job.prefetch and job.overlap.data == 0:
            text = f"changes no time, only memory: gathers hide nothing unless {path}.overlap.data is above 0"
            yield f"{path}.prefetch", text
        for degree in _DEGREES:
            if getattr(job, degree) == 1:
                text = f"changes nothing: {path}.{degree} is 1, so there is nothing to hide"
                yield f"{path}.overlap.{degree}", text
        yield from _of_recipes(job, path)


def _of_recipes(job: TrainingSection, path: str) -> Iterator[tuple[str, str]]:
    """Keys of recipes without effect in this job."""
    if job.precision == "bf16":
        for key in ("bf16_first_layers", "bf16_last_layers"):
            yield f"{path}.{key}", f"changes nothing: {path}.precision is bf16 for all layers anyway"
    for name, precision in job.precision_by_module.modules:
        if precision == job.precision:
            text = f"changes nothing: {path}.precision is {precision} too"
            yield f"{path}.precision_by_module.{name}", text
    if job.expert == 1:
        for key in ("exchange_efficiency", "exchange_multiprocessors", "deduplicated_experts"):
            text = f"changes nothing: {path}.expert is 1, so no tokens are exchanged"
            yield f"{path}.software.{key}", text
    elif job.overlap.expert == 0:
        text = f"changes nothing: no exchange overlaps with computing unless {path}.overlap.expert is above 0"
        yield f"{path}.software.exchange_multiprocessors", text
    if job.pipeline == 1 and job.layout is not None:
        yield f"{path}.layout", f"changes nothing: {path}.pipeline is 1, and one stage holds all layers"
