"""Every algorithm of the catalogue, on symbols: the right pieces, the bytes of the closed form, no deadlock."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from weftwork.base.errors import ConfigError
from weftwork.testing.collectives import check_collective
from weftwork.workload.collectives.algorithms.hierarchical import INNERS, Keys
from weftwork.workload.collectives.call import Call
from weftwork.workload.collectives.catalogue import ALGORITHMS

# (ranks, GPUs per NVLink domain)
SHAPES = ((2, 1), (2, 2), (3, 1), (4, 2), (5, 1), (6, 2), (8, 1), (8, 4), (8, 8), (12, 4), (16, 2), (16, 8), (33, 1))
# (channels, pieces, bytes): sizes that nothing here divides, and fewer bytes than ranks
LOADS = ((1, 1, 1_000_003), (3, 2, 100_003), (4, 3, 5), (2, 4, 7_777))
CASES = [(name, operation) for name, algorithm in ALGORITHMS.items() for operation in algorithm.operations]


def calls(name: str, operation: str) -> Iterator[Call]:
    for ranks, domain in SHAPES:
        for channels, chunks, size_bytes in LOADS if ranks <= 8 else (LOADS[0], LOADS[2]):
            for inner in INNERS if name == "hierarchical" else INNERS[:1]:
                yield Call(
                    operation=operation,
                    ranks=ranks,
                    size_bytes=size_bytes,
                    channels=channels,
                    chunks=chunks,
                    domain=domain,
                    options=Keys(inner=inner),
                    root=ranks * 2 // 3,
                    nic_columns=2,
                    step_latency_ps=2_000_000,
                    local_step_latency_ps=600_000,
                    base_latency_ps=7_000_000,
                    protocol_efficiency=15 / 16,
                )


@pytest.mark.parametrize(("name", "operation"), CASES)
def test_an_algorithm_does_what_its_operation_means(name: str, operation: str) -> None:
    done = 0
    for call in calls(name, operation):
        try:
            ALGORITHMS[name].check(call)
        except ConfigError:
            continue
        assert check_collective(ALGORITHMS[name], call, seeds=(done,), full=call.chunks == 2) == [], call
        done += 1
    assert done >= len(LOADS)


@pytest.mark.parametrize("name", ALGORITHMS)
def test_a_file_of_the_catalogue_is_named_for_its_algorithm_and_cites_a_source(name: str) -> None:
    assert ALGORITHMS[name].name == name
    assert ALGORITHMS[name].source
