"""A run that did not end names who stopped it: what is down, a deadlock, or the rule that stopped those who wait."""

from __future__ import annotations

from pathlib import Path

import pytest
from helpers.gallery import Gallery
from helpers.tiny import wired
from helpers.waiting import PROGRAMS, run_of, run_programs

from weftwork.report.three_lines import three_lines
from weftwork.report.waiting import waiting_lines
from weftwork.spec.answer import Culprit
from weftwork.spec.device import Switch
from weftwork.store.runs import Run
from weftwork.study.answer.unfinished import _RULES

FIDELITIES = ("packet", "flow", "reference")
PACKETS = ("packet", "reference")
SMALL = """schema: 3
fabric: {{topology: leaf-spine, leaves: 3, spines: 2, hosts_per_leaf: 2, link_rate: 100Gbps{fabric}}}
transport: {{congestion_control: {control}, timeout: 50us{transport}}}
traffic: {{pattern: permutation, size: 200KB}}
engine: {{fidelity: {fidelity}{until}}}
{more}
"""
CLOSED = '''"""A control that never opens its window. Source: chosen: for tests. Leaves out: any sense."""

from weftwork.policies.interface import CongestionControl, SenderState


class Params:
    """None."""


class State(SenderState):
    """Nothing beyond what the NIC obeys."""


def step(params, state, signal) -> None:
    state.window_bytes = 0.0


PLUGIN = CongestionControl(params=Params, state=State, step=step, signals=frozenset(), source="none")
'''
PROGRAMS_OF = {  # what each of two ranks does, by the rule that stops it, and on which engines
    "never sent": ("(((send, Wait()),), ((receive, receive, Wait()),))", "", FIDELITIES),
    "never notified": ("(((send, Wait(), Await(token=0)),), ((receive, Wait()),))", "", FIDELITIES),
    "never joined": ("(((sum_, Wait(), sum_, Wait()),), ((sum_, Wait()),))", "", ("flow",)),
    "receive missing": (
        "(((send, send, send, Wait()),), ((receive, Wait()),))",
        "transport: {end_to_end_credits: 1}\n",
        PACKETS,
    ),
}


def small(*, fidelity: str = "packet", fabric: str = "", control: str = "none", transport: str = "", until: str = "",
          more: str = "") -> str:  # fmt: skip
    return SMALL.format(fidelity=fidelity, fabric=fabric, control=control, transport=transport, until=until, more=more)


def stopped(run: Run, *words: str) -> Culprit:
    """The culprit of a run that did not end; ``words`` are those of the table ``waits`` that are there."""
    assert run.answer is not None
    assert (run.answer.took.seconds, run.answer.culprit.cost_s, run.answer.culprit.how) == (None, None, "recorded")
    found = run.query("select distinct stopped_by as word from waits where stopped_by is not null")["word"]
    assert set(found.to_pylist()) == set(words)
    culprit = run.answer.culprit
    assert three_lines(run)[2].startswith(culprit.name)
    return culprit


CASES = [(word, fidelity) for word, (_, _, fidelities) in PROGRAMS_OF.items() for fidelity in fidelities]


@pytest.mark.parametrize(("word", "fidelity"), CASES)
def test_a_job_that_waits_for_ever_is_to_blame_itself(word: str, fidelity: str, tmp_path: Path) -> None:
    streams, more, _ = PROGRAMS_OF[word]
    until = ", until: 2ms" if more else ""  # asked for a credit now and again, till the end of time
    run = run_programs(tmp_path, streams, f"{more}engine: {{fidelity: {fidelity}{until}}}\n")
    found = stopped(run, word)
    assert (found.kind, found.name, found.key) == ("job", "the job", None)
    assert found.text == _RULES[word][-1]


@pytest.mark.parametrize("fidelity", PACKETS)
def test_a_queue_pair_that_gives_up_without_a_fault_has_reached_its_limit(gallery: Gallery, fidelity: str) -> None:
    lossy = small(fidelity=fidelity, fabric=", loss: 0.9", transport=", retry_limit: 1, flow_control: none")
    found = stopped(gallery.run(lossy), "retries exhausted")
    assert (found.kind, found.name, found.key) == ("setting", "retry_limit", "transport.retry_limit")


@pytest.mark.parametrize("fidelity", PACKETS)
def test_a_queue_pair_that_gives_up_at_a_dead_link_has_met_a_fault(gallery: Gallery, fidelity: str) -> None:
    """No leaf has lost all of its links, so that the fabric joins all hosts: routes come too late."""
    faults = """faults:
  - {at: 1us, link: leaf0-spine0, event: down}
  - {at: 2us, link: leaf1-spine1, event: down, for: 1us}
"""
    run = gallery.run(small(fidelity=fidelity, transport=", retry_limit: 0", more=faults))
    found = stopped(run, "retries exhausted")
    assert (found.kind, found.name, found.key, found.start_s) == ("link", "leaf0-spine0", "faults.0", 1e-6)


@pytest.mark.parametrize("fidelity", PACKETS)
def test_a_control_that_never_sends_is_to_blame_by_its_name(gallery: Gallery, fidelity: str) -> None:
    run = gallery.run(small(fidelity=fidelity, control="./closed.py"), files={"closed.py": CLOSED})
    found = stopped(run, "held back")
    assert (found.kind, found.name, found.key) == ("policy", "closed", "transport.congestion_control")


def test_every_rule_has_a_run_that_it_stops() -> None:
    assert set(_RULES) == {*PROGRAMS_OF, "retries exhausted", "held back"}


@pytest.mark.parametrize("until", ["", ", until: 200us"], ids=["at rest", "cut"])
@pytest.mark.parametrize("fidelity", FIDELITIES)
def test_of_several_that_are_down_the_one_in_the_way_is_to_blame(gallery: Gallery, fidelity: str, until: str) -> None:
    """A NIC dies, a link elsewhere comes back and another one dies later, which messages go round."""
    faults = """faults:
  - {at: 2us, nic: host1, event: down}
  - {at: 3us, link: leaf1-spine1, event: down, for: 20us}
  - {at: 60us, link: leaf2-spine1, event: down}
"""
    text = small(fidelity=fidelity, until=until, fabric=", reconvergence_delay: 1us", more=faults)
    found = stopped(gallery.run(text), "dead link")
    assert (found.kind, found.name, found.key, found.start_s) == ("nic", "host1", "faults.0", 2e-6)


@pytest.mark.parametrize("fidelity", FIDELITIES)
def test_a_switch_without_which_there_is_no_path_is_to_blame(gallery: Gallery, fidelity: str) -> None:
    text = small(fidelity=fidelity, more="faults: [{at: 2us, switch: spine0, event: down}]")
    found = stopped(gallery.run(text.replace("spines: 2", "spines: 1")), "no path")
    assert (found.kind, found.name, found.key, found.start_s) == ("switch", "spine0", "faults.0", 2e-6)


def test_a_deadlock_is_to_blame_on_flow_control(tmp_path: Path) -> None:
    links = [*((host, 8 + host) for host in range(8)), *((8 + i, 8 + (i + 1) % 8) for i in range(8))]
    switch = Switch(forwarding_latency_ps=0, buffer_bytes=300_000, headroom_bytes=30_000)
    send = 'Send(peer=Peer(rule="rank", shift=(i + 3) % 8), size=Size(total_bytes=3_000_000))'
    streams = f"tuple((({send}, Wait()),) for i in range(8))"
    (tmp_path / "waits.py").write_text(PROGRAMS.replace("{streams}", streams), encoding="utf-8")
    text = """schema: 3
fabric: {topology: leaf-spine, hosts: 8, radix: 8, cycles: allow}
transport: {congestion_control: none, timeout: 1ms}
traffic: {pattern: ./waits.py}
"""
    run = run_of(tmp_path, text, fabric=wired(links, hosts=8, switch=switch))
    assert run.status == "deadlocked"
    found = stopped(run, "deadlock")
    assert (found.kind, found.name, found.key) == ("setting", "flow_control", "transport.flow_control")
    assert found.text == f"locked {run.table('deadlock').num_rows} ports in a circle of pauses"


def test_a_healthy_run_that_was_cut_was_stopped_by_its_end_and_no_circle_is_told(gallery: Gallery) -> None:
    run = gallery.run(small(until=", until: 5us"))
    found = stopped(run)
    assert (run.status, found.kind, found.name, found.key) == ("stopped", "setting", "engine.until", "engine.until")
    assert not [line for line in waiting_lines(run) if "wait for each other" in line]


@pytest.mark.parametrize("fidelity", PACKETS)
def test_a_timeout_below_the_round_trip_is_to_blame_and_not_the_control(gallery: Gallery, fidelity: str) -> None:
    text = small(
        fidelity=fidelity,
        fabric=", cable_length: 20km",
        control="dcqcn",
        transport=", flow_control: none, retry_limit: 1",
    )
    run = gallery.run(text.replace("200KB", "2MB"))  # more than is sent before the queue pair gives up
    found = stopped(run, "retries exhausted")
    assert (run.status, found.name, found.key) == ("gave-up", "timeout", "transport.timeout")
    assert found.text.startswith("of 50us is shorter than the round trip of 40")


def test_a_run_that_sends_nothing_has_ended(tmp_path: Path) -> None:
    run = run_programs(tmp_path, "(((),), ((),))")
    assert run.status == "complete"
    assert run.answer is not None
    assert (run.answer.took.seconds, run.answer.culprit.kind) == (None, "none")
