"""Flows of a capture: packets from one sender to one queue pair.

Two flows make a connection.
Source: IBTA vol. 1, 9.7 (responses carry PSNs of the requester) and 12.6 (a REQ and a REP name the queue pairs).
Leaves out: queue pairs that are destroyed and made again under the same number without a REQ.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from weftwork.rdma.psn_order import PsnOrder
from weftwork.wire.cm import CmReply, CmRequest
from weftwork.wire.ib import psn_add, psn_compare
from weftwork.wire.rdma_ip_cm import port_of_service

if TYPE_CHECKING:
    from weftwork.wire.cm import CmMessage

__all__ = ["CaptureFlow", "CaptureFlows", "FlowKey"]


class FlowKey(NamedTuple):
    """Visible identity of a flow.

    A packet does not name the queue pair that sends it.
    """

    source: str
    destination: str
    destination_qp: int

    def __str__(self) -> str:
        return f"{self.source} -> {self.destination} QP {self.destination_qp:#x}"


@dataclass(slots=True)
class CaptureFlow:
    """Statistics of a flow, including responses to it.

    Responses do not count in the flow that carries them.

    Parameters
    ----------
    key : its ends
    packets : requests, responses and notifications that it carries
    payload_bytes : in SEND and WRITE packets and READ responses, those sent again included
    messages : SENDs, WRITEs, READs and atomics that were seen to end
    sent_again, late, missing : packets by ``Verdict``; of ``missing``, PSNs
    marked : packets with the ECN mark of a switch
    wrong_icrc : packets whose ICRC is wrong
    acks, naks, rnr_naks, cnps : answers to this flow; of ``naks``, by code
    path_mtu_bytes : size of full packets, as far as one was seen
    last_read : PSN and size in bytes of the last READ request
    source_ports : of UDP, with the packets that came from each
    sent_again_since : PSNs sent again since the other end was heard last, with how often
    """

    key: FlowKey
    packets: int = 0
    payload_bytes: int = 0
    messages: int = 0
    sent_again: int = 0
    late: int = 0
    missing: int = 0
    marked: int = 0
    wrong_icrc: int = 0
    acks: int = 0
    naks: Counter[str] = field(default_factory=Counter)
    rnr_naks: int = 0
    cnps: int = 0
    path_mtu_bytes: int | None = None
    last_read: tuple[int, int] = (0, 0)
    source_ports: Counter[int] = field(default_factory=Counter)
    sent_again_since: Counter[int] = field(default_factory=Counter)
    requests: PsnOrder = field(default_factory=PsnOrder)
    read_responses: PsnOrder = field(default_factory=PsnOrder)

    @property
    def unanswered(self) -> int:
        """How often in a row a packet was sent again, without a word of the other end."""
        return max(self.sent_again_since.values(), default=0)

    def learn_path_mtu(self, path_mtu_bytes: int) -> None:
        """Learn the path MTU from a packet that is not its message's last.

        It says how many PSNs a READ takes.
        """
        if self.path_mtu_bytes is None and path_mtu_bytes:
            psn, size_bytes = self.last_read
            self.requests.narrow(psn_add(psn, max(-(-size_bytes // path_mtu_bytes), 1)))
        self.path_mtu_bytes = path_mtu_bytes or None


class CaptureFlows:
    """All flows, and the pairs that form a connection.

    The two flows of a pair are its directions.
    """

    def __init__(self) -> None:
        self.by_key: dict[FlowKey, CaptureFlow] = {}
        self._by_ends: dict[tuple[str, str], list[CaptureFlow]] = {}
        self._back: dict[FlowKey, FlowKey] = {}
        self._asked: dict[tuple[str, int], CmRequest] = {}
        self._agreed: set[tuple[str, int, str, int]] = set()

    def at(self, key: FlowKey) -> CaptureFlow:
        """The flow with this key, created if new."""
        if key not in self.by_key:
            self.by_key[key] = CaptureFlow(key)
            self._by_ends.setdefault((key.source, key.destination), []).append(self.by_key[key])
        return self.by_key[key]

    def answered(self, by: FlowKey, psn: int | None) -> CaptureFlow | None:
        """Find the flow that a response or notification answers.

        Parameters
        ----------
        by : key of the packet that answers
        psn : that it carries, or None where it carries none

        Returns
        -------
        the flow, or None where none or several are possible
        """
        if by in self._back:
            return self.at(self._back[by])
        flows = self._by_ends.get((by.destination, by.source), [])
        there = [flow for flow in flows if flow.requests.last is not None]
        if psn is not None:
            there = [flow for flow in there if _has_sent(flow.requests, psn)]
        if len(there) != 1:
            return None
        if psn is not None:
            self._pair(by, there[0].key)
        return there[0]

    def hear(self, by: FlowKey) -> None:
        """Note that an end was heard: the flow to it is answered, or all flows where it is not known which."""
        back = self._back.get(by)
        for flow in self._by_ends.get((by.destination, by.source), ()) if back is None else [self.at(back)]:
            flow.sent_again_since.clear()

    def asked_port(self, source: str, comm_id: int) -> int | None:
        """Port that a REQ asked for; None where the REQ was not captured, or asked for another service."""
        asked = self._asked.get((source, comm_id))
        return None if asked is None else port_of_service(asked.service_id)

    def connection(self, source: str, destination: str, message: CmMessage) -> None:
        """Take a message of communication management.

        A REQ and its REP name both queue pairs. Each names the first PSN that the other side sends.
        """
        if isinstance(message, CmRequest):
            self._asked[source, message.local_comm_id] = message
        elif isinstance(message, CmReply):
            asked = self._asked.get((destination, message.remote_comm_id))
            agreed = source, message.local_comm_id, destination, message.remote_comm_id
            if asked is None or agreed in self._agreed:
                return
            self._agreed.add(agreed)
            there = FlowKey(destination, source, message.local_qpn)
            back = FlowKey(source, destination, asked.local_qpn)
            self._pair(there, back)
            self.at(there).requests.start(message.starting_psn)  # each names that of the other
            self.at(back).requests.start(asked.starting_psn)

    def _pair(self, one: FlowKey, other: FlowKey) -> None:
        self._back[one] = other
        self._back[other] = one


def _has_sent(requests: PsnOrder, psn: int) -> bool:
    first, last = requests.first, requests.last
    return first is not None and last is not None and psn_compare(first, psn) <= 0 <= psn_compare(last, psn)
