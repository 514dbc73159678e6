"""Prepared changes of the source that add a member to a list that engines read; `additions.toml` has them."""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from pathlib import Path

from mutants.entries import Change

__all__ = ["MOST_FILES", "Addition", "read_additions"]

MOST_FILES = 4  # source files that a new member may take; headers that are written from declarations are none


@dataclass(frozen=True, kw_only=True, slots=True)
class Addition:
    """One new member.

    Parameters
    ----------
    name, text : its own, and what it is
    recipe : words of docs/dev/recipes.md that say how many source files such a member takes
    struct, member : C++ struct and field that it becomes; empty: it is no field
    changes : of source files; one without an old text is a new file
    """

    name: str
    text: str
    recipe: str
    struct: str = ""
    member: str = ""
    changes: tuple[Change, ...]

    @property
    def files(self) -> set[str]:
        """Source files that it takes."""
        return {change.file for change in self.changes}

    def is_field_in(self, text: str) -> bool:
        """Whether a C++ header has the struct with the field."""
        _, _, after = text.partition(f"struct {self.struct} {{\n")
        body, _, _ = after.partition("\n};")
        return re.search(rf" {self.member}(?: = 0)?;$", body, re.MULTILINE) is not None

    def apply(self, root: Path) -> None:
        """Change the files below a root.

        Raises
        ------
        ValueError : a text does not occur once; the code has changed, and so has the addition to
        FileExistsError : a new file is there already
        """
        for change in self.changes:
            path = root / change.file
            if not change.old:
                with path.open("x", encoding="utf-8") as new:
                    new.write(change.new)
                continue
            text = path.read_text(encoding="utf-8")
            if text.count(change.old) != 1:
                raise ValueError(f"{self.name}: {change.old!r} occurs {text.count(change.old)} times in {change.file}")
            path.write_text(text.replace(change.old, change.new), encoding="utf-8")


def read_additions() -> list[Addition]:
    """All of them."""
    rows = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))["addition"]
    return [
        Addition(changes=tuple(Change(**({"old": ""} | each)) for each in row.pop("change")), **row)  # the rest: fields
        for row in rows
    ]
