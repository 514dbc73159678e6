"""Parameters of a tuning.

``--parameter`` texts become keys with ranges, and a place in a range becomes a value.

A text is a key, a key with ``*`` for one of its names (``transport.congestion_control.*``), ``KEY=LOW..HIGH`` or
``KEY=A,B,C``. Without a range a number is searched from an eighth to eight times its value, within the bounds of its
row. The sampler sees places from 0 to 1, so that scales, rounding and order are settled here alone.
Leaves out: which place is tried next (`weftwork.study.tune.sampler`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Final, Literal

from weftwork.base.errors import ConfigError, Mistake
from weftwork.base.nearest import nearest
from weftwork.study.sweep.definition import split_values
from weftwork.study.tune.keys import NOT_SET

if TYPE_CHECKING:
    from weftwork.study.tune.keys import TunableKey

__all__ = ["TuneSpace", "TunedKey", "space_of"]

FACTOR: Final = 8.0  # chosen: three doublings each way cover what vendors and papers set for one parameter
LOG_FROM: Final = 10.0  # chosen: a range over a decade or more is searched by its logarithm
DIGITS: Final = 3  # chosen: finer steps are below the noise of seeds, and a person has to type the value
NEAR_END: Final = 0.02  # chosen: of the range; a best value that close to its end may want a wider range
# The first may not be above the second (weftwork.spec.scenario.devices.device_mistakes).
ORDERED: Final = {
    "fabric.switch.ecn.kmax": "fabric.switch.ecn.kmin",
    "fabric.nic.xoff": "fabric.nic.xon",
}


@dataclass(frozen=True, kw_only=True, slots=True)
class TunedKey:
    """A key with its range.

    Attributes
    ----------
    known : the key
    low, high : ends of the range, for a number
    is_log : whether places follow the logarithm
    choices : texts to choose from; empty for a number
    floor : another tuned key whose value this one's may not be below; empty for none
    """

    known: TunableKey
    low: float = 0.0
    high: float = 0.0
    is_log: bool = False
    choices: tuple[str, ...] = ()
    floor: str = ""

    @property
    def key(self) -> str:
        """Its path."""
        return self.known.key

    def value(self, place: float, floor: float | None = None) -> float:
        """Return the number at a place of the range, from 0 to 1.

        It is above ``floor`` if there is one.
        """
        low = self.low if floor is None else min(max(self.low, floor), self.high)
        if self.is_log:
            found = math.exp(math.log(low) + place * (math.log(self.high) - math.log(low)))
        else:
            found = low + place * (self.high - low)
        found = _rounded(found, is_whole=self.known.is_whole)
        return min(max(found, low), self.high)

    def place(self, value: float, floor: float | None = None) -> float:
        """Return the place of a number, from 0 to 1.

        A number outside has the place of the nearest end.
        """
        low = self.low if floor is None else min(max(self.low, floor), self.high)
        if low >= self.high:
            return 0.0
        inside = min(max(value, low), self.high)
        if self.is_log:
            return (math.log(inside) - math.log(low)) / (math.log(self.high) - math.log(low))
        return (inside - low) / (self.high - low)

    def end(self, text: str) -> Literal["", "low", "high"]:
        """Return the end of the range at which a value lies.

        A wider range may help there.
        """
        if self.choices:
            return ""
        place = self.place(self.known.read(text))
        if place <= NEAR_END and (self.known.low is None or self.low > self.known.low):
            return "low"
        if place >= 1 - NEAR_END and (self.known.high is None or self.high < self.known.high):
            return "high"
        return ""


@dataclass(frozen=True, kw_only=True, slots=True)
class TuneSpace:
    """All parameters of a tuning.

    Attributes
    ----------
    keys : in the order in which they were given, one before those that it is the floor of
    unread : keys that a pattern named and that have no range, with the reason
    """

    keys: tuple[TunedKey, ...]
    unread: Mapping[str, str]

    def settings(self, places: Mapping[str, float]) -> dict[str, str]:
        """Return the texts of ``--set`` at places.

        A place is a share of the range, or the number of a choice.

        Parameters
        ----------
        places : by key
        """
        found: dict[str, str] = {}
        numbers: dict[str, float] = {}
        for one in self.keys:
            place = places[one.key]
            if one.choices:
                found[one.key] = one.choices[int(place)]
                continue
            numbers[one.key] = one.value(place, numbers.get(one.floor))
            found[one.key] = one.known.write(numbers[one.key])
        return found

    def places_before(self) -> dict[str, float] | None:
        """Return the places of the scenario's present values.

        None if one of them has no place.
        """
        found: dict[str, float] = {}
        for one in self.keys:
            known = one.known
            if one.choices:
                if known.before not in one.choices:
                    return None
                found[one.key] = one.choices.index(known.before)
            elif known.now is None:
                return None
            else:
                floor = next((other.known.now for other in self.keys if other.key == one.floor), None)
                found[one.key] = one.place(known.now, floor)
        return found


def space_of(known: Mapping[str, TunableKey], texts: Sequence[str]) -> TuneSpace:
    """Find the parameters of ``--parameter`` texts, with all mistakes.

    Parameters
    ----------
    known : keys of the scenario that can be tuned
    texts : of the option, in their order

    Raises
    ------
    ConfigError : a key that is not there, a pattern that matches nothing, a range that is wrong; all at once
    """
    mistakes: list[Mistake] = []
    found: dict[str, TunedKey] = {}
    given: set[str] = set()
    unread: dict[str, str] = {}
    for text in texts:
        name, is_given, values = (part.strip() for part in text.partition("="))
        keys = _matching(name, known)
        if not keys:
            mistakes.append(_unknown(name, known))
            continue
        for key in keys:
            try:
                made = _given(known[key], values) if is_given else _derived(known[key])
            except ValueError as wrong:
                if "*" in name and not is_given:
                    unread.setdefault(key, str(wrong))
                else:
                    mistakes.append(Mistake(path=f"--parameter {key}", text=str(wrong)))
                continue
            if is_given and key in given:
                mistakes.append(Mistake(path=f"--parameter {key}", text="found two ranges for this key, wanted one"))
            if is_given or key not in found:  # a range that was given stands above one that a pattern brings
                found[key] = made
            given |= {key} if is_given else set()
    if not texts:
        text = "missing: nothing to tune; give --parameter KEY, such as 'transport.congestion_control.*'"
        mistakes.append(Mistake(path="--parameter", text=text))
    elif not found and not mistakes:
        told = "; ".join(f"{key}: {why}" for key, why in unread.items())
        mistakes.append(Mistake(path="--parameter", text=f"none of the keys has a range: {told}"))
    if mistakes:
        raise ConfigError("command line", mistakes)
    unread = {key: why for key, why in unread.items() if key not in found}
    return TuneSpace(keys=tuple(_in_order(found, given, known)), unread=unread)


def _matching(name: str, known: Mapping[str, TunableKey]) -> list[str]:
    """Keys of a text, in which ``*`` never matches a dot."""
    if name in known:
        return [name]
    if "*" not in name:
        return []
    parts = name.split(".")
    return [
        key
        for key in known
        if len(key.split(".")) == len(parts)
        and all(fnmatchcase(part, pattern) for part, pattern in zip(key.split("."), parts, strict=True))
    ]


def _unknown(name: str, known: Mapping[str, TunableKey]) -> Mistake:
    path = "--parameter"
    if "*" in name:
        section = name.partition("*")[0].rstrip(".")
        sections = dict.fromkeys(key.rpartition(".")[0] for key in known)
        near = nearest(section, sections)
        text = f"found '{name}', which matches no number, flag or word of this scenario"
        return Mistake(path=path, text=text, fix=f"{near}.*" if near is not None else None)
    leaves = {key.rpartition(".")[2]: key for key in known}
    leaf = nearest(name.rpartition(".")[2], leaves)
    fix = nearest(name, known) or (leaves[leaf] if leaf is not None else None)
    text = f"found '{name}', wanted a key of this scenario that is a number, a flag or a word"
    return Mistake(path=path, text=text, fix=fix)


def _given(known: TunableKey, text: str) -> TunedKey:
    """A key with the user's range or values.

    ValueError gives the mistake.
    """
    low_text, dots, high_text = (part.strip() for part in text.partition(".."))
    if not dots:
        choices = tuple(dict.fromkeys(split_values(text)))
        if len(choices) < 2 or "" in choices:
            raise ValueError(f"found '{text}', wanted LOW..HIGH, or two or more values with commas between them")
        if known.options:
            wrong = [one for one in choices if one not in known.options]
            if wrong:
                raise ValueError(f"found '{wrong[0]}', wanted {', '.join(known.options)}")
            return TunedKey(known=known, choices=choices)
        return TunedKey(known=known, choices=tuple(known.write(known.read(one)) for one in choices))
    low, high = known.read(low_text), known.read(high_text)
    if low >= high:
        raise ValueError(f"found '{text}', wanted a low end below the high end")
    return TunedKey(known=known, low=low, high=high, is_log=low > 0 and high / low >= LOG_FROM)


def _derived(known: TunableKey) -> TunedKey:
    """A key with the range from its value and its row.

    ValueError if there is none.
    """
    if known.options:
        return TunedKey(known=known, choices=known.options)
    if known.now is None:
        raise ValueError("is not set, so it has no default range; give --parameter KEY=LOW..HIGH")
    if known.now <= 0:
        raise ValueError(f"is {known.before}, so it has no default range; give --parameter KEY=LOW..HIGH")
    low, high = known.now / FACTOR, known.now * FACTOR
    if known.is_whole and low < 1:
        low = 0.0
    low = _rounded(low, is_whole=known.is_whole)
    high = _rounded(high, is_whole=known.is_whole)
    low = low if known.low is None else max(low, known.low)
    high = high if known.high is None else min(high, known.high)
    if low >= high:
        raise ValueError(f"is {known.before}, its only value")
    return TunedKey(known=known, low=low, high=high, is_log=low > 0 and high / low >= LOG_FROM)


def _in_order(found: Mapping[str, TunedKey], given: set[str], known: Mapping[str, TunableKey]) -> list[TunedKey]:
    """Tuned keys with their floors, each floor first.

    A derived range keeps the order to a value that stays.
    """
    made = dict(found)
    for upper, lower in ORDERED.items():
        high, low = made.get(upper), made.get(lower)
        if high is not None and low is not None and not high.choices and not low.choices:
            made[upper] = replace(high, floor=lower)
            most: float | None = high.high
        else:
            most = known[upper].now if upper in known and known[upper].before != NOT_SET else None
        least = known[lower].now if lower in known and known[lower].before != NOT_SET else None
        if low is not None and not low.choices and lower not in given and most is not None:
            made[lower] = replace(low, high=min(low.high, most))
        if high is not None and not high.choices and low is None and upper not in given and least is not None:
            made[upper] = replace(high, low=max(high.low, least))
    return sorted(made.values(), key=lambda one: bool(one.floor))


def _rounded(value: float, *, is_whole: bool) -> float:
    """Round to a few digits, and to a whole number for whole keys."""
    if value == 0:
        return 0.0
    digits = DIGITS - 1 - math.floor(math.log10(abs(value)))
    found = round(value, digits)
    return float(round(found)) if is_whole else found
