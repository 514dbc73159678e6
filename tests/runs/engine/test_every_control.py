"""Every congestion control of the catalogue, with every variant, in a small network: both engines agree, and it acts.

An incast of four hosts meets flows that cross it on a leaf-spine fabric with all that a control may need: ECN marks,
telemetry, a host interface, and cut packets where the control asks for them. What a control does is told from what it
adds to headers by a control that has the same needs and does nothing.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from helpers.both import both
from helpers.tiny import Message, sends, wired

from weftwork.base.clock import MS_PS, US_PS
from weftwork.engine import packet
from weftwork.engine.lower import lower
from weftwork.engine.packet_input import PacketInput
from weftwork.engine.settings import EngineSettings
from weftwork.policies.load import LoadedPolicy, catalogue, load
from weftwork.spec.device import Ecn, Nic, Switch
from weftwork.spec.transport import Transport

G = 1_000_000_000
HOSTS = 8
LEAVES = (8, 9)
SPINES = (10, 11)
SIZE_BYTES = 150_000
AFTERWARDS_PS = 800 * US_PS  # chosen: the incast is over, so that what a control has learnt from it shows
LAST_BYTES = 60_000
CONTROLS = [
    (entry.name, variant)
    for entry in catalogue("congestion_control")
    if entry.name != "none"
    for variant in (None, *load("congestion_control", entry.name).plugin.variants)
]
CASES = [pytest.param(*pair, marks=() if pair[1] is None else pytest.mark.deep) for pair in CONTROLS]
IDLE = '''"""Does nothing. Source: none. Leaves out: everything."""

from weftwork.policies.interface import CongestionControl, SenderState, Signal


class Params:
    """None."""


class State(SenderState):
    """Nothing of its own."""


def step(params: Params, state: State, signal: Signal) -> None:
    """Leave everything."""


PLUGIN = CongestionControl(params=Params, state=State, step=step, signals=frozenset(), needs={needs}, source="none")
'''


def plan(control: LoadedPolicy) -> PacketInput:
    """Four hosts to host 0, two flows each way between the leaves, and one of the four again by itself."""
    is_cut = "trimming" in control.plugin.needs
    switch = Switch(
        forwarding_latency_ps=0,
        buffer_bytes=200_000 if is_cut else 1_000_000,
        egress_alpha=0.25,
        ecn=Ecn(kmin_bytes=16_000, kmax_bytes=160_000),
        telemetry=True,
    )
    links = [(host, LEAVES[host // 4]) for host in range(HOSTS)]
    links += [(leaf, spine) for leaf in LEAVES for spine in SPINES]
    fabric = wired(
        links,
        hosts=HOSTS,
        rates_bps=[10 * G] * HOSTS + [20 * G] * 4,
        delays_ps=[US_PS] * len(links),
        switch=switch,
        nic=Nic(pcie_rate_bps=12 * G, pcie_latency_ps=US_PS // 2),
    )
    messages = [Message(source=host, destination=0, size_bytes=SIZE_BYTES) for host in range(4, HOSTS)]
    messages.append(Message(source=HOSTS - 1, destination=0, size_bytes=SIZE_BYTES, at_ps=AFTERWARDS_PS))
    messages += [
        Message(source=host, destination=(host + 4) % HOSTS, size_bytes=LAST_BYTES, at_ps=host * 50 * US_PS, channel=1)
        for host in (1, 2, 5, 6)
    ]
    return lower(
        fabric=fabric,
        job=sends(HOSTS, messages),
        transport=Transport(
            mtu_bytes=4_096,
            recovery="selective-repeat" if is_cut else "go-back-n",
            trim_bytes=64 if is_cut else 0,
            lossless_priorities=() if is_cut else (3,),
            retransmission_timeout_ps=10 * MS_PS,
            retry_limit=100,
        ),
        congestion_control=control,
        settings=EngineSettings(port_selection=load("port_selection", "ecmp"), until_ps=100 * MS_PS),
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("idle")


def idle(folder: Path, needs: frozenset[str]) -> LoadedPolicy:
    """A control with these needs that does nothing."""
    file = folder / f"idle_{'_'.join(sorted(needs)).replace('-', '_')}.py"
    if not file.is_file():
        named = "{" + ", ".join(f'"{need}"' for need in sorted(needs)) + "}" if needs else ""
        file.write_text(IDLE.replace("{needs}", f"frozenset({named})"), encoding="utf-8")
    return load("congestion_control", file)


@pytest.mark.parametrize(("name", "variant"), CASES)
def test_both_engines_agree_and_the_control_acts(name: str, variant: str | None, folder: Path) -> None:
    control = load("congestion_control", name, variant=variant)
    outcome = both(plan(control), f"{name} {variant or ''}")
    assert (outcome.messages["delivered_at_ps"] >= 0).all()
    assert (outcome.messages["acked_at_ps"] >= 0).all()
    assert outcome.digest() != packet.run(plan(idle(folder, control.plugin.needs))).digest()
