"""Many similar questions in worker processes, answered in order.

Leaves out: runs that leave a folder and can be resumed (`weftwork.study.pool.pool`), and workers that die, which end
the call.
"""

from __future__ import annotations

import os
import signal
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass
from math import inf
from typing import TYPE_CHECKING, Any, Final, TypeVar

from weftwork.base.errors import EngineError
from weftwork.study.pool.work import begin_worker

if TYPE_CHECKING:
    from concurrent.futures import Future

__all__ = ["Workers", "executor_of", "unheard", "worker_processes"]

# A worker has one core, and there is one for each; libraries of linear algebra would start a thread for each core.
_ONE_THREAD: Final = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}

Asked = TypeVar("Asked")
Answer = TypeVar("Answer")


@dataclass(frozen=True, kw_only=True, slots=True)
class Workers:
    """Processes that answer questions.

    Attributes
    ----------
    count : of processes; 1: this process answers itself
    """

    count: int
    _executor: Any = None

    def answers(
        self,
        answer: Callable[[Asked], Answer],
        asked: Sequence[Asked],
        *,
        at_once: int | None = None,
        until_s: float = inf,
    ) -> Iterator[Answer]:
        """Answer each question.

        Parameters
        ----------
        answer : a function of a module, since workers have to find it
        asked : each of them goes to one worker
        at_once : questions that are under way at a time, where memory holds no more; by default one for each worker
        until_s : of `time.monotonic`: no answer but the first is waited for any longer

        Yields
        ------
        the answers in the order of the questions, each when it and those before it are there

        Raises
        ------
        EngineError : a worker died, as where memory runs out
        Exception : of any kind that ``answer`` raises
        """
        if self._executor is None or len(asked) < 2:
            for place, question in enumerate(asked):
                if place and time.monotonic() > until_s:
                    return
                yield answer(question)
            return
        waiting = deque(asked)
        under_way: deque[Future[Answer]] = deque()
        most = self.count if at_once is None else at_once
        has_answered = False
        try:
            while waiting or under_way:
                if under_way and under_way[0].done():
                    yield under_way.popleft().result()
                    has_answered = True
                    continue
                left_s = until_s - time.monotonic() if has_answered else inf
                if left_s <= 0:
                    return
                left = [one for one in under_way if not one.done()]
                while waiting and len(left) < most:
                    with unheard():
                        left.append(self._executor.submit(answer, waiting.popleft()))
                    under_way.append(left[-1])
                wait(left, timeout=None if left_s == inf else left_s, return_when=FIRST_COMPLETED)
        except BrokenExecutor as error:
            text = "a worker process died, perhaps for lack of memory; use fewer processes (-j 1)"
            raise EngineError(text) from error


@contextmanager
def worker_processes(count: int) -> Iterator[Workers]:
    """Start processes, and end them with the body, whatever they do.

    Parameters
    ----------
    count : of processes; with less than two there is none but this one
    """
    if count < 2:
        yield Workers(count=1)
        return
    with executor_of(count) as executor:
        yield Workers(count=count, _executor=executor)


@contextmanager
def executor_of(count: int) -> Iterator[Any]:
    """Start processes as an executor, and end them with the body."""
    from multiprocessing import resource_tracker

    from joblib.externals.loky import ProcessPoolExecutor

    resource_tracker.ensure_running()  # its start lets SIGINT through, and would do so amid `unheard`
    executor = ProcessPoolExecutor(
        max_workers=count, initializer=begin_worker, initargs=(os.getpid(),), env=_ONE_THREAD
    )
    try:
        yield executor
    finally:
        executor.shutdown(wait=True, kill_workers=True)


@contextmanager
def unheard() -> Iterator[None]:
    """Start processes that do not hear Ctrl-C, which a terminal sends to all, also while they load.

    They have the mask of the thread that starts them; `begin_worker` lets them ignore the signal.
    """
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
