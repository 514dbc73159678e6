"""The start-up of a stream: what both ends agree on, as pure functions.

The initiator asks for markers, CRCs and depths by a frame; the responder answers by one. Revision 2 also agrees on the
numbers of READs in flight, and lets the initiator send an empty message first (RTR), since a responder may send only
after it has heard the initiator.
Source: RFC 5044, 7.1 (revision 1); RFC 6581 (revision 2); choices as in Linux drivers/infiniband/sw/siw/siw_cm.c.
Leaves out: when frames are sent and how long they may take, see `conversation`.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Final

from weftwork.base.errors import UsageError
from weftwork.wire.fields import MalformedPacket
from weftwork.wire.mpa import MOST_PRIVATE_BYTES, EnhancedSetup, MpaFrame
from weftwork.wire.rdmap import TerminateCode

if TYPE_CHECKING:
    from weftwork.rdma.cm_records import ConnParam

__all__ = [
    "MpaOptions",
    "Rtr",
    "StreamSetup",
    "initiator_setup",
    "rejection_frame",
    "request_frame",
    "responder_setup",
]

REVISIONS: Final = (1, 2)
_SETUP_BYTES: Final = 4
_UNKNOWN_DEPTH: Final = 0x3FFF  # RFC 6581, 9.1: the depth is not negotiated


class Rtr(Enum):
    """The first message of the initiator, by which it is ready to receive."""

    WRITE = "an empty WRITE"
    READ = "an empty READ"


@dataclass(frozen=True, kw_only=True, slots=True)
class MpaOptions:
    """Wishes of an end for its streams.

    Parameters
    ----------
    revision : of the frames that it sends first; it answers both
    markers : it wants to receive markers; RFC 5044 lets an end refuse them
    crc : it wants CRCs; they are used if one end wants them
    """

    revision: int = 2
    markers: bool = False
    crc: bool = True

    def __post_init__(self) -> None:
        if self.revision not in REVISIONS:
            raise UsageError(f"revision: found {self.revision}, wanted 1 or 2")


@dataclass(frozen=True, kw_only=True, slots=True)
class StreamSetup:
    """Agreement of both ends, as seen by one.

    Parameters
    ----------
    crc : FPDUs have CRCs
    sends_markers, receives_markers : by direction
    max_rd_atomic : READs and atomics in flight from here
    max_dest_rd_atomic : READs and atomics accepted from the peer
    is_initiator : this end has asked
    rtr : first message of the initiator, or None
    refused : this end refuses the agreement, and why
    """

    crc: bool
    sends_markers: bool
    receives_markers: bool
    max_rd_atomic: int
    max_dest_rd_atomic: int
    is_initiator: bool
    rtr: Rtr | None = None
    refused: TerminateCode | None = None


def request_frame(options: MpaOptions, param: ConnParam) -> MpaFrame:
    """Frame of an initiator; UsageError if the private data does not fit."""
    data = param.private_data
    _check_room(data, enhanced=options.revision > 1)
    if options.revision > 1:
        setup = EnhancedSetup(
            inbound_depth=param.responder_resources,
            outbound_depth=param.initiator_depth,
            is_peer_to_peer=True,
            write_rtr=True,
            read_rtr=param.initiator_depth > 0,
        )
        data = setup.encode() + data
    return MpaFrame(
        is_reply=False,
        revision=options.revision,
        wants_markers=options.markers,
        wants_crc=options.crc,
        is_enhanced=options.revision > 1,
        private_data=data,
    )


def split_private_data(frame: MpaFrame) -> tuple[EnhancedSetup | None, bytes]:
    """Depths and the user's bytes of a frame; MalformedPacket for a frame that nobody may send."""
    if frame.revision not in REVISIONS:
        raise MalformedPacket("MPA", f"found revision {frame.revision}, wanted 1 or 2")
    if frame.revision == 1 or not frame.is_enhanced:
        return None, frame.private_data
    setup, rest = EnhancedSetup.decode(frame.private_data)
    return setup, bytes(rest)


def responder_setup(options: MpaOptions, param: ConnParam, request: MpaFrame) -> tuple[StreamSetup, MpaFrame]:
    """Agreement and reply of a responder; UsageError if the private data does not fit.

    Parameters
    ----------
    options, param : of this end
    request : of the initiator, with a known revision
    """
    asked, _ = split_private_data(request)
    outbound, inbound = param.initiator_depth, param.responder_resources
    rtr = None
    data = param.private_data
    _check_room(data, enhanced=asked is not None)
    if asked is not None:
        outbound = _least(outbound, asked.inbound_depth)
        inbound = _least(inbound, asked.outbound_depth)
        if asked.is_peer_to_peer:
            rtr = Rtr.READ if asked.read_rtr and not asked.write_rtr else Rtr.WRITE
        answer = EnhancedSetup(
            inbound_depth=inbound,
            outbound_depth=outbound,
            is_peer_to_peer=asked.is_peer_to_peer,  # RFC 6581, 9.1: repeated as it came
            write_rtr=rtr is Rtr.WRITE,
            read_rtr=rtr is Rtr.READ,
        )
        data = answer.encode() + data
    crc = options.crc or request.wants_crc
    reply = MpaFrame(
        is_reply=True,
        revision=request.revision,
        wants_markers=options.markers,
        wants_crc=crc,
        is_enhanced=asked is not None,
        private_data=data,
    )
    setup = StreamSetup(
        crc=crc,
        sends_markers=request.wants_markers,
        receives_markers=options.markers,
        max_rd_atomic=outbound,
        max_dest_rd_atomic=inbound,
        is_initiator=False,
        rtr=rtr,
    )
    return setup, reply


def rejection_frame(options: MpaOptions, request: MpaFrame, private_data: bytes = b"") -> MpaFrame:
    """Reply that refuses a request; UsageError if the private data does not fit."""
    asked, _ = split_private_data(request)
    _check_room(private_data, enhanced=asked is not None)
    front = b"" if asked is None else EnhancedSetup(0, 0, asked.is_peer_to_peer).encode()
    return MpaFrame(
        is_reply=True,
        revision=request.revision,
        wants_crc=options.crc or request.wants_crc,
        rejects=True,
        is_enhanced=asked is not None,
        private_data=front + private_data,
    )


def initiator_setup(options: MpaOptions, param: ConnParam, reply: MpaFrame) -> StreamSetup:
    """Agreement of an initiator; MalformedPacket for a reply that does not fit its request.

    Parameters
    ----------
    options, param : of this end, as in its request
    reply : of the responder
    """
    answer, _ = split_private_data(reply)
    if reply.revision != options.revision or (answer is None) != (options.revision == 1):
        raise MalformedPacket("MPA", f"found a reply of revision {reply.revision}, wanted {options.revision} as asked")
    outbound, inbound = param.initiator_depth, param.responder_resources
    rtr = refused = None
    if answer is not None:
        if inbound < answer.outbound_depth < _UNKNOWN_DEPTH:
            refused = TerminateCode.MPA_INSUFFICIENT_DEPTH
        outbound = _least(outbound, answer.inbound_depth)
        inbound = _least(inbound, answer.outbound_depth)
        if answer.is_peer_to_peer and answer.write_rtr:
            rtr = Rtr.WRITE
        elif answer.is_peer_to_peer and answer.read_rtr and outbound > 0:
            rtr = Rtr.READ
        elif refused is None:
            refused = TerminateCode.MPA_NO_MATCHING_RTR
    return StreamSetup(
        crc=options.crc or reply.wants_crc,
        sends_markers=reply.wants_markers,
        receives_markers=options.markers,
        max_rd_atomic=outbound,
        max_dest_rd_atomic=inbound,
        is_initiator=True,
        rtr=rtr,
        refused=refused,
    )


def _least(own: int, asked: int) -> int:
    return own if asked == _UNKNOWN_DEPTH else min(own, asked)


def _check_room(private_data: bytes, *, enhanced: bool) -> None:
    most_bytes = MOST_PRIVATE_BYTES - (_SETUP_BYTES if enhanced else 0)
    if len(private_data) > most_bytes:
        raise UsageError(f"private_data: found {len(private_data)} bytes, wanted up to {most_bytes}")
