"""Compile the steps of a policy file to C functions.

The native engine calls them by pointer. The file is copied into a cache folder, its lines unchanged so that a
compiler's message names the right one, with a footer that turns the step into ``int32 step(void* params, void* state,
void* signal)``, for a receiver with ``void* shared`` before the signal, for a port with ``void* candidates`` after it.
The footer names the parts that the policy imports, with the digest of each.
0 is well, 1 that something was raised inside. The folder's name is a hash of everything that decides the machine code;
a list in it has the digest of every file, so that a damaged one is noticed and compiled again
(``docs/decisions/0005``).
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
import os
import platform
import re
import secrets
import shutil
import sys
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np

from weftwork.base.errors import ConfigError, Mistake, PolicyError
from weftwork.base.plain_file import read_plain
from weftwork.base.stop import unfinished
from weftwork.base.user_code import text_digest
from weftwork.base.version import VERSION
from weftwork.base.whole_file import write_whole
from weftwork.policies.step_file import arithmetic_name, is_part_function, parts_of

if TYPE_CHECKING:
    from weftwork.policies.check import Checked
    from weftwork.policies.step_file import StepFile

__all__ = ["Compiled", "EntryPoint", "cache_folder", "compile_entries"]

_HERE = Path(__file__).parent
_FILE, _LIST = "policy.py", "whole.json"  # the text, and the digest of every file beside it
_OF_THE_KEY = ("arithmetic.py", "compile.py", "compiled_parts.py", "interface.py", "step_file.py")

_FOOTER_HEAD = """

# From here on written by Weftwork: the steps above as C functions.
import numba as _numba
import numpy as _numpy

from weftwork.policies import arithmetic as _arithmetic

"""
_PARTS_HEAD = "from weftwork.policies.compiled_parts import CompiledParts as _CompiledParts"


@dataclass(frozen=True, kw_only=True, slots=True)
class EntryPoint:
    """One step to compile.

    Parameters
    ----------
    name : of the function in the file
    arguments : in order, the dtype of a record, or None for an argument that the policy does not have
    lengths : by the place of an argument that is an array, the field of the signal that is its length
    signal : place of the signal
    left_out : places of arguments that the caller gives and the step does not take
    """

    name: str
    arguments: tuple[np.dtype[np.void] | None, ...]
    lengths: tuple[tuple[int, str], ...] = ()
    signal: int = 0
    left_out: tuple[int, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Compiled:
    """Addresses of compiled steps, valid as long as ``keep_alive``.

    ``receive_address`` is 0 if the policy has no receiver's step.
    """

    step_address: int
    receive_address: int
    keep_alive: tuple[Any, ...]


def cache_folder() -> Path:
    """Folder of compiled policies.

    It is ``$WEFTWORK_CACHE_DIR``, else ``weftwork`` in the user's XDG cache.
    """
    own = os.environ.get("WEFTWORK_CACHE_DIR")
    if own:
        return Path(own)
    shared = os.environ.get("XDG_CACHE_HOME")
    return (Path(shared) if shared else Path.home() / ".cache") / "weftwork"


def compile_entries(file: StepFile, checked: Checked, entries: tuple[EntryPoint, ...]) -> Compiled:
    """Compile the steps of a checked file, or take them from the cache.

    Parameters
    ----------
    file : of the policy
    checked : functions that the steps need
    entries : the step, and the receiver's where there is one

    Raises
    ------
    PolicyError : Numba refuses the step; with the line
    ConfigError : the cache folder cannot be written
    """
    text = file.text + _footer(file, checked, entries)
    compiled = _compiled(Path(file.path), file.text, text)
    made = [getattr(compiled, f"_weftwork_{entry.name}") for entry in entries]
    return Compiled(
        step_address=made[0].address,
        receive_address=made[1].address if len(made) > 1 else 0,
        keep_alive=(compiled, *made),
    )


def _footer(file: StepFile, checked: Checked, entries: tuple[EntryPoint, ...]) -> str:
    lines = []
    parts = parts_of(file.tree)
    if parts:
        lines = [f"# {Path(part.path).name} {text_digest(part.text)}" for part in parts]
        lines += [_PARTS_HEAD, f"_parts = _CompiledParts({sorted(checked.part_functions)!r})"]
    for name, value in sorted(file.namespace.items()):
        replaced = arithmetic_name(value)
        if replaced is not None:
            lines.append(f"{name} = _arithmetic.{replaced}".rstrip("."))
        elif is_part_function(value) and (value.__module__, value.__name__) in checked.part_functions:
            lines.append(f"{name} = _parts.function({value.__module__!r}, {value.__name__!r})")
    lines.append("int = _arithmetic.integer")
    # No Python calls them: without the wrappers that Numba makes for it, a policy compiles in five sixths of the time.
    options = "no_cpython_wrapper=True, no_cfunc_wrapper=True, **_arithmetic.OPTIONS"
    lines += [f"{name} = _numba.njit({options})({name})" for name in sorted(checked.functions)]
    return _FOOTER_HEAD + "\n".join(lines) + "\n" + "".join(_wrapper(entry) for entry in entries)


def _wrapper(entry: EntryPoint) -> str:
    """Text of the C function that calls a step.

    The function puts records over its pointers; the step stands in a block of its own. Inside the block Numba puts a
    check behind every operation, so the records are made before it: a small step then compiles in a third of the time.
    """
    name = entry.name
    pointers, records, passed, lengths = [], [], [], dict(entry.lengths)
    for index, dtype in enumerate(entry.arguments):
        if dtype is None:
            pointers.append("_numba.types.voidptr")
            if index not in entry.left_out:
                passed.append("None")
            continue
        pointers.append(f"_numba.types.CPointer(_numba.from_dtype(_numpy.dtype({dtype.descr!r})))")
        length, first = "1", "[0]"
        if index in lengths:
            length, first = f"_numba.carray(a{entry.signal}, 1)[0].{lengths[index]}", ""
        records.append(f"r{index} = _numba.carray(a{index}, {length}){first}")
        passed.append(f"r{index}")
    names = ", ".join(f"a{index}" for index in range(len(entry.arguments)))
    made = "\n    ".join(records)
    return f"""

@_numba.cfunc(_numba.types.int32({", ".join(pointers)}), cache=True, **_arithmetic.OPTIONS)
def _weftwork_{name}({names}):
    {made}
    try:
        {name}({", ".join(passed)})
    except Exception:
        return 1
    return 0
"""


def _compiled(path: Path, source: str, text: str) -> ModuleType:
    """Compiled module of a text with its footer.

    It comes from this process, else from the cache, else it is compiled and put there. What is in the cache is loaded
    only if it is what was put there, since machine code that is damaged may do anything.
    """
    folder = cache_folder() / "policies" / f"{path.stem}-{_key(text)[:32]}"
    name = f"weftwork_compiled_{folder.name.replace('-', '_')}"
    if name in sys.modules:
        return sys.modules[name]
    if _is_whole(folder, text):
        return _loaded(name, folder, path, source, text)
    try:
        with unfinished(folder.parent / f".new-{secrets.token_hex(4)}") as fresh:
            fresh.mkdir(mode=0o700, parents=True)  # who can write here runs code: docs/security.md
            (fresh / _FILE).write_text(text, encoding="utf-8")
            found = _loaded(name, fresh, path, source, text)
            write_whole(fresh / _LIST, json.dumps(_digests(fresh)))
            _put(fresh, folder, text)
    except OSError as error:
        told = (
            f"the cache of compiled policies cannot be written ({error.strerror}); set WEFTWORK_CACHE_DIR to a folder"
        )
        raise ConfigError(str(folder.parent), [Mistake(path="WEFTWORK_CACHE_DIR", text=told)]) from error
    return found


def _loaded(name: str, folder: Path, path: Path, source: str, text: str) -> ModuleType:
    """Run the text.

    Numba takes the machine code that lies beside it, or compiles and leaves it there.
    """
    import numba  # takes half a second; only a compiled run needs it
    from numba.core.errors import NumbaError

    file = folder / _FILE
    spec = importlib.util.spec_from_file_location(name, file)
    if spec is None:
        raise PolicyError(str(path), 1, "the file's name does not end in .py")
    compiled = importlib.util.module_from_spec(spec)
    sys.modules[name] = compiled
    try:
        exec(compile(text, str(file), "exec"), vars(compiled))  # noqa: S102 - the user's own file, which was checked
    except NumbaError as error:
        del sys.modules[name]
        told = str(error)
        # Numba names every file and line that it passed; those behind the author's own are the footer's.
        lines = [int(line) for line in re.findall(r'File "[^"]*policy\.py", line (\d+)', told)]
        mine = [line for line in lines if line <= source.count("\n") + 1]
        told = f"Numba {numba.__version__} cannot compile this: {' '.join(told.split())}"
        raise PolicyError(str(path), mine[0] if mine else 1, told) from error
    except BaseException:
        del sys.modules[name]
        raise
    return compiled


@lru_cache(maxsize=64)  # chosen: more files than a sweep names; it reads three files and asks for the processor
def _key(text: str) -> str:
    """Hash of all inputs of the machine code, the processor included."""
    import llvmlite.binding
    import numba

    digest = hashlib.sha256(text.encode())
    for name in _OF_THE_KEY:
        digest.update((_HERE / name).read_bytes())
    processor = (llvmlite.binding.get_host_cpu_name(), llvmlite.binding.get_host_cpu_features().flatten())
    versions = (VERSION, numba.__version__, np.__version__, platform.python_version(), *processor)
    digest.update("/".join(versions).encode())
    return digest.hexdigest()


def _digests(folder: Path) -> dict[str, str]:
    """SHA-256 of each file by its relative path, except the list of digests."""
    files = (file for file in sorted(folder.rglob("*")) if file != folder / _LIST and not file.is_dir())
    return {str(file.relative_to(folder)): hashlib.sha256(read_plain(file)).hexdigest() for file in files}


def _is_whole(folder: Path, text: str) -> bool:
    """Whether a cached folder is complete and belongs to this text."""
    try:
        listed = json.loads(read_plain(folder / _LIST))
        return bool(listed == _digests(folder) and listed.get(_FILE) == hashlib.sha256(text.encode()).hexdigest())
    except (OSError, ValueError):  # there is none, or the list is damaged too
        return False


def _put(fresh: Path, folder: Path, text: str) -> None:
    """Give a new folder its name, in place of a damaged one.

    Another process may have been first.
    """
    if _is_whole(folder, text):
        shutil.rmtree(fresh)
        return
    with unfinished(fresh.with_name(f"{fresh.name}-damaged")) as damaged:
        if os.path.lexists(folder):
            folder.rename(damaged)
        try:
            fresh.rename(folder)
        except OSError:
            if not _is_whole(folder, text):
                raise
            shutil.rmtree(fresh)
        if damaged.is_dir():
            shutil.rmtree(damaged)
        else:
            damaged.unlink(missing_ok=True)
