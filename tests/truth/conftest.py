"""What the tests of this folder share: a way to print their figures, which `pytest tests/truth -s` shows."""

from collections.abc import Callable

import pytest

Show = Callable[[str], None]


@pytest.fixture
def show(request: pytest.FixtureRequest) -> Show:
    """Print one line of figures under the name of the test; without -s it is seen only where the test fails."""

    def line(text: str) -> None:
        print(f"\n{request.node.name.partition('[')[0]}: {text}", end="")  # noqa: T201 - figures for docs/models

    return line
