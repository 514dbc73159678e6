"""Lines keep packets apart and in order, wait for room, hear of ends, and are for processes of one user."""

from __future__ import annotations

import os
import resource
import select
import socket
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from weftwork.rdma.drivers import lines
from weftwork.rdma.drivers.lines import ProcessLines, line_to, open_door

NAME = f"\0weftwork-rdma-test/{os.getpid()}/door"
NOBODY = f"\0weftwork-rdma-test/{os.getpid()}/nobody"
BIG = 60_000  # bytes: a train
MANY = 3_000  # packets of a train, more than a buffer of the system holds
ROUNDS = range(MANY)  # in which everything that waits has gone


class End:
    """A process: its doors, and its lines."""

    def __init__(self, name: str | None = None) -> None:
        self.begin(name)

    def begin(self, name: str | None = None) -> None:
        """Begin as a new process."""
        self.events = select.epoll()
        self.counters: Counter[str] = Counter()
        self.lines = ProcessLines(self.events, self.counters)
        self.door: socket.socket | None = None
        if name is not None:
            self.door = open_door(name)
            assert self.door is not None
            self.lines.add_door(self.door)

    def look(self) -> bool:
        found = self.events.poll(0)
        for descriptor, events in found:
            self.lines.note(descriptor, events)
        return bool(found)

    def take(self) -> list[bytes]:
        taken = []
        buffer = bytearray(1 << 16)
        while self.look() or self.lines.has_arrivals:
            while size_bytes := self.lines.receive_into(buffer):
                taken.append(bytes(buffer[:size_bytes]))
        return taken

    def close(self) -> None:
        self.lines.close()
        if self.door is not None:
            self.door.close()
        self.events.close()


@pytest.fixture
def ends(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[End, End]]:
    """Two processes, whose lines have the buffer that the system gives: a larger one takes longer to fill."""
    monkeypatch.setattr(lines, "enlarge", lambda *_, **__: None)
    pair = End(NAME), End()
    yield pair
    for end in pair:
        end.close()


def numbered(count: int, size_bytes: int = 16) -> list[bytes]:
    return [b"%d" % number + bytes(size_bytes) for number in range(count)]


def test_packets_stay_apart_and_in_order(ends: tuple[End, End]) -> None:
    here, there = ends
    for packet in numbered(20):
        assert there.lines.put(NAME, (packet[:4], packet[4:]))
    assert here.take() == numbered(20)
    assert not here.counters
    assert not there.counters


def test_what_has_no_room_comes_later_and_in_order(ends: tuple[End, End], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lines, "_MOST_WAITING_BYTES", 10 * BIG)
    here, there = ends
    sent = 0
    while sent < MANY and not there.counters["no_room"]:
        assert there.lines.put(NAME, (b"%d" % sent + bytes(BIG),))
        sent += 1
    assert there.counters["no_room"] == 1
    taken = []
    for _ in ROUNDS:
        taken += here.take()
        if not there.look():
            break
    assert taken == numbered(sent - 1, BIG)
    assert not there.look()  # nobody is woken while nothing waits


def test_what_comes_behind_waiting_packets_does_not_overtake_them(ends: tuple[End, End]) -> None:
    here, there = ends
    for sent in ROUNDS:
        if any(way.waiting for way in there.lines._ways.values()):
            break
        assert there.lines.put(NAME, (b"%d" % sent + bytes(BIG),))
    taken = here.take()
    assert taken
    there.lines.put(NAME, (b"the last",))  # there is room now
    for _ in ROUNDS:
        if not there.look():
            break
        taken += here.take()
    assert [int(packet.rstrip(b"\0")) for packet in taken[:-1]] == list(range(sent))
    assert taken[-1] == b"the last"


def test_a_process_that_has_ended_takes_nothing_and_its_successor_does(ends: tuple[End, End]) -> None:
    here, there = ends
    assert not there.lines.put(NOBODY, (b"x",))
    assert there.lines.put(NAME, (b"x",))
    here.close()
    assert not there.lines.put(NAME, (b"y",))
    assert not there.counters
    here.begin(NAME)
    assert there.lines.put(NAME, (b"z",))
    assert here.take() == [b"z"]


def test_a_name_that_led_nowhere_rests(ends: tuple[End, End], monkeypatch: pytest.MonkeyPatch) -> None:
    here, there = ends
    now_s = [100.0]
    monkeypatch.setattr("time.monotonic", lambda: now_s[0])
    assert not there.lines.put(NOBODY, (b"x",))
    late = End(NOBODY)
    try:
        assert not there.lines.put(NOBODY, (b"x",), tries_again=False)
        now_s[0] += 1.1
        assert there.lines.put(NOBODY, (b"y",), tries_again=False)
        assert late.take() == [b"y"]
    finally:
        late.close()
    assert not here.counters


def test_the_end_of_a_process_is_noted_and_what_waits_is_counted(ends: tuple[End, End]) -> None:
    here, there = ends
    for _ in ROUNDS:
        if any(len(way.waiting) > 2 for way in there.lines._ways.values()):
            break
        there.lines.put(NAME, (bytes(BIG),))
    assert here.look()  # the line is taken
    here.close()
    assert there.look()
    assert there.counters == {"not_handed_on": 3}
    assert not there.look()
    here.begin(NAME)


def test_what_was_sent_before_the_end_arrives(ends: tuple[End, End]) -> None:
    here, there = ends
    there.lines.put(NAME, (b"the last message",))
    there.lines.close()
    assert here.take() == [b"the last message"]
    assert not here.lines._incoming


def test_a_line_that_does_not_stay_is_closed(ends: tuple[End, End]) -> None:
    here, there = ends
    for _ in range(3):
        assert there.lines.put(NAME, (b"ask",), stays=False)
    assert not there.lines._ways
    assert here.take() == [b"ask"] * 3
    assert not here.lines._incoming


def test_lines_are_bounded(ends: tuple[End, End], monkeypatch: pytest.MonkeyPatch) -> None:
    here, there = ends
    monkeypatch.setattr(lines, "_MOST_KEPT", 3)
    others = [End(f"{NAME}/{number}") for number in range(5)]
    for number, other in enumerate(others):
        assert there.lines.put(f"{NAME}/{number}", (b"x",))
        assert len(there.lines._ways) <= 3
        assert other.take() == [b"x"]
        other.close()
    assert not here.counters


def test_a_process_without_descriptors_closes_what_it_cannot_take(ends: tuple[End, End]) -> None:
    """Its door stays quiet, and the sender hears at once that it has to go another way."""
    here, there = ends
    assert there.lines.put(NAME, (b"x",))
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    open_descriptors = [int(link.name) for link in Path("/proc/self/fd").iterdir()]
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(open_descriptors) + 1, before[1]))
    kept = []
    try:
        while True:
            try:
                kept.append(os.dup(0))
            except OSError:
                break
        assert here.look()
        assert not here.look()
    finally:
        for descriptor in kept:
            os.close(descriptor)
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
    assert here.counters == {"no_descriptor": 1}
    assert here.lines._spare is not None
    assert there.look()
    assert not there.lines.put(NAME, (b"y",), tries_again=False)
    assert there.lines.put(NAME, (b"y",))
    assert here.take() == [b"y"]


@pytest.mark.usefixtures("ends")
def test_a_name_that_somebody_has_is_not_to_be_had() -> None:
    assert open_door(NAME) is None
    with pytest.raises(OSError, match="too long"):
        open_door("\0" + "x" * 200)
    assert line_to("\0" + "x" * 200) is None
    line = line_to(NAME)
    assert line is not None
    line.close()


def test_a_stranger_is_turned_away(ends: tuple[End, End], monkeypatch: pytest.MonkeyPatch) -> None:
    here, there = ends
    monkeypatch.setattr(lines, "user_of", lambda line: os.getuid() + (line.getsockname() == NAME.encode()))
    assert there.lines.put(NAME, (b"x",))
    assert here.take() == []
    assert here.counters == {"stranger": 1}
    assert there.look()  # that it is closed


def test_the_door_of_a_stranger_is_passed_over(ends: tuple[End, End], monkeypatch: pytest.MonkeyPatch) -> None:
    here, there = ends
    monkeypatch.setattr(lines, "user_of", lambda _: os.getuid() + 1)
    assert not there.lines.put(NAME, (b"x",))
    monkeypatch.undo()
    assert here.take() == []
    assert here.counters == {}
