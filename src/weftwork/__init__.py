"""Weftwork plans, simulates and operates the network that trains large models."""

from __future__ import annotations

from weftwork.base import above, version

TYPE_CHECKING = False  # as `typing` has it, whose import takes longer than all the rest
if TYPE_CHECKING:
    from typing import Any

    from weftwork.base.errors import ConfigError, EngineError, PolicyError, UsageError, WeftworkError
    from weftwork.cli.surface import compare, report
    from weftwork.spec.scenario.scenario import Scenario
    from weftwork.store.runs import Run, open_run
    from weftwork.study.prepare.prepare import prepare, read_scenario
    from weftwork.study.record.road import execute, results
    from weftwork.study.record.run import run_scenario as run

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
    "report",
    "results",
    "run",
]

# Imported when first used, so that `import weftwork` costs nothing, and a program hears Ctrl-C as soon as it starts.
_HOMES = {
    "ConfigError": ("weftwork.base.errors", "ConfigError"),
    "EngineError": ("weftwork.base.errors", "EngineError"),
    "PolicyError": ("weftwork.base.errors", "PolicyError"),
    "Run": ("weftwork.store.runs", "Run"),
    "Scenario": ("weftwork.spec.scenario.scenario", "Scenario"),
    "UsageError": ("weftwork.base.errors", "UsageError"),
    "WeftworkError": ("weftwork.base.errors", "WeftworkError"),
    "compare": ("weftwork.cli.surface", "compare"),
    "execute": ("weftwork.study.record.road", "execute"),
    "open_run": ("weftwork.store.runs", "open_run"),
    "prepare": ("weftwork.study.prepare.prepare", "prepare"),
    "read_scenario": ("weftwork.study.prepare.prepare", "read_scenario"),
    "results": ("weftwork.study.record.road", "results"),
    "run": ("weftwork.study.record.run", "run_scenario"),
}

# Functions of a higher floor that a lower one offers under its own name.
above.FUNCTIONS.update(
    {
        "HTML of Prepared": "weftwork.cli.notebook:prepared_html",
        "HTML of Run": "weftwork.report.notebook:run_html",
        "HTML of RunComparison": "weftwork.report.notebook:comparison_html",
        "HTML of Scenario": "weftwork.report.notebook:scenario_html",
        "HTML of SweepResult": "weftwork.report.notebook:sweep_html",
        "report": "weftwork.cli.surface:report",
    }
)


def __getattr__(name: str) -> Any:  # noqa: ANN401 - whatever the name stands for
    from importlib import import_module

    if name == "report":  # a package that can be called, see its docstring
        return import_module("weftwork.report")
    if name not in _HOMES:
        message = f"module 'weftwork' has no attribute {name!r}"
        raise AttributeError(message)
    module, attribute = _HOMES[name]
    return getattr(import_module(module), attribute)


def __dir__() -> list[str]:
    return sorted(__all__)
