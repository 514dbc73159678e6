"""A window lets its packets leave once in a round trip, until the line is full; without a control the line is full."""

from __future__ import annotations

from pathlib import Path

import pytest

from weftwork.study.prepare.prepare import read_scenario
from weftwork.study.record.run import run_scenario

RATE_BPS = 400e9
MTU = 4096
GAP = 20  # bytes between frames
SCENARIO = """schema: 3
name: a lone flow
fabric: {topology: leaf-spine, leaves: 2, spines: 1, hosts_per_leaf: 1, link_rate: 400Gbps, cable_length: 20m}
traffic: {pattern: incast, senders: 1, receiver: 1}
"""


def rtt_s() -> float:
    """Of a full packet and its acknowledgement: 4 links of 100 ns and 3 switches of 500 ns, there and back."""
    frames = MTU + 62, 66
    return sum(4 * (8 * (frame + GAP) / RATE_BPS + 100e-9) + 3 * 500e-9 for frame in frames)


def goodput_bps(folder: Path, control: str, size: str = "8MB") -> float:
    file = folder / "lone.yaml"
    file.write_text(SCENARIO, encoding="utf-8")
    scenario = read_scenario(file, {"transport.congestion_control": control, "traffic.size": size})
    run = run_scenario(scenario, out=folder / "run", what_if="none")
    (row,) = run.query("select goodput_bps from flows").to_pylist()
    return float(row["goodput_bps"])


FULL_BPS = RATE_BPS * MTU / (MTU + 62 + GAP)


@pytest.mark.parametrize("packets", [1, 10, 25, 48])
def test_a_window_leaves_once_in_a_round_trip(tmp_path: Path, packets: int) -> None:
    assert 8 * packets * MTU / rtt_s() < FULL_BPS
    found = goodput_bps(tmp_path, f"{{name: fixed-window, window_bytes: {packets * MTU + 4095}}}", f"{500 * packets}KB")
    assert found == pytest.approx(8 * packets * MTU / rtt_s(), rel=0.01)


@pytest.mark.parametrize(
    "control", ["fixed-window", "{name: fixed-window, window_bytes: 1000000}", "none"], ids=["0", "1 MB", "none"]
)
def test_a_window_of_a_product_and_a_packet_fills_the_line(tmp_path: Path, control: str) -> None:
    assert goodput_bps(tmp_path, control) == pytest.approx(FULL_BPS, rel=0.02)
