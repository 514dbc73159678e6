"""A job knows how many of its ranks are GPUs."""

import numpy as np
import pytest

from weftwork.spec.job import Job, Placement, Program


@pytest.mark.parametrize(
    ("gpu", "gpus"), [(None, 5), ([0, 1, 2, 3, 4], 5), ([0, 1, 2, -1, -2], 3)], ids=["hosts", "GPUs", "with switches"]
)
def test_nvlink_switches_that_take_part_are_no_gpus(gpu: list[int] | None, gpus: int) -> None:
    place = np.zeros(5, np.int32)
    placed = Placement(host=place, nics=place[:, None], gpu=None if gpu is None else np.array(gpu, np.int32))
    job = Job(name="five", ranks=5, programs=(Program(streams=()),), rank_program=place, placement=placed)
    assert job.gpus == gpus
