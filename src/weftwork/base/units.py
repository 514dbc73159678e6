"""Quantities with units, such as ``400Gbps`` or ``1.5us``: parsing and formatting.

Results are in the base units of Weftwork. Text with units is parsed at the edge and
nowhere else. Prefixes: SI (1,000), and IEC 80000-13 for ``Ki``, ``Mi``, ``Gi``, ``Ti`` (1,024). Case counts, since
``b`` is a bit and ``B`` a byte, ``m`` a thousandth and ``M`` a million; only ``k`` and ``K`` are the same.
Leaves out: compound units (``1h30m``), signs (no quantity here is negative) and thousands separators.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

from weftwork.base.clock import SECOND_PS
from weftwork.base.errors import WeftworkError

__all__ = [
    "DURATION", "LENGTH", "PROPAGATION_PS_PER_M", "RATE", "SIZE", "QuantityKind", "UnitError", "format_quantity",
    "parse_quantity",
]  # fmt: skip

# Light in glass, c / 1.468 = 4.9 ns/m (group index of G.652 fibre at 1,310 nm), rounded to the usual figure.
PROPAGATION_PS_PER_M = 5_000

_NUMBER = re.compile(
    r"(?P<number>[0-9]+(?:\.[0-9]*)?(?:[eE][+-]?[0-9]{1,2})?|\.[0-9]+)\s*(?P<unit>[^\s0-9.+-][^\s]{0,15})?"
)
_LONGEST = 64  # chosen: longer text is no quantity; keeps the arithmetic small whatever a file holds


@dataclass(frozen=True, kw_only=True, slots=True)
class QuantityKind:
    """A kind of quantity and its units.

    Parameters
    ----------
    name : for messages, such as ``rate``
    article_name : with its article and an example follows, such as ``a rate``
    suffix : that field names of this quantity end in, such as ``bps``
    units : unit text to its size in the base unit, ascending; every one is accepted
    preferred : the units that Weftwork itself writes
    bare : whether a number without a unit is accepted, and then means the base unit
    examples : shown in messages
    spellings : wrong spellings in lower case to the right unit
    whole : whether the value is an integer number of base units
    largest : largest accepted value, in base units
    """

    name: str
    article_name: str
    suffix: str
    units: Mapping[str, Fraction]
    preferred: tuple[str, ...]
    bare: bool
    examples: tuple[str, str]
    spellings: Mapping[str, str]
    whole: bool = True
    largest: int = 2**62

    @property
    def wanted(self) -> str:
        """Allowed texts, for an error message."""
        bare = ", or a number of bytes" if self.bare else ""
        units = ", ".join(self.preferred)
        return f"{self.article_name} such as {self.examples[0]} or {self.examples[1]} (units {units}){bare}"


class UnitError(WeftworkError, ValueError):
    """A text is not a quantity of the expected kind.

    Parameters
    ----------
    text : what was found and what is allowed
    fix : the nearest right text, or None
    """

    def __init__(self, text: str, fix: str | None = None) -> None:
        self.text = text
        self.fix = fix
        super().__init__(text, fix)

    def __str__(self) -> str:
        return self.text if self.fix is None else f"{self.text}; did you mean '{self.fix}'?"


def _decimal(base: str, prefixes: str) -> dict[str, Fraction]:
    power = {"": 0, "k": 1, "K": 1, "M": 2, "G": 3, "T": 4, "P": 5}
    return {f"{p}{base}": Fraction(1000 ** power[p]) for p in ("", *prefixes)}


RATE = QuantityKind(
    name="rate",
    article_name="a rate",
    suffix="bps",
    units=_decimal("bps", "kKMGT"),
    preferred=("bps", "kbps", "Mbps", "Gbps", "Tbps"),
    bare=False,
    examples=("400Gbps", "1.6Tbps"),
    spellings={
        f"{prefix}{tail}": f"{prefix if prefix == 'k' else prefix.upper()}bps"
        for prefix in ("", "k", "m", "g", "t")
        for tail in ("bps", "b/s", "bit/s", "bits", "bit", "b", "")
        if prefix + tail
    },
)

SIZE = QuantityKind(
    name="size",
    article_name="a size",
    suffix="bytes",
    units={**_decimal("B", "kKMGT"), **{f"{p}iB": Fraction(1024**n) for n, p in enumerate("KMGT", start=1)}},
    preferred=("B", "KB", "MB", "GB", "TB", "KiB", "MiB", "GiB", "TiB"),
    bare=True,
    examples=("256KB", "2MiB"),
    spellings={
        "b": "B", "byte": "B", "bytes": "B",
        **{f"{p}{tail}": f"{p.upper()}B" for p in "kmgt" for tail in ("", "b", "byte", "bytes")},
        **{f"{p}i{tail}": f"{p.upper()}iB" for p in "kmgt" for tail in ("", "b", "byte", "bytes")},
    },
)  # fmt: skip

DURATION = QuantityKind(
    name="time",
    article_name="a time",
    suffix="ps",
    units={
        "ps": Fraction(1),
        "ns": Fraction(10**3),
        "us": Fraction(10**6),
        "µs": Fraction(10**6),
        "ms": Fraction(10**9),
        "s": Fraction(10**12),
    },
    preferred=("ps", "ns", "us", "ms", "s"),
    bare=False,
    examples=("500ns", "1.5us"),
    spellings={
        "sec": "s", "secs": "s", "second": "s", "seconds": "s", "msec": "ms", "usec": "us", "nsec": "ns", "psec": "ps",
        "μs": "us", "micros": "us", "nanos": "ns", "millis": "ms", "u": "us", "n": "ns", "m": "ms", "p": "ps",
    },
    largest=2_000_000 * SECOND_PS,  # chosen: 23 days, a round figure below `NEVER_PS`
)  # fmt: skip

LENGTH = QuantityKind(
    name="length",
    article_name="a length",
    suffix="m",
    units={"mm": Fraction(1, 1000), "cm": Fraction(1, 100), "m": Fraction(1), "km": Fraction(1000)},
    preferred=("cm", "m", "km"),
    bare=False,
    examples=("20m", "1.5km"),
    spellings={
        "meter": "m", "meters": "m", "metre": "m", "metres": "m", "kilometer": "km", "kilometre": "km",
        "k": "km", "kms": "km",
    },
    whole=False,
    largest=10**9,
)  # fmt: skip


def parse_quantity(quantity: QuantityKind, text: str) -> int | float:
    """Parse text with a unit into a number of base units, exactly.

    Parameters
    ----------
    quantity : `RATE`, `SIZE`, `DURATION` or `LENGTH`
    text : such as ``1.5us``; spaces between number and unit do not count

    Returns
    -------
    int for a whole quantity (bits per second, bytes, picoseconds), float for metres

    Raises
    ------
    UnitError : not a number, no unit, a wrong unit, a negative or too large value, or a fraction of a base unit

    Examples
    --------
    >>> parse_quantity(DURATION, "1.5us"), parse_quantity(SIZE, "2MiB"), parse_quantity(RATE, "400 Gbps")
    (1500000, 2097152, 400000000000)
    >>> parse_quantity(RATE, "400gb")
    Traceback (most recent call last):
    weftwork.base.units.UnitError: ... did you mean '400Gbps'?
    """
    found = _shown(text)
    stripped = text.strip()
    if stripped.startswith("-") and _NUMBER.fullmatch(stripped[1:]):
        message = f"found {found}, but {quantity.article_name} is not negative"
        raise UnitError(message)
    match = _NUMBER.fullmatch(stripped) if len(stripped) <= _LONGEST else None
    if match is None:
        message = f"found {found}, wanted {quantity.wanted}"
        raise UnitError(message)
    number, unit = match["number"], match["unit"]
    if unit is None:
        if not quantity.bare and Fraction(number) != 0:
            message = f"found {found} without a unit, wanted {quantity.wanted}"
            raise UnitError(message)
        factor = Fraction(1)
    elif unit in quantity.units:
        factor = quantity.units[unit]
    else:
        message = f"found {found}, wanted {quantity.wanted}"
        raise UnitError(message, _nearest_text(quantity, number, unit))
    value = Fraction(number) * factor
    if value > quantity.largest:
        message = f"found {found}, too large; the most is {format_quantity(quantity, quantity.largest)}"
        raise UnitError(message)
    if not quantity.whole:
        return float(value)
    if value.denominator != 1:
        message = f"found {found}, finer than one {quantity.preferred[0]}"
        raise UnitError(message)
    return int(value)


def _nearest_text(quantity: QuantityKind, number: str, unit: str) -> str | None:
    if quantity is RATE and unit.endswith(("Bps", "B/s")):  # bytes per second: eight times as many bits
        bits = _nearest_unit(quantity, f"{unit[:-3]}bps")
        return None if bits is None else f"{_plain_number(8 * Fraction(number))}{bits}"
    right = _nearest_unit(quantity, unit)
    return None if right is None else f"{number}{right}"


def _nearest_unit(quantity: QuantityKind, unit: str) -> str | None:
    folded = unit.lower()
    for right in quantity.preferred:
        if right.lower() == folded:
            return right
    return quantity.spellings.get(folded)


def format_quantity(quantity: QuantityKind, value: float) -> str:
    """Format a number of base units as the shortest exact text.

    `parse_quantity` reads the text back to the same number.

    Examples
    --------
    >>> format_quantity(RATE, 400_000_000_000), format_quantity(SIZE, 2_097_152), format_quantity(DURATION, 1_500_000)
    ('400Gbps', '2MiB', '1.5us')
    >>> format_quantity(DURATION, 67_108_864_000), format_quantity(SIZE, 8_320), format_quantity(LENGTH, 20.0)
    ('67.108864ms', '8.32KB', '20m')
    """
    exact = Fraction(repr(value))  # a float as its shortest decimal, which is what its user wrote
    if not quantity.whole:
        return f"{_plain_number(exact)}{quantity.suffix}"
    best = f"{_plain_number(exact)}{quantity.preferred[0]}"
    fewest = _digits(best)
    for unit in quantity.preferred[1:]:
        scaled = exact / quantity.units[unit]
        if scaled < 1:
            continue
        text = _plain_number(scaled)
        digits = _digits(text)
        if Fraction(text) == scaled and (digits < fewest or (digits == fewest and not unit.endswith("iB"))):
            best, fewest = f"{text}{unit}", digits
    return best


def _plain_number(value: Fraction) -> str:
    """Format a decimal without an exponent, at 28 digits at most.

    The caller compares where the value must be exact.
    """
    if value.denominator == 1:
        return str(value.numerator)
    text = format(Decimal(value.numerator) / Decimal(value.denominator), "f")
    return text.rstrip("0").rstrip(".") if "." in text else text


def _digits(text: str) -> int:
    return sum(map(str.isdigit, text))


def _shown(text: str) -> str:
    return repr(text if len(text) <= _LONGEST else text[: _LONGEST - 3] + "...")
