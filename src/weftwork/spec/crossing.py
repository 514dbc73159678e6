"""Results of crossing congestion controls with load balancers.

There is a cell for each pair and setting, and a ranking. A contender is a congestion control with a balancer; a setting
is a workload, on an intact fabric or with a link that fails. Every number is judged against one contender, the base,
seed by seed.
Leaves out: how contenders are chosen, run and judged (`weftwork.study.crossing`), and how it is told
(`weftwork.report`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

__all__ = ["BASE", "PRICES", "Contender", "CrossingCell", "CrossingResult", "Setting", "Standing"]

BASE: Final = ("dcqcn", "ecmp")  # what RoCE fabrics ship with: `transport.congestion_control`, `load_balancing`
# numbers of a run's summary that say what a contender costs, besides time
PRICES: Final = ("pauses", "retransmissions", "trims", "max_queue_bytes", "reorder_buffer_bytes")


@dataclass(frozen=True, kw_only=True, slots=True)
class Setting:
    """A workload, with or without a link that fails.

    Attributes
    ----------
    workload : name of its scenario
    is_failed : whether a link fails
    objective, unit, text : the number of the summary that decides, less of which is better; its unit, and in words
    """

    workload: str
    is_failed: bool
    objective: str
    unit: str
    text: str

    @property
    def name(self) -> str:
        """Name of the setting, such as ``all-reduce, a link fails``."""
        return f"{self.workload}, a link fails" if self.is_failed else self.workload


@dataclass(frozen=True, kw_only=True, slots=True)
class Contender:
    """A congestion control with a balancer.

    Attributes
    ----------
    control, balancer : their names, by which pairs are called
    path_selection, port_selection : of the balancer
    scheme : of central engineering, which plans paths; empty for none
    preset : of load balancing, where that is ECMP over several queue pairs; else empty
    carried : how the fabric and the NICs carry it: ``PFC``, ``drops`` or ``trimming``
    switch, nic : what it needs of switches and of NICs, a few words each
    origin : why it takes part: ``controls``, ``balancers``, ``crossing`` or ``all``
    """

    control: str
    balancer: str
    path_selection: str
    port_selection: str
    scheme: str
    preset: str
    carried: str
    switch: tuple[str, ...]
    nic: tuple[str, ...]
    origin: str

    @property
    def name(self) -> str:
        """Name of the contender, such as ``dcqcn with reps``."""
        return f"{self.control} with {self.balancer}"


@dataclass(frozen=True, kw_only=True, slots=True)
class CrossingCell:
    """A contender in a setting.

    Attributes
    ----------
    contender, setting : places
    values : of the objective, by seed; empty where not every run ended
    reason : why there are none; else empty
    runs : folders, below that of the study
    prices : mean over the seeds of each of `PRICES`
    ratio, low, high : geometric mean over the seeds of the objective divided by the base's with the same seed, and the
        ends of its 95 % interval; None where one of the two has no values, and the ends also with one seed
    behind, behind_low, behind_high : the same against the best of the setting
    is_best : of the setting
    """

    contender: int
    setting: int
    values: tuple[float, ...]
    reason: str
    runs: tuple[str, ...]
    prices: dict[str, float]
    ratio: float | None = None
    low: float | None = None
    high: float | None = None
    behind: float | None = None
    behind_low: float | None = None
    behind_high: float | None = None
    is_best: bool = False

    @property
    def differs(self) -> bool:
        """Whether the cell differs from the base by more than noise.

        The base itself does not.
        """
        return self.low is not None and self.high is not None and not self.low <= 1.0 <= self.high

    @property
    def is_as_good(self) -> bool:
        """Whether the cell is the best of its setting, or not clearly different."""
        return self.is_best or (self.behind_low is not None and self.behind_low <= 1.0)


@dataclass(frozen=True, kw_only=True, slots=True)
class Standing:
    """Standing of a contender over all settings.

    It is the geometric mean of the contender's ratios, with the 95 % interval over seeds. ``low`` and ``high`` are None
    with one seed, which has no interval. ``is_as_good`` says that it is the best, or does not clearly differ from the
    best, seed by seed.
    """

    contender: int
    ratio: float
    low: float | None
    high: float | None
    is_as_good: bool

    @property
    def differs(self) -> bool:
        """Whether the contender differs from the base by more than noise.

        The base itself does not.
        """
        return self.low is not None and self.high is not None and not self.low <= 1.0 <= self.high


@dataclass(frozen=True, kw_only=True, slots=True)
class CrossingResult:
    """All results of a crossing.

    Attributes
    ----------
    seeds : runs of each cell
    hosts : NIC ports of the fabric
    settings, contenders : by place
    cells : one for each contender and setting
    base : place of the contender that all are measured against
    standings : of contenders with a value in each setting, the best first
    crossed : places of the three best of the crossings of the best three controls with the best three balancers
    runs, run_s : how many, and the sum of the wall time of each, in whichever call
    workers, elapsed_s : of this call
    """

    seeds: int
    hosts: int
    settings: tuple[Setting, ...]
    contenders: tuple[Contender, ...]
    cells: tuple[CrossingCell, ...]
    base: int
    standings: tuple[Standing, ...]
    crossed: tuple[int, ...]
    runs: int
    run_s: float
    workers: int
    elapsed_s: float

    def cell(self, contender: int, setting: int) -> CrossingCell:
        """The cell of a contender in a setting."""
        return self.cells[contender * len(self.settings) + setting]
