"""Each scheme of virtual channels, by hand: where a packet has come from, its channel, and where it goes."""

from __future__ import annotations

import numpy as np
import pytest

from weftwork.spec.fabric import HOST
from weftwork.topology.build import fabric_of
from weftwork.topology.virtual_channels import LinkKinds, channel_rule, link_kinds

RATE_BPS = 100_000_000_000
# Two dimensions, of each the links inside and those that close rings; of the second one, links join groups.
KINDS = LinkKinds(
    port_kind=np.array([-1, 0, 1, 2, 3]),
    dimension=np.array([0, 0, 1, 1]),
    wraps=np.array([False, True, False, True]),
    is_global=np.array([False, False, True, True]),
)
HOST_LINK, X, X_WRAP, Y, Y_WRAP = -1, 0, 1, 2, 3


def behind(scheme: str, came: int, held: int, out: int, *, turn: int = 0, channels: int = 4) -> int:
    rule = channel_rule(KINDS, scheme, channels)  # type: ignore[arg-type]
    assert rule.shape == (2, 5, channels, 4)
    return int(rule[turn, came + 1, held, out])


@pytest.mark.parametrize("turn", [0, 1])
def test_one_keeps_the_channel(turn: int) -> None:
    assert [behind("one", X, held, Y, turn=turn) for held in range(4)] == [0, 1, 2, 3]


def test_hops_takes_the_next_channel_at_each_switch_and_the_first_from_a_host() -> None:
    assert behind("hops", HOST_LINK, 0, X) == 0
    assert [behind("hops", X, held, X) for held in range(3)] == [1, 2, 3]


def test_a_packet_that_would_need_a_further_channel_stays_in_the_last() -> None:
    assert behind("hops", X, 3, X) == 3
    assert behind("turns", X, 1, X, turn=1, channels=2) == 1


def test_turns_takes_the_next_channel_at_a_turn_alone() -> None:
    assert [behind("turns", X, held, Y) for held in range(3)] == [0, 1, 2]
    assert [behind("turns", X, held, Y, turn=1) for held in range(3)] == [1, 2, 3]


def test_global_hops_rises_behind_a_global_link_and_at_a_second_thought() -> None:
    assert behind("global-hops", HOST_LINK, 0, X) == 0
    assert behind("global-hops", X, 0, Y) == 0  # to the global link
    assert behind("global-hops", Y, 0, X) == 1  # behind it
    assert behind("global-hops", X, 1, Y) == 1
    assert behind("global-hops", X, 0, X, turn=1) == 1


def test_dateline_takes_the_second_channel_from_the_closing_link_to_the_end_of_the_dimension() -> None:
    assert behind("dateline", HOST_LINK, 0, X) == 0
    assert behind("dateline", X, 0, X) == 0
    assert behind("dateline", X, 0, X_WRAP) == 1
    assert behind("dateline", X_WRAP, 1, X) == 1
    assert behind("dateline", X, 1, X) == 1
    assert behind("dateline", X, 1, Y) == 0  # the next dimension begins in the first one
    assert behind("dateline", X, 1, Y_WRAP) == 1
    assert behind("dateline", HOST_LINK, 0, X_WRAP) == 1


def test_dateline_has_two_channels_for_each_part_of_a_way() -> None:
    assert behind("dateline", X, 1, X, turn=1) == 2
    assert behind("dateline", X, 0, X_WRAP, turn=1) == 3
    assert behind("dateline", X_WRAP, 3, X) == 3
    assert behind("dateline", X, 3, Y) == 2


def test_kinds_of_a_dragonfly_tell_global_links_apart() -> None:
    fabric = fabric_of(topology="dragonfly", radix=7, link_rate_bps=RATE_BPS)
    kinds, ports = link_kinds(fabric), fabric.ports
    is_switch = fabric.node_kind != HOST
    between = is_switch[ports.node] & is_switch[ports.node[ports.peer]]
    assert ((kinds.port_kind >= 0) == between).all()
    assert fabric.node_pod is not None
    leaves_group = fabric.node_pod[ports.node] != fabric.node_pod[ports.node[ports.peer]]
    assert (kinds.is_global[kinds.port_kind[between]] == leaves_group[between]).all()


def test_kinds_of_a_torus_tell_dimensions_and_closing_links_apart() -> None:
    fabric = fabric_of(topology="torus", shape=(4, 3), link_rate_bps=RATE_BPS)
    kinds = link_kinds(fabric)
    count = np.bincount(kinds.port_kind[kinds.port_kind >= 0], minlength=4)
    assert count.tolist() == [3 * 3 * 2, 3 * 2, 4 * 2 * 2, 4 * 2]  # ports: rows of 4, and columns of 3
    assert kinds.dimension.tolist() == [0, 0, 1, 1]
    assert kinds.wraps.tolist() == [False, True, False, True]
    assert not kinds.is_global.any()


def test_links_of_a_tree_lead_up_or_down() -> None:
    fabric = fabric_of(topology="leaf-spine", leaves=2, spines=2, hosts_per_leaf=1, link_rate_bps=RATE_BPS)
    assert set(link_kinds(fabric).port_kind.tolist()) == {-1, 0, 1}
