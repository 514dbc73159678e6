"""What trainers can run: the one table of schedules, sharding, parallel kinds and recomputation, with sources.

A search for one of them makes no other plan. What a table does not name, a trainer can have as it is searched.
Leaves out: versions before these; DeepSpeed, whose pipelines and ZeRO stages exclude each other in ways of their own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from weftwork.base.errors import ConfigError, Mistake
from weftwork.base.fix import Settings
from weftwork.base.nearest import nearest
from weftwork.workload.imports import megatron_limits
from weftwork.workload.parallelism.abilities import Ability, Exclusion

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from weftwork.spec.scenario.training import TrainingSection
    from weftwork.spec.training import Model
    from weftwork.workload.parallelism.plan_columns import PlanColumns

__all__ = ["ANY", "TRAINERS", "Trainer", "fixed_mistakes", "trainer"]

ANY: Final = "any"  # the word for: whatever trainer


@dataclass(frozen=True, kw_only=True, slots=True)
class Trainer:
    """A program that trains.

    Attributes
    ----------
    name : as `--for` takes it
    title : with its version
    abilities : by key of ``training``
    exclusions : of several keys at a time
    """

    name: str
    title: str
    abilities: Mapping[str, Ability]
    exclusions: tuple[Exclusion, ...] = ()

    def choices(self, key: str, values: Sequence[Any]) -> Sequence[Any]:
        """Of the values of a key those that the trainer can run."""
        ability = self.abilities.get(key)
        if ability is None:
            return values
        if key == "recompute":  # trainers recompute by different units
            return ability.values
        return [value for value in values if value in ability.values]

    def excluded(self, model: Model, plans: PlanColumns) -> list[str]:
        """What stands in the way of each plan, in the words of `reasons`, or nothing."""
        reasons = [""] * len(plans)
        for exclusion in self.exclusions:
            for place in np.flatnonzero(exclusion.holds(model, plans)).tolist():
                reasons[place] = reasons[place] or self.reason(exclusion)
        return reasons

    def reason(self, exclusion: Exclusion) -> str:
        """How plans that an exclusion rules out are counted."""
        return f"{exclusion.keys[0]} for {self.name}"

    @property
    def reasons(self) -> Mapping[str, Exclusion]:
        """Each exclusion by its `reason`."""
        return {self.reason(exclusion): exclusion for exclusion in self.exclusions}


def _has_fewer_expert_ranks(_: Model, plans: PlanColumns) -> NDArray[np.bool_]:
    expert = plans.column("expert")
    excluded: NDArray[np.bool_] = (expert > 1) & (expert < plans.column("tensor"))
    return excluded


_TITAN: Final = "pytorch/torchtitan, torchtitan/config/parallelism.py"

TRAINERS: Final[Mapping[str, Trainer]] = {
    one.name: one
    for one in (
        Trainer(
            name="megatron",
            title="Megatron-LM (core 0.18)",
            abilities=megatron_limits.ABILITIES,
            exclusions=megatron_limits.EXCLUSIONS,
        ),
        Trainer(
            name="torchtitan",
            title="torchtitan (main of autumn 2026)",
            abilities={
                "schedule": Ability(
                    values=("1f1b", "gpipe"),
                    source=f"{_TITAN}; pytorch/pytorch, torch/distributed/pipelining/schedules.py, get_schedule_class",
                    note="1F1B, Interleaved1F1B and GPipe; its ZBV and DualPipeV are not simulated",
                ),
                "zero": Ability(
                    values=(0, 2, 3),
                    source=_TITAN,
                    note="data_parallel_replicate_degree is 0; fsdp_reshard_after_forward never is 2, always is 3",
                ),
                "order": Ability(
                    values=("tp-cp-dp-pp",),
                    source="pytorch/torchtitan, torchtitan/distributed/parallel_dims.py",
                    note="meshes are pp, dp, cp, tp from the outside",
                ),
                "context_exchange": Ability(
                    values=("ring",),
                    source=f"{_TITAN}, context_parallel_rotate_method",
                    note="keys and values go around by all-to-all or all-gather, heads stay",
                ),
                "expert_tensor": Ability(values=(1,), source=_TITAN, note="there is no key for it"),
                "recompute": Ability(
                    values=("none", "operations", "full"),
                    source="pytorch/torchtitan, torchtitan/distributed/activation_checkpoint.py",
                    note="selective, by operation; full",
                    instead="operations",
                ),
            },
            exclusions=(
                Exclusion(
                    keys=("expert", "tensor"),
                    text="torchtitan spreads experts over whole tensor groups, never over fewer ranks than tensor",
                    source=f"{_TITAN}, expert_parallel_degree",
                    holds=_has_fewer_expert_ranks,
                    remedy=lambda _model, plan: {"tensor": plan.expert},
                ),
            ),
        ),
    )
}


def trainer(name: str) -> Trainer | None:
    """The trainer with a name; None for `ANY`.

    Raises
    ------
    ConfigError : there is none
    """
    if name == ANY:
        return None
    if name not in TRAINERS:
        known = [*TRAINERS, ANY]
        mistake = Mistake(path="--for", text=f"found '{name}', wanted {', '.join(known)}", fix=nearest(name, known))
        raise ConfigError("command line", [mistake])
    return TRAINERS[name]


def fixed_mistakes(made: Trainer, section: TrainingSection, model: Model, given: frozenset[str]) -> list[Mistake]:
    """Keys of a scenario that the trainer cannot run, alone or beside each other.

    Parameters
    ----------
    made : the trainer
    section : ``training`` of the scenario
    model : that the section names
    given : keys of the section whose values no search varies

    Returns
    -------
    a mistake for each key that the trainer lacks, and for each exclusion whose keys are all given
    """
    mistakes = [
        Mistake(
            path=f"training.{key}",
            text=f"found {value}, wanted {_listed(ability.values)} for {made.title}: {ability.note} ({ability.source})",
            fix=str(ability.nearest(value)),
        )
        for key, ability in made.abilities.items()
        if key in given and not ability.has(value := getattr(section, key))
    ]
    plan = section.parallelism(model)
    clashing = [one for one in made.exclusions if set(one.keys) <= given and one.excludes(model, plan)]
    return [*mistakes, *(_exclusion_mistake(made, section, one, one.remedy(model, plan)) for one in clashing)]


def _exclusion_mistake(
    made: Trainer, section: TrainingSection, exclusion: Exclusion, remedy: Mapping[str, Any]
) -> Mistake:
    key, *others = exclusion.keys
    beside = ", ".join(f"{other} {_shown(getattr(section, other))}" for other in others)
    wanted = ", ".join(f"{other} {_shown(value)}" for other, value in remedy.items())
    return Mistake(
        path=f"training.{key}",
        text=f"found {_shown(getattr(section, key))} with {beside}, wanted {wanted} for {made.title}: {exclusion.text}"
        f" ({exclusion.source})",
        fix=Settings(tuple((f"training.{other}", _shown(value)) for other, value in remedy.items())),
    )


def _listed(values: Sequence[Any]) -> str:
    return ", ".join(map(_shown, values))


def _shown(value: object) -> str:
    """A value as a scenario has it."""
    if isinstance(value, bool):
        return str(value).lower()
    return "null" if value is None else str(value)
