"""An outcome: what its digest covers, and how a run that was cut off ended."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from weftwork.base.clock import NEVER_PS
from weftwork.base.flow_identity import flow_identity
from weftwork.engine.digest import DIGEST_COLUMNS, DIGEST_COUNTERS, DIGEST_SELDOM, DIGEST_VERSION
from weftwork.engine.outcome import Outcome, ending
from weftwork.engine.rows.outcome import (
    COUNTERS,
    EVENT_DTYPE,
    MESSAGE_DTYPE,
    MILESTONE_DTYPE,
    PATH_DTYPE,
    PORT_DTYPE,
    PORT_ROW,
    SERIES_DTYPE,
    TIMELINE_DTYPE,
)
from weftwork.spec.port_counts import PORT_COUNTS

OUTCOME = Outcome(
    messages=np.zeros(2, MESSAGE_DTYPE),
    ports=np.zeros(3, PORT_DTYPE),
    counters=dict.fromkeys(COUNTERS, 0),
    milestones=np.zeros(2, MILESTONE_DTYPE),
    series=np.empty(0, SERIES_DTYPE),
    complete=True,
    simulated_ps=0,
)


COLUMNS = [(table, column) for table, columns in DIGEST_COLUMNS.items() for column in columns]
SELDOM_COLUMNS = [("ports", name) for name, places in DIGEST_SELDOM.items() if "ports" in places]
SELDOM_COUNTERS = [name for name, places in DIGEST_SELDOM.items() if "counters" in places]
TABLES = {"messages": MESSAGE_DTYPE, "ports": PORT_DTYPE, "milestones": MILESTONE_DTYPE}
LEFT_OUT: dict[str, set[str]] = {"messages": set(), "ports": set(), "milestones": set(), "counters": set()}


@pytest.mark.parametrize(("table", "column"), [*COLUMNS, *SELDOM_COLUMNS])
def test_a_digest_covers_the_columns_of_its_list(table: str, column: str) -> None:
    changed = getattr(OUTCOME, table).copy()
    changed[column][-1] += 1
    assert replace(OUTCOME, **{table: changed}).digest() != OUTCOME.digest()


@pytest.mark.parametrize("name", [*DIGEST_COUNTERS, *SELDOM_COUNTERS])
def test_a_digest_covers_the_counters_of_its_list(name: str) -> None:
    assert replace(OUTCOME, counters=OUTCOME.counters | {name: 1}).digest() != OUTCOME.digest()


@pytest.mark.parametrize("table", TABLES)
def test_a_new_column_of_an_engine_leaves_every_digest_as_it_is(table: str) -> None:
    wider = np.dtype([*((name, np.int64) for name in TABLES[table].names or ()), ("new_column", np.int64)])
    rows = np.zeros(len(getattr(OUTCOME, table)), wider)
    rows["new_column"] = 7
    assert replace(OUTCOME, **{table: rows}).digest() == OUTCOME.digest()


def test_a_new_counter_of_an_engine_leaves_every_digest_as_it_is() -> None:
    assert replace(OUTCOME, counters=OUTCOME.counters | {"new_counter": 7}).digest() == OUTCOME.digest()


@pytest.mark.parametrize("table", [*TABLES, "counters"])
def test_every_number_is_in_the_digest_or_left_out_on_purpose(table: str) -> None:
    """Whoever adds a column puts it into a list of `weftwork.engine.digest`, or into LEFT_OUT above."""
    numbers = set(COUNTERS) if table == "counters" else set(TABLES[table].names or ())
    listed = set(DIGEST_COUNTERS) if table == "counters" else set(DIGEST_COLUMNS[table])
    listed |= {name for name, places in DIGEST_SELDOM.items() if table in places}
    assert numbers - listed == LEFT_OUT[table]
    assert listed <= numbers


def test_the_digest_of_an_empty_run_is_that_of_version_1() -> None:
    """A list that changed without its version: golden digests of version 1 would no longer be what they were."""
    assert (DIGEST_VERSION, OUTCOME.digest()[:16]) == (1, "738c079dff6c9b77")


@pytest.mark.parametrize(
    ("table", "dtype"),
    [("series", SERIES_DTYPE), ("events", EVENT_DTYPE), ("timeline", TIMELINE_DTYPE), ("paths", PATH_DTYPE)],
)
def test_what_is_recorded_on_demand_is_no_part_of_it(table: str, dtype: np.dtype[np.void]) -> None:
    assert replace(OUTCOME, **{table: np.zeros(1, dtype)}).digest() == OUTCOME.digest()


@pytest.mark.parametrize(
    ("is_done", "interrupted_at_ps", "until_ps", "has_clock_ended", "wanted"),
    [
        (True, None, 100, False, (True, 40)),
        (True, None, NEVER_PS, False, (True, 40)),
        (True, None, NEVER_PS, True, (True, 40)),  # a timer that is left has nothing to do
        (False, None, NEVER_PS, False, (True, 40)),  # it came to rest, and waits for ever
        (False, None, NEVER_PS, True, (False, NEVER_PS)),
        (False, None, 100, False, (False, 100)),
        (False, 70, NEVER_PS, False, (False, 70)),
        (False, 130, 100, False, (False, 100)),
    ],
)
def test_a_run_ends_at_its_last_packet_or_where_it_was_stopped(
    *, is_done: bool, interrupted_at_ps: int | None, until_ps: int, has_clock_ended: bool, wanted: tuple[bool, int]
) -> None:
    found = ending(
        is_done=is_done,
        interrupted_at_ps=interrupted_at_ps,
        end_ps=40,
        until_ps=until_ps,
        has_clock_ended=has_clock_ended,
    )
    assert found == wanted


def test_flows_are_in_the_order_of_source_destination_and_channel() -> None:
    some = np.array([0, 1, 2, 65_535])
    source, destination, channel = (axis.ravel() for axis in np.meshgrid(some, some, some, indexing="ij"))
    assert (np.diff(flow_identity(source, destination, channel)) > 0).all()


def test_the_record_of_a_port_has_every_number_that_ports_count() -> None:
    assert PORT_DTYPE.names == tuple(each.name for each in PORT_COUNTS)
    assert [f"{field.text}." for field in PORT_ROW.fields] == [each.text for each in PORT_COUNTS]
