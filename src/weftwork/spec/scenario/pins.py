"""The entries of ``fabric.pinned``: paths that a user lays down.

An entry is about the traffic between two hosts.
Leaves out: whether the fabric has such a path, which the floor that builds it finds out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from weftwork.spec.device import Record
from weftwork.spec.scenario.kinds import Listing, Text
from weftwork.spec.scenario.rows import REQUIRED, row

if TYPE_CHECKING:
    from collections.abc import Sequence

    from weftwork.spec.scenario.reader import Reader

__all__ = ["PinSection", "check_pins"]


class PinSection(Record):
    """The path of the queue pairs from one host to another."""

    sender: str = row(
        "from",
        Text(),
        default=REQUIRED,
        text="Host that sends, such as host3; host3/nic1 for one NIC port, else all those at the first switch.",
        source="chosen: the user does",
    )
    receiver: str = row(
        "to",
        Text(),
        default=REQUIRED,
        text="Host that receives, such as host5, or host5/nic1.",
        source="chosen: the user does",
    )
    path: tuple[str, ...] = row(
        "path",
        Listing(item=Text(unit="switches")),
        default=REQUIRED,
        text="Switches in the order in which they are passed, from that of the sender to that of the receiver. Of"
        " parallel links between two of them the first is taken.",
        source="chosen: the user does",
    )


def check_pins(entries: Sequence[PinSection], reader: Reader) -> None:
    """Check each entry, and that no two entries are about the same hosts."""
    seen: dict[tuple[str, str], int] = {}
    for index, entry in enumerate(entries):
        path = f"fabric.pinned.{index}"
        if not reader.is_sound(path) or any(bad.startswith(f"{path}.") for bad in reader.bad):
            continue
        if (first := seen.setdefault((entry.sender, entry.receiver), index)) != index:
            pair = f"{entry.sender} to {entry.receiver}"
            reader.wrong(path, f"pins {pair}, which fabric.pinned.{first} pins already; each has one path")
        twice = next((name for place, name in enumerate(entry.path) if name in entry.path[:place]), None)
        if twice is not None:
            reader.wrong(f"{path}.path", f"passes '{twice}' twice, wanted every switch once")
        if entry.sender.partition("/")[0] == entry.receiver.partition("/")[0]:
            reader.wrong(f"{path}.to", f"found '{entry.receiver}', the host that sends, wanted another one")
