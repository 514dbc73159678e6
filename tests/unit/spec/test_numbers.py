"""Numbers of a summary are declared once, and what reads them finds its rows."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from weftwork.spec import numbers
from weftwork.spec.numbers import HEADLINES, NUMBERS, TIME_GROUPS, declared, is_larger_better, numbers_shown, quantities
from weftwork.spec.time_kinds import TIME_KINDS

HOME = Path(numbers.__file__)
PACKAGE = HOME.parents[1]


def test_no_module_makes_a_number_beside_the_list() -> None:
    """Else a name, a unit or a text would stand in a second place."""
    makers = [
        file.relative_to(PACKAGE).as_posix()
        for file in PACKAGE.rglob("*.py")
        if file != HOME and "Quantity(" in (text := file.read_text(encoding="utf-8"))
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "Quantity"
    ]
    assert makers == []


def test_every_shown_number_has_a_noun_or_a_name_that_says_it() -> None:
    assert [number.name for number in numbers_shown("tile") if not number.noun] == []
    assert [number.name for number in numbers_shown("weeks") if not number.noun] == []
    assert [number.name for number in numbers_shown("speed") if not number.short] == []
    assert [name for name in HEADLINES if not (NUMBERS[name].noun and NUMBERS[name].subject)] == []
    assert [number.name for number in NUMBERS.values() if not number.text.endswith(".")] == []


def test_headlines_and_groups_are_in_the_order_in_which_runs_are_asked_for_them() -> None:
    assert HEADLINES == ("iteration_ps", "collective_duration_ps", "completion_ps")
    assert list(TIME_GROUPS)[:4] == ["computing_share", "exposed_share", "bubble_share", "waiting_share"]


def test_every_kind_of_time_has_both_numbers() -> None:
    assert [kind.name for kind in TIME_KINDS.values() if f"{kind.number}_ps" not in NUMBERS] == []
    assert [kind.name for kind in TIME_KINDS.values() if f"{kind.number}_share" not in NUMBERS] == []


@pytest.mark.parametrize(
    ("name", "row"),
    [
        ("drop_buffer_full", "drop_{reason}"),
        ("nvlink_bytes", "{carrier}_bytes"),
        ("payload_bytes", "payload_bytes"),
        ("job.of.two.mfu", "mfu"),
        ("left.fct_p99.9_ps", "fct_p99.9_ps"),
        ("nothing", None),
    ],
)
def test_a_name_of_a_summary_leads_to_its_row(name: str, row: str | None) -> None:
    number = declared(name)
    assert (None if number is None else number.name) == row


def test_more_is_better_of_rates_alone_and_of_what_says_so() -> None:
    rates = {number.name for number in NUMBERS.values() if number.unit in {"b/s", "B/s", "1/s"}}
    assert [name for name in rates if not is_larger_better(name)] == []
    assert not is_larger_better("iteration_ps")
    assert not is_larger_better("unknown")


def test_braces_are_filled_in_name_and_text() -> None:
    (name, number), *_ = quantities("drop_{reason}", 2, lead="left.", reason="link_loss", words="link loss").items()
    assert (name, number.value, number.unit, number.text) == (
        "left.drop_link_loss",
        2,
        "count",
        "Packets lost: link loss.",
    )
