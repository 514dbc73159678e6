"""Finite fields: the axioms, for every size up to 64, and sizes that no field has."""

from __future__ import annotations

import numpy as np
import pytest

from weftwork.topology.galois import galois_field, prime_power


@pytest.mark.parametrize("size", [2, 3, 64, 81, 125, 243, 256, 343, 1_024])
def test_a_primitive_element_makes_all_others(size: int) -> None:
    field = galois_field(size)
    powers = field.powers
    assert powers[0] == 1
    assert sorted(powers.tolist()) == list(range(1, size))
    x = powers[1 % (size - 1)]
    assert (field.product(powers, np.full(size - 1, x)) == np.roll(powers, -1)).all()
    found = prime_power(size)
    assert found is not None
    several = np.zeros(size, np.int64)
    for _ in range(found[0]):
        several = field.sums[several, np.arange(size)]
    assert not several.any()  # p times any element is 0
