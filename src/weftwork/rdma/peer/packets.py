"""Packets of the script: as they are seen, changed with a right ICRC, and made up.

Source: IBTA vol. 1, 9.2 and 9.3; annex A17 (CNP).
Leaves out: which packets, see `rules`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from weftwork.rdma.datagram import Datagram, IcrcStates, PacketFlow
from weftwork.rdma.peer.packet_words import NAKS, PACKETS, REQUESTS, words_of
from weftwork.rdma.sender_proof import NumberedSourcePorts
from weftwork.rdma.verbs import ATOMIC_BYTES
from weftwork.wire.credits import NO_CREDIT_COUNT
from weftwork.wire.extended import Aeth, AethKind, AtomicEth, Feth, FlushPlacement, Ieth, ImmediateData, Reth
from weftwork.wire.fields import MalformedPacket
from weftwork.wire.ib import CNP_BODY, PSN_MODULUS, Bth, cnp_bth, psn_compare
from weftwork.wire.icrc import ICRC_BYTES
from weftwork.wire.mad import GENERAL_SERVICES_QP
from weftwork.wire.opcodes import SHAPES, Opcode, Position
from weftwork.wire.transport import TransportPacket

if TYPE_CHECKING:
    from weftwork.rdma.peer.script import AnswerKeys, PacketKeys
    from weftwork.rdma.region import RemoteRange

__all__ = ["PeerForger", "SeenPacket", "see"]

_FILL: Final = 0xEE
_WRONG_KEY_BITS: Final = 0x5A5A5A5A  # chosen: of the right key these are turned over, so that the index is another one


@dataclass(frozen=True, kw_only=True, slots=True)
class SeenPacket:
    """A packet as the peer saw it arrive or sent it.

    Parameters
    ----------
    at_ps : instant
    sender : ``end`` or ``peer``
    words : that match it
    psn : counted from the first PSN of the requester; None of a CNP or of a packet that cannot be read
    psn_on_wire : 24 bits
    payload_bytes : of a message
    rule : what a rule did to a packet of the end, or ``refused`` behind a refusal; empty where the peer's NIC got it
    """

    at_ps: int
    sender: str
    words: frozenset[str]
    psn: int | None
    psn_on_wire: int
    payload_bytes: int
    rule: str = ""

    @property
    def name(self) -> str:
        """The word that says most."""
        return max(self.words, key=PACKETS.index)


def see(datagram: Datagram, sender: str, first_psns: dict[str, int], now_ps: int) -> SeenPacket:
    """Describe a packet.

    Parameters
    ----------
    datagram : a single packet
    sender : ``end`` or ``peer``
    first_psns : of the requests of each side
    now_ps : instant
    """
    try:
        packet, _ = TransportPacket.decode(bytes(datagram.payload())[:-ICRC_BYTES])
    except MalformedPacket:
        return SeenPacket(
            at_ps=now_ps, sender=sender, words=frozenset({"any"}), psn=None, psn_on_wire=0, payload_bytes=0
        )
    requester = sender
    if packet.shape.is_response:
        requester = "end" if sender == "peer" else "peer"
    words = words_of(packet)
    psn = None if "cnp" in words else psn_compare(packet.bth.psn, first_psns[requester])
    return SeenPacket(
        at_ps=now_ps,
        sender=sender,
        words=words,
        psn=psn,
        psn_on_wire=packet.bth.psn,
        payload_bytes=len(packet.payload),
    )


class PeerForger:
    """Makes packets of one connection of the peer.

    Parameters
    ----------
    addresses : of the peer, of the other end, and of a stranger
    qp_num, end_qp_num : of the peer and of the other end
    path_mtu : bytes
    offered : memory of the other end that it offers, and memory of another protection domain; None without
    states : of the NIC
    """

    def __init__(
        self,
        addresses: tuple[bytes, bytes, bytes],
        numbers: tuple[int, int],
        path_mtu: int,
        offered: tuple[RemoteRange | None, RemoteRange | None],
        states: IcrcStates,
    ) -> None:
        self._own, self._end, self._stranger = addresses
        self._end_qp_num: Final = numbers[1]
        self._source_port: Final = NumberedSourcePorts().draw(GENERAL_SERVICES_QP)  # from where its messages came
        self._path_mtu: Final = path_mtu
        self._offered, self._foreign = offered
        self._states: Final = states
        self.msn = 0

    def note(self, datagram: Datagram) -> None:
        """Remember the newest MSN that the peer's own NIC has told."""
        try:
            packet, _ = TransportPacket.decode(bytes(datagram.payload())[:-ICRC_BYTES])
        except MalformedPacket:
            return
        aeth = packet.find(Aeth)
        if aeth is not None:
            self.msn = aeth.msn

    def answer(self, keys: AnswerKeys, psn: int) -> Datagram:
        """Make an answer.

        Parameters
        ----------
        keys : of the script
        psn : 24 bits, that it is about before the script's distance is added
        """
        if keys.kind == "cnp":
            return self._seal(cnp_bth(self._end_qp_num).encode() + CNP_BODY, self._own)
        if keys.kind == "ack":
            aeth = Aeth(AethKind.ACK, NO_CREDIT_COUNT, self.msn)
        elif keys.kind == "rnr-nak":
            aeth = Aeth(AethKind.RNR_NAK, keys.timer or 0, self.msn)
        else:
            aeth = Aeth(AethKind.NAK, NAKS[keys.kind], self.msn)
        bth = Bth(Opcode.ACKNOWLEDGE, self._end_qp_num, (psn + keys.psn_by) % PSN_MODULUS)
        return self._seal(bth.encode() + aeth.encode(), self._own)

    def request(self, keys: PacketKeys, psn: int) -> Datagram:
        """Make up a request packet to the end.

        Parameters
        ----------
        keys : of the script; ``packet`` is its opcode
        psn : 24 bits, the right one
        """
        opcode = REQUESTS[keys.packet or "write-only"]
        size_bytes = self._usual_bytes(opcode) if keys.payload_bytes is None else keys.payload_bytes
        bth = Bth(opcode, self._end_qp_num, psn, ack_request=SHAPES[opcode].ends_message)
        return self._made(TransportPacket(bth, (), bytes([_FILL]) * size_bytes), keys)

    def changed(self, datagram: Datagram, keys: PacketKeys) -> Datagram:
        """Set fields of a packet and make its ICRC right; what cannot be read stays as it is."""
        try:
            packet, _ = TransportPacket.decode(bytes(datagram.payload())[:-ICRC_BYTES])
        except MalformedPacket:
            return datagram
        made = self._made(packet, keys)
        return made._replace(ecn=datagram.ecn) if datagram.source == self._own else self._from_end(datagram, made)

    def _from_end(self, datagram: Datagram, made: Datagram) -> Datagram:
        """Give a changed packet of the end its way back."""
        flow = PacketFlow(datagram.source, datagram.destination, datagram.source_port, self._states)
        return flow.close(bytes(made.payload())[:-ICRC_BYTES])._replace(ecn=datagram.ecn)

    def _usual_bytes(self, opcode: int) -> int:
        if opcode == Opcode.ATOMIC_WRITE:
            return ATOMIC_BYTES
        return self._path_mtu if SHAPES[opcode].has_payload else 0

    def _made(self, packet: TransportPacket, keys: PacketKeys) -> Datagram:
        bth = packet.bth
        if keys.packet is not None:
            bth = bth._replace(opcode=REQUESTS[keys.packet])
        payload = bytes(packet.payload)
        if keys.payload_bytes is not None:
            payload = payload[: keys.payload_bytes].ljust(keys.payload_bytes, bytes([_FILL]))
        if not SHAPES[bth.opcode].has_payload:
            payload = b""
        pad_bytes = -len(payload) % 4
        values: dict[str, Any] = {
            "pad_bytes": keys.pad if keys.pad is not None else pad_bytes,
            "transport_version": keys.version,
            "partition_key": keys.partition,
            "ack_request": keys.asks,
        }
        bth = bth._replace(**{name: value for name, value in values.items() if value is not None})
        bth = bth._replace(psn=(bth.psn + (keys.psn_by or 0)) % PSN_MODULUS)
        headers = b"".join(self._headers(packet, bth.opcode, len(payload), keys))
        source = self._stranger if keys.source == "stranger" else self._own
        return self._seal(bth.encode() + headers + payload + bytes(pad_bytes), source)

    def _headers(self, packet: TransportPacket, opcode: int, payload_bytes: int, keys: PacketKeys) -> list[bytes]:
        found = []
        for kind in SHAPES[opcode].headers:
            header: Any = packet.find(kind)
            if header is None:
                header = self._usual(kind, opcode, payload_bytes)
            if isinstance(header, Reth | AtomicEth):
                header = self._aimed(header, keys)
            if isinstance(header, Reth) and keys.dma_bytes is not None:
                header = header._replace(dma_bytes=keys.dma_bytes)
            found.append(header.encode())
        return found

    def _usual(self, kind: type, opcode: int, payload_bytes: int) -> object:
        """Header that a right packet would have."""
        addr, rkey = (self._offered.addr, self._offered.rkey) if self._offered is not None else (0, 0)
        if kind is Reth:
            is_whole = SHAPES[opcode].position is Position.ONLY and SHAPES[opcode].has_payload
            return Reth(addr, rkey, payload_bytes if is_whole else 2 * self._path_mtu)
        if kind is AtomicEth:
            return AtomicEth(addr, rkey, 1, 0)
        if kind is Feth:
            return Feth(FlushPlacement.GLOBAL_VISIBILITY, 0)
        if kind is Aeth:
            return Aeth(AethKind.ACK, NO_CREDIT_COUNT, self.msn)
        return Ieth(rkey) if kind is Ieth else ImmediateData(0)

    def _aimed(self, header: Reth | AtomicEth, keys: PacketKeys) -> Reth | AtomicEth:
        addr, rkey = header.virtual_address, header.remote_key
        if keys.key == "wrong":
            rkey ^= _WRONG_KEY_BITS
        elif keys.key == "zero":
            rkey = 0
        elif keys.key == "foreign" and self._foreign is not None:
            addr, rkey = self._foreign.addr, self._foreign.rkey
        addr = (addr + (keys.address_by or 0)) % (1 << 64)
        return header._replace(virtual_address=addr, remote_key=rkey)

    def _seal(self, packet: bytes, source: bytes) -> Datagram:
        return PacketFlow(source, self._end, self._source_port, self._states).close(packet)
