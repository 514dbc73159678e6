"""The keys of an expectation: where to look, and what has to be seen.

Leaves out: the judgement, see `judge`.
"""

from __future__ import annotations

from typing import Final

from weftwork.base.units import DURATION
from weftwork.rdma.peer.packet_words import PACKETS
from weftwork.rdma.verbs import QpState, WcStatus
from weftwork.spec.device import Record
from weftwork.spec.scenario.kinds import Choice, Listing, Measure, Number, Section, Text, Whole
from weftwork.spec.scenario.rows import REQUIRED, row

__all__ = ["SEEN_AT_THE_END", "Expectation", "MatchKeys"]

_HALF: Final = 1 << 23  # half of all PSNs
_NONE: Final = "chosen: none"
_USER: Final = "chosen: the user does"
_STATUSES: Final = Listing(item=Choice(options=tuple(status.name for status in WcStatus)), may_be_empty=True)
_COUNTED: Final = ("packets", "counter")
_TIMED: Final = ("see", ("packets",))
_NUMBERS: Final = Listing(item=Whole(low=0, high=(1 << 64) - 1))
SEEN_AT_THE_END: Final = frozenset({"statuses", "received", "state", "memory", "value", "fetched", "counter"})


class MatchKeys(Record):
    """A packet that others are counted after."""

    sender: str = row("from", Choice(options=("end", "peer")), default=REQUIRED, text="Sender.", source=_USER)
    packet: str = row(
        "packet", Choice(options=PACKETS), default="any", text="Kind of the packet.", source="chosen: every packet"
    )
    psn: int | None = row(
        "psn", Whole(low=-_HALF, high=_HALF), absent="every PSN",
        text="PSN, counted from the first PSN of the requester.", source=_NONE,
    )  # fmt: skip
    nth: int = row(
        "nth", Whole(low=1, high=1_000_000), default=1, text="Which of the matching packets.",
        source="chosen: the first",
    )  # fmt: skip


class Expectation(Record):
    """Something that has to be seen on the wire, at the peer or at the other end."""

    says: str = row("says", Text(), default=REQUIRED, text="The expected reaction, in a sentence.", source=_USER)
    see: str = row(
        "see",
        Choice(
            options=(
                *("packets", "rate", "peer-statuses", "peer-memory", "peer-value"),
                *("statuses", "received", "state", "memory", "value", "fetched", "counter"),
            )
        ),
        default=REQUIRED,
        text="Where to look: packets on the wire, the peer (peer-...), or the other end.",
        source=_USER,
    )
    sender: str | None = row(
        "from", Choice(options=("end", "peer")), default="end", only=_TIMED, text="Sender of the counted packets.",
        source="chosen: the end is under test",
    )  # fmt: skip
    packet: str | None = row(
        "packet", Choice(options=PACKETS), default="any", only=_TIMED, text="Kind of the counted packets.",
        source="chosen: every packet",
    )  # fmt: skip
    psn: int | None = row(
        "psn", Whole(low=-_HALF, high=_HALF), only=_TIMED, absent="every PSN",
        text="PSN of the counted packets, from the first PSN of the requester.", source=_NONE,
    )  # fmt: skip
    name: str | None = row(
        "name", Text(longest=60), only=("see", ("counter",)), absent="required with see: counter",
        text="Name of a counter of the queue pair or the NIC, as mlx5 names it.", source=_NONE,
    )  # fmt: skip
    least: int | None = row(
        "least", Whole(low=0, high=1_000_000), only=("see", _COUNTED), absent="no lower limit",
        text="Smallest number of packets, or value of the counter.", source=_NONE,
    )  # fmt: skip
    most: int | None = row(
        "most", Whole(low=0, high=1_000_000), only=("see", _COUNTED), absent="no upper limit",
        text="Largest number of packets, or value of the counter.", source=_NONE,
    )  # fmt: skip
    after: MatchKeys | None = row(
        "after", Section(model=MatchKeys, optional=True), text="Count only packets after this one.", source=_NONE
    )
    not_before_ps: int | None = row(
        "not_before", Measure(quantity=DURATION), only=_TIMED, absent="no lower limit",
        text="Shortest time from `after` to the first counted packet.", source=_NONE,
    )  # fmt: skip
    within_ps: int | None = row(
        "within", Measure(quantity=DURATION), only=_TIMED, absent="no upper limit",
        text="Longest time from `after` to the first counted packet.", source=_NONE,
    )  # fmt: skip
    not_before_timeouts: float | None = row(
        "not_before_timeouts", Number(low=0, high=1000), only=_TIMED, absent="no lower limit",
        text="As `not_before`, in timeouts of the connection.", source=_NONE,
    )  # fmt: skip
    within_timeouts: float | None = row(
        "within_timeouts", Number(low=0, high=1000), only=_TIMED, absent="no upper limit",
        text="As `within`, in timeouts of the connection.", source=_NONE,
    )  # fmt: skip
    statuses: tuple[str, ...] | None = row(
        "are", _STATUSES, only=("see", ("statuses", "received", "peer-statuses")),
        absent="required with see: statuses, received or peer-statuses",
        text="Statuses of the completions, in order.", source=_NONE,
    )  # fmt: skip
    state: str | None = row(
        "is", Choice(options=("unchanged", "written", *(state.name for state in QpState))),
        only=("see", ("state", "memory", "peer-memory")),
        absent="required with see: state, memory or peer-memory",
        text="State of the queue pair before the disconnect, or of the memory.", source=_NONE,
    )  # fmt: skip
    values: tuple[int, ...] | None = row(
        "values", _NUMBERS, only=("see", ("value", "fetched", "peer-value")),
        absent="required with see: value, fetched or peer-value",
        text="First 8 bytes of the memory, or the values that atomics have returned.", source=_NONE,
    )  # fmt: skip
    window_ps: int | None = row(
        "window", Measure(quantity=DURATION, low=1), only=("see", ("rate",)), default="100us",
        text="Length of the two windows that are compared: before `after`, and behind it and `later`.",
        source="chosen: some round trips of a rack",
    )  # fmt: skip
    later_ps: int | None = row(
        "later", Measure(quantity=DURATION), only=("see", ("rate",)), default="0s",
        text="Time between `after` and the second window.", source="chosen: at once",
    )  # fmt: skip
    share_least: float | None = row(
        "share_least", Number(low=0, high=10), only=("see", ("rate",)), absent="no lower limit",
        text="Smallest rate, as a share of the rate before.", source=_NONE,
    )  # fmt: skip
    share_most: float | None = row(
        "share_most", Number(low=0, high=10), only=("see", ("rate",)), absent="no upper limit",
        text="Largest rate, as a share of the rate before.", source=_NONE,
    )  # fmt: skip
