"""Why equal hashes hurt: prints the table of README.md and draws its figure.

python -m examples.equal_hashes.answer
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from examples import cases

import weftwork
from weftwork.report.figures import cards

__all__ = ["Case", "figure", "measure", "report"]

SEEDS: Final = 4
US_PS: Final = 1e6
MOST_ACKS_BYTES: Final = 1_000_000  # chosen: more than the acknowledgements of any link, less than one flow of 4 MiB
HASHES: Final[dict[str, dict[str, str]]] = {
    "equal everywhere": {},
    "another seed for each tier": {"fabric.switch.hash": "{offset: 0}"},
    "the port of entry hashed too": {
        "fabric.switch.hash.fields": "[src_ip, dst_ip, protocol, src_port, dst_port, in_port]"
    },
    "other bits for each tier": {"fabric.switch.hash": "{}"},
    "a function that is not affine": {"fabric.switch.hash": "{algorithm: mix, offset: 0}"},
    "no hash: sprayed by the switches": {
        "transport.load_balancing": "switch-spray",
        "transport.recovery": "selective-repeat",
    },
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Case:
    """Means over the seeds: links from the middle tier to the cores, and the time until the last flow is done."""

    name: str
    used_share: float
    most_over_mean: float
    completion_us: float
    low_us: float
    high_us: float


def _to_cores(run: weftwork.Run) -> tuple[float, float, float]:
    """Share of links to the cores that carry data, the largest load over their mean, and the time in us."""
    names = run.links["name"].to_pylist()
    own = [place for place, name in enumerate(names) if name.startswith("agg") and "->core" in name]
    carried = run.links["bytes"].to_numpy()[own]
    used = float(np.mean(carried > MOST_ACKS_BYTES))
    return used, float(carried.max() / carried.mean()), cases.number(run, "completion_ps") / US_PS


def measure() -> list[Case]:
    """Run all cases."""
    found = []
    for name, changes in HASHES.items():
        each = [
            cases.run(cases.in_folder(__file__), {**changes, "engine.seed": str(seed)}, _to_cores)
            for seed in range(1, SEEDS + 1)
        ]
        used, most, times = (np.array(column) for column in zip(*each, strict=True))
        mean, low, high = cases.interval(times.tolist())
        found.append(
            Case(
                name=name, used_share=float(used.mean()), most_over_mean=float(most.mean()), completion_us=mean,
                low_us=low, high_us=high,
            )
        )  # fmt: skip
    return found


def report(measured: list[Case]) -> str:
    """The table of README.md."""
    rows = [("hash of the switches", "links to cores used", "most loaded / mean", "last flow", "95 % interval")]
    rows += [
        (
            case.name,
            f"{100 * case.used_share:.0f} %",
            f"{case.most_over_mean:.1f}",
            f"{case.completion_us:,.0f} us",
            f"{case.low_us:,.0f} to {case.high_us:,.0f}",
        )
        for case in measured
    ]
    return cases.table(rows)


def figure(measured: list[Case]) -> str:
    """The figure of README.md, as SVG."""
    rows = [
        cards.Bar(
            name=case.name,
            value=case.completion_us,
            text=f"{case.completion_us:,.0f} us, {100 * case.used_share:.0f} % of the links used",
            low=case.low_us,
            high=case.high_us,
            colour=cards.VERMILION if case.used_share < 1 / 2 else cards.BLUE,
        )
        for case in measured
    ]
    return cards.bars(
        "A permutation of 128 hosts, 4 MiB each, on a fat tree of three tiers",
        rows,
        axis=f"until the last flow is done: mean of {SEEDS} seeds, 95 % interval",
    )


if __name__ == "__main__":
    cases.answer(__file__, measure, report, figure)
