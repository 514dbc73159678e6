"""The order of PSNs: gaps, packets sent again, late ones, wraps, and READs that take many."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weftwork.rdma.psn_order import PsnOrder, Verdict
from weftwork.wire.ib import PSN_MODULUS, psn_add

ORDER, GAP, AGAIN, LATE, NEW = Verdict.IN_ORDER, Verdict.GAP, Verdict.SENT_AGAIN, Verdict.LATE, Verdict.NEW_START


def verdicts(psns: list[int], start: int) -> list[tuple[Verdict, int]]:
    order = PsnOrder()
    return [order.see(psn_add(start, psn)) for psn in psns]


@pytest.mark.parametrize("start", [0, 100, PSN_MODULUS - 2])
def test_what_a_psn_says(start: int) -> None:
    assert verdicts([0, 1, 2, 3], start) == [(ORDER, 0)] * 4
    assert verdicts([0, 1, 4, 5], start) == [(ORDER, 0), (ORDER, 0), (GAP, 2), (ORDER, 0)]
    assert verdicts([0, 1, 2, 1, 2, 3], start) == [(ORDER, 0)] * 3 + [(AGAIN, 0)] * 2 + [(ORDER, 0)]
    assert verdicts([0, 2, 1, 1, 3], start) == [(ORDER, 0), (GAP, 1), (LATE, -1), (AGAIN, 0), (ORDER, 0)]
    assert verdicts([0, 1 << 20], start) == [(ORDER, 0), (NEW, 0)]


def test_what_fills_a_gap_after_a_nak_was_sent_again() -> None:
    order = PsnOrder()
    for psn in (5, 8, 9):
        order.see(psn)
    order.nak(6)
    assert [order.see(psn) for psn in (6, 7, 8, 9, 10)] == [(AGAIN, -1)] * 2 + [(AGAIN, 0)] * 2 + [(ORDER, 0)]
    assert order.missing == set()
    # the NAK is about what was sent before it: a packet that is overtaken later is late
    assert [order.see(psn) for psn in (12, 11)] == [(GAP, 1), (LATE, -1)]


def test_a_read_takes_the_psns_of_its_responses() -> None:
    possible = frozenset({1, 2, 4, 8, 16})  # 4,096 B at each path MTU
    for count in possible:
        order = PsnOrder()
        order.see(100, possible)
        assert order.see(100 + count) == (ORDER, 0)
        assert order.last == 100 + count
    order = PsnOrder()
    order.see(100, possible)
    assert order.see(120) == (GAP, 4)  # no path MTU explains it; the smallest leaves four


def test_a_flow_of_gaps_alone_takes_no_endless_memory() -> None:
    order = PsnOrder()
    for number in range(40):
        assert order.see(number * 10_000)[0] is (GAP if number else ORDER)
    assert len(order.missing) < 300_000


def test_a_connection_says_where_it_starts() -> None:
    order = PsnOrder()
    order.start(7)
    assert (order.first, order.last) == (7, 6)
    assert order.see(9) == (GAP, 2)
    assert PsnOrder().last is None


@given(
    start=st.integers(0, PSN_MODULUS - 1),
    kept=st.lists(st.booleans(), min_size=1, max_size=60),
    data=st.data(),
)
def test_every_missing_psn_is_counted_once_and_no_other(start: int, kept: list[bool], data: st.DataObject) -> None:
    """Packets arrive in any order and some twice: what is counted as missing is what never came."""
    there = [number for number, is_kept in enumerate(kept) if is_kept]
    shuffled = data.draw(st.permutations(there))
    again = data.draw(st.lists(st.sampled_from(there), max_size=10)) if there else []
    order = PsnOrder()
    order.start(start)
    missing = sum(order.see(psn_add(start, number))[1] for number in [*shuffled, *again])
    last = max(there, default=-1)
    assert missing == sum(not is_kept for is_kept in kept[: last + 1]) == len(order.missing)
