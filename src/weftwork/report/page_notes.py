"""The notes of a page.

One line at the top links to them; the last part has them, folded.

Reads `provenance.json` and the table `events` of a run's folder. Leaves out: how a run ended.
"""

from __future__ import annotations

import re
from html import escape
from typing import TYPE_CHECKING, Final

from weftwork.base.grammar import plural
from weftwork.report.page_elements import PageSection, notice, table
from weftwork.report.words import FIGURE_KINDS, assumed_lines, ignored_lines, typeset

if TYPE_CHECKING:
    from collections.abc import Sequence

    from weftwork.store.runs import Run

__all__ = ["notes_line", "notes_section", "without_folders"]

_SHOWN: Final = {  # kinds of caveats: one, several, and the heading of the folded list
    "approximate": ("approximation", "approximations", "Approximations"),
    "note": ("note", "notes", "Notes"),
    "unverified": ("unverified figure", "unverified figures", "Figures that nobody has verified"),
    "chosen": ("chosen figure", "chosen figures", "Figures that were chosen"),
}
_FOLDERS: Final = re.compile(r"(?<![\w.~/:])(?:[A-Za-z]:)?[\\/](?:[^\s\\/'\"]+[\\/])+(?=[\w.])")


def without_folders(text: str) -> str:
    """Leave out the folders of absolute paths, which belong to one machine.

    Examples
    --------
    >>> without_folders("congestion_control: /home/me/my_cc.py"), without_folders("400 Gb/s and/or more")
    ('congestion_control: my_cc.py', '400 Gb/s and/or more')
    """
    return _FOLDERS.sub("", text)


def notes_line(run: Run) -> str:
    """Incompleteness, assumptions about an input, and basis of a page in one line each.

    Incompleteness and basis link to the notes.
    """
    partial = _left_out(run)
    counts = [
        plural(count, *_SHOWN[kind][:2])
        for kind in (*FIGURE_KINDS, "approximate", "note")
        if (count := _count(run, kind))
    ]
    made = notice([without_folders(text) for text in (*assumed_lines(run.caveats), *ignored_lines(run.caveats))])
    if partial:
        made += f'<div class="notice"><p>Partial: {escape(partial[0])} <a href="#notes">Notes</a></p></div>'
    if counts:
        *others, last = counts
        told = f"{', '.join(others)} and {last}" if others else last
        made += f'<div class="told"><p><a href="#notes">Rests on {escape(told)}</a></p></div>'
    return made


def notes_section(run: Run) -> list[PageSection]:
    """The part with all notes, folded; empty without notes."""
    parts = [_folded("What is partial", [("events", text) for text in _left_out(run)])]
    for kind, (_, _, heading) in _SHOWN.items():
        parts.append(_folded(f"{heading} ({_count(run, kind):,})", _texts(run, kind)))
    content = "".join(parts)
    if not content:
        return []
    lead = "What the numbers of this page rest on, and what they leave out."
    return [PageSection(id="notes", short="Notes", title="Notes", lead=lead, content=content)]


def _texts(run: Run, kind: str) -> list[tuple[str, str]]:
    """Subjects and texts of one kind of caveat, each text once.

    Changes of a migration are notes too.
    """
    subjects: dict[str, list[str]] = {}
    for caveat in run.caveats:
        if caveat.kind == kind:
            subjects.setdefault(caveat.text, []).append(caveat.subject)
    found = [(", ".join(names), text) for text, names in subjects.items()]
    if kind == "note":
        found += [("scenario", str(note)) for note in run.provenance["notes"]]
    return found


def _count(run: Run, kind: str) -> int:
    own = sum(caveat.kind == kind for caveat in run.caveats)
    return own + len(run.provenance["notes"]) if kind == "note" else own


def _left_out(run: Run) -> list[str]:
    """Records that a run of one seed did not keep."""
    if run.seeds:
        return []
    table_ = run.query("select coalesce(sum(count), 0)::bigint as n from events where event = 'left out'")
    count = table_["n"][0].as_py()
    if not count:
        return []
    return [
        f"{plural(count, 'event')} came after the last event that was kept with its time; the totals count all events."
    ]


def _folded(heading: str, found: Sequence[tuple[str, str]]) -> str:
    if not found:
        return ""
    rows = [
        [f"<code>{escape(without_folders(subject))}</code>", escape(typeset(without_folders(text)))]
        for subject, text in found
    ]
    return f"<details><summary>{escape(heading)}</summary>{table(('about', 'note'), rows, texts=(0, 1))}</details>"
