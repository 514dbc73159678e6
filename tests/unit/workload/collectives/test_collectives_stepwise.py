import numpy as np
import pytest
from numpy.typing import NDArray

from weftwork.base.errors import ConfigError
from weftwork.spec.job import Collect, Compute, Grid, Job, Loop, Milestone, Operation, Placement, Program, Send
from weftwork.workload.collectives.stepwise import cosets, stepwise

RANKS = 16
EIGHTS = np.arange(RANKS) // 8  # two servers of eight


def job(*operations: Operation, columns: int = 1) -> Job:
    placement = Placement(
        host=np.arange(RANKS, dtype=np.int32) // 8,
        nics=np.zeros((RANKS, columns), np.int32),
        gpu=np.arange(RANKS, dtype=np.int32) % 8,
    )
    return Job(
        name="test",
        ranks=RANKS,
        programs=(Program(streams=(operations,)),),
        rank_program=np.zeros(RANKS, np.int32),
        placement=placement,
    )


def collect(group: Grid, *, operation: str = "all-reduce", pattern: str = "ring", amount: int = 3_000) -> Collect:
    return Collect(
        operation=operation,
        size_bytes=amount,
        group=group,
        channel=2,
        pattern=pattern,  # type: ignore[arg-type]
        amount_bytes=amount,
        overhead_ps=7,
    )


def sends(found: Job) -> list[tuple[Send, int]]:
    """Every send of the one program, with how often it runs."""
    listed = []
    for operation in found.programs[0].streams[0]:
        body, count = (operation.body, operation.count) if isinstance(operation, Loop) else ((operation,), 1)
        listed += [(inner, count) for inner in body if isinstance(inner, Send)]
    return listed


def cycle(table: tuple[int, ...], start: int) -> list[int]:
    walked = [start]
    while table[walked[-1]] != start:
        walked.append(table[walked[-1]])
    return walked


def test_groups_are_what_differs_only_in_the_digits_of_the_grid() -> None:
    assert cosets(Grid(axes=((1, 2), (4, 2))), 8).tolist() == [[0, 1, 4, 5], [2, 3, 6, 7]]
    assert cosets(Grid(axes=((1, 2),)), 4, first_rank=10).tolist() == [[10, 11], [12, 13]]


def test_every_ring_goes_through_all_members_and_each_by_another_nic() -> None:
    found = sends(stepwise(job(collect(Grid(axes=((1, 16),)))), EIGHTS))
    rings: dict[int, dict[int, int]] = {}
    for send, count in found:  # edges inside a domain, and those between domains
        assert count == 2 * 15
        assert send.peer.table is not None
        edges = {rank: to for rank, to in enumerate(send.peer.table) if to >= 0}
        assert len({EIGHTS[rank] == EIGHTS[to] for rank, to in edges.items()}) == 1
        assert not edges.keys() & rings.setdefault(send.channel, {}).keys()
        rings[send.channel] |= edges
    assert len(rings) == 8  # one ring for each member of a domain
    entries = set()
    for edges in rings.values():
        table = tuple(edges[rank] for rank in range(16))
        ring = cycle(table, 0)
        assert sorted(ring) == list(range(16))
        crossing = [table[rank] for rank in ring if EIGHTS[rank] != EIGHTS[table[rank]]]
        assert len(crossing) == 2
        assert len({rank % 8 for rank in crossing}) == 1  # the same rail in both servers
        entries.add(crossing[0] % 8)
    assert entries == set(range(8))


def test_the_bytes_of_a_ring_are_those_of_the_collective_on_every_edge() -> None:
    for columns in (1, 2):
        found = stepwise(job(collect(Grid(axes=((8, 2),)), amount=1_001), columns=columns), EIGHTS)
        total = 0
        for send, count in sends(found):
            each, rest = divmod(send.size.total_bytes, send.size.parts)
            total += count * (each + (send.size.offset < rest))
        assert abs(total - 1_001) <= 2 * len(sends(found))  # parts differ by a byte


def test_an_all_to_all_sends_a_part_to_every_other_member() -> None:
    found = sends(stepwise(job(collect(Grid(axes=((1, 8),)), operation="all-to-all", pattern="all-to-all")), EIGHTS))
    targets = [send.peer.table[3] for send, _ in found]  # type: ignore[index]
    assert sorted(targets) == [0, 1, 2, 4, 5, 6, 7]
    assert {(send.size.total_bytes, send.size.parts) for send, _ in found} == {(3_000, 8)}


def test_what_is_no_collective_stays_and_the_overhead_comes_first() -> None:
    found = stepwise(job(Milestone(name=0), collect(Grid(axes=((1, 2),)))), EIGHTS).programs[0].streams[0]
    assert found[0] == Milestone(name=0)
    assert found[1] == Compute(duration_ps=7)
    assert stepwise(job(collect(Grid(axes=((1, 1),)))), EIGHTS).programs[0].streams[0] == ()


def test_several_jobs_are_refused() -> None:
    several = job(collect(Grid(axes=((1, 2),))))
    object.__setattr__(several, "first_rank", (4,))
    with pytest.raises(ConfigError, match="only the flow engine runs several"):
        stepwise(several, EIGHTS)


def test_too_many_channels_are_refused() -> None:
    wide: NDArray[np.int64] = np.zeros(RANKS, np.int64)
    wide[8:] = 1
    many = Collect(
        operation="all-reduce", size_bytes=1, group=Grid(axes=((1, 16),)), channel=9_000, pattern="ring", amount_bytes=1
    )
    with pytest.raises(ConfigError, match="channels"):
        stepwise(job(many), wide)
