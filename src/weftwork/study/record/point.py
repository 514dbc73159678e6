"""A point of a pool: a scenario file with overrides and seed.

It becomes one run folder.

Its folder is named for its place and for a digest of all that its result follows from, so that a folder of another
scenario, another policy or another version is never taken for it.
Leaves out: files that a Python file of the user's own imports or reads itself; the digest does not see them.
"""

from __future__ import annotations

import hashlib
import json
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

import yaml

from weftwork.base.version import VERSION
from weftwork.spec.scenario.written import dump
from weftwork.study.answer.suspects import OPTION
from weftwork.study.prepare.engine_settings import policies_of
from weftwork.study.prepare.estimate import amounts_asked, estimate
from weftwork.study.prepare.prepare import read_scenario

if TYPE_CHECKING:
    from weftwork.spec.scenario.scenario import Scenario
    from weftwork.study.answer.worlds import Extent

__all__ = ["PoolPoint", "memory_of", "points_of", "scenario_of"]

_DIGITS: Final = 16  # chosen: 64 bits; two of 100,000 points of one place never agree by chance


@dataclass(frozen=True, kw_only=True, slots=True)
class PoolPoint:
    """A run to be done.

    Attributes
    ----------
    place : number in the pool, which orders the folders
    file, overrides, seed : what is run
    digest : of all that the result follows from
    what_if, user_code : as `weftwork.study.record.run.run_scenario` and `read_scenario` take them
    suspects : Python files of a user's own, each with a kind of suspect
    """

    place: int
    file: Path
    seed: int
    digest: str
    overrides: Mapping[str, str] = field(default_factory=dict)
    what_if: Extent = "none"
    user_code: bool = True
    suspects: tuple[str, ...] = ()

    @property
    def folder(self) -> str:
        """Name of the point's run folder."""
        return f"{self.place:06d}-{self.digest[:_DIGITS]}"

    @property
    def command(self) -> str:
        """The command that runs the point alone."""
        settings = [f"--set={key}={text}" for key, text in self.overrides.items()]
        asked = [f"{OPTION}={file}" for file in self.suspects]
        return shlex.join(["weftwork", "run", str(self.file), *settings, *asked, f"--seed={self.seed}"])


def points_of(
    first: int,
    scenario: Scenario,
    file: Path,
    overrides: Mapping[str, str],
    *,
    seeds: range,
    what_if: Extent = "none",
    user_code: bool = True,
    suspects: tuple[str, ...] = (),
) -> list[PoolPoint]:
    """Points of a scenario, one for each seed.

    Parameters
    ----------
    first : place of the first of them
    scenario : as `read_scenario` has read it from file and overrides
    file, overrides, what_if, user_code, suspects : as a point keeps them
    seeds : in place of engine.seed
    """
    base = _base(scenario, suspects)
    return [
        PoolPoint(
            place=first + place,
            file=file,
            overrides=overrides,
            seed=seed,
            digest=_digest(base, seed),
            what_if=what_if,
            user_code=user_code,
            suspects=suspects,
        )
        for place, seed in enumerate(seeds)
    ]


def scenario_of(point: PoolPoint) -> Scenario | None:
    """Read the scenario of a point again.

    None if it has changed since the point was made.

    Raises
    ------
    ConfigError, CodeError : it cannot be read any more
    """
    scenario = _seeded(read_scenario(point.file, point.overrides, user_code=point.user_code), point.seed)
    return scenario if _digest(_base(scenario, point.suspects), point.seed) == point.digest else None


def memory_of(scenario: Scenario) -> int:
    """Memory of a run of a scenario, estimated from its keys.

    Raises
    ------
    ConfigError, CodeError : the fabric cannot be
    """
    return estimate(scenario, amounts_asked(scenario)).memory_bytes


def _seeded(scenario: Scenario, seed: int) -> Scenario:
    return scenario.model_copy(update={"engine": scenario.engine.model_copy(update={"seed": seed})})


def _files(value: object) -> Iterator[str]:
    """Files that a resolved scenario names, by absolute paths.

    They are a fabric, a model, sizes of flows, and Python files.
    """
    if isinstance(value, dict | list):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from _files(inner)
    elif isinstance(value, str) and Path(value).is_absolute() and Path(value).is_file():
        yield value


def _hash(file: str) -> str:
    """SHA-256 of the content of a file."""
    return hashlib.sha256(Path(file).read_bytes()).hexdigest()


def _digest(base: str, seed: int) -> str:
    """SHA-256 of a scenario with a seed.

    The rest of the scenario is read once for all seeds.
    """
    return hashlib.sha256(f"{base} {seed}".encode()).hexdigest()


def _base(scenario: Scenario, suspects: Sequence[str]) -> str:
    """Version, resolved scenario without seed, its files, policies, and files of suspects, as text."""
    text = dump(_seeded(scenario, 0))
    document = {
        "weftwork": VERSION,
        "scenario": text,
        "files": {file: _hash(file) for file in _files(yaml.safe_load(text))},
        "policies": {kind: policy.hash for kind, policy in policies_of(scenario).items()},
    }
    if suspects:
        document["suspects"] = [_hash(file) for file in suspects]
    return json.dumps(document, sort_keys=True)
