"""The shipped table of errors is what the scorecard predicts now."""

from __future__ import annotations

import pytest

from weftwork.data.scored import scored_errors
from weftwork.study.validation.error_rows import scored_error, scored_rows

MOST = 16  # rows of a set that are predicted anew, at even steps
KEYS = tuple(dict.fromkeys(key for key, _ in scored_rows()))


def test_the_table_has_the_rows_of_the_scorecard_in_order() -> None:
    assert [row.set for row in scored_errors()] == [key for key, _ in scored_rows()]


@pytest.mark.deep
@pytest.mark.parametrize("key", KEYS)
def test_rows_of_a_set_have_the_errors_of_the_table(key: str) -> None:
    pairs = [(asked, row) for asked, row in zip(scored_rows(), scored_errors(), strict=True) if asked[0] == key]
    for asked, row in pairs[:: -(-len(pairs) // MOST)]:
        now = scored_error(asked)
        assert now.error == pytest.approx(row.error, abs=0.002), (
            f"{asked[1].name}: run python -m weftwork.study.validation.error_rows > src/weftwork/data/scored_errors.csv"
        )
        assert (now.gpu, now.kind, now.gpus, now.size_bytes) == (row.gpu, row.kind, row.gpus, row.size_bytes)
