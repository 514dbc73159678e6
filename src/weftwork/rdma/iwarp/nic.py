"""A NIC for iWARP: the objects of the verbs, and queue pairs on streams.

Source: RFC 5040, 3 (the RNIC and its verbs); the objects as IBTA vol. 1, chapter 11.
Leaves out: streams and their start-up, see `connection_manager`; datagrams, which iWARP does not have.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from weftwork.base.errors import UsageError
from weftwork.rdma.iwarp.queue_pair import IwarpQueuePair
from weftwork.rdma.iwarp.setup import MpaOptions
from weftwork.rdma.nic import RdmaNic
from weftwork.rdma.verbs import QpType

if TYPE_CHECKING:
    from random import Random

    from weftwork.rdma.completion import CompletionQueue
    from weftwork.rdma.memory import ProtectionDomain
    from weftwork.rdma.nic import NicEnd
    from weftwork.rdma.queue_pair import NicLimits, RdmaQueuePair
    from weftwork.rdma.receive_queue import RecvQueue

__all__ = ["IwarpNic"]


class IwarpNic(RdmaNic):
    """A NIC with one address.

    Parameters
    ----------
    address : IP address, 4 or 16 bytes in network order
    random : draws numbers and keys; by default the system's, which nobody can guess
    limits : on its objects
    options : wishes for its streams
    """

    def __init__(
        self,
        address: bytes,
        *,
        random: Random | None = None,
        limits: NicLimits | None = None,
        options: MpaOptions | None = None,
    ) -> None:
        super().__init__(address, random=random, limits=limits)
        self.options: Final = options if options is not None else MpaOptions()

    def _make_qp(
        self,
        number: int,
        qp_type: QpType,
        pd: ProtectionDomain,
        cqs: tuple[CompletionQueue, CompletionQueue],
        queue: RecvQueue,
        *,
        sq_sig_all: bool,
    ) -> RdmaQueuePair:
        if qp_type is not QpType.RC:
            raise UsageError(f"qp_type: found {qp_type.name}, wanted RC; iWARP has reliable connections alone")
        return IwarpQueuePair(self, number, qp_type, pd, cqs, queue, sq_sig_all=sq_sig_all)

    def destroy_qp(self, qp: RdmaQueuePair) -> None:
        """Forget a queue pair; its stream ends, its completions stay."""
        super().destroy_qp(qp)
        self.wake(qp)

    @property
    def is_ready(self) -> bool:
        """Whether a queue pair may have bytes to send."""
        return bool(self._ready)

    def take_ready(self) -> list[NicEnd]:
        """Queue pairs that may have bytes to send, each once."""
        ready = list(self._ready)
        self._ready.clear()
        return ready
