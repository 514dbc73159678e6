"""``weftwork new``: a start for a user's own file, with its scenario."""

from __future__ import annotations

import json
import keyword
import re
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Final

import typer
from rich.text import Text

from weftwork.base.errors import ConfigError, Mistake
from weftwork.base.nearest import nearest
from weftwork.cli.console import console

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable

__all__ = ["TEMPLATES", "Template", "new_file"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Template:
    """What a user has to know of a start for a file of a kind.

    Attributes
    ----------
    page : that explains the kind
    option : of ``weftwork run``, which names the file; empty where the scenario names it
    """

    page: str
    option: str = ""


# By kind, as `weftwork list` names it.
TEMPLATES: Final = {
    "congestion_control": Template(page="docs/models/writing-a-policy.md"),
    "path_selection": Template(page="docs/models/writing-a-policy.md"),
    "port_selection": Template(page="docs/models/writing-a-policy.md"),
    "collective": Template(page="docs/howto/own-collective.md"),
    "topology": Template(page="docs/howto/own-topology.md"),
    "traffic": Template(page="docs/howto/own-traffic.md"),
    "transport": Template(page="docs/howto/own-transport.md"),
    "suspect": Template(page="docs/howto/own-suspect.md", option="--suspect"),
}
RECIPE: Final = "recipe"
_SUFFIXES: Final = (".py", ".yaml")
_RECIPE_PAGE: Final = "docs/models/training.md"


def new_file(kind: str, name: str, *, folder: Path | None = None, as_json: bool) -> None:
    """Write NAME.py and NAME.yaml into a folder.

    A recipe has only its scenario. The command to run them is printed.

    Parameters
    ----------
    kind : a key of `TEMPLATES`, also with ``-`` for ``_``; or ``recipe``
    name : of the files, an identifier of Python, also with the suffix of one of them; or of the recipe
    folder : of the files, made where it is not there; None: the current one
    as_json : one JSON object instead of words

    Raises
    ------
    ConfigError : no such kind, the name is no identifier, or one of the files is there already; with all mistakes
    """
    wanted = kind.replace("-", "_")
    if wanted == RECIPE:
        _new_recipe(name, folder=folder or Path(), as_json=as_json)
        return
    name = _without_suffix(name)
    paths = [(folder or Path()) / f"{name}{suffix}" for suffix in _SUFFIXES]
    mistakes = [*_kind_mistakes(kind, wanted), *(_name_mistakes(name) or _there_already(paths))]
    if mistakes:
        raise ConfigError("weftwork new", mistakes)
    templates = files("weftwork") / "templates"
    for path in paths:
        _write(path, _renamed(templates / f"{wanted}{path.suffix}", wanted, name))
    file, scenario = paths
    template = TEMPLATES[wanted]
    run = f"weftwork run {quote(str(scenario))}{f' {template.option} {quote(str(file))}' if template.option else ''}"
    commands = {
        "run": run,
        "reference": f"{run} --set engine.fidelity=reference",
        "test": f"weftwork test {quote(str(file))}",
    }
    if as_json:
        found = {
            "kind": wanted,
            "files": [str(path) for path in paths],
            "commands": commands,
            "page": template.page,
        }
        typer.echo(json.dumps(found, indent=2))
        return
    rows = (
        ("file", str(file)),
        ("scenario", str(scenario)),
        ("run it", commands["run"]),
        ("test it", commands["test"]),
        ("explained in", template.page),
    )
    for label, text in rows:
        console().print(Text(f"{label:<13} {text}"), soft_wrap=True)


def _new_recipe(name: str, *, folder: Path, as_json: bool) -> None:
    """Write the scenario of a public recipe."""
    from weftwork.study.recipe_scenario import recipe_scenario

    text = recipe_scenario(name.removesuffix(".yaml"))
    path = folder / f"{name.removesuffix('.yaml').replace('/', '-')}.yaml"
    _write(path, text)
    command = f"weftwork run {quote(str(path))}"
    if as_json:
        found = {"kind": RECIPE, "files": [str(path)], "commands": {"run": command}, "page": _RECIPE_PAGE}
        typer.echo(json.dumps(found, indent=2))
        return
    for label, words in (("scenario", str(path)), ("run it", command), ("explained in", _RECIPE_PAGE)):
        console().print(Text(f"{label:<13} {words}"), soft_wrap=True)


def _write(path: Path, text: str) -> None:
    """Write a new file, with its folder; never in place of another file."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        mistake = Mistake(path="name", text=f"'{path}' cannot be written: {error.strerror}")
        raise ConfigError("weftwork new", [mistake]) from error


def _without_suffix(name: str) -> str:
    """The name of both files, given as one of them."""
    return next((name.removesuffix(suffix) for suffix in _SUFFIXES if name.endswith(suffix)), name)


def _kind_mistakes(kind: str, wanted: str) -> list[Mistake]:
    if wanted in TEMPLATES:
        return []
    shown = [*(name.replace("_", "-") for name in TEMPLATES), RECIPE]
    return [Mistake(path="kind", text=f"found '{kind}', wanted {', '.join(shown)}", fix=nearest(wanted, shown))]


def _name_mistakes(name: str) -> list[Mistake]:
    if name.isascii() and name.isidentifier() and not keyword.iskeyword(name):
        return []
    text = f"found '{name}', wanted a name of Python: letters, digits and _, no digit first, no keyword"
    return [Mistake(path="name", text=text, fix=_nearest_name(name))]


def _nearest_name(name: str) -> str | None:
    """A valid name similar to this one, or None without any valid letter."""
    plain = re.sub(r"[^A-Za-z0-9_]+", "_", name).strip("_")
    if not plain:
        return None
    return f"my_{plain}" if plain[0].isdigit() or keyword.iskeyword(plain) else plain


def _there_already(paths: list[Path]) -> list[Mistake]:
    return [
        Mistake(path="name", text=f"'{path}' exists already and is not overwritten")
        for path in paths
        if path.exists() or path.is_symlink()
    ]


def _renamed(template: Traversable, kind: str, name: str) -> str:
    """Text of a template with the user's name in place of the kind."""
    text = template.read_text(encoding="utf-8")
    for suffix in (".py", ".yaml"):
        text = text.replace(f"{kind}{suffix}", f"{name}{suffix}")
    text = text.replace(f'name="{kind}"', f'name="{name.replace("_", "-")}"')
    return text.replace(f"name: {kind}\n", f"name: {name}\n")
