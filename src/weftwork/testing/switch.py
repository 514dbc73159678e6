"""One switch as its port selection sees it.

Packets come, may leave by some ports, and carry written words. What a packet brings (``word``, ``via``, its virtual
channel) is what the policy has written at a packet before, as if other switches had run it too. A step that changes
``via`` is asked once more, and once again if it takes its ``via`` back, as an engine does.
Leaves out: a network. Flows, queues and ports are drawn.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from weftwork.policies.interface import OFF
from weftwork.testing.steps import Twin

if TYPE_CHECKING:
    from weftwork.policies.load import LoadedPolicy

__all__ = ["EDGES", "NOTHING", "PORTS", "BrokenError", "ToldFlow", "ToldSwitch"]

PORTS: Final = 80  # chosen: more than the most candidates, since a packet leaves by another port than it came in
EDGES: Final = 16  # chosen: a few leaves
_STRIDES: Final = (1, 4, 32, 1_024)  # chosen: leaves, and tiers above switches of some radices
NOTHING: Final = (0, OFF, 0)  # word, via and virtual channel of a packet at its NIC
_KEPT: Final = 8  # chosen: words that later packets may bring


class BrokenError(Exception):
    """The step failed, or wrote values that no engine can obey.

    The error has the reason in words.
    """


@dataclass(frozen=True, kw_only=True, slots=True)
class ToldFlow:
    """Packets that differ only in time and random bits."""

    hash: int
    queue_pair_hash: int
    destination: int
    stride: int
    from_edge: int
    to_edge: int
    in_port: int
    bytes: int
    is_data: int


class ToldSwitch:
    """A switch that asks both forms of a step.

    Parameters
    ----------
    policy : a loaded port selection
    source : of all that is drawn
    """

    def __init__(self, policy: LoadedPolicy, source: random.Random) -> None:
        self.policy = policy
        self.plugin: Any = policy.plugin
        self.source = source
        self.twin = Twin(policy, port_count=PORTS)
        self.signal: Any = policy.new_port_signal()
        self.signal.node, self.signal.ports, self.signal.edges = source.randrange(1_000), PORTS, EDGES
        self.signal.tier, self.signal.group = source.choice(((1, 3), (2, 3), (3, OFF)))
        self.signal.edge = source.randrange(EDGES) if self.signal.tier == 1 else OFF
        self.brought = [NOTHING]

    def flow(self, *, is_data: int | None = None) -> ToldFlow:
        """Draw a flow that passes the switch."""
        source = self.source
        return ToldFlow(
            hash=source.getrandbits(32),
            queue_pair_hash=source.getrandbits(62),
            destination=source.randrange(100_000),
            stride=source.choice(_STRIDES),
            from_edge=source.randrange(EDGES),
            to_edge=source.randrange(EDGES),
            in_port=source.randrange(PORTS),
            bytes=source.randrange(64, 4_200),
            is_data=source.randrange(2) if is_data is None else is_data,
        )

    def candidates(self, count: int, *, in_port: int, alike: bool = False) -> list[Any]:
        """Draw ports that are up, shortest paths first.

        Parameters
        ----------
        count : how many
        in_port : by which the packet came in; it leads nowhere
        alike : whether they differ in nothing but their number
        """
        source, needs = self.source, self.plugin.needs
        made = self.policy.new_candidates(count)
        ports = sorted(source.sample([port for port in range(PORTS) if port != in_port], count))
        minimal = source.randrange(count + 1) if "non-minimal" in needs and not alike else count
        left = source.randrange(1, 4)
        for at, (candidate, port) in enumerate(zip(made, ports, strict=True)):
            candidate.port, candidate.minimal = port, int(at < minimal)
            candidate.rate_bps, candidate.weight = 400_000_000_000, 1
            if not alike:
                candidate.rate_bps = source.choice((100_000_000_000, 400_000_000_000))
                candidate.weight = source.randrange(1, 9) if "weight" in needs else 1
            if "queue" in needs and not alike:
                candidate.queue_bytes = source.choice((0, source.randrange(1_000_000)))
                candidate.paused = int(source.random() < 0.1)
            if "hops-left" in needs:
                candidate.hops_left = left if at < minimal else left + source.randrange(1, 3)
            if "channel" in needs:
                candidate.channel = source.randrange(self.plugin.virtual_channels)
                candidate.turn_channel = source.randrange(self.plugin.virtual_channels)
        return made

    def choose(
        self, flow: ToldFlow, candidates: list[Any], ways: dict[int, list[Any]], brought: tuple[int, int, int] = NOTHING
    ) -> int:
        """Choose the port of a flow's packet; returns its local index.

        Parameters
        ----------
        flow : whose packet
        candidates : of its way; of one that the step takes instead, as many are drawn
        ways : by edge, the candidates towards one that the step may name; is filled
        brought : word, via and virtual channel of the packet, as another switch has left them

        Raises
        ------
        BrokenError : the step failed in both forms, or changed ``via`` again in a way that no engine allows
        DifferenceError : the two forms differ
        """
        signal = self.signal
        self._comes(flow, brought, delivered=0)
        before = self._asked(candidates)
        if signal.via != before:
            if signal.via not in ways:
                ways[signal.via] = self.candidates(len(candidates), in_port=flow.in_port)
            shown, candidates = candidates, ways[signal.via]
            taken = self._asked(candidates)
            if signal.via == OFF != taken:
                candidates = shown
                taken = self._asked(candidates)
            if signal.via != taken:
                text = f"it set via to edge {taken} and, asked for the way there, to {signal.via}"
                raise BrokenError(f"{text}; change via only where it is OFF, or where this switch is that edge")
        if len(self.brought) < _KEPT:
            self.brought.append((signal.word, signal.via, signal.virtual_channel))
        return int(candidates[signal.choice].port)

    def deliver(self, flow: ToldFlow) -> None:
        """Choose for a packet whose receiver is at this switch, as `choose`.

        There is only the port to the receiver.
        """
        signal = self.signal
        edge, signal.edge = signal.edge, flow.to_edge
        word, _, channel = self.source.choice(self.brought)
        self._comes(flow, (word, OFF, channel), delivered=1)
        (candidate,) = candidates = self.candidates(1, in_port=flow.in_port)
        candidate.minimal, candidate.hops_left = 1, 0
        self._asked(candidates)
        signal.edge = edge

    def _comes(self, flow: ToldFlow, brought: tuple[int, int, int], *, delivered: int) -> None:
        signal = self.signal
        for name in ToldFlow.__slots__:
            setattr(signal, name, getattr(flow, name))
        signal.draw, signal.hops, signal.delivered = self.source.getrandbits(62), self.source.randrange(4), delivered
        signal.word, via, signal.virtual_channel = brought
        signal.via = OFF if via == signal.edge else via
        if "detour" in self.plugin.needs:
            signal.from_group, signal.via_group = signal.from_edge // 4, OFF if signal.via == OFF else signal.via // 4
            is_apart = signal.from_edge != signal.to_edge
            signal.detour = (signal.from_edge + 1 + signal.draw % (EDGES - 1)) % EDGES if is_apart else OFF
            hashed = (signal.from_edge + 1 + signal.queue_pair_hash % (EDGES - 1)) % EDGES
            signal.queue_pair_detour = hashed if is_apart else OFF
            signal.hops_after_via = 0 if signal.via == OFF else 1 + signal.via % 3

    def _asked(self, candidates: list[Any]) -> int:
        """Ask once; returns the packet's earlier ``via``."""
        signal = self.signal
        before = int(signal.via)
        signal.candidates, signal.choice = len(candidates), 0
        self.twin.step(signal, candidates)
        if self.twin.error is not None:
            raise BrokenError(str(self.twin.error))
        return before
