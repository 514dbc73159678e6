"""Rows of a capture as Ethernet frames.

They are packets in the wire format of the run's transport, and PFC frames.

Addresses are made from the numbers of ports, so that they are those that the switches of the engine hash: IPv4
10.0.0.0 + NIC port, MAC 02:00 + port in four bytes. Switches route, so a frame bears the MAC addresses of its link.
The DSCP is 8 times the priority (a class selector: RFC 2474, 4.2.2).
Leaves out: the frame check sequence, as captures do; what the wire format has no field for, see `without_wire_form`.
"""

from __future__ import annotations

from ipaddress import IPv4Address
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from weftwork.base.flow_identity import flow_identity
from weftwork.base.grammar import plural
from weftwork.base.random import Stream, draw
from weftwork.engine.hashing import address
from weftwork.engine.rows.outcome import CAPTURE_KINDS
from weftwork.spec.wire_format import CaptureFacts, CommonNotes, PostedMessages, SentPacket
from weftwork.study.run.passed_switches import PassedSwitches
from weftwork.topology.port_names import port_names
from weftwork.wire.ethernet import ETHERTYPE_IPV4, FCS_BYTES, EthernetHeader
from weftwork.wire.hpcc_int import (
    QUEUE_UNIT_BYTES,
    RATES_BPS,
    SENT_UNIT_BYTES,
    TELEMETRY_BYTES,
    TELEMETRY_HOP_BYTES,
    IntHop,
    IntPath,
)
from weftwork.wire.pcap import CapturedPacket
from weftwork.wire.pfc import PFC_PRIORITIES, PriorityPause

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from weftwork.engine.outcome import Outcome
    from weftwork.engine.packet_input import PacketInput
    from weftwork.spec.fabric import Fabric
    from weftwork.spec.wire_format import WireFormat

__all__ = ["CapturedFrames"]

_OTHER_RATE: Final = 15  # of no rate in `RATES_BPS`
_LOCAL: Final = bytes([0x02, 0x00])
_PS_PER_NS: Final = 1_000
_FIRST_TTL: Final = 64  # RFC 1700, "IP time to live": the recommended default, as `Ipv4Header`
_LEAST_TTL: Final = 1  # chosen: a path of 64 switches has no smaller one that is alive
_OF_LINKS: Final = ("PAUSE", "LINK CREDIT")  # frames between neighbours, of no transport


class CapturedFrames:
    """The captured frames in the order of time.

    Parameters
    ----------
    engine_input : what ran
    outcome : with its messages and what was captured
    fabric : for the names of ports, and for the switches that answers have passed
    wire : format of the transport's packets
    """

    def __init__(self, engine_input: PacketInput, outcome: Outcome, fabric: Fabric, wire: WireFormat) -> None:
        self.engine_input = engine_input
        self.wire = wire
        self.transport = engine_input.transport
        self.rows = outcome.captured
        self.messages = outcome.messages
        self.kinds = np.array(CAPTURE_KINDS)[self.rows["kind"]]
        self.passed = PassedSwitches(fabric)
        ports = np.unique(self.rows["port"])
        self.names = dict(zip(ports.tolist(), port_names(fabric, ports), strict=True))
        names = ("source", "destination", "channel")
        self._flows = flow_identity(*(self.messages[name] for name in names))
        self._posted: dict[int, PostedMessages] = {}
        self._is_shown = np.isin(self.kinds, ("PAUSE", *wire.kinds))

    @property
    def count(self) -> int:
        """Number of frames."""
        return int(self._is_shown.sum())

    def __iter__(self) -> Iterator[CapturedPacket]:
        """Every frame except link credits, which Ethernet does not have, and packets without a form in the format."""
        shown = zip(self.kinds.tolist(), self._is_shown.tolist(), _records(self.rows), strict=True)
        for index, (kind, is_shown, row) in enumerate(shown):
            if not is_shown:
                continue
            packet = None if kind == "PAUSE" else self._sent(kind, row)
            data = self._pause(row) if packet is None else self._packet(packet, row) + self._telemetry(kind, index)
            is_cut = kind == "DATA" and bool(row["cut"])
            yield CapturedPacket(
                time_ns=row["at_ps"] // _PS_PER_NS,
                data=data[: row["size_bytes"] - FCS_BYTES] if is_cut else data,
                original_bytes=len(data),
                interface=self.names[row["port"]],
                comment="" if packet is None else self._comment(packet),
            )

    # Frames

    def _pause(self, row: dict[str, int]) -> bytes:
        priority = int(self.engine_input.class_priority[row["traffic_class"]])
        quanta = [0] * PFC_PRIORITIES
        quanta[priority] = row["amount"]
        q0, q1, q2, q3, q4, q5, q6, q7 = quanta
        pause = PriorityPause(class_enable_vector=1 << priority, quanta=(q0, q1, q2, q3, q4, q5, q6, q7))
        return pause.frame(_mac(row["port"])).encode()[:-FCS_BYTES]

    def _packet(self, packet: SentPacket, row: dict[str, int]) -> bytes:
        port = row["port"]
        peer = int(self.engine_input.port_peer[port])
        link = EthernetHeader(destination=_mac(peer), source=_mac(port), ethertype=ETHERTYPE_IPV4)
        return link.encode() + self.wire.encode(packet)

    def _sent(self, kind: Any, row: dict[str, int]) -> SentPacket:  # noqa: ANN401 - one of the names of kinds
        is_counted = kind in ("DATA", "REQUEST")
        hops = row["hops"] if is_counted else self.passed.between(row["origin"], row["port"])
        return SentPacket(
            kind=kind,
            source=IPv4Address(address(row["origin"])),
            target=IPv4Address(address(row["target"])),
            ttl=max(_LEAST_TTL, _FIRST_TTL - hops),
            dscp=8 * int(self.engine_input.class_priority[row["traffic_class"]]),
            entropy=row["entropy"],
            queue_pair=_queue_pair(row),
            seq=row["seq"],
            payload_bytes=row["payload_bytes"],
            asks_ack=bool(row["asks_ack"]),
            is_marked=bool(row["marked"]),
            is_cut=bool(row["cut"]),
            messages_done=row["msn"],
            credit_code=row["credit_code"],
            refused_seq=row["refused"],
            amount_bytes=row["amount"],
            posted=self._messages_of(row),
            transport=self.transport,
        )

    def _messages_of(self, row: dict[str, int]) -> PostedMessages:
        flow = _flow(row)
        if flow not in self._posted:
            first, end = np.searchsorted(self._flows, [flow, flow + 1])
            self._posted[flow] = PostedMessages(self.messages["size_bytes"][first:end], self.transport.mtu_bytes)
        return self._posted[flow]

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

    # What the wire format has no field for

    def _comment(self, packet: SentPacket) -> str:
        """A comment on facts that the frame cannot carry."""
        if packet.kind == "DATA" and packet.is_cut:
            return f"cut to its headers by a switch, which removed {packet.payload_bytes} bytes of payload"
        return self.wire.comment(packet)

    def without_wire_form(self) -> list[str]:
        """Name the simulated facts without a field in the wire format.

        Only the captured frames count.
        """
        rows = {kind: self.rows[self.kinds == kind] for kind in CAPTURE_KINDS}
        data = rows["DATA"]
        data_bytes, answer_bytes = self._larger(data, np.concatenate([rows["ACK"], rows["NAK"]]))
        cut, link_credits = int(data["cut"].sum()), len(rows["LINK CREDIT"])
        unshown = [
            plural(len(rows[kind]), kind)
            for kind in CAPTURE_KINDS
            if len(rows[kind]) and kind not in (*self.wire.kinds, *_OF_LINKS)
        ]
        texts = {
            "copies": (len(data), "transmission numbers of DATA (which copy of a packet it is)"),
            "left_out": (unshown, f"{' and '.join(unshown)}: left out"),
            "cut": (cut, f"{plural(cut, 'packet')} cut by switches: shown as the first bytes of the whole packet"),
            "telemetry": (
                self._shows_telemetry,
                f"telemetry: shown as HPCC's block behind the IP packet, since {self.wire.name} has no field for it",
            ),
            "data_fields": (data_bytes, f"fields of policies in DATA, up to {data_bytes} bytes: left out"),
            "answer_fields": (answer_bytes, f"echoes in ACKs and NAKs, up to {answer_bytes} bytes: left out"),
            "link_credits": (
                link_credits, f"{plural(link_credits, 'frame')} of credit between links: left out"
            ),
            "answer_hops": (
                self._answers_between(),
                "switches on the path of an answer: the TTL counts the switches of a shortest path",
            ),
        }  # fmt: skip
        common = CommonNotes(**{name: text for name, (is_there, text) in texts.items() if is_there})
        facts = CaptureFacts(rows=rows, messages=self.messages, transport=self.transport, common=common)
        return [text for text in self.wire.notes(facts) if text]

    def _larger(self, data: NDArray[np.void], answers: NDArray[np.void]) -> tuple[int, int]:
        """Most simulated bytes beyond the format's frame, in uncut DATA and answers."""
        whole = data[data["cut"] == 0]
        most = [0]
        for row in _records(whole):
            is_first = self._messages_of(row).place(row["seq"]).is_first
            frame_bytes = self.wire.data_frame_bytes(row["payload_bytes"], is_first)
            most.append(row["size_bytes"] - frame_bytes - self._telemetry_bytes(row["hop_count"]))
        is_told = answers["size_bytes"] > self.transport.ack_bytes
        telemetry_bytes = np.where(is_told, self._telemetry_bytes(answers["hop_count"]), 0)
        beyond = answers["size_bytes"] - self.wire.answer_frame_bytes - telemetry_bytes
        return max(most), max([0, *beyond.tolist()])

    def _answers_between(self) -> int:
        """Number of packets whose passed switches were not counted."""
        is_counted = np.isin(self.kinds, ("DATA", "REQUEST", *_OF_LINKS))
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
