from types import SimpleNamespace

import numpy as np

from weftwork.study.results.training_time import job_time, segments_of, with_tails

LABELS = ("compute", "pipeline", "tensor", "checkpoint")
SEGMENT = np.dtype([(name, np.int64) for name in ("actor", "label", "code", "start_ps", "end_ps")])
MARK = np.dtype([(name, np.int64) for name in ("actor", "name", "at_ps")])
ALONE = np.array([0, 0])  # both stages are of one job
PASSED = np.array([15, 18])  # when they ended their last pass
ACTOR = np.dtype([(name, np.int64) for name in ("rank", "ranks", "program")])


def two_stages() -> SimpleNamespace:
    """Stage 0 computes for 10, waits 4 for stage 1 and 1 for the transfer; stage 1 begins later and ends last."""
    segments = np.array(
        [
            (1, 1, 1, 0, 12),
            (1, 0, 0, 12, 22),
            (0, 0, 0, 0, 10),
            (0, 1, 1, 10, 14),
            (0, 1, 2, 14, 15),
            (0, 2, 1, 15, 17),
        ],
        SEGMENT,
    )
    marks = np.array([(0, 0, 0), (1, 0, 12), (0, 0, 14), (0, 1, 15)], MARK)
    actors = np.array([(4, 3, 0), (9, 1, 1)], ACTOR)
    return SimpleNamespace(segments=segments, milestones=marks, actors=actors)


def test_waiting_for_a_stage_is_a_bubble_and_waiting_for_members_is_skew() -> None:
    found = segments_of(two_stages(), LABELS)
    assert [found.kinds[kind] for kind in found.kind.tolist()] == [
        "compute", "bubble", "pipeline", "skew", "bubble", "compute",
    ]  # fmt: skip
    assert found.milestone.tolist() == [0, 0, 1, 1, -1, 0]


def test_the_kinds_of_all_ranks_add_up_to_the_iteration() -> None:
    found = with_tails(segments_of(two_stages(), LABELS), job=ALONE, has_pipeline=[False], passed_ps=PASSED)
    time = job_time(found, actors=np.array([0, 1]), ranks=np.array([3, 1]), stage=np.array([0, 1]))
    assert (time.start_ps, time.end_ps) == (0, 22)
    assert sum(time.by_kind_ps.values()) == 22
    assert time.by_kind_ps["compute"] == 10
    assert time.by_kind_ps["bubble"] == (3 * 4 + 12) / 4
    assert time.by_kind_ps["skew"] == 3 * (2 + 5) / 4  # two while it waited for members, five behind its last operation
    assert time.busiest_ps == 11
    assert time.overlapped_ps == 22
    assert time.slowest == {0: 0, 1: 1}


def test_behind_its_last_operation_a_stage_waits_for_the_passes_and_then_for_the_update_of_others() -> None:
    own = segments_of(two_stages(), LABELS)
    found = with_tails(own, job=ALONE, has_pipeline=[True], passed_ps=PASSED)
    assert found.actor.tolist() == [0, 0, 0, 0, 0, 0, 1, 1]
    tail = [(found.kinds[found.kind[at]], int(found.start_ps[at]), int(found.end_ps[at])) for at in (4, 5)]
    assert tail == [("bubble", 17, 20), ("skew", 20, 22)]  # the passes of stage 1 ended three later than its own
    assert found.milestone[4:6].tolist() == [1, 1]
    all_bubble = with_tails(own, job=ALONE, has_pipeline=[True], passed_ps=np.array([10, 22]))
    assert all_bubble.actor.tolist() == [0, 0, 0, 0, 0, 1, 1]
    assert all_bubble.kinds[all_bubble.kind[4]] == "bubble"
    no_pipeline = with_tails(own, job=ALONE, has_pipeline=[False], passed_ps=PASSED)
    assert no_pipeline.kinds[no_pipeline.kind[4]] == "skew"
    apart = with_tails(own, job=np.array([0, 1]), has_pipeline=[True, True], passed_ps=PASSED)
    assert len(apart.actor) == 6  # each job ends with its own last rank


def test_of_equal_actors_of_a_stage_the_one_that_ends_last_stands_for_it() -> None:
    found = segments_of(two_stages(), LABELS)
    time = job_time(found, actors=np.array([0, 1]), ranks=np.array([1, 1]), stage=np.array([0, 0]))
    assert time.slowest == {0: 1}
