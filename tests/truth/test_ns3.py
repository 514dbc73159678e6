"""Another simulator on the same wires: the last byte of one flow and of incasts in ns-3 and in Weftwork.

Equal wire bytes per frame: in ns-3 UDP over IPv4 over PPP (its header has 2 bytes, nothing lies between frames); here
the same overhead and `interframe_bytes` 0. No queue drops and nothing is paused. What is left to differ is how a
simulator rounds a time.

Source: Riley and Henderson, "The ns-3 Network Simulator", in Modeling and Tools for Network Simulation, 2010,
doi:10.1007/978-3-642-12331-3_2; the package `ns3` on PyPI.
"""

import json
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from helpers.figures import Show
from helpers.tiny import Message, packet_input_of, sends, wired

from weftwork.engine.packet import run
from weftwork.spec.device import Switch
from weftwork.spec.transport import Transport

GBPS = 10**9
OVERHEAD_BYTES = 2 + 20 + 8  # PPP, IPv4, UDP
TOLERANCE = 0.02


def link(rate_gbps: int, delay_ps: int = 1_000_000) -> dict[str, int]:
    return {"rate_bps": rate_gbps * GBPS, "delay_ps": delay_ps}


CASES: dict[str, dict[str, Any]] = {
    "one flow, one link": {"senders": 1, "packets": 1000, "frame_bytes": 4096, "links": [link(100)]},
    "one flow, three links": {
        "senders": 1, "packets": 1000, "frame_bytes": 1500,
        "links": [link(100, 700_000), link(40), link(400, 3_000_000)],
    },
    "incast 8:1": {"senders": 8, "packets": 250, "frame_bytes": 4096, "links": [link(100), link(100)]},
    "incast 32:1, slow last link": {"senders": 32, "packets": 50, "frame_bytes": 1024, "links": [link(400), link(100)]},
}  # fmt: skip


@pytest.fixture(scope="module")
def ns3() -> dict[str, dict[str, int]]:
    """Answers of ns-3 for all cases, from one process: its clock is a global, and loading it takes seconds."""
    if find_spec("ns") is None:
        pytest.skip("ns-3 comes with the extra 'bench'")
    command = [sys.executable, str(Path(__file__).with_name("ns3_udp.py")), json.dumps(list(CASES.values()))]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    answer = next(line for line in done.stdout.splitlines() if line.startswith("[{"))
    return dict(zip(CASES, json.loads(answer), strict=True))


def weftwork_ps(case: dict[str, Any]) -> int:
    """The same case here."""
    senders, links = case["senders"], case["links"]
    hosts = senders + 1  # the receiver is host `senders`
    routers = len(links) - 1
    ends = [(s, hosts if routers else senders) for s in range(senders)]
    ends += [(hosts + i, hosts + i + 1) for i in range(routers - 1)]
    ends += [(senders, hosts + routers - 1)] if routers else []
    kinds = [links[0]] * senders + links[1:]
    payload_bytes = case["frame_bytes"] - OVERHEAD_BYTES
    transport = Transport(
        mtu_bytes=payload_bytes,
        data_overhead_bytes=OVERHEAD_BYTES,
        first_extra_bytes=0,
        interframe_bytes=0,
        lossless_priorities=(),
    )
    fabric = wired(
        ends,
        hosts=hosts,
        switch=Switch(forwarding_latency_ps=0, buffer_bytes=10**9),
        rates_bps=[kind["rate_bps"] for kind in kinds],
        delays_ps=[kind["delay_ps"] for kind in kinds],
    )
    size_bytes = case["packets"] * payload_bytes
    flows = [Message(source=s, destination=senders, size_bytes=size_bytes) for s in range(senders)]
    outcome = run(packet_input_of(fabric, sends(hosts, flows), transport=transport))
    assert outcome.ports["drops"].sum() == 0
    return int(outcome.messages["delivered_at_ps"].max())


@pytest.mark.extra
@pytest.mark.parametrize("name", CASES)
def test_the_last_byte_comes_when_ns3_says(name: str, ns3: dict[str, dict[str, int]], show: Show) -> None:
    case, theirs = CASES[name], ns3[name]
    assert theirs["received"] == case["senders"] * case["packets"]
    ours_ps, theirs_ps = weftwork_ps(case), theirs["last_event_ps"]
    difference = ours_ps / theirs_ps - 1
    show(f"{name}: Weftwork {ours_ps:,} ps, ns-3 {theirs_ps:,} ps, difference {difference:+.6%}")
    assert abs(difference) <= TOLERANCE
