"""The list of plausible mistakes: `*.toml` beside this file, one file for each floor, two for the native engines.

An entry says which text of which file is replaced by what (`old` occurs exactly once), what mistake that is in plain
words, and which tests should see it. Leaves out: how a mistake is tried, which is `run.py`.
"""

from __future__ import annotations

import tomllib
from collections import Counter
from dataclasses import dataclass, fields
from pathlib import Path

__all__ = ["FEWEST", "LISTS", "ROOT", "Mutant", "list_mistakes", "read_mutants"]

ROOT = Path(__file__).parents[2]
FEWEST = 80  # chosen: what the step was asked to have at least
# Floors, by the name of their package, and the two native engines, which belong to the floor `engine`.
LISTS = (
    "base", "spec", "wire", "policies", "hardware", "store", "data", "topology", "workload", "transports", "engine",
    "packet_core", "flow_core", "study", "report", "testing", "cli",
)  # fmt: skip
_HINT = "the code has changed, so change `old` and `new` with it, or take another mistake of its kind"


@dataclass(frozen=True, kw_only=True, slots=True)
class Mutant:
    """One mistake.

    Parameters
    ----------
    list_name : the TOML file that has it, without its ending
    name : its own, used once
    mistake : what it is, in a sentence
    file : that it changes, from the root of the repository
    old, new : text that occurs exactly once in the file, and what stands there in its place
    tests : files, folders or single tests that should see it
    """

    list_name: str
    name: str
    mistake: str
    file: str
    old: str
    new: str
    tests: tuple[str, ...]

    @property
    def label(self) -> str:
        """Name with its list, as `--only` takes it."""
        return f"{self.list_name}/{self.name}"

    @property
    def is_native(self) -> bool:
        """Whether the core has to be built anew."""
        return self.file.startswith("native/")


def read_mutants(folder: Path = Path(__file__).parent) -> list[Mutant]:
    """All entries, in the order of `LISTS` and of the files.

    Raises
    ------
    ValueError : a file that is no list, or an entry with other keys than those of `Mutant`
    """
    strangers = sorted({path.stem for path in folder.glob("*.toml")} - set(LISTS))
    if strangers:
        raise ValueError(f"found the lists {', '.join(strangers)}, wanted {', '.join(LISTS)}")
    wanted = {field.name for field in fields(Mutant)} - {"list_name"}
    found = []
    for name in LISTS:
        path = folder / f"{name}.toml"
        rows = tomllib.loads(path.read_text(encoding="utf-8")).get("mutant", []) if path.is_file() else []
        for row in rows:
            if set(row) != wanted:
                title = f"{path.name}, entry '{row.get('name', '?')}'"
                raise ValueError(f"{title}: found the keys {sorted(row)}, wanted {sorted(wanted)}")
            found.append(Mutant(list_name=name, **{**row, "tests": tuple(row["tests"])}))
    return found


def list_mistakes(mutants: list[Mutant], root: Path = ROOT) -> list[str]:
    """What is wrong with the list, each as a sentence that names the entry and says what to do."""
    wrong = []
    names = Counter(mutant.name for mutant in mutants)
    changes = Counter((mutant.file, mutant.old, mutant.new) for mutant in mutants)
    for mutant in mutants:
        if names[mutant.name] > 1:
            wrong.append(f"{mutant.label}: the name is used {names[mutant.name]} times")
        if changes[mutant.file, mutant.old, mutant.new] > 1:
            wrong.append(f"{mutant.label}: another entry makes the same change")
        if mutant.old == mutant.new:
            wrong.append(f"{mutant.label}: `new` is `old`, so that nothing changes")
        if not mutant.tests:
            wrong.append(f"{mutant.label}: names no test that should see it")
        wrong += [f"{mutant.label}: {text}" for text in _in_the_tree(mutant, root)]
    if len(mutants) < FEWEST:
        wrong.append(f"found {len(mutants)} entries, wanted at least {FEWEST}")
    lists = {mutant.list_name for mutant in mutants}
    wrong += [f"{name}.toml: has no entry" for name in LISTS if name not in lists]
    return wrong


def _in_the_tree(mutant: Mutant, root: Path) -> list[str]:
    """What an entry says of files that is not so."""
    wrong = []
    file = root / mutant.file
    if not file.is_file():
        wrong.append(f"there is no file {mutant.file}; {_HINT}")
    else:
        times = file.read_text(encoding="utf-8").count(mutant.old)
        if times != 1:
            first = mutant.old.strip().split("\n")[0].strip()
            wrong.append(f"`old` ({first!r}) occurs {times} times in {mutant.file}, wanted once; {_HINT}")
    for test in mutant.tests:
        path, *parts = test.split("::")
        if not (root / path).exists():
            wrong.append(f"there is no test {path}; name the file where the test is now")
        elif parts and f"def {parts[-1]}(" not in (root / path).read_text(encoding="utf-8"):
            wrong.append(f"{path} has no {parts[-1]}; name the test as it is called now")
    return wrong
