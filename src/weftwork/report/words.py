"""Numbers in words: three digits and a unit that fits."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

from weftwork.base.caveat import assumed_texts
from weftwork.base.clock import NEVER_PS, SECOND_PS
from weftwork.spec.numbers import declared

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from weftwork.base.caveat import Caveat
    from weftwork.store.runs import Run

__all__ = [
    "CLOCK_ENDED",
    "FIGURE_KINDS",
    "amount",
    "amounts_apart",
    "assumed_lines",
    "assumptions",
    "breaking",
    "caveat_lines",
    "change",
    "doubtful_figures",
    "has_clock_ended",
    "has_word",
    "ignored_lines",
    "interval_sentence",
    "interval_words",
    "label",
    "measured_words",
    "sentence",
    "typeset",
    "unbroken",
    "unit_of",
]

# of a run that has come to the end of simulated time
CLOCK_ENDED: Final = (
    f"simulated time ends after {NEVER_PS // SECOND_PS:,} s, and there was work left. Check sizes, rates, latencies and"
    " efficiencies: one of them makes the run too long."
)

FIGURE_KINDS: Final = ("unverified", "chosen")  # kinds of caveats that are told of figures
_FIGURES: Final = dict(zip(FIGURE_KINDS, ("Figures that nobody has verified", "Figures that were chosen"), strict=True))
_STEPS: Final[dict[str, tuple[tuple[float, str], ...]]] = {
    "ps": ((1e12, "s"), (1e9, "ms"), (1e6, "us"), (1e3, "ns"), (1, "ps")),
    "s": ((86_400, "days"), (3600, "h"), (60, "min"), (1, "s"), (1e-3, "ms"), (1e-6, "us")),
    "b/s": ((1e12, "Tb/s"), (1e9, "Gb/s"), (1e6, "Mb/s"), (1e3, "kb/s"), (1, "b/s")),
    "B/s": ((1e12, "TB/s"), (1e9, "GB/s"), (1e6, "MB/s"), (1e3, "kB/s"), (1, "B/s")),
    "B": ((1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB"), (1, "B")),
}


_ALIKE: Final = 1e-4  # chosen: numbers that are nearer to each other print alike
_MOST_MORE: Final = 3  # digits behind the three
_UNIT: Final = r"(?:%|(?:s|ms|us|ns|ps|[TGMk]?b/s|[TGMk]?B/s|[TGMk]?B)\b)"
# what people copy: 'quoted words', key=value, --option value, /path
_AS_TYPED: Final = r"(?<!\w)'[^'\n]*'|[\w.\[\]-]+=\S*|(?<!\S)--?[A-Za-z][\w-]*(?= )(?: [^\s'-]\S*)?|~?(?<!\w)/\S+"
_COMPACT: Final = r"(?<![\w./-])([\d.,]+)([TGMKk](?:iB|B|bps))\b(?![./_-]\w)"  # a word alone, no part of a file name
_UNITS: Final = re.compile(rf"({_AS_TYPED})|(?<=\d) ({_UNIT})|{_COMPACT}")
_SPACED: Final = re.compile(rf"(?<=\d) (?={_UNIT})")
_UNIT_OF_ENDING: Final = {"_ps": "ps", "_bps": "b/s", "_bytes": "B"}
_UNITS_IN_NAMES: Final = tuple(_UNIT_OF_ENDING)
_IN_CAPITALS: Final = {"fct": "FCT", "acks": "ACKs", "naks": "NAKs", "cnps": "CNPs", "jain": "Jain"}


def amount(value: float | None, unit: str, *, more: int = 0) -> str:
    """Write a number of a summary.

    A dash if there is none.

    Parameters
    ----------
    value : the number
    unit : ``ps``, ``s``, ``b/s``, ``B``, ``count``, ``share`` or ``ratio``
    more : digits behind the three, for numbers that would print alike

    Examples
    --------
    >>> amount(12_340_000, "ps"), amount(392.1e9, "b/s"), amount(0.9812, "share"), amount(12345, "count")
    ('12.3 us', '392 Gb/s', '98.1 %', '12,345')
    """
    if value is None:
        return "-"
    if unit == "share":
        return f"{_three(100 * value, more)} %"
    if unit in {"count", "number"}:
        return f"{value:,.0f}" if float(value).is_integer() else _three(value, more)
    if unit not in _STEPS:
        return _three(value, more)
    for factor, name in _STEPS[unit]:
        if abs(value) >= factor * 0.9995 or factor == _STEPS[unit][-1][0]:
            return f"{_three(value / factor, more)} {name}"
    return f"{_three(value, more)} {unit}"


def amounts_apart(values: Sequence[float | None], unit: str) -> list[str]:
    """Write numbers that stand beside each other, with the digits that their differences need.

    Numbers that differ by less than a tenth of a per mille print alike: no run is worth more digits.

    Examples
    --------
    >>> amounts_apart([17.98e12, 18.02e12], "ps"), amounts_apart([18e12, 18e12, 44.8e12], "ps")
    (['17.98 s', '18.02 s'], ['18 s', '18 s', '44.8 s'])
    """
    numbers = sorted({value for value in values if value is not None})
    pairs = [(one, other) for one, other in pairwise(numbers) if other - one > _ALIKE * abs(other)]
    more = next(
        (digits for digits in range(_MOST_MORE)
         if all(amount(one, unit, more=digits) != amount(other, unit, more=digits) for one, other in pairs)),
        _MOST_MORE,
    )  # fmt: skip
    return [amount(value, unit, more=more) for value in values]


def interval_words(low: float | None, high: float | None, unit: str, *, beside: float) -> str:
    """The ends of an interval, with the digits that tell them from the number beside them.

    Empty if they print like it.

    Parameters
    ----------
    low, high : ends
    unit : as `amount` takes it
    beside : the number that stands before the interval

    Examples
    --------
    >>> interval_words(1.371e9, 1.374e9, "ps", beside=1.372e9), interval_words(1.37e9, 1.37e9, "ps", beside=1.37e9)
    ('1.371 ms to 1.374 ms', '')
    """
    first, number, last = amounts_apart([low, beside, high], unit)
    return "" if first == number == last else f"{first} to {last}"


def measured_words(seconds: float, low: float | None, high: float | None, basis: str) -> str:
    """The interval of a time with its basis; the basis alone where nothing like the time was measured.

    Parameters
    ----------
    seconds : that were predicted
    low, high : of the interval
    basis : as of `weftwork.spec.answer.Interval`

    Examples
    --------
    >>> measured_words(2.0, 1.9, 2.2, "quartiles of 9 times"), measured_words(2.0, None, None, "not measured")
    ('1.9 s to 2.2 s: quartiles of 9 times', 'not measured')
    """
    if low is None or high is None:
        return basis
    between = interval_words(low * SECOND_PS, high * SECOND_PS, "ps", beside=seconds * SECOND_PS)
    return f"{between or 'the same'}: {basis}"


def interval_sentence(time_ps: float | None, interval: Mapping[str, Any] | None) -> list[str]:
    """The interval of a time in a document, as a sentence; none where there is no time or no interval.

    Parameters
    ----------
    time_ps : that was predicted
    interval : as of `weftwork.spec.answer.Interval`
    """
    if time_ps is None or interval is None:
        return []
    low, high, basis = (interval[key] for key in ("low", "high", "basis"))
    return [f"Measured times: {measured_words(time_ps / SECOND_PS, low, high, basis)}."]


def unit_of(name: str) -> str:
    """The unit at the end of a name, for `amount`.

    ``ratio`` for a name without a unit.

    Examples
    --------
    >>> unit_of("target_bps"), unit_of("ring_bytes[3]"), unit_of("alpha")
    ('b/s', 'B', 'ratio')
    """
    plain = name.partition("[")[0]
    return next((unit for ending, unit in _UNIT_OF_ENDING.items() if plain.endswith(ending)), "ratio")


def change(share: float) -> str:
    """Write a change with its sign, in the digits of a share.

    Examples
    --------
    >>> change(-0.00178), change(0.52), change(24.0)
    ('-0.178 %', '+52 %', '+2,400 %')
    """
    return f"{'-' if share < 0 else '+'}{amount(abs(share), 'share')}"


def has_word(text: str, word: str) -> bool:
    """Whether a text has a name or number as a whole word.

    Examples
    --------
    >>> has_word("host3-leaf0 is down", "host3-leaf0"), has_word("host3-leaf0 is down", "host3")
    (True, False)
    >>> has_word("took 12.3 us: 4 MB", "2.3 us"), has_word("took 12.3 us: 4 MB", "12.3 us")
    (False, True)
    """
    return re.search(rf"(?<![\w./,-]){re.escape(word)}(?![\w/-]|[.,]\w)", text) is not None


def has_clock_ended(run: Run) -> bool:
    """Whether a run reached the end of simulated time with work left."""
    return run.ending.is_at_limit and (run.value("simulated_ps") or 0) >= NEVER_PS


def _three(value: float, more: int) -> str:
    """Three digits and more, all digits before the point."""
    if value == 0:
        return "0"
    magnitude = abs(value)
    decimals = 0 if magnitude >= 99.95 else 1 if magnitude >= 9.995 else 2 if magnitude >= 0.9995 else 3
    if decimals == 3 and magnitude < 0.01:
        return f"{value:.{3 + more}g}"
    text = f"{value:,.{decimals + more}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def label(name: str) -> str:
    """The name of a number for people, without its unit.

    Examples
    --------
    >>> label("fct_p99_ps"), label("goodput_bps"), label("max_queue_bytes"), label("cnps_sent")
    ('FCT p99', 'goodput', 'max queue', 'CNPs sent')
    """
    number = declared(name)
    if number is not None and number.short:
        return number.short
    for unit in _UNITS_IN_NAMES:
        name = name.removesuffix(unit)
    return " ".join(_IN_CAPITALS.get(word, word) for word in name.split("_"))


def sentence(text: str) -> str:
    """Capitalise the first letter."""
    return text[:1].upper() + text[1:]


def typeset(text: str) -> str:
    """Typeset units: a thin unbreakable space, and the sign for micro.

    Quoted words, ``key=value``, options and paths stay as they are, so that a copied command works.

    Examples
    --------
    >>> typeset("took 12.3 us, 98 % of it") == "took 12.3\u202f\u00b5s, 98\u202f% of it"
    True
    >>> typeset("weftwork run 4MB.yaml --size 4MB --set 'link_latency=5 us' --set link_rate=400Gbps").isascii()
    True
    """
    return _UNITS.sub(_typeset, text)


def _typeset(found: re.Match[str]) -> str:
    as_typed, spaced, number, compact = found.groups()
    if as_typed:
        return as_typed
    return "\u202f" + spaced.replace("us", "\u00b5s") if spaced else f"{number}\u202f{compact}"


def unbroken(text: str) -> str:
    """Tie each number to its unit with an unbreakable space.

    `breaking` makes it an ordinary space again.
    """
    return _SPACED.sub("\u00a0", text)


def breaking(text: str) -> str:
    """Undo `unbroken`."""
    return text.replace("\u00a0", " ")


def doubtful_figures(caveats: Iterable[Caveat], *, where: str = "") -> list[str]:
    """Name the unverified and the chosen figures of a run.

    Each kind gets one sentence.

    Parameters
    ----------
    caveats : of the run
    where : their sources stand; empty: a reader cannot look there
    """
    subjects: dict[str, list[str]] = {}
    for caveat in caveats:
        subjects.setdefault(caveat.kind, []).append(caveat.subject)
    return [
        f"{words}: {', '.join(subjects[kind])}.{f' Their sources are {where}.' if where else ''}"
        for kind, words in _FIGURES.items()
        if kind in subjects
    ]


def assumed_lines(caveats: Iterable[Caveat]) -> list[str]:
    """What inputs left open and results depend on, as sentences; each text once."""
    return assumptions(assumed_texts(caveats))


def assumptions(texts: Iterable[str]) -> list[str]:
    """Texts of assumptions as sentences; each text once."""
    return [f"Assumed: {text}." for text in dict.fromkeys(texts)]


def ignored_lines(caveats: Iterable[Caveat]) -> list[str]:
    """Keys of the user that have no effect in a run, as sentences; keys with one reason together."""
    lines = caveat_lines(one for one in caveats if one.kind == "ignored")
    return [f"No effect: {line.replace(': changes nothing: ', ': ', 1)}." for line in lines]


def caveat_lines(caveats: Iterable[Caveat]) -> list[str]:
    """Each distinct text once, after all its subjects."""
    subjects: dict[str, list[str]] = {}
    for caveat in caveats:
        subjects.setdefault(caveat.text, []).append(caveat.subject)
    return [f"{', '.join(names)}: {text}" for text, names in subjects.items()]
