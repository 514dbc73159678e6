"""The keys of ``reliability``: failure rates and the cost of interruptions.

The cost is that of a training job. The default rates are those of Llama 3: 419 unexpected interruptions in 54 days on
16,384 GPUs (Grattafiori et al., arXiv:2407.21783, table 5), divided by the 2,422 GPU-years of that time;
`weftwork/data/published/llama3_interruptions.csv` has the causes.
Leaves out: what it makes of them (`weftwork.workload.reliability`).
"""

from __future__ import annotations

from weftwork.base.units import DURATION
from weftwork.spec.device import Record
from weftwork.spec.scenario.kinds import Measure, Number, Whole
from weftwork.spec.scenario.rows import row

__all__ = ["Reliability"]

_LLAMA3 = "Grattafiori et al., arXiv:2407.21783, table 5"
_MEGASCALE = "Jiang et al. (MegaScale), NSDI 2024, arXiv:2402.15627: an upper bound of what they reached"
_UNIT = "failures a year for each GPU"


def _rate(key: str, text: str, default: float, count: int) -> float:
    rate: float = row(
        key,
        Number(low=0, high=1e6, unit=_UNIT),
        default=default,
        text=text,
        source=f"{_LLAMA3}: {count} of 419 in 54 days on 16,384 GPUs",
    )
    return rate


class Reliability(Record):
    """Failure rates, and the cost of interruptions."""

    gpu: float = _rate("gpu", "Failures of GPUs and their memory; a server is replaced.", 0.1106, 268)
    host: float = _rate("host", "Failures of what else is in a server; it is replaced.", 0.0087, 21)
    maintenance: float = _rate("maintenance", "Servers taken out that nobody had planned.", 0.0132, 32)
    network: float = _rate("network", "Failures of switches and cables that stop the job; it restarts.", 0.0144, 35)
    software: float = _rate("software", "Failures of software, and hangs without a known cause.", 0.026, 63)
    detect_ps: int = row(
        "detect",
        Measure(quantity=DURATION),
        default="600s",
        text="Time from a failure until it is found and the server at fault is known.",
        source=f"{_MEGASCALE} (10 minutes)",
    )
    restart_ps: int = row(
        "restart",
        Measure(quantity=DURATION),
        default="300s",
        text="Time from then until training goes on: processes started, groups made, checkpoint loaded.",
        source="chosen: MegaScale catches up within 15 minutes; with 20 minutes between checkpoints half is lost work",
    )
    checkpoint_every_ps: int | None = row(
        "checkpoint_every",
        Measure(quantity=DURATION, low=1_000_000_000),
        absent="that of training.checkpoint, else the optimum (Daly)",
        text="Time of training from one checkpoint to the next.",
        source="Daly, Future Generation Computer Systems 22 (2006), doi:10.1016/j.future.2004.11.016, equation 37",
    )
    checkpoint_cost_ps: int = row(
        "checkpoint_cost",
        Measure(quantity=DURATION),
        default="5s",
        text="Time for which a checkpoint holds training up.",
        source="chosen: MegaScale, section 4.4: several seconds, since storage is written in the background",
    )
    spares: int | None = row(
        "spares",
        Whole(low=0, high=1_000_000, unit="servers"),
        absent="there is always one",
        text="Servers that wait to replace one which failed.",
        source="chosen: none",
    )
    repair_ps: int = row(
        "repair",
        Measure(quantity=DURATION),
        default="86400s",
        text="Time until a server that failed is a spare again.",
        source="chosen: a day; it means nothing where there is always a spare",
    )
    days: int = row(
        "days",
        Whole(low=1, high=3650, unit="days"),
        default=30,
        text="Length of the simulated runs that give the spread.",
        source="chosen: a month",
    )
    runs: int = row(
        "runs",
        Whole(low=2, high=100_000, unit="runs"),
        default=100,
        text="Number of simulated runs.",
        source="chosen: the 5 % and 95 % quantiles are steady to a tenth of their distance",
    )
