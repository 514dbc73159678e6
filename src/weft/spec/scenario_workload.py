"""The keys of ``collective``, ``traffic`` and ``engine`` in a scenario: what is asked, and how it is computed.

Leaves out: what one key means for another (`weft.spec.scenario_checks`).
"""

from __future__ import annotations

from weft.base.units import DURATION, SIZE
from weft.spec.device import PRIORITIES, Record
from weft.spec.scenario_fabric import MAX_HOSTS
from weft.spec.scenario_kinds import Choice, FileName, Measure, Number, Section, Selection, Text, Whole
from weft.spec.scenario_rows import REQUIRED, row

__all__ = ["SIZE_DISTRIBUTIONS", "Collective", "EngineSection", "Recording", "Traffic"]

SIZE_DISTRIBUTIONS = ("web-search", "facebook-hadoop", "alibaba-storage")

_SIZED = ("pattern", ("permutation", "incast", "all-to-all"))
_INCAST = ("pattern", ("incast",))
_POISSON = ("pattern", ("poisson",))


class Collective(Record):
    """One collective operation among GPUs."""

    operation: str = row(
        "operation",
        Choice(
            options=("all-reduce",),
            later={
                name: f"{name} comes with a later version"
                for name in ("all-gather", "reduce-scatter", "all-to-all", "broadcast")
            },
        ),
        default="all-reduce",
        text="What the GPUs do together.",
        source="chosen: the one that training waits for",
    )
    algorithm: str = row(
        "algorithm",
        Choice(
            options=("ring",),
            later={name: f"{name} comes with a later version" for name in ("tree", "halving-doubling")},
        ),
        default="ring",
        text="How it is done.",
        source="Patarasuk and Yuan, JPDC 69(2), 2009, doi:10.1016/j.jpdc.2008.09.002",
    )
    gpus: int | None = row(
        "gpus",
        Whole(low=2, high=MAX_HOSTS, unit="GPUs"),
        absent="all hosts of the fabric",
        text="GPUs that take part, one per host, the first ones.",
        source="chosen: everybody",
    )
    size_bytes: int = row(
        "size",
        Measure(quantity=SIZE, low=1),
        default="256MiB",
        text="Bytes that each GPU brings.",
        source="chosen: a gradient bucket",
    )
    channels: int = row(
        "channels",
        Whole(low=1, high=64, unit="rings"),
        default=1,
        text="Rings that share the bytes, each with connections of its own.",
        source="chosen: one",
    )
    repeat: int = row(
        "repeat",
        Whole(low=1, high=1_000_000, unit="times"),
        default=1,
        text="Times that it is done, one after the other.",
        source="chosen: once",
    )


class Traffic(Record):
    """Flows between hosts."""

    pattern: str = row(
        "pattern",
        Choice(options=("permutation", "incast", "all-to-all", "poisson")),
        default=REQUIRED,
        text="Who sends to whom.",
        source="chosen: it decides what is asked, so the user does",
    )
    size_bytes: int | None = row(
        "size",
        Measure(quantity=SIZE, low=1),
        default="1MiB",
        only=_SIZED,
        text="Bytes of each message.",
        source="chosen: 256 full packets",
    )
    senders: int | None = row(
        "senders",
        Whole(low=1, high=MAX_HOSTS, unit="hosts"),
        only=_INCAST,
        absent="every host but the receiver",
        text="Hosts that send.",
        source="chosen: everybody",
    )
    receiver: int | None = row(
        "receiver",
        Whole(low=0, high=MAX_HOSTS - 1, unit="host number"),
        default=0,
        only=_INCAST,
        text="Number of the host that receives, counted from 0.",
        source="chosen: the first",
    )
    victim_source: int | None = row(
        "victim_source",
        Whole(low=0, high=MAX_HOSTS - 1, unit="host number"),
        only=_INCAST,
        absent="no victim",
        text="Host from which one more flow of that size runs beside the incast; needs victim_receiver.",
        source="Zhu et al., SIGCOMM 2015, doi:10.1145/2785956.2787484, section 2.2: the victim flow",
    )
    victim_receiver: int | None = row(
        "victim_receiver",
        Whole(low=0, high=MAX_HOSTS - 1, unit="host number"),
        only=_INCAST,
        absent="no victim",
        text="Host to which that flow runs: not the receiver of the incast; needs victim_source.",
        source="Zhu et al., SIGCOMM 2015, doi:10.1145/2785956.2787484, section 2.2: the victim flow",
    )
    flows: int | None = row(
        "flows",
        Whole(low=1, high=100_000_000, unit="flows"),
        default=10_000,
        only=_POISSON,
        text="Flows that arrive.",
        source="chosen: 10 beyond the 99.9th percentile",
    )
    load: float | None = row(
        "load",
        Number(above=0, high=1),
        default=0.5,
        only=_POISSON,
        text="Mean payload offered, as a share of the rate of all host links.",
        source="chosen: the middle of the published sweeps",
    )
    sizes: str | None = row(
        "sizes",
        FileName(endings=(".csv",), names=SIZE_DISTRIBUTIONS),
        default="web-search",
        only=_POISSON,
        text="Distribution of flow sizes: a published one, or a file relative to the scenario's folder.",
        source="Alizadeh et al., SIGCOMM 2010, doi:10.1145/1851182.1851192: web search",
    )
    start_jitter_ps: int | None = row(
        "start_jitter",
        Measure(quantity=DURATION),
        default="0ps",
        only=_SIZED,
        text="Each flow starts at a random instant up to that.",
        source="chosen: all at once",
    )
    repeat: int | None = row(
        "repeat",
        Whole(low=1, high=1_000_000, unit="messages"),
        default=1,
        only=_SIZED,
        text="Messages of each flow, one after the other.",
        source="chosen: one",
    )
    priority: int | None = row(
        "priority",
        Whole(low=0, high=PRIORITIES - 1, unit="priority"),
        absent="transport.data_priority",
        text="Priority of the flows.",
        source="chosen: the transport's",
    )


class Recording(Record):
    """Time series that a run keeps."""

    flows: str | tuple[int, ...] = row(
        "flows",
        Selection(item=Whole(unit="flow number")),
        default="none",
        text="Flows whose rate and window are kept, by number from 0.",
        source="chosen: series cost time and space",
    )
    ports: str | tuple[str, ...] = row(
        "ports",
        Selection(item=Text(unit="port name")),
        default="none",
        text="Ports whose queue is kept: `leaf0` for all of a node's, `leaf0->spine1` for one.",
        source="chosen: series cost time and space",
    )
    every_ps: int = row(
        "every",
        Measure(quantity=DURATION, low=1_000),
        default="10us",
        text="Time between two samples.",
        source="chosen: about one round trip of a data centre",
    )


class EngineSection(Record):
    """How the run is computed."""

    fidelity: str = row(
        "fidelity",
        Choice(options=("packet", "reference"), later={"flow": "the flow engine comes with a later version"}),
        default="packet",
        text="The fast packet engine, or its meaning in Python, which gives the same results slowly.",
        source="chosen: the fast one",
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
