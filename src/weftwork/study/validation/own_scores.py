"""Scores and scenarios of a user's own rows, as for the packaged sets.

Leaves out: how rows are read (`weftwork.study.validation.own_rows`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from weftwork.study.pool.side_by_side import worker_processes
from weftwork.study.validation.own_rows import OwnRow, OwnRows
from weftwork.study.validation.scorecard import Score
from weftwork.study.validation.signs import SignRow
from weftwork.study.validation.ultra_ethernet import UetRow
from weftwork.study.validation.validate import Progress, ValidationSet, scored, write_sets

__all__ = ["OwnSource", "own_scores", "write_own_scenarios"]


@dataclass(frozen=True, kw_only=True, slots=True)
class OwnSource:
    """Facts about a user's rows besides the rows.

    Attributes
    ----------
    calibration : file of constants that predicts them; empty: those of Weftwork
    calibrated_on : what that file was fitted on, in words
    has_same_rows : whether it was fitted on these very rows
    """

    calibration: str = ""
    calibrated_on: str = "none of these rows, unless they are copies of packaged ones"
    has_same_rows: bool = False


def own_scores(
    sets: Sequence[OwnRows],
    *,
    tolerance: float | None = None,
    known: OwnSource | None = None,
    processes: int = 2,
    progress: Progress | None = None,
) -> tuple[Score, ...]:
    """Predict and score a user's rows, each file or family as a set.

    Parameters
    ----------
    sets : of `weftwork.study.validation.own_rows`
    tolerance : MAPE that is wanted; None: it is not judged
    known : by which calibration they are predicted; None: by none
    processes, progress : as for `validate`

    Raises
    ------
    ConfigError : a row cannot run
    """
    source = known or OwnSource()
    scores: list[Score] = []
    with worker_processes(processes) as workers:
        for own in sets:
            chosen = ValidationSet(
                key=own.file.name if len(sets) == 1 else f"{own.file.name} ({own.format.name})",
                title=f"{len(own.rows)} of your own rows, in the columns of {own.format.name}",
                rows=_with_calibration(own, source.calibration),
                role="calibration" if source.has_same_rows else "blind",
                calibrated_on=source.calibrated_on,
                source=str(own.file),
                tolerance=tolerance,
                excluded=own.excluded,
            )
            found = scored(chosen, is_full=True, workers=workers, progress=progress)
            scores += [replace(score, notes=(*own.notes, *score.notes)) for score in found]
    return tuple(scores)


def _with_calibration(own: OwnRows, calibration: str) -> tuple[OwnRow, ...]:
    if not calibration:
        return own.rows
    return tuple(
        row if isinstance(row, UetRow | SignRow) else replace(row, calibration=calibration) for row in own.rows
    )


def write_own_scenarios(folder: Path, sets: Sequence[OwnRows], *, calibration: str = "") -> int:
    """Write the scenarios of a user's rows.

    Parameters
    ----------
    folder : which must not exist
    sets : as for `own_scores`
    calibration : file that they name; empty: none

    Returns
    -------
    how many were written; rows of packets have no scenario

    Raises
    ------
    ConfigError : the folder is there already
    """
    rows = {own.format.name: _with_calibration(own, calibration) for own in sets}
    return write_sets(
        folder, {key: [row for row in found if not isinstance(row, UetRow)] for key, found in rows.items()}
    )
