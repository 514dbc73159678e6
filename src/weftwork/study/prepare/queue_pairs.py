"""Queue pairs of a scenario's job, and where more of them cannot change its result.

Patterns of traffic take queue pairs in turn by themselves.
Leaves out: how messages are split or take turns (`weftwork.workload.queue_pairs`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from weftwork.base.caveat import Caveat, caveats_by_subject
from weftwork.base.grammar import plural
from weftwork.engine.programs import walk
from weftwork.spec.job import Arrivals, Collect, Send
from weftwork.workload.queue_pairs import split_over_queue_pairs, take_queue_pairs_in_turn

if TYPE_CHECKING:
    from collections.abc import Sequence

    from weftwork.policies.load import LoadedPolicy
    from weftwork.spec.job import Job, Operation
    from weftwork.spec.scenario.scenario import Scenario

__all__ = ["queue_pairs_of_patterns", "with_queue_pairs"]


def queue_pairs_of_patterns(scenario: Scenario) -> int:
    """Queue pairs that a pattern of traffic takes in turn; one where its messages are split afterwards."""
    return scenario.transport.queue_pairs if scenario.transport.queue_pair_use == "in-turn" else 1


def with_queue_pairs(scenario: Scenario, job: Job, policies: dict[str, LoadedPolicy]) -> tuple[Job, dict[str, Caveat]]:
    """Let the messages of a job use the queue pairs that the transport has.

    Parameters
    ----------
    scenario : its transport, and which kind of workload it has
    job : of that workload
    policies : by kind

    Returns
    -------
    the job that is run, and what a user should know where queue pairs that were asked for carry nothing

    Raises
    ------
    ConfigError : there are more queue pairs than a connection has numbers for
    """
    wanted = scenario.transport.queue_pairs
    if wanted == 1:
        return job, {}
    operations = [operation for _, operation, _ in walk(job)]
    arrives = any(isinstance(operation, Arrivals) for operation in operations)
    is_split = scenario.transport.queue_pair_use == "split"
    if arrives and not any(isinstance(operation, Send) for operation in operations):
        text = f"each flow has a queue pair of its own here, so that {wanted} for each connection change nothing"
    elif is_split or scenario.traffic is None or arrives:
        text = _on_flows(scenario, policies)
        job = split_over_queue_pairs(job, wanted) if is_split else take_queue_pairs_in_turn(job, wanted)
        if not is_split and not text and any(isinstance(operation, Collect) for operation in operations):
            text = (
                "collectives are no messages here and take no turns: their bytes are spread evenly over the"
                f" {plural(wanted, 'queue pair')} of a connection"
            )
        if arrives:
            text = (
                f"each arriving flow has a queue pair of its own; {wanted} for each connection change other flows alone"
            )
    else:
        text = _of_traffic(operations, wanted)
    return job, caveats_by_subject([Caveat(subject="transport.queue_pairs", kind="note", text=text)] if text else [])


def _on_flows(scenario: Scenario, policies: dict[str, LoadedPolicy]) -> str:
    """Without a hash all queue pairs of a connection have the same paths, and flows know nothing else of them."""
    plugins = {kind: policy.plugin for kind, policy in policies.items()}
    spreads = {kind: getattr(plugins[kind], "spreads", None) for kind in ("port_selection", "path_selection")}
    is_hashed = spreads["port_selection"] in {"hash", "weighted-hash"} and spreads["path_selection"] == "constant"
    if scenario.engine.fidelity != "flow" or is_hashed:
        return ""
    return (
        f"{plural(scenario.transport.queue_pairs, 'queue pair')} of a connection have the same paths here, since no "
        "hash chooses"
        " among them; they change the headers of messages alone"
    )


def _of_traffic(operations: Sequence[Operation], wanted: int) -> str:
    """A connection with fewer messages than queue pairs."""
    used = 1 + max((operation.channel for operation in operations if isinstance(operation, Send)), default=0)
    if used >= wanted:
        return ""
    return (
        f"{used} of the {plural(wanted, 'queue pair')} of each connection carry something: they take its messages in "
        "turn, and"
        " traffic.repeat says how many there are"
    )
