"""Kinds of faults stand in one folder, and each says of itself what others ask."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from helpers.fault_examples import EXAMPLES

from weftwork.spec import faults
from weftwork.spec.fault_changes import CHANGES, PLACES
from weftwork.spec.fault_keys import RemainingRate
from weftwork.spec.fault_kind import Detours, FaultKind, ReadFault, WholeFabric, Wiring
from weftwork.spec.scenario.choices import FAULTS
from weftwork.spec.scenario.faults import FAULT_KINDS, FaultSection, end_of, is_end
from weftwork.spec.scenario.findings import Collected
from weftwork.spec.scenario.rows import applies, rows_of

HOME = Path(faults.__file__).parent
KINDS = list(FAULT_KINDS)
DETOURS = Detours(reconvergence_ps=5, failover_ps=7)


def section(event: str, **more: Any) -> FaultSection:
    return FaultSection(at_ps=1, event=event, **(EXAMPLES[event] | more))


def test_the_folder_is_the_list_of_kinds() -> None:
    assert set(FAULTS.names) == {file.stem for file in HOME.glob("*.py")} - {"__init__"} == set(EXAMPLES)
    assert KINDS == ["down", "up", "degrade", "lossy", "slow", "rewire"]


@pytest.mark.parametrize("event", KINDS)
def test_a_kind_describes_itself(event: str) -> None:
    kind = FAULT_KINDS[event]
    assert FAULTS.text(event).endswith(".")
    assert kind.source.strip()
    assert bool(kind.places) != (kind.whole is not None)
    assert set(kind.places) <= set(PLACES)
    assert not kind.undoes or kind.undoes in FAULT_KINDS


@pytest.mark.parametrize("event", KINDS)
def test_a_kind_has_the_keys_that_mean_something_for_it(event: str) -> None:
    rows = rows_of(FaultSection)
    names = set(rows_of(FAULT_KINDS[event].keys))
    assert {name for name, row in rows.items() if row.only is not None and applies(row, event)} == names
    assert set(EXAMPLES[event]) <= names
    fault = section(event)
    assert {name: getattr(fault.kind_keys, name) for name in EXAMPLES[event]} == EXAMPLES[event]


@pytest.mark.parametrize("event", KINDS)
def test_a_kind_begins_with_changes_that_its_places_can_have(event: str) -> None:
    """A change that a NIC port does not have is one of its link."""
    fault = section(event)
    assert bool(fault.changes) == bool(fault.kind.places)
    for place in fault.kind.places:
        for change in fault.changes:
            assert set(CHANGES[change.name].places) & ({"nic", "link"} if place == "nic" else {place})


@pytest.mark.parametrize(
    ("event", "more", "words"),
    [
        ("down", {}, "is down"),
        ("up", {}, "comes up"),
        ("degrade", {}, "has 50 % of its rate"),
        ("degrade", {"fraction": None, "rate_bps": 100_000_000_000}, "has 100Gbps of its rate"),
        ("lossy", {"loss": 0.001}, "loses 0.1 % of its packets"),
        ("slow", {"fraction": 0.4}, "has its PCIe at 40 % of its rate"),
        ("slow", {"fraction": None, "rate_bps": 64_000_000_000}, "has its PCIe at 64Gbps"),
        ("rewire", {}, "change circuits"),
    ],
)
def test_what_happened_is_said_with_all_keys(event: str, more: dict[str, Any], words: str) -> None:
    fault = section(event, **more)
    assert fault.kind.words(fault.kind_keys) == words


@pytest.mark.parametrize(
    ("event", "delays_ps"),
    [("down", 7), ("up", 0), ("degrade", None), ("lossy", None), ("slow", None), ("rewire", 35)],
)
def test_a_fault_delays_a_run_until_traffic_avoids_it_or_to_the_end(event: str, delays_ps: int | None) -> None:
    fault = section(event)
    assert fault.kind.delays_ps(fault.kind_keys, DETOURS) == delays_ps


def test_events_that_end_a_fault() -> None:
    assert [event for event in KINDS if is_end(event)] == ["up"]
    assert all(is_end(end_of(event)) for event in KINDS)
    assert not is_end("of a run of another version")


@pytest.mark.parametrize(("second_ps", "wrong"), [(30, []), (31, []), (29, ["faults.1.at"]), (1, ["faults.1.at"])])
def test_a_rewiring_begins_where_the_one_before_has_ended(second_ps: int, wrong: list[str]) -> None:
    """Each takes 30 ps, the first from 0 on."""
    kind, keys = FAULT_KINDS["rewire"], section("rewire").kind_keys
    findings = [Collected(section=f"faults.{index}") for index in range(2)]
    kind.check_together(
        [ReadFault(at_ps=at_ps, keys=keys, findings=one) for at_ps, one in zip((0, second_ps), findings, strict=True)]
    )
    assert [mistake.path for one in findings for mistake in one.mistakes] == wrong


def wiring(_: Any) -> Wiring:
    return Wiring(sides=None, is_twisted=False, lasts_ps=0)


def nothing(_: RemainingRate) -> str:
    return "does nothing"


def test_a_kind_has_places_or_is_of_the_whole_fabric() -> None:
    whole: WholeFabric[Any] = WholeFabric(
        noun="all",
        name="all",
        does="does",
        no_place="is",
        once="is",
        wiring=wiring,
    )
    for places, of_fabric in (((), None), (("link",), whole)):
        with pytest.raises(TypeError, match="wanted either places or whole"):
            FaultKind(source="a test", words=nothing, places=places, whole=of_fabric)
    with pytest.raises(TypeError, match="places has 'rack', wanted some of link, switch, nic"):
        FaultKind(source="a test", words=nothing, places=("rack",))  # type: ignore[arg-type]
