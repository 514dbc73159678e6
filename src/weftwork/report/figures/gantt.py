"""The pipeline as a chart that can be zoomed and moved.

It has a row for each stage, and a colour for each kind of time.

The script ``templates/gantt.js`` draws on a canvas, from numbers that are packed here; without a script there is a
picture of the whole. What is narrower than a pixel is shown by heights: the share of each kind in that pixel.
Leaves out: arrows between stages; the trace for Perfetto has them (`weftwork.report.trace`).
"""

from __future__ import annotations

import base64
import json
from collections import Counter
from html import escape
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from weftwork.base.grammar import plural
from weftwork.report.culprit_marks import TO_BLAME
from weftwork.report.figures.colours import kind_colours
from weftwork.report.figures.png import png_of
from weftwork.report.pipeline import KINDS, PASSES
from weftwork.report.words import amount, typeset
from weftwork.spec.time_kinds import TIME_KINDS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from weftwork.report.culprit_marks import FaultTime
    from weftwork.report.pipeline import Pipeline, PipelineRow
    from weftwork.report.pipeline_ranks import RowRanks

__all__ = ["gantt", "kind_legend", "packed", "row_names"]

_TICKS: Final = 2.0**27  # chosen: steps of the whole chart, so that a step is far below what a zoom can show
_CODES: Final = 32  # a piece is written as so many times its length, plus its kind
_NOTHING: Final = _CODES - 1  # kind of a gap between pieces
_COLUMNS: Final = 960  # of the picture without a script
_ROW_PX: Final = (9, 32)
_HEIGHT_PX: Final = 560
_TOP_PX: Final = 20  # above the rows, for the names of faults
_NAME_PERCENT: Final = 30  # chosen: of the width, room for the name of a fault in the picture without a script


def gantt(
    pipeline: Pipeline,
    totals: Mapping[str, float],
    *,
    faults: Sequence[FaultTime] = (),
    culprits: Sequence[bool] = (),
    ranks: Sequence[RowRanks] = (),
    has_anchors: bool = False,
) -> str:
    """Draw the rows.

    Parameters
    ----------
    pipeline : of `weftwork.report.pipeline.read_pipeline`
    totals : ps by kind of an average rank, for the legend
    faults : bands from when to when each was at work
    culprits : of each row, whether it is to blame; nothing where none is
    ranks : of each row, which ranks it stands for, and whether it is a straggler
    has_anchors : whether links of the page lead to the rows
    """
    rows = pipeline.rows
    row_px = int(np.clip(_HEIGHT_PX // len(rows), *_ROW_PX))
    span = max(pipeline.end_ps - pipeline.start_ps, 1)
    names = row_names(pipeline)
    slow = [f" (\u00d7{one.factor:g})" if one.factor != 1 else "" for one in ranks] or [""] * len(rows)
    blamed = [bool(culprits) and culprits[place] for place in range(len(rows))]
    shown = [one for one in faults if one.start_ps < pipeline.end_ps]
    top_px = _TOP_PX if shown else 0
    meta: dict[str, Any] = {
        "unit": span / _TICKS,
        "start": pipeline.start_ps,
        "end": _TICKS,
        "row": row_px,
        "top": top_px,
        "faults": [_band(pipeline, one, span / _TICKS) for one in shown],
        "rows": [
            f"{name}: {_told(row, ranks[place] if ranks else None)}{f', {TO_BLAME}' if blamed[place] else ''}"
            for place, (name, row) in enumerate(zip(names, rows, strict=True))
        ],
        "kinds": [kind.short for kind in TIME_KINDS.values()],
        "passes": PASSES,
    }
    anchors = [f' id="row-{place}"' if has_anchors else "" for place in range(len(rows))]
    labels = "".join(
        f'<span{anchor}{_marked(is_blamed, factor)} style="height:{row_px}px">{escape(name + factor)}</span>'
        for name, anchor, is_blamed, factor in zip(names, anchors, blamed, slow, strict=True)
    )
    said = escape(
        f"{plural(len(rows), 'row')} over {amount(span, 'ps')}. Ctrl and wheel, or plus and minus, zoom; arrows move."
    )
    for one in shown:
        until = "the end" if one.end_ps is None else amount(one.end_ps - pipeline.start_ps, "ps")
        begin = amount(max(one.start_ps - pipeline.start_ps, 0), "ps")
        said += escape(f" {_fault_text(one)} from {begin} to {until}.")
    heights = f"--rows:{len(rows) * row_px}px;--row:{row_px}px;--top:{top_px}px"
    data = escape(json.dumps(meta, separators=(",", ":")), quote=True)
    return (
        kind_legend(totals) + f'<div class="gantt" data-meta="{data}" style="{heights}">'
        '<div class="keysline" hidden><button type="button" data-do="in">zoom in</button>'
        '<button type="button" data-do="out">zoom out</button><button type="button" data-do="left">earlier</button>'
        '<button type="button" data-do="right">later</button><button type="button" data-do="all">all</button>'
        '<span class="where"></span></div>'
        f'<div class="stages">{labels}</div><div class="lanes">'
        f'<canvas tabindex="0" role="img" aria-label="{said}" hidden></canvas>'
        f'<noscript><div class="still">{_picture(pipeline)}{_bands(pipeline, shown)}</div></noscript>'
        f'</div><script type="text/plain">{base64.b64encode(packed(pipeline)).decode()}</script></div>'
    )


def _fault_text(fault: FaultTime) -> str:
    return f"{fault.text}, {TO_BLAME}" if fault.is_culprit else fault.text


def _band(pipeline: Pipeline, fault: FaultTime, unit_ps: float) -> list[Any]:
    """Begin and end of a fault in steps, its name, and a culprit mark.

    The mark is 1 for the culprit.
    """
    end_ps = pipeline.end_ps if fault.end_ps is None else min(fault.end_ps, pipeline.end_ps)
    places = (max(at_ps - pipeline.start_ps, 0) / unit_ps for at_ps in (fault.start_ps, end_ps))
    return [*map(round, places), _fault_text(fault), int(fault.is_culprit)]


def _bands(pipeline: Pipeline, faults: Sequence[FaultTime]) -> str:
    """The bands of faults over the picture without a script.

    Names appear if they have room, the culprit's first.
    """
    unit_ps = max(pipeline.end_ps - pipeline.start_ps, 1) / _TICKS
    bands = [_band(pipeline, fault, unit_ps) for fault in faults]
    made = []
    named: list[float] = []
    for begin, end, text, blamed in sorted(bands, key=lambda band: -band[3]):
        left, width = 100 * begin / _TICKS, 100 * (end - begin) / _TICKS
        kind = "culprit" if blamed else "other"
        made.append(f'<div class="{kind}" style="left:{left:.2f}%;width:{width:.2f}%"><i></i></div>')
        if all(abs(left - other) >= _NAME_PERCENT for other in named):
            named.append(left)
            side = f"left:{left:.2f}%" if left < 100 - _NAME_PERCENT else f"right:{100 - left:.2f}%"
            made.append(f'<b class="{kind}" style="{side}">{escape(text)}</b>')
    return "".join(made)


def row_names(pipeline: Pipeline) -> list[str]:
    """Names of the rows: the stage, with job and rank if several."""
    has_jobs = len({row.job for row in pipeline.rows}) > 1
    rows = Counter((row.job, row.stage) for row in pipeline.rows)
    return [
        f"{f'{row.job} ' if has_jobs else ''}stage {row.stage}"
        f"{f', rank {row.rank}' if rows[row.job, row.stage] > 1 else ''}"
        for row in pipeline.rows
    ]


def _marked(is_blamed: bool, slow: str) -> str:  # noqa: FBT001 - one of a kind
    if is_blamed:
        return f' class="culprit" title="{TO_BLAME}"'
    return ' class="straggler" title="a straggler"' if slow else ""


def _told(row: PipelineRow, ranks: RowRanks | None) -> str:
    """The rank that a row shows, and the ranks it represents."""
    if ranks is None:
        return f"rank {row.rank}"
    slow = "" if ranks.factor == 1 else f", computes {ranks.factor:g} times as long"
    return f"{ranks.rank} stands for {ranks.stands_for}{slow}"


def kind_legend(totals: Mapping[str, float]) -> str:
    """Colour, name, time and share of every kind that there is."""
    whole = sum(totals.values())
    items = "".join(
        f'<span><i class="k{KINDS.index(kind)}"></i>{escape(TIME_KINDS[kind].short)} '
        f"<b>{escape(typeset(amount(ps, 'ps')))}</b> {escape(typeset(amount(ps / whole, 'share')))}</span>"
        for kind, ps in totals.items()
    )
    return f'<div class="kinds">{items}</div>'


def packed(pipeline: Pipeline) -> bytes:
    """The rows as numbers of seven bits a byte (LEB128).

    Low bits come first; the high bit says that more bytes follow.

    Of each row: where it begins, how many blocks and pieces; of each block its micro batch and virtual stage, plus one,
    its pass and its pieces; of each piece `_CODES` times its length plus its kind.
    """
    unit = max(pipeline.end_ps - pipeline.start_ps, 1) / _TICKS
    parts = []
    for row in pipeline.rows:
        starts = np.rint((row.pieces["start_ps"] - pipeline.start_ps) / unit).astype(np.int64)
        ends = np.rint((row.pieces["end_ps"] - pipeline.start_ps) / unit).astype(np.int64)
        gaps = np.maximum(starts[1:] - ends[:-1], 0)
        is_gap = np.flatnonzero(gaps)  # a gap belongs to the block before it
        lengths = np.insert(ends - starts, is_gap + 1, gaps[is_gap])
        kinds = np.insert(row.pieces["kind"], is_gap + 1, _NOTHING)
        members = np.insert(row.pieces["block"], is_gap + 1, row.pieces["block"][is_gap])
        blocks = np.stack(
            [
                row.blocks["micro_batch"] + 1,
                row.blocks["virtual_stage"] + 1,
                row.blocks["pass"],
                np.bincount(members, minlength=len(row.blocks)),
            ],
            axis=1,
        )
        parts += [np.array([starts[0], len(blocks), len(lengths)]), blocks.ravel(), lengths * _CODES + kinds]
    return _leb128(np.concatenate(parts)) if parts else b""


def _leb128(values: NDArray[np.int64]) -> bytes:
    most = 9  # of seven bits hold what is below 2**63
    groups = (values[:, None] >> (7 * np.arange(most))) & 0x7F
    used = np.maximum(most - np.argmax(groups[:, ::-1] > 0, axis=1), 1)
    used[values == 0] = 1
    place = np.arange(most)[None, :]
    groups[place < used[:, None] - 1] |= 0x80
    written: bytes = groups.astype(np.uint8)[place < used[:, None]].tobytes()
    return written


def _picture(pipeline: Pipeline) -> str:
    """The whole picture by the longest kinds of each column, without a script."""
    span = max(pipeline.end_ps - pipeline.start_ps, 1)
    edges = pipeline.start_ps + span * np.arange(_COLUMNS + 1) / _COLUMNS
    indices = np.zeros((len(pipeline.rows), _COLUMNS), np.uint8)
    for place, row in enumerate(pipeline.rows):
        best = np.zeros(_COLUMNS)
        for kind in np.unique(row.pieces["kind"]).tolist():
            mine = row.pieces[row.pieces["kind"] == kind]
            times = np.stack([mine["start_ps"], mine["end_ps"]], axis=1).ravel()
            length = mine["end_ps"] - mine["start_ps"]
            before = np.cumsum(length) - length
            spent = np.diff(np.interp(edges, times, np.stack([before, before + length], axis=1).ravel()))
            indices[place, spent > best] = kind + 1
            best = np.maximum(best, spent)
    images = (
        f'<img class="{theme}" alt="" src="data:image/png;base64,'
        f'{base64.b64encode(png_of(indices, kind_colours(theme))).decode()}">'
        for theme in ("light", "dark")
    )
    return "".join(images)
