"""Lowering: what the arrays of an engine input hold, and what is refused before anything runs."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers.findings import mistakes_of, notes_of
from helpers.tiny import Message, sends, wired

from weftwork.base.clock import MS_PS, US_PS
from weftwork.base.errors import ConfigError
from weftwork.engine.headroom import headroom_bytes
from weftwork.engine.lower import TELEMETRY_BYTES, Fault, lower
from weftwork.engine.packet_input import PacketInput
from weftwork.engine.reference import simulation as reference
from weftwork.engine.requirements import check_reordering, note_pauses
from weftwork.engine.rows.fabric import HashField, Instant
from weftwork.engine.rows.job import Op
from weftwork.engine.settings import EngineSettings
from weftwork.policies.load import LoadedPolicy, load
from weftwork.spec.device import Ecn, HashFunction, Nic, Switch
from weftwork.spec.fabric import SWITCH, Fabric
from weftwork.spec.job import (
    Await,
    Compute,
    Digit,
    Group,
    Job,
    Loop,
    Milestone,
    Notify,
    Operation,
    Peer,
    Placement,
    Program,
    Receive,
    Send,
    Size,
    Wait,
)  # fmt: skip
from weftwork.spec.transport import Transport
from weftwork.topology.shapes.fat_tree import fat_tree
from weftwork.topology.shapes.leaf_spine import leaf_spine
from weftwork.workload.traffic.patterns.incast import incast
from weftwork.workload.traffic.patterns.permutation import permutation

GBPS = 10**9
TEST_POLICIES = Path(__file__).parents[2] / "policies"
KILOBYTE = Size(total_bytes=1_000)


def tree(**changes: Any) -> Fabric:
    values: dict[str, Any] = {
        "tiers": 2, "radix": 4, "host_rate_bps": 400 * GBPS, "fabric_rate_bps": 200 * GBPS, "host_delay_ps": 10_000,
        "fabric_delay_ps": 100_000, "switch": Switch(), "nic": Nic(receive_latency_ps=7),
    }  # fmt: skip
    return fat_tree(**(values | changes))


def policies(control: str | Path = "fixed-window", path: str = "ecmp", port: str = "ecmp") -> dict[str, LoadedPolicy]:
    return {
        "congestion_control": load("congestion_control", control),
        "path_selection": load("path_selection", path),
        "port_selection": load("port_selection", port),
    }


def packet_input_of(fabric: Fabric | None = None, job: Job | None = None, **changes: Any) -> PacketInput:
    fabric = tree() if fabric is None else fabric
    job = permutation(hosts=len(fabric.hosts), size_bytes=10_000, seed=1) if job is None else job
    told = {"fabric": fabric, "job": job, "transport": Transport(), **policies()} | changes
    settings = {field.name: told.pop(field.name) for field in fields(EngineSettings) if field.name in told}
    return lower(**told, settings=EngineSettings(**settings))


def one_class(*operations: Operation, ranks: int = 8, hosts: tuple[int, ...] | None = None) -> Job:
    return Job(
        name="test",
        ranks=ranks,
        programs=(Program(streams=(operations,)),),
        rank_program=np.zeros(ranks, np.int32),
        placement=Placement(host=np.array(hosts or range(ranks), np.int32), nics=np.zeros((ranks, 1), np.int32)),
        milestone_names=("start",),
    )


def refusal(**arguments: Any) -> str:
    with pytest.raises(ConfigError) as error:
        packet_input_of(**arguments)
    return str(error.value)


def test_a_port_pays_the_propagation_and_the_latency_of_the_far_end() -> None:
    fabric = tree(switch=Switch(forwarding_latency_ps=500))
    engine_input = packet_input_of(fabric)
    host = int(fabric.ports.base[fabric.node("host0")])
    assert engine_input.port_delay_ps[host] == 10_000 + 500
    assert engine_input.port_delay_ps[fabric.ports.peer[host]] == 10_000 + 7
    spine = int(fabric.ports.base[fabric.node("spine1")])
    assert engine_input.port_delay_ps[spine] == 100_000 + 500


def test_headroom_holds_what_arrives_after_xoff() -> None:
    transport = Transport()
    frame = 4096 + 62 + 16 + 20
    # both delays at the rate, a frame that crosses, one that the pause waits for, one that the sender has begun
    by_hand = 100_000 + 3 * frame + 2 * (64 + 20)
    assert headroom_bytes(rate_bps=400 * GBPS, round_trip_ps=2 * US_PS, transport=transport) == by_hand
    fabric = tree()
    engine_input = packet_input_of(fabric)
    host = int(fabric.ports.base[fabric.node("host0")])
    leaf = int(fabric.ports.peer[host])
    assert engine_input.port_headroom_bytes[host] == 0
    delays = int(engine_input.port_delay_ps[leaf] + engine_input.port_delay_ps[host])
    expected = headroom_bytes(rate_bps=400 * GBPS, round_trip_ps=delays, transport=transport)
    assert engine_input.port_headroom_bytes[leaf] == expected


@pytest.mark.parametrize("senders", [3, 7])
def test_nothing_is_lost_with_the_headroom_that_is_computed(senders: int) -> None:
    # alpha so small that nearly every packet pauses its sender, and a shared part of little more than a frame
    fabric = tree(switch=Switch(alpha=0.01, buffer_bytes=180_000, reserve_bytes=0, xon_offset_bytes=0))
    job = incast(hosts=8, size_bytes=200_000, seed=1, senders=senders)
    engine_input = packet_input_of(fabric, job, **policies("none"))
    outcome = reference.run(engine_input)
    assert outcome.complete
    assert outcome.ports["pauses_sent"].sum() > 10
    assert outcome.ports["drops"].sum() == 0
    assert (outcome.ports["max_ingress_bytes"] > 0).any()


def test_the_shared_buffer_is_what_reserves_and_headroom_leave() -> None:
    fabric = tree(switch=Switch(headroom_bytes=50_000, reserve_bytes=1_000, buffer_bytes=1_000_000))
    engine_input = packet_input_of(fabric)
    leaf = fabric.node("leaf0")
    assert list(engine_input.class_priority) == [3, 6]
    assert list(engine_input.class_lossless) == [1, 0]
    assert engine_input.control_class == 1
    assert engine_input.shared_bytes[leaf] == 1_000_000 - 4 * 2 * 1_000 - 4 * 50_000
    lossy = packet_input_of(fabric, transport=Transport(lossless_priorities=()))
    assert lossy.shared_bytes[leaf] == 1_000_000 - 4 * 2 * 1_000
    assert not lossy.port_headroom_bytes.any()


def test_every_lossless_class_has_a_headroom_of_its_own_at_every_port() -> None:
    fabric = tree(switch=Switch(headroom_bytes=50_000, reserve_bytes=1_000, buffer_bytes=1_000_000))
    around = Peer(rule="shift", group=Group(size=8), shift=1)
    sends = [Send(peer=around, size=KILOBYTE, priority=priority, channel=priority) for priority in (2, 3, 4)]
    engine_input = packet_input_of(fabric, one_class(*sends), transport=Transport(lossless_priorities=(3, 4)))
    leaf = fabric.node("leaf0")
    ports, classes, lossless = 4, 4, 2  # priorities 2, 3, 4 and that of ACKs
    assert engine_input.shared_bytes[leaf] == 1_000_000 - ports * classes * 1_000 - ports * lossless * 50_000


def test_a_buffer_that_headroom_and_reserves_exceed_is_refused_with_the_numbers() -> None:
    text = refusal(fabric=tree(switch=Switch(buffer_bytes=100_000, headroom_bytes=30_000, reserve_bytes=4_096)))
    assert "fabric.switch.buffer" in text
    assert "100,000 B" in text
    assert "120,000 B of headroom and 32,768 B of reserve" in text
    assert "flow_control: none" in text


def test_pauses_whose_refreshes_would_fill_the_link_are_refused_with_the_remedy() -> None:
    slow_host = Nic(pause_quanta=2, pcie_rate_bps=200_000_000_000)
    text = refusal(fabric=tree(switch=Switch(pause_quanta=2), nic=slow_host))
    assert (
        "fabric.switch.pause_quanta  found 2: 'plain' would send a pause again after half its length, the time of 64 B"
        in text
    )
    assert "take 84 B" in text
    assert "set at least 3, or flow_control: none" in text
    assert "fabric.nic.pause_quanta" in text
    # A NIC without a host interface never pauses; three quanta are sent in time; without flow control there are none.
    packet_input_of(tree(switch=Switch(pause_quanta=3), nic=Nic(pause_quanta=1)))
    packet_input_of(tree(switch=Switch(pause_quanta=1)), transport=Transport(lossless_priorities=()))


@pytest.mark.parametrize(("quanta", "is_told"), [(136, True), (137, False)])
def test_pauses_that_can_expire_are_told(quanta: int, is_told: bool) -> None:  # noqa: FBT001
    facts = notes_of(note_pauses, tree(switch=Switch(pause_quanta=quanta)), Transport(), 1)
    assert list(facts) == ["plain.pause_quanta"] * is_told
    assert not is_told or "137 or more are safe" in facts["plain.pause_quanta"].text


def test_devices_become_rows() -> None:
    hashing = HashFunction(algorithm="crc16-ccitt", seed=9, offset=3, fields=("dst_ip", "in_port"))
    engine_input = packet_input_of(
        tree(switch=Switch(hash=hashing, telemetry=True), nic=Nic(pcie_rate_bps=5, xoff_bytes=11))
    )
    row = engine_input.switches[0]
    assert (row["hash_algorithm"], row["hash_seed"], row["hash_offset"]) == (2, 9, 3)
    assert row["hash_fields"] == HashField.DST_IP | HashField.IN_PORT
    assert row["telemetry"] == 1
    assert row["weight"].tolist() == [16, 0, 0, 0, 0, 0, 0, 0]  # of priorities 3 and 6
    assert (engine_input.nics[0]["pcie_rate_bps"], engine_input.nics[0]["xoff_bytes"]) == (5, 11)


def test_a_loop_becomes_its_head_its_body_and_its_end() -> None:
    ring = Peer(rule="shift", group=Group(size=8, stride=1), shift=1, step=1)
    table = Peer(rule="table", table=(1, 0, -1, -1, -1, -1, -1, -1))
    engine_input = packet_input_of(
        job=one_class(
            Compute(duration_ps=5),
            Loop(
                count=3,
                body=(
                    Send(
                        peer=ring,
                        size=Size(total_bytes=9, parts=2, digits=(Digit(group=Group(size=2), step=-1),)),
                        channel=4,
                    ),
                    Wait(),
                ),
            ),
            Send(peer=table, size=KILOBYTE, priority=1),
            Receive(peer=table),
            Notify(token=2),
            Await(token=2),
            Milestone(name=0),
        )
    )
    codes = [Op(code).name for code in engine_input.ops["code"].tolist()]
    assert codes == [
        "COMPUTE",
        "LOOP",
        "SEND",
        "WAIT",
        "END",
        "SEND",
        "RECEIVE",
        "NOTIFY",
        "AWAIT",
        "MILESTONE",
        "STOP",
    ]
    assert (engine_input.ops[1]["value"], engine_input.ops[1]["target"], engine_input.ops[4]["target"]) == (3, 5, 2)
    sent = engine_input.ops[2]
    assert [sent[name].item() for name in ("stride", "size", "shift", "step", "parts", "digits", "channel")] == [
        1, 8, 1, 1, 2, 1, 4,
    ]  # fmt: skip
    assert engine_input.tables.tolist() == [1, 0, -1, -1, -1, -1, -1, -1]  # once, though two operations point there
    assert list(engine_input.class_priority) == [1, 3, 6]
    assert (engine_input.ops[5]["data_class"], engine_input.ops[2]["data_class"]) == (0, 1)
    assert engine_input.tokens == 3
    assert engine_input.has_receives


@pytest.mark.parametrize(
    ("operation", "text"),
    [
        (Send(peer=Peer(rule="shift", group=Group(size=4), shift=4), size=KILOBYTE), "rank 0 would send to itself"),
        (Send(peer=Peer(rule="rank", shift=8), size=KILOBYTE), "would be rank 8, wanted 0 to 7"),
        (
            Send(peer=Peer(rule="table", table=(1, 2)), size=KILOBYTE),
            "table of 2 entries, wanted one for each of the 8",
        ),
        (
            Send(peer=Peer(rule="table", table=(1, 0, 3, 2, 5, 5, 7, 6)), size=KILOBYTE),
            "rank 5 would send to itself",
        ),
        (Send(peer=Peer(rule="shift"), size=KILOBYTE), "wanted a group"),
        (Send(peer=Peer(rule="xor", group=Group(size=6), shift=1), size=KILOBYTE), "wanted a power of two"),
        (Send(peer=Peer(rule="xor", group=Group(size=8), shift=8), size=KILOBYTE), "wanted less than the 8 ranks"),
        (Send(peer=Peer(rule="shift", group=Group(size=8), shift=1), size=Size(total_bytes=-1)), "found -1 bytes"),
        (Send(peer=Peer(rule="shift", group=Group(size=8), shift=1), size=KILOBYTE, priority=8), "wanted 0 to 7"),
        (Receive(peer=Peer(rule="shift", group=Group(size=8), shift=1), channel=70_000), "found channel 70000"),
        (Compute(duration_ps=-1), "found -1 ps"),
        (Milestone(name=1), "wanted an index into the 1 milestone_names"),
        (Loop(count=-1, body=()), "found a count of -1"),
        (
            Loop(count=9, body=(Send(peer=Peer(rule="shift", group=Group(size=8), step=1, shift=1), size=KILOBYTE),)),
            "would send to itself",
        ),
    ],
)
def test_what_no_engine_can_run_is_refused(operation: Operation, text: str) -> None:
    assert text in refusal(job=one_class(operation))


def test_an_xor_with_a_step_reaches_every_partner() -> None:
    partner = Peer(rule="xor", group=Group(size=8), shift=1, step=1)
    outcome = reference.run(
        packet_input_of(job=one_class(Loop(count=3, body=(Send(peer=partner, size=KILOBYTE), Wait()))))
    )
    pairs = {(int(m["source"]), int(m["destination"])) for m in outcome.messages}
    assert pairs == {(rank, rank ^ bit) for rank in range(8) for bit in (1, 2, 4)}


def test_messages_inside_a_server_are_refused() -> None:
    job = one_class(
        Send(peer=Peer(rule="shift", group=Group(size=8), shift=1), size=KILOBYTE), hosts=(0, 1, 2, 3, 3, 4, 5, 6)
    )
    assert "ranks 3 and 4 are on one host" in refusal(job=job)


def test_a_job_that_the_fabric_has_no_hosts_for_is_refused() -> None:
    assert "the job needs 9 hosts, the fabric 'fat-tree, 2 tiers, radix 4' has 8" in refusal(
        job=permutation(hosts=9, size_bytes=1, seed=1)
    )


def test_a_policy_that_needs_telemetry_pays_for_it_or_is_refused() -> None:
    hpcc = policies("hpcc")
    with_telemetry = packet_input_of(tree(switch=Switch(telemetry=True)), **hpcc)
    assert with_telemetry.transport.telemetry_bytes == TELEMETRY_BYTES == 2
    text = refusal(**hpcc)
    assert "transport.congestion_control  hpcc needs in-band telemetry; switch 'plain' offers ECN and PFC" in text


def test_a_path_selection_is_told_of_the_switches_too() -> None:
    hottest = policies(path=str(TEST_POLICIES / "hottest.py"))
    found = packet_input_of(tree(switch=Switch(telemetry=True)), **hottest)
    assert found.has_telemetry
    assert found.transport.telemetry_bytes == TELEMETRY_BYTES
    assert not packet_input_of(tree(switch=Switch(telemetry=True)), **policies()).has_telemetry
    assert "transport.path_selection  hottest needs in-band telemetry; switch 'plain'" in refusal(**hottest)


@pytest.mark.parametrize(("switches", "is_refused"), [(8, False), (9, True)])
def test_a_path_of_more_switches_than_a_packet_tells_of_is_refused(switches: int, *, is_refused: bool) -> None:
    chain = [(0, 2), *((at, at + 1) for at in range(2, 1 + switches)), (1, 1 + switches)]
    fabric = wired(chain, hosts=2, switch=Switch(telemetry=True))
    job = sends(2, [Message(source=0, destination=1, size_bytes=1)])
    hpcc = policies("hpcc")
    if not is_refused:
        assert packet_input_of(fabric, job, **hpcc).has_telemetry
        return
    text = refusal(fabric=fabric, job=job, **hpcc)
    assert "transport.congestion_control  hpcc needs in-band telemetry, and a packet carries that of 8" in text
    assert "a path in 'tiny' passes 9" in text
    assert not packet_input_of(fabric, job).has_telemetry


def test_a_detour_around_a_fault_counts_as_a_path() -> None:
    """Ring of ten switches: the near way passes two, the far way nine once a link is down."""
    ring = [(2 + at, 2 + (at + 1) % 10) for at in range(10)]
    fabric = wired([(0, 2), (1, 3), *ring], hosts=2, switch=Switch(telemetry=True))
    job = sends(2, [Message(source=0, destination=1, size_bytes=1)])
    hpcc = policies("hpcc")
    assert packet_input_of(fabric, job, **hpcc).has_telemetry
    faults = (Fault(at_ps=5, event="down", link=2),)
    assert "a path around a fault in 'tiny' passes 10" in refusal(fabric=fabric, job=job, faults=faults, **hpcc)


def test_thresholds_follow_the_rate_of_each_port_unless_they_are_given() -> None:
    """Hosts at 400 Gb/s, uplinks at 200: HPCC's run.py has 100 and 400 KB for every 25 Gb/s."""
    found = packet_input_of(tree(), **policies())
    switch = found.node_kind[found.port_node] == SWITCH
    by_rate = {400 * GBPS: (1_600_000, 6_400_000), 200 * GBPS: (800_000, 3_200_000)}
    kmin, kmax, rate = (
        values.tolist() for values in (found.port_kmin_bytes, found.port_kmax_bytes, found.port_rate_bps)
    )
    assert {rate[port] for port in np.flatnonzero(switch)} == set(by_rate)
    assert all((kmin[port], kmax[port]) == by_rate[rate[port]] for port in np.flatnonzero(switch).tolist())
    assert not found.port_kmin_bytes[~switch].any()
    given = packet_input_of(tree(switch=Switch(ecn=Ecn(kmin_bytes=7))), **policies())
    assert set(given.port_kmin_bytes[switch].tolist()) == {7}
    assert given.port_kmax_bytes.tolist() == kmax
    text = refusal(fabric=tree(switch=Switch(ecn=Ecn(kmin_bytes=4_000_000))))
    assert "fabric.switch.ecn.kmin  found kmin 4,000,000 B and kmax 3,200,000 B" in text
    assert "kmax follows from the port's 200 Gb/s unless it is given too" in text


def test_a_policy_that_needs_marks_is_refused_where_none_can_be() -> None:
    small = Switch(buffer_bytes=390_000, ecn=Ecn(kmin_bytes=400_000))
    text = refusal(fabric=tree(switch=small), **policies("dcqcn"))
    assert "dcqcn needs ECN marks; switch 'plain' marks above 400,000 B, more than its buffer of 390,000 B" in text
    assert refusal(fabric=tree(switch=small), **policies("dcqcn")).startswith("scenario: 1 mistake,")
    by_rate = Switch(buffer_bytes=700_000)  # the slowest ports, of 200 Gb/s, mark above 800 KB
    assert "marks above 800,000 B" in refusal(fabric=tree(switch=by_rate), **policies("dcqcn"))


def test_spraying_under_go_back_n_is_found() -> None:
    spray = load("path_selection", "spray")
    wrong = mistakes_of(check_reordering, Transport(), (spray, load("port_selection", "ecmp")))
    assert [mistake.path for mistake in wrong] == ["transport.path_selection"]
    assert mistakes_of(check_reordering, Transport(reorder_tolerant=True), (spray,)) == []


def instants_of(faults: list[Fault], fabric: Fabric, delay_ps: int = MS_PS) -> list[tuple[int, str, int]]:
    engine_input = packet_input_of(fabric, faults=faults, reconvergence_delay_ps=delay_ps)
    rows = engine_input.instants.tolist()
    return [(at, Instant(code).name, value if code >= Instant.RATE else port) for at, code, port, value in rows]


def test_a_link_goes_down_and_comes_up_and_routes_follow() -> None:
    fabric = tree()
    link = fabric.link("leaf1-spine0")
    port = int(np.flatnonzero(fabric.ports.link == link)[0])
    faults = [Fault(at_ps=50, event="up", link=link), Fault(at_ps=20, event="down", link=link)]
    assert instants_of(faults, fabric, delay_ps=100) == [
        (20, "LINK_DOWN", port), (50, "LINK_UP", port), (120, "ROUTES", 1), (150, "ROUTES", 0),
    ]  # fmt: skip
    engine_input = packet_input_of(fabric, faults=faults)
    leaf, far = fabric.node("leaf1"), int(engine_input.attachment[fabric.ports.base[fabric.node("host0")]])
    before, after = (
        table.group_ports[slice(*table.group_ptr[[g, g + 1]])]
        for table in engine_input.routes
        for g in [int(table.group_of[leaf, far])]
    )
    assert len(before) == 2
    assert len(after) == 1
    assert port not in after


def test_a_link_works_only_while_it_and_both_ends_do() -> None:
    fabric = tree()
    spine, link = fabric.node("spine0"), fabric.link("leaf1-spine0")
    mine = int(np.flatnonzero(fabric.ports.link == link)[0])
    first_ports = sorted(
        int(np.flatnonzero(fabric.ports.link == index)[0])
        for index, ends in enumerate(fabric.links[["a", "b"]].tolist())
        if spine in ends
    )
    faults = [
        Fault(at_ps=1, event="down", link=link),
        Fault(at_ps=2, event="down", switch=spine),
        Fault(at_ps=3, event="up", link=link),
        Fault(at_ps=4, event="up", switch=spine),
    ]
    found = [row for row in instants_of(faults, fabric) if row[1] != "ROUTES"]
    others = [port for port in first_ports if port != mine]
    assert found == [
        (1, "LINK_DOWN", mine),
        *((2, "LINK_DOWN", port) for port in others),
        *((4, "LINK_UP", port) for port in first_ports),
    ]


def test_a_degraded_link_keeps_its_routes() -> None:
    fabric = tree()
    assert instants_of([Fault(at_ps=5, event="degrade", link=3, rate_bps=GBPS)], fabric) == [(5, "RATE", GBPS)]


@pytest.mark.parametrize(
    ("fault", "text"),
    [
        (Fault(at_ps=1, event="down"), "one of a link, a switch and a NIC port"),
        (Fault(at_ps=-1, event="down", link=0), "found -1 ps"),
        (Fault(at_ps=1, event="down", link=999), "found link 999"),
        (Fault(at_ps=1, event="down", switch=0), "'host0' is a host, wanted a switch"),
        (Fault(at_ps=1, event="degrade", switch=9), "only a link can be degraded"),
        (Fault(at_ps=1, event="degrade", link=0, rate_bps=401 * GBPS), "at most the link's own rate"),
    ],
)
def test_faults_that_cannot_happen_are_refused(fault: Fault, text: str) -> None:
    assert text in refusal(faults=[fault])


def test_all_reasons_come_at_once() -> None:
    text = refusal(
        fabric=tree(switch=Switch(buffer_bytes=10)),
        job=one_class(Compute(duration_ps=-1)),
        faults=[Fault(at_ps=1, event="down")],
        **policies("hpcc"),
    )
    assert text.startswith("scenario: 4 mistakes, nothing was run")  # telemetry, job, fault, buffer


def test_a_large_plan_is_lowered_fast() -> None:
    fabric = leaf_spine(
        leaves=128, spines=64, hosts_per_leaf=64, host_rate_bps=400 * GBPS, fabric_rate_bps=400 * GBPS,
        host_delay_ps=US_PS, fabric_delay_ps=US_PS, switch=Switch(), nic=Nic(),
    )  # fmt: skip
    engine_input = packet_input_of(fabric)
    assert len(engine_input.rank_ports) == 8_192
    assert len(engine_input.ops) == 3
    assert np.count_nonzero(engine_input.node_kind == SWITCH) == 192
