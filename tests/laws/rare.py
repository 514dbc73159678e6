"""Random plans, by number, for what `random_plan` reaches too seldom: odd rates that change, credits that run out."""

from __future__ import annotations

from random import Random

from helpers.tiny import Message, job_of, packet_input_of, sends, wired

from weftwork.base.clock import MS_PS, US_PS
from weftwork.engine.instants import Fault
from weftwork.engine.packet_input import PacketInput
from weftwork.spec.device import Ecn, Switch
from weftwork.spec.job import At, Compute, Operation, Peer, Receive, Send, Size, Wait
from weftwork.spec.transport import Transport

__all__ = ["credit_plan", "uneven_plan"]

ODD_BPS = tuple(rate * 10**6 for rate in (333_333, 299_993, 133_331, 70_001, 33_334, 7_770))  # none divides 8e12


def uneven_plan(seed: int) -> PacketInput:
    """Two leaves and two spines of odd rates, which change to other odd rates while an incast and others send."""
    rng = Random(f"uneven {seed}")
    hosts = 4
    down = [(host, hosts + host // 2) for host in range(hosts)]
    up = [(hosts + leaf, hosts + 2 + spine) for leaf in range(2) for spine in range(2)]
    links = [*down, *up]
    fabric = wired(
        links,
        hosts=hosts,
        switch=Switch(
            forwarding_latency_ps=rng.choice((0, 300_000)),
            buffer_bytes=rng.choice((150_000, 2_000_000)),
            headroom_bytes=20_000,
            ecn=Ecn(kmin_bytes=5_000, kmax_bytes=40_000),
        ),
        rates_bps=[rng.choice(ODD_BPS[:3]) for _ in links],
        delays_ps=[rng.randrange(10_000, 1_000_000) for _ in links],
    )
    messages = [
        Message(
            source=source,
            destination=rng.choice([host for host in range(hosts) if host != source]),
            size_bytes=rng.randrange(20_000, 90_000),
            at_ps=rng.randrange(2 * US_PS),
            channel=channel,
        )
        for source in range(hosts)
        for channel in range(2)
    ]
    faults = []
    for link in rng.sample(range(len(links)), 4):
        at_ps, own_bps = rng.randrange(US_PS, 3 * US_PS), int(fabric.links["rate_bps"][link])
        for _ in range(2):  # to a slower rate, and to a third
            rate_bps = rng.choice([rate for rate in ODD_BPS if rate < own_bps])
            faults.append(Fault(at_ps=at_ps, event="degrade", link=link, rate_bps=rate_bps))
            at_ps += rng.randrange(1, 3 * US_PS)
    return packet_input_of(
        fabric,
        sends(hosts, messages),
        transport=Transport(mtu_bytes=rng.choice((2048, 4096)), lossless_priorities=rng.choice(((3,), ()))),
        congestion_control=rng.choice(("none", "dcqcn", "fixed-window")),
        port_selection=rng.choice(("ecmp", "destination-modulo")),
        faults=faults,
        until_ps=20 * MS_PS,
        seed=seed,
    )


def credit_plan(seed: int) -> PacketInput:
    """One sends more messages than the other has buffers, and the other claims them late, a few at a time."""
    rng = Random(f"credit {seed}")
    credits_ = rng.choice((5, 7, 9, 11, 15, 20, 23, 31, 47, 100))  # between two counts that a code can say, all but 100
    messages = credits_ + rng.randrange(credits_, 2 * credits_)
    size = Size(total_bytes=rng.choice((0, 700, 4096, 5_000)))
    send: Operation = Send(peer=Peer(rule="rank", shift=1), size=size)
    receive: Operation = Receive(peer=Peer(rule="rank", shift=0))
    sender = [send] * messages
    receiver: list[Operation] = [At(at_ps=rng.randrange(20 * US_PS))]
    left = messages
    while left:
        claimed = min(left, rng.randint(1, 6))
        receiver += [receive] * claimed + [Wait(), Compute(duration_ps=rng.randrange(3 * US_PS))]
        left -= claimed
    transport = Transport(
        end_to_end_credits=credits_,
        ack_every=rng.choice((1, 4)),
        recovery=rng.choice(("go-back-n", "selective-repeat")),
        resend=rng.choice(("by-window", "at-once")),
        retransmission_timeout_ps=rng.choice((8, 50)) * US_PS,
        retry_limit=7,
    )
    fabric = wired([(0, 2), (2, 1)], hosts=2, loss=rng.choice((0.0, 0.0, 0.01)))
    return packet_input_of(
        fabric, job_of([[[*sender, Wait()]], [receiver]]), transport=transport, until_ps=MS_PS, seed=seed
    )
