"""The worlds that are simulated beside a run.

A world is simulated only if it costs less than the run itself.

The work of a world is that of the run, as it was estimated before it ran, so that the choice does not depend on the
machine. All worlds together may take as much work as the run, or what a machine does in about a second, whichever
is more; suspects come before what one can buy (`docs/models/answer.md`, section Other worlds).
Leaves out: what comes of them (`weftwork.study.answer.answer`).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final, Literal, get_args

from weftwork.spec.answer import LISTED
from weftwork.spec.fidelities import FIDELITIES
from weftwork.study.answer.improvement import IMPROVEMENTS
from weftwork.study.prepare.engine import ENGINES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from weftwork.study.answer.suspect import Suspect
    from weftwork.study.prepare.prepared import Prepared

__all__ = ["EXTENTS", "Extent", "World", "chosen", "worlds"]

# auto: what costs less than the run itself; all; none
Extent = Literal["auto", "all", "none"]
EXTENTS: Final[tuple[str, ...]] = get_args(Extent)


@dataclass(frozen=True, kw_only=True, slots=True)
class World:
    """A world beside the run: the run with one change.

    Attributes
    ----------
    case : its name in the table ``what_if``; empty for a suspect, which is no case
    suspect : without whom; None for what one can buy
    others : suspects that are left out besides
    job : index of the job that it is about; None: all of them
    make : prepares it
    """

    case: str
    make: Callable[[], Prepared]
    suspect: Suspect | None = None
    job: int | None = None
    others: tuple[Suspect, ...] = ()

    @property
    def is_asked_for(self) -> bool:
        """Whether it is the run without a suspect of a user's own, and no other."""
        return self.suspect is not None and self.suspect.file is not None and not self.others

    @property
    def name(self) -> str:
        """Name of the case, or of the suspects that are left out."""
        if self.suspect is None:
            return self.case
        return f"without {' and '.join(suspect.name for suspect in (self.suspect, *self.others))}"


def worlds(prepared: Prepared, suspects: Sequence[Suspect]) -> Iterator[World]:
    """All worlds that can be simulated beside a finished run, by importance.

    Parameters
    ----------
    prepared : what was run
    suspects : of the run; a world without one of them that can be bought too is simulated once
    """
    for suspect in suspects:
        if suspect.change is not None:
            change = partial(suspect.change, prepared)
            yield World(case=suspect.case, suspect=suspect, job=suspect.job, make=change)
    yield from _together(prepared, suspects)
    if not prepared.scenario.workload_kind.is_training:
        return
    cases = {suspect.case for suspect in suspects}
    for improvement in sorted(IMPROVEMENTS.values(), key=lambda improvement: improvement.rank):
        case = improvement.case(prepared)
        if case is not None and case not in cases:
            yield World(case=case, make=partial(improvement.make, prepared))


def _together(prepared: Prepared, suspects: Sequence[Suspect]) -> Iterator[World]:
    """Worlds without several suspects: all faults and stragglers, and each reaction with the likeliest cause.

    A congestion control or a timeout may only harm because something else is broken, and two faults may only harm
    together. Such a world shows the price of both.
    """
    faults = [suspect for suspect in suspects if (suspect.key or "").startswith(LISTED) and suspect.change]
    causes = [suspect for suspect in suspects if not suspect.is_reaction and suspect.change and suspect.job is None]
    groups = [tuple(faults)] if len(faults) > 1 else []
    groups += [(causes[0], suspect) for suspect in suspects if causes and suspect.is_reaction and suspect.change]
    for first, *others in groups:
        yield World(case="", suspect=first, others=tuple(others), make=partial(_changed_by, prepared, (first, *others)))


def _changed_by(prepared: Prepared, suspects: Sequence[Suspect]) -> Prepared:
    for suspect in suspects:
        if suspect.change is not None:
            prepared = suspect.change(prepared)
    return prepared


def chosen(prepared: Prepared, suspects: Sequence[Suspect], extent: Extent) -> list[World]:
    """The worlds that are simulated.

    Parameters
    ----------
    prepared : what was run
    suspects : of the run
    extent : ``auto``: while all of them together cost less than the run, or than a second; suspects of a user's own
        are always simulated
    """
    if extent == "none":
        return []
    every = list(worlds(prepared, suspects))
    if extent == "all":
        return every
    # suspects of a user's own were asked for by name, and take no other world's place
    own = [world for world in every if world.is_asked_for]
    every = [world for world in every if not world.is_asked_for]
    work, fidelity = max(1, prepared.estimate.work), prepared.scenario.engine.fidelity
    if FIDELITIES[fidelity].folds_training:
        work += prepared.job.ranks + len(prepared.fabric.links)  # which are folded first
    return own + every[: max(1, ENGINES[fidelity].second_work // work)]
