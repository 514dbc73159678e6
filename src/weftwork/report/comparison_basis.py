"""Basis of a comparison: assumptions of each workload, doubtful figures, and a glossary.

A reader may have neither Weftwork nor the runs, so that no text points to another page.
"""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Final

from weftwork.report.page_elements import PageSection, notice, table
from weftwork.report.page_notes import without_folders
from weftwork.report.pipeline import is_training
from weftwork.report.words import assumed_lines, doubtful_figures, typeset

if TYPE_CHECKING:
    from collections.abc import Sequence

    from weftwork.spec.comparison import RunComparison
    from weftwork.store.runs import Run

__all__ = ["basis_section"]

_PARTS: Final = {  # of what a run says of itself, and what a reader calls it
    "workload": "workload",
    "fabric": "fabric",
    "transport": "transport",
    "assumes": "assumptions",
    "calibrated": "calibration",
}
_OF_TRAINING: Final = {
    "MFU": "Model FLOP utilisation: the FLOPs that the model needs, divided by the FLOPs that all GPUs could do in the"
    " same time.",
    "exposed communication": "Time in which a GPU waits for communication and computes nothing.",
    "bubble": "Time in which a stage of the pipeline has no micro batch to work on.",
}
_OF_ALL: Final = {
    "oversubscription": "Rate of a switch's links towards the servers, divided by the rate of its links away from them;"
    " 2:1 means half the rate away from them.",
    "to blame": "The cause that cost the most time; \u201cat most\u201d marks an upper bound of a cost that was not"
    " simulated.",
}


def basis_section(named: Sequence[tuple[str, Run]], found: RunComparison) -> PageSection:
    """Assumptions by workload, doubtful figures and a glossary, all folded.

    Parameters
    ----------
    named : names and runs
    found : their comparison
    """
    parts = [
        _folded(
            f"Assumptions of {group.name}" if len(found.groups) > 1 else "Assumptions",
            _facts([named[place][1] for place in group.runs]),
        )
        for group in found.groups
    ]
    every = {(one.subject, one.kind): one for _, run in named for one in run.caveats}
    parts.append(_folded("Unverified and unmeasured figures", notice(doubtful_figures(every.values()))))
    parts.append(notice(assumed_lines(every.values())))
    words = (_OF_TRAINING if any(is_training(run) for _, run in named) else {}) | _OF_ALL
    parts.append(_folded("Words of this page", _table(words)))
    return PageSection(id="basis", short="Basis", title="What this rests on", content="".join(parts))


def _facts(runs: Sequence[Run]) -> str:
    """Each different text of the runs once."""
    texts = {
        words: list(dict.fromkeys(text for run in runs if (text := run.about.get(key, ""))))
        for key, words in _PARTS.items()
    }
    return _table({words: "\n".join(map(without_folders, found)) for words, found in texts.items() if found})


def _table(texts: dict[str, str]) -> str:
    rows = [
        [escape(name), "<br>".join(escape(typeset(line)) for line in text.splitlines())] for name, text in texts.items()
    ]
    return table(("", ""), rows, texts=(1,))


def _folded(summary: str, content: str) -> str:
    return f"<details><summary>{escape(summary)}</summary>{content}</details>" if content else ""
