"""The user's own files that a scenario names, kept in the run folder so that the folder alone can be run again.

The files are read once, before the run, and written from memory. The scenario in the folder names them by relative
paths. A file of Weftwork's own package is named as the catalogue names it. Of several seeds the files lie once, beside
the folders of the seeds; of a sweep once beside the folders of its runs.
Leaves out: what a Python file imports or reads itself; a note names the imported modules.
"""

from __future__ import annotations

import ast
import hashlib
import importlib.util
import sys
import sysconfig
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from weftwork.base.errors import ConfigError
from weftwork.base.folder import Folder, is_path
from weftwork.base.plain_file import read_plain
from weftwork.base.user_code import PACKAGE, is_in_package
from weftwork.policies.load import catalogue
from weftwork.spec.scenario.choices import ALGORITHMS, PATTERNS, SCHEMES, TOPOLOGIES, TRANSPORTS
from weftwork.spec.scenario.policies import POLICY_KINDS
from weftwork.spec.scenario.written import dump, files_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from weftwork.spec.scenario.scenario import Scenario

__all__ = ["FILES", "MOST_BYTES", "KeptFile", "KeptFiles", "kept_files"]

FILES: Final = "files"
MOST_BYTES: Final = 64 * 2**20  # chosen: a fabric of a million links as JSON fits; every run folder gets a copy
_DIGITS: Final = 12  # chosen: 48 bits; two of a few files of one name never agree by chance
_FOLDERS: Final[Mapping[str, Folder[Any]]] = {
    "fabric.topology": TOPOLOGIES,
    "fabric.engineering.scheme": SCHEMES,
    "transport.protocol": TRANSPORTS,
    "traffic.pattern": PATTERNS,
    "collective.algorithm": ALGORITHMS,
}


@dataclass(frozen=True, kw_only=True, slots=True)
class KeptFile:
    """One file of the user's.

    Attributes
    ----------
    file : where it was, an absolute path
    hash : SHA-256 of its content
    size_bytes : of its content
    name : its path within ``files`` of the run folder
    content : what was read; None for a file beyond `MOST_BYTES`, which stays where it is
    """

    file: str
    hash: str
    size_bytes: int
    name: str
    content: bytes | None


@dataclass(frozen=True, kw_only=True, slots=True)
class KeptFiles:
    """The files of one scenario.

    Attributes
    ----------
    by_key : of keys such as ``jobs.0.model``
    catalogue : names of the catalogue, of keys that name a file of the package
    root : how the scenario in a run folder names the folder of the copies: ``files``, or ``../files`` where several
        runs share it
    """

    by_key: dict[str, KeptFile]
    catalogue: dict[str, str]
    root: str = FILES

    def scenario_text(self, scenario: Scenario, given: Mapping[str, str] | None = None) -> str:
        """The scenario as the run folder has it.

        Parameters
        ----------
        scenario : whose files these are
        given : as of `namer`
        """
        return dump(scenario, name_file=self.namer(given))

    def namer(self, given: Mapping[str, str] | None = None) -> Callable[[str, str], str]:
        """What names a file in the run folder, as `weftwork.spec.scenario.written.dump` takes it.

        Parameters
        ----------
        given : names of files that the run folder has besides, by key
        """

        def name(key: str, file: str) -> str:
            if given and key in given:
                return given[key]
            if key in self.catalogue:
                return self.catalogue[key]
            kept = self.by_key[key]
            return file if kept.content is None else f"{self.root}/{kept.name}"

        return name

    def contents(self) -> dict[str, bytes]:
        """What is written, by path within the folder of the copies."""
        return {one.name: one.content for one in self.by_key.values() if one.content is not None}

    def provenance(self) -> dict[str, dict[str, Any]]:
        """Where each file was, its hash and size, and where its copy is; by key."""
        return {
            key: {
                "file": one.file,
                "hash": one.hash,
                "size_bytes": one.size_bytes,
                "kept_as": None if one.content is None else f"{self.root}/{one.name}",
            }
            for key, one in self.by_key.items()
        }

    def notes(self) -> list[str]:
        """What a user should know of the copies, after the run: what is missing, and what has changed meanwhile."""
        said = []
        for file in {one.file: one for one in self.by_key.values()}.values():
            if file.content is None:
                said.append(
                    f"the run folder has no copy of {file.file}, which is larger than {MOST_BYTES // 2**20} MiB: keep "
                    "the file to run the folder again; provenance.json has its hash"
                )
            elif _changed(file):
                said.append(
                    f"{file.file} has changed during the run; the run folder has the file as it was before the run"
                )
            if file.content is not None and file.file.endswith(".py") and (names := _own_modules(file.content)):
                said.append(
                    f"{file.file} imports {', '.join(names)}, which the run folder does not hold: keep that code to "
                    "run the folder again"
                )
        return said


def kept_files(
    scenario: Scenario,
    *,
    without: frozenset[str] = frozenset(),
    besides: Mapping[str, str] | None = None,
    is_shared: bool = False,
) -> KeptFiles:
    """Read the files that a scenario names, and those that a run has besides.

    Parameters
    ----------
    scenario : that was read
    without : keys whose files the run folder has already
    besides : other files of a run, by a key for the provenance; None: none
    is_shared : whether folders of runs that may differ share the copies; their names then begin with their hashes
    """
    by_key: dict[str, KeptFile] = {}
    names: dict[str, str] = {}
    by_file: dict[str, KeptFile] = {}
    for key, file in {**files_of(scenario), **(besides or {})}.items():
        if key in without:
            continue
        if (name := _catalogue_name(key, file)) is not None:
            names[key] = name
            continue
        if file not in by_file:
            taken = {one.name.casefold() for one in by_file.values()}
            by_file[file] = _read(scenario, key, file, taken, is_shared=is_shared)
        by_key[key] = by_file[file]
    return KeptFiles(by_key=by_key, catalogue=names, root=f"../{FILES}" if is_shared else FILES)


def _read(scenario: Scenario, key: str, file: str, taken: set[str], *, is_shared: bool) -> KeptFile:
    path = Path(file)
    try:
        content = read_plain(path)
    except OSError as error:
        text = f"found '{file}', which cannot be read: {error.strerror}"
        raise ConfigError(scenario.source, [scenario.mistake(key, text)]) from error
    digest = hashlib.sha256(content).hexdigest()
    return KeptFile(
        file=file,
        hash=digest,
        size_bytes=len(content),
        name=f"{digest[:_DIGITS]}/{_name(path)}" if is_shared else _distinct(_name(path), taken),
        content=content if len(content) <= MOST_BYTES else None,
    )


def _name(path: Path) -> str:
    """Name of a copy; a model in ``config.json`` is called like its folder, so that folder comes along."""
    name = path.name if path.name.isprintable() else f"file{path.suffix}"
    place = path.parent.name
    is_named = path.stem == "config" and place.isprintable() and place not in {"", ".", ".."}
    return f"{place}/{name}" if is_named else name


def _distinct(name: str, taken: set[str]) -> str:
    """The name, in a folder with a number where another file has it; file systems may not tell cases apart."""
    found, number = name, 2
    while found.casefold() in taken:
        found, number = f"{number}/{name}", number + 1
    return found


def _catalogue_name(key: str, file: str) -> str | None:
    """Name of a file that is a choice of the catalogue; None for any other file."""
    path = Path(file)
    if not is_path(file) or not is_in_package(path):
        return None
    kind = key.rpartition(".")[2]
    if key in _FOLDERS:
        choices = dict(_FOLDERS[key].paths)
    else:
        choices = {entry.name: entry.path for entry in catalogue(kind)} if kind in POLICY_KINDS else {}
    return next((name for name, one in choices.items() if one.resolve() == path.resolve()), None)


def _changed(kept: KeptFile) -> bool:
    try:
        return hashlib.sha256(read_plain(Path(kept.file))).hexdigest() != kept.hash
    except OSError:  # it was taken away
        return True


def _own_modules(content: bytes) -> list[str]:
    """Modules of the user's own that a Python file imports: neither Python's, Weftwork's nor installed ones."""
    installed = [Path(sysconfig.get_path(name)).resolve() for name in ("stdlib", "platstdlib", "purelib", "platlib")]
    found = []
    try:
        tree = ast.parse(content)
    except (SyntaxError, ValueError):  # it was changed since it was imported
        return []
    for name in dict.fromkeys(_imports(tree)):
        if name in sys.stdlib_module_names or name == PACKAGE.name:
            continue
        try:
            spec = importlib.util.find_spec(name)
        except (ImportError, ValueError):  # it is not there, and the file did not need it
            continue
        places = [] if spec is None else [spec.origin, *(spec.submodule_search_locations or ())]
        paths = [Path(place).resolve() for place in places if place]
        if paths and not any(path.is_relative_to(folder) for path in paths for folder in installed):
            found.append(name)
    return found


def _imports(tree: ast.Module) -> Iterator[str]:
    """First parts of the names of all modules that a file imports."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            yield node.module.partition(".")[0]
