"""A way to print the figures of tests of closed forms and published numbers: `pytest tests/truth -s` shows them."""

from __future__ import annotations

from collections.abc import Callable

import pytest

__all__ = ["Show", "show"]

Show = Callable[[str], None]


@pytest.fixture
def show(request: pytest.FixtureRequest) -> Show:
    """Print one line of figures under the name of the test; without -s it is seen only where the test fails."""

    def line(text: str) -> None:
        print(f"\n{request.node.name.partition('[')[0]}: {text}", end="")  # noqa: T201 - figures for docs/models

    return line
