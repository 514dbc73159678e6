"""Seeds with which a random test has failed once: tests/seeds.toml. They are run first, and new failures are added."""

from __future__ import annotations

import subprocess
import tomllib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

__all__ = ["KeptSeed", "in_order", "keep_seed", "kept_first", "kept_seeds"]

SEEDS = Path(__file__).parents[1] / "seeds.toml"
_KEYS = {"of", "number", "family", "commit"}


@dataclass(frozen=True, kw_only=True, slots=True)
class KeptSeed:
    """A seed that once failed.

    Parameters
    ----------
    of : step or file of tests
    number : the seed, or the number of the case
    family : kind of cases; empty where the test has one kind
    commit : of the tree that failed
    """

    of: str
    number: int
    family: str = ""
    commit: str


def kept_seeds(of: str, path: Path = SEEDS) -> list[KeptSeed]:
    """Seeds of a step or of a file of tests.

    Raises
    ------
    ValueError : an entry lacks a key or has another
    """
    rows = tomllib.loads(path.read_text(encoding="utf-8")).get("seed", []) if path.is_file() else []
    for row in rows:
        if not {"of", "number", "commit"} <= set(row) <= _KEYS:
            raise ValueError(
                f"{path.name}: an entry has the keys {', '.join(sorted(row))}; wanted {', '.join(sorted(_KEYS))}"
            )
    return [KeptSeed(**row) for row in rows if row["of"] == of]


def kept_first(of: str, seeds: Iterable[int], path: Path = SEEDS) -> Iterator[int]:
    """Yield the seeds of a random test, those that once failed first; the seed of a loop that is left early is kept.

    Parameters
    ----------
    of : the file of tests, without its ending, or the step
    seeds : all others, in their order
    """
    for seed in in_order(of, seeds, path):
        is_through = False
        try:
            yield seed
            is_through = True
        finally:
            if not is_through:
                keep_seed(of, seed, path=path)


def in_order(of: str, seeds: Iterable[int], path: Path = SEEDS) -> list[int]:
    """Seeds that once failed, then the others."""
    return list(dict.fromkeys([*(seed.number for seed in kept_seeds(of, path)), *seeds]))


def keep_seed(of: str, number: int, family: str = "", path: Path = SEEDS) -> str:
    """Add a seed that failed; returns a sentence that says so."""
    if any((seed.number, seed.family) == (number, family) for seed in kept_seeds(of, path)):
        return f"{path.name} has {of} {number} already"
    head = subprocess.run(
        ["git", "-C", path.parent, "rev-parse", "--short=12", "HEAD"], capture_output=True, text=True, check=False
    )
    lines = ["", "[[seed]]", f'of = "{of}"', f"number = {number}", f'commit = "{head.stdout.strip() or "unknown"}"']
    if family:
        lines.insert(4, f'family = "{family}"')
    with path.open("a", encoding="utf-8") as file:
        file.write("\n".join(lines) + "\n")
    return f"{of} {number} is kept in tests/{path.name}; commit the line with the change that mends it"
