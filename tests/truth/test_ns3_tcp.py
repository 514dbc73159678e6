"""Reno, CUBIC and DCTCP in ns-3 and in Weftwork: payload and mean queue of long flows through one slow link.

Equal wire bytes per frame (PPP 2, IPv4 20, TCP with timestamps 32), no gap between frames, an ACK for each segment,
SACK there and selective repeat here with a threshold of three duplicates, the same first window and shortest timeout.
The queue drops at a number of packets, or marks at one: RED in ns-3 with both thresholds there and no averaging. In
ns-3 a queue disc has one more packet below it, in the queue of its device.

The mean of a queue is taken over whole cycles of its sawtooth. Source: the package `ns3` on PyPI (see test_ns3.py).
"""

import json
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers.figures import Show
from helpers.tcp_flows import PAYLOAD_BYTES, SlowLink, long_flows, watched
from numpy.typing import NDArray

from weftwork.base.clock import MS_PS, US_PS

S_PS = 1_000 * MS_PS
TOLERANCE = 0.03

SLOW: dict[str, Any] = {
    "recovery": "ns3::TcpClassicRecovery", "senders": 1, "payload_bytes": PAYLOAD_BYTES, "rate_bps": 50_000_000,
    "access_bps": 500_000_000, "delay_ps": MS_PS, "queue_packets": 120, "mark_packets": 0, "start_ps": 100 * MS_PS,
    "from_ps": 2 * S_PS, "until_ps": 7 * S_PS, "sample_ps": MS_PS,
    "attributes": {"ns3::TcpSocketBase::MinRto": "200ms", "ns3::TcpCubic::HyStart": "false"},
}  # fmt: skip
FAST: dict[str, Any] = SLOW | {
    "rate_bps": 10**9, "access_bps": 10**10, "delay_ps": 50 * US_PS, "queue_packets": 200, "mark_packets": 20,
    "start_ps": MS_PS, "from_ps": 50 * MS_PS, "until_ps": 200 * MS_PS, "sample_ps": 50 * US_PS,
}  # fmt: skip
RENO = SLOW | {"control": "ns3::TcpLinuxReno", "here": "reno"}
CUBIC = SLOW | {"control": "ns3::TcpCubic", "here": "cubic"}
DCTCP = FAST | {"control": "ns3::TcpDctcp", "here": "dctcp"}
CASES: dict[str, dict[str, Any]] = {
    "Reno, 1 flow": RENO,
    "Reno, 1 flow, short queue": RENO | {"queue_packets": 20, "from_ps": S_PS, "until_ps": 3 * S_PS},
    "CUBIC, 1 flow": CUBIC | {"queue_packets": 60, "from_ps": S_PS, "until_ps": 5 * S_PS},
    "CUBIC, 1 flow, long path": CUBIC | {
        "rate_bps": 10_000_000, "access_bps": 100_000_000, "delay_ps": 10 * MS_PS, "queue_packets": 40,
        "from_ps": 10 * S_PS, "until_ps": 40 * S_PS, "sample_ps": 5 * MS_PS,
    },
    "DCTCP, 1 flow": DCTCP,
    "DCTCP, 2 flows": DCTCP | {"senders": 2},
    "DCTCP, 4 flows": DCTCP | {"senders": 4},
}  # fmt: skip


@pytest.fixture(scope="module")
def ns3() -> dict[str, dict[str, Any]]:
    """Answers of ns-3 for all cases, from one process: its clock is a global, and loading it takes seconds."""
    if find_spec("ns") is None:
        pytest.skip("ns-3 comes with the extra 'bench'")
    command = [sys.executable, str(Path(__file__).with_name("ns3_tcp.py")), json.dumps(list(CASES.values()))]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=500)
    assert done.returncode == 0, done.stderr
    answer = next(line for line in done.stdout.splitlines() if line.startswith("[{"))
    return dict(zip(CASES, json.loads(answer), strict=True))


def weftwork(case: dict[str, Any]) -> tuple[list[int], NDArray[np.float64]]:
    """Payload of each flow and packets in the queue, in the same case here."""
    below = 1 if case["mark_packets"] else 0  # the packet in the queue of ns-3's device
    path = SlowLink(
        rate_bps=case["rate_bps"],
        access_bps=case["access_bps"],
        delay_ps=case["delay_ps"],
        queue_packets=case["queue_packets"] + below,
        mark_packets=case["mark_packets"] + below,
        senders=case["senders"],
        start_ps=case["start_ps"],
    )
    hystart = {"hystart": False} if case["here"] == "cubic" else {}
    engine_input = long_flows(path, case["here"], until_ps=case["until_ps"], timeout_above_rtt=False, **hystart)
    seen = watched(engine_input, every_ps=case["sample_ps"], senders=path.senders)
    payload = [seen.payload_bytes(sender, case["from_ps"]) for sender in range(path.senders)]
    return payload, seen.queue[seen.at_ps > case["from_ps"]]


def mean_over_cycles(queue: NDArray[np.float64]) -> float:
    """Mean from one fall of the sawtooth to a later one: below a quarter of its range after three quarters of it."""
    low, high = queue.min() + np.array([0.25, 0.75]) * (queue.max() - queue.min())
    falls: list[int] = []
    was_high = False
    for place, packets in enumerate(queue.tolist()):
        if packets >= high:
            was_high = True
        elif packets <= low and was_high:
            falls.append(place)
            was_high = False
    assert len(falls) >= 3, "the queue has no cycles"
    return float(queue[falls[0] : falls[-1]].mean())


# After recovery ns-3 counts all segments that its last ACK acknowledges as growth, those too that SACK told of before:
# the window goes on three packets above half. In a short queue that is a tenth of its mean.
QUEUE_BELOW = {"Reno, 1 flow, short queue": (-0.15, -0.05)}


@pytest.mark.extra
@pytest.mark.parametrize("name", CASES)
def test_payload_and_queue_are_those_of_ns3(name: str, ns3: dict[str, dict[str, Any]], show: Show) -> None:
    payload, queue = weftwork(CASES[name])
    theirs = ns3[name]
    queues = mean_over_cycles(queue), mean_over_cycles(np.array(theirs["queue_packets"], np.float64))
    payloads = sum(payload), sum(theirs["payload_bytes"])
    by_payload, by_queue = payloads[0] / payloads[1] - 1, queues[0] / queues[1] - 1
    show(
        f"{name}: payload {payloads[0] / 1e6:.2f} MB, ns-3 {payloads[1] / 1e6:.2f} MB, {by_payload:+.1%}; "
        f"mean queue {queues[0]:.1f} packets, ns-3 {queues[1]:.1f}, {by_queue:+.1%}"
    )
    assert abs(by_payload) <= TOLERANCE
    least, most = QUEUE_BELOW.get(name, (-TOLERANCE, TOLERANCE))
    assert least <= by_queue <= most
