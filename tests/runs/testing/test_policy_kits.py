"""The conformance kits see what is wrong: each broken policy is found out by the check that is meant for it."""

from pathlib import Path

import pytest

from weftwork.policies.load import load
from weftwork.testing.congestion_control import check_congestion_control, network_findings
from weftwork.testing.path_selection import check_path_selection
from weftwork.testing.port_selection import check_port_selection

FEW = 2  # stories: one of two has all that a policy may need, and these faults are soon found
CONTROL = """
from weftwork.policies.interface import CongestionControl, Kind
class Params: pass
class State:
    heard: int
def step(params, state, signal):
    state.heard += 1
    {}
PLUGIN = CongestionControl(params=Params, state=State, step=step, source="a test",
    signals=frozenset({{Kind.ACK, Kind.SEND}}))
"""
PATH = """
from weftwork.policies.interface import PathSelection
class Params: pass
class State: pass
def step(params, state, signal):
    {}
PLUGIN = PathSelection(params=Params, state=State, step=step, source="a test", reorders='never')
"""
PORT = """
from weftwork.policies.interface import PortSelection
class Params: pass
class State: pass
def step(params, state, signal, candidates):
    {}
PLUGIN = PortSelection(params=Params, state=State, step=step, source="a test")
"""


def written(tmp_path: Path, template: str, body: str) -> Path:
    path = tmp_path / "broken.py"
    path.write_text(template.format(body), encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("body", "check"),
    [
        ("state.rate_bps = 2.0 * signal.line_rate_bps", "rate_within_line_rate"),
        ("state.window_bytes = 1e300", "window_within_bounds"),
        ("state.rate_bps = 1e9 / (state.heard % 50)", "no_signal_breaks_the_step"),
        ("state.timer_at_ps[2] = signal.now_ps", "timers_move_on"),
        ("state.window_bytes = 1000.0 * state.heard", "no_reaction_to_old_news"),
        ("state.window_bytes = float(signal.now_ps % 1000003)", "only_differences_of_time_count"),
    ],
)
def test_a_broken_control_is_found_out(tmp_path: Path, body: str, check: str) -> None:
    findings = check_congestion_control(load("congestion_control", written(tmp_path, CONTROL, body)), stories=FEW)
    assert check in {finding.check for finding in findings}


def test_a_control_that_works_is_not_accused(tmp_path: Path) -> None:
    body = "state.window_bytes = 100000.0"
    assert check_congestion_control(load("congestion_control", written(tmp_path, CONTROL, body)), stories=FEW) == ()


def test_a_broken_path_selection_is_found_out(tmp_path: Path) -> None:
    path = written(tmp_path, PATH, "state.entropy = signal.draw")
    (found,) = check_path_selection(load("path_selection", path), stories=FEW)
    assert found.check == "no_signal_breaks_the_step"
    assert "broken.py, line 6: entropy became" in found.text
    path = written(tmp_path, PATH, "state.entropy = signal.draw % 9")
    (found,) = check_path_selection(load("path_selection", path), stories=FEW)
    assert found.check == "keeps_its_path"


@pytest.mark.parametrize(
    ("body", "check"),
    [
        ("signal.choice = signal.hash % min(signal.candidates, 7)", "uses_every_candidate"),
        ("signal.choice = signal.hash % signal.candidates", None),
    ],
)
def test_a_port_selection_that_leaves_ports_out(tmp_path: Path, body: str, check: str | None) -> None:
    findings = check_port_selection(load("port_selection", written(tmp_path, PORT, body)), stories=FEW)
    assert {finding.check for finding in findings} == ({check} if check else set())


MOVING = """
from weftwork.policies.interface import PortSelection
class Params: pass
class State:
    gap: int
def step(params, state, signal, candidates):
    signal.choice = (signal.hash + {}) % signal.candidates
PLUGIN = PortSelection(params=Params, state=State, step=step, source="a test", reorders={})
"""


@pytest.mark.parametrize(
    ("moved", "reorders", "told"),
    [
        ("signal.now_ps", "'never'", "moved a flow from port"),
        ("signal.now_ps", "'on-move'", None),
        ("signal.draw", "'on-move'", "two packets of one flow at once left by ports"),
        ("signal.draw", "'always'", None),
    ],
)
def test_a_port_selection_moves_flows_as_it_says(tmp_path: Path, moved: str, reorders: str, told: str | None) -> None:
    path = tmp_path / "moving.py"
    path.write_text(MOVING.format(moved, reorders), encoding="utf-8")
    texts = {finding.check: finding.text for finding in check_port_selection(load("port_selection", path), stories=FEW)}
    assert set(texts) == ({"keeps_its_path"} if told else set())
    assert told is None or told in texts["keeps_its_path"]
    assert told is None or "reorders='" in texts["keeps_its_path"]


@pytest.mark.parametrize(
    ("body", "reorders", "told"),
    [
        ("state.entropy = signal.now_ps % 999", "'never'", "moved a packet from entropy"),
        ("state.entropy = signal.now_ps % 999", "'on-move'", None),
        ("state.entropy = signal.draw % 999", "'on-move'", "though the packet before left at the same instant"),
        ("state.entropy = signal.draw % 999", "'always'", None),
    ],
)
def test_a_path_selection_moves_packets_as_it_says(tmp_path: Path, body: str, reorders: str, told: str | None) -> None:
    path = written(tmp_path, PATH.replace("'never'", reorders), body)
    texts = {finding.check: finding.text for finding in check_path_selection(load("path_selection", path), stories=FEW)}
    assert set(texts) == ({"keeps_its_path"} if told else set())
    assert told is None or told in texts["keeps_its_path"]


WIDE = """
from weftwork.policies.interface import OFF, PortSelection
class Params: pass
class State:
    told: int
class Row:
    seen: int
def step(params, state, ports, signal, candidates):
    signal.choice = signal.hash % signal.candidates
    ports[candidates[signal.choice].port].seen += 1
    state.told += signal.delivered + candidates[0].hops_left + candidates[0].minimal
    {}
PLUGIN = PortSelection(params=Params, state=State, port_state=Row, step=step, source="a test", always=True,
    at_delivery=True, virtual_channels=2, needs={{"hops-left", "non-minimal"}})
"""


@pytest.mark.parametrize(
    ("body", "told"),
    [
        ("signal.virtual_channel = min(signal.hops, 1)", None),
        ("signal.virtual_channel = signal.hops", "virtual_channel became"),
        ("signal.virtual_channel = 1 // signal.delivered if signal.hops > 2 else 0", "ZeroDivisionError"),
        ("signal.virtual_channel = 1 // (candidates[0].hops_left * 9 + 1 - signal.delivered)", "ZeroDivisionError"),
        ("signal.virtual_channel = 1 // (signal.ports - signal.in_port)", None),
        ("signal.virtual_channel = 1 // candidates[0].minimal", "ZeroDivisionError"),
        ("signal.virtual_channel = 1 // (signal.candidates - 1)", "ZeroDivisionError"),
        ("signal.virtual_channel, signal.via = 0, 0", None),
    ],
)
def test_a_port_selection_is_shown_all_that_an_engine_shows(tmp_path: Path, body: str, told: str | None) -> None:
    if "," in body.partition("=")[0]:
        body = "signal.virtual_channel = 0\n    if signal.via == OFF: signal.via = (signal.to_edge + 1) % signal.edges"
    path = written(tmp_path, WIDE, body)
    texts = {finding.check: finding.text for finding in check_port_selection(load("port_selection", path), stories=FEW)}
    assert set(texts) == ({"no_packet_breaks_the_step"} if told else set())
    assert told is None or told in texts["no_packet_breaks_the_step"]


def test_a_port_selection_that_changes_its_way_twice_is_found_out(tmp_path: Path) -> None:
    body = "signal.virtual_channel = 0\n    signal.via = (signal.via + 2) % signal.edges"
    path = written(tmp_path, WIDE, body)
    texts = {finding.check: finding.text for finding in check_port_selection(load("port_selection", path), stories=FEW)}
    assert "asked for the way there" in texts["no_packet_breaks_the_step"]


CREDITS = """
from weftwork.policies.interface import CongestionControl, Kind
class Params: pass
class State:
    granted: int
class Receiver:
    wanted: int
def step(params, state, signal):
    if signal.kind == Kind.CREDIT:
        state.granted += signal.bytes
    if signal.kind == Kind.SEND:
        state.request_bytes = signal.backlog_bytes
        state.send_request = 1
def receive(params, state, shared, signal):
    if signal.kind == Kind.REQUEST or signal.kind == Kind.DATA:
        state.wanted = signal.request_bytes
    {}
PLUGIN = CongestionControl(params=Params, state=State, step=step, receiver_state=Receiver, receive=receive,
    source="a test", signals=frozenset({{Kind.SEND, Kind.CREDIT}}), needs=frozenset({{"request"}}))
"""


@pytest.mark.parametrize(
    ("body", "told"),
    [
        ("state.credit_bytes += 1000", None),
        ("state.credit_bytes = signal.bytes", "credit_bytes became"),  # a grant, where all credit was to be counted
        ("state.credit_bytes += 1 // (1 - (signal.kind == Kind.REQUEST and signal.request_bytes > 0))",
         "ZeroDivisionError"),
    ],
)  # fmt: skip
def test_a_receiver_grants_credit_that_never_falls(tmp_path: Path, body: str, told: str | None) -> None:
    findings = check_congestion_control(load("congestion_control", written(tmp_path, CREDITS, body)), stories=FEW)
    texts = {finding.check: finding.text for finding in findings}
    assert set(texts) == ({"no_signal_breaks_the_step"} if told else set())
    assert told is None or told in texts["no_signal_breaks_the_step"]


def test_a_broken_port_selection_is_found_out(tmp_path: Path) -> None:
    (found,) = check_port_selection(load("port_selection", written(tmp_path, PORT, "signal.choice = 2")), stories=FEW)
    assert found.check == "no_packet_breaks_the_step"
    path = written(tmp_path, PORT, "signal.choice = signal.draw % signal.candidates")
    (found,) = check_port_selection(load("port_selection", path), stories=FEW)
    assert found.check == "keeps_its_path"


@pytest.mark.parametrize(
    ("shares", "checks"),
    [
        ({1: [0.95], 2: [0.48, 0.47]}, set()),
        ({1: [0.5], 2: [0.48, 0.47]}, {"one_flow_fills_the_link"}),
        ({1: [0.95], 2: [0.8, 0.15]}, {"two_flows_share_the_link"}),
        ({1: [0.95], 2: [0.3, 0.3]}, {"two_flows_fill_the_link"}),
    ],
)
def test_what_a_network_shows_is_judged(shares: dict[int, list[float]], checks: set[str]) -> None:
    policy = load("congestion_control", "none")
    findings = network_findings(policy, lambda _, flows: shares[flows])
    assert {finding.check for finding in findings} == checks


def test_the_network_is_asked_when_an_engine_is_given() -> None:
    policy = load("congestion_control", "fixed-window")
    (found,) = check_congestion_control(policy, run=lambda _, flows: [0.95] if flows == 1 else [0.9, 0.05])
    assert found.check == "two_flows_share_the_link"


@pytest.mark.parametrize(
    ("kind", "template", "declared", "body"),
    [
        ("port_selection", PORT, "'hash'", "signal.choice = signal.destination % signal.candidates"),
        ("port_selection", PORT, "'destination'", "signal.choice = signal.hash % signal.candidates"),
        ("port_selection", PORT, "'evenly', reorders='always'", "signal.choice = signal.hash % signal.candidates"),
        ("path_selection", PATH, "'evenly'", "state.entropy = signal.draw % 4"),
        ("path_selection", PATH.replace("reorders='never'", "reorders='never', per='message'"), "'constant'",
         "state.entropy = signal.draw % 65536"),
    ],
)  # fmt: skip
def test_a_policy_that_declares_another_spread_than_its_own_is_found_out(
    tmp_path: Path, kind: str, template: str, declared: str, body: str
) -> None:
    check = check_port_selection if kind == "port_selection" else check_path_selection
    told = template.replace('source="a test"', f'source="a test", spreads={declared}')
    if declared == "'evenly'":
        told = told.replace("reorders='never'", "reorders='always'")
    findings = {one.check: one.text for one in check(load(kind, written(tmp_path, told, body)), stories=FEW)}
    assert f"declares spreads={declared.split(',', maxsplit=1)[0]}, but " in findings["spreads_as_declared"]
    silent = told.replace(f", spreads={declared.split(',', maxsplit=1)[0]}", "")
    findings = {one.check: one.text for one in check(load(kind, written(tmp_path, silent, body)), stories=FEW)}
    assert "spreads_as_declared" not in findings
