"""Questions that worker processes answer: in their order, with errors, and after a worker has died."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
from helpers.answers import dying, refused, squared

from weftwork.base.errors import ConfigError, EngineError
from weftwork.study.pool.side_by_side import Workers, worker_processes


@pytest.fixture(scope="module", params=[1, 2])
def workers(request: pytest.FixtureRequest) -> Iterator[Workers]:
    """Processes that answer several tests."""
    with worker_processes(request.param) as workers:
        yield workers


def test_answers_come_in_the_order_of_the_questions(workers: Workers) -> None:
    found = list(workers.answers(squared, range(20)))
    assert [square for square, _ in found] == [number * number for number in range(20)]
    assert ({pid for _, pid in found} == {os.getpid()}) == (workers.count == 1)


def test_who_stops_asking_ends_the_workers_without_a_word(capfd: pytest.CaptureFixture[str]) -> None:
    with worker_processes(2) as workers:
        first = next(iter(workers.answers(squared, range(1_000))))
    assert first[0] == 0
    assert capfd.readouterr().err == ""


def test_an_error_is_the_error_of_its_question(workers: Workers) -> None:
    answers = workers.answers(refused, range(5))
    assert [next(answers) for _ in range(3)] == [0, 1, 2]
    with pytest.raises(ConfigError, match="found 3, wanted less than 3"):
        next(answers)


def test_a_worker_that_dies_is_an_error_that_tells_what_to_do() -> None:
    with worker_processes(2) as workers, pytest.raises(EngineError, match="use fewer processes"):
        list(workers.answers(dying, range(2)))
