"""Rail-optimized or rail-only, for a dense model and for experts: prints the tables of README.md and draws its figure.

python -m examples.rails_or_rail_only.answer
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from examples import cases

import weftwork
from weftwork.base.clock import SECOND_PS
from weftwork.report.figures import cards
from weftwork.study.sweep import sweep

__all__ = ["Exchange", "Fabrics", "Job", "figure", "hop_share", "measure", "report"]

JOINED, APART = "rail-optimized", "rail-only"
SIZES = (1024, 2048, 16384)
ONCE = ", a token once a server"
HOP = "over NVLink, in one piece"
WAYS: Mapping[str, Mapping[str, str]] = {
    "direct": {"collective.algorithm": "direct"},
    HOP: {"collective.chunks": "1"},
    "over NVLink, in 4 pieces": {"collective.chunks": "4"},
    "over NVLink, in 16 pieces": {"collective.chunks": "16"},
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Fabrics:
    """Both fabrics of one size: switches, dollars, dollars without NICs, and watts, by topology."""

    name: str
    switches: dict[str, int] = field(default_factory=dict)
    money: dict[str, float] = field(default_factory=dict)
    network_money: dict[str, float] = field(default_factory=dict)
    power_w: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True, slots=True)
class Job:
    """A job of one size: seconds of an iteration by topology, and those that wait for experts."""

    name: str
    took_s: dict[str, float] = field(default_factory=dict)
    experts_s: dict[str, float] = field(default_factory=dict)

    def costs(self, hop: float = 0) -> float:
        """What rail-only costs as a share of an iteration, where each exchange takes longer by the share ``hop``.

        Tokens that go once to a server are forwarded over NVLink on both fabrics, and the runs count it.
        """
        forwarded_s = 0.0 if ONCE in self.name else hop * self.experts_s[APART]
        return (self.took_s[APART] + forwarded_s) / self.took_s[JOINED] - 1


@dataclass(frozen=True, kw_only=True, slots=True)
class Exchange:
    """A way to exchange tokens: milliseconds by topology; None where it is refused."""

    name: str
    took_ms: dict[str, float | None]


def measure() -> list[Fabrics | Job | Exchange]:
    """Count the fabrics, run the sweep, and run the exchange in all ways."""
    return [*(_fabrics(gpus) for gpus in SIZES), *_jobs(), *(_exchange(name) for name in WAYS)]


def _fabrics(gpus: int) -> Fabrics:
    found = Fabrics(name=f"{gpus:,} GPUs")
    for topology in (JOINED, APART):
        made = cases.bill_of(cases.in_folder(__file__), {"fabric.topology": topology, "fabric.gpus": str(gpus)})
        found.switches[topology] = made.count("switch")
        found.money[topology] = made.price_usd.typical
        found.network_money[topology] = made.price_usd.typical - made.price_of_kind_usd("nic").typical
        found.power_w[topology] = made.power_w.typical
    return found


def _jobs() -> list[Job]:
    with tempfile.TemporaryDirectory() as folder:
        result = sweep.run_sweep(cases.in_folder(__file__), out=Path(folder) / "sweep").result
    if result is None:
        raise KeyboardInterrupt
    found: dict[str, Job] = {}
    for row in result.rows:
        once = ONCE * ("deduplicated" in row.values["training.software"])
        name = f"{row.values['training.model']}{once}, {int(row.values['fabric.gpus']):,} GPUs"
        job = found.setdefault(name, Job(name=name))
        job.took_s[row.values["fabric.topology"]] = row.numbers["iteration_ps"]["value"] / SECOND_PS
        job.experts_s[row.values["fabric.topology"]] = row.numbers["exposed_expert_ps"]["value"] / SECOND_PS
    return list(found.values())


def _exchange(name: str) -> Exchange:
    took_ms: dict[str, float | None] = {}
    for topology in (JOINED, APART):
        try:
            took_ms[topology] = cases.run(
                cases.in_folder(__file__, "exchange.yaml"), {"fabric.topology": topology, **WAYS[name]}, _took_ms
            )
        except weftwork.ConfigError:  # no path joins two rails
            took_ms[topology] = None
    return Exchange(name=name, took_ms=took_ms)


def _took_ms(run: weftwork.Run) -> float:
    return cases.number(run, "collective_duration_ps") * 1e3 / SECOND_PS


def report(measured: list[Fabrics | Job | Exchange]) -> str:
    """The tables of README.md."""
    bills: cases.Rows = [
        ("", "switches", "rail-only", "M$", "rail-only", "saved", "without NICs", "kW", "rail-only", "saved")
    ]
    jobs: cases.Rows = [("an iteration", JOINED, APART, "rail-only costs", "hop in one piece")]
    ways: cases.Rows = [("exchange of experts, 64 GPUs", JOINED, APART, "rail-only costs")]
    direct_ms, hop = _direct_ms(measured), hop_share(measured)
    for case in measured:
        if isinstance(case, Fabrics):
            bills.append(_bill_row(case))
        elif isinstance(case, Job):
            costs = (case.costs(), case.costs(hop))
            jobs.append((case.name, *(f"{case.took_s[way]:.2f} s" for way in (JOINED, APART)), *map(_percent, costs)))
        else:
            took = [case.took_ms[way] for way in (JOINED, APART)]
            shown = ["refused" if one is None else f"{one:.2f} ms" for one in took]
            ways.append((case.name, *shown, "" if took[1] is None else _percent(took[1] / direct_ms - 1)))
    return "\n\n".join(map(cases.table, (bills, jobs, ways)))


def _bill_row(case: Fabrics) -> tuple[str, ...]:
    def saved(numbers: Mapping[str, float]) -> str:
        return f"{100 * (1 - numbers[APART] / numbers[JOINED]):.0f} %"

    switches = [f"{case.switches[way]:,}" for way in (JOINED, APART)]
    money = [f"{case.money[way] / 1e6:.2f}" for way in (JOINED, APART)]
    power = [f"{case.power_w[way] / 1e3:,.0f}" for way in (JOINED, APART)]
    return (case.name, *switches, *money, saved(case.money), saved(case.network_money), *power, saved(case.power_w))


def hop_share(measured: list[Fabrics | Job | Exchange]) -> float:
    """What the hop over NVLink adds to a direct exchange if tokens take it in one piece."""
    (found,) = (case.took_ms[APART] for case in measured if isinstance(case, Exchange) and case.name == HOP)
    return 0.0 if found is None else found / _direct_ms(measured) - 1


def _direct_ms(measured: list[Fabrics | Job | Exchange]) -> float:
    (found,) = (case.took_ms[JOINED] for case in measured if isinstance(case, Exchange) and case.name == "direct")
    if found is None:
        raise weftwork.UsageError("a direct exchange is refused where spines join the rails")
    return found


def _percent(share: float) -> str:
    return f"{round(100 * share, 1) + 0.0:+.1f} %"


def figure(measured: list[Fabrics | Job | Exchange]) -> str:
    """The figure of README.md, as SVG."""
    rows = []
    for case in measured:
        if isinstance(case, Fabrics):
            for way, colour in ((JOINED, cards.BLUE), (APART, cards.ORANGE)):
                dollars = case.network_money[way] / int(case.name.split()[0].replace(",", ""))
                rows.append(
                    cards.Bar(name=f"{case.name}, {way}", value=dollars, text=f"{dollars:,.0f} $", colour=colour)
                )
    return cards.bars("What a GPU's share of the network costs, its NIC left out", rows, axis="dollars per GPU")


if __name__ == "__main__":
    cases.answer(__file__, measure, report, figure)
