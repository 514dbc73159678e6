"""Means over seeds with 95 % intervals, by Student's t.

The seeds are the sample, and their numbers independent draws.

Source: the t-interval of any textbook; with one seed there is no interval.
Leaves out: numbers that are far from normal, such as the largest of few flows; there the interval is a guide.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["interval", "is_difference_clear", "mean_numbers"]

CONFIDENCE = 0.95


def interval(values: Sequence[float], *, rivals: int = 1) -> tuple[float, float, float]:
    """Mean of a sample and the ends of its 95 % interval.

    Parameters
    ----------
    values : at least one
    rivals : how many such samples the largest or smallest was chosen from: Bonferroni's interval is wider

    Returns
    -------
    mean, low, high; low and high equal the mean for a single value

    Examples
    --------
    >>> [round(x, 3) for x in interval([1.0, 2.0, 3.0])]
    [2.0, -0.484, 4.484]
    """
    from scipy.stats import t

    count = len(values)
    mean = math.fsum(values) / count
    if count == 1:
        return mean, mean, mean
    deviation = math.sqrt(math.fsum((value - mean) ** 2 for value in values) / (count - 1))
    half = float(t.ppf(1.0 - (1.0 - CONFIDENCE) / (2 * rivals), count - 1)) * deviation / math.sqrt(count)
    return mean, mean - half, mean + half


def is_difference_clear(
    number: Mapping[str, Any], other: Mapping[str, Any], *, are_paired: bool, rivals: int = 1
) -> bool | None:
    """Whether a difference of two means is more than noise; None with one seed.

    With the same seeds it is where the interval of the differences, seed by seed, excludes zero: a seed that is slow
    for one is slow for the other. Else it is where both intervals do not touch.

    Parameters
    ----------
    number, other : of `mean_numbers`
    are_paired : the seeds are the same
    rivals : among how many the other was chosen

    Examples
    --------
    >>> fast, slow = ({"low": 0, "high": 9, "seeds": 3, "each": [1.0 + x, 2.0 + x, 6.1 + x]} for x in (0, 1))
    >>> [is_difference_clear(fast, slow, are_paired=paired) for paired in (True, False)]
    [True, False]
    """
    if number.get("seeds", 1) < 2 or other.get("seeds", 1) < 2:
        return None
    if are_paired and "each" in number and "each" in other:
        differences = [mine - its for mine, its in zip(number["each"], other["each"], strict=True)]
        _, low, high = interval(differences, rivals=rivals)
        return low > 0 or high < 0
    return bool(number["high"] < other["low"] or other["high"] < number["low"])


def mean_numbers(summaries: Sequence[Mapping[str, Mapping[str, Any]]]) -> dict[str, dict[str, Any]]:
    """Join the summaries of several seeds.

    Each number becomes its mean, with ``low``, ``high`` and ``seeds``.

    A number that some seeds do not have is averaged over those that do; ``seeds`` says how many they are. An interval
    is cut where no run can be: no number of a summary is below 0, and no share nor Jain's index above 1. ``each`` has
    the values by seed where every seed has one.
    """
    found: dict[str, dict[str, Any]] = {}
    for name, first in summaries[0].items():
        values = [float(s[name]["value"]) for s in summaries if name in s and s[name]["value"] is not None]
        mean, low, high = interval(values) if values else (None, None, None)
        most = 1.0 if first["unit"] == "share" or name == "jain_index" else math.inf
        found[name] = {
            "value": mean,
            "unit": first["unit"],
            "text": first["text"],
            "low": None if low is None else max(low, 0.0),
            "high": None if high is None else min(high, most),
            "seeds": len(values),
        }
        if len(values) == len(summaries):
            found[name]["each"] = values
    return found
