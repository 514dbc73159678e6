"""Named checks of a port selection's contract.

They hold for the catalogue and for a user's own file.
Leaves out: how well it balances; given a network, the kit sees no more than that every uplink is used.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import Any

from weftwork.base.grammar import plural
from weftwork.policies.load import LoadedPolicy
from weftwork.testing.declarations import declaration_findings
from weftwork.testing.network import Usage, uplink_findings
from weftwork.testing.steps import BREAKS, DifferenceError, Finding, spread_findings
from weftwork.testing.switch import EDGES, BrokenError, ToldSwitch

__all__ = ["check_port_selection"]

_STORIES = 6  # chosen: some thousand calls take a second
_PACKETS = 250
_FLOWS = 20  # chosen: each then comes a dozen times
_ALIKE = 8  # chosen: as many equal candidates for 64 flows each, so that a fair hash misses none


def check_port_selection(
    policy: LoadedPolicy, *, run: Callable[..., Usage] | None = None, seed: int = 1, stories: int = _STORIES
) -> tuple[Finding, ...]:
    """Run every check.

    Parameters
    ----------
    policy : a loaded port selection
    run : if given, the checks that need a network are made too; `weftwork.testing.network.Uplinks` is one
    seed : of the packets and queues
    stories : how many, each with packets and queues of its own

    Returns
    -------
    what is wrong, in words; empty when nothing is
    """
    findings = {finding.check: finding for finding in declaration_findings(policy)}
    for number in range(stories):
        runs = []
        for _ in range(2):
            taken: list[int] = []
            for finding in _sound(_packets(policy, seed * 1_000 + number, taken)):
                findings.setdefault(finding.check, finding)
            runs.append(taken)
        if runs[0] != runs[1]:
            text = "the same packets took other ports the second time"
            findings.setdefault("same_signals_same_answers", Finding(check="same_signals_same_answers", text=text))
    is_sound = BREAKS.isdisjoint(findings)
    if is_sound:
        keeps = policy.plugin.reorders == "never"  # type: ignore[union-attr]
        kept = _sound(_kept_flows(policy, seed)) if keeps else ()
        for finding in (*_sound(_equal_candidates(policy, seed)), *spread_findings(policy), *kept):
            findings.setdefault(finding.check, finding)
    found = tuple(findings.values())
    return (*found, *uplink_findings(policy, run)) if run is not None and is_sound else found


def _sound(found: Iterator[Finding]) -> Iterator[Finding]:
    """Findings, up to a failing step."""
    try:
        yield from found
    except DifferenceError as difference:
        yield Finding(check="compiled_equals_plain", text=str(difference))
    except BrokenError as broken:
        yield Finding(check="no_packet_breaks_the_step", text=str(broken))


def _equal_candidates(policy: LoadedPolicy, seed: int) -> Iterator[Finding]:
    """Check that many flows use each of several equal candidates."""
    source = random.Random(seed)
    switch = ToldSwitch(policy, source)
    candidates = switch.candidates(_ALIKE, in_port=0, alike=True)
    ports = [candidate.port for candidate in candidates]
    used: set[int] = set()
    for _ in range(64 * _ALIKE):
        switch.signal.now_ps += int(10 ** source.uniform(2, 9))
        used.add(switch.choose(switch.flow(is_data=1), candidates, dict.fromkeys(range(EDGES), candidates)))
    if len(used) < _ALIKE:
        indices = sorted(ports.index(port) for port in used)
        text = f"of {_ALIKE} equal candidates it used only {indices} for {plural(64 * _ALIKE, 'flow')}"
        yield Finding(check="uses_every_candidate", text=text)


def _kept_flows(policy: LoadedPolicy, seed: int) -> Iterator[Finding]:
    """Check that later packets of flows leave by their earlier port.

    It is for ``reorders="never"``, with the same ports.
    """
    source = random.Random(seed)
    switch = ToldSwitch(policy, source)
    flows = [switch.flow(is_data=1) for _ in range(_FLOWS)]
    had: dict[int, int] = {}
    shown = [switch.candidates(_ALIKE, in_port=flow.in_port) for flow in flows]
    ways: list[dict[int, list[Any]]] = [{} for _ in flows]
    for _ in range(_PACKETS):
        switch.signal.now_ps += int(10 ** source.uniform(2, 9))
        number = source.randrange(_FLOWS)
        if "queue" in policy.plugin.needs:
            for candidate in shown[number]:
                candidate.queue_bytes = source.choice((0, source.randrange(1_000_000)))
        port = switch.choose(flows[number], shown[number], ways[number])
        if port != had.setdefault(number, port):
            text = f"reorders is 'never', and it moved a flow from port {had[number]} to {port} between two packets"
            hint = "; reorders='on-move' says that it may, 'always' that packets of one instant may part, too"
            yield Finding(check="keeps_its_path", text=text + hint)
            return


def _packets(policy: LoadedPolicy, seed: int, taken: list[int]) -> Iterator[Finding]:
    source = random.Random(seed)
    plugin: Any = policy.plugin
    switch = ToldSwitch(policy, source)
    flows = [switch.flow() for _ in range(_FLOWS)]
    counts = (1, 2, 3, 8, 64) if plugin.always else (2, 3, 8, 64)
    for _ in range(_PACKETS):
        switch.signal.now_ps += int(10 ** source.uniform(2, 9))
        flow = source.choice(flows)
        if plugin.at_delivery and source.random() < 0.2:
            switch.deliver(flow)
            continue
        candidates = switch.candidates(source.choice(counts), in_port=flow.in_port)
        ways: dict[int, list[Any]] = {}
        brought = source.choice(switch.brought)
        # two packets of one flow at one instant
        ports = [switch.choose(flow, candidates, ways, brought) for _ in range(2)]
        taken += ports
        if ports[0] != ports[1] and plugin.reorders != "always":
            text = f"reorders is {plugin.reorders!r}, and two packets of one flow at once left by ports {ports}"
            yield Finding(check="keeps_its_path", text=f"{text}; reorders='always' says that any packet may move")
            return
