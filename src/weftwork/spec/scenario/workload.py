"""The keys of ``collective``, ``traffic`` and ``engine`` in a scenario.

They say what is asked, and how it is computed.
Leaves out: what one key means for another (`weftwork.spec.scenario.checks`).
"""

from __future__ import annotations

from typing import Final

from pydantic import Field

from weftwork.base.units import DURATION, SIZE
from weftwork.spec.device import PRIORITIES, Record
from weftwork.spec.fidelities import FIDELITIES
from weftwork.spec.limits import MAX_HOSTS
from weftwork.spec.scenario.choice import NoKeys
from weftwork.spec.scenario.choices import ALGORITHMS, PATTERNS
from weftwork.spec.scenario.effects import NO_PRIORITIES, Effect
from weftwork.spec.scenario.kinds import Choice, FileName, Listing, Measure, OfferKind, Section, Selection, Text, Whole
from weftwork.spec.scenario.rows import REQUIRED, row

__all__ = [
    "FRAGMENT_SERVERS",
    "OPERATIONS",
    "PLACEMENTS",
    "PLACEMENT_TEXT",
    "CollectiveSection",
    "EngineSection",
    "Recording",
    "TrafficSection",
    "fragment_row",
    "usual_algorithm",
]

OPERATIONS = (
    "all-reduce", "reduce-scatter", "all-gather", "all-to-all", "broadcast", "reduce", "send-receive", "barrier",
)  # fmt: skip
PLACEMENTS = ("packed", "rails", "pods", "random-servers", "random-fragments", "random")
PLACEMENT_TEXT = (
    "Order of ranks on GPUs: server by server, rail by rail, over the pods alternately, whole servers in random order"
    " as a scheduler finds them free, fragments of neighbouring servers in random order, or single GPUs at random"
    " (random: a worst case that leaves no server whole)."
)
FRAGMENT_SERVERS: Final = 8  # of a fragment where nobody says; chosen: some racks of a cluster that is not empty


def fragment_row() -> int | None:
    """The key of a section that says how many servers a fragment has."""
    found: int | None = row(
        "fragment",
        Whole(low=1, high=MAX_HOSTS, unit="servers"),
        absent=f"{FRAGMENT_SERVERS} with placement random-fragments, which alone has fragments",
        text="Neighbouring servers of a fragment.",
        source="chosen: what a scheduler finds free together; ask yours",
    )
    return found


def usual_algorithm(operation: str) -> str:
    """The algorithm of an operation where nobody names one: that of the row ``collective.algorithm``."""
    return "direct" if operation in {"all-to-all", "send-receive"} else "ring"


class CollectiveSection(Record):
    """One collective operation among GPUs."""

    operation: str = row(
        "operation",
        Choice(options=OPERATIONS),
        default="all-reduce",
        text="Operation of the GPUs.",
        source="chosen: the one that training waits for",
    )
    algorithm: str | None = row(
        "algorithm",
        OfferKind(
            folder=ALGORITHMS,
            words={
                "auto": "The choice of NCCL at this size and scale, with its protocol; a ring has NCCL's rounds. On a"
                " torus and over the groups of a direct network the fastest by the closed form."
            },
        ),
        absent="ring; direct for all-to-all and send-receive, which a ring does not do",
        text="Algorithm of the operation; `weftwork list collective` lists the operations of each algorithm.",
        source="Patarasuk and Yuan, JPDC 69(2), 2009, doi:10.1016/j.jpdc.2008.09.002",
    )
    options: Record = Field(default_factory=NoKeys)  # the keys of the algorithm
    candidate: str | None = row(
        "candidate",
        FileName(endings=(".py",)),
        absent="the algorithms of the catalogue alone",
        text="Python file with an algorithm of your own, which `auto` takes where its closed form is the faster one.",
        source="chosen: auto knows no file by itself",
        only=("algorithm", ("auto",)),
    )
    gpus: int | None = row(
        "gpus",
        Whole(low=2, high=MAX_HOSTS, unit="GPUs"),
        absent="all GPUs of the fabric",
        text="GPUs that take part.",
        source="chosen: everybody",
    )
    size_bytes: int = row(
        "size",
        Measure(quantity=SIZE, low=1),
        default="256MiB",
        text="Bytes, as nccl-tests counts them: the buffer of a rank; of an all-gather or a reduce-scatter the whole.",
        source="chosen: a gradient bucket",
    )
    placement: str = row(
        "placement",
        Choice(options=PLACEMENTS),
        default="packed",
        text=PLACEMENT_TEXT,
        source="chosen: as launchers number ranks",
    )
    fragment: int | None = fragment_row()
    channels: int | None = row(
        "channels",
        Whole(low=1, high=256, unit="channels"),
        absent="the NIC ports of an NVLink domain: one for each rail and port",
        text="Rings or trees that share the bytes, each with separate connections.",
        source="chosen: NCCL has at least one for each NIC",
    )
    chunks: int = row(
        "chunks",
        Whole(low=1, high=1_024, unit="pieces"),
        default=4,
        text="Pieces of a part that are under way at a time, so that a step of one overlaps the next step of another;"
        " with algorithm auto a ring has one.",
        source="NVIDIA/nccl, src/include/device.h: NCCL_STEPS 8, in slices of two steps",
    )
    least_chunk_bytes: int = row(
        "least_chunk",
        Measure(quantity=SIZE, low=1),
        default="128KiB",
        text="A piece is not made smaller than that.",
        source="chosen: a quarter of a slice of NCCL's buffers of 4 MiB",
    )
    round_bytes: int | None = row(
        "round",
        Measure(quantity=SIZE, low=1),
        absent="no rounds; with algorithm auto as much as NCCL's buffers hold",
        text="Bytes of a part of a channel that go around a ring before the next ones begin.",
        source="NVIDIA/nccl, src/enqueue.cc, calcCollChunking",
    )
    root: int | None = row(
        "root",
        Whole(low=0, high=MAX_HOSTS - 1, unit="rank"),
        default=0,
        only=("operation", ("broadcast", "reduce")),
        text="Rank that has the data, or gets the result.",
        source="chosen: the first",
    )
    shift: int | None = row(
        "shift",
        Whole(low=1, high=MAX_HOSTS - 1, unit="ranks"),
        absent="half of the GPUs",
        only=("operation", ("send-receive",)),
        text="Rank i sends to rank i + shift.",
        source="chosen: everything crosses the middle of the fabric; nccl-tests has 1",
    )
    protocol: str = row(
        "protocol",
        Choice(options=("none", "simple", "ll128", "ll", "auto")),
        default="simple",
        text="NCCL protocol, with its latencies and its share of data in the bytes sent. `none` is the network alone,"
        " `auto` the fastest at this size in closed form. With algorithm auto NCCL chooses, if this is simple or"
        " auto.",
        source="NVIDIA/nccl, src/graph/tuning.cc",
    )
    step_latency_ps: int | None = row(
        "step_latency",
        Measure(quantity=DURATION),
        absent="the protocol's",
        text="Software latency of a step over the network.",
        source="see protocol",
    )
    local_step_latency_ps: int | None = row(
        "local_step_latency",
        Measure(quantity=DURATION),
        absent="the protocol's",
        text="Software latency of a step inside a server.",
        source="see protocol",
    )
    base_latency_ps: int | None = row(
        "base_latency",
        Measure(quantity=DURATION),
        absent="the protocol's",
        text="Time from the start until the first byte is sent.",
        source="see protocol",
    )
    repeat: int = row(
        "repeat",
        Whole(low=1, high=1_000_000, unit="times"),
        default=1,
        text="Repetitions of the operation, one after the other.",
        source="chosen: once",
    )


class TrafficSection(Record):
    """Flows between hosts."""

    pattern: str = row(
        "pattern",
        OfferKind(folder=PATTERNS),
        default=REQUIRED,
        text="Traffic pattern: senders and receivers.",
        source="chosen: it decides what is asked, so the user does",
    )
    options: Record = Field(default_factory=NoKeys)  # the keys of the pattern
    priority: int | None = row(
        "priority",
        Whole(low=0, high=PRIORITIES - 1, unit="priority"),
        absent="transport.data_priority",
        text="Priority of the flows.",
        source="chosen: the transport's",
        effect=Effect(flows=NO_PRIORITIES),
    )


class Recording(Record):
    """Time series that a run keeps."""

    flows: str | tuple[int, ...] = row(
        "flows",
        Selection(item=Whole(unit="flow number")),
        default="none",
        text="Flows with recorded rate and window, by number from 0.",
        source="chosen: series cost time and space",
    )
    ports: str | tuple[str, ...] = row(
        "ports",
        Selection(item=Text(unit="port name")),
        default="none",
        text="Ports with recorded queue: `leaf0` is all ports of a node, `leaf0->spine1` a single port.",
        source="chosen: series cost time and space",
    )
    state: tuple[str, ...] | None = row(
        "state",
        Listing(item=Text(unit="field")),
        absent="rate and window alone",
        text="More of these flows that is kept: fields of the state of the congestion control and of the path"
        ' selection, by name, such as `alpha`, and elements of its arrays, such as `"ring[3]"`.',
        source="chosen: only the author of a policy knows which fields tell something",
    )
    every_ps: int = row(
        "every",
        Measure(quantity=DURATION, low=1_000),
        default="10us",
        text="Time between two samples.",
        source="chosen: about one round trip of a data centre",
    )


class EngineSection(Record):
    """Settings of the computation."""

    fidelity: str = row(  # always one of them in a scenario: reading it fills it in
        "fidelity",
        Choice(options=tuple(FIDELITIES)),
        absent="flow for training, packet for the rest",
        text="Packets, flows that share links, or the meaning of packets in Python: the same results slowly.",
        source="chosen: packets where a network is asked about, flows where days of training are",
    )
    seed: int = row(
        "seed",
        Whole(low=0, high=2**31 - 1, unit="seed"),
        default=1,
        text="Everything random follows from it.",
        source="chosen: any number",
    )
    until_ps: int | None = row(
        "until",
        Measure(quantity=DURATION, low=1),
        absent="until nothing is left to do",
        text="Simulated instant at which the run ends.",
        source="chosen: the whole job",
    )
    record: Recording = row(
        "record",
        Section(model=Recording),
        text="Time series that are kept.",
        source="see its keys",
    )
