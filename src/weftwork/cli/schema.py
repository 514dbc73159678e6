"""``weftwork schema``: the JSON Schema of a scenario, for editors."""

from __future__ import annotations

import json

import typer

from weftwork.spec.scenario.schema import json_schema

__all__ = ["schema"]


def schema() -> None:
    """Print the JSON Schema (draft 2020-12) of a scenario."""
    typer.echo(json.dumps(json_schema(), indent=2))
