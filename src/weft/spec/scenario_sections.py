"""The sections of a scenario: every key with its unit, default, allowed values, one sentence and source.

This file is the schema. A new key is a new field here; reader, writer, ``weft explain``, JSON Schema and reference page follow.
Leaves out: what one key means for another (`weft.spec.scenario_checks`).
"""

from __future__ import annotations

from weft.base.units import DURATION, LENGTH, RATE, SIZE
from weft.spec.device import PRIORITIES, Nic, Record, Switch
from weft.spec.scenario_devices import DeviceChoice
from weft.spec.scenario_policies import PRESETS, PolicyChoice
from weft.spec.scenario_rows import (
    REQUIRED,
    Choice,
    DeviceKind,
    FileName,
    Flag,
    Measure,
    Number,
    PolicyKind,
    Section,
    SectionList,
    Selection,
    Text,
    Whole,
    row,
)

__all__ = ["Collective", "EngineSection", "FabricSection", "Fault", "Recording", "Traffic", "TransportSection"]

MAX_HOSTS = 2**20  # chosen: node indices are 32 bits; a million hosts is the largest fabric that Weft plans

_TREE = ("topology", ("fat-tree",))
_LEAF_SPINE = ("topology", ("leaf-spine",))
_BUILT = ("topology", ("fat-tree", "leaf-spine"))

SIZE_DISTRIBUTIONS = ("web-search", "facebook-hadoop", "alibaba-storage")


class FabricSection(Record):
    """Hosts, switches and the links between them."""

    topology: str = row(
        "topology",
        Choice(
            options=("fat-tree", "leaf-spine", "file"),
            later={
                "rail-optimized": "a rail-optimized fabric comes with a later version",
                "rail-optimised": "a rail-optimized fabric comes with a later version",
                "dragonfly": "dragonfly comes with a later version",
                "torus": "torus comes with a later version",
            },
        ),
        default="fat-tree",
        text="Shape of the fabric; `file` where `fabric.file` is given.",
        source="chosen: the non-blocking fabric most papers use",
    )
    tiers: int | None = row(
        "tiers", Whole(low=2, high=3, unit="tiers"), default=3, only=_TREE, text="Tiers of switches of a fat tree.",
        source="Al-Fares et al., SIGCOMM 2008, doi:10.1145/1402958.1402967",
    )  # fmt: skip
    radix: int | None = row(
        "radix", Whole(low=2, high=1_024, unit="ports"), only=_BUILT,
        absent="required for a fat tree, where it is even, and for a leaf-spine without leaves; else as many as there are links",
        text="Ports of every switch.", source="chosen: it decides the size of the fabric, so the user does",
    )  # fmt: skip
    hosts: int | None = row(
        "hosts", Whole(low=1, high=MAX_HOSTS, unit="hosts"), only=_BUILT, absent="as many as the fabric has ports for",
        text="Hosts that are attached.", source="chosen: a full fabric",
    )  # fmt: skip
    gpus: int | None = row(
        "gpus", Whole(low=1, high=MAX_HOSTS, unit="GPUs"), only=_BUILT, absent="one per host",
        text="GPUs that are attached; every host has one, so it is another word for `hosts`.", source="chosen: one NIC per GPU",
    )  # fmt: skip
    leaves: int | None = row(
        "leaves", Whole(low=1, high=65_536, unit="switches"), only=_LEAF_SPINE, absent="follows from hosts, radix and oversubscription",
        text="Leaf switches; given together with `spines` and `hosts_per_leaf`.", source="chosen: derived",
    )  # fmt: skip
    spines: int | None = row(
        "spines", Whole(low=1, high=65_536, unit="switches"), only=_LEAF_SPINE, absent="follows from hosts, radix and oversubscription",
        text="Spine switches; given together with `leaves` and `hosts_per_leaf`.", source="chosen: derived",
    )  # fmt: skip
    hosts_per_leaf: int | None = row(
        "hosts_per_leaf", Whole(low=1, high=1_024, unit="hosts"), only=_LEAF_SPINE, absent="as many as the oversubscription allows",
        text="Hosts on every leaf.", source="chosen: derived",
    )  # fmt: skip
    links_per_pair: int | None = row(
        "links_per_pair", Whole(low=1, high=1_024, unit="links"), only=_LEAF_SPINE,
        absent="1 where leaves and spines are given, else derived",
        text="Parallel links between a leaf and a spine.", source="chosen: derived",
    )  # fmt: skip
    oversubscription: float | None = row(
        "oversubscription", Number(above=0, high=1_000), only=_LEAF_SPINE,
        absent="1, non-blocking, unless leaves, spines and hosts_per_leaf say otherwise",
        text="Bandwidth of a leaf's host ports divided by that of its uplinks.", source="Alizadeh and Edsall, HotI 2013, doi:10.1109/HOTI.2013.23",
    )  # fmt: skip
    link_rate_bps: int = row(
        "link_rate", Measure(quantity=RATE, low=1_000_000, high=100_000_000_000_000), default="400Gbps",
        text="Rate of the links between hosts and switches.", source="IEEE 802.3bs: 400 Gb/s",
    )  # fmt: skip
    fabric_rate_bps: int | None = row(
        "fabric_rate", Measure(quantity=RATE, low=1_000_000, high=100_000_000_000_000), only=_BUILT, absent="link_rate",
        text="Rate of the links between switches.", source="chosen: one speed everywhere",
    )  # fmt: skip
    link_delay_ps: int | None = row(
        "link_delay", Measure(quantity=DURATION, low=1_000, high=1_000_000_000_000), absent="from cable_length",
        text="One-way propagation delay of every link; instead of `cable_length`.",
        source="chosen: follows from the cable; at least 1 ns, since the engines need a delay between devices",
    )  # fmt: skip
    cable_length_m: float | None = row(
        "cable_length", Measure(quantity=LENGTH), absent="20m where link_delay is not given",
        text="Length of every cable, at 5 ns per metre.", source="chosen: a row of racks; 5 ns/m is light in fibre, rounded",
    )  # fmt: skip
    host_link_delay_ps: int | None = row(
        "host_link_delay", Measure(quantity=DURATION, low=1_000, high=1_000_000_000_000), only=_BUILT, absent="link_delay",
        text="One-way propagation delay of the links between hosts and switches, where it differs.", source="chosen: one delay everywhere",
    )  # fmt: skip
    switch: DeviceChoice = row(
        "switch", DeviceKind(record=Switch, catalogue="switch"), default="plain",
        text="Switch of the hardware catalogue, with the fields that differ.", source="chosen: no vendor's",
    )  # fmt: skip
    nic: DeviceChoice = row(
        "nic", DeviceKind(record=Nic, catalogue="nic"), default="plain",
        text="NIC of the hardware catalogue, with the fields that differ.", source="chosen: no vendor's",
    )  # fmt: skip
    file: str | None = row(
        "file", FileName(endings=(".graphml", ".json")), absent="the fabric is built from topology",
        text="A fabric of the user's own, relative to the scenario's folder.", source="chosen: none",
    )  # fmt: skip
    loss: float = row(
        "loss", Number(low=0, high=1, unit="probability"), default=0, text="Probability that a packet vanishes on a link.",
        source="chosen: perfect links",
    )  # fmt: skip
    corruption: float = row(
        "corruption", Number(low=0, high=1, unit="probability"), default=0,
        text="Probability that a packet arrives with a wrong checksum.", source="chosen: perfect links",
    )  # fmt: skip
    reconvergence_delay_ps: int = row(
        "reconvergence_delay", Measure(quantity=DURATION), default="1ms",
        text="Time from a fault to the instant at which all routes know of it.", source="chosen: fast rerouting in a data centre",
    )  # fmt: skip


class TransportSection(Record):
    """How messages become packets, and who reacts to what."""

    protocol: str = row(
        "protocol",
        Choice(
            options=("rocev2",),
            later={name: f"{name} comes with a later version" for name in ("infiniband", "iwarp", "tcp", "rocev1", "uet", "srd")},
        ),
        default="rocev2", text="Packet formats and rules of the connection.", source="IBTA vol. 1, annex A17",
    )  # fmt: skip
    congestion_control: PolicyChoice = row(
        "congestion_control", PolicyKind(folder="congestion_control"), default="dcqcn", text="What sets a sender's rate and window.",
        source="Zhu et al., SIGCOMM 2015, doi:10.1145/2785956.2787484: made for RoCEv2",
    )  # fmt: skip
    load_balancing: str = row(
        "load_balancing", Choice(options=tuple(PRESETS)), default="ecmp",
        text="Preset of `path_selection` and `port_selection`, either of which may be set by itself.", source="RFC 2992: what switches do as shipped",
    )  # fmt: skip
    path_selection: PolicyChoice = row(
        "path_selection", PolicyKind(folder="path_selection"), absent="as load_balancing says",
        text="What chooses the entropy of a packet at the NIC.", source="see load_balancing",
    )  # fmt: skip
    port_selection: PolicyChoice = row(
        "port_selection", PolicyKind(folder="port_selection"), absent="as load_balancing says",
        text="What chooses among equal ports at a switch.", source="see load_balancing",
    )  # fmt: skip
    flow_control: str = row(
        "flow_control", Choice(options=("pfc", "none"), later={"credits": "credits between switches come with a later version"}),
        default="pfc", text="Whether switches and NICs pause each other or drop.", source="IEEE 802.1Qbb",
    )  # fmt: skip
    recovery: str = row(
        "recovery",
        Choice(
            options=("go-back-n", "timeout"),
            later={
                "selective-repeat": "selective repeat comes with a later version",
                "trimming": "packet trimming comes with a later version",
            },
        ),
        default="go-back-n", text="How lost packets are sent again: on a NAK and on a timeout, or on a timeout alone.",
        source="IBTA vol. 1, 9.7: reliable connections",
    )  # fmt: skip
    mtu_bytes: int = row(
        "mtu", Measure(quantity=SIZE, allowed=(256, 512, 1024, 2048, 4096)), default=4096, text="Largest payload of a packet.",
        source="IBTA vol. 1, path MTU; chosen: the largest",
    )  # fmt: skip
    ack_every: int = row(
        "ack_every", Whole(low=1, high=65_536, unit="packets"), default=1, text="Packets that one acknowledgement covers.",
        source="chosen: an ACK per packet, as most simulators and windows assume",
    )  # fmt: skip
    timeout_ps: int = row(
        "timeout", Measure(quantity=DURATION, low=1_000_000), default="67.108864ms", text="Time without progress after which a sender goes back.",
        source="IBTA vol. 1, 9.7.6.1.3: 4.096 us x 2^14, exponent 14 as verbs examples use",
    )  # fmt: skip
    retry_limit: int = row(
        "retry_limit", Whole(low=0, high=7, unit="timeouts"), default=7, text="Timeouts in a row after which a connection fails.",
        source="IBTA vol. 1: a three-bit count; chosen: the largest",
    )  # fmt: skip
    reorder_tolerant: bool = row(
        "reorder_tolerant", Flag(), default=False, text="Whether the receiver keeps packets that come out of order.",
        source="chosen: plain RoCEv2 does not",
    )  # fmt: skip
    reorder_window_packets: int | None = row(
        "reorder_window", Whole(low=1, high=2**22, unit="packets"), default=1024, only=("reorder_tolerant", ("true",)),
        text="Packets beyond the next expected one that the receiver keeps.", source="chosen: 4 MiB, above the BDP of 400 Gb/s x 50 us",
    )  # fmt: skip
    end_to_end_credits: int = row(
        "end_to_end_credits", Whole(low=0, high=32_768, unit="messages"), default=0,
        text="Receive buffers that a receiver announces in the AETH; 0 turns end-to-end credits off.",
        source="IBTA vol. 1, 9.7.7.2: codes up to 32,768; chosen: off, writes need none",
    )  # fmt: skip
    queue_pairs: int = row(
        "queue_pairs", Whole(low=1, high=256, unit="queue pairs"), default=1, text="Queue pairs of each connection, used in turn by message.",
        source="chosen: one",
    )  # fmt: skip
    data_priority: int = row(
        "data_priority", Whole(low=0, high=PRIORITIES - 1, unit="priority"), default=3, text="Priority of data packets; lossless under PFC.",
        source="chosen: 3, as vendors' RoCE guides configure",
    )  # fmt: skip
    control_priority: int = row(
        "control_priority", Whole(low=0, high=PRIORITIES - 1, unit="priority"), default=6, text="Priority of ACKs and CNPs.",
        source="mlxconfig query: CNP 802.1p 6",
    )  # fmt: skip
    interframe_bytes: int = row(
        "interframe", Measure(quantity=SIZE, high=1_000), default=20, text="Bytes on the wire between frames.",
        source="IEEE 802.3: preamble and delimiter 8, gap 12",
    )  # fmt: skip
    force: bool = row(
        "force", Flag(), default=False, text="Run a combination that is known to be wrong, such as spraying under go-back-N.",
        source="chosen: wrong combinations are refused",
    )  # fmt: skip


class Collective(Record):
    """One collective operation among GPUs."""

    operation: str = row(
        "operation",
        Choice(
            options=("all-reduce",),
            later={name: f"{name} comes with a later version" for name in ("all-gather", "reduce-scatter", "all-to-all", "broadcast")},
        ),
        default="all-reduce", text="What the GPUs do together.", source="chosen: the one that training waits for",
    )  # fmt: skip
    algorithm: str = row(
        "algorithm", Choice(options=("ring",), later={name: f"{name} comes with a later version" for name in ("tree", "halving-doubling")}),
        default="ring", text="How it is done.", source="Patarasuk and Yuan, JPDC 69(2), 2009, doi:10.1016/j.jpdc.2008.09.002",
    )  # fmt: skip
    gpus: int | None = row(
        "gpus", Whole(low=2, high=MAX_HOSTS, unit="GPUs"), absent="all hosts of the fabric", text="GPUs that take part, one per host, the first ones.",
        source="chosen: everybody",
    )  # fmt: skip
    size_bytes: int = row(
        "size", Measure(quantity=SIZE, low=1), default="256MiB", text="Bytes that each GPU brings.", source="chosen: a gradient bucket",
    )  # fmt: skip
    channels: int = row(
        "channels", Whole(low=1, high=64, unit="rings"), default=1, text="Rings that share the bytes, each with connections of its own.",
        source="chosen: one",
    )  # fmt: skip
    repeat: int = row(
        "repeat", Whole(low=1, high=1_000_000, unit="times"), default=1, text="Times that it is done, one after the other.", source="chosen: once",
    )  # fmt: skip


class Traffic(Record):
    """Flows between hosts."""

    pattern: str = row(
        "pattern", Choice(options=("permutation", "incast", "all-to-all", "poisson")), default=REQUIRED, text="Who sends to whom.",
        source="chosen: it decides what is asked, so the user does",
    )  # fmt: skip
    size_bytes: int | None = row(
        "size", Measure(quantity=SIZE, low=1), default="1MiB", only=("pattern", ("permutation", "incast", "all-to-all")),
        text="Bytes of each message.", source="chosen: 256 full packets",
    )  # fmt: skip
    senders: int | None = row(
        "senders", Whole(low=1, high=MAX_HOSTS, unit="hosts"), only=("pattern", ("incast",)), absent="every host but the receiver",
        text="Hosts that send.", source="chosen: everybody",
    )  # fmt: skip
    receiver: int | None = row(
        "receiver", Whole(low=0, high=MAX_HOSTS - 1, unit="host number"), default=0, only=("pattern", ("incast",)),
        text="Number of the host that receives, counted from 0.", source="chosen: the first",
    )  # fmt: skip
    flows: int | None = row(
        "flows", Whole(low=1, high=100_000_000, unit="flows"), default=10_000, only=("pattern", ("poisson",)), text="Flows that arrive.",
        source="chosen: 10 beyond the 99.9th percentile",
    )  # fmt: skip
    load: float | None = row(
        "load", Number(above=0, high=1), default=0.5, only=("pattern", ("poisson",)),
        text="Mean payload offered, as a share of the rate of all host links.", source="chosen: the middle of the published sweeps",
    )  # fmt: skip
    sizes: str | None = row(
        "sizes", FileName(endings=(".csv",), names=SIZE_DISTRIBUTIONS), default="web-search", only=("pattern", ("poisson",)),
        text="Distribution of flow sizes: a published one, or a file relative to the scenario's folder.",
        source="Alizadeh et al., SIGCOMM 2010, doi:10.1145/1851182.1851192: web search",
    )  # fmt: skip
    start_jitter_ps: int | None = row(
        "start_jitter", Measure(quantity=DURATION), default="0ps", only=("pattern", ("permutation", "incast", "all-to-all")),
        text="Each flow starts at a random instant up to that.", source="chosen: all at once",
    )  # fmt: skip
    repeat: int | None = row(
        "repeat", Whole(low=1, high=1_000_000, unit="messages"), default=1, only=("pattern", ("permutation", "incast", "all-to-all")),
        text="Messages of each flow, one after the other.", source="chosen: one",
    )  # fmt: skip
    priority: int | None = row(
        "priority", Whole(low=0, high=PRIORITIES - 1, unit="priority"), absent="transport.data_priority", text="Priority of the flows.",
        source="chosen: the transport's",
    )  # fmt: skip


class Recording(Record):
    """Time series that a run keeps."""

    flows: str | tuple[int, ...] = row(
        "flows", Selection(item=Whole(unit="flow number")), default="none", text="Flows whose rate and window are kept, by number from 0.",
        source="chosen: series cost time and space",
    )  # fmt: skip
    ports: str | tuple[str, ...] = row(
        "ports", Selection(item=Text(unit="port name")), default="none",
        text="Ports whose queue is kept: `leaf0` for all of a node's, `leaf0->spine1` for one.", source="chosen: series cost time and space",
    )  # fmt: skip
    every_ps: int = row(
        "every", Measure(quantity=DURATION, low=1_000), default="10us", text="Time between two samples.",
        source="chosen: about one round trip of a data centre",
    )  # fmt: skip


class EngineSection(Record):
    """How the run is computed."""

    fidelity: str = row(
        "fidelity", Choice(options=("packet", "reference"), later={"flow": "the flow engine comes with a later version"}), default="packet",
        text="The fast packet engine, or its meaning in Python, which gives the same results slowly.", source="chosen: the fast one",
    )  # fmt: skip
    seed: int = row(
        "seed", Whole(low=0, high=2**31 - 1, unit="seed"), default=1, text="Everything random follows from it.", source="chosen: any number",
    )  # fmt: skip
    until_ps: int | None = row(
        "until", Measure(quantity=DURATION, low=1), absent="until nothing is left to do", text="Simulated instant at which the run ends.",
        source="chosen: the whole job",
    )  # fmt: skip
    record: Recording = row(
        "record", Section(model=Recording), text="Time series that are kept.", source="see its keys",
    )  # fmt: skip


class Fault(Record):
    """One thing that happens to a link or a switch."""

    at_ps: int = row(
        "at", Measure(quantity=DURATION), default=REQUIRED, text="Simulated instant.", source="chosen: the user does"
    )
    link: str | None = row(
        "link",
        Text(),
        absent="the fault is a switch's",
        text="Name of a link, such as leaf3-spine1.",
        source="chosen: none",
    )
    switch: str | None = row(
        "switch",
        Text(),
        absent="the fault is a link's",
        text="Name of a switch, such as spine1.",
        source="chosen: none",
    )
    event: str = row(
        "event", Choice(options=("down", "up", "degrade")), default=REQUIRED, text="What happens; degrade is for links.",
        source="chosen: the user does",
    )  # fmt: skip
    fraction: float | None = row(
        "fraction", Number(above=0, high=1), only=("event", ("degrade",)), absent="rate is given",
        text="What is left of the link's rate.", source="chosen: none",
    )  # fmt: skip
    rate_bps: int | None = row(
        "rate", Measure(quantity=RATE, low=1_000_000), only=("event", ("degrade",)), absent="fraction is given",
        text="What is left of the link's rate.", source="chosen: none",
    )  # fmt: skip


FAULTS = SectionList(model=Fault)
