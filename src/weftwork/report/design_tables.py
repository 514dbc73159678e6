"""Rows of a design's tables: named topologies side by side, and candidates as a scheduler places ranks.

Takes the document that `weftwork design` writes as ``result.json``; terminal and page print the same rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from weftwork.report.design_words import has_run, work_amount
from weftwork.report.money import money_words, power_words
from weftwork.report.words import amount, amounts_apart
from weftwork.spec.numbers import TIME_GROUPS

__all__ = ["KIND_COLUMNS", "PLACED_COLUMNS", "DesignRow", "kind_rows", "marks", "placed_rows"]

# Headings, and whether a column has numbers
KIND_COLUMNS: Final = (
    ("topology", False), ("fabric", False), ("packed", True), ("as placed", True), ("work per $", True),
    ("network", True), ("power", True), ("cables", True), ("limit", False), ("a dead leaf", False),
)  # fmt: skip
PLACED_COLUMNS: Final = (
    ("name", False), ("fabric", False), ("packed", True), ("servers at random", True), ("fragments", True),
    ("work per $", True), ("network", True),
)  # fmt: skip


@dataclass(frozen=True, kw_only=True, slots=True)
class DesignRow:
    """A row of a table: its cells, the candidate, and whether it is the recommended one."""

    cells: tuple[str, ...]
    name: str | None
    is_take: bool


def marks(one: Mapping[str, Any]) -> list[str]:
    """What a candidate is, beside being on the front."""
    return [word for word, key in (("take", "is_take"), ("knee", "is_knee")) if one[key]]


def kind_rows(document: Mapping[str, Any]) -> list[DesignRow]:
    """Named topologies, each with its best candidate, in the order in which they were named."""
    named = {one["name"]: one for one in document["candidates"]}
    of_kinds = [named.get(kind["name"]) for kind in document["kinds"]]
    packed = amounts_apart([None if one is None else one["counting_time_ps"] for one in of_kinds], "ps")
    placed = amounts_apart([None if one is None else one["placed_time_ps"] for one in of_kinds], "ps")
    work = _work_cells(document, of_kinds)
    rows = []
    for place, (kind, one) in enumerate(zip(document["kinds"], of_kinds, strict=True)):
        if one is None:
            cells = (kind["topology"], f"none: {kind['reason']}", *[""] * (len(KIND_COLUMNS) - 2))
            rows.append(DesignRow(cells=cells, name=None, is_take=False))
            continue
        rows.append(
            DesignRow(
                cells=(
                    kind["topology"], f"{one['name']}: {one['words'].partition(', ')[2]}", packed[place], placed[place],
                    work[place], money_words(one["price_usd"]["typical"]), power_words(one["power_w"]["typical"]),
                    f"{one['cables']:,}", _limit_words(one), _leaf_words(kind["dead_leaf"]),
                ),
                name=one["name"],
                is_take=one["is_take"],
            )
        )  # fmt: skip
    return rows


def placed_rows(document: Mapping[str, Any], judged: Sequence[Mapping[str, Any]]) -> list[DesignRow]:
    """Candidates that ran as a scheduler places ranks, the best by what the criterion wants first."""
    order = sorted(
        judged, key=lambda one: (not one["is_take"], -(one["work_per_usd"] or 0), one["placed_time_ps"] or 0)
    )
    times = [one["counting_time_ps"] for one in order]
    each = [{name: _times_of(one, name) for name in ("random-servers", "random-fragments")} for one in order]
    every = [*times, *(time for row in each for kind in row.values() for time in kind)]
    words = dict(zip(every, amounts_apart(every, "ps"), strict=True))
    work = _work_cells(document, order)
    return [
        DesignRow(
            cells=(
                one["name"], one["words"], words[one["counting_time_ps"]], _span(row["random-servers"], words),
                _span(row["random-fragments"], words), work[place], money_words(one["price_usd"]["typical"]),
            ),
            name=one["name"],
            is_take=one["is_take"],
        )
        for place, (one, row) in enumerate(zip(order, each, strict=True))
    ]  # fmt: skip


def _times_of(one: Mapping[str, Any], placement: str) -> list[float | None]:
    return [each["counting_time_ps"] for each in one["placed"] if each["placement"] == placement and has_run(each)]


def _span(times: Sequence[float | None], words: Mapping[float | None, str]) -> str:
    if not times:
        return "not run yet"
    if None in times:
        return "none"
    low, high = words[min(times)], words[max(times)]  # type: ignore[type-var]  # none is None
    return low if low == high else f"{low} to {high}"


def _work_cells(document: Mapping[str, Any], candidates: Sequence[Mapping[str, Any] | None]) -> list[str]:
    cluster = document["cluster"]
    if cluster is None:
        return [""] * len(candidates)
    values = [None if one is None else one["work_per_usd"] for one in candidates]
    return work_amount(values, cluster["work_unit"])


def _limit_words(one: Mapping[str, Any]) -> str:
    """What most of the time goes to, and what a better network could save at most."""
    share = one.get("exposed_share")
    if share is None or one["limited_by"] == TIME_GROUPS["exposed_share"]:
        return str(one["limited_by"]) + ("" if share is None else f" {amount(share, 'share')}")
    return f"{one['limited_by']}; {amount(share, 'share')} exposed"


def _leaf_words(leaf: Mapping[str, Any] | None) -> str:
    """What a dead leaf costs the job."""
    if leaf is None:
        return "not run"
    if leaf["slowdown"] is not None:
        longer = leaf["slowdown"] - 1
        return f"{amount(longer, 'share')} longer" if longer > _SAME else "nothing"
    cut_off = f": {leaf['cut_off']:,} GPUs are cut off" if leaf["cut_off"] else f": {leaf['stopped']}"
    return f"the job stops{cut_off}"


_SAME: Final = 0.0005  # chosen: shares that round to 0.0 %
