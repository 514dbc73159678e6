"""A NIC under attack: what it protects, whom it serves beside, and a forger who knows what a test gives him."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager
from ipaddress import IPv4Address
from typing import Any

from weftwork.rdma.datagram import Datagram
from weftwork.rdma.memory import MemoryRegion
from weftwork.rdma.nic import RdmaNic
from weftwork.rdma.queue_pair import NicLimits, RdmaQueuePair
from weftwork.rdma.receive_queue import RecvQueue
from weftwork.rdma.verbs import AccessFlags, QpAttr, QpState, QpType, RecvWr, SendFlags, SendWr, Sge, WcStatus, WrOpcode
from weftwork.wire.extended import Aeth, AethKind, Nak
from weftwork.wire.ib import PSN_MODULUS, Bth
from weftwork.wire.icrc import ICRC_BYTES
from weftwork.wire.opcodes import SHAPES, Opcode
from weftwork.wire.rocev2 import rocev2_packet
from weftwork.wire.transport import TransportPacket, transport_packet

from .rdma_pair import ALL

VICTIM, PEER, FRIEND, STRANGER = (bytes((10, 0, 0, host)) for host in (1, 2, 3, 4))
PEER_QP = 0x777
FIRST_PSN, SENT_PSN = 1000, 5000  # that the victim expects of its peer, and that it sends first
MTU = 256
OPEN = slice(4096, 8192)  # of the victim's memory; the rest is nobody's
FRONT_BYTES = 28  # IPv4 and UDP


class Victim:
    """A NIC with a queue pair whose peer is forged, a region that is open to that peer, and a bystander."""

    def __init__(
        self,
        qp_type: QpType = QpType.RC,
        *,
        limits: NicLimits | None = None,
        nic: dict[str, Any] | None = None,
        srq: int = 0,
        access: AccessFlags = ALL,
        **attr: Any,
    ) -> None:
        self.now_ps = 0
        self.qp_type = qp_type
        self.nic = RdmaNic(VICTIM, random=random.Random(1), limits=limits, **(nic or {}))
        self.pd = self.nic.alloc_pd()
        self.memory = bytearray(random.Random(2).randbytes(16_384))
        self.before = bytes(self.memory)
        self.region = self.register(OPEN, ALL)
        self.cq = self.nic.create_cq(4096)
        self.srq: RecvQueue | None = self.nic.create_srq(srq) if srq else None
        wanted = {"max_rd_atomic": 4, "max_dest_rd_atomic": 4, "path_mtu": MTU, "qkey": 0x1234} | attr
        self.attr = QpAttr(
            remote_address=PEER,
            dest_qp_num=PEER_QP,
            rq_psn=FIRST_PSN,
            sq_psn=SENT_PSN,
            qp_access_flags=access,
            **wanted,
        )
        self.qp = self.nic.create_qp(self.pd, qp_type, (self.cq, self.cq), srq=self.srq)
        self.connect()
        self._make_friend()

    def connect(self) -> None:
        """Take the queue pair to RTS, from whatever state it is in; its peer begins at the first PSN."""
        self.qp.modify(QpState.RESET)
        self.qp.modify(QpState.INIT, self.attr)
        self.qp.modify(QpState.RTR)
        self.qp.modify(QpState.RTS)
        self.psn = FIRST_PSN

    def _make_friend(self) -> None:
        self.friend = RdmaNic(FRIEND, random=random.Random(3))
        friend_pd, self.friend_cq = self.friend.alloc_pd(), self.friend.create_cq(64)
        self.friend_memory = bytearray(64)
        self.friend_region = self.friend.memory.register(friend_pd, self.friend_memory, ALL)
        own_pd = self.nic.alloc_pd()
        self.own_memory = bytearray(64)
        self.own_region = self.nic.memory.register(own_pd, self.own_memory, ALL)
        own_cq = self.nic.create_cq(64)
        self.bystander = self.nic.create_qp(own_pd, QpType.RC, (own_cq, own_cq))
        self.friend_qp = self.friend.create_qp(friend_pd, QpType.RC, (self.friend_cq, self.friend_cq))
        for end, other, address in (
            (self.bystander, self.friend_qp, FRIEND),
            (self.friend_qp, self.bystander, VICTIM),
        ):
            end.modify(
                QpState.INIT, QpAttr(remote_address=address, dest_qp_num=other.qp_num, qp_access_flags=ALL, timeout=0)
            )
            end.modify(QpState.RTR)
            end.modify(QpState.RTS)

    def register(self, part: slice, access: AccessFlags, pd: Any = None) -> MemoryRegion:
        """Register a part of the memory."""
        return self.nic.memory.register(pd if pd is not None else self.pd, memoryview(self.memory)[part], access)

    def post_recv(self, wr_id: int, length: int, queue: RecvQueue | None = None) -> None:
        """Post a receive at the start of the open region."""
        wr = RecvWr(wr_id=wr_id, sg_list=(Sge(self.region.addr, length, self.region.lkey),))
        if queue is not None:
            queue.post(wr)
        else:
            self.qp.post_recv(wr)

    def post(self, opcode: WrOpcode, length: int = 8, **more: Any) -> None:
        """Post a request of the victim's own."""
        sges = (Sge(self.region.addr, length, self.region.lkey),)
        self.qp.post_send(SendWr(wr_id=1, opcode=opcode, sg_list=sges, flags=SendFlags.SIGNALED, **more))

    # The attacker

    def forge(
        self,
        opcode: int,
        headers: tuple[Any, ...] = (),
        payload: bytes = b"",
        *,
        psn: int | None = None,
        source: bytes = PEER,
        to: RdmaQueuePair | None = None,
        ecn: int = 0,
        raw: bytes | None = None,
        **bth: Any,
    ) -> Datagram:
        """A packet with a right ICRC; without a PSN it takes the next one that the victim expects.

        `raw` stands in place of what the codecs make of headers, payload and padding.
        """
        if psn is None:
            psn, self.psn = self.psn, (self.psn + 1) % PSN_MODULUS
        number = (to if to is not None else self.qp).qp_num
        asks = opcode not in SHAPES or SHAPES[opcode].ends_message
        header = Bth(opcode, number, psn % PSN_MODULUS, ack_request=asks)
        if raw is None:
            made = transport_packet(header, headers, payload)
            header, raw = made.bth, made.body()
        return seal(header._replace(**bth), raw, source=source, ecn=ecn)

    def attack(self, *datagrams: Datagram) -> list[TransportPacket]:
        """Let datagrams arrive, and return what the victim answers to its peer."""
        for datagram in datagrams:
            self.nic.receive(datagram, self.now_ps)
        return self.answers()

    def answers(self) -> list[TransportPacket]:
        """What the victim sends to its peer now."""
        found = []
        while made := self.nic.datagrams_to_send(self.now_ps):
            found += [
                TransportPacket.decode(bytes(one.payload())[:-ICRC_BYTES])[0]
                for one in made
                if one.destination != FRIEND
            ]
        return found

    # What is to be seen afterwards

    def statuses(self) -> list[WcStatus]:
        """How work requests ended."""
        return [wc.status for wc in self.cq.poll(4096)]

    def check(self, changed: slice = slice(0, 0)) -> None:
        """Nothing but `changed` differs from before, and the bystander works."""
        assert self.memory[: changed.start] == self.before[: changed.start]
        assert self.memory[changed.stop :] == self.before[changed.stop :]
        assert self.bystander_works()

    def bystander_works(self) -> bool:
        """Whether the other queue pair still reads and is written."""
        self.friend_memory[:8] = word = random.Random(self.now_ps).randbytes(8)
        sges = (Sge(self.friend_region.addr, 8, self.friend_region.lkey),)
        to = {"remote_addr": self.own_region.addr, "rkey": self.own_region.rkey}
        back = (Sge(self.friend_region.addr + 8, 8, self.friend_region.lkey),)
        self.friend_qp.post_send(
            SendWr(wr_id=1, opcode=WrOpcode.RDMA_WRITE, sg_list=sges, flags=SendFlags.SIGNALED, **to)
        )
        self.friend_qp.post_send(
            SendWr(wr_id=2, opcode=WrOpcode.RDMA_READ, sg_list=back, flags=SendFlags.SIGNALED, **to)
        )
        for _ in range(8):
            for one, other in ((self.friend, self.nic), (self.nic, self.friend)):
                while made := one.datagrams_to_send(self.now_ps):
                    for datagram in made:
                        if datagram.destination == other.address:
                            other.receive(datagram._replace(parts=(bytes(datagram.payload()),)), self.now_ps)
        ended = [wc.status for wc in self.friend_cq.poll(8)]
        return ended == [WcStatus.SUCCESS] * 2 and self.own_memory[:8] == self.friend_memory[8:16] == word


@contextmanager
def under_attack(*args: Any, changed: slice = slice(0, 0), **more: Any) -> Iterator[Victim]:
    """A victim, which is checked at the end."""
    victim = Victim(*args, **more)
    yield victim
    victim.check(changed)


def seal(header: Bth, body: bytes, *, source: bytes = PEER, ecn: int = 0, source_port: int = 0xC000) -> Datagram:
    """Put the ICRC behind BTH and a body."""
    packet = rocev2_packet(
        source=IPv4Address(source),
        destination=IPv4Address(VICTIM),
        source_port=source_port,
        bth=header,
        body=body,
        ecn=ecn,
    )
    return Datagram(source, VICTIM, source_port, (packet.encode()[FRONT_BYTES:],), ecn)


def naks(answers: list[TransportPacket]) -> list[Nak]:
    """Codes of the NAKs among answers, of which nothing else may be."""
    headers = [answer.find(Aeth) for answer in answers]
    assert all(header is not None and header.kind is AethKind.NAK for header in headers), answers
    return [Nak(header.value) for header in headers if header is not None]


def opcodes(answers: list[TransportPacket]) -> list[Opcode]:
    return [Opcode(answer.bth.opcode) for answer in answers]
