"""The base RTT of a queue pair, with what telemetry and echoes add to frames on their way."""

from __future__ import annotations

from dataclasses import replace

import pytest
from helpers.tiny import BYTE_PS, DELAY_PS, packet_input_of, sends, wired

from weftwork.engine.base_rtt import fabric_base_rtt_ps
from weftwork.engine.packet_input import PacketInput
from weftwork.engine.reference.base_rtt import base_rtt_ps
from weftwork.spec.transport import Transport

TRANSPORT = Transport(mtu_bytes=1_000, data_overhead_bytes=62, ack_bytes=66, interframe_bytes=20)
ECHOES = {"echo_bytes": 6, "telemetry_bytes": 4, "telemetry_hop_bytes": 8}


def lowered(links: list[tuple[int, int]], hosts: int, *, echoes: bool) -> PacketInput:
    engine_input = packet_input_of(wired(links, hosts=hosts), sends(hosts, []), transport=TRANSPORT)
    transport = engine_input.transport.model_copy(update=ECHOES if echoes else {})
    return replace(engine_input, transport=transport)


def test_each_switch_makes_a_packet_larger_and_its_answer_has_all_of_that_from_the_start() -> None:
    line = lowered([(0, 2), (2, 3), (3, 1)], 2, echoes=True)
    there_bytes = [1_000 + 62 + 4 + hops * 8 + 20 for hops in (0, 1, 2)]
    back_bytes = 66 + 6 + 4 + 2 * 8 + 20
    assert base_rtt_ps(line, 0, int(line.rank_ports[1, 0])) == 6 * DELAY_PS + BYTE_PS * (
        sum(there_bytes) + 3 * back_bytes
    )


@pytest.mark.parametrize("echoes", [False, True])
def test_the_fabrics_is_the_longest_of_all_pairs(*, echoes: bool) -> None:
    tree = lowered([(0, 3), (1, 3), (3, 4), (4, 5), (5, 2)], 3, echoes=echoes)
    ports = [int(port) for port in tree.rank_ports[:, 0]]
    pairs = [base_rtt_ps(tree, source, target) for source in ports for target in ports if source != target]
    assert fabric_base_rtt_ps(tree) == max(pairs) > min(pairs) > 0
