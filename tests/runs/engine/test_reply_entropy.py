"""ACKs and NAKs take one path, that of their queue pair's entropy, or as many as the packets that they answer."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from helpers.both import both
from helpers.tiny import Message, packet_input_of, sends, wired

from weftwork.base.clock import SECOND_PS, US_PS
from weftwork.engine.instants import Fault
from weftwork.engine.outcome import Outcome
from weftwork.spec.transport import Transport

UPLINKS = 8
PACKETS = 200
LEAVES = (2, 3)
FIRST_SPINE = 4
LINKS = [(0, 2), (1, 3), *((leaf, FIRST_SPINE + spine) for spine in range(UPLINKS) for leaf in LEAVES)]
FABRIC = wired(LINKS, hosts=2)

pytestmark = pytest.mark.sanitize


def sprayed(
    reply_entropy: str | None, path_selection: str = "spray", *, faults: Sequence[Fault] = (), **changes: object
) -> Outcome:
    """One message from a host to another, by two leaves and eight spines."""
    transport = Transport.model_validate({"reorder_tolerant": True, "reply_entropy": reply_entropy} | changes)
    job = sends(2, [Message(source=0, destination=1, size_bytes=PACKETS * 4096)])
    return both(
        packet_input_of(
            FABRIC,
            job,
            transport=transport,
            path_selection=path_selection,
            faults=faults,
            reconvergence_delay_ps=SECOND_PS,
        )
    )


def ways_back(outcome: Outcome) -> int:
    """How many uplinks of the receiver's leaf, which sends replies alone, have sent anything."""
    ports = FABRIC.ports
    ends = zip(ports.node, ports.node[ports.peer], strict=True)
    ups = [port for port, (node, peer) in enumerate(ends) if node == LEAVES[1] and peer > LEAVES[1]]
    assert len(ups) == UPLINKS
    return int((outcome.ports["frames"][ups] > 0).sum())


def test_replies_with_the_entropy_of_their_queue_pair_take_one_way() -> None:
    assert ways_back(sprayed("own")) == 1


def test_replies_with_the_entropy_of_what_they_answer_take_every_way() -> None:
    assert ways_back(sprayed("echoed")) == UPLINKS


def test_the_path_selection_says_which_one_unless_the_transport_does() -> None:
    assert sprayed(None).digest() == sprayed("echoed").digest() != sprayed("own").digest()


def test_a_queue_pair_with_one_entropy_has_no_other() -> None:
    digests = {sprayed(replies, "ecmp").digest() for replies in (None, "own", "echoed")}
    assert len(digests) == 1


@pytest.mark.parametrize(("reply_entropy", "given_up"), [("own", 1), ("echoed", 0)])
def test_a_dead_link_stops_a_sender_whose_replies_all_take_it(reply_entropy: str, given_up: int) -> None:
    """Each uplink of the sender's leaf dies in turn: data avoid it at once, and replies learn of it from routing."""
    acked_at_ps = []
    for spine in range(UPLINKS):
        faults = [Fault(at_ps=0, event="down", link=LINKS.index((LEAVES[0], FIRST_SPINE + spine)))]
        outcome = sprayed(
            reply_entropy, faults=faults, recovery="selective-repeat", retransmission_timeout_ps=20 * US_PS,
            lossless_priorities=(),
        )  # fmt: skip
        acked_at_ps.append(int(outcome.messages["acked_at_ps"][0]))
    assert sum(at_ps < 0 for at_ps in acked_at_ps) == given_up
