"""Two ways between two hosts, lowered for the flow engine with a declared policy."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from helpers.tiny import Message, sends, wired

from weftwork.engine.flow.flow_input import FlowInput
from weftwork.engine.flow.lower import lower_flow
from weftwork.engine.settings import EngineSettings
from weftwork.policies.load import load
from weftwork.spec.transport import Transport

FABRIC = wired([(0, 2), (1, 3), (2, 4), (2, 5), (4, 3), (5, 3)], hosts=2)


JOB = sends(2, [Message(source=0, destination=1, size_bytes=10_000)])


def lowered(port: str | Path, path: str | Path | None = None, **parameters: Any) -> FlowInput:
    return lower_flow(
        fabric=FABRIC,
        job=JOB,
        transport=Transport(reorder_tolerant=True),
        settings=EngineSettings(
            port_selection=load("port_selection", port),
            path_selection=None if path is None else load("path_selection", path, parameters),
        ),
    )
