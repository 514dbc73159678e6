"""What switches do to a packet on its way, in whole runs of both engines, with numbers worked out on paper.

A byte takes 20 ps and each link 500,000 ps; a full data frame has 4,096 + 62 bytes, and the gap 20.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from helpers.both import both
from helpers.tiny import Message, packet_input_of, sends, settings_of, wired

from weftwork.base.errors import ConfigError, PolicyError
from weftwork.engine import packet
from weftwork.engine.lower import lower
from weftwork.engine.outcome import Outcome
from weftwork.engine.packet_input import PacketInput
from weftwork.engine.reference import simulation as reference
from weftwork.policies.load import load
from weftwork.spec.device import Switch
from weftwork.spec.transport import Transport

pytestmark = pytest.mark.sanitize


POLICIES = Path(__file__).parents[2] / "policies"


FRAME_BYTES = 4096 + 62


ENGINES = {"reference": reference.run, "native": packet.run}


def around(tmp_path: Path, body: str, switches: int, **plugin: Any) -> PacketInput:
    """A ring with a host at each switch; host 0 sends one packet to host 1. ``body`` is that of the port selection."""
    text = (POLICIES / "ring_channels.py").read_text(encoding="utf-8")
    start, end = text.index("    signal.choice = 0\n"), text.index("PLUGIN = ")
    given = "".join(f", {name}={value!r}" for name, value in plugin.items())
    file = tmp_path / "around.py"
    file.write_text(
        text[:start] + body + "\n\n" + text[end:].replace(", always=True", f", always=True{given}"), encoding="utf-8"
    )
    links = [(host, switches + host) for host in range(switches)]
    links += [(switches + i, switches + (i + 1) % switches) for i in range(switches)]
    settings = settings_of(path_selection=str(POLICIES / "hottest.py"), port_selection=str(file))
    return lower(
        fabric=wired(links, hosts=switches, switch=Switch(telemetry=True, forwarding_latency_ps=0)),
        job=sends(switches, [Message(source=0, destination=1, size_bytes=4096)]),
        transport=Transport(first_extra_bytes=0, reorder_tolerant=True),
        congestion_control=load("congestion_control", "none"),
        settings=settings,
    )


LONG_WAY = "    signal.choice = signal.candidates - 1 if signal.is_data == 1 and signal.hops == 0 else 0\n"


VIA = "    if signal.is_data == 1 and signal.hops == 0:\n        signal.via = VIA\n    signal.choice = 0\n"


def bytes_between(engine_input: PacketInput, outcome: Outcome) -> dict[tuple[int, int], int]:
    """Bytes of each directed link of the ring that carried some."""
    node, peer = engine_input.port_node, engine_input.port_peer
    sent = {
        (int(node[port]), int(node[peer[port]])): int(outcome.ports["bytes"][port])
        for port in range(len(node))
        if engine_input.attachment[port] < 0 and engine_input.attachment[peer[port]] < 0
    }
    return {link: size_bytes for link, size_bytes in sent.items() if size_bytes}


@pytest.mark.parametrize("engine", ENGINES)
def test_a_longer_way_is_taken_where_it_is_chosen(engine: str, tmp_path: Path) -> None:
    # On a ring of four switch 5 is next to 4; over 7 it is two switches further, from where either way is a shortest.
    engine_input = around(tmp_path, LONG_WAY, 4, needs=frozenset({"non-minimal"}))
    found = bytes_between(engine_input, ENGINES[engine](engine_input))
    data = {link: size_bytes for link, size_bytes in found.items() if size_bytes > 1_000}
    assert data == {(4, 7): FRAME_BYTES + 10, (7, 6): FRAME_BYTES + 18, (6, 5): FRAME_BYTES + 26}


@pytest.mark.parametrize("engine", ENGINES)
def test_a_packet_passes_its_via_first_and_then_goes_where_it_should(engine: str, tmp_path: Path) -> None:
    # On a ring of five from switch 5 by way of 7, which the shortest path reaches over 6, where it does not stop.
    engine_input = around(tmp_path, VIA.replace("VIA", "2"), 5)
    found = bytes_between(engine_input, ENGINES[engine](engine_input))
    data = {link: size_bytes for link, size_bytes in found.items() if size_bytes > 1_000}
    assert data == {(5, 6): FRAME_BYTES + 10, (6, 7): FRAME_BYTES + 18, (7, 6): FRAME_BYTES + 26}


@pytest.mark.parametrize("engine", ENGINES)
def test_more_switches_than_a_packet_tells_of_end_the_run(engine: str, tmp_path: Path) -> None:
    # On a ring of nine all shortest paths have at most 5 switches; back and forth over 4 it is 1 + 4 + 3.
    enough = around(tmp_path, VIA.replace("VIA", "4"), 9)
    assert ENGINES[engine](enough).messages["delivered_at_ps"][0] > 0
    strays = "    signal.choice = signal.candidates - 1 if signal.is_data == 1 else 0\n"
    too_many = around(tmp_path, strays, 10, needs=frozenset({"non-minimal"}))
    with pytest.raises(ConfigError, match="telemetry"):
        ENGINES[engine](too_many)


@pytest.mark.parametrize("engine", ENGINES)
def test_a_via_that_changes_twice_at_a_switch_is_refused_with_its_line(engine: str, tmp_path: Path) -> None:
    fickle = "    signal.choice = 0\n    signal.via = (signal.via + 2) % signal.edges\n"
    engine_input = around(tmp_path, fickle, 5)
    with pytest.raises(PolicyError, match=r"around.py, line \d+: via became 3, wanted 1"):
        ENGINES[engine](engine_input)


def everything(seed: int, selection: str) -> PacketInput:
    links = [(host, 6 + host) for host in range(6)]
    links += [(6 + i, 6 + (i + 1) % 6) for i in range(6)] + [(6, 9), (7, 10)]
    messages = [
        Message(source=source, destination=(source + step) % 6, size_bytes=300_000, channel=step)
        for source in range(6)
        for step in (1, 2, 3)
    ]
    return packet_input_of(
        wired(links, hosts=6, switch=Switch(forwarding_latency_ps=0)),
        sends(6, messages),
        transport=Transport(reorder_tolerant=True),
        port_selection=selection,
        seed=seed,
    )


@pytest.mark.parametrize("seed", range(3))
def test_a_selection_that_reads_and_writes_everything_leads_all_to_their_ends(seed: int) -> None:
    outcome = both(everything(seed, str(POLICIES / "wandering.py")))
    assert (outcome.messages["acked_at_ps"] > 0).all()


def test_and_it_leads_them_a_long_way_around() -> None:
    straight, around_it = (reference.run(everything(0, name)) for name in ("ecmp", str(POLICIES / "wandering.py")))
    assert straight.counters["data_sent"] == around_it.counters["data_sent"]
    assert around_it.counters["packet_hops"] > 1.2 * straight.counters["packet_hops"]
    assert (around_it.messages["acked_at_ps"] > 0).all()
