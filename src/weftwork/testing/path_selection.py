"""Named checks of a path selection's contract.

They hold for the catalogue and for a user's own file.
Leaves out: how well it balances; given a network, the kit sees no more than that every uplink is used.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import Any

from weftwork.policies.interface import OFF, TIMERS, Kind
from weftwork.policies.load import LoadedPolicy
from weftwork.testing.declarations import declaration_findings
from weftwork.testing.network import Usage, uplink_findings
from weftwork.testing.queue_pair import ToldQueuePair, fired_timers
from weftwork.testing.steps import BREAKS, DifferenceError, Finding, Twin, spread_findings

__all__ = ["check_path_selection"]

_STORIES = 6  # chosen: some thousand calls take a second
_EVENTS = 250


def check_path_selection(
    policy: LoadedPolicy, *, run: Callable[..., Usage] | None = None, seed: int = 1, stories: int = _STORIES
) -> tuple[Finding, ...]:
    """Run every check.

    Parameters
    ----------
    policy : a loaded path selection
    run : if given, the checks that need a network are made too; `weftwork.testing.network.Uplinks` is one
    seed : of the stories of sends, acknowledgements, losses, cut packets, timeouts, timers and idle times
    stories : how many; of two in a row one needs all that a policy may need

    Returns
    -------
    what is wrong, in words; empty when nothing is
    """
    findings = {finding.check: finding for finding in declaration_findings(policy)}
    for number in range(stories):
        runs = []
        for _ in range(2):
            story = _PathStory(policy, seed * 1_000 + number)
            for finding in story.tell():
                findings.setdefault(finding.check, finding)
            runs.append(story.taken)
        if runs[0] != runs[1]:
            text = "a second run of the same events took other paths"
            findings.setdefault("same_signals_same_answers", Finding(check="same_signals_same_answers", text=text))
    is_sound = BREAKS.isdisjoint(findings)
    if is_sound:
        for finding in spread_findings(policy):
            findings[finding.check] = finding
    found = tuple(findings.values())
    return (*found, *uplink_findings(policy, run)) if run is not None and is_sound else found


class _PathStory:
    """Events of one queue pair, for both forms of the step.

    ``taken`` are the entropies of its packets.
    """

    def __init__(self, policy: LoadedPolicy, seed: int) -> None:
        plugin: Any = policy.plugin
        self.plugin = plugin
        self.random = random.Random(seed)
        self.pair = ToldQueuePair(policy, self.random, step="path", all_needs=seed % 2 == 1)
        self.twin = Twin(policy)
        self.twin.state.entropy = self.pair.own_entropy
        self.kinds = plugin.signals | {Kind.SEND, Kind.TIMER}
        self.taken: list[int] = []
        self.is_over = False

    def tell(self) -> Iterator[Finding]:
        yield from self.send(Kind.START)
        for _ in range(_EVENTS):
            if not self.is_over:
                yield from self.event()

    def event(self) -> Iterator[Finding]:
        pair, source = self.pair, self.random
        next_ps = pair.now_ps + int(10 ** source.uniform(2, 9))
        yield from fired_timers(self, self.twin.state, next_ps, lambda timer: self.send(Kind.TIMER, timer))
        pair.now_ps = next_ps
        kinds = (Kind.SEND, Kind.ACK, Kind.NAK, Kind.TIMEOUT, Kind.RESUME, Kind.TRIM)
        kind = source.choices(kinds, (50, 40, 5, 3, 2, 3 * ("trimming" in self.plugin.needs)))[0]
        if not pair.can_happen(kind):
            kind = Kind.ACK if kind == Kind.SEND else Kind.SEND
        if kind == Kind.RESUME:
            yield from self.step(pair.finish())
            for timer in range(TIMERS):
                self.twin.state.timer_at_ps[timer] = OFF
            pair.now_ps += int(10 ** source.uniform(5, 10))
        before = self.twin.state.entropy
        yield from self.send(kind)
        if kind != Kind.SEND or self.is_over:
            return
        moved = [before, self.taken[-1]]
        if self.plugin.reorders == "on-move" and pair.can_happen(kind):  # another packet at the same instant
            yield from self.send(kind)
            moved = self.taken[-2:]
        if self.plugin.reorders != "always" and self.plugin.per == "packet" and moved[0] != moved[-1]:
            told = f"reorders is {self.plugin.reorders!r}, and it moved a packet from entropy {moved[0]} to {moved[-1]}"
            hint = (
                "though the packet before left at the same instant; reorders='always' says that any packet may move"
                if self.plugin.reorders == "on-move"
                else "; reorders='on-move' or 'always' says that it may"
            )
            yield self.ends("keeps_its_path", f"{told}{'' if hint[0] == ';' else ', '}{hint}")

    def send(self, kind: Kind, timer: int = 0) -> Iterator[Finding]:
        yield from self.step(self.pair.tell(kind, timer=timer))

    def step(self, signal: Any) -> Iterator[Finding]:  # noqa: ANN401
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
        if kind == Kind.SEND:
            self.taken.append(self.twin.state.entropy)
            self.pair.carries(self.twin.state.entropy)

    def ends(self, check: str, text: str) -> Finding:
        self.is_over = True
        return Finding(check=check, text=text)
