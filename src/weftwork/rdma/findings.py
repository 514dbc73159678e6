"""Conspicuous findings of a capture, gravest first.

Source: IBTA vol. 1, 9.7.5 (NAKs) and 9.9 (errors); annex A17 (CNP).
Leaves out: causes outside the capture, such as a slow host.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple

from weftwork.base.grammar import plural
from weftwork.rdma.capture import NAK_WORDS
from weftwork.rdma.cm_records import CmRejReason
from weftwork.wire.extended import Nak
from weftwork.wire.mad import GENERAL_SERVICES_QP

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from weftwork.rdma.capture import CaptureExplainer
    from weftwork.rdma.flows import CaptureFlow

__all__ = ["CaptureFinding", "find_trouble"]


class CaptureFinding(NamedTuple):
    """A sentence about one problem.

    Parameters
    ----------
    kind : a word for programs, such as ``lost``
    text : what happened, to whom, and what it usually means
    first_packet : number of the first packet that shows it, or None
    """

    kind: str
    text: str
    first_packet: int | None


_MANY: Final = 3  # chosen: times that a packet is sent again in a row; one or two are lost answers
_MOST_SHARE: Final = 0.9  # chosen: of the packets from one port; who spreads packets over ports uses all of them
_SEQUENCE_ERROR: Final = NAK_WORDS[Nak.PSN_SEQUENCE_ERROR]


def find_trouble(seen: CaptureExplainer) -> list[CaptureFinding]:
    """All findings, gravest first.

    The first finding is the culprit. A clean capture has none.
    """
    return [*_refused(seen), *_silent(seen), *_repeated(seen), *_congested(seen), *_unclear(seen)]


def _refused(seen: CaptureExplainer) -> Iterator[CaptureFinding]:
    _, where = _counted(seen, lambda flow: flow.wrong_icrc)
    if wrong := seen.coverage.icrc_wrong:
        text = "receivers drop them, since bytes were changed on the way or the sender computes the ICRC wrongly"
        yield _finding(seen, "icrc", f"{plural(wrong, 'packet')} with a wrong ICRC{where}: {text}")
    for words in NAK_WORDS.values():
        refused, where = _counted(seen, partial(_naks, words=words))
        if refused and words != _SEQUENCE_ERROR:
            text = f"{plural(refused, 'request')} refused with {words}{where}"
            yield _finding(seen, words, f"{text}: the queue pair is in error")
    for (by, of, port, reason), count in seen.rejections.items():
        to = "" if port is None else f" to port {port}"
        yield _finding(seen, "rejected", f"{by} refused {plural(count, 'connection')} of {of}{to}: {_reason(reason)}")


def _reason(code: int) -> str:
    known = {int(each): each.name for each in CmRejReason}
    name = known.get(code, f"reason {code}")
    return f"{name}, nobody listens there" if code == CmRejReason.INVALID_SERVICE_ID else name


def _silent(seen: CaptureExplainer) -> Iterator[CaptureFinding]:
    for flow in seen.flows.by_key.values():
        if flow.unanswered >= _MANY:
            end = flow.key.destination
            heard_ns = seen.heard_ns.get(end)
            since = "at all" if heard_ns is None else f"after {(heard_ns - (seen.first_ns or 0)) / 1e9:.3f} s"
            times = plural(flow.unanswered, "time")
            text = f"{end} said nothing {since}, while a packet of {flow.key} was sent again {times}"
            yield _finding(seen, "silent", f"{text}: its process has ended, or no packet comes back", "sent again")


def _repeated(seen: CaptureExplainer) -> Iterator[CaptureFinding]:
    naks, nak_where = _counted(seen, partial(_naks, words=_SEQUENCE_ERROR))
    again, again_where = _counted(seen, lambda flow: flow.sent_again if flow.unanswered < _MANY else 0)
    unready, rnr_where = _counted(seen, lambda flow: flow.rnr_naks)
    if naks:
        text = f"{plural(naks, 'NAK')} with {_SEQUENCE_ERROR}, {plural(again, 'packet')} sent again{nak_where}"
        yield _finding(seen, "lost", f"{text}: packets are lost or overtake each other", _SEQUENCE_ERROR)
    if unready:
        text = f"{plural(unready, 'RNR NAK')}{rnr_where}"
        yield _finding(seen, "rnr", f"{text}: the receiver has no buffer, its application posts too few receives")
    if again and not naks and not unready:
        text = f"{plural(again, 'packet')} sent again without a NAK{again_where}"
        why = "ACKs or ends of messages are lost, and the sender waited for its timer"
        yield _finding(seen, "sent again", f"{text}: {why}")


def _congested(seen: CaptureExplainer) -> Iterator[CaptureFinding]:
    if pauses := sum(seen.pauses.values()):
        worst, count = seen.pauses.most_common(1)[0]
        text = f"{plural(pauses, 'PFC pause')}, {count} of them from {worst}"
        yield _finding(seen, "pause", f"{text}: its queue is full, and it stops whoever sends to it")
    cnps, where = _counted(seen, lambda flow: flow.cnps)
    marked, marked_where = _counted(seen, lambda flow: flow.marked)
    if cnps := cnps + seen.unmatched["CNP"]:
        yield _finding(
            seen, "cnp", f"{plural(cnps, 'CNP')}{where}: the queue of a switch is long, and it marks packets"
        )
    elif marked:
        text = f"{plural(marked, 'packet')} marked by a switch{marked_where}, and no CNP"
        yield _finding(seen, "marked", f"{text}: its queue is long, and nobody tells the sender")


def _unclear(seen: CaptureExplainer) -> Iterator[CaptureFinding]:
    late, where = _counted(seen, lambda flow: flow.late)
    if late:
        yield _finding(seen, "late", f"{plural(late, 'packet')} late{where}: packets take several paths")
    missing, where = _counted(seen, lambda flow: flow.missing)
    if missing:
        text = f"{plural(missing, 'PSN')} never seen{where}"
        yield _finding(seen, "gap", f"{text}: lost before the place of the capture, or not captured")
    for flow in seen.flows.by_key.values():
        (port, most), *others = flow.source_ports.most_common() or [(0, 0)]
        if not others or flow.key.destination_qp == GENERAL_SERVICES_QP:
            continue
        if most >= _MOST_SHARE * sum(flow.source_ports.values()):
            other, count = others[0]
            text = f"{plural(count, 'packet')} of {flow.key} came from UDP port {other}, the others from {port}"
            yield _finding(seen, "ports", f"{text}: somebody else may have sent them")
    if seen.unread:
        yield _finding(seen, "unread", f"{plural(seen.unread, 'packet')} not read to the end: see the notes")


def _finding(seen: CaptureExplainer, kind: str, text: str, first: str | None = None) -> CaptureFinding:
    return CaptureFinding(kind, text, seen.first_at.get(first or kind))


def _naks(flow: CaptureFlow, words: str) -> int:
    return flow.naks[words]


def _counted(seen: CaptureExplainer, of: Callable[[CaptureFlow], int]) -> tuple[int, str]:
    """Sum of a number over all flows, and the flow with the largest value.

    The flow is None if there is none.
    """
    flows = seen.flows.by_key.values()
    whole = sum(of(flow) for flow in flows)
    if whole == 0:
        return 0, ""
    worst = max(flows, key=of)
    share = "" if of(worst) == whole else f", {of(worst)} of them"
    return whole, f"{share} in {worst.key}"
