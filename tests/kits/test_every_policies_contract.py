"""Every policy of the catalogue, every variant, and the small ones of the tests keep the contract of their kind."""

from pathlib import Path

import pytest

from weftwork.policies.load import catalogue, load
from weftwork.testing.congestion_control import check_congestion_control
from weftwork.testing.path_selection import check_path_selection
from weftwork.testing.port_selection import check_port_selection

OURS = Path(__file__).parent.parent / "policies"
CONTROLS = [
    *(entry.name for entry in catalogue("congestion_control")),
    str(Path(__file__).parents[2] / "examples" / "my_cc.py"),
]  # fmt: skip
PATHS = [
    *(entry.name for entry in catalogue("path_selection")), str(OURS / "restless.py"), str(OURS / "hottest.py"),
]  # fmt: skip
PORTS = [entry.name for entry in catalogue("port_selection")]
FEW = 2  # stories: one of two has all that a policy may need; the deep cases tell as many as the kit does by itself


def variants_of_controls() -> list[tuple[str, str | None]]:
    named = [(name, variant) for name in CONTROLS for variant in load("congestion_control", name).plugin.variants]
    return [*((name, None) for name in CONTROLS), *named]


def short(value: object) -> str:
    return Path(str(value)).stem


EACH = variants_of_controls()


@pytest.mark.parametrize("name", CONTROLS, ids=short)
def test_congestion_control_keeps_its_contract(name: str) -> None:
    assert check_congestion_control(load("congestion_control", name), stories=FEW) == ()


@pytest.mark.deep  # a variant is the same step with other numbers
@pytest.mark.parametrize(("name", "variant"), EACH, ids=short)
def test_congestion_control_keeps_its_contract_in_every_variant(name: str, variant: str | None) -> None:
    assert check_congestion_control(load("congestion_control", name, variant=variant)) == ()


def test_a_control_without_sense_breaks_what_it_means_to_and_nothing_else() -> None:
    """It asks for rates above the line's and reacts to everything; compiled it is still what it is in Python."""
    findings = check_congestion_control(load("congestion_control", OURS / "outspoken.py"))
    assert {finding.check for finding in findings} == {
        "rate_within_line_rate",
        "only_differences_of_time_count",
        "no_reaction_to_old_news",
    }


@pytest.mark.parametrize("name", PATHS, ids=short)
def test_path_selection_keeps_its_contract(name: str) -> None:
    assert check_path_selection(load("path_selection", name), stories=FEW) == ()


# Their plain steps look at every port of up to 64, which takes the kit seconds.
LONG_PORTS = ("adaptive", "ars", "conga")


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.deep] if name in LONG_PORTS else []) for name in PORTS], ids=short
)
def test_port_selection_keeps_its_contract(name: str) -> None:
    assert check_port_selection(load("port_selection", name), stories=FEW) == ()


@pytest.mark.deep
@pytest.mark.parametrize("name", PATHS, ids=short)
def test_path_selection_keeps_its_contract_in_more_stories(name: str) -> None:
    assert check_path_selection(load("path_selection", name)) == ()


@pytest.mark.deep
@pytest.mark.parametrize("name", PORTS, ids=short)
def test_port_selection_keeps_its_contract_in_more_stories(name: str) -> None:
    assert check_port_selection(load("port_selection", name)) == ()
