"""``weft explain KEY``: the row of documentation of any key of a scenario."""

from __future__ import annotations

import json

import typer

from weft.spec.scenario_reference import explanation, facts, row

__all__ = ["explain"]


def explain(key: str, as_json: bool) -> None:  # noqa: FBT001 - the command line passes both by name
    """Print what a key of a scenario means: unit, default, what is allowed, source; for a section its keys.

    Parameters
    ----------
    key : dotted path, such as ``fabric.oversubscription``
    as_json : as one JSON object

    Raises
    ------
    ConfigError : there is no such key; it names the nearest
    """
    typer.echo(json.dumps(facts(row(key)), indent=2) if as_json else explanation(key))
