"""Hierarchical: reduce-scatter in domains, rail by rail across, then gather.

The domains are those of NVLink; the gather is inside them.

GPU l of a domain of D owns the slice l; across domains, the GPUs l of all of them form a ring on rail l, so that a NIC
sends 2 (S - 1) / S of a D-th of the bytes. Inside, ``inner`` is ring, direct or nvls. Pieces follow each other through
the phases: one crosses the network while the next is reduced inside.
All-to-all has two hops, as NCCL with PXN: inside, each GPU gives what is for rail l to GPU l, whatever ``inner`` says;
that sends it to the GPU l of each other domain, all D contributions in one message.
Source: Cho et al., BlueConnect, MLSys 2019, pages 241 to 251; PXN: NVIDIA, Doubling all2all performance with NCCL
2.12, 2022, developer.nvidia.com/blog.
Leaves out: trees across domains (NVLSTree), and domains of different sizes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Literal

from weftwork.spec.job import Await, Digit, Loop, Notify, Operation, Peer
from weftwork.spec.plug_in import Choice, Record, row
from weftwork.workload.collectives.algorithm import Algorithm, Hop, Schedule, Share, Traffic, schedule_by_program
from weftwork.workload.collectives.call import Call
from weftwork.workload.collectives.domains import Domains, Pair, in_order, switch_gathers, switch_reduces
from weftwork.workload.collectives.streams import Cut, Lane, Streams, exchange

__all__ = ["ALGORITHM", "INNERS", "Keys"]

INNERS: Final = ("ring", "direct", "nvls")


class Keys(Record):
    """The keys of the algorithm."""

    inner: Literal["ring", "direct", "nvls"] = row(
        "inner",
        Choice(options=INNERS),
        default="ring",
        text="Algorithm inside an NVLink domain.",
        source="chosen: what every server can do",
    )


_Phase = Literal["reduce inside", "gather inside", "reduce across", "gather across", "both across", "deal", "deliver"]
_PHASES: Final[dict[str, tuple[_Phase, ...]]] = {
    "all-reduce": ("reduce inside", "both across", "gather inside"),
    "reduce-scatter": ("reduce inside", "reduce across"),
    "all-gather": ("gather across", "gather inside"),
    "all-to-all": ("deal", "deliver"),
    "barrier": ("deal", "deliver"),
}
_ACROSS: Final = ("reduce across", "gather across", "both across", "deliver")
_LANES: Final = 3  # connections of a share: one for each phase


def _inner(call: Call) -> str:
    """The algorithm inside a domain, by default if the call does not say."""
    return call.options.inner if isinstance(call.options, Keys) else Keys().inner


def _phases(call: Call) -> list[_Phase]:
    """Phases of a call.

    A domain of one GPU has no phase inside, a single domain none across.
    """
    return [phase for phase in _PHASES[call.operation] if (call.servers > 1 if phase in _ACROSS else call.domain > 1)]


def _has_switches(call: Call) -> bool:
    return _inner(call) == "nvls" and any(phase in {"reduce inside", "gather inside"} for phase in _phases(call))


def _shares(call: Call) -> list[Share]:
    if call.operation == "barrier":
        return [Share(total_bytes=0, parts=0)]
    shares = []
    for size_bytes in call.channel_bytes():
        parts = call.ranks * call.pieces(size_bytes // call.ranks)
        shares.append(Share(total_bytes=size_bytes, parts=parts, owners=tuple(range(call.ranks))))
    return shares


@dataclass(frozen=True, kw_only=True, slots=True)
class _Channel:
    """One share of a call, with the streams of its phases."""

    call: Call
    share: Share
    index: int

    @property
    def domains(self) -> Domains:
        """The domains, with the pieces of this share."""
        return Domains.of(self.call, max(1, self.share.parts // self.call.ranks))

    def lane(self, phase: _Phase) -> Lane:
        """The lane of a phase."""
        is_across = phase in _ACROSS
        return Lane(
            share=self.share,
            connection=_LANES * self.index + _PHASES[self.call.operation].index(phase),
            priority=self.call.priority,
            nic=self.index % self.call.nic_columns,
            pause_ps=self.call.step_latency_ps if is_across else self.call.local_step_latency_ps,
        )

    def pair(self, phase: _Phase, piece: int, tokens: tuple[int, int, int]) -> Pair:
        """The streams of a GPU in one phase, for one piece.

        Tokens are those of `ring`.
        """
        domains, lane = self.domains, self.lane(phase)
        go, _, done = tokens
        match phase:
            case "reduce inside" | "gather inside":
                reduces = phase == "reduce inside"
                if _inner(self.call) == "ring":
                    return domains.ring_inside(lane, piece, tokens, reduces=reduces)
                inside = domains.direct_inside if _inner(self.call) == "direct" else domains.nvls_inside
                return inside(lane, piece, go, done, reduces=reduces)
            case "reduce across" | "gather across" | "both across":
                reduces, gathers = phase != "gather across", phase != "reduce across"
                return domains.ring_across(lane, piece, tokens, reduces=reduces, gathers=gathers)
            case "deal":
                # For GPU l: all parts of the GPUs l, those of the own domain first.
                cut = Cut(
                    offsets=(piece,),
                    fixed=(domains.remote(),),
                    span=domains.count,
                    stride=domains.size * domains.pieces,
                )
                return exchange(lane, domains.inside, domains.local(1, 1), cut, reduce=False, go=go, done=done)
            case "deliver":
                return self._deliver(lane, piece, go, done)

    def _deliver(self, lane: Lane, piece: int, go: int, done: int) -> Pair:
        """Send a domain's data to its rail's GPU in each other domain.

        The data is that of all GPUs of this domain for the other domain.
        """
        domains = self.domains
        to = Peer(rule="shift", group=domains.across, shift=1, step=1)
        by = Peer(rule="shift", group=domains.across, shift=-1, step=-1)
        digits: tuple[Digit, ...] = (domains.remote(1, 1), domains.local())
        copies = 1 if self.call.operation == "barrier" else domains.size
        send = lane.send(to, digits, offset=piece, copies=copies)
        others = domains.count - 1
        receiving = [Loop(count=others, body=(lane.receive(by),)), *lane.passed(done)]
        return [Await(token=go), Loop(count=others, body=(send,))], receiving


def _build(call: Call) -> Schedule:
    shares, phases = _shares(call), _phases(call)
    channels = [_Channel(call=call, share=share, index=index) for index, share in enumerate(shares)]

    def of_gpu() -> list[tuple[Operation, ...]]:
        found = Streams()
        for channel in channels:
            pieces = range(channel.domains.pieces)
            go, ready = found.at_start(len(pieces)), -1
            for phase in phases:
                is_last = phase == phases[-1]
                done = found.before_end(len(pieces)) if is_last else found.token()
                data = found.token()
                pairs = [channel.pair(phase, piece, (go, data, done)) for piece in pieces]
                if phase != phases[0]:
                    # What the neighbours send may be here before this rank is through with the phase before.
                    pairs = [(sending, [Await(token=ready), *receiving]) for sending, receiving in pairs]
                go, ready = done, found.token()
                if not is_last:
                    pairs = [(sending, [*receiving, Notify(token=ready)]) for sending, receiving in pairs]
                found.add(*in_order(pairs))
        return found.of_gpu(call)

    def of_switch() -> list[tuple[Operation, ...]]:
        found = Streams()
        made: dict[str, Callable[[Domains, Lane, Streams], None]] = {
            "reduce inside": switch_reduces,
            "gather inside": switch_gathers,
        }
        for channel in channels:
            for phase in phases:
                if phase in made:
                    made[phase](channel.domains, channel.lane(phase), found)
        return found.of_switch(call)

    switches = call.servers if _has_switches(call) else 0
    return schedule_by_program(
        call,
        shares,
        lambda rank: rank >= call.ranks,
        lambda rank: of_switch() if rank >= call.ranks else of_gpu(),
        lanes=_LANES,
        switches=switches,
    )


def _traffic(call: Call) -> Traffic:
    """Bytes of each GPU and phase: (D - 1) / D of them inside.

    Across domains it is (S - 1) / S of a D-th of them.
    """
    wire, size, servers = call.wire_bytes, call.domain, call.servers
    ranks = call.ranks
    if call.operation in {"all-to-all", "barrier"}:
        local, remote = ((size - 1) * servers * wire if size > 1 else 0), (ranks - size) * wire
        each, far = -(-(local + remote) // ranks), -(-remote // ranks)
        return Traffic(
            total_bytes=local + remote,
            network_bytes=remote,
            sent_bytes=each,
            received_bytes=each,
            network_sent_bytes=far,
            network_received_bytes=far,
            local_sent_bytes=each - far,
            local_received_bytes=each - far,
        )
    reduces, gathers = call.operation != "all-gather", call.operation != "reduce-scatter"
    phases = reduces + gathers
    remote = phases * (servers - 1) * wire
    far = -(-remote // ranks)
    if _has_switches(call):
        part = -(-wire // size)
        local = phases * (ranks + servers) * wire
        sent, received = reduces * wire + gathers * part, reduces * part + gathers * wire
    else:
        local = phases * servers * (size - 1) * wire
        sent = received = -(-local // ranks)
    return Traffic(
        total_bytes=local + remote,
        network_bytes=remote,
        sent_bytes=sent + far,
        received_bytes=received + far,
        network_sent_bytes=far,
        network_received_bytes=far,
        local_sent_bytes=sent,
        local_received_bytes=received,
    )


def _chain(call: Call) -> list[Hop]:
    piece_bytes = min(share.total_bytes // max(1, share.parts) for share in _shares(call))
    slice_bytes = piece_bytes * call.servers
    inside = {
        "ring": [Hop(count=call.domain - 1, size_bytes=slice_bytes, is_local=True)],
        "direct": [Hop(count=1, size_bytes=slice_bytes, is_local=True)],
        "nvls": [
            Hop(count=1, size_bytes=slice_bytes, is_local=True, is_step=False),
            Hop(count=1, size_bytes=slice_bytes, is_local=True),
        ],
    }
    hops: list[Hop] = []
    for phase in _phases(call):
        if phase == "deliver":
            copies = 1 if call.operation == "barrier" else call.domain
            hops.append(Hop(count=1, size_bytes=copies * piece_bytes))
        elif phase == "deal":
            hops += inside["direct"]
        elif phase in _ACROSS:
            times = 2 if phase == "both across" else 1
            hops.append(Hop(count=times * (call.servers - 1), size_bytes=piece_bytes))
        else:
            hops += inside[_inner(call)]
    return hops


ALGORITHM: Final = Algorithm(
    name="hierarchical",
    keys=Keys,
    operations=dict.fromkeys(_PHASES, _build),
    traffic=_traffic,
    chain=_chain,
    source="Cho et al., BlueConnect, MLSys 2019; NVIDIA, Doubling all2all performance with NCCL 2.12, 2022 (PXN)",
)
