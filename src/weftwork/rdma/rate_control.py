"""Congestion control of a queue pair by the simulator's step.

The step sets the rate; CNPs tell it of marks.
Source: IBTA vol. 1, annex A17 (CNP); the steps are those of ``weftwork.policies.congestion_control``.
Leaves out: controls that need an RTT, telemetry or credits, which are refused.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, cast

from weftwork.base.errors import UsageError
from weftwork.policies.interface import NO_WINDOW_BYTES, OFF, TIMERS, CongestionControl, Kind

if TYPE_CHECKING:
    from weftwork.policies.load import LoadedPolicy

__all__ = ["RateControl"]

_TOLD: Final = frozenset({Kind.START, Kind.RESUME, Kind.SEND, Kind.CNP, Kind.TIMER})
_PS_PER_BYTE_SECOND: Final = 8e12  # bits per byte x picoseconds per second


class RateControl:
    """One queue pair's sending and receiving step.

    Parameters
    ----------
    policy : of the kind ``congestion_control``
    line_rate_bps : of the port
    mtu_bytes : payload of a full packet

    Attributes
    ----------
    state : of the sending step
    mtu_bytes : may change while the queue pair is not connected
    next_send_at_ps : when the next packet may leave

    Raises
    ------
    UsageError : the control needs more than marks and CNPs
    """

    def __init__(self, policy: LoadedPolicy, line_rate_bps: int, mtu_bytes: int) -> None:
        plugin = cast("CongestionControl", policy.plugin)
        more = sorted({kind.name for kind in plugin.signals - _TOLD} | (set(plugin.needs) - {"ecn"}))
        if more:
            raise UsageError(
                f"congestion control: found {policy.name}, which needs {', '.join(more)}; wanted CNPs alone"
            )
        self._policy: Final = policy
        self._line_rate_bps: Final = line_rate_bps
        self.mtu_bytes = mtu_bytes
        self._signals: Final = plugin.signals | {Kind.START, Kind.TIMER}
        self._has_receive: Final = plugin.receive is not None
        self.state: Any = policy.new_state()
        self.state.rate_bps = float(line_rate_bps)
        self.state.window_bytes = NO_WINDOW_BYTES
        self._receiver: Any = policy.new_receiver_state() if self._has_receive else None
        self._shared: Any = policy.new_shared_state() if self._has_receive else None
        self.next_send_at_ps = 0
        self._has_started = False
        self._is_idle = True

    @property
    def rate_bps(self) -> float:
        """Sending rate of packets."""
        return float(self.state.rate_bps)

    def wake(self, now_ps: int) -> None:
        """Note that packets wait."""
        if self._is_idle:
            self._is_idle = False
            self._tell(Kind.RESUME if self._has_started else Kind.START, now_ps)
            self._has_started = True

    def rest(self) -> None:
        """Note that no packets wait: timers stop."""
        if not self._is_idle:
            self._is_idle = True
            for timer in range(TIMERS):
                self.state.timer_at_ps[timer] = OFF

    def may_send(self, now_ps: int, inflight_bytes: int) -> bool:
        """Whether rate and window permit a packet."""
        fits = inflight_bytes == 0 or inflight_bytes + self.mtu_bytes <= self.state.window_bytes
        return fits and now_ps >= self.next_send_at_ps

    def sent(self, now_ps: int, payload_bytes: int, wire_bytes: int) -> None:
        """Note a sent packet, with message bytes and frame bytes."""
        self._tell(Kind.SEND, now_ps, payload_bytes)
        if self.rate_bps < self._line_rate_bps:  # at the line rate the line itself is the pace
            begin_ps = max(now_ps, self.next_send_at_ps)
            self.next_send_at_ps = begin_ps + int(wire_bytes * _PS_PER_BYTE_SECOND / self.rate_bps)

    def take_cnp(self, now_ps: int) -> None:
        """Note an arrived CNP."""
        if self._has_started:
            self._tell(Kind.CNP, now_ps)

    def take_data(self, now_ps: int, payload_bytes: int, *, is_marked: bool) -> bool:
        """Note an arrived packet; returns whether to send a CNP."""
        if not self._has_receive:
            return False
        signal = self._signal(Kind.DATA, now_ps, payload_bytes)
        signal.ecn = int(is_marked)
        self._policy.call_receive(self._receiver, self._shared, signal)
        sends_cnp = bool(self._receiver.send_cnp)
        self._receiver.send_cnp = 0
        return sends_cnp

    def next_timer_ps(self) -> int | None:
        """Next instant at which a timer of the step fires, or None."""
        return min((int(at_ps) for at_ps in self.state.timer_at_ps if at_ps != OFF), default=None)

    def on_timer(self, now_ps: int) -> None:
        """Fire the timers that are due, each once."""
        for timer in range(TIMERS):
            if self.state.timer_at_ps[timer] != OFF and self.state.timer_at_ps[timer] <= now_ps:
                self.state.timer_at_ps[timer] = OFF
                signal = self._signal(Kind.TIMER, now_ps)
                signal.timer = timer
                self._policy.call_step(self.state, signal)

    def _tell(self, kind: Kind, now_ps: int, payload_bytes: int = 0) -> None:
        if kind in self._signals:
            self._policy.call_step(self.state, self._signal(kind, now_ps, payload_bytes))
            if self._is_idle:
                for timer in range(TIMERS):
                    self.state.timer_at_ps[timer] = OFF

    def _signal(self, kind: Kind, now_ps: int, payload_bytes: int = 0) -> Any:  # noqa: ANN401 - as in the engine
        signal = self._policy.new_signal()
        signal.kind = int(kind)
        signal.now_ps = now_ps
        signal.bytes = payload_bytes
        signal.line_rate_bps = self._line_rate_bps
        signal.mtu_bytes = self.mtu_bytes
        return signal
