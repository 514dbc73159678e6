"""The culprit of the difference between two runs: the key, the part of the time or the trouble that explains it.

Where one key alone differs, the difference is its price. Else the part of an iteration that changed most is named, and
packets lost, sent again or paused in only one of them.
Leaves out: how large the difference is (`weftwork.report.comparison_words`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from weftwork.report.words import amount
from weftwork.spec.answer import TROUBLED_SHARE
from weftwork.spec.sweep import SAME

if TYPE_CHECKING:
    from weftwork.spec.comparison import ComparedRun, RunComparison

__all__ = ["difference_words"]

_LARGE: Final = 0.1  # chosen: of the difference; a smaller part explains nothing
_MOST_KEYS: Final = 3  # chosen: keys in a sentence; the table has all of them
_TROUBLES: Final = {
    "lost_share": "of its packets lost",
    "resent_share": "of its packets sent again",
    "paused_share": "of its time a port was paused",
}


def difference_words(found: RunComparison, place: int, first: int) -> str:
    """Name what makes one run slower or faster than another; empty where they take the same time.

    Parameters
    ----------
    found : comparison
    place, first : the run, and the run that it is measured against; both have a time
    """
    run, other = found.runs[place], found.runs[first]
    before, after = other.value_ps or 0.0, run.value_ps or 0.0
    if not before or abs(after / before - 1) < SAME:
        return ""
    keys = [row.key for row in found.differences if row.values[place] != row.values[first] and row.key != "name"]
    said = []
    if len(keys) == 1:
        said.append(f"only {keys[0]} differs, so that it makes the whole difference")
    if part := _part(run, other):
        said.append(part)
    said += _troubles(run, other)
    if not said and keys:
        more = f" and {len(keys) - _MOST_KEYS:,} more" if len(keys) > _MOST_KEYS else ""
        names = f"{', '.join(keys[:_MOST_KEYS])}{more}"
        said.append(f"{names} differ together, and no record tells their shares of the difference apart")
    return "; ".join(said)


def _part(run: ComparedRun, other: ComparedRun) -> str:
    """The part of an iteration that changed most in the direction of the difference."""
    difference_ps = (run.value_ps or 0.0) - (other.value_ps or 0.0)
    changes = {name: ps - other.time_parts.get(name, 0.0) for name, ps in run.time_parts.items()}
    sign = 1 if difference_ps > 0 else -1
    name = max(changes, key=lambda part: sign * changes[part], default=None)
    if name is None or not other.time_parts or sign * changes[name] < _LARGE * abs(difference_ps):
        return ""
    share = changes[name] / difference_ps
    more = "more" if sign > 0 else "less"
    return (
        f"most of it is {name}: {amount(abs(changes[name]), 'ps')} {more}, {amount(share, 'share')} of the difference"
    )


def _troubles(run: ComparedRun, other: ComparedRun) -> list[str]:
    said = []
    for name, words in _TROUBLES.items():
        if name not in run.troubles or name not in other.troubles:
            continue
        best, worst = sorted((other, run), key=lambda each: each.troubles[name])
        if worst.troubles[name] - best.troubles[name] > TROUBLED_SHARE:
            most, least = (amount(each.troubles[name], "share") for each in (worst, best))
            said.append(f"{worst.short} has {most} {words}, {best.short} {least}")
    return said
