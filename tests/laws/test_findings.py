"""All mistakes of a stage are told at once, whichever are planted together, and in the order of their places.

What is found before an engine is asked also says the same beside the others as alone. Engines judge parts against each
other: a small buffer changes what a switch offers to a policy.
"""

from __future__ import annotations

import re
from collections import Counter
from functools import cache
from itertools import combinations
from random import Random
from typing import TYPE_CHECKING

import pytest
from helpers.cases import Saw, case_count
from helpers.planted import BEDS, planted

import weftwork
from weftwork.study.prepare.prepare import prepare

if TYPE_CHECKING:
    from weftwork.base.errors import ConfigError

# of the parts of a run in an error: users read them so since before there was a collector
ORDER = ("jobs", "reordering", "rewirings", "faults", "routing", "pins", "engineering", "recording")


def refused(bed: str, names: list[str]) -> ConfigError:
    with pytest.raises(weftwork.ConfigError) as caught:
        prepare(planted(BEDS[bed], names))
    return caught.value


def paths(error: ConfigError) -> list[str]:
    return [re.sub(r"\.\d+\b", ".N", mistake.path) for mistake in error.mistakes]


def texts(error: ConfigError) -> Counter[str]:
    return Counter(mistake.text for mistake in error.mistakes)


@cache
def alone(bed: str, name: str) -> ConfigError:
    return refused(bed, [name])


@pytest.mark.parametrize("bed", BEDS)
def test_each_mistake_is_found_alone_in_its_stage(bed: str) -> None:
    prepare(planted(BEDS[bed], []))
    for name, mistake in BEDS[bed].mistakes.items():
        error = alone(bed, name)
        assert (error.stage, paths(error)) == (BEDS[bed].stage, [mistake.path])


@pytest.mark.parametrize("bed", BEDS)
def test_two_mistakes_of_a_stage_are_told_together(bed: str, saw: Saw) -> None:
    pairs = list(combinations(BEDS[bed].mistakes, 2))
    saw(len(pairs))
    for pair in pairs:
        told_together(bed, list(pair))


def test_several_mistakes_of_a_stage_are_told_together(saw: Saw) -> None:
    count = case_count(plain=20, deep=400)
    saw(count)
    for number in range(count):
        draw = Random(number)
        bed = draw.choice(list(BEDS))
        names = list(BEDS[bed].mistakes)
        told_together(bed, draw.sample(names, draw.randint(min(3, len(names)), len(names))))


def told_together(bed: str, names: list[str]) -> None:
    error = refused(bed, names)
    known = BEDS[bed].mistakes
    assert error.stage == BEDS[bed].stage
    lone = [alone(bed, name) for name in names]
    assert Counter(paths(error)) == sum((Counter(paths(one)) for one in lone), Counter()), (bed, names)
    if BEDS[bed].stage == "parts":
        assert texts(error) == sum((texts(one) for one in lone), Counter()), (bed, names)
        part_of = {known[name].path: known[name].part for name in names}
        places = [ORDER.index(part_of[path]) for path in paths(error)]
        assert places == sorted(places), (bed, names)
