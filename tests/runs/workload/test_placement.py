"""Placements: which GPU of which server a rank is, its NIC ports, and the ranks of NVLink switches."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from weftwork.topology.build import fabric_of
from weftwork.workload.placement import (
    PLACEMENTS,
    gpu_ports,
)


@given(name=st.sampled_from(sorted(PLACEMENTS)), ranks=st.integers(1, 64), seed=st.integers(0, 9))
def test_every_rank_has_a_gpu_of_its_own_and_that_gpus_ports(name: str, ranks: int, seed: int) -> None:
    fabric = fabric_of(topology="rail-optimized", gpus=64, node="p5", radix=128)
    placed = PLACEMENTS[name](fabric, ranks, seed=seed)
    assert placed.gpu is not None
    assert len(set(zip(placed.host.tolist(), placed.gpu.tolist(), strict=True))) == ranks
    for host, gpu, nics in zip(placed.host.tolist(), placed.gpu.tolist(), placed.nics.tolist(), strict=True):
        assert nics == gpu_ports(fabric, host, gpu) == [4 * gpu, 4 * gpu + 1, 4 * gpu + 2, 4 * gpu + 3]
