"""``weftwork explain KEY``: the documentation of any key of a scenario.

Parameters of policies are included.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import typer

from weftwork.base.errors import ConfigError, Mistake
from weftwork.base.nearest import nearest
from weftwork.spec.scenario.policies import POLICY_KINDS
from weftwork.spec.scenario.reference import explanation, facts, rows_at
from weftwork.spec.scenario.scenario import rows
from weftwork.spec.scenario.sweep_keys import sweep_explanation, sweep_facts

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from weftwork.policies.parameters import ParameterRow

__all__ = ["explain"]


def explain(key: str | None, as_json: bool) -> None:  # noqa: FBT001 - the command line passes both by name
    """Print the meaning of a key of a scenario.

    It has unit, default, allowed values and source; for a section its keys.

    Parameters
    ----------
    key : dotted path, such as ``fabric.oversubscription`` or ``transport.congestion_control.cnp_interval_ps``; with
        the name of a policy in place of a parameter, all its parameters; None for the sections of a scenario
    as_json : as one JSON object; the rows of a key that several choices have are its ``choices``

    Raises
    ------
    ConfigError : there is no such key; it names the nearest
    """
    if key is None:
        sections = [*(facts(one) for one in rows() if "." not in one.path), sweep_facts("sweep")]
        width = max(len(one["key"]) for one in sections) + 2
        lines = [f"{one['key']:<{width}}{one['text']}" for one in sections]
        typer.echo(json.dumps(sections, indent=2) if as_json else "\n".join(lines))
        return
    if key.partition(".")[0] == "sweep":
        typer.echo(json.dumps(sweep_facts(key), indent=2) if as_json else sweep_explanation(key))
        return
    section, _, parameter = key.rpartition(".")
    if section in {f"transport.{kind}" for kind in POLICY_KINDS}:
        policies = _policies(section)
        if (policy := parameter.replace("_", "-")) in policies:
            own = {one.name: _facts(one) for one in policies[policy]}
            typer.echo(json.dumps({"key": key, "parameters": own}, indent=2) if as_json else _policy_text(key, own))
            return
        told = _parameter_facts(section, parameter, policies)
        typer.echo(json.dumps({"key": key, "policies": told}, indent=2) if as_json else _parameter_text(key, told))
        return
    if not as_json:
        typer.echo(explanation(key))
        return
    choices = [facts(one) for one in rows_at(key)]
    typer.echo(json.dumps(choices[0] if len(choices) == 1 else {"key": key, "choices": choices}, indent=2))


def _policies(section: str) -> dict[str, Sequence[ParameterRow]]:
    """Every installed policy of a key, with its parameters."""
    from weftwork.policies.load import catalogue, load

    kind = section.rpartition(".")[2]
    return {entry.name: load(kind, entry.name).rows for entry in catalogue(kind)}


def _policy_text(key: str, own: dict[str, dict[str, Any]]) -> str:
    width = max((len(name) for name in own), default=0)
    lines = [f"  {name:<{width}}  {known['text']} Default {known['default']}." for name, known in own.items()]
    return "\n".join([key, *lines] if lines else [key, "  takes no parameters"])


def _parameter_facts(
    section: str, parameter: str, policies: Mapping[str, Sequence[ParameterRow]]
) -> dict[str, dict[str, Any]]:
    """Row of a parameter by policy, for every installed policy with that parameter."""
    found = {name: _facts(one) for name, own in policies.items() for one in own if one.name == parameter}
    if not found:
        names = sorted({one.name for own in policies.values() for one in own})
        near = nearest(parameter, names)
        wanted = f"wanted {', '.join(names)}" if names else "these policies take no parameters"
        text = f"no parameter of an installed policy; {wanted}"
        fix = f"{section}.{near}" if near is not None else None
        raise ConfigError("weftwork explain", [Mistake(path=f"{section}.{parameter}", text=text, fix=fix)])
    return found


def _facts(one: ParameterRow) -> dict[str, Any]:
    bounds = [
        f"{word} {one.shown(limit)}"
        for word, limit in (("at least", one.minimum), ("at most", one.maximum))
        if limit is not None
    ]
    return {
        "text": one.text,
        "default": one.shown(one.default),
        "allowed": " and ".join(bounds) if bounds else "true or false" if one.type is bool else "any value of its unit",
        "source": one.source,
    }


def _parameter_text(key: str, told: dict[str, dict[str, Any]]) -> str:
    lines = [key]
    for policy, known in told.items():
        lines += [f"  of {policy}: {known['text']}"]
        lines += [f"    {label:<8} {known[label]}" for label in ("default", "allowed", "source")]
    return "\n".join(lines)
