"""Trains: equal-size packets of one message's middle, made and checked together.

A system call and a step through the stack of objects cost more than the bytes of a packet. A socket takes and gives
up to 64 packets by one call (segmentation offload); here they are made, checked and copied by one step as well.
Source: udp(7), UDP_SEGMENT and UDP_GRO: packet ``i`` has identification ``i``; IBTA vol. 1, 9.2 (BTH) and annex A17.
Leaves out: first and last packets, whose sizes differ; congestion control, which wants each packet by itself.
"""

from __future__ import annotations

from struct import Struct
from typing import TYPE_CHECKING, Final, Protocol

import numpy as np

from weftwork.rdma.datagram import Datagram, PacketFlow
from weftwork.rdma.states import PROCESSES_RECEIVES
from weftwork.wire.checksum import RESIDUE, crc32
from weftwork.wire.ib import BTH_BYTES, PSN_MODULUS
from weftwork.wire.icrc import ICRC_BYTES

if TYPE_CHECKING:
    from weftwork.rdma.queue_pair import RdmaQueuePair

__all__ = [
    "SMALLEST_TRAIN",
    "TRAIN_FRONT",
    "TrainReceiver",
    "TrainTaker",
    "copy_payloads",
    "make_train",
    "most_segments",
]

SMALLEST_TRAIN: Final = 2
TRAIN_FRONT: Final = Struct(">BBHI")  # of BTH, up to the queue pair
_MOST_SEGMENTS: Final = 64  # UDP_MAX_SEGMENTS in Linux include/linux/udp.h
_MOST_BYTES: Final = 65_507  # RFC 768 over IPv4: what one datagram can carry
_WORDS: Final = Struct(">QI")  # of BTH: the front, and the word with the PSN
_FRONT_BYTES: Final = 8
_MIGRATION: Final = 0x40  # the bit of BTH that hardware sets and nobody obeys
_FULL_MEMBER: Final = 0x8000  # IBTA vol. 1, 10.9.3; two limited members may not meet
_MOST_PORTS: Final = 64  # chosen: source ports of a peer that are remembered
# FECN, BECN and six reserved bits, which the ICRC does not cover.
_COVERED: Final = ~(0xFF << 24) & (1 << 64) - 1
_ASKS: Final = 1 << 31


def most_segments(path_mtu: int) -> int:
    """Packets per call of a socket."""
    return min(_MOST_SEGMENTS, _MOST_BYTES // (BTH_BYTES + path_mtu + ICRC_BYTES))


def make_train(
    flow: PacketFlow, front: bytes, psns: range, payload: memoryview, path_mtu: int, asking: frozenset[int]
) -> Datagram:
    """Make a train; copies no payload.

    Parameters
    ----------
    flow : to the peer
    front : eight bytes of BTH in front of the word with the PSN
    psns : of its packets, not wrapped
    payload : of all packets, in one piece
    path_mtu : payload of each
    asking : PSNs of the packets that ask for an ACK
    """
    segment_bytes = BTH_BYTES + path_mtu + ICRC_BYTES
    states = flow.states_behind(front, segment_bytes)
    parts: list[bytes | memoryview] = []
    header = front
    at = 0
    for psn, state in zip(psns, states, strict=False):
        word = (psn % PSN_MODULUS | (_ASKS if psn in asking else 0)).to_bytes(4, "big")
        piece = payload[at : at + path_mtu]
        at += path_mtu
        parts += (header + word, piece)
        header = crc32(piece, crc32(word, state)).to_bytes(ICRC_BYTES, "little") + front
    parts.append(header[:ICRC_BYTES])
    return Datagram(
        flow.source, flow.destination, flow.source_port, tuple(parts), dscp=flow.dscp, segment_bytes=segment_bytes
    )


def _packets_in_order(
    payload: memoryview, segment_bytes: int, states: tuple[int, ...], front: int, psns: range
) -> tuple[int, bool]:
    """Count the intact, consecutive packets at the start of a train.

    Parameters
    ----------
    payload : of the train
    segment_bytes : of a packet
    states : of the ICRC behind ``front``, packet by packet
    front : eight bytes of BTH that all have, as a number
    psns : that they should have, not wrapped; as many as may be taken

    Returns
    -------
    how many, and whether one of them asks for an ACK
    """
    asked = count = at = 0
    for psn, state in zip(psns, states, strict=False):
        found, word = _WORDS.unpack_from(payload, at)
        end = at + segment_bytes
        if (
            found & _COVERED != front
            or word & 0xFFFFFF != psn % PSN_MODULUS
            or crc32(payload[at + _FRONT_BYTES : end], state) != RESIDUE
        ):
            break
        asked |= word
        count += 1
        at = end
    return count, bool(asked & _ASKS)


def copy_payloads(payload: memoryview, segment_bytes: int, count: int, target: memoryview) -> None:
    """Copy the payloads of the first packets of a train in sequence.

    ``target`` has room for all.
    """
    rows = np.frombuffer(payload, np.uint8, count * segment_bytes).reshape(count, segment_bytes)
    to = np.frombuffer(target, np.uint8).reshape(count, segment_bytes - BTH_BYTES - ICRC_BYTES)
    to[...] = rows[:, BTH_BYTES:-ICRC_BYTES]


class TrainTaker(Protocol):
    """A requester or responder that takes middle packets together.

    It is a half of a queue pair.
    """

    def room_for_train(self, operation: int, psn: int) -> range:
        """Number of packets that can be taken from a PSN on; often none.

        PSNs are not wrapped; the given one has 24 bits.
        """

    def take_train(self, payload: memoryview, segment_bytes: int, psns: range, now_ps: int, *, asks: bool) -> None:
        """Take intact packets that `room_for_train` has admitted."""


class TrainReceiver:
    """Takes packets of one queue pair that arrived by one call.

    Parameters
    ----------
    qp : whose packets
    takers : by operation; what is not there is taken packet by packet
    """

    def __init__(self, qp: RdmaQueuePair, takers: dict[int, TrainTaker]) -> None:
        self._qp: Final = qp
        self._takers: Final = takers
        self._arriving: dict[int, PacketFlow] = {}  # by source port

    def receive(self, datagram: Datagram, payload: memoryview, number: int, now_ps: int) -> int:
        """Take middle packets of a message.

        Parameters
        ----------
        datagram : that brought them
        payload : of UDP, from the first packet that is not taken yet; this packet is whole
        number : of this packet in the datagram
        now_ps : instant

        Returns
        -------
        packets taken; 0 where the next one has to be taken by itself, or refused
        """
        qp, attr = self._qp, self._qp.attr
        found, word = _WORDS.unpack_from(payload)
        operation, flags, pkey = found >> 56, found >> 48 & 0xFF, found >> 32 & 0xFFFF
        taker = self._takers.get(operation)
        segment_bytes = datagram.segment_bytes
        if (
            taker is None
            or flags & ~_MIGRATION
            or pkey != attr.pkey
            or not pkey & _FULL_MEMBER
            or segment_bytes != BTH_BYTES + attr.path_mtu + ICRC_BYTES
            or qp.rate is not None
            or qp.state not in PROCESSES_RECEIVES
            or datagram.source != attr.remote_address
            or not qp.proof.accepts(datagram.source_port)
        ):
            return 0
        psns = taker.room_for_train(operation, word & 0xFFFFFF)[: len(payload) // segment_bytes]
        if not psns:
            return 0
        front = found & _COVERED
        states = self._flow(datagram.source_port).states_behind(front.to_bytes(_FRONT_BYTES, "big"), segment_bytes)
        count, asks = _packets_in_order(payload, segment_bytes, states[number:], front, psns)
        if count:
            taker.take_train(payload, segment_bytes, psns[:count], now_ps, asks=asks)
        return count

    def _flow(self, source_port: int) -> PacketFlow:
        flow = self._arriving.get(source_port)
        if flow is None or flow.source != self._qp.attr.remote_address:
            if len(self._arriving) >= _MOST_PORTS:
                self._arriving.clear()
            host = self._qp.host
            flow = PacketFlow(self._qp.attr.remote_address, host.address, source_port, host.icrc_states)
            self._arriving[source_port] = flow
        return flow
