"""The box of a torus that the GPUs of a job fill: found, or refused with the reason; what auto takes there."""

from __future__ import annotations

from dataclasses import replace

import pytest

from weftwork.base.errors import ConfigError
from weftwork.workload.collectives.call import Call
from weftwork.workload.collectives.catalogue import ALGORITHMS, schedule
from weftwork.workload.collectives.lattice import Axis, axis_loads


def mistakes(name: str, call: Call) -> dict[str, str]:
    with pytest.raises(ConfigError) as error:
        schedule(name, call)
    return {mistake.path: mistake.text for mistake in error.value.mistakes}


@pytest.mark.parametrize(
    ("axis", "moves", "found"),
    [
        (Axis(name="x", size=8), ((1, 1), (-1, -1)), (1, 1)),
        (Axis(name="x", size=8), ((3, -3),), (2, 3)),
        (Axis(name="x", size=8), ((3, -3), (-3, 3)), (3, 3)),
        (Axis(name="x", size=4, is_closed=False), ((1, 1),), (1, 3)),
        (Axis(name="x", size=4, is_closed=False), ((1, 1), (-1, -1)), (2, 3)),
        (Axis(name="x", size=2, links=2), ((1, 1), (-1, -1)), (1, 1)),
    ],
)
def test_messages_on_the_busiest_link(axis: Axis, moves: tuple[tuple[int, int], ...], found: tuple[int, int]) -> None:
    assert axis_loads(axis, moves) == found


def test_groups_that_there_are_not_are_refused() -> None:
    options = ALGORITHMS["hierarchical"].keys(level="group")
    call = Call(operation="all-reduce", ranks=16, size_bytes=1 << 20, options=options)
    for group, domain in ((1, 1), (6, 1), (4, 8)):
        found = mistakes("hierarchical", replace(call, group=group, domain=domain))
        assert "not whole groups of switches" in found["collective.level"]
    two = replace(call, operation="all-to-all", group=8, domain=4)
    assert "all-to-all has two levels" in mistakes("hierarchical", two)["collective.level"]
