"""Explain a capture of RDMA packets: packets, losses, retransmissions, and the culprit.

Source: IBTA vol. 1, 9.7 (reliable service), annex A17 (RoCEv2, CNP), as encoded in ``weftwork.wire``.
Leaves out: unreliable datagrams beyond counting, what the payload means, and what was not captured.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final, NamedTuple

from weftwork.base.grammar import plural
from weftwork.rdma.captured_trains import cut_train, is_cut_train
from weftwork.rdma.coverage import CaptureCoverage
from weftwork.rdma.flows import CaptureFlow, CaptureFlows, FlowKey
from weftwork.rdma.packet_words import cm_words, header_words
from weftwork.rdma.psn_order import PATH_MTUS_BYTES, Verdict
from weftwork.wire.cm import CmReject
from weftwork.wire.dissection import Carrier, Dissection, Fate, dissect
from weftwork.wire.extended import Aeth, AethKind, Nak, Reth
from weftwork.wire.ib import psn_add, psn_compare
from weftwork.wire.opcodes import Opcode, Position, TransportService
from weftwork.wire.pfc import PFC_PRIORITIES
from weftwork.wire.rnr import rnr_timer_us
from weftwork.wire.selective_nak import SelectiveNak

if TYPE_CHECKING:
    from weftwork.wire.opcodes import OpcodeShape
    from weftwork.wire.pcap import CapturedPacket
    from weftwork.wire.pfc import PriorityPause
    from weftwork.wire.transport import TransportPacket

__all__ = ["NAK_WORDS", "CaptureExplainer", "PacketRow"]

NAK_WORDS: Final[dict[int, str]] = {
    Nak.PSN_SEQUENCE_ERROR: "PSN sequence error",
    Nak.INVALID_REQUEST: "invalid request",
    Nak.REMOTE_ACCESS_ERROR: "remote access error",
    Nak.REMOTE_OPERATIONAL_ERROR: "remote operational error",
    Nak.INVALID_RD_REQUEST: "invalid RD request",
}
_RELIABLE: Final = {TransportService.RC, TransportService.RD, TransportService.XRC}
_ORDERED: Final = {*_RELIABLE, TransportService.UC}


class PacketRow(NamedTuple):
    """A packet in words.

    Parameters
    ----------
    number : in the capture, from 1
    time_ns : as captured
    source, destination : IP addresses, GIDs, LIDs or MAC addresses, whatever the packet has
    name : such as ``RC WRITE first`` or ``PFC pause``
    destination_qp, psn : None where the packet has none
    size_bytes : on the link
    payload_bytes : of a message
    detail : the values in its headers
    notes : what stands out, such as ``sent again``
    """

    number: int
    time_ns: int
    source: str
    destination: str
    name: str
    destination_qp: int | None
    psn: int | None
    size_bytes: int
    payload_bytes: int
    detail: str
    notes: tuple[str, ...]


class CaptureExplainer:
    """Takes the frames of a capture in order and collects a summary.

    Parameters
    ----------
    frames, packets, trains : of the capture so far, packets in them, and frames that hold several packets
    kinds : packets by what carries them
    flows : of RDMA
    first_at : number of the first packet with a kind of trouble, by that kind
    pauses : PFC frames that stop at least a priority, by MAC address of the sender
    unread : packets of RDMA that could not be read to their end although the capture has them
    rejections : REJ messages by who refused, who had asked, the port and the reason
    heard_ns : when each end was heard last, by its address
    unmatched : counts of answers whose flow is not known, by their name
    coverage : frames that were read, cut and passed over, and what was checked
    """

    def __init__(self) -> None:
        self.packets = 0
        self.frames = 0
        self.trains = 0
        self.kinds: Counter[Carrier] = Counter()
        self.flows = CaptureFlows()
        self.first_at: dict[str, int] = {}
        self.pauses: Counter[str] = Counter()
        self.unread = 0
        self.unmatched: Counter[str] = Counter()
        self.rejections: Counter[tuple[str, str, int | None, int]] = Counter()
        self.heard_ns: dict[str, int] = {}
        self.coverage = CaptureCoverage()
        self.first_ns: int | None = None
        self.last_ns = 0

    def explain(self, packet: CapturedPacket) -> list[PacketRow]:
        """Explain the next frame in words.

        A frame has several packets if the system had not cut them.
        """
        self.frames += 1
        found = dissect(packet)
        if found.kind is Carrier.ROCE_V2 and found.has_wrong_icrc:
            cut = cut_train(packet, found)
            if cut:
                self.trains += 1
                parts = [dissect(part) for part in cut]
                for part in parts:
                    part.tunnels = found.tunnels
                    part.is_marked = part.is_marked or found.is_marked
                self.coverage.take_frame(self.frames, packet, parts[0])
                return [self._explain(*part) for part in zip(cut, parts, strict=True)]
        self.coverage.take_frame(self.frames, packet, found)
        return [self._explain(packet, found)]

    def _explain(self, packet: CapturedPacket, found: Dissection) -> PacketRow:
        self.packets += 1
        self.first_ns = packet.time_ns if self.first_ns is None else min(self.first_ns, packet.time_ns)
        self.last_ns = max(self.last_ns, packet.time_ns)
        self.kinds[found.kind] += 1
        self.coverage.take_packet(found)
        notes: list[str] = []
        source, destination = _ends(found)
        name, detail = found.kind.value, ""
        qp = psn = None
        payload_bytes = 0
        if found.transport is not None:
            self.heard_ns[source] = packet.time_ns
        if found.pause is not None:
            name, detail = self._pause(found.pause, source)
        elif found.transport is not None:
            transport = found.transport
            name = f"CM {found.cm.NAME}" if found.cm is not None else _name(transport)
            detail = cm_words(found.cm) if found.cm is not None else header_words(transport)
            qp, psn, payload_bytes = transport.bth.destination_qp, transport.bth.psn, len(transport.payload)
            self._transport(found, transport, FlowKey(source, destination, qp), notes)
        if found.is_rdma and found.has_wrong_icrc:
            words = f"ICRC is {found.icrc_found:#010x}, should be {found.icrc_wanted:#010x}"
            self._note(notes, "icrc", words)
        if found.problem and found.is_rdma:
            if found.fate is not Fate.CUT:  # cuts are counted by the coverage; they are no fault of the packet
                self.unread += 1
                self.first_at.setdefault("unread", self.frames)
            notes.append(f"not read to its end: {found.problem}")
        elif found.fate is not Fate.READ and found.transport is None:
            detail = found.problem or ": ".join(part for part in (found.reason, found.example) if part)
        return PacketRow(
            number=self.frames,
            time_ns=packet.time_ns,
            source=source,
            destination=destination,
            name=name,
            destination_qp=qp,
            psn=psn,
            size_bytes=packet.original_bytes,
            payload_bytes=payload_bytes,
            detail=detail,
            notes=tuple(notes),
        )

    def _note(self, notes: list[str], kind: str, text: str) -> None:
        self.first_at.setdefault(kind, self.frames)
        notes.append(text)

    def _pause(self, pause: PriorityPause, source: str) -> tuple[str, str]:
        enabled = [p for p in range(PFC_PRIORITIES) if pause.is_enabled(p)]
        words = ", ".join(f"priority {p} {pause.quanta[p]} quanta" for p in enabled) or "no priority"
        if not any(pause.quanta[p] for p in enabled):
            return "PFC resume", words
        self.pauses[source] += 1
        self.first_at.setdefault("pause", self.frames)
        return "PFC pause", words

    def _transport(self, found: Dissection, packet: TransportPacket, key: FlowKey, notes: list[str]) -> None:
        flow = self.flows.at(key)
        flow.packets += 1
        if found.is_marked:
            flow.marked += 1
            self._note(notes, "marked", "marked by a switch (ECN)")
        if found.fate is Fate.CUT:
            notes.append("cut short by the capture, ICRC not checked")
        elif found.icrc_unchecked:
            notes.append(f"ICRC not checked: {found.icrc_unchecked}")
        elif found.has_wrong_icrc:
            flow.wrong_icrc += 1
            return  # a receiver drops it, so that it says nothing about the order
        self.flows.hear(key)
        if found.udp is not None:
            if flow.source_ports and found.udp.source_port not in flow.source_ports:
                self.first_at.setdefault("ports", self.frames)
            flow.source_ports[found.udp.source_port] += 1
        if found.cm is not None:
            self.flows.connection(key.source, key.destination, found.cm)
        if isinstance(found.cm, CmReject):
            port = self.flows.asked_port(key.destination, found.cm.remote_comm_id)
            self.rejections[key.source, key.destination, port, found.cm.reason] += 1
            self.first_at.setdefault("rejected", self.frames)
        shape = packet.shape
        if found.fate is Fate.CUT and is_cut_train(packet):
            notes.append("several packets in one frame, of which the capture has the beginning")
            flow.requests.forget()
            flow.read_responses.forget()
            return
        if shape.service is TransportService.CNP:
            self._congestion(key, notes)
        elif shape.is_response:
            self._response(key, packet, shape, notes)
        elif shape.service in _ORDERED:
            self._request(flow, packet, shape, notes)
        else:
            flow.payload_bytes += len(packet.payload)
            flow.messages += 1

    def _congestion(self, key: FlowKey, notes: list[str]) -> None:
        self._note(notes, "cnp", f"tells QP {key.destination_qp:#x} to slow down")
        answered = self.flows.answered(key, None)
        if answered is None:
            self.unmatched["CNP"] += 1
        else:
            answered.cnps += 1

    def _request(self, flow: CaptureFlow, packet: TransportPacket, shape: OpcodeShape, notes: list[str]) -> None:
        payload_bytes = len(packet.payload)
        flow.payload_bytes += payload_bytes
        if shape.position in {Position.FIRST, Position.MIDDLE}:
            flow.learn_path_mtu(payload_bytes)
        psns = frozenset({1})
        reth = packet.find(Reth)
        if shape.operation == Opcode.READ_REQUEST and reth is not None:
            sizes_bytes = (flow.path_mtu_bytes,) if flow.path_mtu_bytes else PATH_MTUS_BYTES
            psns = frozenset(max(-(-reth.dma_bytes // size_bytes), 1) for size_bytes in sizes_bytes)
            flow.last_read = packet.bth.psn, reth.dma_bytes
        verdict, missing = flow.requests.see(packet.bth.psn, psns)
        self._order(flow, packet.bth.psn, verdict, missing, notes)
        if verdict is Verdict.SENT_AGAIN and shape.operation == Opcode.READ_REQUEST:
            flow.read_responses.nak(packet.bth.psn)
        is_new = verdict is not Verdict.SENT_AGAIN or missing < 0
        if shape.ends_message and is_new:
            flow.messages += 1

    def _order(self, flow: CaptureFlow, psn: int, verdict: Verdict, missing: int, notes: list[str]) -> None:
        flow.missing += missing
        self.coverage.ordered += 1
        if verdict is Verdict.SENT_AGAIN:
            flow.sent_again += 1
            flow.sent_again_since[psn] += 1
            self._note(notes, "sent again", "sent again")
        elif verdict is Verdict.LATE:
            flow.late += 1
            self._note(notes, "late", "late: packets behind it came first")
        elif verdict is Verdict.GAP:
            self._note(notes, "gap", f"{plural(missing, 'PSN')} missing in front of it")
        elif verdict is Verdict.NEW_START:
            self.coverage.new_starts += 1
            notes.append("PSN far from the last: a new connection, or packets that were not captured")

    def _response(self, key: FlowKey, packet: TransportPacket, shape: OpcodeShape, notes: list[str]) -> None:
        psn = packet.bth.psn
        answered = self.flows.answered(key, psn)
        aeth = packet.find(Aeth)
        if answered is None:
            self.unmatched[shape.name] += 1
        if packet.payload and answered is not None:
            answered.payload_bytes += len(packet.payload)
            if shape.position in {Position.FIRST, Position.MIDDLE}:
                answered.learn_path_mtu(len(packet.payload))
            self._read_response(answered, psn, shape, notes)
        if aeth is None:
            return
        self.coverage.answers += 1
        kept = SelectiveNak.of_aeth(aeth)
        if aeth.kind is AethKind.NAK or kept is not None:
            code = aeth.value if kept is None else Nak.PSN_SEQUENCE_ERROR
            words = NAK_WORDS.get(code, f"code {code}")
            text = f"{words}, wants PSN {psn:#x}" if code == Nak.PSN_SEQUENCE_ERROR else words
            if kept is not None:
                text += f", keeps {kept.packets} from PSN {psn_add(psn, kept.ahead):#x} on"
            self._note(notes, words, text)
            if answered is not None:
                answered.naks[words] += 1
                answered.requests.nak(psn)
        elif aeth.kind is AethKind.RNR_NAK:
            self._note(notes, "rnr", f"receiver not ready: wait {rnr_timer_us(aeth.value) / 1000:g} ms")
            if answered is not None:
                answered.rnr_naks += 1
                answered.requests.nak(psn)
        elif answered is not None and shape.operation == Opcode.ACKNOWLEDGE:
            answered.acks += 1

    def _read_response(self, flow: CaptureFlow, psn: int, shape: OpcodeShape, notes: list[str]) -> None:
        responses = flow.read_responses
        last = responses.last
        # other requests take PSNs between two READs
        if shape.starts_message and (last is None or psn_compare(psn, last) > 0):
            responses.skip_to(psn)
        verdict, missing = responses.see(psn)
        self._order(flow, psn, verdict, missing, notes)


def _name(packet: TransportPacket) -> str:
    """Name of the opcode; of a refusing ACK, the name of its NAK."""
    aeth = packet.find(Aeth)
    if packet.shape.operation != Opcode.ACKNOWLEDGE or aeth is None or aeth.kind is AethKind.ACK:
        return packet.shape.name
    return packet.shape.name.replace("ACK", aeth.kind.name.replace("_", " "))


def _ends(found: Dissection) -> tuple[str, str]:
    if found.ip is not None:
        return str(found.ip.source), str(found.ip.destination)
    if found.lrh is not None:
        return f"LID {found.lrh.source_lid}", f"LID {found.lrh.destination_lid}"
    if found.ethernet is not None:
        return found.ethernet.source.hex(":"), found.ethernet.destination.hex(":")
    return "", ""
