"""What a policy needs of a transport is refused where it is not there, and told where it costs something."""

from __future__ import annotations

from collections.abc import Callable
from importlib import resources
from itertools import chain
from pathlib import Path

import pytest
from helpers.findings import mistakes_of, notes_of

import weftwork
from weftwork.base.caveat import mismatch_texts
from weftwork.engine.packet_input import PacketInput
from weftwork.engine.requirements import check_reordering, check_requirements, note_reordering
from weftwork.policies.load import LoadedPolicy, load, policy_names
from weftwork.policies.needed import needed
from weftwork.spec.transport import Transport
from weftwork.testing import network
from weftwork.topology.build import fabric_of

TRIMMED = """from weftwork.policies.interface import CongestionControl, Kind, SenderState, Signal


class Params: ...


class State(SenderState): ...


def step(params: Params, state: State, signal: Signal) -> None:
    if signal.kind == Kind.TRIM:
        state.window_bytes = 9000.0


PLUGIN = CongestionControl(
    params=Params, state=State, step=step, signals=frozenset({Kind.TRIM}), needs=frozenset({"trimming"}), source="none"
)
"""


@pytest.fixture
def trimmed(tmp_path: Path) -> LoadedPolicy:
    path = tmp_path / "trimmed.py"
    path.write_text(TRIMMED, encoding="utf-8")
    return load("congestion_control", path)


@pytest.mark.parametrize(
    ("transport", "told"),
    [
        (Transport(), "transport 'rocev2' drops them (trim_bytes is 0); set transport.flow_control: none"),
        (
            Transport(trim_bytes=64, recovery="selective-repeat"),
            "priority 3, that of the data, is lossless in transport 'rocev2', so that none is cut",
        ),
        (Transport(trim_bytes=64, recovery="selective-repeat", lossless_priorities=()), None),
        (Transport(trim_bytes=64, recovery="selective-repeat", lossless_priorities=(2,)), None),
    ],
)
def test_cut_packets_come_from_a_transport_that_cuts(
    trimmed: LoadedPolicy, transport: Transport, told: str | None
) -> None:
    fabric = fabric_of(topology="leaf-spine", leaves=2, spines=1, hosts_per_leaf=1)
    mistakes = mistakes_of(check_requirements, fabric, transport, (trimmed, None, load("port_selection", "ecmp")))
    assert [mistake.path for mistake in mistakes] == (["transport.congestion_control"] if told else [])
    assert told is None or told in mistakes[0].text
    assert mistakes_of(check_requirements, fabric, transport, (load("congestion_control", "none"), None, None)) == []


def test_the_transport_of_the_catalogue_cuts_packets_where_it_is_told_to(trimmed: LoadedPolicy, tmp_path: Path) -> None:
    control = f"congestion_control: {trimmed.source_path}"
    with pytest.raises(weftwork.ConfigError, match="trimmed needs packets that are cut where a queue is full"):
        weftwork.prepare(scenario(tmp_path, control))
    cuts = "flow_control: none, recovery: selective-repeat, trimming: true"
    made = weftwork.prepare(scenario(tmp_path, f"{control}, {cuts}")).transport
    assert made.trim_bytes == 14 + 20 + 8 + 12 + 16 + 4 + 4  # Ethernet, IPv4, UDP, BTH, RETH, ICRC, FCS


def test_the_kit_has_a_network_that_cuts_for_a_policy_that_hears_of_it(
    trimmed: LoadedPolicy, monkeypatch: pytest.MonkeyPatch
) -> None:
    lowered: list[PacketInput] = []

    def no_run(engine_input: PacketInput, _engine: str) -> None:
        lowered.append(engine_input)
        raise InterruptedError

    monkeypatch.setattr(network, "_run", no_run)
    for policy in (trimmed, load("congestion_control", "none")):
        with pytest.raises(InterruptedError):
            network.Bottleneck().messages(policy, 2)
    cuts, drops = (one.transport for one in lowered)
    assert (cuts.trim_bytes, cuts.recovery, cuts.lossless_priorities) == (64, "selective-repeat", ())
    assert (drops.trim_bytes, drops.lossless_priorities) == (0, (3,))


def test_a_policy_that_moves_flows_is_allowed_and_told_of(tmp_path: Path) -> None:
    letflow = load("port_selection", "letflow")
    assert mistakes_of(check_reordering, Transport(), (letflow, None)) == []
    (caveat,) = notes_of(note_reordering, Transport(), (None, letflow)).values()
    assert (caveat.subject, caveat.kind) == ("transport.port_selection", "note")
    assert "'letflow' moves flows" in caveat.text
    assert "goes back for them; transport.reorder_tolerant: true would keep them" in caveat.text
    (late,) = notes_of(note_reordering, Transport(recovery="timeout"), (None, letflow)).values()
    assert "waits for a timeout" in late.text
    tolerant: tuple[Callable[[], Transport], ...] = (
        lambda: Transport(reorder_tolerant=True),
        lambda: Transport(recovery="selective-repeat"),
    )
    for made in tolerant:
        assert notes_of(note_reordering, made(), (letflow,)) == {}
    sprays = (load("port_selection", "spray"), load("port_selection", "ecmp"))
    assert notes_of(note_reordering, Transport(), sprays) == {}
    moved, kept = (weftwork.prepare(scenario(tmp_path, f"port_selection: {name}")) for name in ("letflow", "ecmp"))
    assert "transport.port_selection" in moved.notes
    assert "transport.port_selection" not in kept.notes


@pytest.mark.parametrize(
    ("ecn", "told"),
    [
        ("{kmin: 1KB, kmax: 2KB, pmax: 0}", None),  # nothing below kmax, everything from there on
        ("{kmin: 1KB, kmax: 900MB}", None),
        ("{kmin: 1KB, kmax: 900MB, pmax: 0}", "marks above 900,000,000 B, more than its buffer of 64,000,000 B can"),
        ("{kmin: 800MB, kmax: 900MB}", "marks above 800,000,000 B, more than its buffer of 64,000,000 B can"),
    ],
)
def test_marks_come_from_a_switch_that_marks_some_day(tmp_path: Path, ecn: str, told: str | None) -> None:
    made = scenario(tmp_path, "congestion_control: dcqcn", f", switch: {{ecn: {ecn}}}")
    if told is None:
        assert weftwork.prepare(made).fabric.switches[0].ecn.kmin_bytes == 1_000
        return
    with pytest.raises(weftwork.ConfigError, match=told) as caught:
        weftwork.prepare(made)
    assert ("set fabric.switch.ecn.pmax, which is 0, or kmax" in str(caught.value)) == ("pmax" in ecn)
    weftwork.prepare(scenario(tmp_path, "congestion_control: none", f", switch: {{ecn: {ecn}}}"))


@pytest.mark.parametrize("name", policy_names("congestion_control"))
def test_every_control_runs_where_its_needs_are_met_and_nowhere_else(tmp_path: Path, name: str) -> None:
    """The switches of the list, in words, are the switches that a scenario has to have."""
    control, words = f"congestion_control: {name}", needed(load("congestion_control", name)).switch
    cuts, tells, marks = (", flow_control: none, recovery: selective-repeat, trimming: true", "true", "{}")
    never = "{kmin: 800MB, kmax: 900MB}"
    met = scenario(tmp_path, control + cuts, f", switch: {{telemetry: {tells}, ecn: {marks}}}")
    weftwork.prepare(met)
    lacking = {
        ("trimming",): (control, tells, marks, "needs packets that are cut"),
        ("telemetry of each hop", "load of the path"): (control + cuts, "false", marks, "needs in-band telemetry"),
        ("marks (ECN)",): (control + cuts, tells, never, "needs ECN marks"),
    }
    assert set(words) <= set(chain(*lacking))
    for unmet, (transport, telemetry, ecn, told) in lacking.items():
        made = scenario(tmp_path, transport, f", switch: {{telemetry: {telemetry}, ecn: {ecn}}}")
        if not set(words).isdisjoint(unmet):
            with pytest.raises(weftwork.ConfigError, match=f"{name} {told}"):
                weftwork.prepare(made)
        else:
            weftwork.prepare(made)


def test_telemetry_comes_from_switches_that_write_it(tmp_path: Path) -> None:
    control = tmp_path / "told.py"
    text = TRIMMED.replace('"trimming"', '"telemetry"').replace("TRIM", "ACK")
    control.write_text(text.replace("9000.0", "9e3 + signal.hop_queue_bytes[0]"), encoding="utf-8")
    with pytest.raises(weftwork.ConfigError, match=r"set fabric\.switch\.telemetry: true"):
        weftwork.prepare(scenario(tmp_path, f"congestion_control: {control}"))
    weftwork.prepare(scenario(tmp_path, f"congestion_control: {control}", ", switch: {telemetry: true}"))


def test_a_control_that_measures_the_host_is_told_of_one_that_takes_everything_at_once(tmp_path: Path) -> None:
    control = tmp_path / "measures.py"
    text = TRIMMED.replace('"trimming"', '"rtt"').replace("TRIM", "ACK")
    control.write_text(text.replace("9000.0", "9e3 + signal.host_delay_ps"), encoding="utf-8")
    told = {
        name: weftwork.prepare(scenario(tmp_path, f"congestion_control: {used}", nic)).notes
        for name, used, nic in (
            ("fast", control, ""), ("slow", control, ", nic: {pcie_rate: 500Gbps}"), ("other", "none", ""),
        )
    }  # fmt: skip
    assert ["measures.host_delay" in caveats for caveats in told.values()] == [True, False, False]
    assert "set fabric.nic.pcie_rate" in told["fast"]["measures.host_delay"].text


def scenario(folder: Path, transport: str, fabric: str = "") -> weftwork.Scenario:
    file = folder / "s.yaml"
    file.write_text(
        f"schema: 3\nfabric: {{topology: leaf-spine, hosts: 4, radix: 4{fabric}}}\n"
        f"transport: {{{transport}}}\ntraffic: {{pattern: permutation, size: 64KiB}}\n",
        encoding="utf-8",
    )
    return weftwork.read_scenario(file)


def test_a_run_says_that_a_step_reads_what_no_need_fills(tmp_path: Path) -> None:
    """It reads 0 and looks right: the kit finds it, and a run says it behind its first lines."""
    hears = TRIMMED.replace("Kind.TRIM:", "Kind.ACK and signal.rtt_ps > 1000:").replace("Kind.TRIM}", "Kind.ACK}")
    for need in ('"rtt"', ""):
        file = tmp_path / f"control{len(need)}.py"
        file.write_text(hears.replace('{"trimming"}', f"({{{need}}})" if need else "()"), encoding="utf-8")
        texts = mismatch_texts(weftwork.prepare(scenario(tmp_path, f"congestion_control: {file}")).notes.values())
        wanted = () if need else (
            "'control0': a step reads signal.rtt_ps, always 0 without the need; add 'rtt' to needs",
        )  # fmt: skip
        assert texts == wanted


def test_a_run_says_each_of_several_needs_that_are_missing(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    hears = TRIMMED.replace("Kind.TRIM:", "Kind.ACK and signal.rtt_ps > 1000 + signal.entropy:")
    file.write_text(hears.replace("Kind.TRIM}", "Kind.ACK}").replace('{"trimming"}', "()"), encoding="utf-8")
    prepared = weftwork.prepare(scenario(tmp_path, f"congestion_control: {file}"))
    texts = mismatch_texts(prepared.notes.values())
    assert [need for need in ("rtt", "entropy") if not any(f"add '{need}' to needs" in text for text in texts)] == []


def test_flows_say_that_a_balancer_is_taken_as_it_declares_itself(tmp_path: Path) -> None:
    """What it does upon marks is not simulated, and a run that looks adaptive is a run of even spraying."""
    template = resources.files("weftwork.templates").joinpath("path_selection.py").read_text(encoding="utf-8")
    file = tmp_path / "mine.py"
    file.write_text(template, encoding="utf-8")
    made = scenario(tmp_path, f"path_selection: {file}, reorder_tolerant: true")
    on_flows = made.model_copy(update={"engine": made.engine.model_copy(update={"fidelity": "flow"})})
    run = weftwork.run(on_flows, out=tmp_path / "run", what_if="none")
    (caveat,) = (caveat for caveat in run.caveats if caveat.subject == "transport.path_selection")
    assert caveat.kind == "assumed"
    assert "spreads='evenly'); it also reacts to marks, which flows do not have" in caveat.text
