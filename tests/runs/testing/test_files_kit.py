"""The kit of whole files sees what is wrong with each kind: a template is broken in one way, and that way is found."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

import pytest

from weftwork.policies.load import load
from weftwork.testing.checks import CHECKS
from weftwork.testing.declarations import declaration_findings
from weftwork.testing.files import FileReport, check_file

SETTINGS = {"suspect": {"traffic.size": "16KiB"}}  # runs of traffic alone, which are enough here


def broken(tmp_path: Path, kind: str, old: str, new: str) -> FileReport:
    """What is found in a template of which one text is changed."""
    text = (files("weftwork") / "templates" / f"{kind}.py").read_text(encoding="utf-8")
    assert old in text
    file = tmp_path / "broken.py"
    file.write_text(text.replace(old, new), encoding="utf-8")
    return check_file(file, SETTINGS.get(kind, {}))


@pytest.mark.parametrize(
    ("kind", "old", "new", "check", "came"),
    [
        ("congestion_control", "state.window_bytes = path_bytes + packet_bytes", "state.window_bytes = -1.0",
         "no_signal_breaks_the_step", "window_bytes became -1.0"),
        ("congestion_control", "path_bytes + target_bytes + packet_bytes", "packet_bytes",
         "one_flow_fills_the_link", "it gets"),
        ("path_selection", "state.entropy = signal.draw % params.entropies", "state.entropy = 7 % params.entropies",
         "uses_every_uplink", "the uplinks sent"),
        ("path_selection", "state.entropy = signal.draw % params.entropies", "state.entropy = 7 % params.entropies",
         "spreads_as_declared", "took the entropy 7"),
        ("path_selection", 'reorders="always",  # packets of one queue pair overtake each other\n    spreads="evenly",',
         'reorders="never",', "keeps_its_path", "moved a packet"),
        ("port_selection", 'reorders="always",  # packets of one flow overtake each other\n    spreads="evenly",',
         'reorders="on-move",', "keeps_its_path", "two packets of one flow at once"),
        ("port_selection", "signal.choice = rest % signal.candidates", "signal.choice = rest % 3",
         "no_packet_breaks_the_step", "list index out of range"),
        ("port_selection", 'frozenset({"queue", "reorder-tolerance"})', 'frozenset({"reorder-tolerance"})',
         "declares_what_comes", "add 'queue' to needs"),
        ("collective", "lane.receive(behind, reduce=True)", "lane.receive(behind)", "computes_the_collective", "has"),
        ("collective", "steps = sum(rounds(call))\n    edges", "steps = 1 + sum(rounds(call))\n    edges",
         "computes_the_collective", "closed form"),
        ("collective", "owners = tuple(", "owners = (1 / 0,) + tuple(", "computes_the_collective", "ZeroDivisionError"),
        ("topology", "np.concatenate([down, across])", "down", "builds_a_fabric", "does not build"),
        ("topology", 'source="chosen: small enough to see"', 'source=""', "describes_itself", "no text or no source"),
        ("traffic", "rank_program=np.zeros(given.hosts, np.int32)", "rank_program=np.ones(given.hosts, np.int32)",
         "makes_a_job", "program"),
        ("traffic", "workers + (worker + stripe) % storage for", "worker for", "makes_a_job", "it cannot run"),
        ("transport", '"name": "rocev2 over ipv6"', '"ack_every": 9', "carries_messages", "ack_every is 9"),
        ("transport", "if keys.vlan_tag and", "if 1 / 0 and", "reads_its_keys", "ZeroDivisionError"),
        ("suspect", 'suspects, key="fabric.switch.f', 'suspects, key="fabric.switch.b', "names_its_key",
         "key 'fabric.switch.borwarding_latency' is no key of a scenario; did you mean"),
        ("suspect", 'text=f"forward', 'text="forward', "suspects_in_words", "have the placeholder '{format_quantity"),
        ("suspect", 'name="slow switches"', 'name="setting"', "suspects_in_words", "does not say which setting it is"),
        ("suspect", "1 - FAST_PS / slowest_ps", "7 / 5", "suspects_in_words", "wanted a share from 0 to 1"),
        ("suspect", "1 - FAST_PS / slowest_ps", "0.001", "bound_holds", "above its bound_share of 0.1%"),
        ("suspect", "changed(what_if.on_fabric, switches=fast)", "lambda run: run", "bound_holds", "the run itself"),
        ("suspect", "changed(what_if.on_fabric, switches=fast)", "lambda run: 1", "bound_holds", "returned a int"),
        ("suspect", 'text=f"forward', "text=f\"{__import__('time').perf_counter_ns()} forward",
         "same_run_same_suspects", "asked twice about one run"),
        ("suspect", "    fast = tuple(", '    fabric.links["delay_ps"][:] = 1\n    fast = tuple(',
         "leaves_the_run_as_it_was", "prepared.fabric of the run are changed"),
        ("suspect", "FAST_PS = 300_000", "FAST_PS = 10**9", "has_a_suspect", "no small run has a suspect"),
    ],
)  # fmt: skip
def test_a_template_that_is_broken_is_found_out(
    tmp_path: Path, kind: str, old: str, new: str, check: str, came: str
) -> None:
    report = broken(tmp_path, kind, old, new)
    assert check in {failure.check for failure in report.failures}
    assert any(came in failure.came for failure in report.failures if failure.check == check)


def test_what_was_not_checked_is_said(tmp_path: Path) -> None:
    report = broken(
        tmp_path, "congestion_control", "state.window_bytes = path_bytes + packet_bytes", "state.window_bytes = -1.0"
    )
    assert "one_flow_fills_the_link" in report.left_out
    assert not set(report.left_out) & set(report.checks)


def test_of_many_alike_three_are_written_out(tmp_path: Path) -> None:
    report = broken(tmp_path, "collective", "lane.receive(behind, reduce=True)", "lane.receive(behind)")
    assert len(report.failures) == 3
    assert report.more["computes_the_collective"] > 3


def test_every_check_has_words() -> None:
    for name, check in CHECKS.items():
        assert check.done, name
        assert check.wanted, name


CONTROL = """
from weftwork.policies.interface import CongestionControl, Kind, row
class Params:
    {params}
class State: pass
def step(params, state, signal):
    {body}
PLUGIN = CongestionControl(params=Params, state=State, step=step, source="a test", {declared})
"""
PATH = """
from weftwork.policies.interface import Kind, PathSelection
class Params: pass
class State: pass
def step(params, state, signal):
    {body}
PLUGIN = PathSelection(params=Params, state=State, step=step, source="a test", {declared})
"""
PORT = """
from weftwork.policies.interface import PortSelection
class Params: pass
class State: pass
def step(params, state, signal, candidates):
    {body}
PLUGIN = PortSelection(params=Params, state=State, step=step, source="a test", {declared})
"""
SIGNALS = "signals=frozenset({{{}}})"
GAIN = 'gain: float = row(default=1.0, source="chosen: a test", text="Nothing.")'


TRIMS = SIGNALS.format("Kind.TRIM") + ", needs={'trimming'}"
ON_ACK = SIGNALS.format("Kind.ACK, Kind.SEND")
ACKED = "if signal.kind == Kind.ACK: state.{}"
RATE = "state.rate_bps = 1e9 + signal.{}"


@pytest.mark.parametrize(
    ("kind", "text", "params", "body", "declared", "told"),
    [
        ("congestion_control", CONTROL, "pass", "pass", SIGNALS.format("Kind.REQUEST"), "step of a receiver"),
        ("congestion_control", CONTROL, "pass", RATE.format("rtt_ps"), ON_ACK, "signal.rtt_ps, always 0"),
        ("congestion_control", CONTROL, "pass", RATE.format("fabric_delay_ps"), ON_ACK, "add 'rtt' to needs"),
        ("congestion_control", CONTROL, "pass", RATE.format("hop_port[0]"), ON_ACK, "add 'telemetry' to needs"),
        ("congestion_control", CONTROL, "pass", RATE.format("entropy"), ON_ACK, "add 'entropy' to needs"),
        ("congestion_control", CONTROL, "pass", "if signal.kind == Kind.SEND: " + RATE.format("rtt_ps"), ON_ACK,
         "signal.rtt_ps at SEND, where it is always 0; it is set with: sender ACK, TRIM"),
        ("congestion_control", CONTROL, "pass", RATE.format("last_hop"), ON_ACK + ", needs={'trimming'}",
         "last_hop at"),
        ("congestion_control", CONTROL, "pass", RATE.format("draw"), ON_ACK, "draw at"),
        ("congestion_control", CONTROL, "pass", RATE.format("request_bytes"), ON_ACK, "request_bytes at"),
        ("congestion_control", CONTROL, "pass", "pass", ON_ACK + ", needs={'rtt'}", "take it out of needs"),
        ("congestion_control", CONTROL, "pass", "pass", ON_ACK + ", needs={'ecn'}", "no step reads ecn"),
        ("congestion_control", CONTROL, "pass", "pass", ON_ACK + ", needs={'trimming'}", "no step gets TRIM"),
        ("congestion_control", CONTROL, "pass", "if signal.kind == Kind.SEND: " + RATE.format("entropy"),
         ON_ACK + ", needs={'entropy'}", "where ACK, NAK or TRIM tell it"),
        ("congestion_control", CONTROL, "pass", "pass", ON_ACK + ", needs={'request'}", "needs hold 'request'"),
        ("congestion_control", CONTROL, "pass", "pass", ON_ACK + ", needs={'hops-left'}", "needs hold 'hops-left'"),
        ("congestion_control", CONTROL, "pass", "pass", ON_ACK + ", moves_departures=True", "moves_departures is"),
        ("congestion_control", CONTROL, "pass", "pass", SIGNALS.format("Kind.SEND") + ", is_loss_based=True",
         "is_loss_based is"),
        ("congestion_control", CONTROL, "pass", "if signal.kind == Kind.TIMER: state.rate_bps = 1e9", ON_ACK,
         "a step asks for TIMER, which it does not get; it comes where the step sets timer_at_ps"),
        ("path_selection", PATH, "", ACKED.format("entropy = signal.entropy"), SIGNALS.format("Kind.ACK"),
         "add 'entropy' to needs"),
        ("path_selection", PATH, "", "pass", SIGNALS.format("Kind.TRIM"), "add 'trimming' to needs"),
        ("path_selection", PATH, "", "pass", "needs={'request'}", "needs hold 'request'"),
        ("port_selection", PORT, "", "signal.choice = candidates[0].queue_bytes % 2", "", "add 'queue' to needs"),
        ("port_selection", PORT, "", "signal.choice = candidates[0].paused", "", "add 'queue' to needs"),
        ("port_selection", PORT, "", "signal.choice = candidates[0].hops_left % 2", "", "add 'hops-left' to needs"),
        ("port_selection", PORT, "", "signal.choice = candidates[0].minimal - 1", "", "always 1 without the need"),
        ("port_selection", PORT, "", "signal.choice = 0", "needs={'queue'}", "no step reads queue_bytes or paused"),
        ("port_selection", PORT, "", "signal.choice = 0", "needs={'trimming'}", "a switch cuts packets"),
        ("port_selection", PORT, "", "signal.choice = 0", "virtual_channels=2", "never sets signal.virtual_channel"),
        ("port_selection", PORT, "", "signal.virtual_channel = 0", "", "give PLUGIN virtual_channels=2"),
        ("port_selection", PORT, "", "signal.choice = signal.delivered", "", "give PLUGIN at_delivery=True"),
        ("congestion_control", CONTROL, "pass", "pass", SIGNALS.format("Kind.TRIM"), "add 'trimming' to needs"),
        ("congestion_control", CONTROL, "pass", "pass", SIGNALS.format("Kind.DATA"), "step of a receiver"),
        ("congestion_control", CONTROL, "pass", "pass", SIGNALS.format("Kind.CNP"), "sets send_cnp"),
        ("congestion_control", CONTROL, "pass", "pass", SIGNALS.format("Kind.CREDIT"), "sets credit_bytes"),
        ("congestion_control", CONTROL, "pass", "pass", SIGNALS.format("") + ", shared_state=State", "shared_state is"),
        ("congestion_control", CONTROL, "pass", "pass", SIGNALS.format("") + ", receiver_signals='ecn'", "no receive"),
        ("congestion_control", CONTROL, "pass", "pass", SIGNALS.format("") + ", needs={'queue'}", "needs hold 'queue'"),
        ("congestion_control", CONTROL, GAIN, "pass", SIGNALS.format(""), "parameter 'gain' is read by no step"),
        ("congestion_control", CONTROL, "pass", "if signal.kind == Kind.NAK: state.rate_bps = 1e9",
         SIGNALS.format("Kind.ACK"), "a step asks for NAK"),
        ("path_selection", PATH, "", "pass", SIGNALS.format("Kind.CNP"), "a path selection never gets"),
        ("path_selection", PATH, "", "pass", SIGNALS.format("Kind.TIMER"), "signals hold TIMER, which comes"),
        ("path_selection", PATH, "", "pass", SIGNALS.format("Kind.REQUEST"), "a path selection never gets"),
        ("path_selection", PATH, "", "if signal.kind == Kind.ACK: state.entropy = 1", "", "a step asks for ACK"),
        ("port_selection", PORT, "", "signal.choice = 0", "needs={'rtt'}", "a switch measures no round trip"),
        ("port_selection", PORT, "", "signal.choice = 0", "needs={'ecn'}", "a switch gets no marks"),
    ],
)  # fmt: skip
def test_what_never_comes_is_refused(
    tmp_path: Path, kind: str, text: str, params: str, body: str, declared: str, told: str
) -> None:
    path = tmp_path / "vain.py"
    path.write_text(text.format(params=params, body=body, declared=declared), encoding="utf-8")
    (finding,) = declaration_findings(load(kind, path))
    assert told in finding.text
    assert finding.text.count("\n") == 0


@pytest.mark.parametrize(
    ("kind", "text", "body", "declared"),
    [
        ("congestion_control", CONTROL, ACKED.format("rate_bps = 1e9 + signal.rtt_ps"), ON_ACK + ", needs={'rtt'}"),
        ("congestion_control", CONTROL, "if signal.kind != Kind.ACK: " + RATE.format("entropy"), ON_ACK),
        ("congestion_control", CONTROL, "if not (signal.kind == Kind.ACK): " + RATE.format("entropy"), ON_ACK),
        ("congestion_control", CONTROL, "is_ack = signal.kind == Kind.ACK\n    if not is_ack: "
         + RATE.format("entropy"), ON_ACK),
        ("congestion_control", CONTROL, "if signal.kind == Kind.ACK: return\n    " + RATE.format("entropy"), ON_ACK),
        ("congestion_control", CONTROL, "kind = signal.kind\n    if kind == Kind.SEND: "
         + RATE.format("entropy"), ON_ACK),
        ("congestion_control", CONTROL, "state.rate_bps = 1e9 + (signal.entropy if signal.kind < Kind.ACK else 0)",
         ON_ACK),
        ("congestion_control", CONTROL, "if signal.kind == Kind.TRIM: " + RATE.format("last_hop"), TRIMS),
        ("path_selection", PATH, "if signal.kind == Kind.TIMEOUT: state.entropy = 65535 - signal.entropy",
         SIGNALS.format("Kind.TIMEOUT")),
        ("path_selection", PATH, "if signal.kind == Kind.TIMER: state.entropy = 1\n    state.timer_at_ps[0] = 5", ""),
        ("port_selection", PORT, "signal.virtual_channel = 1", "virtual_channels=2"),
        ("port_selection", PORT, "signal.choice = signal.hash % signal.candidates", "needs={'non-minimal'}"),
    ],
)  # fmt: skip
def test_what_comes_is_not_refused(tmp_path: Path, kind: str, text: str, body: str, declared: str) -> None:
    path = tmp_path / "mine.py"
    path.write_text(text.format(params="pass", body=body, declared=declared), encoding="utf-8")
    assert declaration_findings(load(kind, path)) == ()


def test_all_that_never_comes_is_told_at_once(tmp_path: Path) -> None:
    path = tmp_path / "vain.py"
    declared = SIGNALS.format("Kind.TRIM, Kind.CNP") + ", needs={'queue'}"
    path.write_text(CONTROL.format(params=GAIN, body="pass", declared=declared), encoding="utf-8")
    failures = [failure for failure in check_file(path).failures if failure.check == "declares_what_comes"]
    assert len(failures) == 3
    assert check_file(path).more == {"declares_what_comes": 1}
