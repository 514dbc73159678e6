"""Leaf-spine fabrics: shapes, parallel links and shapes derived from an oversubscription."""

from __future__ import annotations

import re
from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from weftwork.base.errors import ConfigError
from weftwork.topology.shapes.leaf_spine import LeafSpineCounts, leaf_spine_counts


@given(
    hosts=st.integers(1, 600),
    radix=st.integers(4, 128),
    ratio=st.fractions(Fraction(1, 8), 8, max_denominator=16),
    speed=st.sampled_from([(1, 1), (1, 2), (1, 4), (2, 1)]),
)
def test_derived_shapes_keep_the_ports_and_the_ratio(
    hosts: int, radix: int, ratio: Fraction, speed: tuple[int, int]
) -> None:
    """A ratio that is asked for is there in equal leaves, or the next sizes are named, which have it."""

    def counts_of(hosts: int) -> LeafSpineCounts:
        return leaf_spine_counts(
            hosts=hosts, radix=radix, oversubscription=ratio, host_rate_bps=speed[0], fabric_rate_bps=speed[1]
        )

    try:
        counts = counts_of(hosts)
    except ConfigError as refused:
        mistake = refused.mistakes[0]
        sizes = re.search(r"nearest possible sizes are ([0-9 or,]+) hosts", mistake.text)
        if sizes is None:
            needs = -(-ratio.denominator * speed[0] // (ratio.numerator * speed[1]))  # uplinks of a leaf with one host
            too_many = mistake.path == "fabric.hosts" and hosts > radix
            assert too_many or 1 + needs > radix or "which no split" in mistake.text
            return
        found = [int(size.replace(",", "")) for size in sizes[1].split(" or ")]
        assert hosts not in found
        hosts = found[-1]
        try:
            counts = counts_of(hosts)
        except ConfigError as refused_again:
            assert refused_again.mistakes[0].path == "fabric.hosts"  # noqa: PT017 - more leaves than a spine has ports
            return
    uplinks = counts.spines * counts.links_per_pair
    assert counts.hosts_per_leaf + uplinks <= radix
    assert counts.leaves * counts.links_per_pair <= radix
    assert counts.oversubscription == Fraction(counts.hosts_per_leaf * speed[0], uplinks * speed[1])
    assert abs(counts.oversubscription - ratio) <= ratio / 1000
    assert hosts == counts.leaves * counts.hosts_per_leaf
