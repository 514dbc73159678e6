"""The best plan that Megatron-LM can run, as its arguments.

Leaves out: reading arguments (`weftwork.workload.imports.megatron`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from weftwork.study.plan.search import section_with
from weftwork.workload.imports.megatron_write import write_megatron

if TYPE_CHECKING:
    from collections.abc import Mapping

    from weftwork.study.plan.search import Search

__all__ = ["PlanArguments", "megatron_of"]

_DECIDES: Final = frozenset({"training.schedule", "training.prefetch"})  # without these it would be another plan


@dataclass(frozen=True, kw_only=True, slots=True)
class PlanArguments:
    """A plan as arguments of Megatron-LM.

    Attributes
    ----------
    place : of the plan among the best, from 0; those before it have what Megatron-LM does not have
    words : of the command line, in order
    left_out : key of the scenario that no argument says, and why
    """

    place: int
    words: tuple[str, ...]
    left_out: Mapping[str, str]


def megatron_of(found: Search) -> PlanArguments | None:
    """Write the best plan that Megatron-LM can run.

    None if it can run none of the plans that the engine ran.
    """
    for place, one in enumerate(found.best):
        written = write_megatron(section_with(found.scenario, one.candidate.keys), found.model)
        if not _DECIDES & written.left_out.keys():
            return PlanArguments(place=place, words=written.words, left_out=written.left_out)
    return None
