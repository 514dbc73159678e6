"""Packets, by their meaning in Python: the same results slowly."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from weftwork.engine.packet_input import PacketInput
from weftwork.study.prepare.engine import Engine, EngineOutput, Hearing
from weftwork.study.prepare.engines.packet import MEMORY_BYTES, lowered_packets

if TYPE_CHECKING:
    from weftwork.engine.capture import CaptureRequest
    from weftwork.study.prepare.prepared import Prepared

__all__ = ["ENGINE"]


def _run(prepared: Prepared, hearing: Hearing, capture: CaptureRequest | None) -> EngineOutput:
    from weftwork.engine.reference.simulation import Simulation

    if not isinstance(prepared.engine_input, PacketInput):
        raise TypeError("the reference engine runs an input of packets")
    simulation = Simulation(prepared.engine_input, capture)
    try:
        simulation.run(hearing.told)
    except KeyboardInterrupt:
        if not hearing.was_stopped():
            raise  # the second Ctrl-C: not at a place where the engine is whole
    outcome = simulation.outcome()
    return EngineOutput(outcome=replace(outcome, complete=False) if hearing.was_stopped() else outcome)


_SECOND_WORK: Final = 50_000  # chosen: about what a machine does; an answer may come a second later

ENGINE = Engine(lower=lowered_packets, run=_run, memory_bytes=MEMORY_BYTES, second_work=_SECOND_WORK)
