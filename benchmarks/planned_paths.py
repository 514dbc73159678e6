"""Planned paths against hashed and sprayed ones: collisions of permutations, times of collectives, times of solvers.

    python benchmarks/planned_paths.py                                  # all tables, as Markdown
    python benchmarks/planned_paths.py --draw docs/models/load-balancing-central.svg
    python benchmarks/planned_paths.py --only solving

The tables and the figure of docs/models/load-balancing-central.md are what this prints and draws.
Leaves out: fabrics of three tiers, and jobs that share links with others.
"""

from __future__ import annotations

import argparse
import importlib
import platform
import tempfile
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import yaml

from weftwork.report.figures import cards
from weftwork.study.prepare.prepare import prepare, read_scenario
from weftwork.study.record.road import execute
from weftwork.study.results.ideal import ideal_times_ps, nic_ports

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from weftwork.study.prepare.prepared import Prepared

__all__ = ["main"]

US_PS: Final = 1e6
UPLINKS: Final = str(Path(__file__).with_name("balanced_uplinks.py"))
# Most loaded link of a random permutation with one flow a host, in line rates: mean over 300 to 2,000 seeds of a
# calculation with uniform hashes, in which a host may be its own peer
CALCULATED: Final = {
    ("ECMP", 8): 3.67, ("ECMP", 16): 4.71, ("balanced uplinks", 8): 3.12, ("balanced uplinks", 16): 4.21,
    ("greedy", 8): 1.93, ("greedy", 16): 2.0, ("placement", 8): 1.0, ("placement", 16): 1.0,
}  # fmt: skip
SCHEMES: Final = {
    "ECMP": None,
    "balanced uplinks": UPLINKS,
    "constrained shortest paths": "constrained-shortest-paths",
    "greedy": "greedy",
    "placement": "placement",
}
SEEDS: Final = {("flow", 8): 100, ("flow", 16): 12, ("packet", 8): 8}
WINDOW: Final = {"name": "fixed-window"}  # one bandwidth-delay product: load balancing alone is seen
SPRAY: Final = {"load_balancing": "switch-spray", "reorder_tolerant": True}
JOBS: Final[dict[str, dict[str, Any]]] = {
    "all-to-all, 64 hosts, 2 MiB": {"collective": {"operation": "all-to-all", "gpus": 64, "size": "2MiB"}},
    "ring all-reduce, 64 hosts, 16 MiB": {
        "collective": {
            "operation": "all-reduce",
            "algorithm": "ring",
            "gpus": 64,
            "size": "16MiB",
            "placement": "random",
        },
    },
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Collision:
    """How long a permutation takes against one flow alone, over seeds."""

    scheme: str
    k: int
    fidelity: str
    mean: float
    half_width: float


def document(
    k: int, scheme: str | None, fidelity: str, seed: int, sections: dict[str, Any] | None = None
) -> dict[str, Any]:
    """The scenario of one run, as a user would write it."""
    fabric: dict[str, Any] = {
        "topology": "leaf-spine", "leaves": k, "spines": k, "hosts_per_leaf": k, "link_rate": "400Gbps",
        "cable_length": "20m",
    }  # fmt: skip
    if scheme is not None:
        fabric["engineering"] = {"scheme": scheme}
    return {
        "schema": 3,
        "fabric": fabric,
        "transport": {"congestion_control": WINDOW},
        "traffic": {"pattern": "permutation", "size": "4MiB"},
        "engine": {"fidelity": fidelity, "seed": seed},
    } | (sections or {})


def made(scenario: dict[str, Any]) -> Prepared:
    """The run of a scenario, prepared."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "scenario.yaml"
        file.write_text(yaml.safe_dump(scenario), encoding="utf-8")
        return prepare(read_scenario(file))


def slowest(prepared: Prepared) -> tuple[float, float]:
    """The largest slowdown of a message, and the time until the last one is there, in us."""
    outcome = execute(prepared, None, what_if="none").outcome
    messages = outcome.messages
    if not outcome.complete:
        raise SystemExit(f"{prepared.scenario.name}: not everything was delivered")
    took_ps = messages["delivered_at_ps"] - messages["posted_at_ps"]
    ideal_ps = ideal_times_ps(
        prepared.engine_input, *nic_ports(prepared.engine_input, messages), messages["size_bytes"]
    )
    last_ps = int(messages["delivered_at_ps"].max()) - int(messages["posted_at_ps"].min())
    return float((took_ps / ideal_ps).max()), last_ps / US_PS


def collisions(shapes: Iterable[tuple[str, int]], report: Callable[[Collision], None]) -> list[Collision]:
    """The slowest flow of a permutation against one alone, by scheme, fidelity and size."""
    measured: list[Collision] = []
    for fidelity, k in shapes:
        for name, scheme in SCHEMES.items():
            seeds = range(1, SEEDS[fidelity, k] + 1)
            found = [slowest(made(document(k, scheme, fidelity, seed)))[0] for seed in seeds]
            mean, half_width = float(np.mean(found)), 1.96 * float(np.std(found, ddof=1)) / len(found) ** 0.5
            measured.append(Collision(scheme=name, k=k, fidelity=fidelity, mean=mean, half_width=half_width))
            report(measured[-1])
    return measured


def collision_rows(measured: list[Collision]) -> list[tuple[str, ...]]:
    """A row for each scheme and size."""
    rows: list[tuple[str, ...]] = [("scheme", "k", "calculated", "flow engine", "difference", "packets", "difference")]
    of = {(one.scheme, one.k, one.fidelity): one for one in measured}
    for name, k in [(one.scheme, one.k) for one in measured if one.fidelity == "flow"]:
        calculated = CALCULATED.get((name, k))
        cells = [name, str(k), "" if calculated is None else f"{calculated:.2f}"]
        for fidelity in ("flow", "packet"):
            found = of.get((name, k, fidelity))
            if found is None:
                cells += ["", ""]
                continue
            cells.append(f"{found.mean:.2f} +- {found.half_width:.2f}")
            cells.append("" if calculated is None else f"{found.mean / calculated - 1:+.1%}")
        rows.append(tuple(cells))
    return rows


def collective_rows() -> list[tuple[str, ...]]:
    """Completion of two collectives by load balancing and fidelity."""
    rows: list[tuple[str, ...]] = [("collective", "paths", "flow engine", "packets")]
    ways = {"ECMP": None, "sprayed by switches": None, "greedy": "greedy", "placement": "placement"}
    for job, sections in JOBS.items():
        for name, scheme in ways.items():
            cells = [job, name]
            for fidelity in ("flow", "packet"):
                transport = {"congestion_control": WINDOW} | (SPRAY if name.startswith("sprayed") else {})
                times = []
                for seed in range(1, 4):
                    scenario = document(8, scheme, fidelity, seed, {"transport": transport, **sections})
                    del scenario["traffic"]
                    times.append(slowest(made(scenario))[1])
                cells.append(f"{np.mean(times):,.1f} us")
            rows.append(tuple(cells))
            print(cells, flush=True)
    return rows


def solving_rows() -> list[tuple[str, ...]]:
    """Time of each scheme for a permutation of all hosts, by size."""
    importlib.import_module("scipy.optimize")  # which is no part of a solver's time
    rows: list[tuple[str, ...]] = [("ToRs x spines", "hosts", "scheme", "seconds", "most loaded link", "lower bound")]
    for leaves, spines in ((8, 8), (16, 16), (32, 32), (64, 32)):
        for scheme in ("constrained-shortest-paths", "greedy", "placement"):
            scenario = document(8, scheme, "flow", 1)
            scenario["fabric"] |= {"leaves": leaves, "spines": spines, "hosts_per_leaf": spines}
            if scheme == "placement":
                scenario["fabric"]["engineering"]["time_limit"] = "300s"
            planned = made(scenario).planned
            if planned is None:
                raise SystemExit("a scenario with a controller has no planned paths")
            one = planned.computed[0]
            bound = "" if one.planned.bound is None else f"{one.planned.bound:.2f}"
            limit = f" ({one.planned.limit})" if one.planned.limit else ""
            cells = (f"{leaves} x {spines}", f"{leaves * spines:,}", scheme, f"{one.took_s:.3f}{limit}")
            rows.append((*cells, f"{one.busiest_share:.2f}", bound))
            print(rows[-1], flush=True)
    return rows


def figure(measured: list[Collision]) -> str:
    """Bars of the flow engine, as SVG."""
    rows = [
        cards.Bar(
            name=f"{one.scheme}, k = {one.k}",
            value=one.mean,
            text=f"{one.mean:.2f}"
            + (f", calculated {CALCULATED[key]:.2f}" if (key := (one.scheme, one.k)) in CALCULATED else ""),
            low=one.mean - one.half_width,
            high=one.mean + one.half_width,
            colour=cards.VERMILION if one.scheme == "ECMP" else cards.BLUE,
        )
        for one in measured
        if one.fidelity == "flow"
    ]
    axis = "slowest flow, as a multiple of its time alone: mean over seeds, 95 % interval"
    return cards.bars("A permutation on a leaf-spine of k x k switches and k x k hosts", rows, axis=axis)


def table(rows: list[tuple[str, ...]]) -> str:
    """Rows as Markdown."""
    head, *body = rows
    lines = [" | ".join(head), " | ".join("---" for _ in head), *(" | ".join(row) for row in body)]
    return "\n".join(f"| {line} |" for line in lines)


def main() -> None:
    """Measure, print and draw."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=("collisions", "collectives", "solving"))
    parser.add_argument("--draw", type=Path, help="file of the figure")
    chosen = parser.parse_args()
    print(f"{datetime.now(UTC):%Y-%m-%d}, {platform.machine()}")
    if chosen.only in (None, "collisions"):
        measured = collisions(SEEDS, lambda one: print(one, flush=True))
        if chosen.draw is not None:
            chosen.draw.write_text(figure(measured), encoding="utf-8")
        print(table(collision_rows(measured)))
    if chosen.only in (None, "collectives"):
        print(table(collective_rows()))
    if chosen.only in (None, "solving"):
        print(table(solving_rows()))


if __name__ == "__main__":
    main()
