"""The keys of ``fabric`` in a scenario, as rows.

A row has unit, default, allowed values, one sentence and source.
Leaves out: keys of one topology alone, which stand in its file (`weftwork.topology.shapes`), what one key means for
another (`weftwork.spec.scenario.fabric_checks`), fields of devices (`weftwork.spec.scenario.devices`).
"""

from __future__ import annotations

from pydantic import Field

from weftwork.base.units import DURATION, LENGTH, RATE, SIZE
from weftwork.spec.device import Nic, Record, Server, Switch
from weftwork.spec.limits import MAX_HOSTS
from weftwork.spec.routing import MOST_PATHS, USUAL_PATHS
from weftwork.spec.routings import ROUTINGS
from weftwork.spec.scenario.choice import NoKeys
from weftwork.spec.scenario.choices import TOPOLOGIES
from weftwork.spec.scenario.devices import DeviceChoice
from weftwork.spec.scenario.effects import NO_QUEUES, Effect
from weftwork.spec.scenario.engineering import EngineeringSection
from weftwork.spec.scenario.floor_plan import FloorPlanSection
from weftwork.spec.scenario.hashes import HashSection
from weftwork.spec.scenario.kinds import (
    Choice,
    DeviceKind,
    FileName,
    Measure,
    Number,
    OfferKind,
    Section,
    SectionList,
    Whole,
)
from weftwork.spec.scenario.pins import PinSection
from weftwork.spec.scenario.rows import row

__all__ = ["FabricSection"]

_FROM_FILE = ("topology", ("file",))  # a fabric file brings all that the common keys of built fabrics say


class FabricSection(Record):
    """Hosts, switches and the links between them."""

    topology: str = row(
        "topology",
        OfferKind(
            folder=TOPOLOGIES,
            words={"file": "A fabric of the user's own, as JSON or GraphML, which `fabric.file` names."},
        ),
        default="fat-tree",
        text="Shape of the fabric; `file` if `fabric.file` is given.",
        source="chosen: the non-blocking fabric most papers use",
    )
    options: Record = Field(default_factory=NoKeys)  # the keys of the topology
    radix: int | None = row(
        "radix",
        Whole(low=2, high=1_024, unit="ports"),
        unless=_FROM_FILE,
        absent="those of the switch's model; required with a plain one, unless leaves and spines are given",
        text="Ports of every switch; even for a fat tree.",
        source="chosen: it decides the size of the fabric, so the user does",
    )
    hosts: int | None = row(
        "hosts",
        Whole(low=1, high=MAX_HOSTS, unit="hosts"),
        unless=_FROM_FILE,
        absent="as many as the fabric has ports for, or as gpus say",
        text="Servers that are attached.",
        source="chosen: a full fabric",
    )
    gpus: int | None = row(
        "gpus",
        Whole(low=1, high=MAX_HOSTS, unit="GPUs"),
        unless=_FROM_FILE,
        absent="those of all hosts",
        text="GPUs of all servers together: hosts x the GPUs of `node`.",
        source="chosen: derived",
    )
    node: DeviceChoice = row(
        "node",
        DeviceKind(record=Server, catalogue="node"),
        default="plain",
        text="Server of the hardware catalogue, with the fields that differ; it brings its NIC and its links' rate."
        " With `file` fields alone, which change in every server.",
        source="chosen: a host with one GPU and one NIC port, as in most papers",
    )
    link_rate_bps: int | None = row(
        "link_rate",
        Measure(quantity=RATE, low=1_000_000, high=100_000_000_000_000),
        absent="that of the node's NIC ports, 400Gbps for a plain one",
        unless=_FROM_FILE,
        text="Rate of the links between hosts and switches, each of one NIC port.",
        source="IEEE 802.3bs: 400 Gb/s",
    )
    fabric_rate_bps: int | None = row(
        "fabric_rate",
        Measure(quantity=RATE, low=1_000_000, high=100_000_000_000_000),
        unless=_FROM_FILE,
        absent="link_rate",
        text="Rate of the links between switches.",
        source="chosen: one speed everywhere",
    )
    link_delay_ps: int | None = row(
        "link_delay",
        Measure(quantity=DURATION, low=1_000, high=1_000_000_000_000),
        absent="from cable_length",
        unless=_FROM_FILE,
        text="One-way propagation delay of every link; instead of `cable_length`.",
        source="chosen: follows from the cable; at least 1 ns, since the engines need a delay between devices",
    )
    cable_length_m: float | None = row(
        "cable_length",
        Measure(quantity=LENGTH),
        absent="20m if link_delay is not given",
        unless=_FROM_FILE,
        text="Length of every cable, at 5 ns per metre.",
        source="chosen: a row of racks; 5 ns/m is light in fibre, rounded",
    )
    host_link_delay_ps: int | None = row(
        "host_link_delay",
        Measure(quantity=DURATION, low=1_000, high=1_000_000_000_000),
        unless=_FROM_FILE,
        absent="link_delay",
        text="One-way propagation delay of the links between hosts and switches, if it differs.",
        source="chosen: one delay everywhere",
    )
    floor_plan: FloorPlanSection | None = row(
        "floor_plan",
        Section(model=FloorPlanSection, optional=True),
        unless=_FROM_FILE,
        text="Positions of the racks, which set the length and the delay of every cable; instead of `cable_length`.",
        source="see its keys",
    )
    switch: DeviceChoice = row(
        "switch",
        DeviceKind(record=Switch, catalogue="switch"),
        default="plain",
        text="Switch of the hardware catalogue, with the fields that differ. With `file` fields alone, which change in"
        " every switch.",
        source="chosen: no vendor's",
    )
    hash: tuple[HashSection, ...] = row(
        "hash",
        SectionList(model=HashSection),
        text="Hashes of some switches or tiers that differ from `fabric.switch.hash`.",
        source="see its keys",
    )
    nic: DeviceChoice = row(
        "nic",
        DeviceKind(record=Nic, catalogue="nic"),
        default="plain",
        text="NIC of the hardware catalogue, with the fields that differ; left out, it is the node's. With `file`"
        " fields alone, which change in every NIC.",
        source="chosen: no vendor's",
    )
    file: str | None = row(
        "file",
        FileName(endings=(".graphml", ".json")),
        absent="the fabric is built from topology",
        text="A fabric of the user's own, relative to the scenario's folder; it brings its links and devices.",
        source="chosen: none",
    )
    loss: float | None = row(
        "loss",
        Number(low=0, high=1, unit="probability"),
        default=0,
        unless=_FROM_FILE,
        text="Probability that a packet vanishes on a link.",
        source="chosen: perfect links",
    )
    corruption: float | None = row(
        "corruption",
        Number(low=0, high=1, unit="probability"),
        default=0,
        unless=_FROM_FILE,
        text="Probability that a packet arrives with a wrong checksum.",
        source="chosen: perfect links",
    )
    reconvergence_delay_ps: int = row(
        "reconvergence_delay",
        Measure(quantity=DURATION),
        default="1ms",
        text="Time from a fault to the instant at which all routes know of it.",
        source="chosen: fast rerouting in a data centre",
        effect=Effect(needs=("faults",)),
    )
    failover_delay_ps: int = row(
        "failover_delay",
        Measure(quantity=DURATION),
        default="1ms",
        text="Time from a fault of a NIC port's link until queue pairs of a rank with several ports use another one.",
        source="chosen: a NIC sees that its own link is down at once; its driver then moves queues",
        effect=Effect(needs=("faults",)),
    )
    routing: str = row(
        "routing",
        Choice(options=tuple(sorted(ROUTINGS, key=lambda name: ROUTINGS[name].place))),
        default="shortest",
        text="Paths between two switches with hosts. `shortest`: all shortest paths, among which every switch"
        " chooses. `k-shortest`: the shortest `paths` of all simple paths, longer ones too; the packet's entropy"
        " chooses. `up-down`: paths that never go down and then up again, also around a fault. They go down if that"
        " reaches the host, else up with the fewest hops left. The others are for direct networks, and bring their"
        " virtual channels: `minimal`, `dimension-order`, and with detours `valiant`, `ugal` and `par`"
        " (`weftwork list routing`).",
        source="chosen: ECMP, as routing protocols of data centres come with it; up-down: up*/down* of Autonet,"
        " doi:10.1109/49.105178, with the tiers of the fabric for its directions",
    )
    detour_bias_bytes: int | None = row(
        "detour_bias",
        Measure(quantity=SIZE, low=0, high=1_000_000_000_000),
        default="0B",
        only=("routing", tuple(name for name, row in ROUTINGS.items() if row.detour == "adaptive")),
        text="Bytes of queue, times hops, by which a detour has to be better than the shortest path.",
        source="chosen: none, as Kim et al., ISCA 2008, doi:10.1109/ISCA.2008.19",
        effect=Effect(flows=NO_QUEUES),
    )
    cycles: str = row(
        "cycles",
        Choice(options=("refuse", "allow")),
        default="refuse",
        text="Routes under which buffers of a lossless network can wait for each other in a circle: `refuse` the run,"
        " or `allow` it, to watch a deadlock.",
        source="chosen: a deadlock stops a network for good",
        effect=Effect(flows=NO_QUEUES),
    )
    paths: int | None = row(
        "paths",
        Whole(low=1, high=MOST_PATHS, unit="paths"),
        default=USUAL_PATHS,
        only=("routing", tuple(name for name, row in ROUTINGS.items() if row.paths == "several")),
        text="Number of paths between two switches.",
        source="Singla et al., NSDI 2012, Jellyfish, section 5: 8 shortest paths",
    )
    pinned: tuple[PinSection, ...] = row(
        "pinned",
        SectionList(model=PinSection),
        text="Paths of the queue pairs between two hosts; the rest goes by `routing`. A path with a link that is down"
        " gives way to the shortest paths when routes are computed again.",
        source="see its keys",
    )
    engineering: EngineeringSection | None = row(
        "engineering",
        Section(model=EngineeringSection, optional=True),
        text="Central traffic engineering: a controller pins a path for each pair of NIC ports that the job uses.",
        source="see its keys",
    )
