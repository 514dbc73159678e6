"""Weft plans, simulates and operates the network that trains large models."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from weft.base import version
from weft.base.errors import ConfigError, EngineError, PolicyError, UsageError, WeftError

if TYPE_CHECKING:
    from weft.spec.scenario import Scenario
    from weft.store.runs import Run, open_run
    from weft.study.compare import compare
    from weft.study.prepare import prepare, read_scenario
    from weft.study.run import run_scenario as run

__version__ = version.VERSION

__all__ = [
    "ConfigError",
    "EngineError",
    "PolicyError",
    "Run",
    "Scenario",
    "UsageError",
    "WeftError",
    "__version__",
    "compare",
    "open_run",
    "prepare",
    "read_scenario",
    "run",
]

# Imported when first used, so that `import weft` costs nothing.
_HOMES = {
    "Run": ("weft.store.runs", "Run"),
    "Scenario": ("weft.spec.scenario", "Scenario"),
    "compare": ("weft.study.compare", "compare"),
    "open_run": ("weft.store.runs", "open_run"),
    "prepare": ("weft.study.prepare", "prepare"),
    "read_scenario": ("weft.study.prepare", "read_scenario"),
    "run": ("weft.study.run", "run_scenario"),
}


def __getattr__(name: str) -> Any:  # noqa: ANN401 - whatever the name stands for
    if name not in _HOMES:
        message = f"module 'weft' has no attribute {name!r}"
        raise AttributeError(message)
    module, attribute = _HOMES[name]
    return getattr(import_module(module), attribute)


def __dir__() -> list[str]:
    return sorted(__all__)
