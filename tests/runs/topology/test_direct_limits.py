"""The largest direct networks against published numbers, and against networks that the generators make."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from helpers.sketched_networks import PARTS, torus

from weftwork.cli.topology_limits import limits_record, print_limits
from weftwork.spec.device import Switch
from weftwork.topology.build import fabric_of
from weftwork.topology.largest import fabric_limits
from weftwork.topology.measures import measure


def _limits(fabric: Any) -> Any:
    found = fabric_limits(fabric).direct
    assert found is not None
    return found


def test_a_dragonfly_grows_to_all_its_global_ports_then_to_all_ports_then_to_the_balance() -> None:
    fabric = fabric_of(
        topology="dragonfly", routers_per_group=8, hosts_per_router=4, global_ports=4, groups=9, radix=16
    )
    sizes = _limits(fabric).sizes
    assert [size.endpoints for size in sizes] == [8 * 4 * 33, 8 * 4 * 41]
    assert sizes[0].words == "33 groups of 8 routers, 4 + 7 + 4 ports"
    record = json.loads(json.dumps(limits_record(fabric, fabric_limits(fabric))))
    assert record["family"]["sizes"][0]["gpus"] == 1_056
    assert not record["is_endless"]


def test_a_torus_has_no_end_and_says_what_it_loses() -> None:
    fabric = torus(4, 4, 8)
    found = _limits(fabric)
    assert not found.ends
    assert not found.sizes
    assert "32 links cross the middle of the longest side: 0.25 for each switch" in found.facts[1]
    assert "from 8 to 12 links" in found.facts[1]
    assert limits_record(fabric, fabric_limits(fabric))["is_endless"]
    assert measure(fabric).diameter_hops == 8 + 2


def test_a_family_without_a_formula_gives_the_reason(capsys: pytest.CaptureFixture[str]) -> None:
    from weftwork.cli.console import console

    fabric = torus(4, 4, parts=replace(PARTS, switch=Switch(name="plain", radix=8)))
    assert fabric.direct is not None
    fabric = replace(fabric, direct=replace(fabric.direct, family="own"))
    limits = fabric_limits(fabric)
    assert limits.unknown == "no formula is known for the family 'own'"
    print_limits(console(), fabric, limits)
    printed = " ".join(capsys.readouterr().out.split())
    assert "The largest size of such fabrics is not known: no formula is known for the family 'own'." in printed
