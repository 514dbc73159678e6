"""The engine of a fidelity: how its input is made, how it runs, and what a run of it needs.

Each fidelity is a file of `weftwork.study.prepare.engines`, which offers one record.
Leaves out: what a fidelity simulates and records (`weftwork.spec.fidelities`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from weftwork.base.folder import Folder

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from weftwork.base.findings import Findings
    from weftwork.engine.capture import CaptureRequest
    from weftwork.engine.flow.flow_input import FlowInput
    from weftwork.engine.flow.outcome import FlowOutcome
    from weftwork.engine.outcome import Outcome
    from weftwork.engine.packet_input import PacketInput
    from weftwork.engine.settings import EngineSettings
    from weftwork.policies.load import LoadedPolicy
    from weftwork.spec.fabric import Fabric
    from weftwork.spec.job import Job
    from weftwork.spec.scenario.scenario import Scenario
    from weftwork.spec.transport import Transport
    from weftwork.study.prepare.prepared import Prepared

    Told = Callable[[int, int, int | None], None]  # simulated ps, packet-hops, bytes delivered

__all__ = ["ENGINES", "Engine", "EngineOutput", "Hearing", "InputParts"]


@dataclass(frozen=True, kw_only=True, slots=True)
class InputParts:
    """What the input of an engine is made of.

    Attributes
    ----------
    scenario : its stragglers
    fabric, job, transport : what runs on what
    policies : by kind
    settings : the rest, as the engines have it
    findings : take what the engine cannot run
    known : an input that was made of this very job on a similar fabric, whose table of operations may be taken
    """

    scenario: Scenario
    fabric: Fabric
    job: Job
    transport: Transport
    policies: Mapping[str, LoadedPolicy]
    settings: EngineSettings
    findings: Findings
    known: PacketInput | FlowInput | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Hearing:
    """Who hears of a run while it goes on.

    Attributes
    ----------
    told : called at the start and about ten times a second; may raise KeyboardInterrupt to stop the run
    repeats : called where a policy's step has failed, before the run is repeated to find line and reason
    was_stopped : whether ``told`` has raised KeyboardInterrupt
    """

    told: Told
    repeats: Callable[[], None]
    was_stopped: Callable[[], bool]


@dataclass(frozen=True, kw_only=True, slots=True)
class EngineOutput:
    """What an engine gives.

    Attributes
    ----------
    outcome : messages, marks, ports and counters
    flows : what only flows tell, such as where time went; else None
    """

    outcome: Outcome
    flows: FlowOutcome | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Engine:
    """How a fidelity makes its input and runs it.

    Attributes
    ----------
    lower : makes the input; ConfigError with every reason why the engine cannot run it
    run : runs a prepared scenario, and captures the frames asked for
    memory_bytes : for one of each part of a run, fitted; `benchmarks/run_memory.py` prints the measurements and how far
        off the sum is
    second_work : work of the estimate that a machine does in about a second
    folded_memory_bytes : the same where ranks that are alike run once; None where they never do
    """

    lower: Callable[[InputParts], PacketInput | FlowInput]
    run: Callable[[Prepared, Hearing, CaptureRequest | None], EngineOutput]
    memory_bytes: Mapping[str, float]
    second_work: int
    folded_memory_bytes: Mapping[str, float] | None = None


ENGINES: Final[Folder[Engine]] = Folder(
    "fidelity", package="weftwork.study.prepare.engines", constant="ENGINE", record=Engine
)
