"""A kind of suspect: what it needs of a run, how likely it is, and how its suspects are made.

Each file of the folder `weftwork.study.answer.suspicions` offers one kind as its constant `SUSPICION`, and so does a
file of a user's own (`docs/models/answer.md`, section A suspect of your own).
Leaves out: in which order kinds are asked (`weftwork.study.answer.suspects`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Final, Literal

from weftwork.engine.flow.flow_input import FlowInput
from weftwork.spec.scenario.kind_reading import either
from weftwork.study.answer.evidence import evidence_of
from weftwork.study.answer.suspect import STANDINGS, Standing, Suspect, are_few, changed
from weftwork.study.results.link_use import link_use

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from weftwork.spec.answer import Evidence
    from weftwork.study.prepare.prepared import Prepared
    from weftwork.study.run.execute import Execution

__all__ = ["LAST_RANK", "NEEDS", "Need", "RunRecords", "Suspect", "Suspicion", "are_few", "changed"]

LAST_RANK: Final = 1_000  # chosen: behind every kind of the catalogue

Need = Literal["training", "several jobs", "collective", "packets", "lossy flows", "direct network", "idle resources"]


@dataclass(frozen=True, kw_only=True)
class RunRecords:
    """A run that ended and its records, each computed when a kind of suspect first asks for it.

    Attributes
    ----------
    prepared : what was run
    execution : of it
    """

    prepared: Prepared
    execution: Execution

    @property
    def counters(self) -> Mapping[str, int]:
        """Counters of packets, by name."""
        return self.execution.outcome.counters

    @property
    def is_by_packet(self) -> bool:
        """Whether packets and queues exist, and not flows alone."""
        return self.execution.flows is None

    @cached_property
    def use(self) -> NDArray[np.float64]:
        """Share of the time for which each port was in use; shape (ports,)."""
        return link_use(self.prepared, self.execution)

    @cached_property
    def evidence(self) -> Evidence:
        """Use and troubles of the network."""
        return evidence_of(self.prepared, self.execution)

    def drops(self, *reasons: str) -> int:
        """Count packets that were lost for some reasons; for all of them without a reason."""
        return sum(
            count for name, count in self.counters.items() if (name in reasons if reasons else name.startswith("drop_"))
        )


def _has_lossy_flows(records: RunRecords) -> bool:
    engine_input = records.prepared.engine_input
    return isinstance(engine_input, FlowInput) and bool(engine_input.has_losses)


NEEDS: Final[Mapping[Need, Callable[[RunRecords], bool]]] = {
    "training": lambda records: records.prepared.scenario.workload_kind.is_training,
    "several jobs": lambda records: len(records.prepared.jobs) > 1,
    "collective": lambda records: records.prepared.scenario.workload_kind.is_collective,
    "packets": lambda records: records.is_by_packet,
    "lossy flows": _has_lossy_flows,
    "direct network": lambda records: records.prepared.fabric.direct is not None,
    "idle resources": lambda records: not records.evidence.is_full,
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Suspicion:
    """A kind of suspect.

    Attributes
    ----------
    suspects : makes the suspects of a run that has all `needs`, each with its words, its bound and the run without it
    key : of the scenario, what changes it; a suspect may name a key inside it
    rank : place of the kind; a lower rank is likelier, and is tried first. Suspects of kinds with one rank go by job.
        The default is behind every kind of the catalogue
    needs : what a run must have, see `NEEDS`
    standing : of its suspects, see `Standing`
    unless : names of kinds before it; a suspect of them makes this kind needless

    Raises
    ------
    TypeError, ValueError : a field is of another type, or has a value that does not exist
    """

    suspects: Callable[[RunRecords], Iterable[Suspect]]
    key: str
    rank: int = LAST_RANK
    needs: frozenset[Need] = frozenset()
    standing: Standing = "built"
    unless: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Refuse wrong fields, which a user's own file may have."""
        key: object = self.key
        needs: object = self.needs
        unless: object = self.unless
        if not callable(self.suspects):
            raise TypeError(f"suspects is a {type(self.suspects).__name__}, wanted a function")
        if not isinstance(key, str) or not key:
            raise ValueError(f"key is {key!r}, wanted a key of the scenario such as transport.timeout")
        if type(self.rank) is not int:
            raise ValueError(f"rank is {self.rank!r}, wanted a whole number")
        if not isinstance(needs, frozenset) or not needs <= set(NEEDS):
            raise ValueError(f"needs is {needs!r}, wanted a frozenset of {either(tuple(NEEDS))}")
        if self.standing not in STANDINGS:
            raise ValueError(f"standing is {self.standing!r}, wanted {either(STANDINGS)}")
        if not isinstance(unless, tuple) or not all(isinstance(name, str) for name in unless):
            raise ValueError(f"unless is {unless!r}, wanted a tuple of names")
