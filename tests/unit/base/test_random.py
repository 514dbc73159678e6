"""Draws by identity: the published finaliser, floats below 1, integers in range, and no two identities alike."""

from itertools import product

import numpy as np
import pytest

from weftwork.base.random import Stream, draw, draws, mix, pick, uniform

LARGEST = 2**64 - 1


@pytest.mark.parametrize(
    ("number", "published"), [(1, 0xE220A8397B1DCDAF), (2, 0x6E789E6AA1B965F4), (3, 0x06C45D188009454F)]
)
def test_the_first_word_alone_counts_as_splitmix64_does(number: int, published: int) -> None:
    """Output n of SplitMix64 with the seed 0 (Vigna, prng.di.unimi.it/splitmix64.c): the finaliser of n times gamma."""
    assert mix(number, 0, 0) == published


def test_a_float_is_below_one_whatever_the_bits() -> None:
    assert uniform(0) == 0.0
    assert uniform(LARGEST) == 1 - 2**-53
    assert uniform(1 << 63) == 0.5


@pytest.mark.parametrize("count", [1, 3, 2**32 - 1])
def test_an_integer_is_in_range_and_both_ends_are_reached(count: int) -> None:
    assert pick(0, count) == 0
    assert pick(LARGEST, count) == count - 1


def test_no_two_identities_share_a_draw() -> None:
    some = (0, 1, 2, 2**20)
    identities = list(product((0, 1, 2), (Stream.LINK_LOSS, Stream.ECN_MARK), some, some, some))
    assert len({draw(*identity) for identity in identities}) == len(identities)


def test_many_flows_at_once_draw_the_same_bits() -> None:
    flows = np.array([0, 1, 2**40 + 3, 2**63 - 1])
    for seed, packet, place in product((0, 7, 2**31 - 1), (0, 1 << 55), (0, 2**31)):
        one_by_one = [draw(seed, Stream.PLACEMENT, flow, packet, place) for flow in flows.tolist()]
        assert draws(seed, Stream.PLACEMENT, flows, packet, place).tolist() == one_by_one
