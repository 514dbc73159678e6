"""Keys and shares from the command line, and the exit code of a run that gave up."""

from __future__ import annotations

from types import SimpleNamespace
from typing import cast

import pytest

from weftwork.base.clock import NEVER_PS
from weftwork.base.errors import ConfigError
from weftwork.cli.run import _is_stuck
from weftwork.cli.settings import overrides, parse_share
from weftwork.spec.endings import ENDINGS
from weftwork.store.runs import Run


def test_a_value_begins_behind_the_first_equals_sign() -> None:
    assert overrides(["fabric.file=a=b.json", " name = x ", "name=y"]) == {"fabric.file": "a=b.json", "name": "y"}
    assert overrides(None) == {}


def test_all_texts_without_a_key_or_a_value_are_told() -> None:
    with pytest.raises(ConfigError) as caught:
        overrides(["engine.seed", "=2", "a=1"])
    assert len(caught.value.mistakes) == 2


@pytest.mark.parametrize(
    ("status", "errors", "simulated_ps", "is_stuck"),
    [
        ("complete", 0, 5, False),
        ("complete", None, 5, False),
        ("stuck", 0, 5, True),
        ("stopped", 2, 5, True),
        ("stopped", 0, 5, False),  # at engine.until, as was asked
        ("stopped", 0, NEVER_PS, True),
        ("complete", 1, 5, True),
    ],
)
def test_a_run_fails_where_messages_never_arrive_or_a_queue_pair_gave_up(
    status: str, errors: int | None, simulated_ps: int, *, is_stuck: bool
) -> None:
    def run(**summary: dict[str, int | None]) -> Run:
        value = {"simulated_ps": simulated_ps}.get
        return cast("Run", SimpleNamespace(status=status, ending=ENDINGS[status], summary=summary, value=value))

    assert _is_stuck(run(queue_pair_errors={"value": errors})) is is_stuck
    assert _is_stuck(run()) is (status == "stuck" or simulated_ps == NEVER_PS)


@pytest.mark.parametrize(
    ("text", "share"), [("10%", 0.1), ("5 %", 0.05), (".2", 0.2), ("0", 0.0), ("0.125", 0.125), ("99.5%", 0.995)]
)
def test_a_share_is_a_number_or_percent(text: str, share: float) -> None:
    assert parse_share(text, "--headroom") == pytest.approx(share)


@pytest.mark.parametrize(
    ("text", "fix"),
    [("10", "10%"), ("1", "1%"), ("100%", None), ("-0.1", None), ("", None), ("nan", None), ("1e9", None)],
)
def test_a_text_that_is_no_share_is_refused_with_what_was_meant(text: str, fix: str | None) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_share(text, "--headroom")
    (mistake,) = caught.value.mistakes
    assert mistake.path == "--headroom"
    assert mistake.text == f"found '{text}', wanted a share from 0 to below 1, such as 0.05 or 5%"
    assert mistake.fix == fix
