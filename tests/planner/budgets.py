"""The steps of `.ci/run` and what each may take: `.ci/steps.toml`, read."""

from __future__ import annotations

import functools
import tomllib
from dataclasses import dataclass
from pathlib import Path

STEPS_FILE = Path(__file__).parents[2] / ".ci/steps.toml"


@dataclass(frozen=True, kw_only=True, slots=True)
class Step:
    """A step of `.ci/run`.

    Parameters
    ----------
    name : of the function in `.ci/run`
    budget_s : seconds on two idle cores
    work_s : CPU seconds for the cases of a deep step, which the planner deals out; 0: the step runs all it has
    says : what the step shows
    """

    name: str
    budget_s: int
    work_s: float
    says: str


@functools.cache
def budgets(path: Path = STEPS_FILE) -> tuple[Step, ...]:
    """The steps in the order in which they are run."""
    document = tomllib.loads(path.read_text(encoding="utf-8"))
    return tuple(
        Step(name=name, budget_s=row["budget_s"], work_s=row.get("work_s", 0.0), says=row["says"])
        for name, row in document["step"].items()
    )


def whole_s(path: Path = STEPS_FILE) -> int:
    """Seconds that `.ci/run` may take on two idle cores."""
    return int(tomllib.loads(path.read_text(encoding="utf-8"))["whole_s"])


def full_s(path: Path = STEPS_FILE) -> int:
    """Seconds that `.ci/run full` may take on two idle cores."""
    return int(tomllib.loads(path.read_text(encoding="utf-8"))["full_s"])
