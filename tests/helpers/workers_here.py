"""Worker processes that are this process: what a pool does with its points, without a second for each new process.

A question and its answer are pickled on the way, as they are to a process. Tests whose subject are the processes
(tests/runs/study/pool, tests/deep/truth/study/pool) start them.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from typing import Any

import pytest

__all__ = ["use_workers_here"]


class _Here:
    """An executor that answers at once; an error of a task is raised where it is submitted."""

    def submit(self, task: Callable[..., Any], *arguments: Any) -> Future[Any]:
        answer: Future[Any] = Future()
        task, arguments = pickle.loads(pickle.dumps((task, arguments)))  # noqa: S301 - of this very process
        answer.set_result(pickle.loads(pickle.dumps(task(*arguments))))  # noqa: S301 - as above
        return answer


@contextmanager
def _executor_here(_: int) -> Iterator[_Here]:
    yield _Here()


def use_workers_here(monkeypatch: pytest.MonkeyPatch) -> None:
    """Answer in this process for the rest of a test."""
    for module in ("pool", "side_by_side"):
        monkeypatch.setattr(f"weftwork.study.pool.{module}.executor_of", _executor_here)
