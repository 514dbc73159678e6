"""Each kind of fault reaches the engine as its own changes, at each of its places, and is set back when it ends."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from helpers.fault_examples import EXAMPLES, PLACED
from helpers.findings import sound

from weftwork.spec.fabric import Fabric
from weftwork.spec.fault_changes import CHANGES, PLACES
from weftwork.spec.scenario.faults import FAULT_KINDS, FaultSection, end_of
from weftwork.study.prepare.faults import Occurrence, occurrences
from weftwork.topology.build import fabric_of

NAMES = {"link": "host0-leaf0", "switch": "leaf0", "nic": "host0"}


@pytest.fixture(scope="module")
def fabric() -> Fabric:
    return fabric_of(topology="leaf-spine", leaves=2, spines=1, hosts_per_leaf=1)


def happened(fabric: Fabric, event: str, place: str, **more: Any) -> list[Occurrence]:
    section = FaultSection(at_ps=1, event=event, **{place: NAMES[place]}, **EXAMPLES[event], **more)
    scenario: Any = SimpleNamespace(faults=[section])
    return sound(occurrences, scenario, fabric)


def test_every_place_has_an_example_here() -> None:
    assert set(NAMES) == set(PLACES)


@pytest.mark.parametrize(("event", "place"), PLACED)
def test_a_fault_is_the_changes_that_its_kind_names(event: str, place: str, fabric: Fabric) -> None:
    (occurrence,) = happened(fabric, event, place)
    section = FaultSection(at_ps=1, event=event, **{place: NAMES[place]}, **EXAMPLES[event])
    assert [fault.event for fault in occurrence.faults] == [change.name for change in section.changes]
    assert (occurrence.event, occurrence.where, occurrence.place) == (event, NAMES[place], NAMES[place])


@pytest.mark.parametrize(
    ("event", "place"), [(event, place) for event, place in PLACED if not FAULT_KINDS[event].undoes]
)
def test_a_fault_that_ends_sets_each_of_its_states_back(event: str, place: str, fabric: Fabric) -> None:
    begin, end = happened(fabric, event, place, for_ps=5)
    assert (end.event, end.at_ps) == (end_of(event), 6)
    assert {fault.change.sets for fault in end.faults} == {fault.change.sets for fault in begin.faults}
    whole_bps = int(fabric.links["rate_bps"][fabric.link(NAMES["link"])])
    for fault in end.faults:
        assert fault.change.passes in {None, True}
        assert fault.rate_bps in {0, whole_bps}  # 0 for at once
        assert fault.loss == 0


def test_a_nic_has_the_changes_of_its_link(fabric: Fabric) -> None:
    """Those that only a link or a switch can have."""
    for event, place in PLACED:
        (occurrence,) = happened(fabric, event, place)
        for fault in occurrence.faults:
            named = [name for name, index in (("link", fault.link), ("switch", fault.switch), ("nic", fault.nic))
                     if index >= 0]  # fmt: skip
            assert len(named) == 1
            assert named[0] in CHANGES[fault.event].places
            assert place == "nic" or named == [place]
