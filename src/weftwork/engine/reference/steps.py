"""The steps of a sender's policies: calls, timers, and requests.

Their states hold the requests.
Source: `docs/models/packet-engine.md`, sections Sending data, Timers of a step, and What policies see and write.
Leaves out: what a signal tells, see `signals`; window and rate, which the sender reads when it sends.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, cast

from weftwork.base.random import Stream
from weftwork.engine.reference.clock import Agenda, Clock
from weftwork.engine.reference.flow import Flow, QueuePairConfig
from weftwork.engine.reference.pacing import Pacer
from weftwork.engine.reference.packet import Packet
from weftwork.engine.reference.signals import SenderSignals, SenderView
from weftwork.engine.reference.timers import PolicyTimers
from weftwork.policies.interface import NO_WINDOW_BYTES, TIMERS, CongestionControl, Kind, PathSelection

__all__ = ["SenderSteps"]

_ALWAYS: Final = frozenset({Kind.START, Kind.TIMER})  # told to a control, whether it asks or not


class SenderSteps:
    """Congestion control and path selection of one sender.

    Parameters
    ----------
    flow, config : identity and rules of the queue pair
    clock : what time it is
    sender : whose line and slot timers go by
    signals : makes what steps are told
    pacer : of the sender; a control that ``moves_departures`` moves what it holds
    queue_request : called when a step asks for a REQUEST

    Attributes
    ----------
    state : of the congestion control
    entropy : the last one that path selection has chosen
    """

    def __init__(
        self,
        flow: Flow,
        config: QueuePairConfig,
        *,
        clock: Clock,
        sender: SenderView,
        signals: SenderSignals,
        pacer: Pacer,
        queue_request: Callable[[], None],
    ) -> None:
        self.flow = flow
        self.config = config
        self.clock = clock
        self.sender = sender
        self.signals = signals
        self.pacer = pacer
        self.queue_request = queue_request
        self.control = config.congestion_control
        plugin = cast("CongestionControl", self.control.plugin)
        self.state: Any = self.control.new_state()
        self.state.rate_bps = float(sender.line.rate_bps)
        self.state.window_bytes = NO_WINDOW_BYTES
        self.timers = PolicyTimers(
            clock, Agenda.CONGESTION_CONTROL, self.state, self._control_timer_fires, self.control
        )
        self.control_signals = plugin.signals | _ALWAYS
        self.moves_departures = plugin.moves_departures
        self.path = config.path_selection
        self.entropy = flow.entropy
        self.path_signals: frozenset[Kind] = frozenset()
        if self.path is not None:
            choice = cast("PathSelection", self.path.plugin)
            self.path_signals = choice.signals
            self.path_per_packet = choice.per == "packet"
            self.path_state: Any = self.path.new_state()
            self.path_state.entropy = flow.entropy
            self.path_timers = PolicyTimers(
                clock, Agenda.CONGESTION_CONTROL, self.path_state, self._path_timer_fires, self.path, first=TIMERS
            )

    # Calls

    def tell(self, signal: Any) -> None:  # noqa: ANN401 - the record of the policies
        """Tell path selection, then congestion control, about an event.

        A policy is told if it asks for the event.
        """
        self._tell_path(signal)
        self.tell_control(signal)

    def tell_control(self, signal: Any) -> None:  # noqa: ANN401
        """Tell only congestion control, and apply its state."""
        if signal.kind not in self.control_signals:
            return
        self.control.call_step(self.state, signal)
        self.timers.schedule(self.sender.line.id, self.sender.slot)
        if self.moves_departures and signal.kind != Kind.SEND:
            self.pacer.move(self.clock.now_ps, self.state.rate_bps)
        if self.state.send_request:
            self.state.send_request = 0
            self.queue_request()

    def choose_entropy(self, packet: Packet, *, is_first: bool) -> int:
        """Let path selection choose the path of a packet.

        Without a path selection it is the queue pair's entropy.
        """
        if self.path is not None and (self.path_per_packet or is_first):
            draw_bits = packet.draw(self.config.seed, Stream.PATH_CHOICE, self.sender.line.id) >> 2
            signal = self.signals.of(
                Kind.SEND, bytes=packet.payload_bytes, seq=packet.seq, draw=draw_bits, entropy=self.flow.entropy
            )
            self._call_path(signal)
            self.entropy = int(self.path_state.entropy)
        return self.entropy

    def _tell_path(self, signal: Any) -> None:  # noqa: ANN401
        if signal.kind in self.path_signals:
            self._call_path(signal)

    def _call_path(self, signal: Any) -> None:  # noqa: ANN401
        if self.path is not None:
            self.path.call_step(self.path_state, signal)
            self.path_timers.schedule(self.sender.line.id, self.sender.slot)

    # Timers

    def stop(self) -> None:
        """Set all timers OFF: the queue pair is idle or in error."""
        self.timers.stop()
        if self.path is not None:
            self.path_timers.stop()

    def move(self) -> None:
        """Move to the sender's new line and slot; timers keep their instants."""
        self.timers.schedule(self.sender.line.id, self.sender.slot)
        if self.path is not None:
            self.path_timers.schedule(self.sender.line.id, self.sender.slot)

    def _control_timer_fires(self, timer: int) -> None:
        self.tell_control(self.signals.of(Kind.TIMER, timer=timer))
        self.sender.line.start()

    def _path_timer_fires(self, timer: int) -> None:
        self._call_path(self.signals.of(Kind.TIMER, timer=timer))
        self.sender.line.start()
