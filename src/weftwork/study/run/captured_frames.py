"""Rows of a capture as Ethernet frames.

They are RoCEv2 packets with their ICRC, and PFC frames.

Addresses are made from the numbers of ports, so that they are those that the switches of the engine hash: IPv4
10.0.0.0 + NIC port, MAC 02:00 + port in four bytes. Switches route, so a frame bears the MAC addresses of its link.
The UDP source port is the entropy of the packet, the number of the queue pair that of the flow, both ways; the PSN is
the packet's number on its queue pair, from 0; the DSCP is 8 times the priority (a class selector: RFC 2474, 4.2.2).
Source: IBTA vol. 1, chapter 9 and annex A17, as encoded in `weftwork.wire`.
Leaves out: the frame check sequence, as captures do; what RoCEv2 has no field for, see `without_wire_form`.
"""

from __future__ import annotations

from ipaddress import IPv4Address
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from weftwork.base.flow_identity import flow_identity
from weftwork.base.grammar import plural
from weftwork.base.random import Stream, draw
from weftwork.engine.hashing import address
from weftwork.engine.outcome import CAPTURE_KINDS
from weftwork.study.results.record import port_names
from weftwork.study.run.passed_switches import PassedSwitches
from weftwork.wire.credits import NO_CREDIT_COUNT
from weftwork.wire.ethernet import ETHERTYPE_IPV4, FCS_BYTES, EthernetHeader
from weftwork.wire.extended import Aeth, AethKind, Nak, Reth
from weftwork.wire.hpcc_int import (
    QUEUE_UNIT_BYTES,
    RATES_BPS,
    SENT_UNIT_BYTES,
    TELEMETRY_BYTES,
    TELEMETRY_HOP_BYTES,
    IntHop,
    IntPath,
)
from weftwork.wire.ib import BTH_BYTES, CNP_BODY, PSN_MODULUS, Bth, cnp_bth, psn_add
from weftwork.wire.icrc import ICRC_BYTES
from weftwork.wire.ip import ECN_CE, ECN_ECT0, ECN_NOT_ECT, Ipv4Header
from weftwork.wire.opcodes import VENDOR_OPCODES, Opcode
from weftwork.wire.pcap import CapturedPacket
from weftwork.wire.pfc import PFC_PRIORITIES, PriorityPause
from weftwork.wire.rocev2 import RoceV2Packet, rocev2_ack_frame_bytes, rocev2_data_frame_bytes
from weftwork.wire.transport import transport_packet
from weftwork.wire.udp import ROCE_V2_PORT, UDP_HEADER_BYTES, UdpHeader

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from weftwork.engine.outcome import Outcome
    from weftwork.engine.packet_input import PacketInput
    from weftwork.spec.fabric import Fabric

__all__ = ["CapturedFrames"]

_OTHER_RATE: Final = 15  # of no rate in `RATES_BPS`
_LOCAL: Final = bytes([0x02, 0x00])
_PS_PER_NS: Final = 1_000
_FIRST_TTL: Final = 64  # RFC 1700, "IP time to live": the recommended default, as `Ipv4Header`
_LEAST_TTL: Final = 1  # chosen: a path of 64 switches has no smaller one that is alive
_LONGEST_DMA_BYTES: Final = 0xFFFFFFFF  # IBTA vol. 1, 9.3.3: 32 bits
_OWN_OPCODES: Final = dict(zip(("CREDIT", "PROBE", "REQUEST"), VENDOR_OPCODES, strict=False))
_OWN_BODY: Final = bytes(4)  # as large as the AETH of an ACK, which these packets are as long as
_OPCODES: Final = {
    (True, True): Opcode.WRITE_ONLY,
    (True, False): Opcode.WRITE_FIRST,
    (False, False): Opcode.WRITE_MIDDLE,
    (False, True): Opcode.WRITE_LAST,
}


class _InMessage(NamedTuple):
    """Place of a data packet in its message."""

    is_first: bool
    is_last: bool
    message_bytes: int
    bytes_before: int  # of earlier messages of its queue pair


class _Posted:
    """The messages of one queue pair, cut into packets."""

    def __init__(self, sizes_bytes: NDArray[np.int64], mtu_bytes: int) -> None:
        self.sizes_bytes = sizes_bytes
        self.ends = np.cumsum(np.maximum(1, -(-sizes_bytes // mtu_bytes)))
        self.bytes_before = np.cumsum(sizes_bytes) - sizes_bytes

    def place(self, seq: int) -> _InMessage:
        ordinal = int(np.searchsorted(self.ends, seq, side="right"))
        first = int(self.ends[ordinal - 1]) if ordinal else 0
        return _InMessage(
            is_first=seq == first,
            is_last=seq + 1 == self.ends[ordinal],
            message_bytes=int(self.sizes_bytes[ordinal]),
            bytes_before=int(self.bytes_before[ordinal]),
        )


class CapturedFrames:
    """The captured frames in the order of time.

    Parameters
    ----------
    engine_input : what ran
    outcome : with its messages and what was captured
    fabric : for the names of ports, and for the switches that answers have passed
    """

    def __init__(self, engine_input: PacketInput, outcome: Outcome, fabric: Fabric) -> None:
        self.engine_input = engine_input
        self.transport = engine_input.transport
        self.rows = outcome.captured
        self.messages = outcome.messages
        self.kinds = np.array(CAPTURE_KINDS)[self.rows["kind"]]
        self.passed = PassedSwitches(fabric)
        ports = np.unique(self.rows["port"])
        self.names = dict(zip(ports.tolist(), port_names(fabric, ports), strict=True))
        names = ("source", "destination", "channel")
        self._flows = flow_identity(*(self.messages[name] for name in names))
        self._posted: dict[int, _Posted] = {}

    @property
    def count(self) -> int:
        """Number of frames."""
        return int((self.kinds != "LINK CREDIT").sum())

    def __iter__(self) -> Iterator[CapturedPacket]:
        """Every frame except link credits, which Ethernet does not have."""
        for index, (kind, row) in enumerate(zip(self.kinds.tolist(), _records(self.rows), strict=True)):
            if kind == "LINK CREDIT":
                continue
            data = self._pause(row) if kind == "PAUSE" else self._packet(kind, row) + self._telemetry(kind, index)
            is_cut = kind == "DATA" and bool(row["cut"])
            yield CapturedPacket(
                time_ns=row["at_ps"] // _PS_PER_NS,
                data=data[: row["size_bytes"] - FCS_BYTES] if is_cut else data,
                original_bytes=len(data),
                interface=self.names[row["port"]],
                comment=self._comment(kind, row),
            )

    # Frames

    def _pause(self, row: dict[str, int]) -> bytes:
        priority = int(self.engine_input.class_priority[row["traffic_class"]])
        quanta = [0] * PFC_PRIORITIES
        quanta[priority] = row["amount"]
        q0, q1, q2, q3, q4, q5, q6, q7 = quanta
        pause = PriorityPause(class_enable_vector=1 << priority, quanta=(q0, q1, q2, q3, q4, q5, q6, q7))
        return pause.frame(_mac(row["port"])).encode()[:-FCS_BYTES]

    def _packet(self, kind: str, row: dict[str, int]) -> bytes:
        bth, body = self._data(row) if kind == "DATA" else self._control(kind, row)
        port, origin = row["port"], row["origin"]
        is_counted = kind in ("DATA", "REQUEST")
        hops = row["hops"] if is_counted else self.passed.between(origin, port)
        transport_bytes = BTH_BYTES + len(body) + ICRC_BYTES
        ip = Ipv4Header(
            source=IPv4Address(address(origin)),
            destination=IPv4Address(address(row["target"])),
            payload_bytes=UDP_HEADER_BYTES + transport_bytes,
            dscp=8 * int(self.engine_input.class_priority[row["traffic_class"]]),
            ecn=(ECN_CE if row["marked"] else ECN_ECT0) if kind == "DATA" else ECN_NOT_ECT,
            ttl=max(_LEAST_TTL, _FIRST_TTL - hops),
        )
        udp = UdpHeader(source_port=row["entropy"], destination_port=ROCE_V2_PORT, payload_bytes=transport_bytes)
        peer = int(self.engine_input.port_peer[port])
        link = EthernetHeader(destination=_mac(peer), source=_mac(port), ethertype=ETHERTYPE_IPV4)
        return link.encode() + RoceV2Packet(ip=ip, udp=udp, bth=bth, body=body).encode()

    def _data(self, row: dict[str, int]) -> tuple[Bth, bytes]:
        place = self._place(row)
        bth = Bth(
            _OPCODES[place.is_first, place.is_last],
            destination_qp=_queue_pair(row),
            psn=row["seq"] % PSN_MODULUS,
            ack_request=bool(row["asks_ack"]),
        )
        reth = Reth(
            virtual_address=place.bytes_before,
            remote_key=_queue_pair(row),
            dma_bytes=min(place.message_bytes, _LONGEST_DMA_BYTES),
        )
        made = transport_packet(bth, (reth,) if place.is_first else (), bytes(row["payload_bytes"]))
        return made.bth, made.body()

    def _place(self, row: dict[str, int]) -> _InMessage:
        flow = _flow(row)
        if flow not in self._posted:
            first, end = np.searchsorted(self._flows, [flow, flow + 1])
            self._posted[flow] = _Posted(self.messages["size_bytes"][first:end], self.transport.mtu_bytes)
        return self._posted[flow].place(row["seq"])

    def _control(self, kind: str, row: dict[str, int]) -> tuple[Bth, bytes]:
        queue_pair, psn = _queue_pair(row), row["seq"] % PSN_MODULUS
        if kind == "CNP":
            return cnp_bth(queue_pair), CNP_BODY
        if kind in _OWN_OPCODES:
            return Bth(_OWN_OPCODES[kind], queue_pair, psn), _OWN_BODY
        is_ack = kind == "ACK"
        credit_code = row["credit_code"] if self.transport.end_to_end_credits else NO_CREDIT_COUNT
        aeth = Aeth(
            AethKind.ACK if is_ack else AethKind.NAK,
            credit_code if is_ack else Nak.PSN_SEQUENCE_ERROR,
            msn=row["msn"] % PSN_MODULUS,
        )
        # an ACK names the last packet that it acknowledges, a NAK the one that is missing (IBTA vol. 1, 9.7.5)
        bth = Bth(Opcode.ACKNOWLEDGE, queue_pair, psn_add(psn, -1) if is_ack else psn, becn=bool(row["marked"]))
        return bth, aeth.encode()

    # Telemetry

    @property
    def _shows_telemetry(self) -> bool:
        """Whether there is telemetry in HPCC's format and size."""
        sizes_bytes = self.transport.telemetry_bytes, self.transport.telemetry_hop_bytes
        return self.engine_input.has_telemetry and sizes_bytes == (TELEMETRY_BYTES, TELEMETRY_HOP_BYTES)

    def _telemetry_bytes(self, hop_count: Any) -> Any:  # noqa: ANN401 - a number or an array of them
        return (TELEMETRY_BYTES + TELEMETRY_HOP_BYTES * hop_count) if self._shows_telemetry else 0 * hop_count

    def _telemetry(self, kind: str, index: int) -> bytes:
        """The telemetry block behind the IP packet.

        Ethernet has its trailer there; empty if the packet has no telemetry.
        """
        row = self.rows[index]
        is_answer = kind in ("ACK", "NAK") and row["size_bytes"] > self.transport.ack_bytes
        if not self._shows_telemetry or not (is_answer or kind == "DATA"):
            return b""
        count = int(row["hop_count"])
        columns = (row[f"hop_{name}"][:count].tolist() for name in ("rate_bps", "at_ps", "tx_bytes", "queue_bytes"))
        hops = tuple(
            IntHop(
                rate_code=RATES_BPS.index(rate_bps) if rate_bps in RATES_BPS else _OTHER_RATE,
                time_ns=at_ps // _PS_PER_NS % (1 << 24),
                sent_units=tx_bytes // SENT_UNIT_BYTES % (1 << 20),
                queue_units=min(queue_bytes // QUEUE_UNIT_BYTES, 0xFFFF),
            )
            for rate_bps, at_ps, tx_bytes, queue_bytes in zip(*columns, strict=True)
        )
        path_id = int(np.bitwise_xor.reduce(row["hop_port"][:count], initial=0)) % (1 << 12)
        return IntPath(path_id, hops).encode()

    # What RoCEv2 has no field for

    def _comment(self, kind: str, row: dict[str, int]) -> str:
        """A comment on facts that the frame cannot carry."""
        if kind == "DATA" and row["cut"]:
            return f"cut to its headers by a switch, which removed {row['payload_bytes']} bytes of payload"
        if kind == "CREDIT":
            return f"CREDIT: {row['amount']} bytes granted so far"
        if kind == "REQUEST":
            return f"REQUEST: {row['amount']} bytes wanted"
        if kind == "PROBE":
            return "PROBE: asks for an ACK"
        is_told = kind == "NAK" and row["refused"] >= 0 and (row["cut"] or self._tells_kept)
        if not is_told:
            return ""
        psn = row["refused"] % PSN_MODULUS
        return f"NAK of PSN {psn:#x}, which came {'cut to its headers' if row['cut'] else 'early and is kept'}"

    @property
    def _tells_kept(self) -> bool:
        """Whether a NAK names the packet that the receiver keeps behind a gap."""
        return self.transport.recovery == "selective-repeat"

    def without_wire_form(self) -> list[str]:
        """Name the simulated facts without a field in RoCEv2.

        Only the captured frames count.
        """
        of = {kind: self.rows[self.kinds == kind] for kind in CAPTURE_KINDS}
        data, answers, own = of["DATA"], np.concatenate([of["ACK"], of["NAK"]]), sum(len(of[k]) for k in _OWN_OPCODES)
        unnamed_data, unnamed_answers = self._larger(data, answers)
        cut = int(data["cut"].sum())
        told = int((of["NAK"]["refused"] >= 0).sum()) if self._tells_kept else int(of["NAK"]["cut"].sum())
        padded = int((data["payload_bytes"] % 4 > 0).sum())
        steps = self._answers_between()
        notes = [
            (len(data), "transmission numbers of DATA (which copy of a packet it is)"),
            (own, f"{own:,} CREDIT, PROBE or REQUEST: opcodes 0xc0 to 0xc2, left to vendors; amounts are comments"),
            (
                cut,
                f"{plural(cut, 'packet')} cut by switches: shown as the first bytes of the whole packet",
            ),
            (told, f"{plural(told, 'NAK names', 'NAKs name')} the packet behind the NAK: shown as a comment"),
            (
                self._shows_telemetry,
                "telemetry: shown as HPCC's block behind the IP packet, since RoCEv2 has no field for it",
            ),
            (unnamed_data, f"fields of policies in DATA, up to {unnamed_data} bytes: left out"),
            (unnamed_answers, f"echoes in ACKs and NAKs, up to {unnamed_answers} bytes: left out"),
            (len(of["LINK CREDIT"]), f"{plural(len(of['LINK CREDIT']), 'frame')} of credit between links: left out"),
            (
                padded,
                f"{plural(padded, 'payload is', 'payloads are')} not a multiple of 4 bytes: padded in the capture only",
            ),
            (self._has_longer, "lengths of messages above 4 GiB: shown as the largest length of an RETH"),
            (steps, "switches on the path of an answer: the TTL counts the switches of a shortest path"),
        ]
        return [text for count, text in notes if count]

    @property
    def _has_longer(self) -> bool:
        """Whether the job has a message that is too long for an RETH."""
        return bool((self.messages["size_bytes"] > _LONGEST_DMA_BYTES).any())

    def _larger(self, data: NDArray[np.void], answers: NDArray[np.void]) -> tuple[int, int]:
        """Most simulated bytes beyond RoCEv2's frame, in uncut DATA and answers."""
        whole = data[data["cut"] == 0]
        most = [0]
        for row in _records(whole):
            frame_bytes = rocev2_data_frame_bytes(row["payload_bytes"], first=self._place(row).is_first)
            most.append(row["size_bytes"] - frame_bytes - self._telemetry_bytes(row["hop_count"]))
        is_told = answers["size_bytes"] > self.transport.ack_bytes
        telemetry_bytes = np.where(is_told, self._telemetry_bytes(answers["hop_count"]), 0)
        beyond = answers["size_bytes"] - rocev2_ack_frame_bytes() - telemetry_bytes
        return max(most), max([0, *beyond.tolist()])

    def _answers_between(self) -> int:
        """Number of packets whose passed switches were not counted."""
        is_counted = np.isin(self.kinds, ("DATA", "REQUEST", "PAUSE", "LINK CREDIT"))
        ports = np.unique(self.rows["port"][~is_counted])
        return sum(self.passed.is_of_switch(port) for port in ports.tolist())


def _records(rows: NDArray[np.void]) -> Iterator[dict[str, int]]:
    """Rows by the names of their numbers, without the fields of switches."""
    names = [name for name in rows.dtype.names or () if not rows.dtype[name].shape]
    columns = [rows[name].tolist() for name in names]
    return (dict(zip(names, values, strict=True)) for values in zip(*columns, strict=True))


def _flow(row: dict[str, int]) -> int:
    return flow_identity(row["source"], row["destination"], row["channel"])


def _queue_pair(row: dict[str, int]) -> int:
    """Number of the queue pair, equal in both directions, for a hash.

    See docs/models/packet-engine.md, section Hash.
    """
    return draw(0, Stream.PATH_CHOICE, _flow(row), 1, 0) & 0xFFFFFF


def _mac(port: int) -> bytes:
    """Locally administered address of a port (RFC 7042, 2.1)."""
    return _LOCAL + port.to_bytes(4, "big")
