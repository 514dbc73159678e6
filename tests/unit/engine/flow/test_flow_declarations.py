"""The flow engine reads what policies declare, not what their files are called; what is not true is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from helpers.tiny import Message, sends, wired

from weftwork.base.errors import ConfigError
from weftwork.engine.flow.flow_input import FlowInput, Mode
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


@pytest.mark.parametrize("name", ["bitmap", "mixed", "plb", "reps"])
def test_a_path_selection_that_declares_nothing_is_refused_where_the_entropy_counts(name: str) -> None:
    with pytest.raises(ConfigError, match=rf"transport\.path_selection  '{name}' does not declare"):
        lowered("ecmp", name)
    assert lowered("spray", name).mode == Mode.SPRAY


def test_a_parameter_that_makes_a_declaration_wrong_is_told() -> None:
    with pytest.raises(ConfigError, match=r"'spray' declares spreads='evenly', but \d+ of 1,024 packets"):
        lowered("ecmp", "spray", entropies=2)
    assert lowered("ecmp", "spray", entropies=256).mode == Mode.SPRAY
