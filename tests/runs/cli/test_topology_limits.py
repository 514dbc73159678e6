"""``weftwork topology --limits``: the tables of switches, the end of a fabric, and options that do not go together."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from helpers.command import Command, command_of
from helpers.own_topology import LIMITS, write_circle

SUPERPOD = """schema: 3
fabric: {topology: rail-optimized, gpus: 1016, node: dgx-h100, switch: quantum-2}
collective: {operation: all-reduce, size: 64MiB}
"""
PLAIN = (
    "schema: 3\nfabric: {topology: leaf-spine, leaves: 2, spines: 2, hosts_per_leaf: 4}\ntraffic: {pattern: incast}\n"
)
EXAMPLES = Path(__file__).parents[3] / "examples" / "fabrics"


@pytest.fixture
def command(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Command:
    """``weftwork topology`` in a folder with two scenarios."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "superpod.yaml").write_text(SUPERPOD, encoding="utf-8")
    (tmp_path / "plain.yaml").write_text(PLAIN, encoding="utf-8")
    return command_of(capsys, "topology")


def words(text: str) -> list[list[str]]:
    """Words of every line."""
    return [line.split() for line in text.splitlines()]


def test_without_a_file_both_tables_are_printed(command: Command) -> None:
    found = command("--limits")
    assert (found.code, found.err) == (0, "")
    rows = words(found.out)
    assert ["3", "65,536", "5,120", "131,072", "5", "switches", "0.0781", "2", "32,768", "links"] in rows
    assert ["144", "10,368", "746,496", "at", "800Gbps", "quantum-x800"] in rows


def test_a_radix_and_a_ratio_are_asked_about(command: Command) -> None:
    document = json.loads(command("--limits", "--radix", "64", "--oversubscription", "3:1", "--json").out)
    assert [row["endpoints"] for row in document["by_tiers"]] == [64, 3_072, 98_304, 3_145_728]
    assert (document["by_tiers"][1]["switches"], document["by_tiers"][1]["bisection_links"]) == (80, 512)
    assert "by_radix" not in document
    assert "leaves at 3:1" in command("--limits", "--radix", "64", "--oversubscription", "3:1").out


def test_a_switch_is_told_at_every_rate_that_makes_more_ports(command: Command) -> None:
    rows = words(command("--limits", "--switch", "tomahawk-5").out)
    assert ["800Gbps", "1", "64", "64", "2,048", "65,536", "2,097,152"] in rows
    assert ["200Gbps", "4", "256", "256", "32,768", "4,194,304", "536,870,912"] in rows
    document = json.loads(command("--limits", "--switch", "quantum-x800", "--json").out)
    assert [(row["radix"], row["endpoints_by_tiers"]["2"]) for row in document["by_rate"]] == [(144, 10_368)]


def test_the_first_line_of_a_fabric_names_what_ends_it(command: Command) -> None:
    found = command("superpod.yaml", "--limits")
    assert (found.code, found.err) == (0, "")
    lines = found.out.splitlines()
    assert lines[1] == (
        "A spine's 64 ports end this fabric: 64 leaves (8 for a server), 2,048 GPUs. It has 1,016 (49.6%)."
    )
    assert lines[3].startswith("Without another spine it ends at 1,024 GPUs: 32 leaves")
    rows = words(found.out)
    assert ["leaf", "32", "64", "63", "to", "64", "8"] in rows  # a SuperPOD of 127 servers: one place is left
    assert ["a", "tier", "above", "the", "spines", "65,536", "+0.0312", "+1", "+2"] in rows
    assert ["rails", "not", "joined:", "8", "networks", "16,384", "same", "same", "same"] in rows


def test_a_fabric_as_json(command: Command) -> None:
    document = json.loads(command("superpod.yaml", "--limits", "--json").out)
    assert (document["gpus"], document["ports_left"], document["unknown"]) == (1_016, 8, None)
    assert (document["largest"]["gpus"], document["largest"]["switches_by_tier"]) == (2_048, [64, 32])
    assert document["with_todays_top_tier"]["gpus"] == 1_024
    tier = next(step for step in document["next_steps"] if step["step"] == "tier")
    assert (tier["gpus"], tier["hops"], tier["links_per_gpu"]) == (65_536, 6, 3.0)


def test_a_switch_with_any_number_of_ports_says_how_to_mend_it(command: Command) -> None:
    out = command("plain.yaml", "--limits").out
    assert "This fabric has no largest size: leaf0 ('plain') has any number of ports. Set fabric.radix" in out
    assert json.loads(command("plain.yaml", "--limits", "--json").out)["is_endless"]


def test_of_a_general_file_only_ports_are_known(command: Command) -> None:
    out = command(str(EXAMPLES / "two_leaves.json"), "--limits").out
    assert "is not known: links below tier 1 have different rates. Free ports:" in out


def test_a_step_that_brings_nothing_has_its_reason(command: Command) -> None:
    out = command("superpod.yaml", "--limits", "--set", "fabric={topology: superpod, gpus: 64, node: dgx-b300,"
                  " switch: quantum-x800}").out  # fmt: skip
    assert "No more planes: a switch has no more ports at a lower rate." in out


def test_a_fabric_is_exported_beside_its_limits(command: Command, tmp_path: Path) -> None:
    assert "wrote fabric.json" in command("superpod.yaml", "--limits", "--export", "fabric.json").out
    assert (tmp_path / "fabric.json").is_file()


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ([], "Missing argument 'FILE'"),
        (["--limits", "--export", "a.json", "--set", "fabric.radix=4"], "--set .*needs FILE"),
        (["superpod.yaml", "--limits", "--radix", "4"], "--radix .*is about trees of a switch"),
        (["superpod.yaml", "--switch", "quantum-2"], "--switch .*is about trees of a switch"),
        (["superpod.yaml", "--limits", "--without", "leaf0"], "--without .*leave one out"),
        (["--limits", "--radix", "8", "--switch", "quantum-2"], "--radix .*leave one out"),
        (["--limits", "--switch", "plain"], "--switch .*any number of ports"),
        (["--limits", "--switch", "quantum-3"], "--switch .*did you mean 'quantum-2'"),
        (["--limits", "--oversubscription", "3:0"], "--oversubscription .*wanted a ratio"),
        (["--limits", "--oversubscription", "nan"], "--oversubscription .*wanted a ratio"),
        (["--limits", "--radix", "4", "--oversubscription", "1:100"], "no split of 4 ports has"),
        (["--limits", "--radix", "1"], "--radix"),
    ],
)
def test_what_does_not_go_together_is_refused(command: Command, arguments: list[str], text: str) -> None:
    found = command(*arguments)
    assert found.code == 2
    assert re.search(text, found.err), found.err


CIRCLE = (
    "schema: 3\nfabric: {topology: ./circle.py, switches: 5, hosts_per_switch: 2, radix: 8}\n"
    "traffic: {pattern: incast}\n"
)


def test_a_topology_of_a_users_own_says_its_largest_size(command: Command, tmp_path: Path) -> None:
    write_circle(tmp_path, functions=LIMITS, fields="limits=limits,")
    (tmp_path / "circle.yaml").write_text(CIRCLE, encoding="utf-8")
    lines = command("circle.yaml", "--limits").out.splitlines()
    assert lines[1] == "Its numbers of switches end a circle: 1,000 of them, 2,000 GPUs. It has 10 (0.5%)."
    assert json.loads(command("circle.yaml", "--limits", "--json").out)["family"]["sizes"][0]["gpus"] == 2_000


def test_a_topology_of_a_users_own_without_a_formula_names_the_field_for_one(command: Command, tmp_path: Path) -> None:
    write_circle(tmp_path)
    (tmp_path / "circle.yaml").write_text(CIRCLE, encoding="utf-8")
    out = command("circle.yaml", "--limits").out
    assert "no formula is known for the family 'circle', and 'circle.py' says nothing; its Topology(...)" in out
    assert "limits=." in out


def test_wrong_limits_of_a_users_own_topology_are_blamed_on_its_file(command: Command, tmp_path: Path) -> None:
    write_circle(tmp_path, fields="limits=lambda measured: 7,")
    (tmp_path / "circle.yaml").write_text(CIRCLE, encoding="utf-8")
    found = command("circle.yaml", "--limits")
    assert found.code == 2
    assert "limits returned a int, wanted a DirectLimits" in found.err
