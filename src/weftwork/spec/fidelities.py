"""The fidelities: what each simulates, and what it records.

A row is a value of ``engine.fidelity``. Whoever needs to know what a run can tell asks a field of its row.
Leaves out: how a fidelity makes its input and runs it (`weftwork.study.prepare.engine`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

__all__ = ["FIDELITIES", "Fidelity"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Fidelity:
    """What an engine simulates, and what it records.

    Attributes
    ----------
    name : value of ``engine.fidelity``
    has_packets : whether packets are simulated, with their queues, marks, pauses and losses; else flows share links
    has_collectives : whether it runs a collective as one operation, as NCCL chooses it; else as sends and receives
    has_jobs : whether several training jobs share the fabric
    folds_training : whether ranks of training that are alike run once, so that no single messages are kept
    has_series : whether it keeps series of flows and ports that a scenario asks for
    has_timeline : whether it keeps rates of all ports over time, where it does not fold
    model_page : title of the page of the documentation about its model
    nothing_over_time : why its runs have nothing over time; empty where they have
    """

    name: str
    has_packets: bool
    has_collectives: bool
    has_jobs: bool
    folds_training: bool
    has_series: bool
    has_timeline: bool
    model_page: str
    nothing_over_time: str = ""


_FIDELITIES: Final = (
    Fidelity(
        name="packet",
        has_packets=True,
        has_collectives=False,
        has_jobs=False,
        folds_training=False,
        has_series=True,
        has_timeline=True,
        model_page="The packet engine: what it computes",
    ),
    Fidelity(
        name="flow",
        has_packets=False,
        has_collectives=True,
        has_jobs=True,
        folds_training=True,
        has_series=False,
        has_timeline=True,
        model_page="The flow engine: its rules",
    ),
    Fidelity(
        name="reference",
        has_packets=True,
        has_collectives=False,
        has_jobs=False,
        folds_training=False,
        has_series=False,
        has_timeline=False,
        model_page="The packet engine: what it computes",
        nothing_over_time=(
            "The reference engine records nothing over time; the packet engine records it, with the same result."
        ),
    ),
)
FIDELITIES: Final[dict[str, Fidelity]] = {fidelity.name: fidelity for fidelity in _FIDELITIES}
