"""A clock, a line and a wire that a test moves by hand, to look at one part of the reference engine alone.

Nothing here knows a simulation, a fabric or another part: a part says on the clock when it wants to go on, and hands
packets to a line or a wire, where the test finds them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from weftwork.base.clock import SECOND_PS
from weftwork.engine.reference.clock import Phase
from weftwork.engine.reference.flow import Flow, QueuePairConfig
from weftwork.engine.reference.link_credits import LinkCredits
from weftwork.engine.reference.packet import Packet, PacketKind
from weftwork.engine.reference.port import Port, PortConfig
from weftwork.policies.interface import OFF, TIMERS, Kind
from weftwork.policies.load import LoadedPolicy
from weftwork.spec.transport import Transport

RATE_BPS = 400_000_000_000  # a byte takes exactly 20 ps
BYTE_PS = 20
MTU_BYTES = 4096
FRAME_BYTES = MTU_BYTES + 62  # of a full packet: `wire` has no header that only the first one carries
FRAME_PS = (FRAME_BYTES + 20) * BYTE_PS  # with what follows a frame
CONTROL_CLASS = 1
FABRIC_BASE_RTT_PS = 9_000_000
FLOW = Flow.of(0, 1, 0, seed=1)


class HandClock:
    """A clock that stands still until it is told to go on; it keeps the order of the page at one instant.

    Attributes
    ----------
    identity : of the call that is made, or of the last one
    """

    def __init__(self) -> None:
        self.now_ps = 0
        self.identity: tuple[int, ...] = ()
        self._calls: list[tuple[int, Phase, tuple[int, ...], int, Callable[..., None], tuple[object, ...]]] = []
        self._count = 0

    def at(
        self, at_ps: int, phase: Phase, identity: tuple[int, ...], action: Callable[..., None], *arguments: object
    ) -> None:
        assert at_ps >= self.now_ps, "a call in the past"
        self._count += 1
        self._calls.append((at_ps, phase, identity, self._count, action, arguments))

    @property
    def calls(self) -> list[tuple[int, Phase, tuple[int, ...]]]:
        """Instant, phase and identity of what is to come, in its order."""
        return [call[:3] for call in sorted(self._calls)]

    def go_to(self, at_ps: int) -> None:
        """Make the calls up to and at an instant, and stand there."""
        while self._calls and min(self._calls)[0] <= at_ps:
            call = min(self._calls)
            self._calls.remove(call)
            self.now_ps, self.identity = call[0], call[2]
            call[4](*call[5])
        self.now_ps = at_ps

    def run(self, until_ps: int = SECOND_PS) -> None:
        """Make the calls until none is left before an instant, and stand at the last."""
        while self._calls and min(self._calls)[0] < until_ps:
            self.go_to(min(self._calls)[0])


class HandLine:
    """The line of a sender and of a receiver: it keeps what it is handed, and asks for packets when the test does."""

    def __init__(self, port: int = 0) -> None:
        self.id = port
        self.rate_bps = RATE_BPS
        self.paused: set[int] = set()
        self.credit_bytes = 10**9  # of every class
        self.control: list[Packet] = []
        self.starts = 0
        self.senders: list[Any] = []
        self.receivers: list[Any] = []
        self.receiver_slots = 0
        self.early_packets = 0
        self.shared_state: Any = None

    def attach(self, sender: Any) -> int:
        self.senders.append(sender)
        return len(self.senders) - 1

    def detach(self, slot: int) -> None:
        self.senders[slot] = None

    def attach_receiver(self, receiver: Any) -> None:
        self.receivers.append(receiver)

    def new_receiver_slot(self) -> int:
        self.receiver_slots += 1
        return self.receiver_slots - 1

    def keep_early(self, packets: int) -> None:
        self.early_packets += packets

    def is_held(self, traffic_class: int, frame_bytes: int) -> bool:
        return traffic_class in self.paused or self.credit_bytes < frame_bytes

    def start(self) -> None:
        self.starts += 1

    def queue_control(self, packet: Packet) -> None:
        self.control.append(packet)

    def answers(self) -> list[tuple[str, int]]:
        """Kind and number of the control packets since the last call."""
        told, self.control = self.control, []
        return [(packet.kind.name, packet.seq) for packet in told]


class HandWire:
    """The wire of a port: what was handed to it, and when its last bit leaves."""

    def __init__(self) -> None:
        self.packets: list[tuple[int, Packet]] = []
        self.pauses: list[tuple[int, int, int]] = []  # instant, class, quanta
        self.credits: list[tuple[int, int, int]] = []  # instant, class, bytes
        self.cuts = 0

    def carry(self, packet: Packet, left_at_ps: int) -> None:
        self.packets.append((left_at_ps, packet))

    def carry_pause(self, traffic_class: int, quanta: int, left_at_ps: int) -> None:
        self.pauses.append((left_at_ps, traffic_class, quanta))

    def carry_credit(self, traffic_class: int, credit_bytes: int, left_at_ps: int) -> None:
        self.credits.append((left_at_ps, traffic_class, credit_bytes))

    def cut(self) -> None:
        self.cuts += 1


class Tally(Counter[str]):
    """What a part has counted, as the function that it is given for that."""

    def __call__(self, name: str) -> None:
        self[name] += 1


class HandControl:
    """A congestion control that does what the test says, and remembers what it was told."""

    def __init__(
        self,
        *,
        signals: frozenset[Kind] = frozenset(Kind),
        receiver_signals: str | None = None,
        moves_departures: bool = False,
    ) -> None:
        self.plugin = SimpleNamespace(
            signals=signals, receiver_signals=receiver_signals or "data", moves_departures=moves_departures
        )
        self.has_receiver = receiver_signals is not None
        self.on_step: Callable[[Any, Any], None] = lambda _state, _signal: None
        self.heard: list[Any] = []
        self.new_signal = LoadedPolicy.new_signal

    def new_state(self) -> Any:
        return SimpleNamespace(
            rate_bps=0.0,
            window_bytes=0.0,
            timer_at_ps=[OFF] * TIMERS,
            timeout_ps=0,
            segment_bytes=0,
            request_bytes=0,
            send_request=0,
        )

    def new_receiver_state(self) -> Any:
        if not self.has_receiver:
            return None
        return SimpleNamespace(send_cnp=0, send_ack=0, credit_bytes=0, send_credit=0, timer_at_ps=[OFF] * TIMERS)

    def call_step(self, state: Any, signal: Any) -> None:
        self.heard.append(signal)
        self.on_step(state, signal)

    def call_receive(self, state: Any, shared: Any, signal: Any) -> None:
        del shared
        self.call_step(state, signal)

    def kinds(self) -> list[str]:
        """What it was told of since the last call."""
        told, self.heard = self.heard, []
        return [Kind(signal.kind).name for signal in told]


class HandInbox:
    """A receiving rank that takes every message, and claims as many as the test says."""

    def __init__(self) -> None:
        self.delivered = 0
        self.claimed = 0
        self.order: list[int] = []  # of the messages, as they were delivered

    def deliver(self, ordinal: int | None = None) -> None:
        self.order.append(self.delivered if ordinal is None else ordinal)
        self.delivered += 1


class HandPath:
    """A path selection that gives each packet, or each message, the next entropy."""

    def __init__(self, per: str, signals: frozenset[Kind] = frozenset()) -> None:
        self.plugin = SimpleNamespace(signals=signals, per=per)
        self.on_step: Callable[[Any, Any], None] = lambda _state, _signal: None
        self.heard: list[Any] = []
        self.sends = 0

    def new_state(self) -> Any:
        return SimpleNamespace(entropy=0, timer_at_ps=[OFF] * TIMERS)

    def call_step(self, state: Any, signal: Any) -> None:
        self.heard.append(signal)
        self.on_step(state, signal)
        if signal.kind == Kind.SEND:
            self.sends += 1
            state.entropy = self.sends

    def kinds(self) -> list[str]:
        """What it was told of since the last call."""
        told, self.heard = self.heard, []
        return [Kind(signal.kind).name for signal in told]


def wire(**changes: Any) -> Transport:
    """Every data packet has the same header, and no timeout comes by itself within a second."""
    return Transport.model_validate({"first_extra_bytes": 0, "retransmission_timeout_ps": SECOND_PS} | changes)


def queue_pair_config(
    policy: Any = None, path: Any = None, *, has_receives: bool = True, echoes: bool = True, **changes: Any
) -> QueuePairConfig:
    """Rules of a queue pair whose congestion control is a `HandControl`; changes are those of the transport."""
    return QueuePairConfig(
        transport=wire(**changes),
        congestion_control=policy or HandControl(),
        path_selection=path,
        control_class=CONTROL_CLASS,
        has_receives=has_receives,
        seed=1,
        echoes_time=echoes,
        echoes_entropy=echoes,
        has_telemetry=echoes,
        has_path_load=False,
        fabric_base_rtt_ps=FABRIC_BASE_RTT_PS,
    )


def data(seq: int, **changes: Any) -> Packet:
    """A full data packet of `FLOW` from port 0 to port 1."""
    values: dict[str, Any] = {
        "flow": FLOW,
        "origin": 0,
        "destination": 1,
        "kind": PacketKind.DATA,
        "seq": seq,
        "attempt": 0,
        "size_bytes": FRAME_BYTES,
        "traffic_class": 0,
        "entropy": FLOW.entropy,
        "payload_bytes": MTU_BYTES,
    }
    return Packet(**(values | changes))


def answer(kind: PacketKind, seq: int, **changes: Any) -> Packet:
    """A control packet of `FLOW` on its path back."""
    values = {"kind": kind, "origin": 1, "destination": 0, "size_bytes": 66, "traffic_class": CONTROL_CLASS}
    return data(seq, **(values | {"payload_bytes": 0} | changes))


def hand_port(
    clock: HandClock,
    tally: Tally,
    port: int = 0,
    *,
    local_index: int = 0,
    classes: int = 2,
    pause_quanta: int = 65_535,
    room_ahead_bytes: int | None = None,
    quantum_bytes: int = 1,
) -> Port:
    """A port of `RATE_BPS`, which the test has to `join` to a node and a wire; its link gives credit if there is room.

    Parameters
    ----------
    room_ahead_bytes, quantum_bytes : of each lane behind the far end's port, and what is returned at a time
    """
    config = PortConfig(
        id=port,
        local_index=local_index,
        rate_bps=RATE_BPS,
        classes=classes,
        pause_quanta=pause_quanta,
        pause_frame_bytes=64,
        interframe_bytes=20,
    )
    has_credits = room_ahead_bytes is not None
    return Port(config, clock, tally, LinkCredits(room_ahead_bytes, quantum_bytes, classes) if has_credits else None)
