"""A deadlock of priority flow control ends the run in both engines, which tell its cycle port by port."""

from pathlib import Path

import pytest
from helpers.both import both
from helpers.tiny import BYTE_PS, Message, packet_input_of, sends, wired

from weftwork.base.clock import MS_PS, NEVER_PS, US_PS
from weftwork.engine.instants import Fault
from weftwork.engine.outcome import Outcome
from weftwork.engine.packet_input import LEAST_WATCH_PS, PAUSE_UNIT_BYTES, PacketInput
from weftwork.engine.rows.waits import WAIT_KINDS, WAIT_STATES
from weftwork.spec.device import Switch
from weftwork.spec.transport import Transport

pytestmark = pytest.mark.sanitize

BIG = 3_000_000
SWITCH = Switch(forwarding_latency_ps=0, buffer_bytes=300_000, headroom_bytes=30_000)


def ring(
    switches: int,
    hops: int,
    *,
    timeout_ps: int = MS_PS,
    faults: tuple[Fault, ...] = (),
    until_ps: int = NEVER_PS,
    control: str = "none",
    extra: tuple[Message, ...] = (),
    **transport: object,
) -> PacketInput:
    """Host i at switch i of a ring sends a long message to the host so many switches further."""
    links = [(host, switches + host) for host in range(switches)]
    links += [(switches + i, switches + (i + 1) % switches) for i in range(switches)]
    messages = [Message(source=i, destination=(i + hops) % switches, size_bytes=BIG) for i in range(switches)]
    return packet_input_of(
        wired(links, hosts=switches, switch=SWITCH),
        sends(switches, [*messages, *extra]),
        transport=Transport.model_validate({"retransmission_timeout_ps": timeout_ps} | transport),
        faults=faults,
        until_ps=until_ps,
        congestion_control=control,
    )


def nodes_of(engine_input: PacketInput, outcome: Outcome) -> list[tuple[int, int]]:
    """From which node to which each port of the cycle sends."""
    ports = outcome.deadlock["port"]
    return list(
        zip(engine_input.port_node[ports].tolist(),
            engine_input.port_node[engine_input.port_peer[ports]].tolist(), strict=True)
    )  # fmt: skip


@pytest.mark.parametrize(
    ("switches", "hops", "timeout_ps"), [(8, 3, MS_PS), (5, 2, MS_PS), (8, 3, 50 * US_PS), (8, 3, 3 * US_PS)]
)
def test_a_ring_ends_with_its_cycle_in_order(switches: int, hops: int, timeout_ps: int) -> None:
    engine_input = ring(switches, hops, timeout_ps=timeout_ps)
    outcome = both(engine_input)
    around = [(switches + i, switches + (i + 1) % switches) for i in range(switches)]
    assert nodes_of(engine_input, outcome) == around
    assert (outcome.deadlock["waiting_bytes"] > 0).all()
    assert (outcome.deadlock["held_bytes"] > SWITCH.reserve_bytes).all()
    assert outcome.complete
    assert (outcome.messages["delivered_at_ps"] < 0).all()


def test_everybody_who_waits_is_told() -> None:
    outcome = both(ring(8, 3))
    waits = outcome.waits
    assert waits["rank"].tolist() == list(range(8))
    assert waits["peer"].tolist() == [(rank + 3) % 8 for rank in range(8)]
    assert {WAIT_KINDS[kind] for kind in waits["kind"].tolist()} == {"send"}
    assert {WAIT_STATES[state] for state in waits["state"].tolist()} == {"under way"}
    assert set(waits["size_bytes"].tolist()) == {BIG}
    assert waits["source_port"].tolist() == list(range(8))


def test_queue_pairs_that_give_up_leave_the_deadlock_as_it_is() -> None:
    # All give up within the first watch; what the switches hold still waits in a circle.
    outcome = both(ring(8, 3, timeout_ps=US_PS, retry_limit=1))
    assert outcome.counters["queue_pair_errors"] == 8
    assert len(outcome.deadlock) == 8
    assert {WAIT_STATES[state] for state in outcome.waits["state"].tolist()} == {"failed"}


def test_timers_of_a_policy_do_not_keep_a_deadlock_going() -> None:
    ticking = str(Path(__file__).parents[2] / "policies" / "ticking.py")  # its timer fires for ever
    assert len(both(ring(8, 3, control=ticking)).deadlock) == 8


def test_a_fault_to_come_may_break_it() -> None:
    # The link between the first two switches dies: what waits there is dropped, and what waited for it goes on.
    cut = Fault(at_ps=3 * MS_PS, event="down", link=8)
    outcome = both(ring(8, 3, faults=(cut,), retry_limit=7))
    assert outcome.counters["drop_link_down"] > 0
    assert len(outcome.deadlock) == 0
    assert (outcome.messages["delivered_at_ps"] > 3 * MS_PS).any()


def test_what_a_rank_will_send_later_is_waited_for() -> None:
    # The circle has closed long before 2 ms; who sends then might have gone by a way around it.
    late = Message(source=0, destination=7, size_bytes=4096, at_ps=2 * MS_PS, channel=1)
    alone, beside = both(ring(8, 3)), both(ring(8, 3, extra=(late,)))
    assert len(beside.deadlock) == 8
    assert beside.ports["pauses_sent"].sum() > 5 * alone.ports["pauses_sent"].sum()
    assert len(beside.waits) == len(alone.waits) + 1


def test_a_run_that_is_cut_before_does_not_claim_a_deadlock() -> None:
    watch_ps = ring(8, 3).watch_ps
    assert len(both(ring(8, 3, until_ps=watch_ps)).deadlock) == 0
    assert len(both(ring(8, 3, until_ps=2 * watch_ps)).deadlock) == 0  # it would look at that very instant
    assert len(both(ring(8, 3, until_ps=2 * watch_ps + 1)).deadlock) == 8


def test_a_neighbour_alone_makes_no_circle() -> None:
    outcome = both(ring(8, 1))
    assert (outcome.messages["acked_at_ps"] > 0).all()
    assert len(outcome.deadlock) == 0
    assert len(outcome.waits) == 0


def test_a_watch_is_no_shorter_than_a_pause() -> None:
    # At 1/10 of the rate a pause takes 0.84 ms, and whoever looks must have seen a whole one.
    slow = packet_input_of(
        wired([(0, 2), (1, 2)], hosts=2, switch=SWITCH, rates_bps=[40_000_000_000] * 2), sends(2, [])
    )
    quanta = SWITCH.pause_quanta
    assert slow.watch_ps == max(LEAST_WATCH_PS, quanta * PAUSE_UNIT_BYTES * BYTE_PS * 10)
