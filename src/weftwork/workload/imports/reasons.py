"""Reasons why an argument of another program sets no key, and which of them change a result.

An argument that is ignored although it changes time or memory is listed first, by name.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = [
    "CHANGES_BOTH", "CHANGES_MEMORY", "CHANGES_TIME", "CHECKPOINTS", "DATA", "KERNELS", "LEARNING", "LOGGING", "SHAPES",
    "changes_results", "reasons_by_argument",
]  # fmt: skip

CHANGES_TIME: Final = "changes time, and a scenario has no key for it: "
CHANGES_MEMORY: Final = "changes memory, and a scenario has no key for it: "
CHANGES_BOTH: Final = "changes time and memory, and a scenario has no key for it: "

DATA: Final = "where data and words come from; says nothing about time"
LEARNING: Final = "how weights are learnt; says nothing about time"
LOGGING: Final = "what is logged, watched and when the job stops; says nothing about time"
CHECKPOINTS: Final = "how checkpoints are stored and loaded; training.checkpoint says how often and how fast"
SHAPES: Final = "shapes stay as they are: positions, norms and biases are left out of the sizes of a model"
KERNELS: Final = "which kernels are used; training.software stands for them"


def changes_results(reason: str) -> bool:
    """Whether an argument with this reason changes time or memory.

    Examples
    --------
    >>> changes_results(f"{CHANGES_TIME}layers are given to stages evenly"), changes_results(LEARNING)
    (True, False)
    """
    return reason.startswith((CHANGES_TIME, CHANGES_MEMORY, CHANGES_BOTH))


def reasons_by_argument(groups: Mapping[str, str]) -> dict[str, str]:
    """Reasons by argument, from argument names by reason.

    Examples
    --------
    >>> reasons_by_argument({"how weights are learnt": "lr seed"})
    {'lr': 'how weights are learnt', 'seed': 'how weights are learnt'}
    """
    return {argument: reason for reason, arguments in groups.items() for argument in arguments.split()}
