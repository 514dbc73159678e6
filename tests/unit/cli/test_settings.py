"""Keys from the command line, and the exit code of a run that gave up."""

from __future__ import annotations

from types import SimpleNamespace
from typing import cast

import pytest

from weftwork.base.clock import NEVER_PS
from weftwork.base.errors import ConfigError
from weftwork.cli.run import _is_stuck
from weftwork.cli.settings import overrides
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
        return cast("Run", SimpleNamespace(status=status, summary=summary, value=value))

    assert _is_stuck(run(queue_pair_errors={"value": errors})) is is_stuck
    assert _is_stuck(run()) is (status == "stuck" or simulated_ps == NEVER_PS)
