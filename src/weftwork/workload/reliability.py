"""Goodput over weeks: the share of time that is useful training.

It follows from failures, checkpoints and spares. Failures come at constant rates (Poisson). Training runs for a
checkpoint period, then a checkpoint holds it up. A failure throws away what was done since the last checkpoint;
detection and restart follow, and begin anew where something fails meanwhile. Some failures take a server out until it
is repaired; without a spare the job stands still.

Sources: Young, CACM 17(9), 1974, doi:10.1145/361147.361115; Daly, Future Generation Computer Systems 22 (2006) 303,
doi:10.1016/j.future.2004.11.016 (completion time, and the optimum period); spares: Erlang's loss formula, since
servers in repair are the busy ones of spares + 1, whatever the distribution of the time of a repair.
Leaves out: failures in bursts and of whole racks, checkpoints that are themselves damaged, slow GPUs that do not fail,
and training on with fewer GPUs.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from math import expm1, isinf, sqrt
from typing import TYPE_CHECKING, Final

import numpy as np

from weftwork.base.clock import SECOND_PS
from weftwork.base.grammar import plural
from weftwork.base.random import Stream
from weftwork.spec.numbers import quantities
from weftwork.spec.result import Quantity

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from weftwork.spec.scenario.reliability import Reliability

__all__ = [
    "PARTS",
    "Goodput",
    "Interruptions",
    "daly_period_s",
    "goodput",
    "shares",
    "simulated_shares",
    "young_period_s",
]

PARTS: Final = ("useful", "checkpoint", "lost", "recovery", "no spare")
CAUSES: Final = ("gpu", "host", "maintenance", "network", "software")
_TAKES_A_SERVER: Final = ("gpu", "host", "maintenance")
_YEAR_S: Final = 365.25 * 86_400
_DAY_S: Final = 86_400
_BLOCK: Final = 4096  # draws made at once
_K: Final = (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB)  # as in `weftwork.base.random`


@dataclass(frozen=True, kw_only=True, slots=True)
class Interruptions:
    """Frequency and cost of a job's interruptions.

    Attributes
    ----------
    mean_s : time to a failure; inf: nothing fails
    period_s, cost_s : training between two checkpoints, and for how long a checkpoint holds it up
    recovery_s : detection and restart
    taken_share : of the failures that take a server out
    repair_s : until it is a spare again
    spares : servers; None: there is always one
    """

    mean_s: float
    period_s: float
    cost_s: float
    recovery_s: float
    taken_share: float = 0.0
    repair_s: float = 0.0
    spares: int | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Goodput:
    """Time that failures leave for training.

    Attributes
    ----------
    gpus : of the job
    interruption_s : mean time from one interruption to the next, while the job is not waiting for a spare
    per_day : failures a day by cause
    period_s, optimum_s, young_s : training between two checkpoints; its optimum by Daly, and by Young
    iterations : between two checkpoints
    parts : expected share of the time by `PARTS`; they add up to 1
    useful : shape (runs,), useful share of each simulated run, ascending
    days : length of those runs
    """

    gpus: int
    interruption_s: float
    per_day: dict[str, float]
    period_s: float
    optimum_s: float
    young_s: float
    iterations: float
    parts: dict[str, float]
    useful: NDArray[np.float64]
    days: int

    @property
    def share(self) -> float:
        """Expected share of the time that is useful training."""
        return self.parts["useful"]

    def quantities(self, tokens_per_s: float | None = None) -> dict[str, Quantity]:
        """Numbers for the summary of a run.

        Parameters
        ----------
        tokens_per_s : of the job while nothing fails
        """
        low, high = (float(np.quantile(self.useful, quantile)) for quantile in (0.05, 0.95))
        runs = f"{plural(len(self.useful), 'simulated run')} of {plural(self.days, 'day')}"
        found = {
            **quantities("effective_share", self.share),
            **quantities("effective_share_p5", low, runs=runs),
            **quantities("effective_share_p95", high, runs=runs),
        }
        for part in PARTS[1:]:
            found |= quantities(f"{part.replace(' ', '_')}_share", self.parts[part])
        for name, seconds in (
            ("interruption_every_s", self.interruption_s),
            ("checkpoint_every_s", self.period_s),
            ("checkpoint_optimum_s", self.optimum_s),
        ):
            found |= quantities(name, None if isinf(seconds) else seconds)
        if tokens_per_s is not None:
            found |= quantities("effective_tokens_per_s", tokens_per_s * self.share)
        return found


def goodput(
    reliability: Reliability,
    *,
    gpus: int,
    iteration_s: float,
    checkpoint_every_s: float | None = None,
    checkpoint_cost_s: float | None = None,
    seed: int = 1,
) -> Goodput:
    """Compute the goodput of a job, in closed form and by simulation.

    Parameters
    ----------
    reliability : section of the scenario
    gpus : of the job
    iteration_s : time of an iteration; a checkpoint comes after a whole number of them
    checkpoint_every_s : between the job's own checkpoints, where the section does not say
    checkpoint_cost_s : what one of them costs; None: what the section says
    seed : of the simulated runs

    Returns
    -------
    with ``parts`` in closed form and ``useful`` of the simulated runs
    """
    per_s = {cause: getattr(reliability, cause) * gpus / _YEAR_S for cause in CAUSES}
    total, taken = sum(per_s.values()), sum(per_s[cause] for cause in _TAKES_A_SERVER)
    mean_s = 1 / total if total else float("inf")
    given_s = reliability.checkpoint_every_ps / SECOND_PS if reliability.checkpoint_every_ps is not None else None
    cost_s = reliability.checkpoint_cost_ps / SECOND_PS if checkpoint_cost_s is None else checkpoint_cost_s
    optimum_s = daly_period_s(mean_s, cost_s)
    wanted_s = given_s or checkpoint_every_s or optimum_s
    iterations = float("inf") if isinf(wanted_s) else max(1.0, round(wanted_s / iteration_s))
    known = Interruptions(
        mean_s=mean_s,
        period_s=iterations * iteration_s,
        cost_s=cost_s,
        recovery_s=(reliability.detect_ps + reliability.restart_ps) / SECOND_PS,
        taken_share=taken / total if total else 0.0,
        repair_s=reliability.repair_ps / SECOND_PS,
        spares=reliability.spares,
    )
    length_s = reliability.days * _DAY_S
    runs = [
        simulated_shares(known, length_s=length_s, seed=seed, number=number)["useful"]
        for number in range(reliability.runs)
    ]
    return Goodput(
        gpus=gpus,
        interruption_s=mean_s,
        per_day={cause: rate * _DAY_S for cause, rate in per_s.items()},
        period_s=known.period_s,
        optimum_s=optimum_s,
        young_s=young_period_s(mean_s, cost_s),
        iterations=iterations,
        parts=shares(known),
        useful=np.sort(np.array(runs)),
        days=reliability.days,
    )


def young_period_s(mean_s: float, cost_s: float) -> float:
    """Best training time between two checkpoints, to first order.

    Source: Young 1974: sqrt(2 cost x mean time to a failure).
    """
    return sqrt(2 * cost_s * mean_s) if cost_s else 0.0


def daly_period_s(mean_s: float, cost_s: float) -> float:
    """Best training time between two checkpoints (Daly 2006, equation 37).

    Examples
    --------
    >>> [round(daly_period_s(mean_s * 60, 300) / 60, 1) for mean_s in (1440, 360, 15)]  # figures 3 to 5
    [116.7, 56.7, 9.1]
    """
    if not cost_s or isinf(mean_s):
        return young_period_s(mean_s, cost_s)
    if cost_s >= 2 * mean_s:
        return mean_s
    ratio = cost_s / (2 * mean_s)
    return sqrt(2 * cost_s * mean_s) * (1 + sqrt(ratio) / 3 + ratio / 9) - cost_s


def shares(job: Interruptions) -> dict[str, float]:
    """Expected shares of the time by `PARTS`, in closed form.

    A period of training and its checkpoint, L = period + cost, fails n = exp(L / M) - 1 times on average before it
    succeeds, M being the mean time to a failure. That takes M exp(R / M) n in all (Daly 2006, section 3), of which
    n M - L are lost work and n M (exp(R / M) - 1) recoveries of R.
    """
    whole_s = job.period_s + job.cost_s
    if isinf(job.mean_s):
        useful = 1.0 if isinf(job.period_s) else job.period_s / whole_s
        return dict(zip(PARTS, (useful, 1 - useful, 0.0, 0.0, 0.0), strict=True))
    failures, again = _overflowing(whole_s / job.mean_s), _overflowing(job.recovery_s / job.mean_s)
    standing = 0.0 if job.spares is None else _erlang_loss(job.spares + 1, job.taken_share * job.repair_s / job.mean_s)
    going = 1.0 - standing
    if isinf(again):  # no recovery is ever done
        return dict(zip(PARTS, (0.0, 0.0, 0.0, going, standing), strict=True))
    # shares of the time that the job is not standing still; divided by n M exp(R / M), which may be infinite
    recovering = again / (1 + again)
    kept = 0.0 if isinf(failures) else whole_s / (failures * job.mean_s)
    lost = max(1 - kept, 0.0) / (1 + again)
    useful, held = (kept / (1 + again) * part / whole_s for part in (job.period_s, job.cost_s))
    return dict(zip(PARTS, (going * useful, going * held, going * lost, going * recovering, standing), strict=True))


def _overflowing(exponent: float) -> float:
    """Power of e less 1; infinity beyond the range of a double."""
    return expm1(exponent) if exponent < 700 else float("inf")


def _erlang_loss(servers: int, load: float) -> float:
    """Share of time with all servers busy (Erlang's B formula, by recursion).

    Examples
    --------
    >>> round(_erlang_loss(2, 1.0), 3)
    0.2
    """
    found = 1.0
    for count in range(1, servers + 1):
        found = load * found / (count + load * found)
    return found


def simulated_shares(job: Interruptions, *, length_s: float, seed: int, number: int) -> dict[str, float]:
    """Shares of one simulated run's time by `PARTS`.

    The failures are drawn. A repair takes its mean time exactly. At the end of the run, work since the last checkpoint
    counts.

    Parameters
    ----------
    job : what `shares` takes
    length_s : of the run
    seed, number : which draws are taken
    """
    if isinf(job.mean_s):
        return shares(job)
    spent = dict.fromkeys(PARTS, 0.0)
    whole_s = job.period_s + job.cost_s
    draws = _failures(seed, number, job.mean_s, job.taken_share)
    back: list[float] = []  # instants at which servers come back from repair
    now, is_recovering = 0.0, False
    while now < length_s:
        until_failure_s, takes_a_server = next(draws)
        left_s = length_s - now
        if is_recovering:
            long_s = min(until_failure_s, job.recovery_s, left_s)
            spent["recovery"] += long_s
            now += long_s
            if until_failure_s >= job.recovery_s:
                is_recovering = False  # what is left of the time to a failure is as long as a new one: no memory
                continue
        else:
            long_s = min(until_failure_s, left_s)
            periods = long_s // whole_s
            rest_s = long_s - periods * whole_s
            is_last = until_failure_s >= left_s
            spent["useful"] += periods * job.period_s + (min(rest_s, job.period_s) if is_last else 0.0)
            spent["checkpoint"] += periods * job.cost_s + (max(rest_s - job.period_s, 0.0) if is_last else 0.0)
            spent["lost"] += 0.0 if is_last else rest_s
            now += long_s
            is_recovering = True
        if takes_a_server and job.spares is not None:
            heapq.heappush(back, now + job.repair_s)
            while back and back[0] <= now:
                heapq.heappop(back)
            if len(back) > job.spares:
                waits_until = min(heapq.heappop(back), length_s)
                spent["no spare"] += max(waits_until - now, 0.0)
                now = max(waits_until, now)
    return {part: spent[part] / length_s for part in PARTS}


def _failures(seed: int, number: int, mean_s: float, taken_share: float) -> Iterator[tuple[float, bool]]:
    """Times to a failure, and whether it takes a server out.

    Draw i is that of `weftwork.base.random.draw`.
    """
    first = 0
    while True:
        place = np.arange(first, first + _BLOCK, dtype=np.uint64)
        times = -mean_s * np.log1p(-_uniform(seed, number, place, 0))
        kinds = _uniform(seed, number, place, 1) < taken_share
        yield from zip(times.tolist(), kinds.tolist(), strict=True)
        first += _BLOCK


def _uniform(seed: int, number: int, place: NDArray[np.uint64], purpose: int) -> NDArray[np.float64]:
    two, three = (np.uint64(k) for k in _K[1:])
    packet = place | np.uint64(Stream.FAILURE << 56)
    constant = np.uint64((number * _K[0] + ((seed << 32) + purpose) * _K[2]) & 0xFFFFFFFFFFFFFFFF)
    x = constant + packet * two
    x ^= x >> np.uint64(30)
    x *= two
    x ^= x >> np.uint64(27)
    x *= three
    x ^= x >> np.uint64(31)
    return (x >> np.uint64(11)).astype(np.float64) / 2.0**53
