"""A confirmation in words and as JSON.

It has what was left out, and why no more was run.

Leaves out: the lines and the table of the terminal (`weftwork.cli.plan_confirmed`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from weftwork.base.grammar import plural

if TYPE_CHECKING:
    from weftwork.study.plan.confirm import Confirmation

__all__ = ["confirmation_document", "left_out", "why_no_more"]


def left_out(found: Confirmation) -> str:
    """Name the traffic that the packet run left out."""
    blocking = (
        "overlap of tensor and context traffic with computing, since the packet engine runs collectives step by step in"
        " their stream; trees and reducing switches, which are rings here"
    )
    if found.how == "whole":
        return blocking
    if found.how == "replicas":
        others = found.of_replicas - found.replicas
        shards = "; each GPU has larger shards, so its optimizer takes longer" if found.has_shards else ""
        return (
            f"the gradients and parameters of {others:,} of {plural(found.of_replicas, 'replica')}, and their "
            "contention for"
            f" links{shards}; {blocking}"
        )
    if found.how == "collectives":
        return "overlap with computing, other groups of the same kind, and contention between kinds of traffic"
    return "everything"


def why_no_more(found: Confirmation) -> str:
    """Say why packets did not run the whole job.

    Empty if they did.
    """
    if found.refused:
        return f"the packet engine cannot run the job: {found.refused}"
    if found.fit.too_large is None:
        return ""
    replicas, cost = found.fit.too_large
    many = plural(replicas, "replica")
    return f"a packet run of {many} would take {cost}, and the limit is {found.limit}"


def confirmation_document(found: Confirmation) -> dict[str, Any]:
    """A confirmation as one JSON object."""
    return {
        "how": found.how,
        "replicas": found.replicas,
        "of_replicas": found.of_replicas,
        "gpus": found.gpus,
        "of_gpus": found.of_gpus,
        "flow_ps": found.flow_ps,
        "packet_ps": found.packet_ps,
        "longer_share": found.longer,
        "status": found.status,
        "why_no_more": why_no_more(found),
        "left_out": left_out(found),
        "collectives": [
            {
                "kind": one.kind,
                "exposed_ps": found.exposed_ps[one.kind],
                "operation": one.operation,
                "size_bytes": one.size_bytes,
                "ranks": one.ranks,
                "closed_form_ps": one.closed_form_ps,
                "flow_ps": one.flow_ps,
                "packet_ps": one.packet_ps,
                "reason": one.reason,
            }
            for one in found.collectives
        ],
    }
