"""What selective repeat knows of its packets, alone."""

from __future__ import annotations

import random

from weftwork.engine.reference.selective_repeat import Scoreboard

SENT = 8


def keeps(board: Scoreboard, packet: int, *, una: int = 2, threshold: int = 0) -> None:
    board.keeps(packet, una=una, threshold_packets=threshold)


def test_at_first_nothing_is_lost() -> None:
    assert Scoreboard().first_lost is None


def test_what_a_kept_packet_has_overtaken_by_more_than_the_threshold_is_lost() -> None:
    for threshold, wanted in ((0, {2, 3, 4, 5}), (1, {2, 3, 4}), (4, set()), (100, set())):
        board = Scoreboard()
        keeps(board, 6, threshold=threshold)
        assert board.lost == wanted


def test_what_is_kept_is_not_lost_also_if_that_comes_late() -> None:
    board = Scoreboard()
    for packet in (5, 8, 3):
        keeps(board, packet)
    assert board.lost == {2, 4, 6, 7}
    assert board.away == {2, 3, 4, 5, 6, 7, 8}


def test_what_was_sent_again_is_lost_again_by_a_packet_that_was_sent_after_it() -> None:
    board = Scoreboard()
    keeps(board, 4)
    board.sends_again(2, nxt=SENT)
    board.sends_again(3, nxt=SENT + 1)
    keeps(board, 7)
    assert board.lost == {5, 6}
    keeps(board, SENT)
    assert board.lost == {2, 5, 6}
    board.sends_again(2, nxt=SENT + 2)
    keeps(board, SENT + 1)
    assert board.lost == {3, 5, 6}


def test_a_timeout_takes_all_for_lost_that_is_not_kept() -> None:
    board = Scoreboard()
    keeps(board, 4)
    board.sends_again(2, nxt=SENT)
    board.lose_all(2, SENT)
    assert board.lost == {2, 3, 5, 6, 7}
    board.sends_again(2, nxt=SENT)
    keeps(board, 5)
    assert board.lost == {3, 6, 7}


def test_what_was_cut_is_lost_once_and_nothing_that_was_sent_before() -> None:
    board = Scoreboard()
    assert board.trims(5, una=2, nxt=SENT)
    assert board.lost == {5}
    assert not board.trims(5, una=2, nxt=SENT)
    keeps(board, 3)
    assert not board.trims(3, una=2, nxt=SENT)  # kept
    assert not board.trims(1, una=2, nxt=SENT)  # acknowledged
    assert not board.trims(SENT, una=2, nxt=SENT)  # never sent
    assert board.lost == {2, 5}


def test_what_was_cut_again_waits_for_no_packet_behind_its_retransmission() -> None:
    board = Scoreboard()
    keeps(board, 3)
    board.sends_again(2, nxt=SENT)
    assert board.trims(2, una=2, nxt=SENT)
    board.sends_again(2, nxt=SENT + 1)
    keeps(board, SENT)  # sent after the first retransmission, which was cut, and before the second
    assert board.lost == {4, 5, 6, 7}


def test_it_tells_what_is_lost_since_now() -> None:
    board = Scoreboard()
    assert board.keeps(4, una=2, threshold_packets=0) == {2, 3}
    assert board.keeps(3, una=2, threshold_packets=0) == set()
    assert board.keeps(6, una=2, threshold_packets=0) == {5}
    assert board.lose_all(2, SENT) == {7}


def test_what_is_acknowledged_is_forgotten() -> None:
    board = Scoreboard()
    for packet in (3, 6):
        keeps(board, packet)
    board.advance(5)
    assert (board.sacked, board.lost) == ({6}, {5})


def test_it_says_what_the_order_of_sending_says() -> None:
    """A packet is lost if one that was sent later, by more than the threshold of new packets, has arrived."""
    for seed in range(200):
        source, board, una, nxt = random.Random(seed), Scoreboard(), 0, 0
        threshold = source.randrange(4)
        mark: dict[int, int] = {}  # of a packet in flight: packets that are overtaken by more than one from here on
        lost: set[int] = set()
        kept: set[int] = set()
        for _ in range(60):
            match source.randrange(5):
                case 0 | 1:
                    mark[nxt] = nxt + 1
                    nxt += 1
                case 2 if board.first_lost is not None:
                    packet = board.first_lost
                    board.sends_again(packet, nxt)
                    lost.remove(packet)
                    mark[packet] = nxt
                case 3 if mark:
                    packet = source.choice([*mark, *lost])
                    if packet == una:
                        continue
                    keeps(board, packet, una=una, threshold=threshold)
                    kept.add(packet)
                    mark.pop(packet, None)
                    lost.discard(packet)
                    overtaken = {other for other, first in mark.items() if first <= packet - threshold}
                    lost |= overtaken
                    for other in overtaken:
                        del mark[other]
                case 4 if nxt > una:
                    una += source.randrange(nxt - una + 1)
                    board.advance(una)
                    kept, lost = ({packet for packet in found if packet >= una} for found in (kept, lost))
                    mark = {packet: first for packet, first in mark.items() if packet >= una}
            assert (board.lost, board.sacked) == (lost, kept)
