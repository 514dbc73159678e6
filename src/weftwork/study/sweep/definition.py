"""The definition of a sweep.

It is from the section ``sweep`` of a scenario file, and from ``--set KEY=VALUE,VALUE``.

Every mistake is found at once, with its line. Leaves out: whether a key and its values are right, which the reader of
scenarios judges for every point (`weftwork.study.sweep.points`).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from weftwork.base.errors import ConfigError, Mistake
from weftwork.base.findings import Findings
from weftwork.base.grammar import plural
from weftwork.base.nearest import nearest
from weftwork.base.plain_file import read_plain
from weftwork.spec.scenario.sweep_keys import SWEEP_KEYS
from weftwork.spec.scenario.yaml_tree import MAX_BYTES, Node, Scalar, read_tree, show
from weftwork.spec.scenario.yaml_tree import Mapping as Tree
from weftwork.spec.scenario.yaml_tree import Sequence as Items

if TYPE_CHECKING:
    from pathlib import Path

    from weftwork.base.fix import Fix

__all__ = ["MOST_POINTS", "Drawn", "SweepDefinition", "read_definition", "split_values"]

MOST_POINTS: Final = 100_000  # chosen: each is a folder of some files, and a file system slows down beyond
_SCALES: Final = ("linear", "log")


@dataclass(frozen=True, kw_only=True, slots=True)
class Drawn:
    """The distribution of a key: even between two numbers, or a choice.

    Attributes
    ----------
    low, high : numbers, where it is a range
    is_log : whether the logarithm is drawn evenly
    is_whole : whether only whole numbers are drawn, as where both ends are whole
    choices : texts, where it is one of them
    """

    low: float = 0.0
    high: float = 0.0
    is_log: bool = False
    is_whole: bool = False
    choices: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class SweepDefinition:
    """Every combination of the parts: grid, zipped keys, list and random samples.

    Attributes
    ----------
    grid : key to texts of its values; every combination
    zipped : key to texts of its values, all of one length; the first of each together, then the second, and so on
    listed : points written out, each with texts by key
    drawn : keys that are drawn at random
    samples, sample_seed : how many draws, and the seed that they follow from
    seeds : runs of each point; None where the file says nothing
    by : number of the summary by which points are judged; None where the file says nothing
    within : key whose values are no choice; None where the file says nothing
    """

    grid: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    zipped: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    listed: tuple[Mapping[str, str], ...] = ()
    drawn: Mapping[str, Drawn] = field(default_factory=dict)
    samples: int = 0
    sample_seed: int = 1
    seeds: int | None = None
    by: str | None = None
    within: str | None = None

    @property
    def points(self) -> int:
        """Number of points."""
        count = max(1, len(self.listed)) * max(1, self.samples)
        count *= max(1, len(next(iter(self.zipped.values()), ())))
        for values in self.grid.values():
            count *= len(values)
        return count


def split_values(text: str) -> list[str]:
    """Split the values of ``--set KEY=`` at commas outside brackets and quotes.

    Examples
    --------
    >>> split_values("dcqcn,none"), split_values("[2,1],[4,1]"), split_values("{name: dcqcn, g: 0.1},none")
    (['dcqcn', 'none'], ['[2,1]', '[4,1]'], ['{name: dcqcn, g: 0.1}', 'none'])
    """
    found, depth, quote, start = [], 0, "", 0
    for place, letter in enumerate(text):
        if quote:
            quote = "" if letter == quote else quote
        elif letter in "'\"":
            quote = letter
        elif letter in "[{":
            depth += 1
        elif letter in "]}":
            depth -= 1
        elif letter == "," and depth == 0:
            found.append(text[start:place])
            start = place + 1
    return [part.strip() for part in (*found, text[start:])]


def read_definition(file: Path, settings: Mapping[str, str]) -> SweepDefinition:
    """Read the definition of a sweep.

    Parameters
    ----------
    file : the scenario, with or without a section ``sweep``
    settings : key to the values behind ``--set``, which become part of the grid, in place of the section's

    Raises
    ------
    ConfigError : with all mistakes of section and settings
    """
    reader = _SectionReader()
    section = _section(file)
    found = reader.section(section) if section is not None else SweepDefinition()
    given = {key: tuple(split_values(text)) for key, text in settings.items()}
    for key, values in given.items():
        label = f"--set {key}"
        if len(set(values)) < len(values):
            reader.wrong(label, f"found a value twice in '{','.join(values)}'")
        if "" in values and len(values) > 1:
            reader.wrong(label, f"found an empty value between two commas in '{','.join(values)}'")
        if key in found.zipped or key in found.drawn or any(key in point for point in found.listed):
            reader.wrong(label, "is varied by the section sweep of the file, but not by its grid; change it there")
    grid = {**found.grid, **given}
    made = SweepDefinition(
        grid=grid, zipped=found.zipped, listed=found.listed, drawn=found.drawn, samples=found.samples,
        sample_seed=found.sample_seed, seeds=found.seeds, by=found.by, within=found.within,
    )  # fmt: skip
    if not reader.mistakes and made.points > MOST_POINTS:
        reader.wrong("sweep", f"found {plural(made.points, 'point')}, wanted at most {MOST_POINTS:,}")
    if not reader.mistakes and not (grid or found.zipped or found.listed or found.drawn):
        reader.wrong(
            "--set",
            "missing: nothing to sweep over; give --set KEY=VALUE,VALUE, such as fabric.oversubscription=1,2,4,"
            " or a section sweep in the file",
        )
    if reader.mistakes:
        raise ConfigError(str(file), reader.mistakes)
    return made


def _section(file: Path) -> Tree | Node | None:
    """The section ``sweep`` of a file.

    None without it, or if the reader of scenarios will report the mistake.
    """
    try:
        text = read_plain(file, MAX_BYTES + 1).decode("utf-8-sig")
    except (OSError, ValueError):
        return None
    root = read_tree(text, Findings())
    entry = root.get("sweep") if isinstance(root, Tree) else None
    return None if entry is None else entry.node


class _SectionReader:
    """A reader of the section, which collects mistakes."""

    def __init__(self) -> None:
        self.mistakes: list[Mistake] = []

    def wrong(self, path: str, text: str, node: Node | None = None, fix: Fix | None = None) -> None:
        line = None if node is None else node.line
        self.mistakes.append(Mistake(path=path, text=text, line=line, fix=fix))

    def section(self, node: Node) -> SweepDefinition:
        parts: dict[str, Any] = {}
        for key, value in self._entries(node, "sweep", "a mapping with grid, zip, list or random"):
            match key:
                case "grid":
                    parts["grid"] = self._lists(value, "sweep.grid")
                case "zip":
                    parts["zipped"] = self._zipped(value)
                case "list":
                    parts["listed"] = self._listed(value)
                case "random":
                    parts |= self._random(value)
                case "seeds":
                    parts["seeds"] = self._whole(value, "sweep.seeds", 1)
                case "by" | "within":
                    parts[key] = value.text if isinstance(value, Scalar) else None
                    if not parts[key]:
                        wanted = "a number such as iteration_ps" if key == "by" else "a key such as training.model"
                        self.wrong(f"sweep.{key}", f"found {show(value)}, wanted {wanted}", value)
                case _:
                    wanted = ", ".join(SWEEP_KEYS)
                    self.wrong(f"sweep.{key}", f"unknown key; wanted {wanted}", value, nearest(key, SWEEP_KEYS))
        self._refuse_twice(parts, node)
        return SweepDefinition(**parts)

    def _refuse_twice(self, parts: Mapping[str, Any], node: Node) -> None:
        seen: dict[str, str] = {}
        listed = {key for point in parts.get("listed", ()) for key in point}
        of = {"grid": parts.get("grid", {}), "zip": parts.get("zipped", {}), "list": listed}
        for part, keys in (*of.items(), ("random", parts.get("drawn", {}))):
            for key in sorted(keys):
                if key in seen:
                    self.wrong(f"sweep.{part}.{key}", f"is varied by sweep.{seen[key]} already", node)
                seen.setdefault(key, part)

    def _entries(self, node: Node, path: str, wanted: str) -> list[tuple[str, Node]]:
        if not isinstance(node, Tree) or not node.entries:
            self.wrong(path, f"found {show(node)}, wanted {wanted}", node)
            return []
        return [(entry.key, entry.node) for entry in node.entries]

    def _lists(self, node: Node, path: str) -> dict[str, tuple[str, ...]]:
        found = {}
        for key, value in self._entries(node, path, "a mapping of keys to lists of values"):
            if not isinstance(value, Items) or not value.items:
                self.wrong(f"{path}.{key}", f"found {show(value)}, wanted a list such as [1, 2, 4]", value)
                continue
            found[key] = tuple(_text(item) for item in value.items)
            if path == "sweep.grid" and len(set(found[key])) < len(found[key]):
                self.wrong(f"{path}.{key}", "found a value twice", value)
        return found

    def _zipped(self, node: Node) -> dict[str, tuple[str, ...]]:
        found = self._lists(node, "sweep.zip")
        if len({len(values) for values in found.values()}) > 1:
            told = ", ".join(f"{len(values)} of {key}" for key, values in found.items())
            self.wrong("sweep.zip", f"found {told}, wanted the same number of values for each key", node)
        return found

    def _listed(self, node: Node) -> tuple[dict[str, str], ...]:
        if not isinstance(node, Items) or not node.items:
            self.wrong("sweep.list", f"found {show(node)}, wanted a list of points, each {{KEY: VALUE, ...}}", node)
            return ()
        found = [
            {key: _text(value) for key, value in self._entries(item, f"sweep.list.{place}", "{KEY: VALUE, ...}")}
            for place, item in enumerate(node.items)
        ]
        for place, point in enumerate(found):
            if point and point.keys() != found[0].keys():
                text = f"has other keys than the first point ({', '.join(found[0])}), wanted the same"
                self.wrong(f"sweep.list.{place}", text, node.items[place])
        return tuple(found)

    def _random(self, node: Node) -> dict[str, Any]:
        found: dict[str, Any] = {"samples": 0}
        for key, value in self._entries(node, "sweep.random", "a mapping with samples, seed and keys"):
            at = f"sweep.random.{key}"
            if key == "samples":
                found["samples"] = self._whole(value, at, 1)
            elif key == "seed":
                found["sample_seed"] = self._whole(value, at, 0)
            elif key == "keys":
                entries = self._entries(value, at, "a mapping of keys to {low: .., high: ..} or a list of choices")
                found["drawn"] = {name: self._drawn(inner, f"{at}.{name}") for name, inner in entries}
            else:
                known = ("samples", "seed", "keys")
                self.wrong(at, f"unknown key; wanted {', '.join(known)}", value, nearest(key, known))
        for key, name in (("samples", "samples"), ("keys", "drawn")):
            if not found.get(name) and not self.mistakes:
                self.wrong(f"sweep.random.{key}", "missing", node)
        return found

    def _drawn(self, node: Node, path: str) -> Drawn:
        if isinstance(node, Items) and node.items:
            return Drawn(choices=tuple(_text(item) for item in node.items))
        values = {
            key: inner.value if isinstance(inner, Scalar) else None
            for key, inner in self._entries(node, path, "a list of choices or {low: .., high: .., scale: log}")
        }
        for key in values.keys() - {"low", "high", "scale"}:
            self.wrong(f"{path}.{key}", "unknown key; wanted low, high, scale", node)
        low, high = _number(values.get("low")), _number(values.get("high"))
        scale = values.get("scale", "linear")
        if scale not in _SCALES:
            self.wrong(f"{path}.scale", f"found '{scale}', wanted {' or '.join(_SCALES)}", node)
        if low is None or high is None or low >= high or (scale == "log" and low <= 0):
            above = " above 0" if scale == "log" else ""
            self.wrong(path, f"found {show(node)}, wanted low and high, two numbers{above}, the lower one first", node)
            return Drawn()
        is_whole = isinstance(low, int) and isinstance(high, int)
        return Drawn(low=float(low), high=float(high), is_log=scale == "log", is_whole=is_whole)

    def _whole(self, node: Node, path: str, least: int) -> int:
        value = node.value if isinstance(node, Scalar) else None
        if not isinstance(value, int) or isinstance(value, bool) or value < least:
            self.wrong(path, f"found {show(node)}, wanted a whole number from {least}", node)
            return least
        return value


def _number(value: object) -> int | float | None:
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None


def _text(node: Node) -> str:
    """A value in the form of ``--set``: YAML in one line."""
    match node:
        case Scalar():
            is_plain = node.plain and not any(letter in node.text for letter in ",[]{}#\n")
            return node.text if is_plain and ": " not in node.text else json.dumps(node.text)
        case Items():
            return f"[{', '.join(map(_text, node.items))}]"
        case Tree():
            return f"{{{', '.join(f'{entry.key}: {_text(entry.node)}' for entry in node.entries)}}}"
