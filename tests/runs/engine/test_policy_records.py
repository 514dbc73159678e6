"""Records of policies at the border with the core: a class declares their sizes, and no text changes them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers.tiny import Message, packet_input_of, pair, sends

from weftwork.engine import _native, packet
from weftwork.engine.rows.declare import RowType
from weftwork.engine.rows.packet_run import CONGESTION, PATH_CHOICE, PORT_CHOICE
from weftwork.engine.rows.policies import PATH_STATE, RECEIVER_STATE, SENDER_STATE
from weftwork.policies.layout import RecordLayout
from weftwork.policies.load import load, policy_names

POLICY = '''"""A window that halves; source: a test."""

from __future__ import annotations

from weftwork.policies.interface import CongestionControl, Kind, SenderState, Signal, row

__all__ = ["PLUGIN", "Params", "State", "step"]


class Params:
    """Its number."""

    least_bytes: int = row(default=4_096, source="chosen: a packet", text="Least window.")


class State(SenderState):
    """Its count."""

    halvings: int


def step(params: Params, state: State, signal: Signal) -> None:
    """Halve the window at each timeout."""
    if signal.kind == Kind.TIMEOUT:
        state.halvings += 1
        state.window_bytes = max(state.window_bytes / 2, float(params.least_bytes))


PLUGIN = CongestionControl(
    params=Params, state=State, step=step, signals=frozenset({Kind.TIMEOUT}), source="a test"
)
'''
WORDS = "segment_bytes request_bytes marked_bytes hop_queue_bytes Kind.TRIM via word array(64) State Params"
UNRELATED = {
    "comment": POLICY.replace("    halvings: int\n", f"    halvings: int  # {WORDS}\n    # {WORDS}\n"),
    "docstring": POLICY.replace('"""Its count."""', f'"""Its count: {WORDS}."""'),
    "local name": POLICY.replace("state.halvings += 1", "segment_bytes = 1\n        state.halvings += segment_bytes"),
    "constant": POLICY.replace("\n\nclass Params:", f'\n\nSEGMENT_BYTES = "{WORDS}"\n\n\nclass Params:', 1),
}
ADDRESSES = {"step_address", "receive_address"}  # of compiled code


class CrossedError(Exception):
    """The core was asked to run."""


def crossing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, text: str) -> dict[str, Any]:
    """What the core is given for a run with a policy of this text."""
    file = tmp_path / "halving.py"
    file.write_text(text, encoding="utf-8")
    given: dict[str, Any] = {}

    def stop(arrays: dict[str, Any]) -> None:
        given.update(arrays)
        raise CrossedError

    made = packet_input_of(
        pair(), sends(2, [Message(source=0, destination=1, size_bytes=10_000)]),
        congestion_control=load("congestion_control", file),
    )  # fmt: skip
    with monkeypatch.context() as patched:
        patched.setattr(_native, "PacketEngine", stop)
        with pytest.raises(CrossedError):
            packet.run(made)
    return given


def settings(given: dict[str, Any]) -> dict[str, Any]:
    """Numbers and records of the congestion control, and parts of packets that the run keeps."""
    control = given["congestion_control"]
    kept = {name: given[name] for name in ("extended", "wide", "keeps_segments")}
    return kept | {
        name: value.tobytes() if isinstance(value, np.ndarray) else value
        for name, value in control.items()
        if name not in ADDRESSES
    }


@pytest.mark.parametrize("text", UNRELATED.values(), ids=UNRELATED)
def test_a_comment_or_an_unrelated_word_changes_nothing_that_crosses(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, text: str
) -> None:
    assert text != POLICY
    plain = settings(crossing(monkeypatch, tmp_path, POLICY))
    assert settings(crossing(monkeypatch, tmp_path, text)) == plain
    assert (plain["extended"], plain["wide"], plain["keeps_segments"]) == (False, False, False)


def test_a_field_that_a_class_declares_makes_its_record_longer(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    plain = settings(crossing(monkeypatch, tmp_path, POLICY))
    assert len(plain["state"]) == SENDER_STATE.dtype.itemsize + 8
    assert len(plain["params"]) == 8
    wider = POLICY.replace("    halvings: int\n", "    halvings: int\n    last_at_ps: int\n")
    wider = wider.replace(
        "\n\nclass State", '    most: float = row(default=1.0, source="chosen: one", text="Most.")\n\n\nclass State', 1
    )
    made = settings(crossing(monkeypatch, tmp_path, wider))
    assert len(made["state"]) == len(plain["state"]) + 8
    assert len(made["params"]) == len(plain["params"]) + 8


def test_a_field_that_a_step_writes_changes_what_packets_keep(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    text = POLICY.replace("state.halvings += 1", "state.segment_bytes = 4096\n        state.request_bytes = 1")
    made = settings(crossing(monkeypatch, tmp_path, text))
    assert (made["extended"], made["wide"], made["keeps_segments"]) == (False, True, True)


@pytest.mark.parametrize(("name", "least"), [("state", SENDER_STATE), ("receiver_state", RECEIVER_STATE)])
def test_the_core_refuses_a_record_shorter_than_what_it_reads(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, name: str, least: RowType
) -> None:
    given = crossing(monkeypatch, tmp_path, POLICY)
    for size in (least.dtype.itemsize - 8, least.dtype.itemsize + 4):
        control = given["congestion_control"] | {name: np.zeros(size, np.uint8)}
        with pytest.raises(ValueError, match=f"'{name}' is shorter than what the engine reads of it"):
            _native.PacketEngine(given | {"congestion_control": control})


def begins_with(layout: RecordLayout, record: RowType) -> bool:
    """Whether the first fields of a record are the declared ones, at the declared places."""
    columns, places = record.dtype.fields or {}, layout.dtype.fields or {}
    return all(places[name][:2] == columns[name][:2] for name in record.names)


@pytest.mark.parametrize("name", policy_names("congestion_control"))
def test_states_of_the_catalogues_controls_begin_with_what_the_core_reads(name: str) -> None:
    policy = load("congestion_control", name)
    assert begins_with(policy.state, SENDER_STATE)
    assert policy.receiver is None or begins_with(policy.receiver, RECEIVER_STATE)


@pytest.mark.parametrize("name", policy_names("path_selection"))
def test_states_of_the_catalogues_path_selections_begin_with_what_the_core_reads(name: str) -> None:
    assert begins_with(load("path_selection", name).state, PATH_STATE)


def test_every_record_of_a_policy_is_declared() -> None:
    records = {
        part.struct: {
            member.name: getattr(member, "begins", None)
            for member in part.members
            if getattr(member, "is_record", False)
        }
        for part in (CONGESTION, PATH_CHOICE, PORT_CHOICE)
    }
    assert records == {
        "CongestionSettings": {
            "params": None, "state": SENDER_STATE, "receiver_state": RECEIVER_STATE, "shared_state": None
        },
        "PathSettings": {"params": None, "state": PATH_STATE},
        "PortSettings": {"params": None, "state": None, "port_state": None},
    }  # fmt: skip
