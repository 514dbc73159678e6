"""A plan with what a line of `--set` in a refusal says."""

from __future__ import annotations

import yaml


def changed(plan: dict[str, object], fix: str | None) -> dict[str, object]:
    """The plan with what a line of ``--set`` says."""
    assert fix is not None
    pairs = [part.removeprefix("training.").split("=") for part in fix.split(" ") if part != "--set"]
    names = {"sequence_parallel": "is_sequence_parallel"}
    return {**plan, **{names.get(key, key): yaml.safe_load(value) for key, value in pairs}}
