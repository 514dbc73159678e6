"""The flow engine reads what policies declare, not what their files are called; what is not true is refused."""

from __future__ import annotations

import pytest
from helpers.flow_declarations import lowered

from weftwork.base.errors import ConfigError
from weftwork.engine.flow.flow_input import Mode


@pytest.mark.parametrize("name", ["bitmap", "mixed", "plb", "reps"])
def test_a_path_selection_that_declares_nothing_is_refused_where_the_entropy_counts(name: str) -> None:
    with pytest.raises(ConfigError, match=rf"transport\.path_selection  '{name}' does not declare"):
        lowered("ecmp", name)
    assert lowered("spray", name).mode == Mode.SPRAY


def test_a_parameter_that_makes_a_declaration_wrong_is_told() -> None:
    with pytest.raises(ConfigError, match=r"'spray' declares spreads='evenly', but \d+ of 1,024 packets"):
        lowered("ecmp", "spray", entropies=2)
    assert lowered("ecmp", "spray", entropies=256).mode == Mode.SPRAY
