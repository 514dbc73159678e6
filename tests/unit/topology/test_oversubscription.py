"""Ratios as people write them, equal groups that have them, and what a fabric really has."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weftwork.base.errors import ConfigError
from weftwork.spec.scenario.kinds import Ratio, WrongValueError
from weftwork.spec.scenario.scenario import loads
from weftwork.spec.scenario.yaml_tree import Mapping, Scalar, YamlEntry
from weftwork.topology.build import fabric_of
from weftwork.topology.oversubscription import (
    Split,
    end_to_end,
    equal_groups,
    nearest_sizes,
    oversubscription_by_tier,
    oversubscription_text,
    ratio_text,
)

KIND = Ratio(tiers=("leaf", "spine"))


@pytest.mark.parametrize(
    ("text", "value"), [("2:1", 2.0), ("2", 2.0), ("1.5", 1.5), ("3:2", 1.5), ("64:43", 64 / 43), ("1e1", 10.0)]
)
def test_a_ratio_is_read_as_people_write_it(text: str, value: float) -> None:
    assert KIND.read(Scalar(text=text)) == value
    assert KIND.read(Scalar(text=str(KIND.write(value)))) == value


@pytest.mark.parametrize("text", ["0", "0:1", "3:0", "2:1:1", "-1", "x", "nan", "inf", ":", "2:", "1e99", "true"])
def test_what_is_no_ratio_is_refused(text: str) -> None:
    with pytest.raises(WrongValueError, match="wanted a ratio such as 2:1"):
        KIND.read(Scalar(text=text))


def test_a_mapping_has_a_ratio_for_each_tier_that_it_names() -> None:
    def by_tier(**ratios: str) -> Mapping:
        return Mapping(entries=tuple(YamlEntry(key=key, node=Scalar(text=text)) for key, text in ratios.items()))

    assert KIND.read(by_tier(leaf="2:1", spine="3:2")) == {"leaf": 2.0, "spine": 1.5}
    with pytest.raises(WrongValueError, match="found a ratio of 'spien', wanted one of leaf or spine") as wrong:
        KIND.read(by_tier(spien="2:1"))
    assert str(wrong.value.fix) == "spine"
    with pytest.raises(WrongValueError, match="an empty mapping"):
        KIND.read(Mapping())


def test_a_scenario_keeps_the_ratios_of_its_tiers() -> None:
    text = """
schema: 3
fabric: {topology: rail-optimized, gpus: 768, node: {gpus: 8, nic_ports: 8}, radix: 16, rails: 8,
         oversubscription: {leaf: 2:1, spine: 1:1}}
traffic: {pattern: permutation, size: 1MB}
"""
    assert loads(text).fabric.options.oversubscription == {"leaf": 2.0, "spine": 1.0}
    with pytest.raises(ConfigError, match=r"line 4 .* found a ratio of 'leav', wanted one of leaf or spine"):
        loads(text.replace("leaf: 2:1", "leav: 2:1"))


@given(total=st.integers(1, 5_000), step=st.integers(1, 9), most=st.integers(1, 90))
def test_the_sizes_that_are_named_make_equal_groups(total: int, step: int, most: int) -> None:
    fitting = list(range(step, max(most, step) + 1, step))
    size = equal_groups(total, fitting)
    if size is not None:
        assert size in fitting
        assert total % size == 0
        assert total // size <= 2 * -(-total // fitting[-1])
        return
    named = nearest_sizes(total, fitting)
    assert named
    assert all(equal_groups(one, fitting) is not None for one in named)
    for below, above in ((max((one for one in named if one < total), default=0), total), (total, named[-1])):
        assert not any(equal_groups(one, fitting) for one in range(below + 1, above))


@given(
    ports=st.integers(4, 256), each=st.integers(1, 4), ratio=st.fractions(Fraction(1, 4), 8, max_denominator=8),
    speed=st.sampled_from([Fraction(1, 2), Fraction(1), Fraction(2)]),
)  # fmt: skip
def test_the_most_hosts_at_no_more_than_a_ratio_fit_and_one_more_does_not(
    ports: int, each: int, ratio: Fraction, speed: Fraction
) -> None:
    split = Split(hosts=1_000, ports=ports, each=each, speed=each * speed, what="leaves")
    try:
        count = split.most_at_most(ratio)
    except ConfigError:
        assert not split.fits(1, split.uplinks(1, ratio))
        return
    assert split.fits(count, split.uplinks(count, ratio))
    assert count * split.speed / split.uplinks(count, ratio) <= ratio * Fraction(1_001, 1_000)


def test_a_fabric_says_what_it_has() -> None:
    even = fabric_of(topology="rail-optimized", node="dgx-h100", gpus=2_048, radix=128, oversubscription=2)
    assert oversubscription_text(even) == "oversubscription 2:1"
    by_tier = {"leaf": 2, "spine": 3}
    tapered = fabric_of(
        topology="rail-optimized", node="dgx-h100", gpus=6_144, radix=32, tiers=3, oversubscription=by_tier
    )
    assert oversubscription_text(tapered) == "oversubscription leaf 2:1, spine 3:1"
    assert end_to_end(oversubscription_by_tier(tapered)) == 6
    star = fabric_of(topology="rail-optimized", node="dgx-h100", gpus=64, radix=64, spines=0)
    assert oversubscription_text(star) == ""
    assert end_to_end(oversubscription_by_tier(star)) == 1


def test_ratios_of_large_numbers_are_told_exactly() -> None:
    assert [ratio_text(ratio) for ratio in (1, 1.25, Fraction(8, 3), 0.5)] == ["1:1", "1.25:1", "8:3", "0.5:1"]
