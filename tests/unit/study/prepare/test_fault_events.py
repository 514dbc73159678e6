"""Each event of a fault reaches the engine as itself: none falls through to another one."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from weftwork.spec.fabric import Fabric
from weftwork.spec.scenario import faults
from weftwork.spec.scenario.faults import FaultSection
from weftwork.study.prepare.faults import occurrences
from weftwork.topology.build import fabric_of

PLACES = {"link": "host0-leaf0", "switch": "leaf0", "nic": "host0"}
# Keys that an event needs, at any place.
NEEDED = {"degrade": {"fraction": 0.5}, "slow": {"fraction": 0.5}, "lossy": {"loss": 0.5}}


@pytest.fixture(scope="module")
def fabric() -> Fabric:
    return fabric_of(topology="leaf-spine", leaves=2, spines=1, hosts_per_leaf=1)


def test_every_place_has_an_example_here() -> None:
    assert set(PLACES) == set(faults._EVENTS) == set(faults._PLACES)


@pytest.mark.parametrize(
    ("place", "event"), [(place, event) for place, some in faults._EVENTS.items() for event in some]
)
def test_an_event_is_what_the_engine_does(place: str, event: str, fabric: Fabric) -> None:
    keys: dict[str, Any] = {place: PLACES[place], "event": event, **NEEDED.get(event, {})}
    scenario: Any = SimpleNamespace(faults=[FaultSection(at_ps=1, **keys)])
    (occurrence,), mistakes = occurrences(scenario, fabric)
    assert mistakes == []
    assert {fault.event for fault in occurrence.faults} == {event}
