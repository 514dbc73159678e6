"""The judgement: whether each expectation of a script was met, and by which numbers.

The peer sees packets and its own memory; completions, state and counters are seen at the other end. An expectation
about an end whose report is missing is left open.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

from weftwork.base.grammar import plural
from weftwork.base.units import DURATION, format_quantity
from weftwork.rdma.peer.expectations import SEEN_AT_THE_END

if TYPE_CHECKING:
    from weftwork.rdma.peer.end import EndReport
    from weftwork.rdma.peer.expectations import Expectation, MatchKeys
    from weftwork.rdma.peer.packets import SeenPacket
    from weftwork.rdma.peer.script import PeerScript
    from weftwork.rdma.peer.scripted import PeerReport

__all__ = ["Judgement", "Result", "judge"]


class Result(Enum):
    """Result of one expectation."""

    MET = "as expected"
    MISSED = "not as expected"
    OPEN = "not seen from here"


@dataclass(frozen=True, kw_only=True, slots=True)
class Judgement:
    """The judgement of one expectation.

    Parameters
    ----------
    says : the expectation
    result : whether it was met
    found : what was seen, in words
    """

    says: str
    result: Result
    found: str


def judge(
    script: PeerScript, peer: PeerReport | None, end: EndReport | None, *, is_live: bool = False
) -> list[Judgement]:
    """Judge all expectations of a script.

    Parameters
    ----------
    script : with the expectations
    peer : what the peer has seen; None at the other end
    end : what happened to the other end; None where another stack is there
    is_live : the packets went through sockets, whose times are too coarse for rates
    """
    found: list[Judgement] = []
    if peer is not None:
        found += _preconditions(script, peer)
    if end is not None and end.failure:
        found.append(Judgement(says="The end connects.", result=Result.MISSED, found=end.failure))
    if not (peer.is_over or not peer.is_connected if peer is not None else end is None or end.is_over):
        text = "it had not ended when the time was over"
        found.append(Judgement(says="The connection ends.", result=Result.MISSED, found=text))
    for expectation in script.expect:
        if is_live and peer is not None and expectation.see == "rate":
            is_met, words = None, "a rate is measured by --self-test alone"
        else:
            is_met, words = _look(expectation, peer, end)
        result = Result.OPEN if is_met is None else Result.MET if is_met else Result.MISSED
        found.append(Judgement(says=expectation.says, result=result, found=words))
    return found


def _preconditions(script: PeerScript, peer: PeerReport) -> list[Judgement]:
    """Without a connection, or where a rule found no packet, the other expectations mean nothing."""
    if not peer.is_connected:
        text = "nobody connected, or the connection was not completed"
        return [Judgement(says="The end connects.", result=Result.MISSED, found=text)]
    found = []
    for index, (rule, applied) in enumerate(zip(script.rules, peer.applied, strict=True)):
        if not applied and rule.chance is None:
            says = f"Rule {index + 1} ({rule.do} {rule.packet} of the {rule.sender}) has a packet to take."
            found.append(Judgement(says=says, result=Result.MISSED, found="no packet matched it"))
    return found


def _look(one: Expectation, peer: PeerReport | None, end: EndReport | None) -> tuple[bool | None, str]:
    if one.see in SEEN_AT_THE_END:
        return (None, f"{_wanted(one)}: look at the other end") if end is None else _look_at_end(one, end)
    if peer is None:
        return None, "look at the peer's report"
    if one.see == "packets":
        return _look_at_packets(one, peer)
    if one.see == "rate":
        return _look_at_rate(one, peer)
    if one.see == "peer-statuses":
        return _is_equal(peer.statuses, one.statuses or ())
    if one.see == "peer-value":
        return _is_equal((peer.value,), one.values or ())
    return _is_equal(peer.memory, one.state)


def _look_at_end(one: Expectation, end: EndReport) -> tuple[bool, str]:
    if one.see == "counter":
        value = end.counters.get(one.name or "", 0)
        is_met = (one.least is None or value >= one.least) and (one.most is None or value <= one.most)
        return is_met, f"{one.name} is {value}"
    if one.see in {"statuses", "received"}:
        return _is_equal(end.statuses if one.see == "statuses" else end.received, one.statuses or ())
    if one.see in {"value", "fetched"}:
        return _is_equal((end.value,) if one.see == "value" else end.fetched, one.values or ())
    return _is_equal(end.state if one.see == "state" else end.memory, one.state)


def _wanted(one: Expectation) -> str:
    if one.see == "counter":
        limits = [f"at least {one.least}"] if one.least is not None else []
        limits += [f"at most {one.most}"] if one.most is not None else []
        return f"{one.name} of {' and '.join(limits)}"
    return f"{one.see} of {_shown(one.statuses if one.statuses is not None else one.values or one.state)}"


def _is_equal(found: object, wanted: object) -> tuple[bool, str]:
    return found == wanted, _shown(found) if found == wanted else f"{_shown(found)}, wanted {_shown(wanted)}"


def _shown(value: object) -> str:
    if not isinstance(value, tuple):
        return str(value)
    return ", ".join(map(str, value)) or "none"


def _matches(packet: SeenPacket, keys: Expectation | MatchKeys) -> bool:
    is_right_psn = keys.psn is None or keys.psn == packet.psn
    return packet.sender == keys.sender and keys.packet in packet.words and is_right_psn


def _anchor(keys: MatchKeys, packets: tuple[SeenPacket, ...]) -> int | None:
    """Place of the packet that others are counted after, or None."""
    matching = (place for place, packet in enumerate(packets) if _matches(packet, keys))
    return next((place for number, place in enumerate(matching, 1) if number == keys.nth), None)


def _look_at_packets(one: Expectation, peer: PeerReport) -> tuple[bool, str]:
    start, packets = 0, peer.packets
    if one.after is not None:
        place = _anchor(one.after, packets)
        if place is None:
            return False, f"there was no {_name(one.after)}"
        start = place + 1
    counted = [packet for packet in packets[start:] if _matches(packet, one)]
    words = f"{plural(len(counted), 'packet')}"
    is_met = (one.least is None or len(counted) >= one.least) and (one.most is None or len(counted) <= one.most)
    low_ps, high_ps = _limits(one, peer.timeout_ps or 0)
    if one.after is not None and (low_ps is not None or high_ps is not None):
        if not counted:
            return False, "no packet"
        waited_ps = counted[0].at_ps - packets[start - 1].at_ps
        words += f", the first after {format_quantity(DURATION, waited_ps)}"
        is_met = is_met and (low_ps is None or waited_ps >= low_ps) and (high_ps is None or waited_ps <= high_ps)
        if not is_met and low_ps is not None:
            words += f", wanted {format_quantity(DURATION, low_ps)} or more"
        if not is_met and high_ps is not None:
            words += f", wanted {format_quantity(DURATION, high_ps)} or less"
    if one.least is not None and len(counted) < one.least:
        words += f", wanted {one.least} or more"
    if one.most is not None and len(counted) > one.most:
        words += f", wanted {one.most} or fewer"
    return is_met, words


def _limits(one: Expectation, timeout_ps: int) -> tuple[int | None, int | None]:
    low_ps, high_ps = one.not_before_ps, one.within_ps
    if one.not_before_timeouts is not None:
        low_ps = int(one.not_before_timeouts * timeout_ps)
    if one.within_timeouts is not None:
        high_ps = int(one.within_timeouts * timeout_ps)
    return low_ps, high_ps


def _name(keys: MatchKeys) -> str:
    psn = "" if keys.psn is None else f" with PSN {keys.psn}"
    number = "" if keys.nth == 1 else f", number {keys.nth}"
    return f"{keys.packet} of the {keys.sender}{psn}{number}"


def _look_at_rate(one: Expectation, peer: PeerReport) -> tuple[bool, str]:
    """Compare the bytes of two windows."""
    if one.after is None or one.window_ps is None:
        return False, "nothing to compare"
    place = _anchor(one.after, peer.packets)
    if place is None:
        return False, f"there was no {_name(one.after)}"
    at_ps, window_ps = peer.packets[place].at_ps, one.window_ps
    later_ps = at_ps + (one.later_ps or 0)
    before = _bytes_between(peer.packets, at_ps - window_ps, at_ps)
    behind = _bytes_between(peer.packets, later_ps, later_ps + window_ps)
    if not before:
        return False, "no payload in the window before"
    share = behind / before
    is_met = (one.share_least is None or share >= one.share_least) and (
        one.share_most is None or share <= one.share_most
    )
    return is_met, f"{share:.0%} of the rate before"


def _bytes_between(packets: tuple[SeenPacket, ...], start_ps: int, end_ps: int) -> int:
    return sum(
        packet.payload_bytes for packet in packets if packet.sender == "end" and start_ps <= packet.at_ps < end_ps
    )
