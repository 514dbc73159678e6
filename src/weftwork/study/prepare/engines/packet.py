"""Packets, by the core in C++."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from weftwork.engine.lower import lower
from weftwork.engine.packet_input import PacketInput
from weftwork.study.prepare.engine import Engine, EngineOutput, Hearing, InputParts

if TYPE_CHECKING:
    from weftwork.engine.capture import CaptureRequest
    from weftwork.study.prepare.prepared import Prepared

__all__ = ["ENGINE", "EVENT_LIMIT", "MEMORY_BYTES", "lowered_packets"]

EVENT_LIMIT: Final = 200_000  # chosen: some megabytes; the totals in the same table are always complete
MEMORY_BYTES: Final = {
    "process": 306e6, "link": 2_570, "route": 8.1, "rank": 300, "message": 318, "queue_pair": 1_120, "operation": 416,
    "step": 0, "row": 185,
}  # fmt: skip


def lowered_packets(parts: InputParts) -> PacketInput:
    """The input of the engines that simulate packets."""
    return lower(
        fabric=parts.fabric,
        job=parts.job,
        transport=parts.transport,
        congestion_control=parts.policies["congestion_control"],
        settings=parts.settings,
        findings=parts.findings,
    )


def _run(prepared: Prepared, hearing: Hearing, capture: CaptureRequest | None) -> EngineOutput:
    from weftwork.engine import packet  # a clone without a compiler still has the reference

    if not isinstance(prepared.engine_input, PacketInput):
        raise TypeError("the packet engine runs an input of packets")
    outcome = packet.run(
        prepared.engine_input,
        series=prepared.series,
        event_limit=EVENT_LIMIT,
        capture=capture,
        on_progress=hearing.told,
        on_repeat=hearing.repeats,
    )
    return EngineOutput(outcome=outcome)


_SECOND_WORK: Final = 15_000_000  # chosen: about what a machine does; an answer may come a second later

ENGINE = Engine(lower=lowered_packets, run=_run, memory_bytes=MEMORY_BYTES, second_work=_SECOND_WORK)
