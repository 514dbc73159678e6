"""Laws of controls whose receivers grant credit, over random incasts that lose packets, cuts, credits and requests.

Everything arrives; nobody hears of more credit than was granted, or sends more than credit and first window allow.
"""

from __future__ import annotations

from helpers.credits import MTU_BYTES, plan, star
from helpers.tiny import Message
from hypothesis import given
from hypothesis import strategies as st

from weftwork.base.clock import MS_PS, US_PS
from weftwork.engine.reference.simulation import Simulation

WINDOW = 10  # packets; small, so that most go by credit
WINDOWS = {
    "rccc": {"window_bytes": WINDOW * MTU_BYTES, "idle_bdps": 0.0},
    "ndp": {"initial_packets": WINDOW},
    "eqds": {"window_packets": WINDOW},
}


@given(
    control=st.sampled_from(["rccc", "ndp", "eqds"]),
    packets=st.lists(st.integers(1, 60), min_size=1, max_size=4),
    starts_us=st.lists(st.integers(0, 40), min_size=4, max_size=4),
    queue_packets=st.sampled_from([3, 8, 36]),
    loss=st.sampled_from([0.0, 0.0, 0.01, 0.05, 0.2]),
)
def test_all_arrives_and_nothing_goes_without_credit(
    control: str, packets: list[int], starts_us: list[int], queue_packets: int, loss: float
) -> None:
    flows = len(packets)
    messages = [
        Message(source=source, destination=flows, size_bytes=count * MTU_BYTES, at_ps=starts_us[source] * US_PS)
        for source, count in enumerate(packets)
    ]
    fabric = star(flows + 1, queue_bytes=queue_packets * (MTU_BYTES + 64), loss=loss)
    simulation = Simulation(plan(fabric, messages, control, until_ps=2_000 * MS_PS, **WINDOWS[control]))
    simulation.run()
    outcome = simulation.outcome()
    assert (outcome.messages["acked_at_ps"] >= 0).all()
    allowed_packets = 0.0
    for pair in simulation.queue_pairs.values():
        assert pair.sender is not None
        assert pair.receiver is not None
        sender, receiver = pair.sender.state, pair.receiver.state
        if control == "ndp":
            allowed_packets += sender.unpulled + receiver.credit_bytes / MTU_BYTES
            continue
        assert sender.granted_bytes <= receiver.credit_bytes
        advance_packets = 0 if control == "rccc" else WINDOW + 1  # of idle queue pairs, with the turn that reaches it
        assert receiver.credit_bytes <= receiver.target_bytes + advance_packets * MTU_BYTES + 4_096
        allowed_packets += WINDOW + 1 + receiver.credit_bytes / MTU_BYTES  # a packet may overdraw it
    unasked = outcome.counters["requests_sent"] // 3
    assert outcome.counters["data_sent"] <= allowed_packets + unasked
