"""The note on shortest routes that bend through a valley around the faults of a scenario."""

from __future__ import annotations

from pathlib import Path

import pytest

import weftwork

SCENARIO = """schema: 3
fabric: {topology: leaf-spine, leaves: 3, spines: 2, hosts_per_leaf: 2}
traffic: {pattern: permutation, size: 64KiB}
faults:
- {at: 5us, link: leaf0-spine1, event: down}
- {at: 7us, link: leaf1-spine0, event: down}
- {at: 9us, link: leaf0-spine1, event: up}
"""


def note(folder: Path, *, text: str = SCENARIO, **changes: str) -> str | None:
    """What is said of the routes of a scenario with some keys changed."""
    file = folder / "scenario.yaml"
    file.write_text(text)
    overrides = {name.replace("__", "."): value for name, value in changes.items()}
    found = weftwork.prepare(weftwork.read_scenario(file, overrides)).notes.get("fabric.routing")
    assert found is None or found.kind == "note"
    return None if found is None else found.text


@pytest.mark.parametrize("fidelity", ["packet", "flow"])
def test_it_names_the_instant_the_pairs_a_path_and_the_key(tmp_path: Path, fidelity: str) -> None:
    told = note(tmp_path, engine__fidelity=fidelity)
    assert told is not None
    assert told.startswith(
        "after the fault at 7us, shortest routes of 1 pair of leaves go down and up again, such as leaf"
    )
    assert " - leaf2 - " in told
    assert told.endswith("fabric.routing: up-down forbids them, and 1 pair then has no route")


def test_credits_can_close_a_circle_too(tmp_path: Path) -> None:
    assert note(tmp_path, transport__flow_control="credits") is not None


@pytest.mark.parametrize(
    "changes",
    [
        {"transport__flow_control": "none"},
        {"fabric__routing": "up-down"},
        {"fabric__routing": "k-shortest"},
        {"faults": "[]"},
        {"faults": "[{at: 5us, link: leaf0-spine1, event: down}]"},  # no route bends
        {"faults": "[{at: 5us, nic: host0/nic0, event: down}]"},
        {"faults": "[{at: 5us, link: leaf0-spine1, event: degrade, rate: 1Gbps}]"},
    ],
)
def test_nothing_is_said_where_nothing_can_bend_or_wait(tmp_path: Path, changes: dict[str, str]) -> None:
    assert note(tmp_path, **changes) is None
