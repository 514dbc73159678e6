"""Common parts of conversations: the manager as they see it, timeouts, and numbers.

Source: IBTA vol. 1, chapter 12; Linux drivers/infiniband/core/cma.c.
Leaves out: conversations, see `cm_id` and `cm_services`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol

from weftwork.rdma.verbs import QpType

if TYPE_CHECKING:
    from weftwork.rdma.cm_id import CmId
    from weftwork.rdma.cm_records import CmEvent
    from weftwork.rdma.cm_states import CmState
    from weftwork.rdma.nic import RdmaNic
    from weftwork.rdma.queue_pair import RdmaQueuePair

__all__ = [
    "FIRST_QP",
    "LONGEST_SERVICE_TIMEOUT",
    "MOST_RETRIES",
    "SERVICES",
    "CmHost",
    "timeout_ps",
    "tries_within",
]

LONGEST_SERVICE_TIMEOUT: Final = 24  # CMA_CM_MRA_SETTING in Linux drivers/infiniband/core/cma.c: 68.7 s
FIRST_QP: Final = 2  # IBTA vol. 1, 3.9.3: 0 and 1 are for management
SERVICES: Final = {QpType.RC: 0, QpType.UC: 1}  # IBTA vol. 1, 12.7.9: transport service type of a REQ
MOST_RETRIES: Final = 15  # CMA_MAX_CM_RETRIES in Linux cma.c; a REQ has four bits for it
_CODES: Final = 32  # five bits
_UNIT_PS: Final = 4_096_000  # IBTA vol. 1, 12.7.6: 4.096 us x 2^timeout


def timeout_ps(code: int) -> int:
    """Time of a 5-bit code."""
    return _UNIT_PS << code


def tries_within(wait_ps: int, retries: int | None = None) -> tuple[int, int]:
    """Code and retries with which a message without an answer is given up after a time.

    Parameters
    ----------
    wait_ps : time for all tries, from the first message on
    retries : how many times the message goes again; None: as many as the time allows, at most 15

    Returns
    -------
    the code of the time after which the message goes again, and the retries; what they make together is the nearest to
    the time that they can make
    """
    if retries is not None:
        codes = range(_CODES)
        return min(codes, key=lambda code: abs(timeout_ps(code) * (retries + 1) - wait_ps)), retries
    code = next((code for code in range(_CODES) if timeout_ps(code) * (MOST_RETRIES + 1) >= wait_ps), _CODES - 1)
    return code, min(MOST_RETRIES, max(1, round(wait_ps / timeout_ps(code))) - 1)


class CmHost(Protocol):
    """Services of the manager for a conversation."""

    nic: RdmaNic
    response_timeout: int
    cm_retries: int
    ca_guid: int

    def path_mtu_to(self, address: bytes) -> int:
        """Most bytes in a packet to a peer."""

    def send(self, address: bytes, mad: bytes, source_port: int | None = None) -> None:
        """Send a management datagram to queue pair 1 of an address, from a UDP port or from that of the manager."""

    def watch(self, conversation: CmId) -> None:
        """Watch the process of the peer until the conversation is over."""

    def tell(self, event: CmEvent) -> None:
        """Queue an event for the user."""

    def withdraw(self, conversation: CmId) -> bool:
        """Withdraw a request that the user has not seen; returns whether it existed."""

    def moved(self, conversation: CmId, before: CmState) -> None:
        """Note that the state has changed."""

    def restart_clock(self, conversation: CmId) -> None:
        """Restart the clock of `wait_ps` at the next datagram."""

    def claim(self, qp: RdmaQueuePair, conversation: CmId) -> None:
        """Assign a queue pair to a conversation; UsageError if it is taken."""

    def is_stale(self, address: bytes, qp_num: int, guid: int) -> bool:
        """Whether a conversation has this peer's queue pair already; it is then closed."""
