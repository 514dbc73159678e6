"""Arithmetic in a finite field GF(p^n), by tables.

An element is a number from 0 to p^n - 1; its digits to the base p are the coefficients of a polynomial in x, the lowest
first. Products are reduced by a monic polynomial of degree n for which x is primitive: all elements but 0 are powers of
x, so each has an inverse. The polynomial is found by search, in the order of its digits.
Source: Lidl and Niederreiter, Introduction to Finite Fields and their Applications, chapter 2.
Leaves out: fields of more elements than a table of sums holds.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["GaloisField", "galois_field", "prime_power"]


def prime_power(number: int) -> tuple[int, int] | None:
    """Split a number p^n into the prime p and n; None for any other number.

    Examples
    --------
    >>> prime_power(27), prime_power(29), prime_power(28)
    ((3, 3), (29, 1), None)
    """
    if number < 2:
        return None
    prime = next((low for low in range(2, int(number**0.5) + 1) if number % low == 0), number)
    exponent = 0
    while number % prime == 0:
        number, exponent = number // prime, exponent + 1
    return (prime, exponent) if number == 1 else None


@dataclass(frozen=True, kw_only=True, slots=True)
class GaloisField:
    """Tables of a finite field.

    Attributes
    ----------
    size : elements, p^n
    powers : shape (size - 1,), powers of a primitive element, from its power 0, which is 1
    sums : shape (size, size), sum of two elements
    """

    size: int
    powers: NDArray[np.int64]
    sums: NDArray[np.int64]

    def product(self, a: NDArray[np.int64], b: NDArray[np.int64]) -> NDArray[np.int64]:
        """Products of elements, of shapes that broadcast.

        Examples
        --------
        >>> field = galois_field(4)
        >>> field.product(np.array([2, 2]), np.array([2, 3])).tolist()
        [3, 1]
        """
        exponents = np.zeros(self.size, np.int64)
        exponents[self.powers] = np.arange(self.size - 1)
        found: NDArray[np.int64] = self.powers[(exponents[a] + exponents[b]) % (self.size - 1)]
        return np.where((a == 0) | (b == 0), 0, found)


def galois_field(size: int) -> GaloisField:
    """Build the tables of the field with a number of elements.

    Parameters
    ----------
    size : a power of a prime

    Raises
    ------
    ValueError : no field has this size
    """
    found = prime_power(size)
    if found is None:
        raise ValueError(f"no field has {size} elements, which is no power of a prime")
    prime, degree = found
    digits = np.arange(size)[:, None] // prime ** np.arange(degree) % prime
    sums = ((digits[:, None] + digits[None, :]) % prime) @ prime ** np.arange(degree)
    powers = next(filter(None, (_powers(prime, degree, low) for low in range(size))))
    return GaloisField(size=size, powers=np.array(powers, np.int64), sums=sums)


def _powers(prime: int, degree: int, low: int) -> list[int] | None:
    """All powers of x where x is primitive; else None.

    Parameters
    ----------
    prime, degree : of the field
    low : x^degree, as an element
    """
    size, top = prime**degree, prime ** (degree - 1)
    wrapped = [low // prime**place % prime for place in range(degree)]
    found, element = [1], _times_x(1, prime, top, wrapped)
    while element not in (0, 1) and len(found) < size - 1:
        found.append(element)
        element = _times_x(element, prime, top, wrapped)
    return found if element == 1 and len(found) == size - 1 else None


def _times_x(element: int, prime: int, top: int, wrapped: list[int]) -> int:
    """Multiply an element by x: shift its digits, and replace x^degree."""
    carry, shifted = element // top, element % top * prime
    digits = [(shifted // prime**place + carry * digit) % prime for place, digit in enumerate(wrapped)]
    return sum(digit * prime**place for place, digit in enumerate(digits))
