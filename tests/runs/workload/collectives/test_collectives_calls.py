"""Calls of collectives: what is refused, what bus bandwidth is, what protocols cost, how large programs are."""

from __future__ import annotations

from dataclasses import replace
from math import isqrt

import pytest

from weftwork.spec.job import Loop, Operation
from weftwork.testing.lattices import torus_of
from weftwork.workload.collectives.call import Call
from weftwork.workload.collectives.catalogue import ALGORITHMS, schedule


def operations(body: tuple[Operation, ...]) -> int:
    return sum(1 + (operations(op.body) if isinstance(op, Loop) else 0) for op in body)


@pytest.mark.parametrize(
    ("name", "operation"), [(name, op) for name, algorithm in ALGORITHMS.items() for op in algorithm.operations]
)
def test_programs_do_not_grow_with_the_ranks(name: str, operation: str) -> None:
    def count(ranks: int) -> int:
        domain = ranks if name == "nvls" else 8
        call = Call(operation=operation, ranks=ranks, size_bytes=1 << 24, channels=2, chunks=2, domain=domain)
        if ALGORITHMS[name].needs_lattice:
            call = replace(call, domain=1, lattice=torus_of(isqrt(ranks), isqrt(ranks)))
        programs = schedule(name, call).programs
        return sum(operations(stream) for program in programs for stream in program.streams)

    small, large = (8, 64) if name == "nvls" else (64, 1_024)
    factor = {"halving-doubling": 2, "swing": 2, "hierarchical": 1, "nvls": 8}.get(
        name, 1
    )  # log2 of the ranks; multicasts
    assert count(large) <= factor * count(small)
