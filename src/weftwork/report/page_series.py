"""The part of a page about the series of `engine.record`.

It has one chart for each recorded quantity.

Reads the tables `series` and `flows`. Several runs share the axes of a chart. Leaves out: samples of a flow after its
last acknowledgement, and windows that limit nothing, which no axis can show.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from weftwork.base.grammar import plural
from weftwork.policies.interface import NO_WINDOW_BYTES
from weftwork.report.figures.axes import DASHES, figure
from weftwork.report.figures.traces import Band, Trace, traces
from weftwork.report.page_elements import PageSection
from weftwork.report.page_over_time import moments, without_words
from weftwork.report.words import amount, sentence, unit_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

    from weftwork.report.figures.lines import Moment
    from weftwork.store.runs import Run

__all__ = ["RecordedSeries", "read_series", "series_section", "window_and_rate"]

AT, KIND, SUBJECT, VALUE = "at_ps", "kind", "place", "value"  # columns of the table
_QUEUE: Final = "queue_bytes"
_WINDOW: Final = "window_bytes"
_TITLES: Final = {"rate_bps": "Rate", _WINDOW: "Window", _QUEUE: "Queue"}
_MOST_LINES: Final = len(DASHES)  # of a chart; more are shown by their mean and range, or by the longest
_MOST_NAMES: Final = 8  # chosen: of ports that a note names
_HEIGHT_PX: Final = 170
_FLAT_PX: Final = 64  # of a chart in which nothing changes
_MOST_FAINT: Final = 64  # chosen: thin lines that one can still tell from a surface


@dataclass(frozen=True, kw_only=True)
class RecordedSeries:
    """Samples of one quantity of one flow or port in one run.

    Attributes
    ----------
    run : number of the run, from 0
    name : of the flow or the port
    queue_pair : number of the flow; None for a port
    at_ps, values : shape (samples,), by time
    """

    run: int
    name: str
    queue_pair: int | None
    at_ps: NDArray[np.int64]
    values: NDArray[np.float64]

    @property
    def peak(self) -> float:
        """The largest sample."""
        return float(np.nanmax(self.values))

    @property
    def bottom(self) -> float:
        """The smallest sample."""
        return float(np.nanmin(self.values))


def series_section(runs: Sequence[tuple[str, Run]]) -> PageSection | None:
    """Draw every recorded series, one chart for each quantity.

    None without a recorded series.

    Parameters
    ----------
    runs : label and run, one or several, which share the axes; of several seeds the first one is drawn

    Raises
    ------
    ConfigError : a table is damaged
    """
    drawn = [(label, run.seeds[0] if run.seeds else run) for label, run in runs]
    labels = [label for label, _ in drawn]
    by_kind: dict[str, list[RecordedSeries]] = {}
    for number, (_, run) in enumerate(drawn):
        for kind, found in read_series(run, number).items():
            by_kind.setdefault(kind, []).extend(found)
    every = [one for found in by_kind.values() for one in found]
    if not every:
        return None
    end_ps = max(1, *(int(one.at_ps[-1]) for one in every))
    faults = moments(drawn[0][1], end_ps) if len(drawn) == 1 else []
    charts = []
    for kind in _ordered(by_kind):
        chart = _chart(kind, by_kind[kind], labels, end_ps, faults)
        charts.append(chart)
        if "<svg" in chart:  # the words of faults stand in the first chart
            faults = without_words(faults)
    return PageSection(
        id="series",
        short="Series",
        title="Recorded series over time",
        lead=_lead(by_kind, drawn, is_seeds=any(run.seeds for _, run in runs)),
        content="".join(charts),
    )


def window_and_rate(found: dict[str, list[RecordedSeries]], queue_pair: int) -> str:
    """Draw rate and window of one flow.

    Empty if they were not recorded, or if no window limits the flow.

    Parameters
    ----------
    found : of `read_series`
    queue_pair : number of the flow
    """
    charts = []
    for kind in ("rate_bps", _WINDOW):
        own = [one for one in found.get(kind, []) if one.queue_pair == queue_pair and np.isfinite(one.values).any()]
        if own:
            lines = [Trace(name=_TITLES[kind].lower(), at_ps=one.at_ps, values=one.values, look=(0, 0)) for one in own]
            end_ps = max(1, *(int(one.at_ps[-1]) for one in own))
            title = f"{_TITLES[kind]} of {own[0].name}"
            charts.append(figure(title, traces(title, lines, end_ps=end_ps, unit=unit_of(kind), height_px=90)))
    return f'<div class="figures">{"".join(charts)}</div>' if charts else ""


def read_series(run: Run, number: int = 0) -> dict[str, list[RecordedSeries]]:
    """Read the series of a run of one seed, by quantity.

    Parameters
    ----------
    run : of one seed
    number : of the run among those of a page
    """
    table = run.series
    if table.num_rows == 0:
        return {}
    at, values = table[AT].to_numpy(), table[VALUE].to_numpy().astype(np.float64)
    kinds, kind_names = _coded(table[KIND])
    subjects, subject_names = _coded(table[SUBJECT])
    order = np.lexsort((at, subjects, kinds))
    keys = kinds[order] * len(subject_names) + subjects[order]
    begins = np.flatnonzero(np.diff(keys, prepend=-1))
    flows = _flows(run)
    found: dict[str, list[tuple[tuple[int, str], RecordedSeries]]] = {}
    for first, last in zip(begins.tolist(), [*begins[1:].tolist(), len(order)], strict=True):
        rows = order[first:last]
        kind, subject = kind_names[kinds[rows[0]]], subject_names[subjects[rows[0]]]
        is_flow = kind != _QUEUE and subject in flows
        name, end_ps = flows[subject] if is_flow else (subject, None)
        kept = rows if end_ps is None else rows[at[rows] <= end_ps]
        rows = kept if len(kept) else rows[:1]
        samples = values[rows]
        if kind == _WINDOW:
            samples = np.where(samples >= NO_WINDOW_BYTES, np.nan, samples)
        pair = int(subject) if is_flow else None
        one = RecordedSeries(run=number, name=name, queue_pair=pair, at_ps=at[rows].astype(np.int64), values=samples)
        found.setdefault(kind, []).append(((-1 if pair is None else pair, subject), one))
    return {kind: [one for _, one in sorted(parts, key=lambda part: part[0])] for kind, parts in found.items()}


def _coded(column: object) -> tuple[NDArray[np.int64], list[str]]:
    """A column of words as numbers, and the words."""
    coded = column.combine_chunks().dictionary_encode()  # type: ignore[attr-defined]
    return coded.indices.to_numpy().astype(np.int64), coded.dictionary.to_pylist()


def _flows(run: Run) -> dict[str, tuple[str, int | None]]:
    """Name of each queue pair, and the instant of its last acknowledgement.

    The instant is None if a message was not acknowledged.
    """
    table = run.query(
        "select queue_pair, min(source) as source, min(destination) as destination, max(acked_ps) as acked, "
        "count(*) = count(acked_ps) as is_done from flows group by queue_pair"
    )
    return {
        str(row["queue_pair"]): (
            f"flow {row['queue_pair']}, {row['source']} \u2192 {row['destination']}",
            row["acked"] if row["is_done"] else None,
        )
        for row in table.to_pylist()
    }


def _ordered(kinds: Iterable[str]) -> list[str]:
    """Rate and window, then the fields of policies' states, then queues."""
    first, last = ["rate_bps", _WINDOW], [_QUEUE]
    known = set(kinds)
    own = sorted(known - {*first, *last})
    return [kind for kind in (*first, *own, *last) if kind in known]


def _chart(kind: str, found: list[RecordedSeries], labels: list[str], end_ps: int, faults: Sequence[Moment]) -> str:
    title, unit = _TITLES.get(kind, kind), unit_of(kind)
    aside = "" if kind in _TITLES else "a field of a policy's state"
    limited = [one for one in found if np.isfinite(one.values).any()]
    notes = []
    if len(limited) < len(found):
        notes.append(f"No window limits the {_of(found, limited, labels)}.")
    if not limited:
        return figure(title, "", aside=aside, note=" ".join(notes))
    lacking = [label for number, label in enumerate(labels) if all(one.run != number for one in found)]
    if lacking:
        notes.append(f"Not recorded in {' and '.join(lacking)}.")
    bands: list[Band] = []
    if kind == _QUEUE:
        lines = _longest(limited, labels, notes)
    elif len(limited) <= _MOST_LINES:
        lines = _each(limited, labels)
    else:
        lines, bands = _mean_and_range(limited, labels, notes)
    lowest, highest = min(one.bottom for one in limited), max(one.peak for one in limited)
    height_px = _HEIGHT_PX
    if lowest == highest:
        height_px = _FLAT_PX
        notes.append(f"Every sample is {amount(lowest, unit)}.")
    drawing = traces(title, lines, end_ps=end_ps, unit=unit, bands=bands, height_px=height_px, moments=faults)
    return figure(title, drawing, aside=aside, note=" ".join(notes))


def _of(found: list[RecordedSeries], limited: list[RecordedSeries], labels: list[str]) -> str:
    """The flows without a window."""
    own = [one for one in found if not any(one is other for other in limited)]
    names = list(dict.fromkeys(labels[one.run] for one in own))
    told = plural(len(own), "recorded flow")
    return told if len(labels) == 1 else f"{told} of {' and '.join(names)}"


def _each(found: list[RecordedSeries], labels: list[str]) -> list[Trace]:
    """A line for each series.

    One run has its own colours and dashes; several runs have a colour each.
    """
    place = {name: number for number, name in enumerate(dict.fromkeys(one.name for one in found))}
    is_one = len({one.run for one in found}) == 1
    return [
        Trace(
            name=_named(one.name, one.run, labels),
            at_ps=one.at_ps,
            values=one.values,
            look=(place[one.name] if is_one else one.run, place[one.name] % len(DASHES)),
        )
        for one in found
    ]


def _named(name: str, run: int, labels: list[str]) -> str:
    return name if len(labels) == 1 else f"{labels[run]}: {name}"


def _longest(found: list[RecordedSeries], labels: list[str], notes: list[str]) -> list[Trace]:
    """The ports with the longest queues, and the longest of the others.

    All runs have the same ports.
    """
    peaks: dict[str, float] = {}
    for one in found:
        peaks[one.name] = max(peaks.get(one.name, 0.0), one.peak)
    by_peak = sorted((name for name in peaks if peaks[name]), key=lambda name: -peaks[name])
    by_peak = by_peak or list(peaks)[:1]
    empty = [name for name in peaks if name not in by_peak]
    if empty:
        names = f": {', '.join(empty)}" if len(empty) <= _MOST_NAMES else ""
        subject = "The queue" if len(empty) == 1 else "The queues"
        verb = "was" if len(empty) == 1 else "were"
        notes.append(f"{subject} of {plural(len(empty), 'recorded port')} {verb} always empty{names}.")
    most = _MOST_LINES // len(labels)
    shown = by_peak if len(by_peak) <= most else by_peak[: max(1, most - 1)]
    place = {name: number for number, name in enumerate(shown)}
    lines = _each(sorted((one for one in found if one.name in place), key=lambda one: place[one.name]), labels)
    rest = [one for one in found if one.name in set(by_peak[len(shown) :])]
    if not rest:
        return lines
    notes.append(
        f"The {len(shown)} ports with the longest queues have a line each. The last line is the longest queue of the "
        f"{plural(len(by_peak) - len(shown), 'other port')} at each time: at most "
        f"{amount(max(one.peak for one in rest), 'B')}."
    )
    for number in range(len(labels)):
        own = [one for one in rest if one.run == number]
        if own:
            at, _, _, high = _together(own)
            name = _named(f"longest of {plural(len(own), 'other')}", number, labels)
            look = (number if len(labels) > 1 else len(shown), len(shown) % len(DASHES))
            lines.append(Trace(name=name, at_ps=at, values=high, look=look))
    return lines


def _mean_and_range(found: list[RecordedSeries], labels: list[str], notes: list[str]) -> tuple[list[Trace], list[Band]]:
    """Mean and range of each run's flows.

    The flows of a single run are thin lines.
    """
    lines: list[Trace] = []
    bands = []
    if len(labels) == 1 and len(found) <= _MOST_FAINT:
        notes.append("Each thin line is a flow; the thick line is their mean, and the band is their range.")
        lines += [Trace(name=one.name, at_ps=one.at_ps, values=one.values, look=(0, 0), is_faint=True) for one in found]
    else:
        notes.append("A line is the mean of the flows, and the band is their range.")
    notes.append("At each time, only the flows count that still send.")
    for number in range(len(labels)):
        own = [one for one in found if one.run == number]
        if not own:
            continue
        at, low, mean, high = _together(own)
        look = (number, number % len(DASHES))
        lines.append(
            Trace(name=_named(f"mean of {plural(len(own), 'flow')}", number, labels), at_ps=at, values=mean, look=look)
        )
        bands.append(Band(at_ps=at, low=low, high=high, colour=number))
    return lines, bands


def _together(
    found: list[RecordedSeries],
) -> tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Instants with the smallest, mean and largest sample at each."""
    at = np.concatenate([one.at_ps for one in found])
    values = np.concatenate([one.values for one in found])
    known = np.isfinite(values)
    at, values = at[known], values[known]
    order = np.argsort(at, kind="stable")
    at, values = at[order], values[order]
    begins = np.flatnonzero(np.diff(at, prepend=-1))
    count = np.diff(np.append(begins, len(at)))
    mean = np.add.reduceat(values, begins) / count
    return at[begins], np.minimum.reduceat(values, begins), mean, np.maximum.reduceat(values, begins)


def _lead(by_kind: dict[str, list[RecordedSeries]], runs: Sequence[tuple[str, Run]], *, is_seeds: bool) -> str:
    parts = []
    for number, (label, _) in enumerate(runs):
        flows = {one.name for kind, found in by_kind.items() if kind != _QUEUE for one in found if one.run == number}
        ports = {one.name for one in by_kind.get(_QUEUE, []) if one.run == number}
        told = [
            *([plural(len(flows), "flow")] if flows else []),
            *([f"the {'queue' if len(ports) == 1 else 'queues'} of {plural(len(ports), 'port')}"] if ports else []),
        ]
        what = " and ".join(told) or "nothing"
        parts.append(what if len(runs) == 1 else f"{label}: {what}")
    lead = (
        f"What engine.record asked for. {'; '.join(parts)}."
        if len(runs) > 1
        else f"{sentence(parts[0])}, as engine.record asked."
    )
    if any(kind != _QUEUE for kind in by_kind):
        lead += " The line of a flow ends when its last byte is acknowledged."
    if is_seeds:
        lead += " Of several seeds, the first one is drawn."
    return lead
