"""What an oversubscribed tier costs and saves: prints the tables of README.md and draws its figure.

python -m examples.what_two_to_one_saves.answer
"""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path

from examples import cases

from weftwork.base.clock import SECOND_PS
from weftwork.report.figures import cards
from weftwork.study.sweep import sweep

__all__ = ["GPU_USD", "Fabric", "Job", "figure", "measure", "report"]

GPU_USD = 30_000  # chosen: what a GPU with its part of a server may cost; a per cent of time is worth a per cent of it
LEAF, CORE = "leaf", "core"
RATIO, LINKS = "fabric.oversubscription", "fabric.aggregation_links"
# by tier: the scenario, the key, and the value of each ratio
TIERS = {
    LEAF: ("scenario.yaml", RATIO, {"1:1": "1", "2:1": "2", "4:1": "4"}),
    CORE: ("cores.yaml", LINKS, {"1:1": "384", "7:1": "55"}),
}
PLACES = {"packed": "in order", "random-servers": "at random"}


@dataclass(frozen=True, kw_only=True, slots=True)
class Fabric:
    """A fabric, with what it saves beside 1:1.

    Attributes
    ----------
    name : tier and ratio
    gpus : of the fabric
    price_usd, saved_usd : low, typical and high
    power_w, saved_w : typical
    """

    name: str
    gpus: int
    price_usd: tuple[float, float, float]
    saved_usd: tuple[float, float, float]
    power_w: float
    saved_w: float

    @property
    def break_even(self) -> float:
        """Share of an iteration that may be lost before GPUs of that worth stand still."""
        return self.saved_usd[1] / (self.gpus * GPU_USD)


@dataclass(frozen=True, kw_only=True, slots=True)
class Job:
    """A job on one tier's fabrics: seconds of an iteration by ratio."""

    name: str
    tier: str
    took_s: dict[str, float]

    def lost(self, ratio: str) -> float:
        """What a ratio costs beside 1:1, as a share of an iteration."""
        return self.took_s[ratio] / self.took_s["1:1"] - 1


def measure() -> list[Fabric | Job]:
    """Count the fabrics of both tiers and run both sweeps."""
    return [*(fabric for tier in TIERS for fabric in _fabrics(tier)), *(job for tier in TIERS for job in _jobs(tier))]


def _fabrics(tier: str) -> list[Fabric]:
    file, key, values = TIERS[tier]
    found: list[Fabric] = []
    for ratio, value in values.items():
        made = cases.bill_of(cases.in_folder(__file__, file), {key: value})
        price_usd = (made.price_usd.low, made.price_usd.typical, made.price_usd.high)
        whole_usd, whole_w = (found[0].price_usd, found[0].power_w) if found else (price_usd, made.power_w.typical)
        less = [whole - own for whole, own in zip(whole_usd, price_usd, strict=True)]
        found.append(
            Fabric(
                name=f"{tier} {ratio}",
                gpus=made.gpus,
                price_usd=price_usd,
                saved_usd=(less[0], less[1], less[2]),
                power_w=made.power_w.typical,
                saved_w=whole_w - made.power_w.typical,
            )
        )
    return found


def _jobs(tier: str) -> list[Job]:
    file, key, values = TIERS[tier]
    with tempfile.TemporaryDirectory() as folder:
        result = sweep.run_sweep(cases.in_folder(__file__, file), out=Path(folder) / "sweep").result
    if result is None:
        raise KeyboardInterrupt
    ratios = {value: ratio for ratio, value in values.items()}
    found: dict[str, Job] = {}
    for row in result.rows:
        place = PLACES[row.values.get("training.placement", "packed")]
        name = f"{row.values['training.model']}, {place}, {tier}"
        job = found.setdefault(name, Job(name=name, tier=tier, took_s={}))
        job.took_s[ratios[row.values[key]]] = row.numbers["iteration_ps"]["value"] / SECOND_PS
    return list(found.values())


def report(measured: list[Fabric | Job]) -> str:
    """The tables of README.md."""
    fabrics = {case.name: case for case in measured if isinstance(case, Fabric)}
    bills: cases.Rows = [
        ("", "GPUs", "network, M$", "saved, M$", "low to high", "kW", "saved, kW", "pays below a loss of")
    ]
    for case in fabrics.values():
        saves = case.saved_usd[1] > 0
        spread = f"{case.saved_usd[0] / 1e6:.2f} to {case.saved_usd[2] / 1e6:.2f}"
        bills.append(
            (
                case.name, f"{case.gpus:,}", f"{case.price_usd[1] / 1e6:.2f}",
                f"{case.saved_usd[1] / 1e6:.2f}" * saves, spread * saves,
                f"{case.power_w / 1e3:,.0f}", f"{case.saved_w / 1e3:,.0f}" * saves,
                f"{100 * case.break_even:.1f} %" * saves,
            )
        )  # fmt: skip
    jobs: cases.Rows = [("", "1:1", "takes", "loses", "saved, M$", "time lost, M$", "pays")]
    for job in (case for case in measured if isinstance(case, Job)):
        for ratio in list(job.took_s)[1:]:
            fabric = fabrics[f"{job.tier} {ratio}"]
            lost_usd = job.lost(ratio) * fabric.gpus * GPU_USD
            jobs.append(
                (
                    f"{job.name} {ratio}", f"{job.took_s['1:1']:.2f} s", f"{job.took_s[ratio]:.2f} s",
                    f"{100 * job.lost(ratio):.1f} %", f"{fabric.saved_usd[1] / 1e6:.2f}", f"{lost_usd / 1e6:.2f}",
                    "yes" if lost_usd < fabric.saved_usd[1] else "no",
                )
            )  # fmt: skip
    return "\n\n".join(map(cases.table, (bills, jobs)))


def figure(measured: list[Fabric | Job]) -> str:
    """The figure of README.md, as SVG."""
    fabrics = {case.name: case for case in measured if isinstance(case, Fabric)}
    rows = []
    for job in (case for case in measured if isinstance(case, Job)):
        for ratio in list(job.took_s)[1:]:
            pays_below = fabrics[f"{job.tier} {ratio}"].break_even
            lost = job.lost(ratio)
            rows.append(
                cards.Bar(
                    name=f"{job.name} {ratio}",
                    value=100 * lost,
                    text=f"{100 * lost:.1f} %, pays below {100 * pays_below:.1f} %",
                    colour=cards.BLUE if lost < pays_below else cards.VERMILION,
                )
            )
    return cards.bars("What fewer uplinks cost, and where they still pay", rows, axis="longer than at 1:1, %")


if __name__ == "__main__":
    cases.answer(__file__, measure, report, figure)
