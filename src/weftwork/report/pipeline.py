"""Passes and pieces of a training run's stages, as rows.

It also adds up the parts of an iteration.

Reads the tables `jobs` and `segments` of a run's folder. A row is one rank of a stage, which stands for all that did
the same; a pass is what a row did for one micro batch, and pieces are what its time went to. Waiting for a
neighbour is a block of its own.
Leaves out: rows beyond `MOST_ROWS`, evenly; and the order of pieces inside a pass where there are more than
`MOST_PIECES` in all: then the pieces of one kind stand together.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from weftwork.spec.time_kinds import TIME_KINDS

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from weftwork.store.runs import Run

__all__ = [
    "KINDS",
    "PASSES",
    "Pipeline",
    "PipelineRow",
    "is_training",
    "read_pipeline",
    "time_by_kind",
]

MOST_ROWS: Final = 64  # chosen: what a page can show below each other
MOST_PIECES: Final = 150_000  # chosen: they take less than 1 MB of a page
# What a piece of time may have gone to, in the order of figures; computing is named for its pass.
KINDS: Final = tuple(TIME_KINDS)
PASSES: Final = ("", "forward", "backward", "weights", "gradients", "update", "checkpoint", "loading")
_KIND: Final = (
    "case when kind = 'compute' then case when pass in ('forward', 'backward', 'weights') then pass else 'other' end "
    f"when kind in ({', '.join(repr(kind) for kind in KINDS[3:])}) then kind else 'other' end"
)


@dataclass(frozen=True, kw_only=True, slots=True)
class PipelineRow:
    """One rank of a stage.

    Attributes
    ----------
    job, stage, rank, ranks, gpu : as in the table `segments`
    pieces : structured array of ``start_ps``, ``end_ps``, ``kind`` (index into `KINDS`) and ``block``, by time
    blocks : structured array of ``micro_batch``, ``virtual_stage`` and ``pass`` (index into `PASSES`)
    """

    job: str
    stage: int
    rank: int
    ranks: int
    gpu: int
    pieces: NDArray[np.void]
    blocks: NDArray[np.void]


@dataclass(frozen=True, kw_only=True, slots=True)
class Pipeline:
    """The rows of all jobs.

    Attributes
    ----------
    start_ps, end_ps : of what is shown
    rows : by job, stage and rank
    left_out : rows that are not shown
    is_merged : whether pieces of one kind stand together inside a pass
    """

    start_ps: int
    end_ps: int
    rows: tuple[PipelineRow, ...]
    left_out: int
    is_merged: bool


def is_training(run: Run) -> bool:
    """Whether the run has parts of training time, not single messages.

    Runs of packets have single messages.

    Of several seeds the first one tells.
    """
    found = run.seeds[0] if run.seeds else run
    return "flows" not in found.summary and bool(found.jobs.num_rows)


def read_pipeline(
    run: Run, *, most_rows: int | None = MOST_ROWS, most_pieces: int | None = MOST_PIECES
) -> Pipeline | None:
    """Read the segments of a run; None without segments.

    Parameters
    ----------
    run : of training jobs
    most_rows : above which some are left out; None: none
    most_pieces : above which the pieces of a pass are merged by kind; None: never
    """
    actors = run.query(
        "with jobs as (select job, row_number() over () as place from jobs) "
        "select distinct place, job, stage, rank, ranks, gpu from segments join jobs using (job) "
        "order by place, stage, rank"
    ).to_pylist()
    if not actors:
        return None
    each = -(-len(actors) // (most_rows or len(actors)))
    shown = actors[::each]
    wanted = ", ".join(f"({i}, {_quoted(a['job'])}, {a['stage']}, {a['rank']})" for i, a in enumerate(shown))
    passes = " ".join(f"when '{name}' then {place}" for place, name in enumerate(PASSES) if name)
    kinds = " ".join(f"when '{kind}' then {place}" for place, kind in enumerate(KINDS))
    table = run.query(
        f"with wanted(row_number, job, stage, rank) as (values {wanted}) "  # noqa: S608 - names are quoted
        f"select row_number, micro_batch, virtual_stage, case pass {passes} else 0 end as pass, "
        f"case {_KIND} {kinds} end as kind, start_ps, end_ps "
        "from segments join wanted using (job, stage, rank) where end_ps > start_ps order by row_number, start_ps"
    )
    columns = {name: table[name].to_numpy() for name in table.column_names}
    is_merged = most_pieces is not None and table.num_rows > most_pieces
    bounds = np.searchsorted(columns["row_number"], np.arange(len(shown) + 1))
    rows = tuple(
        _row(actor, {name: values[first:last] for name, values in columns.items()}, is_merged=is_merged)
        for actor, first, last in zip(shown, bounds[:-1].tolist(), bounds[1:].tolist(), strict=True)
    )
    return Pipeline(
        start_ps=int(columns["start_ps"].min()),
        end_ps=int(columns["end_ps"].max()),
        rows=rows,
        left_out=len(actors) - len(shown),
        is_merged=is_merged,
    )


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _row(actor: dict[str, Any], columns: dict[str, NDArray[Any]], *, is_merged: bool) -> PipelineRow:
    count = len(columns["start_ps"])
    # What a stage waits for before a pass is no part of it, or a bubble would look like work.
    is_before = np.isin(columns["kind"], [KINDS.index("bubble"), KINDS.index("pipeline")])
    keys = np.stack([*(columns[name] for name in ("micro_batch", "virtual_stage", "pass")), is_before], axis=1)
    is_first = np.ones(count, np.bool_)
    is_first[1:] = (keys[1:] != keys[:-1]).any(axis=1) | (columns["start_ps"][1:] > columns["end_ps"][:-1])
    block = np.cumsum(is_first) - 1
    blocks = np.zeros(int(is_first.sum()), [("micro_batch", "<i8"), ("virtual_stage", "<i8"), ("pass", "<i8")])
    for place, name in enumerate(("micro_batch", "virtual_stage", "pass")):
        blocks[name] = keys[is_first, place]
    pieces = np.zeros(count, [("start_ps", "<i8"), ("end_ps", "<i8"), ("kind", "<i8"), ("block", "<i8")])
    for name in ("start_ps", "end_ps", "kind"):
        pieces[name] = columns[name]
    pieces["block"] = block
    return PipelineRow(
        job=actor["job"],
        stage=actor["stage"],
        rank=actor["rank"],
        ranks=actor["ranks"],
        gpu=actor["gpu"],
        pieces=_merged(pieces) if is_merged else pieces,
        blocks=blocks,
    )


def _merged(pieces: NDArray[np.void]) -> NDArray[np.void]:
    """Pieces of each block, joined by kind.

    They are in the order of `KINDS`, from the block's beginning on.
    """
    length = pieces["end_ps"] - pieces["start_ps"]
    key = pieces["block"] * len(KINDS) + pieces["kind"]
    groups, members = np.unique(key, return_inverse=True)
    merged = np.zeros(len(groups), pieces.dtype)
    merged["block"], merged["kind"] = groups // len(KINDS), groups % len(KINDS)
    total = np.zeros(len(groups), np.int64)
    np.add.at(total, members, length)
    begins = np.flatnonzero(np.diff(merged["block"], prepend=-1))
    before = np.cumsum(total) - total
    sizes = np.diff(np.append(begins, len(groups)))
    first = pieces["start_ps"][np.flatnonzero(np.diff(pieces["block"], prepend=-1))]
    merged["start_ps"] = before - np.repeat(before[begins], sizes) + np.repeat(first, sizes)
    merged["end_ps"] = merged["start_ps"] + total
    return merged


def _lead(run: Run, job: str) -> str:
    """Prefix of a job's numbers in the summary; empty for the first."""
    first = run.jobs["job"].slice(0, 1).to_pylist()
    return "" if first == [job] else f"{job}."


def time_by_kind(run: Run, job: str) -> dict[str, float]:
    """Parts of an average rank's iteration, by `KINDS`.

    They add up to the iteration.

    It is that of the summary, which counts every rank.

    Parameters
    ----------
    run : of training jobs, one seed
    job : its name

    Returns
    -------
    ps by kind, only those that there are
    """
    lead = _lead(run, job)
    # Only split backward passes have weights.
    numbers = {name: run.summary.get(f"{lead}{kind.number}_ps") for name, kind in TIME_KINDS.items()}
    return {kind: float(number["value"]) for kind, number in numbers.items() if number and number["value"]}
