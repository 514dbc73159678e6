"""``weftwork schema``: the JSON Schema of a scenario, for editors."""

from __future__ import annotations

import json
from pathlib import Path

import typer

from weftwork.base.errors import ConfigError, Mistake
from weftwork.spec.scenario.schema import json_schema

__all__ = ["schema"]


def schema(out: Path | None = None) -> None:
    """Print the JSON Schema (draft 2020-12) of a scenario, or write it to a file.

    Raises
    ------
    ConfigError : the file cannot be written
    """
    text = json.dumps(json_schema(), indent=2)
    if out is None:
        typer.echo(text)
        return
    try:
        out.write_text(f"{text}\n", encoding="utf-8")
    except OSError as error:
        mistake = Mistake(path="--out", text=f"'{out}' cannot be written: {error.strerror}")
        raise ConfigError("command line", [mistake]) from error
    typer.echo(f"schema        {out}")
