"""The numbers that a port counts are columns of the table of links as their rows say."""

from __future__ import annotations

from weftwork.spec.port_counts import PORT_COUNTS
from weftwork.spec.result import TABLES


def test_columns_of_links_are_the_numbers_that_say_so() -> None:
    names = {each.name for each in PORT_COUNTS}
    columns = [(column.name, column.unit, column.text) for column in TABLES["links"] if column.name in names]
    assert columns == [(each.name, each.unit, each.text) for each in PORT_COUNTS if each.is_column]
    assert {column.type for column in TABLES["links"] if column.name in names} == {"int64"}
