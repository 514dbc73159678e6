"""``weftwork new``: a start for a user's own file, with its scenario."""

from __future__ import annotations

import json
import keyword
import re
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Final

import typer
from rich.text import Text

from weftwork.base.errors import ConfigError, Mistake
from weftwork.base.nearest import nearest
from weftwork.cli.console import console

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable

__all__ = ["TEMPLATES", "new_file"]

# Kind, as `weftwork list` names it, and the page that explains it.
TEMPLATES: Final = {
    "congestion_control": "docs/models/writing-a-policy.md",
    "path_selection": "docs/models/writing-a-policy.md",
    "port_selection": "docs/models/writing-a-policy.md",
    "collective": "docs/howto/own-collective.md",
    "topology": "docs/howto/own-topology.md",
    "traffic": "docs/howto/own-traffic.md",
    "transport": "docs/howto/own-transport.md",
}
RECIPE: Final = "recipe"
_RECIPE_PAGE: Final = "docs/models/training.md"


def new_file(kind: str, name: str, *, as_json: bool) -> None:
    """Write NAME.py and NAME.yaml into the current folder.

    A recipe has only its scenario. The command to run them is printed.

    Parameters
    ----------
    kind : a key of `TEMPLATES`, also with ``-`` for ``_``; or ``recipe``
    name : of the files, an identifier of Python; or of the recipe
    as_json : one JSON object instead of words

    Raises
    ------
    ConfigError : no such kind, the name is no identifier, or one of the files is there already; with all mistakes
    """
    wanted = kind.replace("-", "_")
    if wanted == RECIPE:
        _new_recipe(name, as_json=as_json)
        return
    paths = [Path(f"{name}{suffix}") for suffix in (".py", ".yaml")]
    mistakes = [*_kind_mistakes(kind, wanted), *(_name_mistakes(name) or _there_already(paths))]
    if mistakes:
        raise ConfigError("weftwork new", mistakes)
    folder = files("weftwork") / "templates"
    for path in paths:
        text = _renamed(folder / f"{wanted}{path.suffix}", wanted, name)
        try:
            with path.open("x", encoding="utf-8") as file:  # never in place of another file
                file.write(text)
        except OSError as error:
            mistake = Mistake(path="name", text=f"'{path}' cannot be written: {error.strerror}")
            raise ConfigError("weftwork new", [mistake]) from error
    commands = {
        "run": f"weftwork run {name}.yaml",
        "reference": f"weftwork run {name}.yaml --set engine.fidelity=reference",
        "test": f"weftwork test {name}.py",
    }
    if as_json:
        found = {
            "kind": wanted,
            "files": [str(path) for path in paths],
            "commands": commands,
            "page": TEMPLATES[wanted],
        }
        typer.echo(json.dumps(found, indent=2))
        return
    rows = (
        ("file", f"{name}.py"),
        ("scenario", f"{name}.yaml"),
        ("run it", commands["run"]),
        ("test it", commands["test"]),
        ("explained in", TEMPLATES[wanted]),
    )
    for label, text in rows:
        console().print(Text(f"{label:<13} {text}"), soft_wrap=True)


def _new_recipe(name: str, *, as_json: bool) -> None:
    """Write the scenario of a public recipe."""
    from weftwork.study.recipe_scenario import recipe_scenario

    text = recipe_scenario(name)
    path = Path(f"{name.replace('/', '-')}.yaml")
    try:
        with path.open("x", encoding="utf-8") as file:  # never in place of another file
            file.write(text)
    except OSError as error:
        mistake = Mistake(path="name", text=f"'{path}' cannot be written: {error.strerror}")
        raise ConfigError("weftwork new", [mistake]) from error
    command = f"weftwork run {path}"
    if as_json:
        found = {"kind": RECIPE, "files": [str(path)], "commands": {"run": command}, "page": _RECIPE_PAGE}
        typer.echo(json.dumps(found, indent=2))
        return
    for label, words in (("scenario", str(path)), ("run it", command), ("explained in", _RECIPE_PAGE)):
        console().print(Text(f"{label:<13} {words}"), soft_wrap=True)


def _kind_mistakes(kind: str, wanted: str) -> list[Mistake]:
    if wanted in TEMPLATES:
        return []
    shown = [*(name.replace("_", "-") for name in TEMPLATES), RECIPE]
    return [Mistake(path="kind", text=f"found '{kind}', wanted {', '.join(shown)}", fix=nearest(wanted, shown))]


def _name_mistakes(name: str) -> list[Mistake]:
    if name.isascii() and name.isidentifier() and not keyword.iskeyword(name):
        return []
    text = f"found '{name}', wanted a name of Python without suffix: letters, digits and _, no digit first, no keyword"
    return [Mistake(path="name", text=text, fix=_nearest_name(name))]


def _nearest_name(name: str) -> str | None:
    """A valid name similar to this one, or None without any valid letter."""
    plain = re.sub(r"[^A-Za-z0-9_]+", "_", name.removesuffix(".py")).strip("_")
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
