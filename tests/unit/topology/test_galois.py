"""Finite fields: the axioms, for every size up to 64, and sizes that no field has."""

from __future__ import annotations

import numpy as np
import pytest

from weftwork.topology.galois import GaloisField, galois_field, prime_power

PRIMES = (2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47, 53, 59, 61)


SIZES = sorted(p**n for p in PRIMES for n in range(1, 7) if p**n <= 64)


def products(field: GaloisField) -> np.ndarray:
    element = np.arange(field.size)
    return field.product(element[:, None], element[None, :])


@pytest.mark.parametrize("size", SIZES)
def test_axioms_of_a_field(size: int) -> None:
    field = galois_field(size)
    plus, times, element = field.sums, products(field), np.arange(size)
    a, b, c = element[:, None, None], element[None, :, None], element[None, None, :]
    for table, neutral in ((plus, 0), (times, 1)):
        assert (table == table.T).all()
        assert (table[neutral] == element).all()
        assert (table[table[a, b], c] == table[a, table[b, c]]).all()
    assert (times[a, plus[b, c]] == plus[times[a, b], times[a, c]]).all()
    assert (np.sort(plus, axis=1) == element).all()  # an opposite of each element, and no other
    assert (np.sort(times[1:, 1:], axis=1) == element[1:]).all()  # an inverse of each element but 0
    assert not times[0].any()


def test_prime_fields_are_numbers_modulo_the_prime() -> None:
    field, element = galois_field(13), np.arange(13)
    assert (field.sums == (element[:, None] + element) % 13).all()
    assert (products(field) == (element[:, None] * element) % 13).all()


def test_prime_powers_against_a_list() -> None:
    assert [number for number in range(-1, 65) if prime_power(number)] == SIZES
    assert [prime_power(number) for number in (1_024, 2_187, 2_197, 1_000)] == [(2, 10), (3, 7), (13, 3), None]


@pytest.mark.parametrize("size", [0, 1, 6, 28, 100])
def test_other_sizes_have_no_field(size: int) -> None:
    with pytest.raises(ValueError, match=f"no field has {size} elements"):
        galois_field(size)
