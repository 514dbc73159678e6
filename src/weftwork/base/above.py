"""Functions of higher floors that a lower floor offers under its own name, such as the picture of a run in a notebook.

`weftwork/__init__.py` knows all floors and fills the table with names of functions; a module is imported when one of
its functions is first called. Imports still go down only.
"""

from __future__ import annotations

from typing import Any, Final

__all__ = ["FUNCTIONS", "Shown", "call"]

FUNCTIONS: Final[dict[str, str]] = {}  # what is wanted: module and function, as "weftwork.report.notebook:run_html"


def call(wanted: str, *given: Any, **named: Any) -> Any:  # noqa: ANN401 - whatever that function takes and returns
    """Call a function of a higher floor.

    Parameters
    ----------
    wanted : key of `FUNCTIONS`
    given, named : arguments of that function
    """
    from importlib import import_module

    module, _, name = FUNCTIONS[wanted].partition(":")
    return getattr(import_module(module), name)(*given, **named)


class Shown:
    """Something that a notebook shows as HTML."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        html: str = call(f"HTML of {type(self).__name__}", self)
        return html
