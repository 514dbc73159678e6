"""The steps of `.ci/run` and what each may take: `.ci/steps.toml`, read."""

from __future__ import annotations

import functools
import tomllib
from dataclasses import dataclass
from pathlib import Path

from planner.history import Change
from planner.plan import TURNS

SHARED = frozenset({"scratch", "cmake_configure", "turn"})  # functions of `.ci/run` that such steps call
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
    touched_by : beginnings of the names of files; a change of none of them leaves the step to its turn; empty: the step
        always runs
    turn : below ``TURNS``, of a step that a change may leave out
    """

    name: str
    budget_s: int
    work_s: float
    says: str
    touched_by: tuple[str, ...] = ()
    turn: int = 0

    def is_run(self, change: Change) -> bool:
        """Whether the step runs at a commit: at its turn, and where the change touches it or is not known."""
        if not self.touched_by or change.changed is None or change.place % TURNS == self.turn:
            return True
        has_new_function = bool({self.name, *SHARED} & change.functions)
        return has_new_function or any(name.startswith(self.touched_by) for name in change.changed)


@functools.cache
def budgets(path: Path = STEPS_FILE) -> tuple[Step, ...]:
    """The steps in the order in which they are run."""
    document = tomllib.loads(path.read_text(encoding="utf-8"))
    return tuple(
        Step(
            name=name,
            budget_s=row["budget_s"],
            work_s=row.get("work_s", 0.0),
            says=row["says"],
            touched_by=tuple(row.get("touched_by", ())),
            turn=row.get("turn", 0),
        )
        for name, row in document["step"].items()
    )


def whole_s(path: Path = STEPS_FILE) -> int:
    """Seconds that `.ci/run` may take on two idle cores."""
    return int(tomllib.loads(path.read_text(encoding="utf-8"))["whole_s"])


def full_s(path: Path = STEPS_FILE) -> int:
    """Seconds that `.ci/run full` may take on two idle cores."""
    return int(tomllib.loads(path.read_text(encoding="utf-8"))["full_s"])
