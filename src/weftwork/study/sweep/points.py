"""The points of a sweep.

Each combination is read and checked before anything runs.

A key that does not exist and a value that no combination makes right stop the sweep; a combination that cannot be is a
point that is refused.
Leaves out: what shows only when a fabric or a job is built; the run of that point says it.
"""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from weftwork.base.errors import ConfigError, Mistake
from weftwork.base.grammar import plural
from weftwork.base.random import Stream, draw, uniform
from weftwork.base.version import VERSION
from weftwork.study.prepare.prepare import read_scenario
from weftwork.study.record.point import memory_of, points_of
from weftwork.study.record.run import MAX_SEED

if TYPE_CHECKING:
    from pathlib import Path

    from weftwork.spec.scenario.scenario import Scenario
    from weftwork.study.answer.worlds import Extent
    from weftwork.study.record.point import PoolPoint
    from weftwork.study.sweep.definition import Drawn, SweepDefinition

__all__ = ["SweepPlan", "combinations", "plan_of"]


@dataclass(frozen=True, kw_only=True, slots=True)
class SweepPlan:
    """A sweep that is ready to run.

    Attributes
    ----------
    name : of the scenario
    values : of each point, text by key
    points : of each point one for each seed; none where it is refused
    refused : place of a point to the reason why it cannot be
    memory_bytes : of the largest run, by its keys
    is_least : whether a run builds programs, which come on top of that memory
    definition : what was asked for
    """

    name: str
    values: tuple[Mapping[str, str], ...]
    points: tuple[tuple[PoolPoint, ...], ...]
    refused: Mapping[int, str]
    memory_bytes: int
    definition: SweepDefinition
    is_least: bool = False

    @property
    def document(self) -> dict[str, Any]:
        """The written description of the sweep.

        Its digest depends on every point.
        """
        digests = [[(point.digest, point.what_if) for point in each] for each in self.points]
        refused = sorted(self.refused.items())
        text = json.dumps([VERSION, [dict(values) for values in self.values], digests, refused])
        return {
            "weftwork": VERSION,
            "name": self.name,
            "digest": sha256(text.encode()).hexdigest(),
            "points": len(self.values),
            "definition": asdict(self.definition),
        }


def combinations(definition: SweepDefinition) -> list[dict[str, str]]:
    """Every point of a sweep, as text by key.

    The last key of the grid varies fastest.
    """
    zipped = [
        dict(zip(definition.zipped, texts, strict=True)) for texts in zip(*definition.zipped.values(), strict=True)
    ]
    drawn = [
        {
            key: _draw(how, definition.sample_seed, sample, number)
            for number, (key, how) in enumerate(_drawn(definition))
        }
        for sample in range(definition.samples)
    ]
    grid = [dict(zip(definition.grid, texts, strict=True)) for texts in itertools.product(*definition.grid.values())]
    parts = (definition.listed or ({},), zipped or [{}], drawn or [{}], grid)
    return [{key: text for part in parts_of for key, text in part.items()} for parts_of in itertools.product(*parts)]


def _drawn(definition: SweepDefinition) -> list[tuple[str, Drawn]]:
    """Drawn keys, by name.

    A draw does not depend on their order in the file.
    """
    return sorted(definition.drawn.items())


def _draw(how: Drawn, seed: int, sample: int, number: int) -> str:
    share = uniform(draw(seed, Stream.SWEEP, sample, number, 0))
    if how.choices:
        return how.choices[int(share * len(how.choices))]
    if how.is_whole and not how.is_log:
        return str(int(how.low) + int(share * (how.high - how.low + 1)))
    if how.is_log:
        value = math.exp(math.log(how.low) + share * (math.log(how.high) - math.log(how.low)))
    else:
        value = how.low + share * (how.high - how.low)
    return str(round(value)) if how.is_whole else f"{value:.6g}"


def plan_of(
    file: Path,
    definition: SweepDefinition,
    *,
    seeds: int,
    what_if: Extent = "none",
    user_code: bool = True,
    suspects: tuple[str, ...] = (),
) -> SweepPlan:
    """Read the scenario of every point.

    Parameters
    ----------
    file : the scenario
    definition : what is varied
    seeds : runs of each point, from its engine.seed on
    what_if, user_code : as `weftwork.study.record.run.run_scenario` takes them
    suspects : Python files of a user's own, by absolute paths, each with a kind of suspect

    Raises
    ------
    ConfigError : with all mistakes that no combination avoids
    CodeError : a Python file of the user's own is wrong
    """
    values = combinations(definition)
    made: list[tuple[PoolPoint, ...]] = []
    wrong: dict[int, tuple[Mistake, ...]] = {}
    memory_bytes, is_least, name = 0, False, file.stem
    for place, texts in enumerate(values):
        overrides = {"sweep": "null", **texts}
        try:
            scenario = read_scenario(file, overrides, user_code=user_code)
            seeded = _seeds(scenario, seeds)
            memory_bytes = max(memory_bytes, memory_of(scenario))
            is_least = is_least or scenario.workload_kind.has_steps
        except ConfigError as error:
            wrong[place] = error.mistakes
            made.append(())
            continue
        name = scenario.name
        made.append(
            tuple(
                points_of(
                    place * seeds,
                    scenario,
                    file,
                    overrides,
                    seeds=seeded,
                    what_if=what_if,
                    user_code=user_code,
                    suspects=suspects,
                )
            )
        )
    fatal = _fatal(wrong, values, definition)
    if fatal:
        raise ConfigError(str(file), fatal)
    return SweepPlan(
        name=name,
        values=tuple(values),
        points=tuple(made),
        refused={place: "; ".join(f"{m.path}: {m.text}" for m in mistakes) for place, mistakes in wrong.items()},
        memory_bytes=memory_bytes,
        is_least=is_least,
        definition=definition,
    )


def _seeds(scenario: Scenario, seeds: int) -> range:
    """Seeds of the runs of a point, from its engine.seed on."""
    first = scenario.engine.seed
    if not 0 < seeds <= MAX_SEED - first:
        text = f"found {plural(seeds, 'seed')} from {first} on, wanted at least one, and none above {MAX_SEED}"
        raise ConfigError(scenario.source, [Mistake(path="--seeds", text=text)])
    return range(first, first + seeds)


def _fatal(
    wrong: Mapping[int, tuple[Mistake, ...]], values: list[dict[str, str]], definition: SweepDefinition
) -> list[Mistake]:
    """Mistakes of every point, and of all points of a value."""
    where: dict[str, set[int]] = {}
    for place, mistakes in wrong.items():
        for mistake in mistakes:
            where.setdefault(mistake.path, set()).add(place)
    found: dict[tuple[str, str], Mistake] = {}
    for place, mistakes in wrong.items():
        for mistake in mistakes:
            key = mistake.path.removeprefix("--set ")
            same = list(range(len(values)))
            if key in values[place] and key not in definition.drawn:
                same = [other for other, texts in enumerate(values) if texts[key] == values[place][key]]
            if where[mistake.path].issuperset(same) or len(wrong) == len(values):
                found.setdefault((mistake.path, mistake.text), mistake)
    return list(found.values())
