"""A run that breaks an invariant ends with its text; the process, its next run and the run folder are sound."""

from __future__ import annotations

import gc
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from helpers.tiny import Message, packet_input_of, sends, wired

from weftwork.base.errors import EngineError
from weftwork.cli.leave import FAILED, exit_code
from weftwork.engine import packet
from weftwork.engine.packet_input import PacketInput
from weftwork.engine.rows.fabric import Instant
from weftwork.study.record.run import run_scenario

SCENARIO = """\
schema: 3
fabric: {topology: leaf-spine, leaves: 2, spines: 1, hosts_per_leaf: 1}
traffic: {pattern: permutation, size: 100KB}
engine: {fidelity: packet}
"""


def sound() -> PacketInput:
    """Two hosts at one switch."""
    fabric = wired([(0, 2), (1, 2)], hosts=2)
    return packet_input_of(fabric, sends(2, [Message(source=0, destination=1, size_bytes=100_000)]))


def out_of_order(engine_input: PacketInput) -> PacketInput:
    """The same with two instants of which the second lies before the first; `lower` never makes such a list."""
    instants = np.zeros(2, engine_input.instants.dtype)
    instants["at_ps"] = 3_000_000, 1_000_000
    instants["code"] = Instant.ROUTES
    return replace(engine_input, instants=instants)


def test_a_broken_invariant_ends_the_run_and_not_the_process() -> None:
    before = packet.run(sound()).digest()
    for _ in range(3):
        with pytest.raises(EngineError, match=r"time_never_runs_back: .*; at_ps 3000000, instant_at_ps 1000000\. Send"):
            packet.run(out_of_order(sound()))
        gc.collect()
    assert packet.run(sound()).digest() == before


def test_a_broken_invariant_of_a_command_is_one_line_and_leaves_no_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "plan.yaml").write_text(SCENARIO, encoding="utf-8")
    run = packet.run
    monkeypatch.setattr(packet, "run", lambda engine_input, **how: run(out_of_order(engine_input), **how))
    code = exit_code(lambda: run_scenario(tmp_path / "plan.yaml", out=tmp_path / "out"), as_json=False)
    assert code == FAILED
    shown = capsys.readouterr().err
    assert shown.startswith("an error of Weftwork itself; please report it: the run has ended, since an invariant")
    assert "Traceback" not in shown
    assert sorted(path.name for path in tmp_path.iterdir()) == ["plan.yaml"]
