"""Words and JSON of what a capture's verdict covers: frames read, cut and passed over, ICRCs checked, PSNs compared."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from weftwork.base.grammar import plural
from weftwork.spec.verdicts import verdict_text
from weftwork.wire.dissection import Carrier, Fate
from weftwork.wire.encapsulations import link_name

if TYPE_CHECKING:
    from collections.abc import Iterator

    from weftwork.rdma.coverage import CaptureCoverage, FrameGroup, GroupKey

__all__ = ["CoverageLine", "clean_verdict", "coverage_document", "coverage_lines"]

_MOST_GROUPS: Final = 10  # chosen: groups of frames in the text, the largest first; --json has all
_WHOLE_PACKETS: Final = "tcpdump -s 0 keeps whole packets"


class CoverageLine(NamedTuple):
    """A line of text with its label."""

    label: str
    text: str


def coverage_lines(coverage: CaptureCoverage, breaks_off: str | None) -> Iterator[CoverageLine]:
    """Say what a verdict covers, before the verdict.

    Parameters
    ----------
    coverage : of the capture
    breaks_off : where and how the file ends in the midst of a frame, or None
    """
    if breaks_off is not None:
        text = f"{breaks_off}; the {plural(_frames(coverage), 'frame')} in front of it are explained, and no other"
        yield CoverageLine("breaks off", text)
    if not coverage.frames:
        yield CoverageLine("frames", "the file has none")
    for link_type, counts in coverage.frames.items():
        fates = ", ".join(f"{counts[fate]:,} {fate.value}" for fate in Fate if counts[fate])
        yield CoverageLine("frames", f"{counts.total():,} of {link_name(link_type)}: {fates}")
    for tunnels, frames in coverage.tunnelled.most_common():
        yield CoverageLine("in tunnels", f"{plural(frames, 'frame')} of RDMA in {tunnels}")
    yield from _group_lines("cut", coverage.cut)
    yield from _group_lines("passed over", coverage.passed_over)
    if unchecked := coverage.icrc_unchecked.total():
        counts_by_reason = coverage.icrc_unchecked.most_common()
        reasons = ", ".join(f"{count:,} {_unchecked(reason)}" for reason, count in counts_by_reason)
        text = f"ICRC of {unchecked:,} of {plural(coverage.rdma_packets, 'packet')}: {reasons}"
        yield CoverageLine("not checked", text)


def _frames(coverage: CaptureCoverage) -> int:
    return sum(counts.total() for counts in coverage.frames.values())


def _unchecked(reason: str) -> str:
    return reason if reason == "cut" else f"because of {reason}"


def _group_lines(label: str, groups: dict[GroupKey, FrameGroup]) -> Iterator[CoverageLine]:
    largest = sorted(groups.items(), key=lambda item: -item[1].frames)
    for key, group in largest[:_MOST_GROUPS]:
        yield CoverageLine(label, (_cut_words if label == "cut" else _passed_words)(key, group))
    if left_out := largest[_MOST_GROUPS:]:
        frames = plural(sum(group.frames for _, group in left_out), "frame")
        yield CoverageLine(label, f"{frames} for {plural(len(left_out), 'other reason')}: see --json")


def _cut_words(key: GroupKey, group: FrameGroup) -> str:
    kind = "frame" if key.what == Carrier.OTHER.value else f"{key.what} packet"
    sizes = f"{_range(group.captured_bytes)} of {_range(group.whole_bytes)} bytes"
    advice = _WHOLE_PACKETS if group.by_snap_length else "before the capture: a switch that mirrors may cut packets"
    text = f"{plural(group.frames, kind)} after {sizes}, {key.reason}"
    return f"{text} ({advice}; first: frame {group.first_frame:,})"


def _passed_words(key: GroupKey, group: FrameGroup) -> str:
    example = f": {group.example}" if group.example else ""
    text = f"{plural(group.frames, 'frame')} of {link_name(key.link_type)}: {key.reason}"
    return f"{text} (first: frame {group.first_frame:,}{example})"


def _range(limits: tuple[int, int]) -> str:
    least, most = limits
    return f"{least:,}" if least == most else f"{least:,} to {most:,}"


def clean_verdict(coverage: CaptureCoverage) -> str:
    """The verdict on a capture without findings: it claims what was checked, and no more."""
    if not coverage.rdma_read:
        return f"No packet of RDMA was read in {plural(_frames(coverage), 'frame')}, so nothing is known of any."
    is_whole = not coverage.icrc_unchecked and not coverage.cut
    words = [_icrc_words(coverage), _order_words(coverage), _answer_words(coverage), _pause_words(coverage)]
    return verdict_text(
        "decode.clean", in_what_was_checked="" if is_whole else " in what was checked", checks=", ".join(words)
    )


def _icrc_words(coverage: CaptureCoverage) -> str:
    packets = plural(coverage.rdma_packets, "packet")
    if not coverage.icrc_checked:
        return f"no ICRC was checked ({packets})"
    if coverage.icrc_unchecked:
        return f"every ICRC that was checked holds ({coverage.icrc_checked:,} of {packets})"
    return f"every ICRC holds ({packets})"


def _order_words(coverage: CaptureCoverage) -> str:
    compared = coverage.ordered - coverage.new_starts
    if not compared:
        return "there is no order of PSNs to check"
    starts = f" ({plural(coverage.new_starts, 'jump')} to a new start)" if coverage.new_starts else ""
    return f"{plural(compared, 'PSN is', 'PSNs are')} in order{starts}"


def _answer_words(coverage: CaptureCoverage) -> str:
    if not coverage.answers:
        return "no answers were captured"
    return f"none of {plural(coverage.answers, 'answer')} refuses" if coverage.answers > 1 else "the one answer accepts"


def _pause_words(coverage: CaptureCoverage) -> str:
    if not coverage.pause_frames:
        return "and no PFC frame was captured"
    return f"and {plural(coverage.pause_frames, 'PFC frame does', 'PFC frames do')} not pause"


def coverage_document(coverage: CaptureCoverage, breaks_off: str | None) -> dict[str, Any]:
    """The same facts for programs."""
    return {
        "breaks_off": breaks_off,
        "link_types": [
            {
                "link_type": link_type,
                "name": link_name(link_type),
                "frames": counts.total(),
                **{fate.name.lower(): counts[fate] for fate in Fate},
            }
            for link_type, counts in coverage.frames.items()
        ],
        "read": coverage.of(Fate.READ),
        "cut": [
            {
                **_group(key, group),
                "captured_bytes": list(group.captured_bytes),
                "whole_bytes": list(group.whole_bytes),
                "by_snap_length": group.by_snap_length,
            }
            for key, group in coverage.cut.items()
        ],
        "passed_over": [_group(key, group) for key, group in coverage.passed_over.items()],
        "tunnelled": dict(coverage.tunnelled),
        "rdma_packets": coverage.rdma_packets,
        "rdma_read": coverage.rdma_read,
        "icrc": {
            "right": coverage.icrc_right,
            "wrong": coverage.icrc_wrong,
            "not_checked": dict(coverage.icrc_unchecked),
        },
        "psns": {"compared": coverage.ordered, "new_starts": coverage.new_starts},
        "answers": coverage.answers,
        "pfc_frames": coverage.pause_frames,
    }


def _group(key: GroupKey, group: FrameGroup) -> dict[str, Any]:
    return {
        "link_type": key.link_type,
        "what": key.what,
        "reason": key.reason,
        "frames": group.frames,
        "first_frame": group.first_frame,
        "example": group.example,
    }
