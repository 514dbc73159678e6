"""Read, parse and import a user's Python file.

Errors name the file and the line. Policies, topologies, traffic patterns, collective algorithms and transports all come
through this door. What it imports runs with all rights of the user; `UserCode` says which files a reader of scenarios
may bring here.
"""

from __future__ import annotations

import ast
import hashlib
import importlib.util
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from enum import Enum, auto
from pathlib import Path
from types import ModuleType

from weftwork.base.errors import CodeError, WeftworkError
from weftwork.base.plain_file import read_plain

__all__ = [
    "TOO_DEEP", "UserCode", "blaming", "imported", "is_in_package", "line_of_constant", "parsed", "text_digest",
    "text_of",
]  # fmt: skip

PACKAGE = Path(__file__).resolve().parents[1]
TOO_DEEP = "nested too deeply to be read; write it as several statements"


class UserCode(Enum):
    """Permission to run Python files that a scenario names."""

    RUN = auto()  # all of them
    TOPOLOGY = auto()  # that of fabric.topology alone; the others are left unread, and keys that may be theirs unjudged
    REFUSED = auto()  # none: each one outside the package is a mistake of the scenario


def is_in_package(path: Path) -> bool:
    """Whether a file lies in Weftwork's package, after resolving links.

    A link in the package may lead out of it.
    """
    return path.resolve().is_relative_to(PACKAGE)


def text_of(path: Path, error: type[CodeError] = CodeError) -> str:
    """Return the text of a file with Unix line ends.

    Raises
    ------
    CodeError : or the given class of it; the file cannot be read, or is not UTF-8
    """
    try:
        content = read_plain(path)
    except OSError as wrong:
        raise error(str(path), 1, f"the file cannot be read: {wrong.strerror}") from wrong
    try:
        return content.decode("utf-8").replace("\r\n", "\n").replace("\r", "\n")
    except UnicodeDecodeError as wrong:
        line = content.count(b"\n", 0, wrong.start) + 1
        raise error(str(path), line, "a byte that is not UTF-8; save the file as plain UTF-8 text") from wrong


def parsed(path: Path, source: str, error: type[CodeError] = CodeError) -> ast.Module:
    """Parse the text of a file.

    Raises
    ------
    CodeError : or the given class of it; the text is not Python
    """
    shown = str(path)
    try:
        return ast.parse(source, shown)
    except SyntaxError as wrong:
        raise error(shown, wrong.lineno or 1, f"this is not Python: {wrong.msg}") from wrong
    except ValueError as wrong:
        raise error(shown, 1, f"this is not Python: {wrong}") from wrong
    except (RecursionError, MemoryError) as wrong:  # the parser's own limits
        raise error(shown, 1, TOO_DEEP) from wrong


def imported(path: Path, source: str, error: type[CodeError] = CodeError) -> ModuleType:
    """Import a parsed text as a module; a changed text is a new module.

    Raises
    ------
    CodeError : or the given class of it; the name does not end in ``.py``, or the file raises
    """
    name = f"weftwork_user_{text_digest(str(path), source)[:32]}"
    if name in sys.modules:
        return sys.modules[name]
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None:
        raise error(str(path), 1, "the name of a Python file ends in .py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses look a class's module up here
    try:
        with blaming(path, error):
            exec(compile(source, str(path), "exec"), vars(module))  # noqa: S102 - the user's own file
    except WeftworkError:
        del sys.modules[name]
        raise
    return module


@contextmanager
def blaming(path: Path, error: type[CodeError] = CodeError) -> Iterator[None]:
    """Turn an exception of a user's file into an error with file and line.

    Errors that Weftwork raises on purpose, such as a `ConfigError` of the file itself, pass unchanged.
    """
    try:
        yield
    except WeftworkError:
        raise
    except Exception as wrong:  # whatever the user's own file raises is that file's mistake, told with its line
        mine = [f.lineno for f in traceback.extract_tb(wrong.__traceback__) if f.filename == str(path)]
        raise error(str(path), (mine[-1] if mine else None) or 1, f"{type(wrong).__name__}: {wrong}") from wrong


def line_of_constant(tree: ast.Module, name: str) -> int:
    """Return the line that assigns a constant, or 1."""
    for node in tree.body:
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        if any(isinstance(target, ast.Name) and target.id == name for target in targets):
            return node.lineno
    return 1


def text_digest(*parts: str) -> str:
    """SHA-256 of several texts, in hexadecimal."""
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()
