"""A folder as a catalogue: each file is a choice.

Each file offers one record as a constant. Listing the names imports nothing; a file is imported when its record is
asked for, and nothing registers itself. A user's own file comes through the same door, by its path. Leaves out:
policies, whose files are compiled and so checked more closely (`weftwork.policies.load`).
"""

from __future__ import annotations

import ast
import importlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property
from importlib.resources import files
from pathlib import Path
from typing import Generic, TypeVar

from weftwork.base.errors import CodeError
from weftwork.base.record_call import check_record_call
from weftwork.base.user_code import blaming, imported, line_of_constant, parsed, text_of

__all__ = ["Folder", "is_path"]

T = TypeVar("T")
W = TypeVar("W")


def is_path(text: str) -> bool:
    """Whether a word of a scenario is a path, not a catalogue name."""
    return text.endswith(".py") or "/" in text


class Folder(Mapping[str, T], Generic[T]):
    """Records by name: the file's name, with ``-`` for ``_``.

    Parameters
    ----------
    kind : what a file of the folder is, such as ``topology``, as ``weftwork list`` names it
    package : the folder, such as ``weftwork.topology.shapes``
    constant : the name under which a file offers its record
    record : the class of the records, or ``module:name`` of one that lives on a higher floor
    """

    def __init__(self, kind: str, *, package: str, constant: str, record: type[T] | str) -> None:
        self.kind = kind
        self.package = package
        self.constant = constant
        self._record = record

    @cached_property
    def paths(self) -> Mapping[str, Path]:
        """Files by name, sorted."""
        root, *below = self.package.split(".")
        folder = Path(str(files(root).joinpath(*below)))
        return {
            file.stem.replace("_", "-"): file for file in sorted(folder.glob("*.py")) if not file.stem.startswith("_")
        }

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the catalogue."""
        return tuple(self.paths)

    def __getitem__(self, name: str) -> T:
        module = importlib.import_module(f"{self.package}.{self.paths[name].stem}")
        record = getattr(module, self.constant)
        if not isinstance(record, self._class):
            wanted = self._class.__name__
            raise TypeError(f"{module.__name__}.{self.constant} is a {type(record).__name__}, wanted a {wanted}")
        return record

    def __iter__(self) -> Iterator[str]:
        return iter(self.paths)

    def __len__(self) -> int:
        return len(self.paths)

    def text(self, label: str) -> str:
        """First line of a file's docstring, which describes the choice.

        Imports nothing.
        """
        path = Path(label) if is_path(label) else self.paths[label]
        tree = ast.parse(path.read_text(encoding="utf-8"))
        return (ast.get_docstring(tree) or "").split("\n", 1)[0]

    def load(self, label: str) -> T:
        """Return the record of a catalogue name or of a user's file.

        Raises
        ------
        KeyError : there is no such name
        CodeError : the user's file is wrong; with file and line
        """
        return self._user(Path(label)) if is_path(label) else self[label]

    @contextmanager
    def blaming(self, label: str) -> Iterator[None]:
        """Context that blames errors of a user's file on its file and line.

        Call what a record offers inside this context.
        """
        if not is_path(label):
            yield
            return
        with blaming(Path(label)):
            yield

    def want(self, label: str, found: object, wanted: type[W], what: str) -> W:
        """Return the object that a file made, if it has the wanted class.

        Raises
        ------
        CodeError : it is not; with the file and the line of the record
        """
        if isinstance(found, wanted):
            return found
        raise self.wrong(label, f"{what} returned a {type(found).__name__}, wanted a {wanted.__name__}")

    def wrong(self, label: str, text: str) -> CodeError:
        """Return an error about the record of a file, with its line."""
        path = Path(label) if is_path(label) else self.paths[label]
        line = line_of_constant(ast.parse(path.read_text(encoding="utf-8")), self.constant)
        return CodeError(str(path), line, text)

    def check_fields(self, path: Path, tree: ast.Module) -> None:
        """Refuse a file whose record has unknown or missing fields.

        This check comes before the file is run.

        Raises
        ------
        CodeError : with all wrong fields, each with its line
        """
        check_record_call(path, tree, self.constant, [self._class])

    @cached_property
    def _class(self) -> type[T]:
        if not isinstance(self._record, str):
            return self._record
        module, _, name = self._record.partition(":")
        found: type[T] = getattr(importlib.import_module(module), name)
        return found

    def _user(self, path: Path) -> T:
        source = text_of(path)
        tree = parsed(path, source)
        self.check_fields(path, tree)
        module = imported(path, source)
        wanted = self._class.__name__
        record = getattr(module, self.constant, None)
        if record is None:
            raise CodeError(str(path), 1, f"the file offers no {self.constant} = {wanted}(...)")
        if not isinstance(record, self._class):
            line, found = line_of_constant(tree, self.constant), type(record).__name__
            raise CodeError(str(path), line, f"{self.constant} is a {found}, wanted a {wanted} for a {self.kind}")
        return record
