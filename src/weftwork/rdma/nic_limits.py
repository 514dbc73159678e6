"""Limits of a NIC on its objects."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["NicLimits"]


@dataclass(frozen=True, kw_only=True, slots=True)
class NicLimits:
    """Limits of a NIC.

    Each limit is chosen, as a bound on what one process can take.

    Parameters
    ----------
    max_qp, max_cq, max_srq, max_mr : objects; ``max_mr`` counts regions and windows
    max_cqe, max_qp_wr, max_sge : entries of a completion queue and of a work queue, elements of a request
    max_inline_data : bytes of an inline request
    max_qp_rd_atom : READs and atomics in flight of a queue pair
    max_inflight : packets of a queue pair on their way
    max_out_of_order : how far ahead of its turn a packet may be that a queue pair keeps under selective repeat, in PSNs
    max_out_of_order_bytes : of the packets that a queue pair keeps so
    max_mcast_grp, max_mcast_qp_attach : multicast groups, and queue pairs of one group
    max_cm_id, max_cm_pending : conversations of the connection manager, and those of them that await `accept`
    """

    max_qp: int = 4096
    max_cq: int = 4096
    max_srq: int = 1024
    max_mr: int = 65_536
    max_cqe: int = 1 << 20
    max_qp_wr: int = 16_384
    max_sge: int = 32
    max_inline_data: int = 1024
    max_qp_rd_atom: int = 128
    max_inflight: int = 256
    max_out_of_order: int = 256
    max_out_of_order_bytes: int = 1 << 20
    max_mcast_grp: int = 256
    max_mcast_qp_attach: int = 64
    max_cm_id: int = 4096
    max_cm_pending: int = 1024  # as many as the kernel lets one port have: max_backlog in Linux ucma.c
