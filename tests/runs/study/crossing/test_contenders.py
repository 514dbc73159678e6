"""Who takes part in a crossing, and how each has to be carried."""

from __future__ import annotations

from pathlib import Path

from weftwork.policies.load import load, policy_names
from weftwork.study.crossing.contenders import (
    Balancer,
    contender_of,
    transport_keys,
)  # fmt: skip

ECMP = Balancer(name="ecmp")
OWN = '''"""A window that halves at each loss.

Source: none. Leaves out: slow start.
"""

from weftwork.policies.interface import CongestionControl, Kind, SenderState, Signal


class Params:
    """None."""


class State(SenderState):
    """None."""


def step(params: Params, state: State, signal: Signal) -> None:
    """Halve the window."""
    if signal.kind == Kind.NAK:
        state.window_bytes = max(state.window_bytes / 2, 4096.0)


PLUGIN = CongestionControl(
    params=Params, state=State, step=step, source="chosen: none", signals=frozenset({Kind.NAK})LOSS
)
'''


def test_losses_are_not_prevented_where_a_control_hears_by_them() -> None:
    carried = {name: contender_of(name, ECMP, "all").carried for name in policy_names("congestion_control")}
    assert {name for name, way in carried.items() if way == "drops"} == {"reno", "cubic", "bbr", "bbr3", "vivace"}


def test_a_control_of_a_users_own_is_carried_as_its_file_says(tmp_path: Path) -> None:
    by_loss, other = tmp_path / "halving.py", tmp_path / "steady.py"
    by_loss.write_text(OWN.replace("LOSS", ",\n    is_loss_based=True"), encoding="utf-8")
    other.write_text(OWN.replace("LOSS", ""), encoding="utf-8")
    dropped, paused = (contender_of(str(file), ECMP, "controls") for file in (by_loss, other))
    assert (dropped.name, dropped.carried) == ("halving with ecmp", "drops")
    assert transport_keys(dropped, str(by_loss))["transport.flow_control"] == "none"
    assert (paused.carried, transport_keys(paused, str(other))["transport.flow_control"]) == ("PFC", "pfc")
    assert load("congestion_control", str(by_loss)).plugin.source == "chosen: none"
