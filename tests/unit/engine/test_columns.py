"""Arrays in the form that the core borrows, and rows by the names of their fields."""

from dataclasses import dataclass

import numpy as np

from weftwork.engine.columns import column, fields_of, single

ROWS = np.array([(7, 0.5)], [("size_bytes", np.int64), ("alpha", np.float64)])


@dataclass
class Config:
    """Settings of a part, of which a row has two."""

    alpha: float
    size_bytes: int
    lossless: bool = True


def test_numbers_stay_and_records_become_bytes() -> None:
    assert column(np.arange(6).reshape(2, 3)[:, ::2]).tolist() == [0, 2, 3, 5]
    assert column(ROWS).dtype == np.uint8
    assert column(ROWS).view(ROWS.dtype).tolist() == ROWS.tolist()


def test_a_single_row_is_read_by_names() -> None:
    assert single(np.array([(3, 4)], [("ranks", np.int64), ("actors", np.int64)])) == {"ranks": 3, "actors": 4}


def test_a_dataclass_takes_what_a_row_has_under_its_names() -> None:
    found = fields_of(Config, ROWS[0])
    assert found == {"alpha": 0.5, "size_bytes": 7}
    assert [type(value) for value in found.values()] == [float, int]
    assert Config(**found).lossless
