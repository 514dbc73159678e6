"""Does a congestion control keep its contract? Named checks over the catalogue and over a user's own file.

A check tells one queue pair's story to the step: starts, sends, acknowledgements, notifications, losses, timers, idle
times, drawn at random and always the same. Signals that a real network could not send in that order may occur; none
may break a step. Leaves out: whether the control is any good. `network_findings` asks that of an engine.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from weftwork.policies.interface import HOPS, NO_WINDOW_BYTES, OFF, TIMERS, Kind
from weftwork.policies.load import LoadedPolicy
from weftwork.testing.declarations import declaration_findings
from weftwork.testing.steps import BREAKS, DifferenceError, Finding, Twin

__all__ = ["check_congestion_control", "network_findings"]

Run = Callable[[LoadedPolicy, int], Sequence[float]]
_STORIES = 6  # chosen: some thousand calls take a second
_EVENTS = 250
_SHIFT_PS = 1_000_000_000_000  # chosen: a second later everything must happen alike
_LINE_RATES_BPS = (10_000_000_000, 25_000_000_000, 100_000_000_000, 400_000_000_000, 800_000_000_000)


def check_congestion_control(policy: LoadedPolicy, *, run: Run | None = None, seed: int = 1) -> tuple[Finding, ...]:
    """Run every check.

    Parameters
    ----------
    policy : a loaded congestion control
    run : if given, the checks that need a network are made too; see `network_findings`
    seed : of the stories

    Returns
    -------
    what is wrong, in words; empty when nothing is
    """
    findings = {finding.check: finding for finding in declaration_findings(policy)}
    for number in range(_STORIES):
        for finding in _story_findings(policy, seed * 1_000 + number):
            findings.setdefault(finding.check, finding)
    found = tuple(findings.values())
    return (*found, *network_findings(policy, run)) if run is not None and BREAKS.isdisjoint(findings) else found


def network_findings(policy: LoadedPolicy, run: Run) -> tuple[Finding, ...]:
    """Check what only a network shows: one flow fills the link, two share it.

    Parameters
    ----------
    policy : a loaded congestion control
    run : ``run(policy, flows)`` sends long ``flows`` over one bottleneck until they are steady and returns the goodput
        of each as a fraction of what one flow without a control would get; `weftwork.testing.network.Bottleneck` is one
    """
    findings = []
    (alone,) = run(policy, 1)
    if alone < 0.9:  # chosen: HPCC aims at 0.95 of the link, and starts from one window
        findings.append(Finding(check="one_flow_fills_the_link", text=f"it gets {alone:.1%} of it, wanted 90 %"))
    shares = run(policy, 2)
    jain = sum(shares) ** 2 / (len(shares) * sum(share * share for share in shares))
    if jain < 0.95:  # chosen: the worse of two flows then still has three fifths of the better one's rate
        text = f"they get {', '.join(f'{share:.1%}' for share in shares)}: a Jain index of {jain:.3f}, wanted 0.95"
        findings.append(Finding(check="two_flows_share_the_link", text=text))
    if sum(shares) < 0.85:  # chosen: as above, with some loss to their quarrel
        findings.append(Finding(check="two_flows_fill_the_link", text=f"together they get {sum(shares):.1%}"))
    return tuple(findings)


def _story_findings(policy: LoadedPolicy, seed: int) -> Iterator[Finding]:
    traces = []
    for offset_ps in (0, 0, _SHIFT_PS):
        story = _Story(policy, seed, offset_ps)
        yield from story.tell()
        traces.append(story.trace)
    if traces[0] != traces[1]:
        yield Finding(check="same_signals_same_answers", text="a second run of the same story ended differently")
    if traces[0] != traces[2]:
        text = "told one second later, the same story gave other rates or windows; the step uses absolute time"
        yield Finding(check="only_differences_of_time_count", text=text)


class _Story:
    """One queue pair's life, told to both forms of the step."""

    def __init__(self, policy: LoadedPolicy, seed: int, offset_ps: int) -> None:
        self.policy = policy
        self.random = random.Random(seed)
        self.twin = Twin(policy)
        self.kinds = policy.plugin.signals | {Kind.START, Kind.TIMER}  # type: ignore[union-attr]
        self.signal: Any = policy.new_signal()
        self.signal.now_ps = offset_ps
        self.signal.line_rate_bps = self.random.choice(_LINE_RATES_BPS)
        self.signal.base_rtt_ps = self.random.choice((2_000_000, 12_345_678, 1_000_000_000))
        self.signal.mtu_bytes = self.random.choice((1_000, 4_096))
        self.trace: list[tuple[float, float]] = []
        self.acked = 0
        self.is_over = False

    def tell(self) -> Iterator[Finding]:
        signal, state = self.signal, self.twin.state
        state.rate_bps = signal.line_rate_bps
        signal.backlog_bytes = 100 * signal.mtu_bytes
        yield from self.send(Kind.START)
        for _ in range(_EVENTS):
            if not self.is_over:
                yield from self.event()

    def event(self) -> Iterator[Finding]:
        signal = self.signal
        next_ps = signal.now_ps + int(10 ** self.random.uniform(2, 8.5))
        yield from self.timers(self.twin.state, until_ps=next_ps, tell=self.send)
        if self.twin.receiver is not None:
            yield from self.timers(self.twin.receiver, until_ps=next_ps, tell=self.receive)
        if self.is_over:
            return
        signal.now_ps = next_ps
        kind = self.random.choices(
            (Kind.SEND, Kind.ACK, Kind.CNP, Kind.NAK, Kind.TRIM, Kind.TIMEOUT, Kind.CREDIT, Kind.DATA, Kind.RESUME),
            (30, 30, 8, 2, 2, 1, 4, 20, 2),
        )[0]
        fill_signal(self.random, signal, kind)
        if kind == Kind.DATA:
            yield from self.receive(kind)
            return
        if kind == Kind.RESUME:
            self.rest()
        elif kind == Kind.SEND:
            signal.next_seq += 1
        elif kind == Kind.ACK:
            self.acked = min(signal.next_seq, self.acked + self.random.randrange(4))
            signal.seq = self.acked
        yield from self.send(kind)
        if kind == Kind.ACK and Kind.ACK in self.kinds and not self.is_over:
            yield from self.old_news()

    def rest(self) -> None:
        """Be idle for a while: the engine stops the timers."""
        for timer in range(TIMERS):
            self.twin.state.timer_at_ps[timer] = OFF
        self.signal.now_ps += int(10 ** self.random.uniform(5, 10))

    def timers(self, state: Any, *, until_ps: int, tell: Callable[[Kind], Iterator[Finding]]) -> Iterator[Finding]:  # noqa: ANN401
        for _ in range(50):  # chosen: enough for any timer of a microsecond in the gap; later ones fire late
            due = [(state.timer_at_ps[t], t) for t in range(TIMERS) if state.timer_at_ps[t] != OFF]
            if self.is_over or not due or min(due)[0] > until_ps:
                return
            at_ps, timer = min(due)
            self.signal.now_ps = max(self.signal.now_ps, at_ps)
            self.signal.timer = timer
            state.timer_at_ps[timer] = OFF
            yield from tell(Kind.TIMER)
            if OFF != state.timer_at_ps[timer] <= self.signal.now_ps and not self.is_over:
                self.is_over = True
                text = f"timer {timer} fired and was set to the same instant again; the run would never end"
                yield Finding(check="timers_move_on", text=text)

    def send(self, kind: Kind) -> Iterator[Finding]:
        if kind not in self.kinds:
            return
        self.signal.kind = int(kind)
        try:
            self.twin.step(self.signal)
        except DifferenceError as difference:
            yield self.ends("compiled_equals_plain", f"at {kind.name}: {difference}")
            return
        if self.twin.error is not None:
            yield self.ends("no_signal_breaks_the_step", f"at {kind.name}: {self.twin.error}")
            return
        state = self.twin.state
        self.trace.append((state.rate_bps, state.window_bytes))
        if state.rate_bps > self.signal.line_rate_bps:
            text = (
                f"at {kind.name} the rate became {state.rate_bps:,.0f} bit/s on a line of {self.signal.line_rate_bps:,}"
            )
            yield Finding(check="rate_within_line_rate", text=text)
        if state.window_bytes > NO_WINDOW_BYTES:
            text = f"at {kind.name} the window became {state.window_bytes}"
            yield Finding(check="window_within_bounds", text=text)

    def receive(self, kind: Kind) -> Iterator[Finding]:
        plugin: Any = self.policy.plugin
        if self.twin.receiver is None:
            return
        if kind == Kind.DATA and plugin.receiver_signals == "ecn" and self.signal.ecn == 0:
            return
        self.signal.kind = int(kind)
        try:
            self.twin.receive(self.signal)
        except DifferenceError as difference:
            yield self.ends("compiled_equals_plain", f"receiver, at {kind.name}: {difference}")
            return
        if self.twin.error is not None:
            yield self.ends("no_signal_breaks_the_step", f"receiver, at {kind.name}: {self.twin.error}")
            return
        # The NIC takes what was asked of it.
        receiver = self.twin.receiver
        receiver.send_cnp = 0
        receiver.send_ack = 0
        receiver.credit_bytes = 0

    def old_news(self) -> Iterator[Finding]:
        """Tell the last acknowledgement again: nothing in it is new."""
        before = (self.twin.state.rate_bps, self.twin.state.window_bytes)
        self.signal.bytes = 0
        self.signal.ecn = 0
        told = len(self.trace)
        yield from self.send(Kind.ACK)
        if len(self.trace) == told:
            return
        after = self.trace.pop()
        if after[0] > before[0] or after[1] > before[1]:
            text = f"an ACK of nothing new raised (rate, window) from {before} to {after}"
            yield Finding(check="no_reaction_to_old_news", text=text)

    def ends(self, check: str, text: str) -> Finding:
        self.is_over = True
        return Finding(check=check, text=text)


def fill_signal(source: random.Random, signal: Any, kind: Kind) -> None:  # noqa: ANN401
    """Draw what a signal of this kind may carry."""
    signal.bytes = source.choice((0, 1, signal.mtu_bytes, source.randrange(1, 1_000_000))) if kind == Kind.ACK else 0
    if kind in (Kind.SEND, Kind.DATA, Kind.CREDIT):
        signal.bytes = source.randrange(1, signal.mtu_bytes + 1)
    signal.ecn = int(source.random() < 0.3)
    queueing_ps = int(10 ** source.uniform(0, 9))
    signal.rtt_ps = 0 if source.random() < 0.1 else signal.base_rtt_ps + queueing_ps
    signal.host_delay_ps = source.randrange(signal.rtt_ps + 1)
    signal.fabric_delay_ps = signal.rtt_ps - signal.host_delay_ps
    signal.entropy = source.randrange(65_536)
    signal.draw = source.getrandbits(62)
    signal.inflight_bytes = source.choice((0, signal.mtu_bytes, source.randrange(10_000_000)))
    signal.backlog_bytes = source.choice((0, 1, source.randrange(1_000_000_000)))
    signal.hops = source.randrange(HOPS + 1)
    for hop in range(signal.hops):
        signal.hop_queue_bytes[hop] = source.choice((0, source.randrange(10_000_000)))
        signal.hop_tx_bytes[hop] += source.randrange(10_000_000)
        signal.hop_rate_bps[hop] = signal.line_rate_bps
        signal.hop_at_ps[hop] = max(signal.now_ps - source.randrange(1_000_000), signal.hop_at_ps[hop])
