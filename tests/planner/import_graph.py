"""Which file needs which: imports of Python, names of modules in strings, data beside a module, C++ behind the core.

Read from text alone: nothing is imported. A distance counts imports from a changed file to the file that needs it; 0
is the changed file itself.
Leaves out: what a file reads by a path that it computes.
"""

from __future__ import annotations

import ast
from collections import defaultdict, deque
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

CORE = "src/weftwork/engine/_native.pyi"  # what Python sees of native/
ROOTS = ("src", "tests", "benchmarks")  # folders from which a module is imported by its name
DATA_FOLDERS = ("src", "tests")


class ImportGraph:
    """The files of a tree and which of them need which.

    Parameters
    ----------
    root : the folder of the repository
    files : names of its files, relative to it, with slashes
    """

    def __init__(self, root: Path, files: Iterable[str]) -> None:
        self.files = frozenset(files)
        self.modules = {name: file for file in sorted(self.files) for name in _module_names(file)}
        texts = {
            file: (root / file).read_text(encoding="utf-8")
            for file in self.files
            if file.endswith(".py") and file.startswith(ROOTS)
        }
        needs = {file: self._needs_of(text) for file, text in texts.items()}
        self._add_packages(needs, texts)
        self._add_data(needs)
        self.needed_by: dict[str, set[str]] = defaultdict(set)
        for file, needed in needs.items():
            for each in needed - {file}:
                self.needed_by[each].add(file)

    def distances(self, changed: Iterable[str]) -> Mapping[str, int]:
        """Imports between a changed file and each file that needs it, by file; files that need none are missing."""
        distance = {self._stand_in(file): 0 for file in changed}
        queue = deque(distance)
        while queue:
            file = queue.popleft()
            for user in self.needed_by.get(file, ()):
                if user not in distance:
                    distance[user] = distance[file] + 1
                    queue.append(user)
        return distance

    @staticmethod
    def _stand_in(file: str) -> str:
        return CORE if file.startswith("native/") else file

    def _needs_of(self, text: str) -> set[str]:
        tree = ast.parse(text)
        strings = {
            node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)
        }
        names = imported_names(tree) | {string for string in strings if "." in string}
        return {self.modules[name] for name in names if name in self.modules}

    def _add_packages(self, needs: dict[str, set[str]], texts: Mapping[str, str]) -> None:
        """A file that no import names is found by its folder, so whoever needs the folder needs the file.

        A folder that no import names is found by its name, in a string of a module beside it.
        """
        imported = set().union(*needs.values()) if needs else set()
        shelves: set[str] = set()
        for file in sorted(self.files - imported):
            package = f"{file.rpartition('/')[0]}/__init__.py"
            if file.startswith("src/") and file.endswith(".py") and package in self.files and file != package:
                needs.setdefault(package, set()).add(file)
                shelves.add(package)
        for package in shelves:
            beside, _, word = package.removesuffix("/__init__.py").rpartition("/")
            for other, text in texts.items():
                if other.rpartition("/")[0] == beside and f'"{word}"' in text:
                    needs[other].add(package)

    def _add_data(self, needs: dict[str, set[str]]) -> None:
        """A module needs the tables and texts beside it and below it, where no module lies between."""
        modules_in: dict[str, list[str]] = defaultdict(list)
        for file in needs:
            modules_in[file.rpartition("/")[0]].append(file)
        for file in self.files:
            if file.endswith((".py", ".pyi")) or not file.startswith(DATA_FOLDERS):
                continue
            folder = file.rpartition("/")[0]
            while folder and folder not in modules_in:
                folder = folder.rpartition("/")[0]
            for module in modules_in.get(folder, ()):
                needs[module].add(file)


def imported_names(tree: ast.AST) -> set[str]:
    """Modules that a file imports anywhere in it; of `from x import y` both `x` and `x.y`."""
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names.add(node.module)
            names.update(f"{node.module}.{alias.name}" for alias in node.names)
    return names


def _module_names(file: str) -> list[str]:
    """Names by which a file is imported."""
    if not file.endswith((".py", ".pyi")):
        return []
    for root in ROOTS:
        if file.startswith(f"{root}/"):
            name = file.removeprefix(f"{root}/").rpartition(".")[0].replace("/", ".")
            return [name.removesuffix(".__init__")]
    return []
