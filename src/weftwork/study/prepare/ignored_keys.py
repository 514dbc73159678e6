"""Notes on keys that a user has set without effect in this run.

Only keys that stand in the user's file or in ``--set`` are told; defaults are nobody's wish. In which runs a key has an
effect stands in its row (`weftwork.spec.scenario.effects`); what depends on other keys of a job stands here.
Source: docs/models/flow-engine.md, what the flow engine leaves out; the tests compare the results of two values.
Leaves out: keys that mean nothing beside another key or another choice, which reading refuses
(`weftwork.spec.scenario.reader`); queue pairs, of which messages decide.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from weftwork.spec.fidelities import FIDELITIES
from weftwork.spec.scenario.rows import rows_of
from weftwork.spec.scenario.scenario import section_rows
from weftwork.workload.placement import FRAGMENTS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from weftwork.base.findings import Findings
    from weftwork.spec.fabric import Fabric
    from weftwork.spec.scenario.effects import Need
    from weftwork.spec.scenario.rows import KeyRow
    from weftwork.spec.scenario.scenario import Scenario
    from weftwork.spec.scenario.training import TrainingSection
    from weftwork.spec.transport import Transport

__all__ = ["loses", "note_ignored_fields", "note_ignored_keys"]

# what a run lacks -> why a key whose row needs it changes nothing; a later one goes before an earlier one
_WITHOUT: Final[Mapping[Need, str]] = {
    "entropies": "all packets of a queue pair have its own entropy; take a path_selection that sprays",
    "host interface": "the host takes every packet at once; set fabric.nic.pcie_rate",
    "pauses": "there are no pauses; take flow_control: pfc",
    "shared buffers": "links use credits, not pauses; take flow_control: pfc",
    "faults": "the scenario has no faults",
    "offloaded layers": "no job has offloaded_layers, whose activations go to the host",
}
_OPTIONS: Final = ("fabric", "transport", "traffic", "collective")  # sections whose choice has keys
_DEGREES: Final = ("tensor", "context", "pipeline", "expert", "data")


def note_ignored_keys(scenario: Scenario, fabric: Fabric, findings: Findings, *, moves: bool, reorders: bool) -> None:
    """Note each key that the user has set without effect.

    Parameters
    ----------
    scenario : that was read; of one that was made in Python nobody knows what was set
    fabric : on which it runs
    findings : take a note for each of them, by the key
    moves : whether a queue pair's packets leave its NIC with more than one entropy
    reorders : whether packets of a connection take several paths, which is refused unless the receiver is told to cope
    """
    told: dict[str, str] = {}
    rows = [row for row in _rows(scenario) if scenario.is_set(row.path)]
    if not FIDELITIES[scenario.engine.fidelity].has_packets:
        lossy = loses(scenario, fabric)
        for row in rows:
            if instead := row.effect.instead(loses=lossy, reorders=reorders):
                told[row.path] = f"changes nothing: flows {instead}; take engine.fidelity: packet"
    for need, why in _lacking(scenario, fabric, moves=moves).items():
        told |= {row.path: f"changes nothing: {why}" for row in rows if need in row.effect.needs}
    told |= dict(_of_training(scenario)) | dict(_without_fragments(scenario))
    for key, text in told.items():
        if scenario.is_set(key):
            findings.note(key, "ignored", text)


def loses(scenario: Scenario, fabric: Fabric) -> bool:
    """Whether a link loses or corrupts packets at some time.

    Parameters
    ----------
    scenario : its faults
    fabric : its links
    """
    of_links = ((fabric.links["loss"] > 0) | (fabric.links["corruption"] > 0)).any()
    return bool(of_links) or any(change.loss for fault in scenario.faults for change in fault.changes)


def note_ignored_fields(scenario: Scenario, transport: Transport, findings: Findings) -> None:
    """Note the fields of a transport's file that flows leave out.

    No key of a scenario sets these fields.

    Parameters
    ----------
    scenario : its engine
    transport : resolved
    findings : take the note
    """
    if FIDELITIES[scenario.engine.fidelity].has_packets:
        return
    fields = (
        (transport.ordering != "connection", "the order of delivery"),
        (transport.inflight_cap_bytes > 0, f"the cap of {transport.inflight_cap_bytes:,} B in flight"),
        (transport.connection_state_bytes > 0, "the state of a connection at its NIC"),
    )
    left_out = [words for is_there, words in fields if is_there]
    if not left_out:
        return
    text = f"flows leave out {' and '.join(left_out)} of '{transport.name}'; take engine.fidelity: packet"
    findings.note("transport.protocol", "approximate", text)


def _rows(scenario: Scenario) -> Iterator[KeyRow]:
    """The rows of a scenario's sections, and those of its choices."""
    yield from section_rows()
    for name in _OPTIONS:
        section = getattr(scenario, name)
        if section is not None:
            yield from (replace(row, path=f"{name}.{row.key}") for row in rows_of(type(section.options)).values())


def _lacking(scenario: Scenario, fabric: Fabric, *, moves: bool) -> dict[Need, str]:
    """What a run lacks that the row of a key may need, each with the reason for which such a key changes nothing."""
    flow_control, by_packets = scenario.transport.flow_control, FIDELITIES[scenario.engine.fidelity].has_packets
    lacks: Mapping[Need, bool] = {
        "entropies": by_packets and not moves,
        "host interface": by_packets and not any(nic.has_host_interface for nic in fabric.nics),
        "pauses": by_packets and flow_control != "pfc",
        "shared buffers": by_packets and flow_control == "credits",
        "faults": not scenario.faults,
        "offloaded layers": not any(job.offloaded_layers for job in scenario.trainings),
    }
    reasons = dict(_WITHOUT)
    if lacks["shared buffers"]:
        reasons["pauses"] = reasons["shared buffers"]
    return {need: reasons[need] for need in _WITHOUT if lacks[need]}


def _without_fragments(scenario: Scenario) -> Iterator[tuple[str, str]]:
    for path, section in scenario.placed_sections:
        if section.fragment is not None and section.placement != FRAGMENTS:
            yield f"{path}.fragment", f"changes nothing: only {path}.placement {FRAGMENTS} has fragments"


def _of_training(scenario: Scenario) -> Iterator[tuple[str, str]]:
    for index, job in enumerate(scenario.trainings):
        path = scenario.job_path(index)
        if job.prefetch and job.overlap.data == 0:
            text = f"changes no time, only memory: gathers hide nothing unless {path}.overlap.data is above 0"
            yield f"{path}.prefetch", text
        if job.context == 1:
            text = f"changes nothing: {path}.context is 1, so nothing is exchanged"
            yield f"{path}.context_exchange", text
        elif job.context_exchange == "all-to-all":
            text = f"changes nothing: attention waits for all heads of {path}.context_exchange all-to-all"
            yield f"{path}.overlap.context", text
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
