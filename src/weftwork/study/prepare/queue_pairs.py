"""Queue pairs of a scenario's job.

It also has the cases in which more queue pairs have no effect.

Patterns of traffic take queue pairs in turn by themselves.
Leaves out: how messages are split or take turns (`weftwork.workload.queue_pairs`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from weftwork.base.grammar import plural
from weftwork.engine.programs import walk
from weftwork.spec.fidelities import FIDELITIES
from weftwork.spec.job import Arrivals, Collect, Send
from weftwork.workload.queue_pairs import split_over_queue_pairs, take_queue_pairs_in_turn

if TYPE_CHECKING:
    from collections.abc import Sequence

    from weftwork.base.findings import Findings
    from weftwork.policies.load import LoadedPolicy
    from weftwork.spec.job import Job, Operation
    from weftwork.spec.scenario.scenario import Scenario

__all__ = ["queue_pairs_of_patterns", "with_queue_pairs"]


def queue_pairs_of_patterns(scenario: Scenario) -> int:
    """Number of queue pairs over which a traffic pattern alternates.

    One if its messages are split afterwards.
    """
    return scenario.transport.queue_pairs if scenario.transport.queue_pair_use == "in-turn" else 1


def with_queue_pairs(scenario: Scenario, job: Job, policies: dict[str, LoadedPolicy], findings: Findings) -> Job:
    """Distribute the messages of a job over the transport's queue pairs.

    Parameters
    ----------
    scenario : its transport, and which kind of workload it has
    job : of that workload
    policies : by kind
    findings : take a note where queue pairs that were asked for carry nothing

    Returns
    -------
    the job that is run

    Raises
    ------
    ConfigError : there are more queue pairs than a connection has numbers for
    """
    wanted = scenario.transport.queue_pairs
    if wanted == 1:
        return job
    operations = [operation for _, operation, _ in walk(job)]
    arrives = any(isinstance(operation, Arrivals) for operation in operations)
    is_split = scenario.transport.queue_pair_use == "split"
    if arrives and not any(isinstance(operation, Send) for operation in operations):
        text = "changes nothing: each flow has its own queue pair here"
    elif is_split or scenario.workload_kind.has_steps or arrives:
        text = _on_flows(scenario, policies)
        job = split_over_queue_pairs(job, wanted) if is_split else take_queue_pairs_in_turn(job, wanted)
        if not is_split and not text and any(isinstance(operation, Collect) for operation in operations):
            text = (
                "collectives are not messages here and do not alternate: their bytes are spread evenly over the"
                f" {plural(wanted, 'queue pair')} of a connection"
            )
        if arrives:
            text = (
                f"each arriving flow has its own queue pair; {wanted} for each connection change only the other flows"
            )
    else:
        text = _of_traffic(operations, wanted)
    if text:
        findings.note("transport.queue_pairs", "note", text)
    return job


def _on_flows(scenario: Scenario, policies: dict[str, LoadedPolicy]) -> str:
    """A note if queue pairs of a connection share their paths in flows.

    Without a hash they do, and flows know nothing else of queue pairs.
    """
    plugins = {kind: policy.plugin for kind, policy in policies.items()}
    spreads = {kind: getattr(plugins[kind], "spreads", None) for kind in ("port_selection", "path_selection")}
    is_hashed = spreads["port_selection"] in {"hash", "weighted-hash"} and spreads["path_selection"] == "constant"
    if FIDELITIES[scenario.engine.fidelity].has_packets or is_hashed:
        return ""
    return (
        f"{plural(scenario.transport.queue_pairs, 'queue pair')} of a connection have the same paths here, since no"
        " hash chooses among paths; they change only the headers of messages"
    )


def _of_traffic(operations: Sequence[Operation], wanted: int) -> str:
    """A note on connections with fewer messages than queue pairs."""
    used = 1 + max((operation.channel for operation in operations if isinstance(operation, Send)), default=0)
    if used >= wanted:
        return ""
    return (
        f"{used} of the {plural(wanted, 'queue pair')} of each connection carry messages: they take its messages in"
        " turn, and traffic.repeat is the number of messages"
    )
