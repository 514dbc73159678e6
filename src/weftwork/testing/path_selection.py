"""Does a path selection keep its contract? Named checks over the catalogue and over a user's own file.

Leaves out: how well it balances; given a network, the kit sees no more than that every uplink is used.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import Any

from weftwork.policies.interface import Kind
from weftwork.policies.load import LoadedPolicy
from weftwork.testing.congestion_control import fill_signal
from weftwork.testing.declarations import declaration_findings
from weftwork.testing.network import Usage, uplink_findings
from weftwork.testing.steps import BREAKS, DifferenceError, Finding, Twin, spread_findings

__all__ = ["check_path_selection"]

_STORIES = 6  # chosen: some thousand calls take a second
_EVENTS = 250


def check_path_selection(
    policy: LoadedPolicy, *, run: Callable[..., Usage] | None = None, seed: int = 1
) -> tuple[Finding, ...]:
    """Run every check.

    Parameters
    ----------
    policy : a loaded path selection
    run : if given, the checks that need a network are made too; `weftwork.testing.network.Uplinks` is one
    seed : of the stories of sends, acknowledgements, losses and timeouts

    Returns
    -------
    what is wrong, in words; empty when nothing is
    """
    findings = {finding.check: finding for finding in declaration_findings(policy)}
    for number in range(_STORIES):
        runs = []
        for _ in range(2):
            taken: list[int] = []
            for finding in _story(policy, seed * 1_000 + number, taken):
                findings.setdefault(finding.check, finding)
            runs.append(taken)
        if runs[0] != runs[1]:
            text = "a second run of the same story took other paths"
            findings.setdefault("same_signals_same_answers", Finding(check="same_signals_same_answers", text=text))
    is_sound = BREAKS.isdisjoint(findings)
    if is_sound:
        for finding in spread_findings(policy):
            findings[finding.check] = finding
    found = tuple(findings.values())
    return (*found, *uplink_findings(policy, run)) if run is not None and is_sound else found


def _story(policy: LoadedPolicy, seed: int, taken: list[int]) -> Iterator[Finding]:
    source = random.Random(seed)
    plugin: Any = policy.plugin
    twin = Twin(policy)
    signal = policy.new_signal()
    signal.line_rate_bps, signal.base_rtt_ps, signal.mtu_bytes = 400_000_000_000, 12_000_000, 4_096
    twin.state.entropy = source.randrange(49_152, 65_536)
    for _ in range(_EVENTS):
        signal.now_ps += int(10 ** source.uniform(2, 9))
        kind = source.choices((Kind.SEND, Kind.ACK, Kind.NAK, Kind.TIMEOUT), (50, 40, 5, 3))[0]
        if kind not in plugin.signals | {Kind.SEND}:
            continue
        fill_signal(source, signal, kind)
        signal.kind = int(kind)
        before = twin.state.entropy
        try:
            twin.step(signal)
        except DifferenceError as difference:
            yield Finding(check="compiled_equals_plain", text=f"at {kind.name}: {difference}")
            return
        if twin.error is not None:
            yield Finding(check="no_signal_breaks_the_step", text=f"at {kind.name}: {twin.error}")
            return
        if kind == Kind.SEND:
            taken.append(twin.state.entropy)
            if plugin.reorders != "always" and plugin.per == "packet" and before != twin.state.entropy:
                text = f"it says that it does not reorder, and moved a packet from entropy {before} to {taken[-1]}"
                yield Finding(check="keeps_its_path", text=text)
                return
