"""How many runs delivered everything, of how many that count: an interrupted seed says nothing about the others."""

from __future__ import annotations

from types import SimpleNamespace
from typing import cast

import pytest

from weftwork.spec.endings import ENDINGS
from weftwork.store.runs import Run, finished


def a_run(status: str, *seeds: str) -> Run:
    parts = tuple(a_run(one) for one in seeds)
    return cast("Run", SimpleNamespace(ending=ENDINGS[status], is_complete=ENDINGS[status].is_whole, seeds=parts))


@pytest.mark.parametrize(
    ("run", "wanted"),
    [
        (a_run("complete"), (1, 1)),
        (a_run("stopped"), (0, 1)),
        (a_run("interrupted"), (0, 1)),
        (a_run("complete", "complete", "complete", "complete"), (3, 3)),
        (a_run("stopped", "complete", "stopped", "stuck"), (1, 3)),
        (a_run("interrupted", "complete", "complete", "interrupted"), (2, 2)),
        (a_run("interrupted", "stopped", "complete", "interrupted"), (1, 2)),
        (a_run("interrupted", "interrupted"), (0, 1)),
    ],
)
def test_what_was_interrupted_does_not_count_unless_nothing_else_is_there(run: Run, wanted: tuple[int, int]) -> None:
    assert finished(run) == wanted
