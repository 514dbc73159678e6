"""Does a port selection keep its contract? Named checks over the catalogue and over a user's own file.

Leaves out: how well it balances, which only an engine shows.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

from weft.policies.load import LoadedPolicy
from weft.testing.steps import DifferenceError, Finding, Twin

__all__ = ["check_port_selection"]

_STORIES = 6  # chosen: some thousand calls take a second
_PACKETS = 250


def check_port_selection(policy: LoadedPolicy, *, seed: int = 1) -> tuple[Finding, ...]:
    """Run every check.

    Parameters
    ----------
    policy : a loaded port selection
    seed : of the packets and queues

    Returns
    -------
    what is wrong, in words; empty when nothing is
    """
    findings: dict[str, Finding] = {}
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
    return tuple(findings.values())


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
        candidates = policy.new_candidates(signal.candidates)
        for candidate in candidates:
            candidate.queue_bytes = source.choice((0, source.randrange(1_000_000))) if sees_queues else 0
            candidate.rate_bps = source.choice((100_000_000_000, 400_000_000_000))
            candidate.up = int(source.random() < 0.9)
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
        is_stuck = choices[0] != choices[1] and not plugin.reorders
        if is_stuck and candidates[choices[0]].up:
            text = f"it says that it does not reorder, and sent two packets of one flow at once to ports {choices}"
            yield Finding(check="keeps_its_path", text=text)
            return
