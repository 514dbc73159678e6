"""Numbers of the shell: each operator, and texts that are no number."""

from __future__ import annotations

import pytest

from weftwork.workload.imports.shell_arithmetic import calculate

VALUES = {"G": 8, "N": 4}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("2 + 3 * 4 - 1", 13), ("(2 + 3) * 4", 20), ("-7 / 2", -3), ("-7 % 2", -1), ("2 ** 3 ** 2", 512),
        ("!3 + !0", 1),
        ("G * N", 32), ("G > N && N >= 4", 1), ("G == 8 ? 1 : 2", 1), ("G != 8 ? 1 : N < 4 ? 2 : 3", 3),
        ("0x10 + 010", 24),
        ("A = 3, A * 2", 6), ("A = N, A += 2", 6), ("A = 1, A++ + A", 3), ("--G", 7), ("X || 1", 1), ("X && 0", 0),
        ("X", None), ("X + 1", None), ("1 / 0", None), ("1 +", None), ("(1", None), ("1 2", None), ("1.5", None),
        ("", None),
        ("$(x)", None), ("2 ** 70", None), ("9" * 30, None), ("(" * 100 + "1" + ")" * 100, None),
        ("1 + " * 400 + "1", None),
    ],
)  # fmt: skip
def test_an_expression_has_its_value(text: str, value: int | None) -> None:
    assert calculate(text, VALUES.get) == value


def test_assignments_are_told() -> None:
    assigned: dict[str, int | None] = {}
    assert calculate("A = 2, B = A * X, N++", VALUES.get, assigned) == 4
    assert assigned == {"A": 2, "B": None, "N": 5}
