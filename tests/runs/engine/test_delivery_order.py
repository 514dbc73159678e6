"""In which order messages are delivered, and which RECEIVE each completes, worked out on paper.

Three messages of two packets go over one short wire, and the second packet is lost. The packet behind it tells so while
the next one leaves: on the wire there are 0, 1 (lost), 2, 3, 1 again, 4, 5. The second message is whole before the
first.
"""

from __future__ import annotations

import numpy as np
import pytest
from helpers.both import both
from helpers.tiny import Message as Sent
from helpers.tiny import packet_input_of, sends, wired

from weftwork.base.clock import US_PS
from weftwork.spec.transport import Transport

NEAR_PS = 10_000  # a wire so short that one packet is on it


ORDERS = ("connection", "message", "none")


pytestmark = pytest.mark.sanitize


@pytest.mark.parametrize("recovery", ["go-back-n", "timeout"])
def test_many_messages_on_two_ways_are_each_delivered_when_they_are_whole(recovery: str) -> None:
    # The wire does not know the order: in that of the connection a message waits for the latest of those before it.
    links = [(0, 2), (1, 3), (2, 4), (4, 3), (2, 5), (5, 3)]
    fabric = wired(links, hosts=2, delays_ps=[NEAR_PS, NEAR_PS, NEAR_PS, NEAR_PS, 3 * US_PS, NEAR_PS])
    job = sends(2, [Sent(source=0, destination=1, size_bytes=(1 + number % 3) * 3_000) for number in range(200)])
    delivered = {}
    for ordering in ORDERS:
        transport = Transport.model_validate({"ordering": ordering, "recovery": recovery, "reorder_tolerant": True})
        outcome = both(packet_input_of(fabric, job, transport=transport, path_selection="spray"))
        assert outcome.counters["retransmissions"] == outcome.counters["out_of_order_discards"] == 0
        delivered[ordering] = outcome.messages["delivered_at_ps"]
    assert np.count_nonzero(np.diff(delivered["message"]) < 0) > 20
    assert delivered["none"].tolist() == delivered["message"].tolist()
    assert delivered["connection"].tolist() == np.maximum.accumulate(delivered["message"]).tolist()
