"""One queue pair as its policies see it.

Packets are sent, arrive, are lost or cut; signals report it. What happens is drawn at random; what is told of it is
what an engine would tell (docs/models/packet-engine.md, "What policies see and write"): payloads add up, a byte arrives
once, and a field that nobody asks for is 0.
Leaves out: a network. Times and queues are drawn, and events follow each other as no network might let them.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Protocol

from weftwork.policies.described import FIELDS_OF_NEED, field_rows
from weftwork.policies.interface import HOPS, OFF, TIMERS, Kind, Signal

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from weftwork.policies.described import Step
    from weftwork.policies.load import LoadedPolicy
    from weftwork.testing.steps import Finding

__all__ = ["ToldQueuePair", "fired_timers"]

LINE_RATES_BPS: Final = (10_000_000_000, 25_000_000_000, 100_000_000_000, 400_000_000_000, 800_000_000_000)
_ECHOED: Final = frozenset({Kind.ACK, Kind.NAK, Kind.TRIM})
_ROWS: Final = tuple(row for row in field_rows(Signal) if row.parts)
_MOST_FIRED: Final = 50  # chosen: enough for any timer of a microsecond in the gap; later ones fire late
_MOST: Final = 64  # chosen: packets between una and nxt; a story of some hundred events turns them over several times


@dataclass(kw_only=True, slots=True)
class _Packet:
    size_bytes: int
    entropy: int
    fate: str = "flying"  # or "arrived", "lost"


class ToldStory(Protocol):
    """Events of a queue pair that can end early."""

    pair: ToldQueuePair
    is_over: bool

    def ends(self, check: str, text: str) -> Finding:
        """End it with a finding."""


def fired_timers(
    story: ToldStory,
    state: Any,  # noqa: ANN401
    until_ps: int,
    tell: Callable[[int], Iterator[Finding]],
) -> Iterator[Finding]:
    """Fire the due timers of a state, each at its instant.

    A timer that stands still ends the story.

    Parameters
    ----------
    story : whose queue pair has the clock
    state : with ``timer_at_ps``
    until_ps : instant up to which they fire
    tell : tells the step that a timer has fired
    """
    for _ in range(_MOST_FIRED):
        due = [(state.timer_at_ps[timer], timer) for timer in range(TIMERS) if state.timer_at_ps[timer] != OFF]
        if story.is_over or not due or min(due)[0] > until_ps:
            return
        at_ps, timer = min(due)
        is_late = at_ps < story.pair.now_ps  # one that is set to now then fires once more, which is no loop yet
        story.pair.now_ps = max(story.pair.now_ps, at_ps)
        state.timer_at_ps[timer] = OFF
        yield from tell(timer)
        if OFF != state.timer_at_ps[timer] <= story.pair.now_ps and not (is_late or story.is_over):
            text = f"timer {timer} fired and was set to the same instant again; the run would never end"
            yield story.ends("timers_move_on", text)


class ToldQueuePair:
    """A queue pair, and the signal records of its steps.

    Parameters
    ----------
    policy : whose needs are met
    source : of all that is drawn
    step : ``sender`` or ``path``
    now_ps : instant of its first signal
    all_needs : whether another policy of the run asks for the rest, so that every field may be filled

    Attributes
    ----------
    signal, heard : the records of the sender's and of the receiver's step
    entropy : that the next packet carries
    """

    def __init__(
        self, policy: LoadedPolicy, source: random.Random, *, step: Step, now_ps: int = 0, all_needs: bool = False
    ) -> None:
        self.source = source
        self.step: Step = step
        self.asked = set(FIELDS_OF_NEED) if all_needs else set(policy.plugin.needs)
        self.goes_back = "trimming" not in policy.plugin.needs and source.random() < 0.5
        self.signal: Any = policy.new_signal()
        self.heard: Any = policy.new_signal()
        self.una = 0
        self.packets: list[_Packet] = []
        self.sent = _Packet(size_bytes=0, entropy=0)
        self.backlog_bytes = 0
        self.entropy = self.own_entropy = source.randrange(49_152, 65_536)
        self.tx_bytes, self.left_at_ps = [0] * HOPS, [0] * HOPS
        rate_bps, base_ps = source.choice(LINE_RATES_BPS), source.choice((2_000_000, 12_345_678, 1_000_000_000))
        for record in (self.signal, self.heard):
            record.now_ps = now_ps
            record.line_rate_bps, record.base_rtt_ps = rate_bps, base_ps
            record.mtu_bytes = source.choice((1_000, 4_096)) if record is self.signal else self.signal.mtu_bytes
        self.signal.fabric_base_rtt_ps = base_ps + source.choice((0, 1_000_000))
        self.post()

    @property
    def now_ps(self) -> int:
        """The instant of both records."""
        return int(self.signal.now_ps)

    @now_ps.setter
    def now_ps(self, now_ps: int) -> None:
        self.signal.now_ps = self.heard.now_ps = now_ps

    def post(self) -> None:
        """Post a message."""
        self.backlog_bytes += self.source.randrange(1, 100 * self.signal.mtu_bytes)

    def can_happen(self, kind: Kind) -> bool:
        """Whether an event of this kind is possible now.

        There must be packets to lose, and few enough to send more.
        """
        if kind in (Kind.NAK, Kind.TRIM, Kind.TIMEOUT):
            return any(one.fate == "flying" for one in self.packets)
        return kind != Kind.SEND or len(self.packets) < _MOST

    def tell(self, kind: Kind, *, timer: int = 0, most: int | None = None) -> Any:  # noqa: ANN401
        """Apply an event, and return its signal to sender or path selection.

        Parameters
        ----------
        kind : of the signal
        timer : which one has fired, at TIMER
        most : packets that an ACK acknowledges; None: as many as are drawn
        """
        happen = {
            Kind.SEND: self._send, Kind.ACK: lambda: self._acknowledge(most), Kind.NAK: self._ask_again,
            Kind.TRIM: self._cut, Kind.TIMEOUT: self._time_out,
        }  # fmt: skip
        told: dict[str, int] = happen[kind]() if kind in happen else {}
        if kind == Kind.CREDIT:
            told["bytes"] = self.source.choice((1, self.signal.mtu_bytes, self.source.randrange(1, 1_000_000)))
        if kind == Kind.RESUME:
            self.post()
        told["timer"] = timer
        before_it = kind == Kind.SEND and self.step == "path"
        self.signal.next_seq = told["seq"] if before_it else self.una + len(self.packets)
        self.signal.inflight_bytes = sum(one.size_bytes for one in self.packets if one.fate == "flying")
        self.signal.backlog_bytes = self.backlog_bytes
        if before_it:
            self.signal.inflight_bytes -= told["bytes"]
            self.signal.backlog_bytes += told["bytes"]
        has_echo = kind in _ECHOED and self.source.random() < 0.9  # an acknowledgement may have no packet
        self._fill(self.signal, kind, self.step, told, met_packet=has_echo)
        return self.signal

    def carries(self, entropy: int) -> None:
        """Set the entropy of the last and next packets.

        The last packet is the one that was sent last.
        """
        self.sent.entropy = self.entropy = entropy

    def hear(self, kind: Kind, timer: int = 0, request_bytes: int = 0) -> Any:  # noqa: ANN401
        """Return a signal to the receiver's step.

        Parameters
        ----------
        kind : DATA, TRIM, REQUEST or TIMER
        timer : which one has fired, at TIMER
        request_bytes : of the sender's state
        """
        told = {"timer": timer, "request_bytes": request_bytes, "seq": self.una + self.source.randrange(_MOST)}
        told["bytes"] = self.source.randrange(1, self.heard.mtu_bytes + 1)
        told["entropy"], told["ecn"] = self.entropy, int(self.source.random() < 0.3)
        told["last_hop"] = self.source.randrange(2)
        self._fill(self.heard, kind, "receiver", told, met_packet=True)
        return self.heard

    def old_news(self) -> Any:  # noqa: ANN401
        """Return the last acknowledgement again; it has no news."""
        for name in ("bytes", "ecn", "arrived_bytes", "marked_bytes", "lost_bytes", "completed_messages"):
            setattr(self.signal, name, 0)
        return self.signal

    def finish(self) -> Any:  # noqa: ANN401
        """Acknowledge all sent packets, with nothing more to send.

        Returns the signal of the ACK.
        """
        self.backlog_bytes = 0
        return self.tell(Kind.ACK, most=len(self.packets))

    # Events: what happens to packets, and what its signal says.

    def _send(self) -> dict[str, int]:
        """Send a lost packet first, then a new packet."""
        lost = next((at for at, one in enumerate(self.packets) if one.fate == "lost"), None)
        if lost is not None:
            self.packets[lost].fate = "flying"
            return self._sent(self.una + lost, self.packets[lost])
        if not self.backlog_bytes:
            self.post()
        size_bytes = min(self.backlog_bytes, self.signal.mtu_bytes)
        self.backlog_bytes -= size_bytes
        self.packets.append(_Packet(size_bytes=size_bytes, entropy=self.entropy))
        return self._sent(self.una + len(self.packets) - 1, self.packets[-1])

    def _sent(self, seq: int, packet: _Packet) -> dict[str, int]:
        self.sent = packet
        entropy = self.own_entropy if self.step == "path" else self.entropy
        return {"seq": seq, "bytes": packet.size_bytes, "entropy": entropy, "draw": self.source.getrandbits(62)}

    def _pass(self, count: int) -> tuple[int, int]:
        """Acknowledge packets; return their payload and the newly arrived part."""
        passed, self.packets = self.packets[:count], self.packets[count:]
        self.una += len(passed)
        return (
            sum(one.size_bytes for one in passed),
            sum(one.size_bytes for one in passed if one.fate != "arrived"),
        )

    def _acknowledge(self, count: int | None) -> dict[str, int]:
        if count is None:
            count = self.source.randrange(4 if len(self.packets) < _MOST // 2 else _MOST)
        told_bytes, arrived_bytes = self._pass(count)
        if not self.goes_back and self.packets and self.source.random() < 0.2:  # one beyond a gap
            packet = self.source.choice(self.packets[1:] or self.packets)
            arrived_bytes += packet.size_bytes if packet.fate != "arrived" else 0
            packet.fate = "arrived"
        ecn = int(self.source.random() < 0.3)
        return {
            "seq": self.una, "bytes": told_bytes, "arrived_bytes": arrived_bytes, "ecn": ecn,
            "marked_bytes": ecn * self.source.randrange(arrived_bytes + 1), "entropy": self._an_entropy(),
            "completed_messages": self.source.randrange(3) if told_bytes else 0,
        }  # fmt: skip

    def _ask_again(self) -> dict[str, int]:
        flying = [one for one in self.packets if one.fate == "flying"]
        lost_bytes = self._go_back() if self.goes_back else self._lose(flying[: self.source.randrange(1, 4)])
        return {"seq": self.una, "lost_bytes": lost_bytes, "entropy": self._an_entropy()}

    def _cut(self) -> dict[str, int]:
        at = next(at for at, one in enumerate(self.packets) if one.fate == "flying")
        size_bytes = self._lose([self.packets[at]])
        return {
            "seq": self.una + at, "bytes": size_bytes, "lost_bytes": size_bytes, "last_hop": self.source.randrange(2),
            "entropy": self.packets[at].entropy,
        }  # fmt: skip

    def _time_out(self) -> dict[str, int]:
        entropy = self.packets[0].entropy
        flying = [one for one in self.packets if one.fate == "flying"]
        return {"lost_bytes": self._go_back() if self.goes_back else self._lose(flying), "entropy": entropy}

    def _lose(self, packets: list[_Packet]) -> int:
        for packet in packets:
            packet.fate = "lost"
        return sum(packet.size_bytes for packet in packets)

    def _go_back(self) -> int:
        size_bytes = sum(packet.size_bytes for packet in self.packets)
        self.packets, self.backlog_bytes = [], self.backlog_bytes + size_bytes
        return size_bytes

    def _an_entropy(self) -> int:
        return self.source.choice(self.packets).entropy if self.packets else self.entropy

    # The record.

    def _fill(self, signal: Any, kind: Kind, step: Step, told: dict[str, int], *, met_packet: bool) -> None:  # noqa: ANN401
        """Write all fields that depend on the kind.

        Fields that this kind does not fill, or nobody asks for, are 0.
        """
        source = self.source
        signal.kind = int(kind)
        rtt_ps = 0
        if met_packet:
            rtt_ps = signal.base_rtt_ps + int(10 ** source.uniform(0, 9))
            told |= {"rtt_ps": rtt_ps, "host_delay_ps": source.randrange(rtt_ps), "hops": source.randrange(1, HOPS + 1)}
            told["fabric_delay_ps"] = rtt_ps - told["host_delay_ps"]
        elif kind in _ECHOED:
            told["entropy"] = 0
        asked = self.asked if step != "receiver" else self.asked | {"rtt", "entropy"}  # its own delay, what it sees
        for row in _ROWS:
            is_asked = row.need in asked or row.need in ("", "ecn", "trimming")
            if row.need == "entropy" and kind not in _ECHOED:
                is_asked = True
            is_filled = is_asked and kind in row.kinds(step)
            if row.name == "path_load":
                signal.path_load = source.choice((1 / 512, source.uniform(0, 2))) if is_filled and met_packet else 0.0
            elif row.size:
                self._fill_hops(signal, row.name, told.get("hops", 0) if is_filled else 0)
            elif row.name not in ("next_seq", "inflight_bytes", "backlog_bytes", "fabric_base_rtt_ps"):
                setattr(signal, row.name, told.get(row.name, 0) if is_filled else 0)

    def _fill_hops(self, signal: Any, name: str, hops: int) -> None:  # noqa: ANN401
        values = getattr(signal, name)
        for hop in range(HOPS):
            values[hop] = self._at_hop(signal, name, hop) if hop < hops else 0

    def _at_hop(self, signal: Any, name: str, hop: int) -> int:  # noqa: ANN401
        source = self.source
        if name == "hop_queue_bytes":
            return source.choice((0, source.randrange(10_000_000)))
        if name == "hop_tx_bytes":
            self.tx_bytes[hop] += source.randrange(10_000_000)
            return self.tx_bytes[hop]
        if name == "hop_at_ps":
            self.left_at_ps[hop] = max(signal.now_ps - source.randrange(1_000_000), self.left_at_ps[hop])
            return self.left_at_ps[hop]
        return int(signal.line_rate_bps) if name == "hop_rate_bps" else 1_000 + hop
