"""What a collective through an NVLink switch costs to prepare: the work is counted, not timed.

The switch of a domain of n GPUs names n peers for each of n slices, in each piece and channel. Checking every name anew
took n^3 steps, which is a minute of CPU for 72 GPUs.
"""

from __future__ import annotations

import numpy as np
import pytest
from helpers.findings import mistakes_of
from numpy.typing import NDArray

from weftwork.engine import programs
from weftwork.engine.programs import check_job, flatten
from weftwork.spec.job import Job, Peer, Placement
from weftwork.spec.peers import peers_of
from weftwork.workload.collectives.algorithms.nvls import ALGORITHM
from weftwork.workload.collectives.call import Call


def nvls(gpus: int, *, channels: int = 2, chunks: int = 2) -> Job:
    """An all-reduce in one domain on one host."""
    call = Call(
        operation="all-reduce", ranks=gpus, size_bytes=1 << 24, channels=channels, chunks=chunks, domain=gpus
    )  # fmt: skip
    ranks = gpus + 1
    placement = Placement(
        host=np.zeros(ranks, np.int32), nics=np.zeros((ranks, 1), np.int32), gpu=np.array([*range(gpus), -1], np.int32)
    )
    return ALGORITHM.schedule(call).job(placement)


def looked_up(job: Job, monkeypatch: pytest.MonkeyPatch) -> int:
    """Peers that the check of a job looks up, over ranks and counters."""
    count = 0

    def counted(peer: Peer, ranks: NDArray[np.int64], counter: int) -> NDArray[np.int64]:
        nonlocal count
        count += len(ranks)
        return peers_of(peer, ranks, counter)

    monkeypatch.setattr(programs, "peers_of", counted)
    assert mistakes_of(check_job, job, np.zeros(job.ranks, np.int64)) == []
    return count


@pytest.mark.parametrize("gpus", [8, 16, 32])
def test_the_check_of_peers_grows_with_the_domain(gpus: int, monkeypatch: pytest.MonkeyPatch) -> None:
    assert gpus <= looked_up(nvls(gpus), monkeypatch) <= 4 * gpus


def test_more_pieces_and_channels_have_no_more_peers_to_check(monkeypatch: pytest.MonkeyPatch) -> None:
    few, many = nvls(8, channels=1, chunks=1), nvls(8, channels=8, chunks=8)
    assert looked_up(few, monkeypatch) == looked_up(many, monkeypatch)


def test_a_peer_outside_is_told_for_each_operation_that_has_it() -> None:
    """Peers are checked once, and told wherever they stand."""
    job = nvls(8)
    shorter = Job(
        name="broken", ranks=8, programs=job.programs, rank_program=job.rank_program[:8], placement=job.placement
    )  # fmt: skip
    found = mistakes_of(check_job, shorter, np.zeros(8, np.int64))
    sends = sum(mistake.path.endswith("Send") for mistake in found)
    assert sends > 2


def test_tables_of_members_are_kept_once() -> None:
    """The switch's group has all ranks in it; a table for each of its operations would be the cube again."""
    sizes = [len(flatten(nvls(gpus), {0: 0}, 0).tables) for gpus in (8, 16, 32)]
    assert sizes[1] < 2.5 * sizes[0]
    assert sizes[2] < 2.5 * sizes[1]
