"""Layers in the flow engine: flows take the ways of the tables, pinned ones theirs; what spreads takes all alike."""

from __future__ import annotations

from pathlib import Path

import pytest
from helpers.direct_networks import ring
from helpers.tiny import Message, flow_input_of, sends

from weftwork.base.errors import ConfigError
from weftwork.policies.load import load
from weftwork.spec.routing import Routing

MB = 1_000_000


def test_what_no_flow_has_is_refused(tmp_path: Path) -> None:
    fabric = ring(3)
    job = sends(3, [Message(source=0, destination=1, size_bytes=MB)])
    file = tmp_path / "by_word.py"
    text = load("port_selection", "ecmp").source_path.read_text(encoding="utf-8")
    file.write_text(text.replace("waits_for_routes=True", "layer_by_word=True"), encoding="utf-8")
    by_word = load("port_selection", file)
    flow_input_of(fabric, job, port_selection=by_word)
    with pytest.raises(ConfigError, match="chooses a layer of routes by the packet's word"):
        flow_input_of(fabric, job, port_selection=by_word, routing=Routing(paths=2))
