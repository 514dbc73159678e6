"""``weftwork import``: the scenario of a Megatron-LM job.

It prints which arguments were read.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING

import typer
from rich.text import Text

from weftwork.base.errors import ConfigError, Mistake
from weftwork.base.plain_file import read_plain
from weftwork.base.whole_file import write_whole
from weftwork.cli.console import console
from weftwork.cli.imported import import_document, print_import
from weftwork.cli.settings import overrides
from weftwork.spec.limits import MAX_HOSTS
from weftwork.spec.scenario.yaml_tree import MAX_BYTES
from weftwork.study.imported import digests_of, scenario_of_import, unchanged_import
from weftwork.workload.imports.job_file import read_job_file

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from weftwork.study.imported import ImportedScenario
    from weftwork.workload.imports.megatron import MegatronImport

__all__ = ["UnrunnableImportError", "import_job"]

_YAML = (".yaml", ".yml")


def import_job(
    file: Path,
    *,
    out: Path | None,
    gpus: int | None,
    node: str | None,
    variables: Sequence[str] | None,
    settings: Sequence[str] | None,
    user_code: bool,
    as_json: bool,
) -> None:
    """Write the scenario of a file of arguments.

    It prints what was read, assumed, ignored and unknown.

    Parameters
    ----------
    file : shell script or YAML file
    out : scenario to write; that of the file's name in the current folder by default
    gpus : in place of what the launcher says
    node : server of the hardware catalogue
    variables : texts of ``--variable``
    settings : texts of ``--set``
    user_code : False refuses every Python file of the user's own that ``--set`` names
    as_json : one JSON object instead of words

    Raises
    ------
    ConfigError : the arguments make no scenario, or one that cannot run, or it cannot be written; with every mistake
    """
    path = out or Path(f"{_plain_name(file.stem)}.yaml")
    _refuse_options(path, gpus)
    keys = overrides(settings)
    found = read_job_file(file, gpus=gpus or _gpus(keys), variables=_values(variables))
    written = scenario_of_import(
        found,
        name=_plain_name(file.stem),
        source=str(file),
        node=node,
        settings=keys,
        folder=path.parent,
        user_code=user_code,
    )
    files = _write(path, written)
    if not as_json:
        _print(path, files, found, written)
    elif not written.mistakes:
        typer.echo(json.dumps(_document(files, found, written), indent=2))
    if written.mistakes:
        raise UnrunnableImportError(str(file), list(written.mistakes), path)


class UnrunnableImportError(ConfigError):
    """An imported job cannot run; its scenario is written all the same.

    Parameters
    ----------
    source, mistakes : as of `ConfigError`
    path : of the scenario
    """

    def __init__(self, source: str, mistakes: list[Mistake], path: Path) -> None:
        super().__init__(source, mistakes)
        self.path = path

    def __str__(self) -> str:
        where = "the mistake is" if len(self.mistakes) == 1 else "each mistake is"
        what = f"{self.path} is written, and {where} at its key: change the file, or import again with --set"
        return f"{super().__str__()}\n{what}"


def _gpus(keys: Mapping[str, str]) -> int | None:
    """GPUs that ``--set`` gives, for arguments whose value depends on them."""
    text = keys.get("fabric.gpus", "").strip()
    return int(text) if re.fullmatch(r"[1-9][0-9]{0,6}", text) else None


def _print(path: Path, files: list[str], found: MegatronImport, written: ImportedScenario) -> None:
    model = found.model
    which = "" if model is None else model.name if found.config is None else f"{files[-1]}, not in the catalogue"
    rows = (
        ("scenario", str(path)),
        ("model", which),
        ("mend it" if written.mistakes else "run it", str(path) if written.mistakes else f"weftwork run {path}"),
    )
    screen = console()
    for label, text in rows:
        screen.print(Text(f"{label:<13} {text}"), soft_wrap=True)
    print_import(screen, found, written.assumed)


def _plain_name(stem: str) -> str:
    """A name that is valid in every file system and YAML file."""
    return re.sub(r"[^A-Za-z0-9._-]+", "-", stem).strip("-.") or "megatron"


def _refuse_options(path: Path, gpus: int | None) -> None:
    mistakes = []
    if gpus is not None and not 1 <= gpus <= MAX_HOSTS:
        mistakes.append(Mistake(path="--gpus", text=f"found {gpus:,}, wanted a whole number from 1 to {MAX_HOSTS:,}"))
    if path.suffix not in _YAML:
        mistakes.append(Mistake(path="--out", text=f"found '{path}', wanted a name that ends in .yaml"))
    elif (path.exists() or path.is_symlink()) and _unchanged(path) is None:
        mistakes.append(
            Mistake(
                path="--out", text=f"'{path}' exists already and is not overwritten; name another file with -o FILE"
            )
        )
    if mistakes:
        raise ConfigError("weftwork import", mistakes)


def _values(variables: Sequence[str] | None) -> dict[str, str]:
    """Variables by name; of a repeated name the last value counts."""
    parts = [text.partition("=") for text in variables or ()]
    mistakes = [
        Mistake(path="--variable", text=f"found '{name}{equals}{value}', wanted NAME=VALUE such as NNODES=16")
        for name, equals, value in parts
        if not equals or not name.isidentifier() or not name.isascii()
    ]
    if mistakes:
        raise ConfigError("weftwork import", mistakes)
    return {name: value for name, _, value in parts}


def _unchanged(path: Path) -> tuple[str, str] | None:
    """Digests in a scenario that an import wrote, which cannot run, and which nobody changed."""
    try:
        is_file = path.is_file() and not path.is_symlink()
        return unchanged_import(read_plain(path, MAX_BYTES).decode("utf-8")) if is_file else None
    except (OSError, ValueError):
        return None


def _write(path: Path, written: ImportedScenario) -> list[str]:
    """Write the model file, if there is one, and then the scenario."""
    texts = [(path, written.text)]
    digests = _unchanged(path)
    if written.config is not None:
        texts.insert(0, (path.parent / written.config[0], written.config[1]))
    for one, text in texts:
        if (one.exists() or one.is_symlink()) and not _may_replace(one, text, digests, is_model=one != path):
            mistake = Mistake(path="--out", text=f"'{one}' exists already and is not overwritten")
            raise ConfigError("weftwork import", [mistake])
        try:
            write_whole(one, text)
        except OSError as error:
            mistake = Mistake(path="--out", text=f"'{one}' cannot be written: {error.strerror}")
            raise ConfigError("weftwork import", [mistake]) from error
    return [str(one) for one, _ in reversed(texts)]


def _may_replace(path: Path, text: str, digests: tuple[str, str] | None, *, is_model: bool) -> bool:
    """Whether a file is as an import wrote it."""
    if not is_model:
        return digests is not None
    try:
        before = read_plain(path, MAX_BYTES).decode("utf-8") if not path.is_symlink() else None
    except (OSError, ValueError):
        return False
    return before is not None and (before == text or (digests is not None and digests_of("", before)[1] == digests[1]))


def _document(files: list[str], found: MegatronImport, written: ImportedScenario) -> dict[str, object]:
    return {"files": files, **import_document(found, written.assumed), "command": f"weftwork run {files[0]}"}
