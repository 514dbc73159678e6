"""Every algorithm of the catalogue, on symbols: the right pieces, the bytes of the closed form, no deadlock."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

import pytest

from weftwork.base.errors import ConfigError
from weftwork.testing.collectives import check_collective
from weftwork.testing.lattices import torus_box, torus_of
from weftwork.workload.collectives.algorithms.hierarchical import INNERS, Keys
from weftwork.workload.collectives.call import Call
from weftwork.workload.collectives.catalogue import ALGORITHMS

# (ranks, GPUs per NVLink domain)
SHAPES = ((2, 1), (2, 2), (3, 1), (4, 2), (5, 1), (6, 2), (8, 1), (8, 4), (8, 8), (12, 4))
WIDE_SHAPES = ((16, 2), (16, 8), (33, 1))
# (channels, pieces, bytes): sizes that nothing here divides, and fewer bytes than ranks
LOADS = ((1, 1, 1_000_003), (3, 2, 100_003), (4, 3, 5), (2, 4, 7_777))
MOST_RANKS = 33  # what a case takes grows with the square of the ranks
CASES = [(name, operation) for name, algorithm in ALGORITHMS.items() for operation in algorithm.operations]


def loads_of(ranks: int) -> tuple[tuple[int, int, int], ...]:
    """All for few ranks; for many a large size, and fewer bytes than ranks."""
    if ranks <= 8:
        return LOADS
    return (LOADS[0], (1, 1, 5) if ranks == MOST_RANKS else LOADS[2])


def calls(name: str, operation: str, shapes: Iterable[tuple[int, int]]) -> Iterator[Call]:
    for ranks, domain in shapes:
        yield from calls_of(name, operation, ranks, domain, loads_of(ranks))


def calls_of(
    name: str, operation: str, ranks: int, domain: int, loads: tuple[tuple[int, int, int], ...]
) -> Iterator[Call]:
    for channels, chunks, size_bytes in loads:
        for options in options_of(name):
            yield Call(
                operation=operation,
                ranks=ranks,
                size_bytes=size_bytes,
                channels=channels,
                chunks=chunks,
                domain=domain,
                lattice=torus_box(ranks) if domain == 1 else None,
                options=options,
                root=ranks * 2 // 3,
                nic_columns=2,
                step_latency_ps=2_000_000,
                local_step_latency_ps=600_000,
                base_latency_ps=7_000_000,
                protocol_efficiency=15 / 16,
            )


def options_of(name: str) -> list[Any]:
    """The values of an algorithm's keys that are tried."""
    keys = ALGORITHMS[name].keys
    match name:
        case "hierarchical":
            return [Keys(inner=inner) for inner in INNERS]
        case "bucket":
            return [keys(rings=rings) for rings in ("all", "both", "one")]
        case "swing":
            return [keys(version=version) for version in ("bandwidth", "latency")]
    return [keys()]


def accepted(name: str, asked: Iterable[Call]) -> list[Call]:
    """Those calls that an algorithm does not refuse."""
    found = []
    for call in asked:
        try:
            ALGORITHMS[name].check(call)
        except ConfigError:
            continue
        found.append(call)
    return found


def many_in_small_pieces(name: str, operation: str) -> list[Call]:
    return accepted(name, calls_of(name, operation, MOST_RANKS, 1, (LOADS[2],)))


@pytest.mark.parametrize(("name", "operation"), CASES)
def test_an_algorithm_does_what_its_operation_means(name: str, operation: str) -> None:
    asked = accepted(name, calls(name, operation, SHAPES))
    assert len(asked) >= len(LOADS)
    for seed, call in enumerate(asked):
        assert check_collective(ALGORITHMS[name], call, seeds=(seed,), full=call.chunks == 2) == [], call


def among_many(name: str, operation: str) -> list[Call]:
    return accepted(name, calls(name, operation, WIDE_SHAPES))


def test_most_algorithms_take_many_ranks() -> None:
    assert sum(bool(among_many(*case)) for case in CASES) > 0.7 * len(CASES)


@pytest.mark.deep
@pytest.mark.parametrize(("name", "operation"), [case for case in CASES if among_many(*case)])
def test_so_it_does_for_many_ranks(name: str, operation: str) -> None:
    for seed, call in enumerate(among_many(name, operation)):
        assert check_collective(ALGORITHMS[name], call, seeds=(seed,), full=call.chunks == 2) == [], call


@pytest.mark.deep
@pytest.mark.parametrize(("name", "operation"), [case for case in CASES if many_in_small_pieces(*case)])
def test_so_it_does_for_many_ranks_in_small_pieces(name: str, operation: str) -> None:
    for seed, call in enumerate(many_in_small_pieces(name, operation)):
        assert check_collective(ALGORITHMS[name], call, seeds=(seed,)) == [], call


@pytest.mark.parametrize(
    "sides", [(2, 2, 2), (3, 5), *(pytest.param(sides, marks=pytest.mark.deep) for sides in [(8, 2), (16,), (2, 2, 4)])]
)
@pytest.mark.parametrize("name", ["bucket", "swing"])
def test_every_shape_of_a_torus_has_the_right_pieces(name: str, sides: tuple[int, ...]) -> None:
    lattice = torus_of(*sides)
    asked = [
        replace(call, lattice=lattice)
        for operation in ALGORITHMS[name].operations
        for call in calls_of(name, operation, lattice.size, 1, ((1, 1, 100_003), (2, 2, 5)))
    ]
    found = accepted(name, asked)
    assert len(found) == (0 if name == "swing" and 3 in sides else {"bucket": 18, "swing": 8}[name])
    for seed, call in enumerate(found):
        assert check_collective(ALGORITHMS[name], call, seeds=(seed,), full=call.chunks == 2) == [], call


@pytest.mark.parametrize("direct", ["within", "across", ""])
@pytest.mark.parametrize(
    ("ranks", "group", "domain"),
    [
        (8, 4, 1),
        (12, 3, 1),
        (6, 6, 1),
        (8, 1, 4),
        *(pytest.param(*sizes, marks=pytest.mark.deep) for sizes in [(8, 4, 4), (16, 8, 2), (24, 8, 4)]),
    ],
)
def test_groups_of_switches_are_a_level_more(ranks: int, group: int, domain: int, direct: str) -> None:
    checked = 0
    for operation in ALGORITHMS["hierarchical"].operations:
        for inner in INNERS:
            ways: dict[str, Any] = {direct: "direct"} if direct else {}
            options = Keys(inner=inner, level="domain" if group == 1 else "group", **ways)
            (call, *_) = calls_of("ring", operation, ranks, domain, LOADS[1:2])
            for asked in accepted("hierarchical", [replace(call, options=options, group=group)]):
                assert check_collective(ALGORITHMS["hierarchical"], asked, seeds=(ranks,)) == [], asked
                checked += 1
    assert checked == len(INNERS) * (3 if group > 1 and domain > 1 else 5)


@pytest.mark.parametrize("name", ALGORITHMS)
def test_a_file_of_the_catalogue_is_named_for_its_algorithm_and_cites_a_source(name: str) -> None:
    assert ALGORITHMS[name].name == name
    assert ALGORITHMS[name].source
