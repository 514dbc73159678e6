"""Names of routing: the key, the list, the table of the program and the pages are one set, and pictures are fresh."""

from __future__ import annotations

import re
import sys
from dataclasses import replace
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from weftwork.policies.routings import AMONG, routing_step
from weftwork.spec.routings import ROUTINGS
from weftwork.spec.scenario.kinds import Choice
from weftwork.spec.scenario.reference import row

if TYPE_CHECKING:
    from weftwork.policies.interface import PortSelection


ROOT = Path(__file__).parents[3]


FOLDER = ROOT / "docs" / "routing"


INDEX = (FOLDER / "index.md").read_text(encoding="utf-8")


def test_the_key_takes_the_names_of_the_table() -> None:
    kind = row("fabric.routing").kind
    assert isinstance(kind, Choice)
    assert set(kind.options) == set(ROUTINGS)


@pytest.mark.parametrize("name", [name for name, routing in ROUTINGS.items() if routing.step])
def test_a_step_says_its_channels_and_whether_it_makes_detours(name: str) -> None:
    step = routing_step(name, channels=3, parameters={}, reorders=False)
    plugin: PortSelection = step.plugin  # type: ignore[assignment]
    assert (step.name, plugin.virtual_channels, plugin.reorders) == (name, 3, "never")
    assert "channel" in plugin.needs
    assert ("detour" in plugin.needs) == (ROUTINGS[name].detour != "never")


def test_a_step_that_sprays_spreads_evenly_and_one_by_queues_asks_for_them() -> None:
    by_hash = routing_step("minimal", channels=2, parameters={}, reorders=False).plugin
    sprayed = routing_step("minimal", channels=2, parameters={"among": AMONG["spray"]}, reorders=True).plugin
    by_queue = routing_step("minimal", channels=2, parameters={"among": AMONG["least-loaded"]}, reorders=True).plugin
    assert ("queue" in by_hash.needs, "queue" in by_queue.needs) == (False, True)
    assert ("reorder-tolerance" in by_hash.needs, "reorder-tolerance" in sprayed.needs) == (False, True)
    spreads: list[Any] = [getattr(one, "spreads", None) for one in (by_hash, sprayed)]
    assert spreads == ["hash", "evenly"]


def test_there_are_no_other_pages() -> None:
    assert {path.stem for path in FOLDER.glob("*.md")} == {*ROUTINGS, "index"}


@pytest.mark.parametrize("name", ROUTINGS)
def test_a_name_has_a_page_with_a_picture_and_a_scenario(name: str) -> None:
    page = (FOLDER / f"{name}.md").read_text(encoding="utf-8")
    assert f"`{name}`" in page.splitlines()[0]
    assert f"]({name}.svg)" in page
    assert f"routing: {name}" in page
    assert f"\n-->\n```console\n$ weftwork run {name}.yaml -o {name}\n" in page
    for heading in ("## Left out", "## Validation"):
        assert heading in page
    assert "irtual channels" in page
    assert f"[`{name}`]({name}.md)" in INDEX


@pytest.mark.parametrize("name", [*ROUTINGS, "index"])
def test_the_tests_that_a_page_names_exist(name: str) -> None:
    named = set(re.findall(r"`(tests/\S+\.py)`", (FOLDER / f"{name}.md").read_text(encoding="utf-8")))
    assert named
    for path in named:
        assert (ROOT / path).is_file()


def _pictures() -> Any:
    described = spec_from_file_location("routing_pictures", ROOT / "docs" / "routing_pictures.py")
    assert described is not None
    assert described.loader is not None
    module = module_from_spec(described)
    sys.modules[described.name] = module
    described.loader.exec_module(module)
    return module


def test_pictures_are_those_that_the_script_draws_now() -> None:
    module = _pictures()
    drawn = {picture.name: module.drawn(picture) for picture in module.pictures()}
    assert set(drawn) == set(ROUTINGS)
    for name, text in drawn.items():
        assert (FOLDER / f"{name}.svg").read_text(encoding="utf-8") == text, "run docs/routing_pictures.py"


def test_pictures_show_all_channels_of_a_dragonfly() -> None:
    module = _pictures()
    told = {picture.name: [channel for *_, channel in module.hops(picture)] for picture in module.pictures()}
    assert told["minimal"] == [0, 0, 1]
    assert told["valiant"] == told["ugal"] == [0, 0, 1, 1, 2]
    assert told["par"] == [0, 1, 1, 2, 2, 3]
    assert told["dimension-order"] == [0, 1, 1, 0, 0]
    assert told["k-shortest"] == [0, 1, 2, 3]


def test_a_hop_that_is_no_route_ends_the_script() -> None:
    module = _pictures()
    picture = next(one for one in module.pictures() if one.name == "minimal")
    astray = replace(picture, legs=(module.Leg(switches=("router2", "router1", "router8", "router10")),))
    with pytest.raises(SystemExit, match="router0 -> router2 is no route to router10"):
        module.hops(astray)
