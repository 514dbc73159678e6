"""The list of plausible mistakes: `*.toml` beside this file, one file for each floor, two for the native engines, and
one for the invariants of the packet engine.

An entry says which text of which file is replaced by what (`old` occurs exactly once), what mistake that is in plain
words, and which tests should see it. `[[mutant.also]]` makes the same mistake in another file, as where both packet
engines share it, so that they agree. `invariant` names the one that has to notice a mistake in the core.
Leaves out: how a mistake is tried, which is `run.py`.
"""

from __future__ import annotations

import tomllib
from collections import Counter
from dataclasses import dataclass, fields
from pathlib import Path

__all__ = ["FEWEST", "LISTS", "ROOT", "Change", "Mutant", "list_mistakes", "read_mutants"]

ROOT = Path(__file__).parents[2]
FEWEST = 80  # chosen: what the step was asked to have at least
# Floors, by the name of their package, and the two native engines and their invariants, of the floor `engine`.
LISTS = (
    "base", "spec", "wire", "policies", "hardware", "store", "data", "topology", "workload", "transports", "engine",
    "packet_core", "invariants", "flow_core", "rdma", "study", "report", "testing", "templates", "compat", "cli",
)  # fmt: skip
_HINT = "the code has changed, so change `old` and `new` with it, or take another mistake of its kind"


@dataclass(frozen=True, kw_only=True, slots=True)
class Change:
    """What happens to one file.

    Parameters
    ----------
    file : from the root of the repository
    old, new : text that occurs exactly once in the file, and what stands there in its place
    """

    file: str
    old: str
    new: str


_KEYS = tuple(field.name for field in fields(Change))


@dataclass(frozen=True, kw_only=True, slots=True)
class Mutant:
    """One mistake.

    Parameters
    ----------
    list_name : the TOML file that has it, without its ending
    name : its own, used once
    mistake : what it is, in a sentence
    changes : of one file, or of more that share the mistake
    tests : files, folders or single tests that should see it
    invariant : of the packet engine, whose name their report has to have; None: whatever fails notices the mistake
    """

    list_name: str
    name: str
    mistake: str
    changes: tuple[Change, ...]
    tests: tuple[str, ...]
    invariant: str | None = None

    @property
    def label(self) -> str:
        """Name with its list, as `--only` takes it."""
        return f"{self.list_name}/{self.name}"

    @property
    def is_native(self) -> bool:
        """Whether the core has to be built anew."""
        return any(change.file.startswith("native/") for change in self.changes)


def read_mutants(folder: Path = Path(__file__).parent) -> list[Mutant]:
    """All entries, in the order of `LISTS` and of the files.

    Raises
    ------
    ValueError : a file that is no list, or an entry with other keys
    """
    strangers = sorted({path.stem for path in folder.glob("*.toml")} - set(LISTS))
    if strangers:
        raise ValueError(f"found the lists {', '.join(strangers)}, wanted {', '.join(LISTS)}")
    found = []
    for name in LISTS:
        path = folder / f"{name}.toml"
        rows = tomllib.loads(path.read_text(encoding="utf-8")).get("mutant", []) if path.is_file() else []
        for row in rows:
            also = row.pop("also", [])
            title = f"{path.name}, entry '{row.get('name', '?')}'"
            changes = tuple(_change({key: row.pop(key, None) for key in _KEYS}, title) for row in (row, *also))
            if set(row) - {"invariant"} != {"name", "mistake", "tests"} or any(also):
                raise ValueError(f"{title}: wanted just the keys {', '.join(('name', 'mistake', 'tests', *_KEYS))}")
            found.append(Mutant(list_name=name, changes=changes, **{**row, "tests": tuple(row["tests"])}))
    return found


def _change(row: dict[str, str | None], title: str) -> Change:
    if None in row.values():
        raise ValueError(f"{title}: lacks {', '.join(key for key, value in row.items() if value is None)}")
    return Change(**row)  # type: ignore[arg-type]


def list_mistakes(mutants: list[Mutant], root: Path = ROOT) -> list[str]:
    """What is wrong with the list, each as a sentence that names the entry and says what to do."""
    wrong = []
    texts: dict[Path, str | None] = {}  # many entries change one file
    names = Counter(mutant.name for mutant in mutants)
    changes = Counter(mutant.changes for mutant in mutants)
    for mutant in mutants:
        if names[mutant.name] > 1:
            wrong.append(f"{mutant.label}: the name is used {names[mutant.name]} times")
        if changes[mutant.changes] > 1:
            wrong.append(f"{mutant.label}: another entry makes the same change")
        if any(change.old == change.new for change in mutant.changes):
            wrong.append(f"{mutant.label}: `new` is `old`, so that nothing changes")
        if len({change.file for change in mutant.changes}) < len(mutant.changes):
            wrong.append(f"{mutant.label}: changes a file twice; make one change of the two")
        if not mutant.tests:
            wrong.append(f"{mutant.label}: names no test that should see it")
        wrong += [f"{mutant.label}: {text}" for text in _in_the_tree(mutant, root, texts)]
    if len(mutants) < FEWEST:
        wrong.append(f"found {len(mutants)} entries, wanted at least {FEWEST}")
    lists = {mutant.list_name for mutant in mutants}
    wrong += [f"{name}.toml: has no entry" for name in LISTS if name not in lists]
    return wrong


def _in_the_tree(mutant: Mutant, root: Path, texts: dict[Path, str | None]) -> list[str]:
    """What an entry says of files that is not so."""
    wrong = []
    for change in mutant.changes:
        file = root / change.file
        if file not in texts:
            texts[file] = file.read_text(encoding="utf-8") if file.is_file() else None
        content = texts[file]
        if content is None:
            wrong.append(f"there is no file {change.file}; {_HINT}")
            continue
        times = content.count(change.old)
        if times != 1:
            first = change.old.strip().split("\n")[0].strip()
            wrong.append(f"`old` ({first!r}) occurs {times} times in {change.file}, wanted once; {_HINT}")
    for test in mutant.tests:
        path, *parts = test.split("::")
        if not (root / path).exists():
            wrong.append(f"there is no test {path}; name the file where the test is now")
        elif parts and f"def {parts[-1]}(" not in (root / path).read_text(encoding="utf-8"):
            wrong.append(f"{path} has no {parts[-1]}; name the test as it is called now")
    return wrong
