"""The numbers of a run's summary: name, unit, meaning, and what people call each.

Results make a number by its row here, and reports, sweeps, tunings and comparisons read what it is called, whether more
of it is better and where it is shown. The order of the rows is the order in which numbers are shown. A name with braces
stands for several numbers, such as one for each reason of a drop.
Leaves out: how a number is computed (`weftwork.study.results`); columns of tables (`weftwork.spec.result`).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, Literal

from weftwork.spec.result import TABLES, Quantity
from weftwork.spec.time_kinds import TIME_KINDS

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = [
    "HEADLINES",
    "NUMBERS",
    "QUANTILES",
    "TIME_GROUPS",
    "Place",
    "SummaryNumber",
    "declared",
    "headline_noun",
    "is_larger_better",
    "numbers_shown",
    "quantities",
]

# key: the table of several seeds; tile: the top of a page; seeds: the page's table of seeds; watched: told by a tuning
# where it becomes worse; speed: told beside the time in a comparison; weeks: what training over weeks loses; counter,
# packets: of engines with packets alone, the first as these count it
Place = Literal["key", "tile", "seeds", "watched", "speed", "weeks", "counter", "packets"]
QUANTILES: Final = (("p50", 0.5), ("p95", 0.95), ("p99", 0.99), ("p99.9", 0.999))


@dataclass(frozen=True, kw_only=True, slots=True)
class SummaryNumber:
    """A number of a summary.

    Attributes
    ----------
    name : in ``summary.json``; of another job than the first, the job's name and a dot stand before it
    unit : as `weftwork.report.words.amount` takes it
    text : what it is, in a sentence; braces are filled in where it is made
    noun : what a tile or a verdict calls it; empty: its name in words
    short : the same where room is little; empty: its name in words
    is_larger_better : whether more of it is better
    what : of a headline: what it is the time of, such as ``an iteration``; empty: it is no headline
    subject : the same as the subject of a sentence
    group : of a share of the time: what the time is called that may limit a run; empty: it is no such share
    places : where it is shown
    is_in_words : whether the lines above the tiles of a page may tell it
    """

    name: str
    unit: str
    text: str
    noun: str = ""
    short: str = ""
    is_larger_better: bool = False
    what: str = ""
    subject: str = ""
    group: str = ""
    places: frozenset[Place] = frozenset()
    is_in_words: bool = False


def _number(  # noqa: PLR0913 - the fields of a row
    name: str,
    unit: str,
    text: str,
    *places: Place,
    noun: str = "",
    short: str = "",
    more: bool = False,
    what: str = "",
    subject: str = "",
    group: str = "",
    told: bool = False,
) -> SummaryNumber:
    return SummaryNumber(
        name=name, unit=unit, text=text, noun=noun, short=short, is_larger_better=more, what=what,
        subject=subject or what, group=group, places=frozenset(places), is_in_words=told,
    )  # fmt: skip


def _of_jobs(
    name: str, *places: Place, noun: str = "", short: str = "", more: bool = False, what: str = "", group: str = "",
    told: bool = False,
) -> SummaryNumber:  # fmt: skip
    """A number that is a column of the table ``jobs``."""
    column = next(column for column in TABLES["jobs"] if column.name == name)
    return _number(
        name, column.unit, column.text, *places, noun=noun, short=short, more=more, what=what, group=group, told=told
    )


def _of_flows(name: str, suffix: str, unit: str, words: str) -> list[SummaryNumber]:
    """Quantiles, mean and maximum over flows."""
    made = []
    for label, _ in QUANTILES:
        places = _PLACES_OF_FLOWS.get(f"{name}_{label}", ("key",))
        noun = f"{_NOUNS_OF_FLOWS[name]}, {label}" if "tile" in places else ""
        text = f"{words}, {label} of the flows that completed."
        short = f"FCT {label}" if "speed" in places else ""
        made.append(
            _number(f"{name}_{label}{suffix}", unit, text, *places, noun=noun, short=short, told="speed" in places)
        )
    made.append(_number(f"{name}_mean{suffix}", unit, f"{words}, mean of the flows that completed."))
    text = f"{words}, largest of a flow that completed."
    made.append(_number(f"{name}_max{suffix}", unit, text, *_PLACES_OF_FLOWS.get(f"{name}_max", ())))
    return made


_NOUNS_OF_FLOWS: Final = {"fct": "completion time of flows", "slowdown": "slowdown"}
_PLACES_OF_FLOWS: Final[dict[str, tuple[Place, ...]]] = {
    "fct_p50": ("key", "watched"),
    "fct_p99": ("key", "tile", "seeds", "watched", "speed"),
    "slowdown_p99": ("key", "tile", "seeds"),
    "fct_max": ("watched",),
}
_OF_TIME: Final = "Share of the time of an average rank that went to"
_GROUPS: Final = {  # of kinds of time that may limit a run by themselves
    "offload": "offloaded activations",
    "checkpoint": "checkpoints",
    "loading": "loading data",
    "other": "other things",
}
_BUSIEST: Final = "Share of the time in which the busiest {carrier} port was in use."
_PLANNED: Final = "Load of the most loaded link between switches over its capacity, at the line rate of the busiest NIC"
_ROWS: Final = (
    # Training
    _of_jobs("iteration_ps", "key", "tile", "seeds", "watched", noun="time of an iteration", what="an iteration",
             told=True),
    _of_jobs("mfu", "key", "tile", "seeds", "speed", noun="model FLOP utilisation", short="MFU", more=True, told=True),
    _of_jobs("tokens_per_s", "key", "tile", "seeds", noun="tokens per second", more=True, told=True),
    _of_jobs("tokens_per_s_per_gpu", "key", more=True),
    _number("computing_share", "share", f"{_OF_TIME} computing.", more=True, group="computing"),
    _of_jobs("exposed_share", "key", "tile", "seeds", "watched", noun="exposed communication",
             group="exposed communication", told=True),
    _of_jobs("bubble_share", "key", "tile", noun="bubble", group="the bubble", told=True),
    _number("waiting_share", "share", f"{_OF_TIME} waiting for other ranks.", group="waiting for other ranks"),
    *(
        number
        for kind in TIME_KINDS.values() if kind.name != "bubble"  # which is a column of jobs
        for number in (
            _number(f"{kind.number}_ps", "ps", f"Time of an average rank that went to {kind.text}."),
            _number(f"{kind.number}_share", "share", "The same as a share of the iteration.",
                    group=_GROUPS.get(kind.name, "")),
        )
    ),
    _of_jobs("model_flops"),
    _of_jobs("compute_ps"),
    _of_jobs("exposed_ps"),
    _of_jobs("bubble_ps"),
    _of_jobs("memory_bytes", "tile", noun="memory of the fullest GPU", told=True),
    _of_jobs("memory_share"),
    _of_jobs("memory_likely_share"),
    _number("trained_parameters", "count", "Parameters of the adapters, which alone are trained."),
    _number("iteration_unmeasured_ps", "ps",
            "Longest plausible iteration: eight-bit matrix products, unmeasured on this GPU, have their lowest"
            " plausible rate; by the ratio of closed forms."),
    *(
        _number(f"{name}_{end}_ps", "ps",
                f"{what} with the {{share}} % quantile of the calibration's draws, by the ratio of closed forms.")
        for name, what in (("iteration", "The iteration"), ("collective_duration", "The collective"))
        for end in ("low", "high")
    ),
    # Collectives
    _number("collective_repetitions", "count", "Number of times that the collective started."),
    _number("collective_duration_ps", "ps", "Time of a collective, mean over the repetitions.", "key", "tile",
            "watched", noun="time of the collective", what="the collective", told=True),
    _number("collective_algorithm_bandwidth_bps", "b/s", "Algorithm bandwidth at the mean time.", more=True),
    _number("collective_bus_bandwidth_bps", "b/s", "Bus bandwidth as nccl-tests defines it, at the mean time.", "key",
            "tile", "speed", noun="bus bandwidth", short="bus bandwidth", more=True, told=True),
    # Messages
    _number("flows", "count", "Messages that were posted."),
    _number("flows_completed", "count", "Messages that arrived completely.", more=True),
    _number("payload_bytes", "B", "Payload of the messages that arrived completely."),
    _number("completion_ps", "ps", "Time from the first posted message to the last delivered message.", "key", "tile",
            "seeds", "watched", noun="completion time", what="all messages", subject="all traffic", told=True),
    _number("goodput_bps", "b/s", "Delivered payload per completion time, summed over all hosts.", "key", "tile",
            "seeds", "watched", noun="goodput, all together", more=True, told=True),
    *_of_flows("fct", "_ps", "ps", "Flow completion time"),
    *_of_flows("slowdown", "", "ratio", "Slowdown"),
    _number("jain_index", "ratio", "Fairness of the goodputs of the flows (Jain): 1 is equal, 1/n is one flow alone.",
            "key", "watched", more=True),
    _number("{carrier}_bytes", "B", "Payload delivered {where}."),
    _number("busiest_nvlink", "share", _BUSIEST.format(carrier="NVLink")),
    _number("busiest_pcie", "share", _BUSIEST.format(carrier="PCIe")),
    # The network
    _number("busiest_link", "share", "Utilisation of the busiest link.", "key", "tile", noun="busiest link in use",
            told=True),
    _number("network_bytes", "B", "Bytes that all links carried, headers included."),
    _number("max_queue_bytes", "B", "Longest egress queue.", "tile", "watched", "packets", noun="longest queue"),
    _number("drops", "count", "Packets lost, for all reasons.", "key", "tile", "seeds", "watched", "packets",
            noun="packets lost"),
    _number("drop_{reason}", "count", "Packets lost: {words}.", "packets"),
    _number("data_sent", "count", "Data packets sent, retransmissions included.", "counter", "packets"),
    _number("retransmissions", "count", "Data packets sent again.", "key", "tile", "watched", "counter", "packets",
            noun="packets sent again"),
    _number("trims", "count", "Data packets that a switch cut to their headers for lack of room.", "counter",
            "packets"),
    _number("pauses", "count", "PFC frames that asked for a pause.", "key", "tile", "seeds", "watched", "packets",
            noun="pause frames"),
    _number("paused_ps", "ps", "Time for which ports were paused, summed over all ports.", "key", "watched",
            "packets"),
    _number("marks", "count", "Packets marked by ECN.", "key", "tile", "seeds", "packets", noun="ECN marks"),
    _number("credit_frames", "count", "Frames that returned credit to the other end of a link.", "packets"),
    _number("nic_state_bytes", "B", "State of connections at a NIC port, the largest of all ports.", "packets"),
    _number("reorder_buffer_bytes", "B", "Out-of-order packets kept at a NIC port, the largest of all ports and times;"
            " each counts as a full packet.", "packets"),
    _number("timeouts", "count", "Retransmission timeouts: a sender went back because no acknowledgement came.",
            "watched", "counter", "packets"),
    _number("naks_sent", "count", "Negative acknowledgements sent: a packet was missing.", "counter", "packets"),
    _number("cnps_sent", "count", "Congestion notification packets sent.", "counter", "packets"),
    _number("acks_sent", "count", "Acknowledgements sent.", "counter", "packets"),
    _number("out_of_order_discards", "count",
            "Packets that a receiver discarded because an earlier packet was missing.", "counter", "packets"),
    _number("duplicates", "count", "Packets received more than once.", "counter", "packets"),
    _number("queue_pair_errors", "count", "Connections that failed after too many timeouts.", "counter", "packets"),
    _number("packet_hops", "count", "Packets times the links that they crossed, ACKs and CNPs included.", "counter",
            "packets"),
    _number("simulated_ps", "ps", "Simulated time of the run{until}."),
    _number("oversubscription", "ratio",
            "Rate of the hosts over the rate of the top tier: the product of the tiers' oversubscriptions."),
    _number("planned_pairs", "count", "Pairs of NIC ports with a planned path."),
    _number("planned_busiest_link", "share", f"{_PLANNED} port, by the planned paths."),
    _number("planned_bound", "share", "Lower bound of the load of the most loaded link, if the scheme has one."),
    _number("planned_again", "count", "Later instants with new paths."),
    # Weeks with failures
    _number("effective_share", "share", "Expected share of the time that is useful training.", more=True),
    _number("effective_share_p5", "share", "Lower end: 5 % of {runs} are below.", more=True),
    _number("effective_share_p95", "share", "Upper end: 5 % of {runs} are above.", more=True),
    _number("recovery_share", "share", "Share of the time that goes to detection and restart.",
            "weeks", noun="detection and restart"),
    _number("lost_share", "share", "Share of the time whose work after the last checkpoint was lost.",
            "weeks", noun="lost work"),
    _number("checkpoint_share", "share", "Share of the time that checkpoints hold up training.", "weeks",
            noun="checkpoints"),
    _number("no_spare_share", "share", "Share of the time in which the job waits for a server, since no spare is left.",
            "weeks", noun="waiting for a spare server"),
    _number("interruption_every_s", "s", "Mean time from one interruption to the next.", more=True),
    _number("checkpoint_every_s", "s", "Training from one checkpoint to the next."),
    _number("checkpoint_optimum_s", "s", "The best such time, by Daly."),
    _number("effective_tokens_per_s", "1/s", "Tokens per second over weeks, failures included.", more=True),
)  # fmt: skip
NUMBERS: Final[Mapping[str, SummaryNumber]] = MappingProxyType({number.name: number for number in _ROWS})
HEADLINES: Final = tuple(number.name for number in _ROWS if number.what)  # what a run took: the first that it has
TIME_GROUPS: Final = {number.name: number.group for number in _ROWS if number.group}
_FAMILIES: Final = tuple(
    (re.compile("[a-z0-9_]+".join(map(re.escape, re.split(r"\{\w+\}", number.name)))), number)
    for number in _ROWS
    if "{" in number.name
)


def quantities(name: str, value: float | None, *, lead: str = "", **words: object) -> dict[str, Quantity]:
    """A number as it stands in a summary, by its name there.

    Parameters
    ----------
    name : of `NUMBERS`
    value : None where there is nothing to measure
    lead : before the name: the name of a job and a dot
    words : for braces of name and text

    Examples
    --------
    >>> quantities("drop_{reason}", 3, reason="buffer_full", words="buffer full")
    {'drop_buffer_full': Quantity(value=3, unit='count', text='Packets lost: buffer full.')}
    """
    number = NUMBERS[name]
    text = number.text.format(**words) if words else number.text
    return {f"{lead}{name.format(**words)}": Quantity(value=value, unit=number.unit, text=text)}


def declared(name: str) -> SummaryNumber | None:
    """The row of a number of a summary; None for a name that no row has.

    Examples
    --------
    >>> declared("right.iteration_ps").noun, declared("fct_p99.9_ps").unit, declared("drop_buffer_full").unit
    ('time of an iteration', 'ps', 'count')
    """
    if name in NUMBERS:
        return NUMBERS[name]
    for pattern, number in _FAMILIES:
        if pattern.fullmatch(name):
            return number
    _, dot, rest = name.partition(".")
    return declared(rest) if dot else None


def is_larger_better(name: str) -> bool:
    """Whether more of a number is better.

    Examples
    --------
    >>> is_larger_better("goodput_bps"), is_larger_better("exposed_share"), is_larger_better("right.mfu")
    (True, False, True)
    """
    number = declared(name)
    return number is not None and number.is_larger_better


def headline_noun(name: str) -> str:
    """What people call the time that a run took; empty for a number that is no headline."""
    number = declared(name)
    return number.noun if number is not None and number.what else ""


def numbers_shown(place: Place) -> tuple[SummaryNumber, ...]:
    """The numbers of a place, in their order."""
    return tuple(number for number in _ROWS if place in number.places)
