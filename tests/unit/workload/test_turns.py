"""Queue pairs in turn: an unrolled program sends what it sent before, to the same peers, dealt one by one."""

from __future__ import annotations

import numpy as np
import pytest
from helpers.workload_turns import GROUP, expanded, turned

from weftwork.base.errors import ConfigError
from weftwork.spec.job import Loop, Peer, Program, Send, Size
from weftwork.workload.turns import in_turn


def test_each_peer_of_a_loop_gets_its_messages_dealt_from_the_first_on() -> None:
    """An all-to-all sends two messages to each peer; the second time round they go on where they were.

    One more message, to the same peer in each pass, has the loop unrolled.
    """
    send = Send(peer=Peer(rule="shift", group=GROUP, shift=1, step=1), size=Size(total_bytes=1))
    fixed = Send(peer=Peer(rule="rank", shift=0), size=Size(total_bytes=1), channel=1)
    stream = (Loop(count=2, body=(Loop(count=3, body=(send, send, fixed)),)),)
    found = [one.channel for one, _ in expanded(turned(stream, 3)) if isinstance(one, Send)]
    assert found == [0, 1, 3, 0, 1, 4, 0, 1, 5, 2, 0, 3, 2, 0, 4, 2, 0, 5]


def test_what_an_nvlink_switch_is_sent_keeps_to_one_connection() -> None:
    send = Send(peer=Peer(rule="rank", shift=2), size=Size(total_bytes=1))
    other = Send(peer=Peer(rule="rank", shift=1), size=Size(total_bytes=1))
    programs = (Program(streams=((Loop(count=4, body=(send, other)),),)), Program(streams=((),)))
    is_switch = np.array([False, False, True])
    (program, _) = in_turn(programs, np.array([0, 0, 1], np.int32), is_switch, 2)
    channels = [(one.peer.shift, one.channel) for one, _ in expanded(program.streams[0]) if isinstance(one, Send)]
    assert channels == [(2, 0), (1, 0), (2, 0), (1, 1)] * 2


def test_a_stream_that_grows_too_long_is_refused() -> None:
    send = Send(peer=Peer(rule="rank", shift=1), size=Size(total_bytes=1))
    with pytest.raises(ConfigError, match=r"more than 65,536 operations; wanted fewer queue pairs"):
        turned((Loop(count=1_000, body=(send,) * 257),), 256)
