"""A plan with the settings that a refusal proposes."""

from __future__ import annotations

import yaml

from weftwork.base.fix import Fix, Settings


def changed(plan: dict[str, object], fix: Fix | None) -> dict[str, object]:
    """The plan with the settings of a fix."""
    assert isinstance(fix, Settings)
    names = {"sequence_parallel": "is_sequence_parallel"}
    pairs = [(path.removeprefix("training."), value) for path, value in fix.values]
    return {**plan, **{names.get(key, key): yaml.safe_load(value) for key, value in pairs}}
