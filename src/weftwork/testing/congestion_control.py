"""Named checks of a congestion control's contract.

They hold for the catalogue and for a user's own file. A check tells one queue pair's story to the step: starts, sends,
acknowledgements, notifications, losses, cut packets, credits, requests, timers, idle times, drawn at random and always
the same. Each signal is one that an engine could send, though perhaps not in that order; none may break a step.
Leaves out: whether the control is any good. `network_findings` asks that of an engine.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from weftwork.policies.interface import NO_WINDOW_BYTES, OFF, TIMERS, Kind
from weftwork.policies.load import LoadedPolicy
from weftwork.testing.declarations import declaration_findings
from weftwork.testing.queue_pair import ToldQueuePair, fired_timers
from weftwork.testing.steps import BREAKS, DifferenceError, Finding, Twin

__all__ = ["check_congestion_control", "network_findings"]

Run = Callable[[LoadedPolicy, int], Sequence[float]]
_STORIES = 6  # chosen: some thousand calls take a second
_EVENTS = 250
_SHIFT_PS = 1_000_000_000_000  # chosen: a second later everything must happen alike


def check_congestion_control(
    policy: LoadedPolicy, *, run: Run | None = None, seed: int = 1, stories: int = _STORIES
) -> tuple[Finding, ...]:
    """Run every check.

    Parameters
    ----------
    policy : a loaded congestion control
    run : if given, the checks that need a network are made too; see `network_findings`
    seed : of the stories
    stories : how many; of two in a row one needs all that a policy may need

    Returns
    -------
    what is wrong, in words; empty when nothing is
    """
    findings = {finding.check: finding for finding in declaration_findings(policy)}
    for number in range(stories):
        for finding in _story_findings(policy, seed * 1_000 + number):
            findings.setdefault(finding.check, finding)
    found = tuple(findings.values())
    return (*found, *network_findings(policy, run)) if run is not None and BREAKS.isdisjoint(findings) else found


def network_findings(policy: LoadedPolicy, run: Run) -> tuple[Finding, ...]:
    """Check in a network: one flow fills the link, two share it.

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
        yield Finding(check="same_signals_same_answers", text="a second run of the same events ended differently")
    if traces[0] != traces[2]:
        text = "one second later, the same events gave other rates or windows; the step uses absolute time"
        yield Finding(check="only_differences_of_time_count", text=text)


class _Story:
    """Events of one queue pair, for both forms of the step."""

    def __init__(self, policy: LoadedPolicy, seed: int, offset_ps: int) -> None:
        self.policy = policy
        self.random = random.Random(seed)
        self.twin = Twin(policy)
        self.kinds = policy.plugin.signals | {Kind.START, Kind.TIMER}  # type: ignore[union-attr]
        self.pair = ToldQueuePair(policy, self.random, step="sender", now_ps=offset_ps, all_needs=seed % 2 == 1)
        self.trace: list[tuple[float, ...]] = []
        self.is_over = False

    def tell(self) -> Iterator[Finding]:
        self.twin.state.rate_bps = self.pair.signal.line_rate_bps
        yield from self.send(self.pair.tell(Kind.START))
        for _ in range(_EVENTS):
            if not self.is_over:
                yield from self.event()

    def event(self) -> Iterator[Finding]:
        pair = self.pair
        next_ps = pair.now_ps + int(10 ** self.random.uniform(2, 8.5))
        yield from fired_timers(self, self.twin.state, next_ps, self.send_timer)
        if self.twin.receiver is not None:
            yield from fired_timers(self, self.twin.receiver, next_ps, lambda timer: self.receive(Kind.TIMER, timer))
        if self.is_over:
            return
        pair.now_ps = next_ps
        kinds = (Kind.SEND, Kind.ACK, Kind.CNP, Kind.NAK, Kind.TIMEOUT, Kind.CREDIT, Kind.DATA, Kind.RESUME, Kind.TRIM)
        kind = self.random.choices(kinds, (30, 30, 8, 2, 1, 4, 20, 2, 3))[0]
        if kind == Kind.DATA:
            yield from self.receive(kind)
            return
        if kind == Kind.RESUME:
            yield from self.rest()
        if kind == Kind.TRIM:
            yield from self.receive(kind)
            if "trimming" not in self.policy.plugin.needs:
                return
        if not pair.can_happen(kind):
            kind = Kind.ACK if kind == Kind.SEND else Kind.SEND
        yield from self.send(pair.tell(kind))
        if kind == Kind.ACK and Kind.ACK in self.kinds and not self.is_over:
            yield from self.old_news()

    def rest(self) -> Iterator[Finding]:
        """Finish all work and stay idle for a while.

        The engine then stops the timers.
        """
        yield from self.send(self.pair.finish())
        for timer in range(TIMERS):
            self.twin.state.timer_at_ps[timer] = OFF
        self.pair.now_ps += int(10 ** self.random.uniform(5, 10))

    def send_timer(self, timer: int) -> Iterator[Finding]:
        yield from self.send(self.pair.tell(Kind.TIMER, timer=timer))

    def send(self, signal: Any) -> Iterator[Finding]:  # noqa: ANN401
        kind = Kind(signal.kind)
        if kind not in self.kinds or self.is_over:
            return
        try:
            self.twin.step(signal)
        except DifferenceError as difference:
            yield self.ends("compiled_equals_plain", f"at {kind.name}: {difference}")
            return
        if self.twin.error is not None:
            yield self.ends("no_signal_breaks_the_step", f"at {kind.name}: {self.twin.error}")
            return
        state = self.twin.state
        own = (state.timeout_ps, state.segment_bytes, state.request_bytes, state.send_request)
        self.trace.append((state.rate_bps, state.window_bytes, *own))
        if state.rate_bps > signal.line_rate_bps:
            text = f"at {kind.name} the rate became {state.rate_bps:,.0f} bit/s on a line of {signal.line_rate_bps:,}"
            yield Finding(check="rate_within_line_rate", text=text)
        if state.window_bytes > NO_WINDOW_BYTES:
            text = f"at {kind.name} the window became {state.window_bytes}"
            yield Finding(check="window_within_bounds", text=text)
        if state.send_request:
            state.send_request = 0  # the NIC takes what was asked of it
            yield from self.receive(Kind.REQUEST)

    def receive(self, kind: Kind, timer: int = 0) -> Iterator[Finding]:
        plugin: Any = self.policy.plugin
        receiver = self.twin.receiver
        if receiver is None or self.is_over:
            return
        signal = self.pair.hear(kind, timer, self.twin.state.request_bytes)
        if kind == Kind.DATA and plugin.receiver_signals == "ecn" and signal.ecn == 0:
            return
        try:
            self.twin.receive(signal)
        except DifferenceError as difference:
            yield self.ends("compiled_equals_plain", f"receiver, at {kind.name}: {difference}")
            return
        if self.twin.error is not None:
            yield self.ends("no_signal_breaks_the_step", f"receiver, at {kind.name}: {self.twin.error}")
            return
        # The NIC takes what was asked of it; credit stays, since it counts all that was ever granted.
        receiver.send_cnp = 0
        receiver.send_ack = 0
        receiver.send_credit = 0

    def old_news(self) -> Iterator[Finding]:
        """Repeat the last acknowledgement, which has no news."""
        before = (self.twin.state.rate_bps, self.twin.state.window_bytes)
        told = len(self.trace)
        yield from self.send(self.pair.old_news())
        if len(self.trace) == told:
            return
        after = self.trace.pop()
        if after[0] > before[0] or after[1] > before[1]:
            text = f"an ACK of nothing new raised (rate, window) from {before} to {after[:2]}"
            yield Finding(check="no_reaction_to_old_news", text=text)

    def ends(self, check: str, text: str) -> Finding:
        self.is_over = True
        return Finding(check=check, text=text)
