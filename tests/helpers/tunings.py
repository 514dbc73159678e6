"""Tunings without Optuna and, where wanted, without an engine: samplers of a few lines, and runs that are a formula."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any
from unittest import mock

from weftwork.study.pool.pool import Task
from weftwork.study.pool.work import PoolOutcome
from weftwork.study.record.point import PoolPoint
from weftwork.study.tune.parameters import TuneSpace
from weftwork.study.tune.trials import Asked, Runs, Tried

__all__ = ["RandomSampler", "formula", "here"]

Formula = Callable[[Mapping[str, str], int], float | None]


class RandomSampler:
    """Draws every place evenly, and keeps what it was asked and told."""

    label = "random"

    def __init__(self, space: TuneSpace, seed: int = 1) -> None:
        self._space = space
        self._draw = random.Random(seed)
        self.heard: list[tuple[str, object]] = []

    def ask(self) -> tuple[int, Mapping[str, float]]:
        number = sum(name == "ask" for name, _ in self.heard)
        self.heard.append(("ask", number))
        return number, {
            one.key: float(self._draw.randrange(len(one.choices))) if one.choices else self._draw.random()
            for one in self._space.keys
        }

    def tell(self, asked: int, score: float | None) -> None:
        self.heard.append(("tell", (asked, score)))

    def add(self, places: Mapping[str, float], score: float) -> None:
        self.heard.append(("add", (dict(places), score)))


def here(points: Sequence[PoolPoint], runs: Path, workers: int, task: Task) -> Iterator[PoolOutcome]:
    """Run the points of a pool in this process."""
    del workers
    for point in points:
        yield task(point, runs / point.folder)


def formula(values: Formula, asked: list[tuple[str, int, tuple[int, ...]]] | None = None, **others: Formula) -> Any:
    """In place of every run a number: ``completion_ps`` of its settings and seed; None: the run is refused.

    Parameters
    ----------
    values : of the settings that a trial changes, and the seed from 0
    asked : collects folder, number and seeds of each choice
    others : further numbers of the summary
    """

    def run(self: Runs, wanted: Sequence[Asked], folder: Path, *, first_seed: int, seeds: int) -> list[Tried]:
        found = []
        for one in wanted:
            span = range(first_seed, first_seed + seeds)
            if asked is not None:
                asked.append((folder.name, one.number, tuple(span)))
            self.ended += len(self.files) * seeds
            known = {"completion_ps": values, **others}
            numbers = [
                {name: {"value": of(one.settings, seed), "unit": _unit(name), "text": ""} for name, of in known.items()}
                for seed in span
            ]
            if any(numbers[0][name]["value"] is None for name in known):
                found.append(Tried(status="refused", reason="the formula says no"))
            else:
                found.append(Tried(status="complete", numbers=tuple(tuple(numbers) for _ in self.files)))
        return found

    return mock.patch.object(Runs, "run", run)


def _unit(name: str) -> str:
    return "ps" if name.endswith("_ps") else "b/s" if name.endswith("_bps") else "count"
