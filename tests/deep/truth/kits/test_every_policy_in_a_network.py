"""Every policy does in a small network what its kind is for: fill and share a link, use every uplink, leave dead ones.

The numbers: by 20 ms, the second flow having come 1 ms after the first, one flow has 90 % of the link and two have a
Jain index of 0.95. Flow control is on, so that even no control at all shares.
"""

from pathlib import Path

import pytest
from kits.test_every_policies_contract import CONTROLS, EACH, PATHS, PORTS, short

from weftwork.base.clock import US_PS
from weftwork.policies.load import load
from weftwork.testing.congestion_control import check_congestion_control, network_findings
from weftwork.testing.network import Bottleneck, Uplinks, uplink_findings

# By the reference, which is slow, a shorter one: the flows start together and are soon where they stay.
SHORT = Bottleneck(engine="reference", lead_ps=10 * US_PS, settled_at_ps=300 * US_PS, until_ps=600 * US_PS)
CONTROL = """
from weftwork.policies.interface import CongestionControl, Kind
class Params: pass
class State: pass
def step(params, state, signal):
    {}
PLUGIN = CongestionControl(
    params=Params, state=State, step=step, source="a test", signals=frozenset({{Kind.ACK}}), needs=frozenset({{"rtt"}})
)
"""
PORT = """
from weftwork.policies.interface import PortSelection
class Params: pass
class State: pass
def step(params, state, signal, candidates):
    signal.choice = signal.hash % {}
PLUGIN = PortSelection(params=Params, state=State, step=step, source="a test")
"""


# NDP never has more in flight than its first window, of 15 packets in this variant: less than the kit's path holds.
TOO_SMALL = ("ndp", "csg-htsim")


@pytest.mark.parametrize(("name", "variant"), EACH, ids=short)
def test_one_flow_fills_the_link_and_two_share_it(name: str, variant: str | None) -> None:
    found = network_findings(load("congestion_control", name, variant=variant), Bottleneck())
    assert [one.check for one in found] == (["one_flow_fills_the_link"] if (name, variant) == TOO_SMALL else [])


@pytest.mark.parametrize("name", CONTROLS, ids=short)
def test_the_reference_says_the_same_of_a_short_run(name: str) -> None:
    policy = load("congestion_control", name)
    native = Bottleneck(lead_ps=SHORT.lead_ps, settled_at_ps=SHORT.settled_at_ps, until_ps=SHORT.until_ps)
    assert SHORT(policy, 2) == native(policy, 2)


def test_a_kit_asks_the_network_it_is_given() -> None:
    policy = load("congestion_control", "fixed-window", {"window_bytes": 5_000})
    (alone, _) = check_congestion_control(policy, run=Bottleneck())
    assert alone.check == "one_flow_fills_the_link"


@pytest.mark.parametrize("name", PATHS, ids=short)
def test_path_selection_uses_every_uplink_that_lives(name: str) -> None:
    assert uplink_findings(load("path_selection", name), Uplinks()) == ()


@pytest.mark.parametrize("name", PORTS, ids=short)
def test_port_selection_uses_every_uplink_that_lives(name: str) -> None:
    policy = load("port_selection", name)
    assert uplink_findings(policy, Uplinks()) == ()
    assert Uplinks(engine="reference", messages=1)(policy) == Uplinks(messages=1)(policy)


@pytest.mark.parametrize(
    ("body", "check"),
    [
        ("state.rate_bps = 0.5 * signal.line_rate_bps", "one_flow_fills_the_link"),
        ("if signal.rtt_ps > 8000000: state.window_bytes = 4096.0", "two_flows_fill_the_link"),
        ("if signal.kind == Kind.START and signal.now_ps > 0: state.rate_bps = 1e10", "two_flows_share_the_link"),
    ],
)
def test_a_control_that_does_not_do_its_work_is_found_out(tmp_path: Path, body: str, check: str) -> None:
    path = tmp_path / "broken.py"
    path.write_text(CONTROL.format(body), encoding="utf-8")
    findings = network_findings(load("congestion_control", path), Bottleneck())
    assert {finding.check for finding in findings} == {check}


@pytest.mark.parametrize("kept", ["1", "min(signal.candidates, 3)"])
def test_a_balancer_that_leaves_uplinks_unused_is_found_out(tmp_path: Path, kept: str) -> None:
    path = tmp_path / "broken.py"
    path.write_text(PORT.format(kept), encoding="utf-8")
    findings = uplink_findings(load("port_selection", path), Uplinks())
    assert {finding.check for finding in findings} == {"uses_every_uplink"}
