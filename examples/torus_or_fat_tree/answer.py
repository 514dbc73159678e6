"""Torus against fat tree at about equal cost: prints the tables of README.md and draws its figure.

python -m examples.torus_or_fat_tree.answer
"""

from __future__ import annotations

from dataclasses import dataclass

from examples import cases

from weftwork.report.figures import cards

__all__ = ["Case", "figure", "measure", "report"]

MS_PS = 1e9
TORUS = "topology: torus, shape: [4, 4, 4], routing: dimension-order"
FABRICS = {
    "torus, links of 200 Gb/s": f"{{{TORUS}, link_rate: 400Gbps, fabric_rate: 200Gbps}}",
    "fat tree, 400 Gb/s": "{topology: fat-tree, hosts: 64, radix: 8, link_rate: 400Gbps}",
    "torus, links of 400 Gb/s": f"{{{TORUS}, link_rate: 400Gbps}}",
    "leaf-spine, 800 Gb/s": "{topology: leaf-spine, leaves: 8, spines: 8, hosts_per_leaf: 8, link_rate: 800Gbps}",
    "leaf-spine, 400 Gb/s": "{topology: leaf-spine, leaves: 8, spines: 8, hosts_per_leaf: 8, link_rate: 400Gbps}",
}
# a stage of the pipeline is one plane of the torus, 16 hosts
PARALLEL = {
    "data": "{operation: all-reduce, size: 1GiB, algorithm: auto, protocol: none}",
    "pipeline": "{operation: send-receive, shift: 16, size: 64MiB, algorithm: auto, protocol: none}",
    "experts": "{operation: all-to-all, size: 64MiB, algorithm: auto, protocol: none}",
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Case:
    """Price of one fabric, and the time of one operation for each kind of parallelism."""

    name: str
    price_usd: float
    took_ms: dict[str, float]


def measure() -> list[Case]:
    """Price all fabrics, and run the three operations on each."""
    scenario = cases.in_folder(__file__)

    def took_ms(fabric: str, collective: str) -> float:
        changes = {"fabric": fabric, "collective": collective}
        return cases.run(scenario, changes, lambda run: cases.number(run, "completion_ps") / MS_PS)

    return [
        Case(
            name=name,
            price_usd=cases.bill_of(scenario, {"fabric": fabric}).price_usd.typical,
            took_ms={kind: took_ms(fabric, collective) for kind, collective in PARALLEL.items()},
        )
        for name, fabric in FABRICS.items()
    ]


def report(measured: list[Case]) -> str:
    """The table of README.md."""
    rows = [("fabric of 64 hosts", "price", *PARALLEL)]
    rows += [
        (case.name, f"${case.price_usd:,.0f}", *(f"{case.took_ms[kind]:.2f} ms" for kind in PARALLEL))
        for case in measured
    ]
    return cases.table(rows)


def figure(measured: list[Case]) -> str:
    """The figure of README.md, as SVG."""
    torus, tree = measured[:2]
    rows = [
        cards.Bar(
            name=f"{kind}, {word}",
            value=case.took_ms[kind] / torus.took_ms[kind],
            text=f"{case.took_ms[kind]:.2f} ms",
            colour=colour,
        )
        for kind in PARALLEL
        for word, case, colour in (("torus", torus, cards.BLUE), ("fat tree", tree, cards.ORANGE))
    ]
    return cards.bars(
        f"64 hosts: a torus of ${torus.price_usd:,.0f} and a fat tree of ${tree.price_usd:,.0f}",
        rows,
        axis="time of the operation, as a multiple of the time on the torus",
    )


if __name__ == "__main__":
    cases.answer(__file__, measure, report, figure)
