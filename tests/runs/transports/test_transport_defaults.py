"""A transport's own defaults: merged before a scenario is resolved and stored, and never above what the user says."""

from __future__ import annotations

from pathlib import Path

import pytest

from weftwork.base.errors import CodeError, ConfigError
from weftwork.spec.scenario.scenario import Scenario, loads
from weftwork.study.prepare.engine_settings import transport_of
from weftwork.study.prepare.prepare import prepare, read_scenario
from weftwork.testing.transports import check_transport

DATAGRAMS = Path(__file__).parents[2] / "transports" / "datagrams.py"


HEAD = "schema: 3\nfabric: {radix: 4, tiers: 2}\ntraffic: {pattern: permutation, size: 64KiB}\n"


def scenario(keys: str = "", file: Path = DATAGRAMS) -> Scenario:
    return loads(f"{HEAD}transport: {{protocol: {file}{keys}}}\n")


def own(folder: Path, defaults: str) -> Path:
    """The datagrams with other defaults."""
    text = DATAGRAMS.read_text(encoding="utf-8")
    file = folder / "own.py"
    file.write_text(text[: text.index("    defaults={")] + f"    defaults={defaults},\n)\n", encoding="utf-8")
    return file


def test_a_preset_of_the_user_goes_before_a_policy_of_the_transport(tmp_path: Path) -> None:
    file = own(tmp_path, '{"path_selection": "spray", "reorder_tolerant": True}')
    assert scenario(file=file).transport.path_selection.name == "spray"
    assert scenario(", load_balancing: ecmp", file).transport.path_selection.name == "ecmp"


def test_the_engines_get_what_the_scenario_says() -> None:
    made = transport_of(scenario(", cap: 1MB, packet_cost: 1us").transport)
    assert (made.recovery, made.resend, made.mtu_bytes) == ("selective-repeat", "at-once", 2_048)
    assert (made.inflight_cap_bytes, made.host_packet_ps, made.ordering) == (1_000_000, 1_000_000, "none")
    assert made.trim_bytes == 78
    other = transport_of(scenario(", flow_control: credits, credit_quantum: 4KiB").transport)
    assert (other.link_credits, other.credit_quantum_bytes, other.trim_bytes) == (True, 4_096, 0)


@pytest.mark.parametrize(
    ("defaults", "told"),
    [
        ('{"recovry": "timeout"}', "its defaults name 'recovry', wanted one of .*; did you mean 'recovery'"),
        ('{"mtu": "3KiB"}', "its default of 'mtu' is wrong: found '3KiB', wanted 256, 512"),
        ('{"recovery": "never"}', "its default of 'recovery' is wrong: found 'never'"),
    ],
)
def test_wrong_defaults_are_told_at_the_transport(tmp_path: Path, defaults: str, told: str) -> None:
    with pytest.raises(ConfigError, match=told) as caught:
        scenario(file=own(tmp_path, defaults))
    assert [mistake.path for mistake in caught.value.mistakes] == ["transport.protocol"]


def test_defaults_that_are_no_mapping_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="defaults is 'fast', wanted a mapping"):
        scenario(file=own(tmp_path, '"fast"'))


def test_a_transport_that_contradicts_itself_is_refused_with_its_line(tmp_path: Path) -> None:
    file = own(tmp_path, "{}")  # messages in any order, and a receiver that discards what comes early
    (tmp_path / "own.yaml").write_text(f"{HEAD}transport: {{protocol: ./own.py}}\n", encoding="utf-8")
    line = next(n for n, text in enumerate(file.read_text("utf-8").splitlines(), 1) if text.startswith("TRANSPORT"))
    with pytest.raises(CodeError, match="ordering is 'none', but the receiver keeps no early packets") as caught:
        prepare(read_scenario(tmp_path / "own.yaml"))
    assert f"own.py, line {line}" in str(caught.value)


@pytest.mark.parametrize("flow_control", ["none", "credits"])
def test_the_datagrams_keep_the_contract_of_a_transport(flow_control: str) -> None:
    assert check_transport(DATAGRAMS, {"flow_control": flow_control}) == []
