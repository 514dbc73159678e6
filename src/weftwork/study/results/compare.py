"""Two runs compared: different keys, and changes of the numbers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import yaml

if TYPE_CHECKING:
    from collections.abc import Sequence

    from weftwork.store.runs import Run

__all__ = ["Comparison", "Difference", "NumberPair", "compare", "flat_keys", "tell_files_apart"]

_DIGITS = 12  # chosen: tells two files apart


@dataclass(frozen=True, kw_only=True, slots=True)
class Difference:
    """A key of the scenario with two values.

    A value is None if a scenario lacks the key.
    """

    key: str
    first: str | None
    second: str | None


@dataclass(frozen=True, kw_only=True, slots=True)
class NumberPair:
    """A number in both runs.

    Attributes
    ----------
    change : second over first, minus 1; None where one is missing or the first is 0
    is_clear : with several seeds on both sides, whether the 95 % intervals do not touch; else None
    """

    name: str
    unit: str
    first: float | None
    second: float | None
    change: float | None
    is_clear: bool | None


@dataclass(frozen=True, kw_only=True, slots=True)
class Comparison:
    """The result of `compare`.

    ``is_same_result`` says that both engines' digests exist and are equal.
    """

    differences: tuple[Difference, ...]
    numbers: tuple[NumberPair, ...]
    is_same_result: bool


def compare(first: Run, second: Run) -> Comparison:
    """Compare two runs.

    Parameters
    ----------
    first, second : runs that were written; the second is measured against the first
    """
    keys_a, keys_b = flat_keys(yaml.safe_load(first.scenario)), flat_keys(yaml.safe_load(second.scenario))
    tell_files_apart((keys_a, keys_b), (first, second))
    differences = tuple(
        Difference(key=key, first=keys_a.get(key), second=keys_b.get(key))
        for key in [*keys_a, *(key for key in keys_b if key not in keys_a)]
        if keys_a.get(key) != keys_b.get(key)
    )
    a, b = first.summary, second.summary
    numbers = tuple(_pair(name, a.get(name), b.get(name)) for name in [*a, *(name for name in b if name not in a)])
    digest = first.provenance.get("digest")
    return Comparison(
        differences=differences,
        numbers=numbers,
        is_same_result=digest is not None and digest == second.provenance.get("digest"),
    )


def _hashes(run: Run) -> dict[str, str]:
    """Hash of each file of the user's own, by its key."""
    files = run.provenance.get("files")
    return {
        key: str(one["hash"])
        for key, one in (files.items() if isinstance(files, dict) else ())
        if isinstance(one, dict) and "hash" in one
    }


def tell_files_apart(keys: Sequence[dict[str, str]], runs: Sequence[Run]) -> None:
    """Put the hash behind a file name with several contents.

    Run folders name their own copies, so that two files of one name would count as equal.

    Parameters
    ----------
    keys : of each run's scenario, by `flat_keys`; changed in place
    runs : the runs
    """
    hashes = [_hashes(run) for run in runs]
    for key in dict.fromkeys(key for own in hashes for key in own):
        # of a policy with parameters the file stands below its key
        ats = [key if key in own else f"{key}.file" for own in keys]
        named: dict[str, set[str]] = {}
        for own, at, known in zip(keys, ats, hashes, strict=True):
            if key in known and at in own:
                named.setdefault(own[at], set()).add(known[key])
        for own, at, known in zip(keys, ats, hashes, strict=True):
            if key in known and at in own and len(named[own[at]]) > 1:
                own[at] += f" (SHA-256 {known[key][:_DIGITS]})"


def _pair(name: str, a: dict[str, Any] | None, b: dict[str, Any] | None) -> NumberPair:
    first = a["value"] if a is not None else None
    second = b["value"] if b is not None else None
    change = second / first - 1 if first and second is not None else None
    is_clear = None
    if a is not None and b is not None and a.get("seeds", 1) > 1 and b.get("seeds", 1) > 1:
        is_clear = a["high"] < b["low"] or b["high"] < a["low"]
    unit = (a or b or {"unit": ""})["unit"]
    return NumberPair(name=name, unit=unit, first=first, second=second, change=change, is_clear=is_clear)


def flat_keys(tree: Any, path: str = "") -> dict[str, str]:  # noqa: ANN401 - whatever YAML holds
    """Dotted keys of a tree that YAML gives, and their texts."""
    if isinstance(tree, dict):
        found: dict[str, str] = {}
        for key, value in tree.items():
            found |= flat_keys(value, f"{path}.{key}" if path else str(key))
        return found
    if isinstance(tree, list) and any(isinstance(item, dict) for item in tree):
        return {
            key: text for index, item in enumerate(tree) for key, text in flat_keys(item, f"{path}.{index}").items()
        }
    return {path: str(tree).lower() if isinstance(tree, bool) else str(tree)}  # as YAML has it
