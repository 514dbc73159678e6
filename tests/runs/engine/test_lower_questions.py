"""Lowering of what policies ask for: what they are told takes room in packets, and virtual channels take classes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from helpers.tiny import Message, sends, settings_of, star

from weftwork.base.errors import ConfigError
from weftwork.engine.base_rtt import fabric_base_rtt_ps
from weftwork.engine.headroom import full_frame_bytes
from weftwork.engine.lower import TELEMETRY_BYTES, TELEMETRY_HOP_BYTES, lower
from weftwork.engine.packet_input import PacketInput
from weftwork.policies.load import load
from weftwork.spec.device import Scheduling, Switch
from weftwork.spec.fabric import Fabric
from weftwork.spec.transport import Transport

NOTHING_ASKED = Transport(lossless_priorities=())
CONTROL = '''"""A control that asks."""

from weftwork.policies.interface import CongestionControl, SenderState, Signal


class Params:
    pass


class State(SenderState):
    pass


def step(params: Params, state: State, signal: Signal) -> None:
    state.rate_bps = float(signal.line_rate_bps)


PLUGIN = CongestionControl(
    params=Params, state=State, step=step, signals=frozenset(), needs=frozenset({NEEDS}), source="none"
)
'''
PORTS = '''"""A port selection with channels."""

from weftwork.policies.interface import Candidate, PortSelection, PortSignal


class Params:
    pass


class State:
    pass


def step(params: Params, state: State, signal: PortSignal, candidates: list[Candidate]) -> None:
    signal.choice = 0


PLUGIN = PortSelection(
    params=Params, state=State, step=step, virtual_channels=CHANNELS, needs=frozenset({NEEDS}), source="none"
)
'''


def asked(folder: Path, needs: tuple[str, ...], transport: Transport = NOTHING_ASKED) -> Transport:
    """The transport of a run whose congestion control has these needs."""
    file = folder / "asking.py"
    file.write_text(CONTROL.replace("NEEDS", ", ".join(map(repr, needs))), encoding="utf-8")
    return lower(
        fabric=star(2, switch=Switch(telemetry=True)),
        job=sends(2, []),
        transport=transport,
        congestion_control=load("congestion_control", file),
        settings=settings_of(),
    ).transport


@pytest.mark.parametrize(
    ("needs", "data_bytes", "echo_bytes"),
    [
        ((), 0, 0),
        (("rtt",), 4, 4),
        (("entropy",), 0, 2),
        (("request",), 4, 0),
        (("path-load",), 1, 1),
        (("rtt", "entropy", "request", "path-load"), 9, 7),
    ],
)
def test_what_is_asked_for_takes_room_in_packets_and_answers(
    needs: tuple[str, ...], data_bytes: int, echo_bytes: int, tmp_path: Path
) -> None:
    found = asked(tmp_path, needs)
    assert found.data_overhead_bytes == NOTHING_ASKED.data_overhead_bytes + data_bytes
    assert found.echo_bytes == echo_bytes
    assert (found.telemetry_bytes, found.telemetry_hop_bytes) == (0, 0)
    assert found.ack_bytes == NOTHING_ASKED.ack_bytes


def test_the_sizes_are_those_of_the_transport(tmp_path: Path) -> None:
    given = Transport(
        lossless_priorities=(), timestamp_bytes=8, entropy_echo_bytes=3, request_overhead_bytes=5, path_load_bytes=2
    )
    found = asked(tmp_path, ("rtt", "entropy", "request", "path-load"), given)
    assert found.data_overhead_bytes == given.data_overhead_bytes + 15
    assert found.echo_bytes == 13


def test_telemetry_has_a_part_of_its_own_and_one_for_each_switch(tmp_path: Path) -> None:
    found = asked(tmp_path, ("telemetry",))
    assert (found.telemetry_bytes, found.telemetry_hop_bytes) == (TELEMETRY_BYTES, TELEMETRY_HOP_BYTES) == (2, 8)
    assert (found.data_overhead_bytes, found.echo_bytes) == (NOTHING_ASKED.data_overhead_bytes, 0)
    # The longest frame has passed 8 switches: payload, headers, first packet's own, 2 + 8 x 8, gap.
    assert full_frame_bytes(found) == 4096 + 62 + 16 + 2 + 64 + 20
    given = asked(
        tmp_path, ("telemetry",), Transport(lossless_priorities=(), telemetry_bytes=12, telemetry_hop_bytes=4)
    )
    assert (given.telemetry_bytes, given.telemetry_hop_bytes) == (12, 4)


def test_an_ack_that_echoes_much_may_be_the_longest_frame() -> None:
    small = Transport(mtu_bytes=64, ack_bytes=100, echo_bytes=50, data_overhead_bytes=0, telemetry_hop_bytes=1)
    assert full_frame_bytes(small) == 100 + 50 + 8 + 20


# Virtual channels


def channelled(
    folder: Path, channels: int, *, needs: str = "", fabric: Fabric | None = None, **transport: Any
) -> PacketInput:
    """A run whose port selection has so many channels, with messages of priorities 1 and 3."""
    file = folder / "channels.py"
    file.write_text(PORTS.replace("CHANNELS", str(channels)).replace("NEEDS", needs), encoding="utf-8")
    messages = [
        Message(source=0, destination=1, size_bytes=9, priority=1),
        Message(source=1, destination=0, size_bytes=9),
    ]
    return lower(
        fabric=fabric or star(2),
        job=sends(2, messages),
        transport=Transport.model_validate({"recovery": "selective-repeat", "reorder_tolerant": True} | transport),
        congestion_control=load("congestion_control", "none"),
        settings=settings_of(port_selection=str(file)),
    )


def test_each_priority_has_its_channels_which_follow_each_other(tmp_path: Path) -> None:
    found = channelled(tmp_path, 2)
    assert found.virtual_channels == found.transport.virtual_channels == 2
    assert found.class_priority.tolist() == [1, 1, 3, 3, 6, 6]
    assert found.class_lossless.tolist() == [0, 0, 1, 1, 0, 0]
    assert found.control_class == found.trim_class == 4  # channel 0
    assert sorted(found.ops["data_class"][found.ops["total_bytes"] > 0].tolist()) == [0, 2]


def test_the_channels_of_a_priority_have_its_weight(tmp_path: Path) -> None:
    weights = (1, 2, 3, 4, 5, 6, 0, 8)
    found = channelled(tmp_path, 2, fabric=star(2, switch=Switch(scheduling=Scheduling(weights=weights))))
    assert found.switches["weight"][0].tolist() == [2, 2, 4, 4, 0, 0, 0, 0]


def test_each_channel_has_reserve_and_headroom_of_its_own(tmp_path: Path) -> None:
    device = Switch(reserve_bytes=1_000, headroom_bytes=20_000, buffer_bytes=1_000_000)
    for channels in (1, 2):
        found = channelled(tmp_path, channels, fabric=star(2, switch=device))
        # Two ports; three priorities, of which one is lossless.
        assert found.shared_bytes[2] == 1_000_000 - 2 * 3 * channels * 1_000 - 2 * channels * 20_000


def test_what_was_cut_has_the_first_channel_of_its_priority(tmp_path: Path) -> None:
    found = channelled(tmp_path, 2, trim_bytes=64, trim_priority=5)
    assert found.class_priority.tolist() == [1, 1, 3, 3, 5, 5, 6, 6]
    assert (found.trim_class, found.control_class) == (4, 6)
    alike = channelled(tmp_path, 2, trim_bytes=64)
    assert alike.class_priority.tolist() == [1, 1, 3, 3, 6, 6]
    assert alike.trim_class == alike.control_class == 4


def test_more_queues_than_a_port_has_are_refused_with_their_number(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="3 virtual channels of each of 3 priorities are 9 queues of a port"):
        channelled(tmp_path, 3)


# Tables that cost memory, and a number that costs time


def test_other_ways_and_distances_are_found_where_a_port_selection_asks(tmp_path: Path) -> None:
    for needs, has_others, has_distances in (("", 0, 0), ("'non-minimal'", 1, 0), ("'hops-left'", 0, 1)):
        (table,) = channelled(tmp_path, 1, needs=needs).routes
        assert (table.second_of.size > 0, table.distance.size > 0) == (has_others, has_distances)


def test_the_longest_base_rtt_is_worked_out_where_a_policy_reads_it(tmp_path: Path) -> None:
    file = tmp_path / "reading.py"
    for word, is_read in (("base_rtt_ps", False), ("fabric_base_rtt_ps", True)):
        text = CONTROL.replace("NEEDS", "").replace("signal.line_rate_bps", f"max(signal.{word}, 1)")
        file.write_text(text, encoding="utf-8")
        control = load("congestion_control", file)
        found = lower(
            fabric=star(3),
            job=sends(3, []),
            transport=Transport(),
            congestion_control=control,
            settings=settings_of(),
        )
        assert found.fabric_base_rtt_ps == (fabric_base_rtt_ps(found) if is_read else 0)
        assert fabric_base_rtt_ps(found) > 0


def test_tiers_and_groups_of_nodes_are_those_of_the_fabric(tmp_path: Path) -> None:
    found = channelled(tmp_path, 1)
    assert found.node_tier.tolist() == [0, 0, 1]
    assert found.node_group.tolist() == [-1, -1, -1]
