"""Check a policy's declarations against signals that can occur.

Signals, needs, fields and parameters are held to what its kind has. An engine tells a step certain kinds of signals and
no others, and fills a field where a need asks for it. A policy that waits for another signal waits in vain, one that
reads another field reads 0, and both look right meanwhile.
Source: `weftwork.engine.reference`, which is the meaning of all engines; `weftwork.policies.described` for fields.
Leaves out: values; a condition that is never true is not seen.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from weftwork.policies.described import FIELDS_OF_NEED, field_rows, told_kinds
from weftwork.policies.interface import CongestionControl, Kind, PathSelection, Plugin, PortSelection, Signal
from weftwork.policies.needed import fields_read, unfilled_reads
from weftwork.policies.reads import Access, StepName, accesses
from weftwork.testing.steps import Finding

if TYPE_CHECKING:
    from weftwork.policies.load import LoadedPolicy

__all__ = ["declaration_findings"]

_ALWAYS: Final = {"sender": {Kind.START, Kind.TIMER}, "path": {Kind.SEND, Kind.TIMER}, "receiver": {Kind.TIMER}}
_ECHOED: Final = frozenset({Kind.ACK, Kind.NAK, Kind.TRIM})
_SENDERS: Final = ("sender", "path")
_USED_UNREAD: Final = ("non-minimal", "trimming")  # they change candidates and signals, beside their fields
_SEES_QUEUES: Final = "queues are seen by a port selection alone; a sender has rtt, ecn or telemetry"
_NEEDS_IN_VAIN: Final = {
    "congestion_control": {
        "queue": _SEES_QUEUES,
        "hops-left": "candidates are seen by a port selection alone",
        "weight": "candidates are seen by a port selection alone",
        "non-minimal": "a port selection alone chooses among ports",
    },
    "path_selection": {
        "queue": _SEES_QUEUES,
        "hops-left": "candidates are seen by a port selection alone",
        "weight": "candidates are seen by a port selection alone",
        "non-minimal": "a port selection alone chooses among ports",
        "request": "the step of a receiver is told requests, and a path selection has none",
    },
    "port_selection": {
        "rtt": "a switch measures no round trip; wanted queue",
        "ecn": "a switch gets no marks; wanted queue",
        "entropy": "a switch gets no echoes; signal.hash holds the entropy where the switch hashes it",
        "request": "the step of a receiver is told requests, and a port selection has none",
        "trimming": "a switch cuts packets without asking the policy",
    },
}


def declaration_findings(policy: LoadedPolicy) -> tuple[Finding, ...]:
    """Find declarations and requests that can never be met.

    Parameters
    ----------
    policy : of any kind

    Returns
    -------
    at most one finding, with a line for each thing
    """
    found = accesses(policy)
    case = _Case(policy=policy, plugin=policy.plugin, found=found)
    lines = [
        *case.signals(), *case.receiver(), *case.needs_in_vain(), *case.needs_unread(), *case.asked(),
        *case.fields(), *case.parameters(), *case.words(),
    ]  # fmt: skip
    return (Finding(check="declares_what_comes", text="\n".join(lines)),) if lines else ()


@dataclass(frozen=True, kw_only=True, slots=True)
class _Case:
    """A policy, and the fields that its steps read and write."""

    policy: LoadedPolicy
    plugin: Plugin
    found: tuple[Access, ...]

    def signals(self) -> Iterator[str]:
        """Kinds among ``signals`` that cannot occur.

        No engine tells this step of them, or nothing leads to them.
        """
        plugin = self.plugin
        if isinstance(plugin, PortSelection):
            return
        is_path = isinstance(plugin, PathSelection)
        wanted = "START, RESUME, ACK, NAK, TRIM or TIMEOUT"
        for kind in sorted(plugin.signals - told_kinds("path" if is_path else "sender") - _ALWAYS["path"]):
            if is_path:
                yield f"signals hold {kind.name}, which a path selection never gets; wanted {wanted}"
            else:
                hint = "only the step of a receiver gets; wanted receive and receiver_state"
                yield f"signals hold {kind.name}, which {hint}"
        if is_path and Kind.TIMER in plugin.signals and not self.writes("path", "state", "timer_at_ps"):
            yield "signals hold TIMER, which comes where the step sets timer_at_ps; it sets none"
        if Kind.TRIM in plugin.signals and "trimming" not in plugin.needs:
            yield "signals hold TRIM, which comes from a transport that cuts packets; add 'trimming' to needs"
        for kind, field in ((Kind.CNP, "send_cnp"), (Kind.CREDIT, "credit_bytes")):
            if not is_path and kind in plugin.signals and not self.writes("receiver", "state", field):
                yield f"signals hold {kind.name}, which comes where a receiver's step sets {field}; there is none"

    def receiver(self) -> Iterator[str]:
        """Parts of a receiver without a receiver's step."""
        plugin = self.plugin
        if not isinstance(plugin, CongestionControl) or plugin.receive is not None:
            return
        given = {
            "receiver_state": plugin.receiver_state is not None,
            "shared_state": plugin.shared_state is not None,
            "receiver_signals": plugin.receiver_signals != "data",
        }
        for name in (name for name, is_given in given.items() if is_given):
            yield f"{name} is given, and there is no receive"

    def needs_in_vain(self) -> Iterator[str]:
        """Needs that mean nothing for this kind."""
        in_vain = _NEEDS_IN_VAIN[self.policy.kind]
        for need in sorted(self.plugin.needs & set(in_vain)):
            yield f"needs hold '{need}': {in_vain[need]}"

    def needs_unread(self) -> Iterator[str]:
        """Needs without a reading step, and fields read without their need."""
        plugin, in_vain = self.plugin, _NEEDS_IN_VAIN[self.policy.kind]
        for need, read in fields_read(self.found).items():
            if need in plugin.needs and need not in in_vain and not read and need not in _USED_UNREAD:
                echo = ", where ACK, NAK or TRIM tell it" if need == "entropy" else ""
                names = " or ".join(FIELDS_OF_NEED[need])
                yield f"needs hold '{need}', and no step reads {names}{echo}; take it out of needs"
        yield from unfilled_reads(self.policy).values()
        yield from self.unread_marks()

    def unread_marks(self) -> Iterator[str]:
        """``ecn`` without a reader of marks, ``trimming`` without one of trims."""
        plugin, in_vain = self.plugin, _NEEDS_IN_VAIN[self.policy.kind]
        by_receiver = isinstance(plugin, CongestionControl) and plugin.receiver_signals == "ecn"
        has_marks = by_receiver or any(self.reads(name) for name in FIELDS_OF_NEED["ecn"])
        if "ecn" in plugin.needs and "ecn" not in in_vain and not has_marks:
            yield "needs hold 'ecn', and no step reads ecn or marked_bytes; take it out of needs"
        hears_trims = Kind.TRIM in getattr(plugin, "signals", ()) or Kind.TRIM in self.named()
        if "trimming" in plugin.needs and "trimming" not in in_vain and not hears_trims and not self.reads("last_hop"):
            yield "needs hold 'trimming', and no step gets TRIM; add Kind.TRIM to signals, or take it out of needs"

    def asked(self) -> Iterator[str]:
        """Kinds that a step asks for although they never occur."""
        told = self.told()
        for kind in (kind for kind in Kind if kind in self.named() - told):
            if isinstance(self.plugin, PortSelection):
                hint = "signals to a port selection have no kind"
            elif kind == Kind.TRIM and Kind.TRIM not in getattr(self.plugin, "signals", ()):
                hint = "add 'trimming' to needs, and TRIM to signals if a sender is to get them"
            elif kind == Kind.REQUEST and getattr(self.plugin, "receive", None) is not None:
                hint = "it comes where the sender's step sets send_request"
            elif kind == Kind.TIMER:
                hint = "it comes where the step sets timer_at_ps"
            else:
                hint = "name it in signals if it is to come"
            yield f"a step asks for {kind.name}, which it does not get; {hint}"

    def fields(self) -> Iterator[str]:
        """Fields read only with signals that do not fill them."""
        rows = {row.name: row for row in field_rows(Signal)}
        places: dict[tuple[str, int, int], list[Access]] = {}
        for access in self.found:
            if access.record == "signal" and access.step != "port" and not access.is_write and access.kinds:
                places.setdefault(access.place, []).append(access)
        said: set[str] = set()
        for own in places.values():
            row = rows[own[0].name]
            filled = {kind for one in own for kind in one.kinds & row.kinds(one.step)}  # type: ignore[arg-type]
            if filled or row.name in said:
                continue
            said.add(row.name)
            kinds = ", ".join(kind.name for kind in sorted({kind for one in own for kind in one.kinds}))
            comes = row.when or "every signal"
            yield f"a step reads signal.{row.name} at {kinds}, where it is always 0; it is set with: {comes}"

    def parameters(self) -> Iterator[str]:
        """Parameters that no step reads."""
        read = {access.name for access in self.found if access.record == "params"}
        for row in self.policy.rows:
            if row.name not in read:
                yield f"parameter '{row.name}' is read by no step, so that setting it changes nothing"

    def words(self) -> Iterator[str]:
        """Other plug-in fields without meaning for these steps."""
        plugin = self.plugin
        if isinstance(plugin, CongestionControl):
            if plugin.moves_departures and not self.writes("sender", "state", "rate_bps"):
                yield "moves_departures is True, and no step sets state.rate_bps; take it out"
            if plugin.is_loss_based and not plugin.signals & {Kind.NAK, Kind.TIMEOUT, Kind.ACK}:
                yield "is_loss_based is True, and no step gets ACK, NAK or TIMEOUT, which tell of losses; take it out"
            return
        if not isinstance(plugin, PortSelection):
            return
        moves = self.writes("port", "signal", "virtual_channel")
        if plugin.virtual_channels > 1 and not moves:
            yield (
                f"virtual_channels is {plugin.virtual_channels}, and the step never sets signal.virtual_channel; set"
                " it, or take virtual_channels out"
            )
        if plugin.virtual_channels == 1 and moves:
            yield "the step sets signal.virtual_channel, and there is channel 0 alone; give PLUGIN virtual_channels=2"
        if self.reads("delivered") and not plugin.at_delivery:
            yield "the step reads signal.delivered, always 0 where it is not called; give PLUGIN at_delivery=True"
        if plugin.port_state is not None and not any(access.record == "port" for access in self.found):
            yield "port_state is given, and the step reads and writes none of it; take it out"

    def reads(self, name: str) -> bool:
        return any(access.name == name and access.record == "signal" and not access.is_write for access in self.found)

    def writes(self, step: StepName, record: str, name: str) -> bool:
        return any((one.step, one.record, one.name, one.is_write) == (step, record, name, True) for one in self.found)

    def named(self) -> frozenset[Kind]:
        """Kinds named by any function of the file."""
        functions = self.policy.step_file.functions.values()
        names = {
            node.attr
            for function in functions
            for node in ast.walk(function)
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "Kind"
        }
        return frozenset(kind for kind in Kind if kind.name in names)

    def told(self) -> frozenset[Kind]:
        """Kinds of signals sent to any step of the file."""
        plugin = self.plugin
        if isinstance(plugin, PortSelection):
            return frozenset()
        own: StepName = "path" if isinstance(plugin, PathSelection) else "sender"
        told = set(plugin.signals | _ALWAYS[own])
        if isinstance(plugin, CongestionControl) and plugin.receive is not None:
            told |= {Kind.DATA} | ({Kind.TRIM} if "trimming" in plugin.needs else set())
            told |= {Kind.REQUEST} if self.writes("sender", "state", "send_request") else set()
        if not any(self.writes(step, "state", "timer_at_ps") for step in (own, "receiver")):
            told -= {Kind.TIMER}
        return frozenset(told)
