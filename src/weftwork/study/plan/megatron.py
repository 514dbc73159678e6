"""The best plan that Megatron-LM can run, as its arguments.

Leaves out: reading arguments (`weftwork.workload.imports.megatron`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from weftwork.study.plan.search import section_with
from weftwork.workload.imports.megatron_limits import ABILITIES, lacking
from weftwork.workload.imports.megatron_write import write_megatron

if TYPE_CHECKING:
    from collections.abc import Mapping

    from weftwork.study.plan.search import Ranked, Search

__all__ = ["PlanArguments", "megatron_lacks", "megatron_of"]


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
        if not megatron_lacks(found, one):
            written = write_megatron(section_with(found.scenario, one.candidate.keys), found.model)
            return PlanArguments(place=place, words=written.words, left_out=written.left_out)
    return None


def megatron_lacks(found: Search, one: Ranked) -> dict[str, str]:
    """Keys of a plan that Megatron-LM cannot run, each with the reason."""
    section = section_with(found.scenario, one.candidate.keys)
    values = {key: getattr(section, key) for key in ABILITIES}
    reasons = lacking(found.model, section.parallelism(found.model), values)
    return {f"training.{key}": reason for key, reason in reasons.items()}
