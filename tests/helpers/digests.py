"""Digests of the examples' scenarios and of the benchmarks' rows, held to golden files."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import rows
from helpers.examples import as_a_run

import weftwork
from weftwork.engine import packet
from weftwork.engine.reference.simulation import Simulation

__all__ = ["LONG", "ROOT", "SCENARIOS", "SMALL", "Check", "check_scenario", "digest_of_row"]

ROOT = Path(__file__).resolve().parents[2]
SCENARIOS = sorted(path.relative_to(ROOT).as_posix() for path in ROOT.glob("examples/**/*.yaml"))
_SECONDS = (
    "all_reduce_64",
    "goodput_scale",
    "oversubscription",
    "plan_405b",
    "which_fabric_405b",
)  # each takes seconds
LONG = [name for name in SCENARIOS if name.split("/")[1] in _SECONDS]
SMALL = ("small", "rails", "pfc", "spray")  # rows of the packet engine that take no second

Check = Callable[[str, str], None]


def check_scenario(scenario: str, folder: Path, check_golden: Check) -> None:
    """Hold the digest of a scenario of the examples to its golden file."""
    run = weftwork.run(ROOT / scenario, out=folder / "run", what_if="none", overrides=as_a_run(ROOT / scenario))
    name = scenario.removeprefix("examples/").removesuffix(".yaml").replace("/", ".")
    check_golden(f"digests/scenarios/{name}.txt", f"{run.provenance['digest']}\n")


def digest_of_row(name: str) -> str:
    """The digest of a row of the packet engine's benchmark."""
    row = rows.ROWS[name]
    engine_input = row.engine_input(row.fabric())
    if row.on_reference:
        simulation = Simulation(engine_input)
        simulation.run()
        return simulation.outcome().digest()
    return packet.run(engine_input, series=rows.series_of(row, engine_input)).digest()
