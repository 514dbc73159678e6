"""Counts with their nouns, and comparisons, as English writes them: ``1 flow``, ``2 flows``, ``as long as alone``."""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["number_ranges", "plural", "times_as_long"]


def plural(count: float, one: str, many: str | None = None, *, shown: str | None = None) -> str:
    """Write a count and its noun.

    Parameters
    ----------
    count : of things
    one, many : the noun, or a noun with its adjective or verb; ``many`` is ``one`` with an s by default
    shown : the count as text, where it is not a whole number or has a sign before it

    Examples
    --------
    >>> plural(1, "flow"), plural(1200, "flow"), plural(2, "switch", "switches")
    ('1 flow', '1,200 flows', '2 switches')
    >>> plural(1.04, "flow", shown="1"), plural(1.5, "flow", shown="1.5")
    ('1 flow', '1.5 flows')
    """
    text = f"{count:,.0f}" if shown is None else shown
    return f"{text} {one if text == '1' else many or one + 's'}"


def number_ranges(numbers: Sequence[int], between: str) -> str:
    """List ascending numbers; three or more in a row are a range.

    Parameters
    ----------
    numbers : whole numbers, ascending
    between : the two ends of a range, such as a hyphen

    Examples
    --------
    >>> number_ranges([1, 2, 3, 5], "-"), number_ranges([0, 1, 4], " to ")
    ('1-3, 5', '0, 1, 4')
    """
    rows: list[list[int]] = []
    for number in numbers:
        if rows and number == rows[-1][-1] + 1:
            rows[-1].append(number)
        else:
            rows.append([number])
    return ", ".join(f"{row[0]}{between}{row[-1]}" if len(row) > 2 else ", ".join(map(str, row)) for row in rows)


def times_as_long(ratios: Sequence[str], than: str) -> str:
    """Compare times with another time, and say so plainly where they are equal.

    Parameters
    ----------
    ratios : of the times, as text
    than : the other time, as the words after "as long as"

    Examples
    --------
    >>> times_as_long(["1.95", "2.94"], "alone"), times_as_long(["1"], "alone")
    ('1.95 and 2.94 times as long as alone', 'as long as alone')
    >>> times_as_long(["1", "1"], "alone"), times_as_long(["1", "1.02"], "alone")
    ('as long as alone', 'as long and 1.02 times as long as alone')
    """
    if all(ratio == "1" for ratio in ratios):
        return f"as long as {than}"
    if "1" not in ratios:
        return f"{' and '.join(ratios)} times as long as {than}"
    return f"{' and '.join('as long' if ratio == '1' else f'{ratio} times as long' for ratio in ratios)} as {than}"
