"""Does a port selection keep its contract? Named checks over the catalogue and over a user's own file.

Leaves out: how well it balances; given a network, the kit sees no more than that every uplink is used.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import Any

from weftwork.policies.load import LoadedPolicy
from weftwork.testing.declarations import declaration_findings
from weftwork.testing.network import Usage, uplink_findings
from weftwork.testing.steps import BREAKS, DifferenceError, Finding, Twin, spread_findings

__all__ = ["check_port_selection"]

_STORIES = 6  # chosen: some thousand calls take a second
_PACKETS = 250
_STRIDES = (1, 4, 32, 1_024)  # chosen: leaves, and tiers above switches of some radices
_ALIKE = 8  # chosen: as many equal candidates for 64 flows each, so that a fair hash misses none


def check_port_selection(
    policy: LoadedPolicy, *, run: Callable[..., Usage] | None = None, seed: int = 1
) -> tuple[Finding, ...]:
    """Run every check.

    Parameters
    ----------
    policy : a loaded port selection
    run : if given, the checks that need a network are made too; `weftwork.testing.network.Uplinks` is one
    seed : of the packets and queues

    Returns
    -------
    what is wrong, in words; empty when nothing is
    """
    findings = {finding.check: finding for finding in declaration_findings(policy)}
    for number in range(_STORIES):
        runs = []
        for _ in range(2):
            taken: list[int] = []
            for finding in _packets(policy, seed * 1_000 + number, taken):
                findings.setdefault(finding.check, finding)
            runs.append(taken)
        if runs[0] != runs[1]:
            text = "the same packets took other ports the second time"
            findings.setdefault("same_signals_same_answers", Finding(check="same_signals_same_answers", text=text))
    is_sound = BREAKS.isdisjoint(findings)
    if is_sound:
        for finding in (*_equal_candidates(policy, seed), *spread_findings(policy)):
            findings[finding.check] = finding
    found = tuple(findings.values())
    return (*found, *uplink_findings(policy, run)) if run is not None and is_sound else found


def _equal_candidates(policy: LoadedPolicy, seed: int) -> Iterator[Finding]:
    """Many flows meet candidates that differ in nothing: each must be used."""
    source = random.Random(seed)
    twin = Twin(policy)
    signal = policy.new_port_signal()
    used: set[int] = set()
    for _ in range(64 * _ALIKE):
        signal.now_ps += int(10 ** source.uniform(2, 9))
        signal.hash, signal.draw = source.getrandbits(32), source.getrandbits(62)
        signal.bytes, signal.is_data, signal.candidates, signal.choice = 4_174, 1, _ALIKE, 0
        signal.destination, signal.stride = source.randrange(100_000), source.choice(_STRIDES)
        candidates = policy.new_candidates(_ALIKE)
        for candidate in candidates:
            candidate.rate_bps, candidate.weight, candidate.minimal = 400_000_000_000, 1, 1
        twin.step(signal, candidates)
        used.add(signal.choice)
    if len(used) < _ALIKE:
        text = f"of {_ALIKE} equal candidates it used only {sorted(used)} for {64 * _ALIKE} flows"
        yield Finding(check="uses_every_candidate", text=text)


def _packets(policy: LoadedPolicy, seed: int, taken: list[int]) -> Iterator[Finding]:
    source = random.Random(seed)
    plugin: Any = policy.plugin
    twin = Twin(policy)
    signal = policy.new_port_signal()
    sees_queues = "queue" in plugin.needs
    hashes = [source.getrandbits(32) for _ in range(20)]
    for _ in range(_PACKETS):
        signal.now_ps += int(10 ** source.uniform(2, 9))
        signal.hash = source.choice(hashes)
        signal.bytes = source.randrange(64, 4_200)
        signal.is_data = source.randrange(2)
        signal.candidates = source.choice((1, 2, 3, 8, 64))
        signal.destination, signal.stride = source.randrange(100_000), source.choice(_STRIDES)
        candidates = policy.new_candidates(signal.candidates)
        for candidate in candidates:
            candidate.queue_bytes = source.choice((0, source.randrange(1_000_000))) if sees_queues else 0
            candidate.rate_bps = source.choice((100_000_000_000, 400_000_000_000))
            candidate.weight = source.randrange(1, 9)
        choices = []
        for _ in range(2):  # two packets of one flow at one instant
            signal.draw = source.getrandbits(62)
            signal.choice = 0
            try:
                twin.step(signal, candidates)
            except DifferenceError as difference:
                yield Finding(check="compiled_equals_plain", text=str(difference))
                return
            if twin.error is not None:
                yield Finding(check="no_packet_breaks_the_step", text=str(twin.error))
                return
            choices.append(signal.choice)
        taken += choices
        if choices[0] != choices[1] and plugin.reorders != "always":
            text = f"it says that it does not reorder, and sent two packets of one flow at once to ports {choices}"
            yield Finding(check="keeps_its_path", text=text)
            return
