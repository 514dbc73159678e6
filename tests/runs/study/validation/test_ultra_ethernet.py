"""The reference model's published runs: what their rows say, and what a run of a row gives."""

from __future__ import annotations

from dataclasses import replace

import pytest

from weftwork.policies.load import catalogue
from weftwork.study.validation.ultra_ethernet import UetRow, permutations, small_cases


def small(pattern: str, flows: int, paths: str = "mixed") -> UetRow:
    (row,) = [
        row for row in small_cases()[0] if row.pattern == pattern and row.flows == flows and row.path_selection == paths
    ]
    return row


@pytest.mark.parametrize(("gbps", "queue", "kmin", "kmax", "window"), [(200, 50, 12, 37, 75), (400, 100, 25, 75, 150)])
def test_the_options_of_a_run_are_those_of_its_table(gbps: int, queue: int, kmin: int, kmax: int, window: int) -> None:
    """-q, -ecn and -cwnd of the column of set-ups."""
    rows = [row for row in permutations(is_full=True)[0] if row.rate_bps == gbps * 10**9]
    options = {(row.queue_packets, row.kmin_packets, row.kmax_packets, row.window_packets) for row in rows}
    assert options == {(queue, kmin, kmax, window)}


@pytest.mark.parametrize(
    ("is_full", "most_bytes", "wanted"), [(False, 10**9, 8), (True, 16 * 10**6, 60), (True, 10**9, 96)]
)
def test_every_row_runs_or_is_named(is_full: bool, most_bytes: int, wanted: int) -> None:  # noqa: FBT001
    rows, excluded = permutations(is_full=is_full, most_bytes=most_bytes)
    assert len(rows) + len(excluded) == wanted
    assert len({row.name for row in rows} | {row.name for row in excluded}) == wanted
    names = {entry.name for entry in catalogue("congestion_control")}
    assert {row.control for row in rows} == names & {"nscc", "rccc"}


def test_the_quick_rows_have_64_paths_and_2_mb_at_most() -> None:
    rows, _ = permutations(is_full=False)
    assert {(row.paths, row.message_bytes) for row in rows} == {(64, 1_000_000), (64, 2_000_000)}


def test_a_lone_flow_takes_as_long_as_in_the_reference_model() -> None:
    """Published are 176.2 to 177.4 us; on paper 490 packets, six links there and six back."""
    found = small("lone", 1).point()
    assert 176.2 * 0.98 < found.predicted_s * 1e6 < 177.4 * 1.02
    line_us = (2_000_000 + 490 * 64) * 8e-5
    assert found.predicted_s * 1e6 == pytest.approx(line_us + 12 + 5 * 4_150 * 8e-5, abs=0.5)


def test_an_incast_of_15_takes_as_long_as_in_the_reference_model() -> None:
    row = small("incast", 15)
    assert row.point().predicted_s * 1e6 == pytest.approx(2_471, rel=0.03)
    outcome = row.run()
    assert 0 < outcome.counters["trims"] < 0.3 * outcome.counters["data_sent"]
    assert outcome.counters["timeouts"] < 0.01 * outcome.counters["data_sent"]


def test_the_flow_that_stays_below_its_leaf_takes_as_long_as_there() -> None:
    """It meets nobody but answers, so that 256 hosts tell as much about it as 8,192."""
    row = next(row for row in permutations(is_full=False)[0] if row.rate_bps == 200 * 10**9)
    ends_us = row.run(leaves=4).messages["acked_at_ps"] / 1e6
    assert ends_us.min() == pytest.approx(row.least_us, rel=0.01)
    assert ends_us.max() > 1.05 * row.least_us


def test_feedback_shortens_the_tail_of_a_permutation() -> None:
    """The order of the published runs, on few of their hosts: mixed, then bitmap, then oblivious."""
    row = next(row for row in permutations(is_full=False)[0] if row.rate_bps == 200 * 10**9)
    chosen = [("mixed", (("good_every", 1),)), ("bitmap", ()), ("oblivious", ())]
    runs = [replace(row, path_selection=name, path_parameters=parameters) for name, parameters in chosen]
    mixed, bitmap, oblivious = [one.run(leaves=6).messages["acked_at_ps"].max() for one in runs]
    assert mixed < 0.98 * bitmap < 0.98 * oblivious
