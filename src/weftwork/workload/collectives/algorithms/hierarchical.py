"""Hierarchical: reduce-scatter in domains, rail by rail across, then gather.

The domains are those of NVLink; the gather is inside them. ``level: group`` has a level more, the groups of switches of
the fabric, such as a dragonfly's: GPUs of one group reduce and gather on their rails, before and after the groups.

GPU l of a domain of D owns the slice l; across domains, the GPUs l of all of them form a ring on rail l, so that a NIC
sends 2 (S - 1) / S of a D-th of the bytes; with ``across: direct`` each sends to all others at once, which uses the
links between all pairs of groups. Inside, ``inner`` is ring, direct or nvls. Pieces follow each other through the
phases: one crosses the network while the next is reduced inside.
All-to-all has two hops, as NCCL with PXN: inside, each GPU gives what is for rail l to GPU l, whatever ``inner`` says;
that sends it to the GPU l of each other domain, all D contributions in one message.
Source: Cho et al., BlueConnect, MLSys 2019, pages 241 to 251; PXN: NVIDIA, Doubling all2all performance with NCCL
2.12, 2022, developer.nvidia.com/blog.
Leaves out: trees across domains (NVLSTree), domains and groups of different sizes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Literal

from weftwork.base.errors import Mistake
from weftwork.base.grammar import plural
from weftwork.spec.job import Await, Digit, Loop, Notify, Operation, Peer
from weftwork.spec.plug_in import Choice, Record, row
from weftwork.workload.collectives.algorithm import Algorithm, Hop, Schedule, Share, Traffic, schedule_by_program
from weftwork.workload.collectives.algorithms._hierarchical_groups import FORM
from weftwork.workload.collectives.call import Call
from weftwork.workload.collectives.domains import Domains, Pair, in_order, switch_gathers, switch_reduces
from weftwork.workload.collectives.methods.hierarchical import METHOD
from weftwork.workload.collectives.streams import Cut, Lane, Streams, exchange

__all__ = ["ALGORITHM", "INNERS", "Keys"]

INNERS: Final = ("ring", "direct", "nvls")
LEVELS: Final = ("domain", "group")
ACROSS: Final = ("ring", "direct")


class Keys(Record):
    """The keys of the algorithm."""

    inner: Literal["ring", "direct", "nvls"] = row(
        "inner",
        Choice(options=INNERS),
        default="ring",
        text="Algorithm inside an NVLink domain.",
        source="chosen: what every server can do",
    )
    level: Literal["domain", "group"] = row(
        "level",
        Choice(options=LEVELS),
        default="domain",
        text="Highest level of the algorithm: NVLink domains, or groups (pods) of switches that have several of them.",
        source="Cho et al., BlueConnect, MLSys 2019: levels of the network",
    )
    within: Literal["ring", "direct"] = row(
        "within",
        Choice(options=ACROSS),
        default="ring",
        text="Algorithm within a group of switches, among GPUs of one place in their NVLink domains; with level group.",
        source="Cho et al., BlueConnect, MLSys 2019",
    )
    across: Literal["ring", "direct"] = row(
        "across",
        Choice(options=ACROSS),
        default="ring",
        text="Algorithm across NVLink domains, or across groups with level group, among GPUs of one place in them.",
        source="Cho et al., BlueConnect, MLSys 2019",
    )


_Phase = Literal[
    "reduce inside", "gather inside", "reduce within", "gather within", "reduce across", "gather across", "both across",
    "deal", "deliver",
]  # fmt: skip
_PHASES: Final[dict[str, tuple[_Phase, ...]]] = {
    "all-reduce": ("reduce inside", "both across", "gather inside"),
    "reduce-scatter": ("reduce inside", "reduce across"),
    "all-gather": ("gather across", "gather inside"),
    "all-to-all": ("deal", "deliver"),
    "barrier": ("deal", "deliver"),
}
_PHASES_OF_GROUPS: Final[dict[str, tuple[_Phase, ...]]] = {
    "all-reduce": ("reduce inside", "reduce within", "both across", "gather within", "gather inside"),
    "reduce-scatter": ("reduce inside", "reduce within", "reduce across"),
    "all-gather": ("gather across", "gather within", "gather inside"),
}
_WITHIN: Final = ("reduce within", "gather within")
_ACROSS: Final = ("reduce across", "gather across", "both across", "deliver")
_DEALT: Final = ("all-to-all", "barrier")  # operations of two levels: domains, or groups of servers of one GPU


def _inner(call: Call) -> str:
    """The algorithm inside a domain, by default if the call does not say."""
    return _keys(call).inner


def _keys(call: Call) -> Keys:
    """The keys of a call; those by default where it has another algorithm's or none."""
    return call.options if isinstance(call.options, Keys) else Keys()


def _domains(call: Call, pieces: int = 1) -> Domains:
    """The domains and groups of a call."""
    if _keys(call).level == "domain":
        return Domains(size=call.domain, count=call.servers, pieces=pieces)
    if call.operation in _DEALT:
        return Domains(size=call.group, count=call.ranks // call.group, pieces=pieces)
    return Domains(size=call.domain, count=call.servers, pieces=pieces, per_group=call.group // call.domain)


def _all_phases(call: Call) -> tuple[_Phase, ...]:
    """Phases of an operation with so many levels."""
    of_groups = _keys(call).level == "group" and call.operation not in _DEALT
    return _PHASES_OF_GROUPS[call.operation] if of_groups else _PHASES[call.operation]


def _phases(call: Call) -> list[_Phase]:
    """Phases of a call.

    A domain of one GPU has no phase inside, a single domain or group none across.
    """
    domains = _domains(call)

    def has_peers(phase: _Phase) -> bool:
        members = domains.per_group if phase in _WITHIN else domains.groups if phase in _ACROSS else domains.size
        return members > 1

    return [phase for phase in _all_phases(call) if has_peers(phase)]


def _is_local(call: Call, phase: _Phase) -> bool:
    """Whether a phase stays in NVLink domains."""
    is_dealt_in_group = call.operation in _DEALT and _keys(call).level == "group"
    return phase not in (*_ACROSS, *_WITHIN) and not is_dealt_in_group


def _lanes(call: Call) -> int:
    """Connections of a share: one for each phase, three where groups do not matter."""
    return max(3, len(_all_phases(call)))


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
        return _domains(self.call, max(1, self.share.parts // self.call.ranks))

    def lane(self, phase: _Phase) -> Lane:
        """The lane of a phase."""
        return Lane(
            share=self.share,
            connection=_lanes(self.call) * self.index + _all_phases(self.call).index(phase),
            priority=self.call.priority,
            nic=self.index % self.call.nic_columns,
            pause_ps=self.call.local_step_latency_ps if _is_local(self.call, phase) else self.call.step_latency_ps,
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
            case "reduce within" | "gather within":
                reduces = phase == "reduce within"
                if _keys(self.call).within == "direct":
                    return domains.direct_within(lane, piece, go, done, reduces=reduces)
                return domains.ring_within(lane, piece, tokens, reduces=reduces)
            case "reduce across" | "gather across" | "both across":
                reduces, gathers = phase != "gather across", phase != "reduce across"
                if _keys(self.call).across == "direct":
                    return domains.direct_across(lane, piece, tokens, reduces=reduces, gathers=gathers)
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
        lanes=_lanes(call),
        switches=switches,
    )


def _traffic(call: Call) -> Traffic:
    """Bytes of each GPU and phase: (D - 1) / D of them inside.

    Across domains it is (S - 1) / S of a D-th of them, whether groups are a level or not. A group has no links of its
    own: what is dealt in it crosses the network.
    """
    domains = _domains(call)
    found = _traffic_of(call, domains.size, domains.count)
    return _over_the_network(found) if domains.size != call.domain else found


def _over_the_network(found: Traffic) -> Traffic:
    """The same bytes, all over the network."""
    return Traffic(
        total_bytes=found.total_bytes,
        network_bytes=found.total_bytes,
        sent_bytes=found.sent_bytes,
        received_bytes=found.received_bytes,
        network_sent_bytes=found.sent_bytes,
        network_received_bytes=found.received_bytes,
        local_sent_bytes=0,
        local_received_bytes=0,
    )


def _traffic_of(call: Call, size: int, servers: int) -> Traffic:
    wire, ranks = call.wire_bytes, call.ranks
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
    keys, domains = _keys(call), _domains(call)
    hops: list[Hop] = []
    for phase in _phases(call):
        is_local = _is_local(call, phase)
        slice_bytes = piece_bytes * domains.count
        if phase == "deliver":
            copies = 1 if call.operation == "barrier" else domains.size
            hops.append(Hop(count=1, size_bytes=copies * piece_bytes))
        elif phase in _ACROSS:
            times = 2 if phase == "both across" else 1
            steps = 1 if keys.across == "direct" else domains.groups - 1
            hops.append(Hop(count=times * steps, size_bytes=piece_bytes))
        elif phase in _WITHIN:
            steps = 1 if keys.within == "direct" else domains.per_group - 1
            hops.append(Hop(count=steps, size_bytes=piece_bytes * domains.groups))
        elif phase == "deal" or _inner(call) == "direct":
            hops.append(Hop(count=1, size_bytes=slice_bytes, is_local=is_local))
        elif _inner(call) == "ring":
            hops.append(Hop(count=domains.size - 1, size_bytes=slice_bytes, is_local=is_local))
        else:  # up to the switch, and down
            hops.append(Hop(count=1, size_bytes=slice_bytes, is_local=is_local, is_step=False))
            hops.append(Hop(count=1, size_bytes=slice_bytes, is_local=is_local))
    return hops


def _mistakes(call: Call) -> list[Mistake]:
    if _keys(call).level == "domain":
        return []
    if call.group < 2 or call.ranks % call.group or call.group % call.domain:
        text = "found 'group', but the ranks are not whole groups of switches of equal size in rank order; wanted"
        text += " domain, or a fabric with groups or pods"
        return [Mistake(path="collective.level", text=text, fix="domain")]
    if call.operation in _DEALT and call.domain > 1:
        text = f"found 'group', wanted domain: {call.operation} has two levels, and an NVLink domain has"
        text += f" {plural(call.domain, 'GPU')}"
        return [Mistake(path="collective.level", text=text, fix="domain")]
    return []


ALGORITHM: Final = Algorithm(
    name="hierarchical",
    keys=Keys,
    operations=dict.fromkeys(_PHASES, _build),
    traffic=_traffic,
    chain=_chain,
    source="Cho et al., BlueConnect, MLSys 2019; NVIDIA, Doubling all2all performance with NCCL 2.12, 2022 (PXN)",
    mistakes=_mistakes,
    method=METHOD,
    over_groups=FORM,
    changes_rails=True,
)
