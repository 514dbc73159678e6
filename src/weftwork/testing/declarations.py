"""Does a policy declare or ask for what never comes? Signals, needs and parameters, held to what its kind has.

An engine tells a step certain kinds of signals and no others; a policy that waits for another one waits in vain, and
looks right meanwhile. Source: `weftwork.engine.reference`, which is the meaning of all engines.
Leaves out: fields of a signal that only some kinds fill, such as ``rtt_ps``.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from weftwork.policies.interface import CongestionControl, Kind, PathSelection, Plugin
from weftwork.testing.steps import Finding

if TYPE_CHECKING:
    from weftwork.policies.load import LoadedPolicy

__all__ = ["declaration_findings"]

_OF_PATHS: Final = frozenset({Kind.SEND, Kind.ACK, Kind.NAK, Kind.TIMEOUT})
_ALWAYS: Final = frozenset({Kind.START, Kind.TIMER})  # of a congestion control
_NEEDS_IN_VAIN: Final = {
    "congestion_control": {"queue": "queues are seen by a port selection alone; a sender has rtt, ecn or telemetry"},
    "path_selection": {"queue": "queues are seen by a port selection alone; a sender has rtt, ecn or telemetry"},
    "port_selection": {
        "rtt": "a switch measures no round trip; wanted queue",
        "ecn": "a switch is told no marks; wanted queue",
    },
}


def declaration_findings(policy: LoadedPolicy) -> tuple[Finding, ...]:
    """Find what a policy declares, or its steps ask for, that never comes.

    Parameters
    ----------
    policy : of any kind

    Returns
    -------
    at most one finding, with a line for each thing
    """
    found = [*_signals(policy.plugin), *_receiver(policy.plugin), *_needs(policy), *_read(policy)]
    return (Finding(check="declares_what_comes", text="\n".join(found)),) if found else ()


def _signals(plugin: Plugin) -> Iterator[str]:
    """Kinds among ``signals`` that no engine tells this step."""
    if isinstance(plugin, PathSelection):
        for kind in sorted(plugin.signals - _OF_PATHS):
            yield f"signals hold {kind.name}, which a path selection is never told; wanted ACK, NAK or TIMEOUT"
    if not isinstance(plugin, CongestionControl):
        return
    if Kind.DATA in plugin.signals:
        yield "signals hold DATA, which only the step of a receiver is told; wanted receive and receiver_state"
    if Kind.TRIM in plugin.signals:
        yield "signals hold TRIM, which nobody tells: no switch cuts packets yet"
    for kind, field in ((Kind.CNP, "send_cnp"), (Kind.CREDIT, "credit_bytes")):
        if kind in plugin.signals and plugin.receive is None:
            yield f"signals hold {kind.name}, which comes where a receiver's step sets {field}; there is no receive"


def _receiver(plugin: Plugin) -> Iterator[str]:
    """Parts of a receiver where there is no receiver's step."""
    if not isinstance(plugin, CongestionControl) or plugin.receive is not None:
        return
    given = {
        "receiver_state": plugin.receiver_state is not None,
        "shared_state": plugin.shared_state is not None,
        "receiver_signals": plugin.receiver_signals != "data",
    }
    for name in (name for name, is_given in given.items() if is_given):
        yield f"{name} is given, and there is no receive that is called with it"


def _needs(policy: LoadedPolicy) -> Iterator[str]:
    """Needs that mean nothing for this kind."""
    in_vain = _NEEDS_IN_VAIN[policy.kind]
    for need in sorted(policy.plugin.needs & set(in_vain)):
        yield f"needs hold '{need}': {in_vain[need]}"


def _read(policy: LoadedPolicy) -> Iterator[str]:
    """Parameters that no function of the file reads, and kinds that one asks for and that never come."""
    functions = [node for node in ast.parse(policy.source_text).body if isinstance(node, ast.FunctionDef)]
    read = [node for function in functions for node in ast.walk(function) if isinstance(node, ast.Attribute)]
    names = {node.attr for node in read}
    for row in policy.rows:
        if row.name not in names:
            yield f"parameter '{row.name}' is read by no step, so that setting it changes nothing"
    told = _told(policy.plugin)
    asked = {node.attr for node in read if isinstance(node.value, ast.Name) and node.value.id == "Kind"}
    for kind in (kind for kind in Kind if kind.name in asked and kind not in told):
        yield f"a step asks for {kind.name}, which it is not told; name it in signals if it is to come"


def _told(plugin: Plugin) -> frozenset[Kind]:
    """Kinds of which some step of the file is told."""
    if isinstance(plugin, PathSelection):
        return plugin.signals | {Kind.SEND}
    if not isinstance(plugin, CongestionControl):
        return frozenset()
    return plugin.signals | _ALWAYS | (frozenset() if plugin.receive is None else frozenset({Kind.DATA}))
