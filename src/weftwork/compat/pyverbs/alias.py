"""The name ``pyverbs`` for these modules.

Programs say ``import pyverbs.qp``. After `install` that is ``weftwork.compat.pyverbs.qp`` itself, not a second copy.
``python -m weftwork.compat.pyverbs program.py`` installs it, and so does the folder `path_entry` on ``PYTHONPATH``.
Source: Python, importlib (finders and loaders).
Leaves out: nothing.
"""

from __future__ import annotations

import sys
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import ModuleType

__all__ = ["install", "path_entry"]

_NAME: Final = "pyverbs"
_HOME: Final = "weftwork.compat.pyverbs"


class _Alias(Loader):
    """Loads a module of Weftwork under another name."""

    def __init__(self, home: str) -> None:
        self._home: Final = home
        self._spec: ModuleSpec | None = None

    def create_module(self, spec: ModuleSpec) -> ModuleType:  # noqa: ARG002 - the module has a specification
        module = import_module(self._home)
        self._spec = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        module.__spec__ = self._spec  # the import has put that of the alias there


class _Finder(MetaPathFinder):
    """Finds ``pyverbs.X`` where ``weftwork.compat.pyverbs.X`` is."""

    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None,  # noqa: ARG002 - the folder of the package is known
        target: ModuleType | None = None,  # noqa: ARG002 - as the interface has it
    ) -> ModuleSpec | None:
        package, dot, rest = fullname.partition(".")
        if package != _NAME:
            return None
        home = _HOME + dot + rest
        try:
            is_here = find_spec(home) is not None
        except ModuleNotFoundError:  # not even the package that it would be in
            is_here = False
        if not is_here:
            return None
        return ModuleSpec(fullname, _Alias(home), is_package=not dot)


_finder: Final = _Finder()


def install() -> None:
    """Let ``import pyverbs`` find these modules, before any other package of that name."""
    if _finder not in sys.meta_path:
        sys.meta_path.insert(0, _finder)
    sys.modules[_NAME] = import_module(_HOME)


def path_entry() -> Path:
    """Folder for ``PYTHONPATH``: its package ``pyverbs`` calls `install`."""
    return Path(__file__).parent / "on_path"
