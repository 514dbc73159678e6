"""Requirements of a policy on switches and NICs, in words.

The words are those of ``weftwork list``, the docs and the notes of a run. Needs that a plug-in declares have their
words in `WORDS`. What a NIC does beyond them, such as counting a window or answering with CNPs, follows from the kinds
of signals that the plug-in names and from what its steps read and write.
Source: `weftwork.policies.interface`, whose needs and fields these are.
Leaves out: variants, whose parameters may leave a part of a step unused; the sizes of headers that a need lengthens.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from weftwork.policies.described import FIELDS_OF_NEED
from weftwork.policies.interface import Kind
from weftwork.policies.reads import accesses

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from weftwork.policies.load import LoadedPolicy
    from weftwork.policies.reads import Access, StepName

__all__ = ["NOTHING", "WORDS", "Needed", "fields_read", "needed", "reads_host_delay", "unfilled_reads"]

NOTHING: Final = "nothing"  # in place of an empty list
# need -> what a switch and what a NIC has to do for it
WORDS: Final[dict[str, tuple[str, str]]] = {
    "ecn": ("marks (ECN)", ""),
    "telemetry": ("telemetry of each hop", "returns telemetry"),
    "path-load": ("load of the path", "returns the load"),
    "trimming": ("trimming", "selective repeat"),
    "rtt": ("", "timestamps"),
    "entropy": ("", "returns entropy"),
    "request": ("", "sends requests"),
    "queue": ("queue lengths", ""),
    "weight": ("capacity behind ports", ""),
    "hops-left": ("distances", ""),
    "non-minimal": ("longer paths", ""),
    "channel": ("virtual channels", ""),
    "detour": ("intermediate switches", ""),
    "reorder-tolerance": ("", "keeps early packets"),
}
_HOST_DELAY: Final = "host_delay_ps"
_ECHOED: Final = frozenset({Kind.ACK, Kind.NAK, Kind.TRIM})
_SENDERS: Final = ("sender", "path")
# Needs of which a field is read: at which steps, in which record, with which signals.
_READ_BY: Final[dict[str, tuple[tuple[StepName, ...], str, frozenset[Kind] | None]]] = {
    "telemetry": (_SENDERS, "signal", None),
    "path-load": (_SENDERS, "signal", frozenset({Kind.ACK})),
    "rtt": (_SENDERS, "signal", _ECHOED),
    "entropy": (_SENDERS, "signal", _ECHOED),
    "request": (("receiver",), "signal", None),
    "trimming": ((*_SENDERS, "receiver"), "signal", None),
    "queue": (("port",), "candidate", None),
    "weight": (("port",), "candidate", None),
    "hops-left": (("port",), "candidate", None),
    "non-minimal": (("port",), "candidate", None),
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Needed:
    """Requirements on switches and NICs, a few words each.

    Empty: nothing beyond forwarding and flow control.
    """

    switch: tuple[str, ...]
    nic: tuple[str, ...]


def needed(policy: LoadedPolicy) -> Needed:
    """Describe the requirements of a policy on switches and NICs.

    Parameters
    ----------
    policy : of any kind

    Examples
    --------
    >>> from weftwork.policies.load import load
    >>> needed(load("congestion_control", "dcqcn"))
    Needed(switch=('marks (ECN)',), nic=('rate', 'window', 'CNPs'))
    """
    found = accesses(policy)
    declared = [words for need, words in WORDS.items() if need in policy.plugin.needs]
    return Needed(
        switch=(*_switching(policy, found), *(switch for switch, _ in declared if switch)),
        nic=(*_sending(policy, found), *(nic for _, nic in declared if nic)),
    )


def reads_host_delay(policy: LoadedPolicy) -> bool:
    """Whether a step reads the delay of packets in the receiving host.

    Parameters
    ----------
    policy : of any kind
    """
    return _is_read(accesses(policy), "signal", (_HOST_DELAY,))


def fields_read(found: Collection[Access]) -> dict[str, list[str]]:
    """Fields that steps read, by the need that fills them.

    Parameters
    ----------
    found : accesses of a policy
    """
    fields = {}
    for need, (steps, record, kinds) in _READ_BY.items():
        names = FIELDS_OF_NEED[need]
        read = {
            access.name
            for access in found
            if access.step in steps and access.record == record and access.name in names
            if not access.is_write and (kinds is None or access.kinds & kinds)
        }
        fields[need] = sorted(read, key=names.index)
    return fields


def unfilled_reads(policy: LoadedPolicy) -> dict[str, str]:
    """Reads of fields that no engine fills, by the need that the policy does not declare: they look right meanwhile.

    Parameters
    ----------
    policy : of any kind
    """
    texts = {}
    for need, read in fields_read(accesses(policy)).items():
        if read and need not in policy.plugin.needs:
            echo = " of an ACK, NAK or TRIM" if need == "entropy" else ""
            value = "1" if need == "non-minimal" else "0"
            shown = " and ".join(f"{_READ_BY[need][1]}.{name}" for name in read)
            texts[need] = f"a step reads {shown}{echo}, always {value} without the need; add '{need}' to needs"
    return texts


def _sending(policy: LoadedPolicy, found: Collection[Access]) -> Iterator[str]:
    """Implied requirements on NICs, which no need names.

    They hold a flow back, report marks and times, grant credit.
    """
    if policy.kind != "congestion_control":
        return
    written = {access.name for access in found if access.is_write and access.record == "state"}
    signals: frozenset[Kind] = getattr(policy.plugin, "signals", frozenset())
    reads_marks = _is_read([access for access in found if access.step == "sender"], "signal", ("ecn", "marked_bytes"))
    told = {
        "rate": "rate_bps" in written,
        "window": "window_bytes" in written,
        "bursts": "segment_bytes" in written,
        "CNPs": Kind.CNP in signals,
        "returns marks": reads_marks,
        "credit by the receiver": Kind.CREDIT in signals or "credit_bytes" in written,
        "host delay": _is_read(found, "signal", (_HOST_DELAY,)),
    }
    yield from (words for words, is_needed in told.items() if is_needed)


def _switching(policy: LoadedPolicy, found: Collection[Access]) -> Iterator[str]:
    """Implied requirements on switches, which no need names.

    They keep flows apart, meter ports, write into packets.
    """
    if policy.kind != "port_selection":
        return
    states = {access.name for access in found if access.record == "state"}
    told = {
        "flow table": bool(states) and _is_read(found, "signal", ("now_ps",)),
        "port meters": getattr(policy.plugin, "port_state", None) is not None,
        "header field between switches": any(
            access.is_write and (access.record, access.name) == ("signal", "word") for access in found
        ),
    }
    yield from (words for words, is_needed in told.items() if is_needed)


def _is_read(found: Collection[Access], record: str, names: tuple[str, ...]) -> bool:
    return any(one.record == record and one.name in names and not one.is_write for one in found)
