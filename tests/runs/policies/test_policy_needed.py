"""What each policy needs of switches and NICs is said by its file, and the list tells it."""

from __future__ import annotations

from pathlib import Path

import pytest

from weftwork.cli.list import ListedPolicy, choices
from weftwork.policies.load import KINDS, catalogue, load
from weftwork.policies.needed import Needed, needed, reads_host_delay

TEXT = """from weftwork.policies.interface import CongestionControl, Kind, ReceiverState, SenderState, Signal


class Params: ...


class State(SenderState):
    seen: int


class Receiver(ReceiverState): ...


def step(params: Params, state: State, signal: Signal) -> None:
    if signal.kind == Kind.ACK:
        SENDER


def receive(params: Params, state: Receiver, shared: None, signal: Signal) -> None:
    RECEIVER


PLUGIN = CongestionControl(
    params=Params, state=State, step=step, signals=frozenset({SIGNALS}), receiver_state=Receiver, receive=receive,
    needs=frozenset({NEEDS}), source="none",
)
"""


def says(
    folder: Path, *, sender: str = "pass", receiver: str = "pass", signals: str = "Kind.ACK", needs: str = ""
) -> Needed:
    parts = {"SENDER": sender, "RECEIVER": receiver, "{SIGNALS}": f"{{{signals}}}", "{NEEDS}": f"({needs})"}
    text = TEXT
    for name, part in parts.items():
        text = text.replace(name, part)
    path = folder / "own.py"
    path.write_text(text, encoding="utf-8")
    return needed(load("congestion_control", path))


@pytest.mark.parametrize(
    ("parts", "switch", "nic"),
    [
        ({}, (), ()),
        ({"sender": "state.segment_bytes = 9"}, (), ("bursts",)),
        ({"sender": "state.rate_bps = 1e9"}, (), ("rate",)),
        ({"sender": "state.seen += signal.marked_bytes", "needs": "'ecn',"}, ("marks (ECN)",), ("returns marks",)),
        ({"receiver": "state.send_cnp = signal.ecn", "signals": "Kind.CNP", "needs": "'ecn',"},
         ("marks (ECN)",), ("CNPs",)),
        ({"receiver": "state.credit_bytes += 9", "signals": "Kind.CREDIT"}, (), ("credit by the receiver",)),
        ({"sender": "state.seen = signal.host_delay_ps", "needs": "'rtt',"}, (), ("host delay", "timestamps")),
        ({"sender": "state.seen = signal.rtt_ps", "needs": "'rtt',"}, (), ("timestamps",)),
        ({"sender": "state.seen = signal.hop_rate_bps[0]", "needs": "'telemetry',"},
         ("telemetry of each hop",), ("returns telemetry",)),
        ({"sender": "state.seen += signal.lost_bytes", "needs": "'trimming', 'reorder-tolerance'"},
         ("trimming",), ("selective repeat", "keeps early packets")),
    ],
)  # fmt: skip
def test_each_word_has_its_cause_in_the_file(
    tmp_path: Path, parts: dict[str, str], switch: tuple[str, ...], nic: tuple[str, ...]
) -> None:
    assert says(tmp_path, **parts) == Needed(switch=switch, nic=nic)
    read = load("congestion_control", tmp_path / "own.py")
    assert reads_host_delay(read) == ("host delay" in nic)


@pytest.mark.parametrize("kind", KINDS)
def test_every_policy_is_listed_with_its_needs_and_variants(kind: str) -> None:
    listed = {choice.name: choice for choice in choices(kind)}
    assert list(listed) == [entry.name for entry in catalogue(kind)]
    for name, choice in listed.items():
        policy = load(kind, name)
        asked = needed(policy)
        assert isinstance(choice, ListedPolicy)
        assert (choice.switch, choice.nic, choice.variants) == (asked.switch, asked.nic, tuple(policy.plugin.variants))
