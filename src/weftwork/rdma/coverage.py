"""What of a capture was read, cut and passed over, and what was checked: the facts that bound each verdict.

Each frame of a file is counted once, by its link type; each packet of RDMA is counted once, by its ICRC.
Source: the fates of ``weftwork.wire.dissection``.
Leaves out: words, see ``weftwork.cli.rdma_coverage``.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from weftwork.wire.dissection import Fate

if TYPE_CHECKING:
    from weftwork.wire.dissection import Dissection
    from weftwork.wire.pcap import CapturedPacket

__all__ = ["CaptureCoverage", "FrameGroup", "GroupKey"]


class GroupKey(NamedTuple):
    """Frames that were not read for one reason.

    Parameters
    ----------
    link_type : of the frames
    what : carrier that their headers announce, such as ``RoCEv2``; ``other`` where none was reached
    reason : in words
    """

    link_type: int
    what: str
    reason: str


@dataclass(slots=True)
class FrameGroup:
    """Counts of a group of frames.

    Parameters
    ----------
    frames : how many
    first_frame : number of the first, from 1
    example : numbers of the first
    captured_bytes, whole_bytes : smallest and largest size, in the capture and before the cut
    by_snap_length : frames whose rest the capture itself left out, as its record says; others came cut
    """

    first_frame: int
    example: str
    captured_bytes: tuple[int, int]
    whole_bytes: tuple[int, int]
    frames: int = 0
    by_snap_length: int = 0

    def take(self, packet: CapturedPacket, whole_bytes: int) -> None:
        """Count a frame."""
        self.frames += 1
        self.by_snap_length += len(packet.data) < packet.original_bytes
        self.captured_bytes = _widened(self.captured_bytes, len(packet.data))
        self.whole_bytes = _widened(self.whole_bytes, whole_bytes)


@dataclass(slots=True)
class CaptureCoverage:
    """Counts of a capture.

    Parameters
    ----------
    frames : of each fate, by link type
    tunnelled : frames of RDMA inside tunnels, by the names of the tunnels from outside in
    cut, passed_over : groups of frames that were not read to their end
    icrc_right, icrc_wrong : packets of RDMA
    icrc_unchecked : packets of RDMA by the reason why their ICRC was not checked
    rdma_read : packets of RDMA whose transport headers were read
    ordered : packets whose PSN was compared with those before
    new_starts : packets whose PSN is too far from those before to compare
    answers : packets that acknowledge or refuse
    pause_frames : PFC frames, those that resume included
    """

    frames: dict[int, Counter[Fate]] = field(default_factory=dict)
    tunnelled: Counter[str] = field(default_factory=Counter)
    cut: dict[GroupKey, FrameGroup] = field(default_factory=dict)
    passed_over: dict[GroupKey, FrameGroup] = field(default_factory=dict)
    icrc_right: int = 0
    icrc_wrong: int = 0
    icrc_unchecked: Counter[str] = field(default_factory=Counter)
    rdma_read: int = 0
    ordered: int = 0
    new_starts: int = 0
    answers: int = 0
    pause_frames: int = 0

    def take_frame(self, number: int, packet: CapturedPacket, seen: Dissection) -> None:
        """Count a frame of the file; ``number`` is its place, from 1."""
        self.frames.setdefault(packet.link_type, Counter())[seen.fate] += 1
        if seen.is_rdma and seen.tunnels:
            self.tunnelled[" > ".join(seen.tunnels)] += 1
        if seen.fate is Fate.READ:
            return
        groups = self.cut if seen.fate is Fate.CUT else self.passed_over
        key = GroupKey(packet.link_type, seen.kind.value, seen.reason)
        size_bytes = len(packet.data)
        whole_bytes = max(packet.original_bytes, size_bytes + seen.missing_bytes)
        first = FrameGroup(number, seen.example, (size_bytes, size_bytes), (whole_bytes, whole_bytes))
        groups.setdefault(key, first).take(packet, whole_bytes)

    def take_packet(self, seen: Dissection) -> None:
        """Count a packet; a frame that was not segmented yet has several."""
        self.pause_frames += seen.pause is not None
        if not seen.is_rdma:
            return
        self.rdma_read += seen.transport is not None
        if seen.icrc_unchecked:
            self.icrc_unchecked[seen.icrc_unchecked] += 1
        elif seen.has_wrong_icrc:
            self.icrc_wrong += 1
        else:
            self.icrc_right += 1

    def of(self, fate: Fate) -> int:
        """Frames of one fate, of all link types."""
        return sum(counts[fate] for counts in self.frames.values())

    @property
    def icrc_checked(self) -> int:
        """Packets of RDMA whose ICRC was checked."""
        return self.icrc_right + self.icrc_wrong

    @property
    def rdma_packets(self) -> int:
        """Packets of RDMA by the headers in front, read or not."""
        return self.icrc_checked + self.icrc_unchecked.total()


def _widened(limits: tuple[int, int], value: int) -> tuple[int, int]:
    return min(limits[0], value), max(limits[1], value)
