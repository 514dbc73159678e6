"""An improvement that one can buy: when a run has it, what it is called, and the run with it.

Each file of the folder `weftwork.study.answer.improvements` offers one. Leaves out: which of them are simulated
(`weftwork.study.answer.worlds`), and sums over the run itself (`weftwork.study.results.training_tables`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from weftwork.base.folder import Folder

if TYPE_CHECKING:
    from weftwork.study.prepare.prepared import Prepared

__all__ = ["IMPROVEMENTS", "Improvement"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Improvement:
    """An improvement of training that one can buy.

    Attributes
    ----------
    rank : place of its row; a lower rank is simulated first
    case : its name in the table ``what_if``; None where a run cannot have it
    make : the run with it
    """

    rank: int
    case: Callable[[Prepared], str | None]
    make: Callable[[Prepared], Prepared]


IMPROVEMENTS: Final = Folder(
    "improvement", package="weftwork.study.answer.improvements", constant="IMPROVEMENT", record=Improvement
)
