"""A new key of a switch, kind of fault, and column of input or results work, by the changes that are counted."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from helpers.additions import read_additions
from mutants.run import Copy, first_copy

import weftwork

pytestmark = pytest.mark.extra  # what builds the core

DROPPING: dict[str, Any] = {
    "schema": 3,
    "fabric": {
        "topology": "leaf-spine", "leaves": 2, "spines": 2, "hosts_per_leaf": 4, "link_rate": "100Gbps",
        "link_delay": "500ns", "switch": {"buffer": "300KB"},
    },
    "transport": {"congestion_control": "none", "flow_control": "none", "timeout": "100us"},
    "traffic": {"pattern": "incast", "size": "128KiB"},
}  # fmt: skip
# A lossless incast, whose pauses travel.
PAUSING: dict[str, Any] = {
    "schema": 3,
    "fabric": DROPPING["fabric"],
    "transport": {"congestion_control": "none", "flow_control": "pfc"},
    "traffic": {"pattern": "incast", "size": "256KiB"},
}
# Messages between leaves, on links that can wear.
CROSSING: dict[str, Any] = {
    "schema": 3,
    "fabric": DROPPING["fabric"] | {"spines": 1},
    "transport": {"congestion_control": "none", "flow_control": "pfc"},
    "traffic": {"pattern": "all-to-all", "size": "64KiB"},
}
SCRIPT = """
import json, sys
import weftwork
from weftwork.spec.result import TABLES
for overrides in json.loads(sys.argv[2]):
    run = weftwork.run(json.loads(sys.argv[1]), overrides=overrides)
    print(json.dumps({
        "digest": run.provenance["digest"],
        "links": run.table("links").to_pylist(),
        "events": run.table("events").to_pylist(),
        "columns": {column.name: [column.unit, column.text] for column in TABLES["links"]},
    }))
"""
PACKET, REFERENCE, FLOW = ({"engine.fidelity": name} for name in ("packet", "reference", "flow"))


def runs(packages: Path, folder: Path, scenario: dict[str, Any], *overrides: dict[str, str]) -> list[dict[str, Any]]:
    """Runs with the package that stands in a folder, whose results go below another folder."""
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, json.dumps(scenario), json.dumps(overrides)],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": str(packages), "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Copy:
    """A copy of the tree with all additions, and its core."""

    def change(root: Path) -> None:
        for addition in read_additions():
            addition.apply(root)
        subprocess.run(
            [sys.executable, "-m", "weftwork.engine.rows"],
            cwd=root,
            env=os.environ | {"PYTHONPATH": str(root / "src")},
            check=True,
        )

    return first_copy(tmp_path_factory.mktemp("additions"), change)


def test_both_packet_engines_read_what_is_added(copy: Copy, tmp_path: Path) -> None:
    spare = {"fabric.switch.egress_spare": "64KB"}
    asked = (PACKET, REFERENCE, PACKET | spare, REFERENCE | spare)
    plain, plain_again, spared, spared_again = (
        run["digest"] for run in runs(copy.root / "src", tmp_path, DROPPING, *asked)
    )
    assert plain == plain_again
    assert spared == spared_again
    assert plain != spared


def test_the_new_column_of_the_input_changes_what_packets_meet(copy: Copy, tmp_path: Path) -> None:
    (added,) = runs(copy.root / "src", tmp_path, DROPPING, PACKET)
    (usual,) = runs(Path(weftwork.__file__).parents[1], tmp_path, DROPPING, PACKET)
    assert added["digest"] != usual["digest"]


def test_the_new_column_of_results_has_the_same_right_values_from_both_engines(copy: Copy, tmp_path: Path) -> None:
    """On links that always work, a port takes each pause that the port at the other end has sent."""
    packet, reference, flow = runs(copy.root / "src", tmp_path, PAUSING, PACKET, REFERENCE, FLOW)
    sent = {(row["node"], row["peer"]): row["pauses_sent"] for row in packet["links"]}
    taken = {(row["peer"], row["node"]): row["pauses_taken"] for row in packet["links"]}
    assert taken == sent
    assert sum(sent.values()) > 0
    assert reference["links"] == packet["links"]
    assert {row["pauses_taken"] for row in flow["links"]} == {0}
    assert packet["columns"]["pauses_taken"] == [
        "count", "PFC frames that came in and ask this port to pause, refreshes included."
    ]  # fmt: skip
    assert list(packet["columns"]) == list(packet["links"][0])


def test_the_page_of_tables_has_the_new_column(copy: Copy) -> None:
    script = "from pathlib import Path; from page_rows import rows; print(*rows('tables', Path()), sep=chr(10))"
    done = subprocess.run(
        [sys.executable, "-c", script],
        cwd=copy.root / "docs/_ext",
        env=os.environ | {"PYTHONPATH": str(copy.root / "src"), "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    text = "PFC frames that came in and ask this port to pause, refreshes included."
    assert f"| `pauses_taken` | int64 | count | {text} |" in done.stdout.splitlines()


def test_the_new_kind_of_fault_changes_every_engine(copy: Copy, tmp_path: Path) -> None:
    worn = {"at": "5us", "link": "leaf0-spine0", "event": "worn", "kept": 0.25}
    healthy = runs(copy.root / "src", tmp_path, CROSSING, PACKET, REFERENCE, FLOW)
    ill = runs(copy.root / "src", tmp_path, CROSSING | {"faults": [worn]}, PACKET, REFERENCE, FLOW)
    assert ill[0]["digest"] == ill[1]["digest"]
    for before, after in zip(healthy, ill, strict=True):
        assert before["digest"] != after["digest"]
        faults = [(row["detail"], row["place"]) for row in after["events"] if row["event"] == "fault"]
        assert faults == [("worn", "leaf0-spine0")]


def test_flows_refuse_what_they_cannot_simulate_of_the_new_kind(copy: Copy, tmp_path: Path) -> None:
    worn = {"at": "5us", "link": "leaf0-spine0", "event": "worn", "missed": 1}
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, json.dumps(CROSSING | {"faults": [worn]}), json.dumps([FLOW])],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(copy.root / "src"), "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode != 0
    assert "a link that loses all packets, so that no flow ever ends" in done.stderr


def test_every_addition_is_built(copy: Copy) -> None:
    headers = [path.read_text(encoding="utf-8") for path in (copy.root / "native/rows").iterdir()]
    fields = [addition for addition in read_additions() if addition.member]
    assert [addition.name for addition in fields if not any(map(addition.is_field_in, headers))] == []
