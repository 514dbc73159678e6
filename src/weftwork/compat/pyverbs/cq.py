"""Completion queues, completion channels, work completions.

Source: pyverbs, cq.pyx (names); IBTA vol. 1, 10.2.6 and 11.4.2; libibverbs, ibv_start_poll(3).
Leaves out: time stamps, flow tags, tag matching; more than one completion vector.
"""

from __future__ import annotations

from errno import EINVAL, ENOENT
from socket import htonl
from typing import TYPE_CHECKING, Any, Final

from weftwork.compat.pyverbs.base import NicObject, PyverbsObject, close_orphans
from weftwork.compat.pyverbs.libibverbs_enums import (
    IBV_WC_STANDARD_FLAGS,
    ibv_cq_init_attr_mask,
    ibv_create_cq_attr_flags,
    ibv_wc_flags,
)
from weftwork.compat.pyverbs.pyverbs_error import PyverbsRDMAError, not_supported, refused_as
from weftwork.rdma.completion import CompletionChannel, CompletionQueue

if TYPE_CHECKING:
    from weftwork.compat.pyverbs.device import Context
    from weftwork.compat.pyverbs.pd import PD
    from weftwork.rdma.verbs import Wc

__all__ = ["CQ", "CQEX", "WC", "CompChannel", "CqInitAttrEx", "PollCqAttr", "WcTmInfo"]

_NOTHING_FOUND: Final = ENOENT  # ibv_start_poll(3)


class CompChannel(NicObject):
    """A channel that tells of new completions.

    Parameters
    ----------
    context : of the device

    Attributes
    ----------
    channel : for the NIC
    """

    closes = 7

    def __init__(self, context: Context) -> None:
        self.nic = context.nic
        self.channel = CompletionChannel()
        self.context: Context | None = context
        self.is_open = True
        self._pending: list[CompletionQueue] = []
        context.add_ref(self)

    def get_cq_event(self, expected_cq: CQ | CQEX) -> None:
        """Wait for the next event; PyverbsRDMAError if it is that of another queue."""
        self.nic.device.wait(self._has_event)
        if self._pending.pop(0) is not expected_cq.queue:
            raise PyverbsRDMAError("Received event on an unexpected CQ")
        expected_cq.num_events += 1

    def _has_event(self) -> bool:
        queue = self.channel.get_event()
        if queue is not None:
            self._pending.append(queue)
        return bool(self._pending)

    @property
    def fd(self) -> int:
        """Refuse: a software NIC tells of events to `get_cq_event` alone."""
        raise not_supported("The descriptor of a completion channel")

    def close(self) -> None:
        """Close the queues of the channel, and the channel."""
        if self.is_open:
            self.close_children()
            self.is_open = False
            self.context = None


class _AnyCQ(NicObject):
    """A completion queue.

    Attributes
    ----------
    queue : for the NIC
    num_events : events that were not acknowledged
    """

    closes = 8
    queue: CompletionQueue
    context: Context | None

    def _create(self, context: Context, cqe: int, channel: CompChannel | None, comp_vector: int, what: str) -> None:
        self.nic = context.nic
        self.num_events = 0
        if not 0 <= comp_vector < context.num_comp_vectors:
            raise PyverbsRDMAError(what, EINVAL)
        with refused_as(what):
            self.queue = self.nic.device.create_cq(int(cqe), channel.channel if channel is not None else None)
        self.channel = channel
        if channel is not None:
            channel.add_ref(self)
        self.context = context
        self.is_open = True
        context.add_ref(self)

    @property
    def comp_channel(self) -> CompChannel | None:
        """Channel that tells of completions, or None."""
        return self.channel

    @property
    def cqe(self) -> int:
        """Completions that the queue holds."""
        return self.queue.cqe

    def take(self, most: int) -> list[Wc]:
        """Take completions; packets move if there are none."""
        close_orphans()
        device = self.nic.device
        found = device.poll_cq(self.queue, most)
        if not found:
            self.nic.look(lambda: len(self.queue) > 0)
            found = device.poll_cq(self.queue, most) if len(self.queue) else []
        return found

    def discard(self, qp_num: int) -> None:
        """Drop the completions of a queue pair that is reset or destroyed, as mlx5 and others do."""
        with self.nic.device.lock:
            self.queue.discard(qp_num)

    def req_notify(self, solicited_only: bool = False) -> None:  # noqa: FBT001, FBT002 - the signature of pyverbs
        """Ask for an event of the channel at the next completion."""
        with self.nic.device.lock:
            self.queue.request_notify(solicited_only=solicited_only)

    def ack_events(self, num_events: int) -> None:
        """Acknowledge events."""
        self.num_events -= num_events

    def resize(self, cqe: int) -> None:
        """Change the number of completions that the queue holds."""
        with refused_as("Failed to resize CQ"), self.nic.device.lock:
            if not 0 < cqe <= self.nic.device.nic.limits.max_cqe:
                raise PyverbsRDMAError("Failed to resize CQ", EINVAL)
            self.queue.resize(int(cqe))

    def close(self) -> None:
        """Close the queue pairs that complete here, and the queue."""
        if self.is_open:
            self.close_children()
            self.is_open = False
            if self.nic.is_here:
                with refused_as("Failed to close CQ"):
                    self.nic.device.destroy_cq(self.queue)
            self.context = None
            self.channel = None

    def __str__(self) -> str:
        return f"{type(self).__name__}\n{'Handle':22}: {id(self.queue):<20}\n{'CQEs':22}: {self.cqe:<20}\n"


class CQ(_AnyCQ):
    """A completion queue.

    Parameters
    ----------
    context : of the device
    cqe : completions that it holds
    cq_context : kept for the program
    channel : told of completions after `req_notify`
    comp_vector : 0; a software NIC has one
    """

    def __init__(
        self,
        context: Context,
        cqe: int,
        cq_context: object = None,
        channel: CompChannel | None = None,
        comp_vector: int = 0,
    ) -> None:
        self.cq_context = cq_context
        self._create(context, cqe, channel, comp_vector, "Failed to create a CQ")

    def poll(self, num_entries: int = 1) -> tuple[int, list[WC]]:
        """Take completions.

        Returns
        -------
        their number, and they
        """
        found = [WC.of(wc) for wc in self.take(num_entries)]
        return len(found), found


class CqInitAttrEx(PyverbsObject):
    """Attributes of an extended completion queue.

    Parameters
    ----------
    cqe : completions that it holds
    channel : told of completions
    comp_vector : 0
    wc_flags : fields that the program reads
    comp_mask, flags : see ibv_create_cq_ex(3)
    parent_domain : kept for the program
    """

    def __init__(
        self,
        cqe: int = 100,
        channel: CompChannel | None = None,
        comp_vector: int = 0,
        wc_flags: int = 0,
        comp_mask: int = 0,
        flags: int = 0,
        parent_domain: PD | None = None,
    ) -> None:
        self.cqe = cqe
        self.cq_context: object = None
        self.comp_channel = channel
        self.comp_vector = comp_vector
        self.wc_flags = wc_flags
        self.comp_mask = comp_mask
        self.flags = flags
        self.parent_domain = parent_domain


class PollCqAttr(PyverbsObject):
    """Attributes of a poll; there are none yet."""

    comp_mask = 0


class WcTmInfo(PyverbsObject):
    """Tag of a message."""

    tag = 0
    priv = 0


class CQEX(_AnyCQ):
    """An extended completion queue.

    Parameters
    ----------
    context : of the device
    init_attr : see `CqInitAttrEx`

    Attributes
    ----------
    wr_id, status : of the current completion
    """

    def __init__(self, context: Context, init_attr: CqInitAttrEx | None = None) -> None:
        attr = init_attr if init_attr is not None else CqInitAttrEx()
        if attr.wc_flags & ~IBV_WC_STANDARD_FLAGS:
            raise not_supported(f"Reading the fields {int(attr.wc_flags):#x} of a completion")
        asks_flags = attr.comp_mask & ibv_cq_init_attr_mask.IBV_CQ_INIT_ATTR_MASK_FLAGS
        if asks_flags and attr.flags & ~ibv_create_cq_attr_flags.IBV_CREATE_CQ_ATTR_SINGLE_THREADED:
            raise not_supported(f"A CQ with flags {int(attr.flags):#x}")
        self.wr_id = 0
        self.status = 0
        self._current: WC | None = None
        self._create(context, attr.cqe, attr.comp_channel, attr.comp_vector, "Failed to create extended CQ")
        if attr.parent_domain is not None:
            attr.parent_domain.add_ref(self)

    def start_poll(self, attr: PollCqAttr | None = None) -> int:  # noqa: ARG002 - it has no content yet
        """Take the first completion of a batch.

        Returns
        -------
        0, or ENOENT where there is none
        """
        return self._advance()

    def poll_next(self) -> int:
        """Take the next completion of the batch, as `start_poll`."""
        return self._advance()

    def end_poll(self) -> None:
        """End the batch."""
        self._current = None

    def _advance(self) -> int:
        found = self.take(1)
        if not found:
            return _NOTHING_FOUND
        self._current = WC.of(found[0])
        self.wr_id, self.status = self._current.wr_id, self._current.status
        return 0

    def _read(self, field: str) -> Any:  # noqa: ANN401 - any field
        if self._current is None:
            raise PyverbsRDMAError(f"Failed to read {field}: no completion was polled", EINVAL)
        return getattr(self._current, field)

    def read_opcode(self) -> int:
        """Operation that completed."""
        return int(self._read("opcode"))

    def read_vendor_err(self) -> int:
        """Error code of the vendor; 0."""
        return int(self._read("vendor_err"))

    def read_byte_len(self) -> int:
        """Bytes received or read."""
        return int(self._read("byte_len"))

    def read_imm_data(self) -> int:
        """Immediate data in network order, or the key that was invalidated."""
        return int(self._read("imm_data"))

    def read_qp_num(self) -> int:
        """Queue pair of this end."""
        return int(self._read("qp_num"))

    def read_src_qp(self) -> int:
        """Queue pair of the sender of a datagram."""
        return int(self._read("src_qp"))

    def read_wc_flags(self) -> int:
        """Fields that the completion has."""
        return int(self._read("wc_flags"))

    def read_slid(self) -> int:
        """Local identifier of the sender; 0 on Ethernet."""
        return int(self._read("slid"))

    def read_sl(self) -> int:
        """Service level; 0."""
        return int(self._read("sl"))

    def read_dlid_path_bits(self) -> int:
        """Path bits; 0 on Ethernet."""
        return int(self._read("dlid_path_bits"))

    def read_timestamp(self) -> int:
        """Refuse: a software NIC has no clock of its own."""
        raise not_supported("The time stamp of a completion")

    def read_completion_wallclock_ns(self) -> int:
        """Refuse, as `read_timestamp`."""
        raise not_supported("The time stamp of a completion")

    def read_cvlan(self) -> int:
        """Refuse: there are no VLANs in UDP."""
        raise not_supported("The VLAN of a completion")

    def read_flow_tag(self) -> int:
        """Refuse: there is no flow steering."""
        raise not_supported("The flow tag of a completion")

    def read_tm_info(self) -> WcTmInfo:
        """Refuse: there is no tag matching."""
        raise not_supported("The tag of a completion")


class WC(PyverbsObject):
    """A work completion.

    Parameters
    ----------
    wr_id : of the work request
    status : how it ended
    opcode : the operation
    vendor_err : 0
    byte_len : bytes received or read
    qp_num, src_qp : queue pairs of this end and of the sender
    imm_data : in network order, or the key that was invalidated
    wc_flags : fields that the completion has
    pkey_index, slid, sl, dlid_path_bits : 0
    """

    def __init__(  # noqa: PLR0913, PLR0917 - the signature of pyverbs
        self,
        wr_id: int = 0,
        status: int = 0,
        opcode: int = 0,
        vendor_err: int = 0,
        byte_len: int = 0,
        qp_num: int = 0,
        src_qp: int = 0,
        imm_data: int = 0,
        wc_flags: int = 0,
        pkey_index: int = 0,
        slid: int = 0,
        sl: int = 0,
        dlid_path_bits: int = 0,
    ) -> None:
        self.wr_id = wr_id
        self.status = status
        self.opcode = opcode
        self.vendor_err = vendor_err
        self.byte_len = byte_len
        self.qp_num = qp_num
        self.src_qp = src_qp
        self.imm_data = imm_data
        self.wc_flags = wc_flags
        self.pkey_index = pkey_index
        self.slid = slid
        self.sl = sl
        self.dlid_path_bits = dlid_path_bits

    @classmethod
    def of(cls, wc: Wc) -> WC:
        """Make the completion that the NIC has given."""
        flags = int(ibv_wc_flags.IBV_WC_GRH) if wc.has_grh else 0
        data = 0
        if wc.imm_data is not None:
            flags |= ibv_wc_flags.IBV_WC_WITH_IMM
            data = htonl(wc.imm_data)
        elif wc.invalidated_rkey is not None:
            flags |= ibv_wc_flags.IBV_WC_WITH_INV
            data = wc.invalidated_rkey
        return cls(
            wr_id=wc.wr_id,
            status=int(wc.status),
            opcode=int(wc.opcode),
            byte_len=wc.byte_len,
            qp_num=wc.qp_num,
            src_qp=wc.src_qp,
            imm_data=data,
            wc_flags=int(flags),
        )

    def __str__(self) -> str:
        return "".join(f"{name:22}: {value!s:<20}\n" for name, value in vars(self).items())
