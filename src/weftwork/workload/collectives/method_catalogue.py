"""The catalogue of methods that have a closed form.

A file of the folder ``methods`` is a method of NCCL; an algorithm of a user's own offers its method itself.
"""

from __future__ import annotations

from functools import cache
from typing import Final

from weftwork.base.errors import UsageError
from weftwork.base.folder import Folder, is_path
from weftwork.spec.scenario.choices import ALGORITHMS
from weftwork.workload.collectives.method import Method, TimedMethod

__all__ = ["METHODS", "latency_method", "method_of", "methods_in_order", "timed_method"]

METHODS: Final[Folder[TimedMethod]] = Folder(
    "method of a collective",
    package="weftwork.workload.collectives.methods",
    constant="METHOD",
    record=TimedMethod,
)


@cache
def methods_in_order() -> tuple[tuple[str, TimedMethod], ...]:
    """The methods of NCCL with their names, in the order in which NCCL prefers equal ones."""
    return tuple(sorted(METHODS.items(), key=lambda item: (item[1].order, item[0])))


def method_of(algorithm: str) -> TimedMethod | None:
    """The closed form of an algorithm, or of a method of NCCL; None without one.

    Parameters
    ----------
    algorithm : its name, or the file of a user's own

    Raises
    ------
    CodeError : the user's file is wrong; with file and line
    """
    if not is_path(algorithm):
        return _in_catalogue(algorithm)
    method: TimedMethod | None = ALGORITHMS.load(algorithm).method
    return method


@cache
def _in_catalogue(algorithm: str) -> TimedMethod | None:
    return METHODS.get(algorithm)


def timed_method(algorithm: str) -> TimedMethod:
    """The closed form of an algorithm that has one.

    Raises
    ------
    UsageError : it has none
    """
    method = method_of(algorithm)
    if method is None:
        raise UsageError(f"{algorithm} has no closed form")
    return method


def latency_method(method: Method) -> str:
    """The algorithm whose figures of protocols.toml a method has: its own, or by its method inside a domain."""
    timed = None if method.inner is None else method_of(method.algorithm)
    return method.algorithm if timed is None else timed.figures_by_inner.get(method.inner or "", method.algorithm)
