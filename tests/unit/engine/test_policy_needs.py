"""What a policy needs of a transport is refused where it is not there, and told where it costs something."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import weftwork
from weftwork.engine.packet_input import PacketInput
from weftwork.engine.requirements import reordering_caveats, reordering_mistakes, requirement_mistakes
from weftwork.policies.load import LoadedPolicy, load
from weftwork.spec.transport import Transport
from weftwork.testing import network
from weftwork.topology.build import fabric_of

FLOWLET = Path(__file__).parents[2] / "policies" / "flowlet.py"
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
        (Transport(trim_bytes=64, recovery="selective-repeat"), None),
    ],
)
def test_cut_packets_come_from_a_transport_that_cuts(
    trimmed: LoadedPolicy, transport: Transport, told: str | None
) -> None:
    fabric = fabric_of(topology="leaf-spine", leaves=2, spines=1, hosts_per_leaf=1)
    mistakes = requirement_mistakes(fabric, transport, (trimmed, None, load("port_selection", "ecmp")))
    assert [mistake.path for mistake in mistakes] == (["transport.congestion_control"] if told else [])
    assert told is None or told in mistakes[0].text
    assert requirement_mistakes(fabric, transport, (load("congestion_control", "none"), None, None)) == []


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
    flowlet = load("port_selection", FLOWLET)
    assert reordering_mistakes(Transport(), flowlet, None) == []
    (caveat,) = reordering_caveats(Transport(), None, flowlet).values()
    assert (caveat.subject, caveat.kind) == ("transport.port_selection", "note")
    assert "'flowlet' moves flows" in caveat.text
    assert "goes back for them; transport.reorder_tolerant: true would keep them" in caveat.text
    (late,) = reordering_caveats(Transport(recovery="timeout"), None, flowlet).values()
    assert "waits for a timeout" in late.text
    tolerant: tuple[Callable[[], Transport], ...] = (
        lambda: Transport(reorder_tolerant=True),
        lambda: Transport(recovery="selective-repeat"),
    )
    for made in tolerant:
        assert reordering_caveats(made(), flowlet) == {}
    assert reordering_caveats(Transport(), load("port_selection", "spray"), load("port_selection", "ecmp")) == {}
    moved, kept = (weftwork.prepare(scenario(tmp_path, f"port_selection: {name}")) for name in (str(FLOWLET), "ecmp"))
    assert "transport.port_selection" in moved.fabric.caveats
    assert "transport.port_selection" not in kept.fabric.caveats


def scenario(folder: Path, transport: str) -> weftwork.Scenario:
    file = folder / "s.yaml"
    file.write_text(
        "schema: 1\nfabric: {topology: leaf-spine, hosts: 4, radix: 4}\n"
        f"transport: {{{transport}}}\ntraffic: {{pattern: permutation, size: 64KiB}}\n",
        encoding="utf-8",
    )
    return weftwork.read_scenario(file)
