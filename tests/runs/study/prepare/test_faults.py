"""Faults of a scenario: what repeats is written out, what lasts is undone, and each does what it says."""

from __future__ import annotations

from pathlib import Path

import pytest

import weftwork
from weftwork.base.clock import US_PS
from weftwork.spec.scenario.scenario import loads
from weftwork.study.prepare.prepare import known_names, prepare
from weftwork.study.prepare.prepared import Prepared

HEAD = "{schema: 3, fabric: {radix: 4, link_rate: 100Gbps}, traffic: {pattern: permutation, size: 256KiB}"


def prepared(fault: str) -> Prepared:
    return prepare(loads(f"{HEAD}, faults: [{fault}]}}", known=known_names()))


def test_what_lasts_a_time_is_as_before_afterwards() -> None:
    found = prepared("{at: 1us, link: host0-leaf0, event: degrade, fraction: 0.25, for: 2us}").faults
    assert [fault.faults[0].rate_bps for fault in found] == [25_000_000_000, 100_000_000_000]
    found = prepared("{at: 1us, link: host0-leaf0, event: lossy, loss: 0.5, for: 2us}").faults
    assert [fault.faults[0].loss for fault in found] == [0.5, 0.0]
    found = prepared("{at: 1us, nic: host0, event: slow, rate: 10Gbps, for: 2us}").faults
    assert [fault.faults[0].rate_bps for fault in found] == [10_000_000_000, 0]


@pytest.mark.parametrize("recovery", ["go-back-n", "selective-repeat"])
def test_a_lossy_link_costs_retransmissions_while_it_is_lossy(tmp_path: Path, recovery: str) -> None:
    file = tmp_path / "lossy.yaml"
    fault = "{at: 0us, link: host0-leaf0, event: lossy, loss: 0.2, for: 5us}"
    file.write_text(f"{HEAD}, transport: {{recovery: {recovery}, timeout: 100us}}, faults: [{fault}]}}")
    run = weftwork.run(file, out=tmp_path / "run")
    assert run.status == "complete"
    assert (run.value("drop_link_loss") or 0) > 0
    assert (run.value("retransmissions") or 0) >= (run.value("drop_link_loss") or 0) - (run.value("acks_sent") or 0)
    events = run.table("events").to_pylist()
    assert [(row["detail"], row["at_ps"]) for row in events if row["event"] == "fault"] == [
        ("lossy", 0),
        ("lossy ends", 5 * US_PS),
    ]


def test_a_slow_nic_makes_everybody_who_sends_to_it_wait(tmp_path: Path) -> None:
    file = tmp_path / "slow.yaml"
    file.write_text(
        f"{HEAD}, transport: {{congestion_control: none}},"
        " faults: [{at: 0us, nic: host0, event: slow, rate: 10Gbps}]}"
    )
    slow = weftwork.run(file, out=tmp_path / "slow").table("flows").to_pylist()
    healthy = weftwork.run(file, out=tmp_path / "healthy", overrides={"faults": "[]"}).table("flows").to_pylist()
    for before, after in zip(healthy, slow, strict=True):
        if before["destination"] == "host0":
            assert after["fct_ps"] >= 256 * 1024 * 8 * 100  # 10 Gb/s: 100 ps a bit
            assert before["fct_ps"] < after["fct_ps"] / 3
