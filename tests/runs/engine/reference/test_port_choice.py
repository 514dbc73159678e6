"""The choice of a port alone: candidates, what port selection is told, and what a packet takes along from it.

`helpers.hand_switch` says which ports and classes the switch has; NIC port 1, the destination, hangs at attachment 1.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from helpers.hand_switch import OUT, SPARE, Driven, HandRoutes

from weftwork.base.errors import PolicyError
from weftwork.engine.reference.forwarding import NextHop
from weftwork.policies.load import load


def minimal(*ports: int) -> list[NextHop]:
    return [NextHop(port=port) for port in ports]


def test_a_via_that_changes_twice_at_a_switch_is_refused_with_its_line(tmp_path: Path) -> None:
    text = (Path(__file__).parents[3] / "policies" / "wandering.py").read_text(encoding="utf-8")
    body = text.index("    total = signal.now_ps")
    file = tmp_path / "fickle.py"
    end = text.index("PLUGIN =")
    file.write_text(
        text[:body] + "    signal.via = (signal.via + 1) % signal.edges\n\n\n" + text[end:], encoding="utf-8"
    )
    line = text[:body].count("\n") + 1
    driven = Driven(routes=HandRoutes(OUT, SPARE), virtual_channels=2)
    choice = driven.switch.choice
    choice.selection = load("port_selection", file)
    choice.state, choice.port_states = choice.selection.new_state(), choice.selection.new_port_states(4)
    driven.routes.ways[0] = minimal(OUT)
    with pytest.raises(PolicyError, match=f"fickle.py, line {line}: via became 1, wanted 0"):
        driven.takes(1)
