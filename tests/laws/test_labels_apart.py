"""Numbers beside each other differ in print where they differ: labels of an axis, ends of an interval."""

from __future__ import annotations

import hypothesis.strategies as st
from hypothesis import given

from weftwork.report.figures.axes import even_ticks, log_ticks, tick_words, ticks
from weftwork.report.words import amounts_apart, interval_words

UNITS = st.sampled_from(["ps", "s", "b/s", "B", "share", "ratio"])
LOWS = st.floats(0.01, 1e15)
WIDTHS = st.floats(1e-3, 1e3)  # of an axis, over its low end


@given(low=LOWS, width=WIDTHS, unit=UNITS, most=st.integers(3, 9))
def test_no_axis_has_two_equal_labels(low: float, width: float, unit: str, most: int) -> None:
    high = low * (1 + width)
    axes = [
        ticks(high, unit, most=most),
        log_ticks(low, high, unit),
        even_ticks(low, high, lambda values: tick_words(values, unit), most=most),
    ]
    for axis in axes:
        labels = [tick.text for tick in axis]
        assert len(set(labels)) == len(labels)


@given(value=LOWS, down=st.floats(0, 0.5), up=st.floats(0, 0.5), unit=UNITS)
def test_the_ends_of_an_interval_differ_from_each_other_or_are_not_written(
    value: float, down: float, up: float, unit: str
) -> None:
    low, high = value * (1 - down), value * (1 + up)
    words = interval_words(low, high, unit, beside=value)
    if high - low > 2e-3 * high:
        first, last = words.split(" to ")
        assert first != last
    if not words:
        first, number, last = amounts_apart([low, value, high], unit)
        assert first == number == last
