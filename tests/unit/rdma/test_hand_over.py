"""What a door has no room for waits in order, and what is for a process that has ended is told as such."""

from __future__ import annotations

import select
import socket
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from weftwork.rdma.drivers import hand_over
from weftwork.rdma.drivers.hand_over import HandOver

NAME = "\0weftwork-rdma-test/door"
ROOM = int(Path("/proc/sys/net/unix/max_dgram_qlen").read_text(encoding="ascii"))  # and one, see unix_recvq_full
MANY = 3 * ROOM + 7


class Ends:
    """A door, the way to it, and the events of the way."""

    def __init__(self) -> None:
        self.door = self.open()
        self.events = select.epoll()
        self.counters: Counter[str] = Counter()
        self.way = HandOver(self.events, self.counters)

    def open(self) -> socket.socket:
        door = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK)
        door.bind(NAME)
        return door

    def take(self) -> list[bytes]:
        taken = []
        while True:
            try:
                taken.append(self.door.recv(100))
            except BlockingIOError:
                return taken

    def close(self) -> None:
        self.way.close()
        self.events.close()
        self.door.close()


@pytest.fixture
def ends() -> Iterator[Ends]:
    ends = Ends()
    yield ends
    ends.close()


def numbered(count: int, first: int = 0) -> list[bytes]:
    return [b"datagram %d" % number for number in range(first, first + count)]


def test_what_has_no_room_comes_later_and_in_order(ends: Ends) -> None:
    for datagram in numbered(MANY):
        assert ends.way.put(NAME, (datagram[:4], datagram[4:]))
    assert ends.events.poll(0) == []  # nobody is woken while the door is full
    taken = ends.take()
    assert 0 < len(taken) < MANY
    while (ready := ends.events.poll(0)) and len(taken) < MANY:
        assert [what for _, what in ready] == [select.EPOLLOUT]
        ends.way.flush()
        taken += ends.take()
    assert taken == numbered(MANY)
    assert ends.events.poll(0) == []
    assert ends.counters == {"handed_on": MANY}


def test_what_comes_behind_waiting_datagrams_does_not_overtake_them(ends: Ends) -> None:
    for datagram in numbered(MANY):
        ends.way.put(NAME, (datagram,))
    taken = ends.take()
    ends.way.put(NAME, (b"the last",))  # there is room now
    while len(taken) <= MANY:
        ends.way.flush()
        taken += ends.take()
    assert taken == [*numbered(MANY), b"the last"]


def test_a_process_that_has_ended_takes_nothing_and_its_successor_does(ends: Ends) -> None:
    assert not ends.way.put("\0weftwork-rdma-test/nobody", (b"x",))
    assert ends.way.put(NAME, (b"x",))
    ends.door.close()
    assert not ends.way.put(NAME, (b"x",))
    assert ends.counters == {"handed_on": 1, "not_handed_on": 2}
    ends.door = ends.open()
    assert ends.way.put(NAME, (b"y",))
    assert ends.take() == [b"y"]


def test_a_successor_takes_the_first_datagram_that_is_for_its_name(ends: Ends) -> None:
    """The way still leads to the process that has ended, and nothing was sent in between."""
    assert ends.way.put(NAME, (b"x",))
    ends.door.close()
    ends.door = ends.open()
    assert ends.way.put(NAME, (b"y",))
    assert ends.take() == [b"y"]
    assert ends.counters == {"handed_on": 2}


def test_what_waits_for_a_process_that_ends_is_counted(ends: Ends) -> None:
    for datagram in numbered(MANY):
        ends.way.put(NAME, (datagram,))
    handed_on = ends.counters["handed_on"]
    ends.door.close()
    ends.way.flush()
    assert ends.counters == {"handed_on": handed_on, "not_handed_on": MANY - handed_on}
    assert ends.events.poll(0) == []


def test_a_door_that_nobody_reads_costs_bounded_memory(ends: Ends, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hand_over, "_MOST_WAITING", 5)
    for datagram in numbered(MANY):
        assert ends.way.put(NAME, (datagram,))  # lost as on a wire: not the affair of this process
    handed_on = ends.counters["handed_on"]
    assert ends.counters["no_room"] == MANY - handed_on - 5
    taken = ends.take()
    ends.way.flush()
    assert taken + ends.take() == numbered(handed_on + 5)
