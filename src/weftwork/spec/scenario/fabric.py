"""The keys of ``fabric`` in a scenario: unit, default, allowed values, one sentence and source of each.

Leaves out: what one key means for another (`weftwork.spec.scenario.fabric_checks`), fields of devices
(`weftwork.spec.scenario.devices`).
"""

from __future__ import annotations

from weftwork.base.units import DURATION, LENGTH, RATE
from weftwork.spec.device import Nic, Record, Server, Switch
from weftwork.spec.limits import MAX_HOSTS
from weftwork.spec.scenario.devices import DeviceChoice
from weftwork.spec.scenario.kinds import Choice, DeviceKind, FileName, Flag, Measure, Number, Whole
from weftwork.spec.scenario.rows import row

__all__ = ["FabricSection"]

_LEAF_SPINE = ("topology", ("leaf-spine",))
_RAILS = ("topology", ("rail-optimized",))
_TIERED = ("topology", ("fat-tree", "rail-optimized"))
_SPINES = ("topology", ("leaf-spine", "rail-optimized"))
_BUILT = ("topology", ("fat-tree", "leaf-spine", "rail-optimized"))


class FabricSection(Record):
    """Hosts, switches and the links between them."""

    topology: str = row(
        "topology",
        Choice(
            options=("fat-tree", "leaf-spine", "rail-optimized", "file"),
            later={
                "dragonfly": "dragonfly comes with a later version",
                "torus": "torus comes with a later version",
            },
        ),
        default="fat-tree",
        text="Shape of the fabric; `file` where `fabric.file` is given.",
        source="chosen: the non-blocking fabric most papers use",
    )
    tiers: int | None = row(
        "tiers",
        Whole(low=2, high=3, unit="tiers"),
        absent="3 for a fat tree; for a rail-optimized fabric 2 where they suffice, else 3",
        only=_TIERED,
        text="Tiers of switches: leaves and spines, or with cores above them (in a fat tree leaves, aggs, cores).",
        source="Al-Fares et al., SIGCOMM 2008, doi:10.1145/1402958.1402967",
    )
    radix: int | None = row(
        "radix",
        Whole(low=2, high=1_024, unit="ports"),
        only=_BUILT,
        absent="those of the switch's model; required with a plain one, unless leaves and spines are given",
        text="Ports of every switch; even for a fat tree.",
        source="chosen: it decides the size of the fabric, so the user does",
    )
    hosts: int | None = row(
        "hosts",
        Whole(low=1, high=MAX_HOSTS, unit="hosts"),
        only=_BUILT,
        absent="as many as the fabric has ports for, or as gpus say",
        text="Servers that are attached.",
        source="chosen: a full fabric",
    )
    gpus: int | None = row(
        "gpus",
        Whole(low=1, high=MAX_HOSTS, unit="GPUs"),
        only=_BUILT,
        absent="those of all hosts",
        text="GPUs of all servers together: hosts x the GPUs of `node`.",
        source="chosen: derived",
    )
    node: DeviceChoice = row(
        "node",
        DeviceKind(record=Server, catalogue="node"),
        default="plain",
        only=_BUILT,
        text="Server of the hardware catalogue, with the fields that differ; it brings its NIC and its links' rate.",
        source="chosen: a host with one GPU and one NIC port, as in most papers",
    )
    pods: int | None = row(
        "pods",
        Whole(low=1, high=65_536, unit="pods"),
        only=_RAILS,
        absent="follows from the servers and nodes_per_pod",
        text="Groups of servers that share one leaf for each rail (scalable units).",
        source="chosen: derived",
    )
    nodes_per_pod: int | None = row(
        "nodes_per_pod",
        Whole(low=1, high=MAX_HOSTS, unit="servers"),
        only=_RAILS,
        absent="as many as a leaf has ports for at the wanted oversubscription, or as pods say",
        text="Servers of a pod.",
        source="chosen: derived",
    )
    rails: int | None = row(
        "rails",
        Whole(low=1, high=1_024, unit="rails"),
        only=_RAILS,
        absent="one for each GPU of a server, or as the catalogue says of the node",
        text="Leaves of a pod and plane: the ports of GPU g of every server hang on leaf g mod rails.",
        source="docs.nvidia.com/networking, InfiniBand Cluster Bring-up Procedure: each GPU rail on its own leaf",
    )
    planes: int | None = row(
        "planes",
        Whole(low=1, high=64, unit="planes"),
        default=1,
        only=_RAILS,
        text="Separate fabrics over which the NIC ports of each GPU are spread; 2 is a dual-plane fabric.",
        source="Qian et al., SIGCOMM 2024, doi:10.1145/3651890.3672265, section 6",
    )
    rail_only: bool | None = row(
        "rail_only",
        Flag(),
        default=False,
        only=_RAILS,
        text="Whether rails are not joined: each has spines of its own, or none, and GPUs of different rails meet in a"
        " server.",
        source="Wang et al., Hot Interconnects 2024, arXiv:2307.12169; chosen: joined, as most are built",
    )
    dual_homed: bool | None = row(
        "dual_homed",
        Flag(),
        default=False,
        only=_LEAF_SPINE,
        text="Whether the NIC ports of a server hang on two leaves by turns, so that it survives the loss of one.",
        source="chosen: one leaf for each rack",
    )
    leaves: int | None = row(
        "leaves",
        Whole(low=1, high=65_536, unit="switches"),
        only=_LEAF_SPINE,
        absent="follows from hosts, radix and oversubscription",
        text="Leaf switches; given together with `spines` and `hosts_per_leaf`.",
        source="chosen: derived",
    )
    spines: int | None = row(
        "spines",
        Whole(low=0, high=65_536, unit="switches"),
        only=_SPINES,
        absent="follows from hosts, radix and oversubscription",
        text="Spine switches, given together with `leaves` and `hosts_per_leaf`; for a rail-optimized fabric those of a"
        " plane (of a rail where rails are not joined; of a block with three tiers), 0 where nothing joins the leaves.",
        source="chosen: derived",
    )
    hosts_per_leaf: int | None = row(
        "hosts_per_leaf",
        Whole(low=1, high=1_024, unit="hosts"),
        only=_LEAF_SPINE,
        absent="as many as the oversubscription allows",
        text="Servers on every leaf.",
        source="chosen: derived",
    )
    links_per_pair: int | None = row(
        "links_per_pair",
        Whole(low=1, high=1_024, unit="links"),
        only=_SPINES,
        absent="1 where leaves and spines are given, else derived",
        text="Parallel links between a leaf and a spine.",
        source="chosen: derived",
    )
    oversubscription: float | None = row(
        "oversubscription",
        Number(low=1e-12, high=1e12),
        only=_SPINES,
        absent="1, non-blocking, unless leaves, spines and hosts_per_leaf say otherwise",
        text="Bandwidth of a leaf's host ports divided by that of its uplinks.",
        source="Alizadeh and Edsall, HotI 2013, doi:10.1109/HOTI.2013.23",
    )
    link_rate_bps: int | None = row(
        "link_rate",
        Measure(quantity=RATE, low=1_000_000, high=100_000_000_000_000),
        absent="that of the node's NIC ports, 400Gbps for a plain one",
        only=_BUILT,
        text="Rate of the links between hosts and switches, each of one NIC port.",
        source="IEEE 802.3bs: 400 Gb/s",
    )
    fabric_rate_bps: int | None = row(
        "fabric_rate",
        Measure(quantity=RATE, low=1_000_000, high=100_000_000_000_000),
        only=_BUILT,
        absent="link_rate",
        text="Rate of the links between switches.",
        source="chosen: one speed everywhere",
    )
    link_delay_ps: int | None = row(
        "link_delay",
        Measure(quantity=DURATION, low=1_000, high=1_000_000_000_000),
        absent="from cable_length",
        only=_BUILT,
        text="One-way propagation delay of every link; instead of `cable_length`.",
        source="chosen: follows from the cable; at least 1 ns, since the engines need a delay between devices",
    )
    cable_length_m: float | None = row(
        "cable_length",
        Measure(quantity=LENGTH),
        absent="20m where link_delay is not given",
        only=_BUILT,
        text="Length of every cable, at 5 ns per metre.",
        source="chosen: a row of racks; 5 ns/m is light in fibre, rounded",
    )
    host_link_delay_ps: int | None = row(
        "host_link_delay",
        Measure(quantity=DURATION, low=1_000, high=1_000_000_000_000),
        only=_BUILT,
        absent="link_delay",
        text="One-way propagation delay of the links between hosts and switches, where it differs.",
        source="chosen: one delay everywhere",
    )
    switch: DeviceChoice = row(
        "switch",
        DeviceKind(record=Switch, catalogue="switch"),
        default="plain",
        only=_BUILT,
        text="Switch of the hardware catalogue, with the fields that differ.",
        source="chosen: no vendor's",
    )
    nic: DeviceChoice = row(
        "nic",
        DeviceKind(record=Nic, catalogue="nic"),
        default="plain",
        only=_BUILT,
        text="NIC of the hardware catalogue, with the fields that differ; left out, it is the node's.",
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
        only=_BUILT,
        text="Probability that a packet vanishes on a link.",
        source="chosen: perfect links",
    )
    corruption: float | None = row(
        "corruption",
        Number(low=0, high=1, unit="probability"),
        default=0,
        only=_BUILT,
        text="Probability that a packet arrives with a wrong checksum.",
        source="chosen: perfect links",
    )
    reconvergence_delay_ps: int = row(
        "reconvergence_delay",
        Measure(quantity=DURATION),
        default="1ms",
        text="Time from a fault to the instant at which all routes know of it.",
        source="chosen: fast rerouting in a data centre",
    )
    failover_delay_ps: int = row(
        "failover_delay",
        Measure(quantity=DURATION),
        default="1ms",
        text="Time from a fault of a NIC port's link until queue pairs of a rank with several ports use another one.",
        source="chosen: a NIC sees that its own link is down at once; its driver then moves queues",
    )
