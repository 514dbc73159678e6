"""A transport's own defaults: merged before a scenario is resolved and stored, and never above what the user says."""

from __future__ import annotations

from pathlib import Path

import pytest

from weftwork.base.errors import ConfigError
from weftwork.spec.scenario.scenario import Scenario, loads
from weftwork.spec.scenario.written import dump

DATAGRAMS = Path(__file__).parents[2] / "transports" / "datagrams.py"


HEAD = "schema: 3\nfabric: {radix: 4, tiers: 2}\ntraffic: {pattern: permutation, size: 64KiB}\n"


def scenario(keys: str = "", file: Path = DATAGRAMS) -> Scenario:
    return loads(f"{HEAD}transport: {{protocol: {file}{keys}}}\n")


def test_what_the_user_leaves_out_is_what_the_transport_says() -> None:
    found = scenario().transport
    assert (found.recovery, found.resend, found.flow_control) == ("selective-repeat", "at-once", "none")
    assert (found.trimming, found.mtu_bytes, found.timeout_ps) == (True, 2_048, 200_000_000)
    assert (found.congestion_control.name, found.path_selection.name) == ("fixed-window", "spray")
    plain = loads(f"{HEAD}transport: {{protocol: rocev2}}\n").transport
    assert (plain.recovery, plain.mtu_bytes, plain.trimming) == ("go-back-n", 4_096, None)


def test_what_the_user_says_goes_before_it() -> None:
    found = scenario(", mtu: 1024, flow_control: credits, load_balancing: ecmp").transport
    assert (found.mtu_bytes, found.flow_control, found.path_selection.name) == (1_024, "credits", "ecmp")
    assert found.trimming is None  # it means nothing under credits, and nobody has asked for it


def test_the_stored_scenario_says_them_and_reads_as_the_same() -> None:
    first = scenario()
    stored = dump(first)
    assert "recovery: selective-repeat" in stored
    assert "trimming: true" in stored
    assert loads(stored).transport == first.transport


def test_trimming_without_selective_repeat_is_a_mistake_with_its_line() -> None:
    with pytest.raises(ConfigError, match="does not send cut packets again") as caught:
        loads(f"{HEAD}transport: {{flow_control: none, trimming: true}}\n")
    assert [(m.path, m.line) for m in caught.value.mistakes] == [("transport.trimming", 4)]
