"""What selective repeat knows of its packets, alone."""

from __future__ import annotations

import random

from weftwork.engine.reference.selective_repeat import Scoreboard


def lost(board: Scoreboard, una: int) -> list[int]:
    """All that is lost, as they would be sent again."""
    found = []
    while (packet := board.first_lost(una)) is not None:
        found.append(packet)
        board.next_lost = packet + 1
    return found


def test_at_first_nothing_is_lost() -> None:
    assert lost(Scoreboard(), 0) == []


def test_what_a_kept_packet_has_overtaken_by_more_than_the_threshold_is_lost() -> None:
    for threshold, wanted in ((0, [2, 3, 4, 5]), (1, [2, 3, 4]), (4, []), (100, [])):
        board = Scoreboard()
        board.keeps(6, threshold)
        assert lost(board, 2) == wanted


def test_what_is_kept_is_not_lost() -> None:
    board = Scoreboard()
    for packet in (3, 5, 8):
        board.keeps(packet, 0)
    assert lost(board, 2) == [2, 4, 6, 7]


def test_a_lost_packet_is_sent_again_once_until_a_timeout() -> None:
    board = Scoreboard()
    board.keeps(4, 0)
    assert lost(board, 2) == [2, 3]
    board.keeps(5, 0)
    assert lost(board, 2) == []
    board.lose_all(2, 8)
    assert lost(board, 2) == [2, 3, 6, 7]


def test_what_is_acknowledged_is_forgotten() -> None:
    board = Scoreboard()
    for packet in (3, 6):
        board.keeps(packet, 0)
    board.advance(5)
    assert board.sacked == {6}
    assert lost(board, 5) == [5]


def test_an_older_kept_packet_takes_no_loss_back() -> None:
    board = Scoreboard()
    board.keeps(6, 0)
    board.keeps(3, 0)
    assert board.lost_below == 6
    assert lost(board, 2) == [2, 4, 5]


def test_it_says_what_the_page_says_of_a_lost_packet() -> None:
    for seed in range(50):
        source, board, una = random.Random(seed), Scoreboard(), 0
        for _ in range(40):
            if source.random() < 0.6:
                board.keeps(una + source.randrange(1, 12), source.randrange(4))
            else:
                una += source.randrange(3)
                board.advance(una)
            candidates = range(max(una, board.next_lost), board.lost_below)
            wanted = [packet for packet in candidates if packet not in board.sacked]
            assert board.first_lost(una) == (wanted[0] if wanted else None)
            assert all(packet >= una for packet in board.sacked)
