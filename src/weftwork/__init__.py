"""Weftwork plans, simulates and operates the network that trains large models."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from weftwork.base import version
from weftwork.base.errors import ConfigError, EngineError, PolicyError, UsageError, WeftworkError

if TYPE_CHECKING:
    from weftwork.spec.scenario.scenario import Scenario
    from weftwork.store.runs import Run, open_run
    from weftwork.study.prepare.prepare import prepare, read_scenario
    from weftwork.study.results.compare import compare
    from weftwork.study.results.results import results
    from weftwork.study.run.execute import execute
    from weftwork.study.run.run import run_scenario as run

__version__ = version.VERSION

__all__ = [
    "ConfigError",
    "EngineError",
    "PolicyError",
    "Run",
    "Scenario",
    "UsageError",
    "WeftworkError",
    "__version__",
    "compare",
    "execute",
    "open_run",
    "prepare",
    "read_scenario",
    "results",
    "run",
]

# Imported when first used, so that `import weftwork` costs nothing.
_HOMES = {
    "Run": ("weftwork.store.runs", "Run"),
    "Scenario": ("weftwork.spec.scenario.scenario", "Scenario"),
    "compare": ("weftwork.study.results.compare", "compare"),
    "execute": ("weftwork.study.run.execute", "execute"),
    "open_run": ("weftwork.store.runs", "open_run"),
    "prepare": ("weftwork.study.prepare.prepare", "prepare"),
    "read_scenario": ("weftwork.study.prepare.prepare", "read_scenario"),
    "results": ("weftwork.study.results.results", "results"),
    "run": ("weftwork.study.run.run", "run_scenario"),
}


def __getattr__(name: str) -> Any:  # noqa: ANN401 - whatever the name stands for
    if name not in _HOMES:
        message = f"module 'weftwork' has no attribute {name!r}"
        raise AttributeError(message)
    module, attribute = _HOMES[name]
    return getattr(import_module(module), attribute)


def __dir__() -> list[str]:
    return sorted(__all__)
