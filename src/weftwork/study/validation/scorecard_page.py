"""The scorecard as a documentation page, and as lines of a table.

Leaves out: figures; the numbers are few.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any, Final

from weftwork.base.grammar import plural
from weftwork.study.validation.scorecard import PlanRank, Point, Score

__all__ = ["HEAD", "document", "line", "page", "part_lines", "rank_line", "sign_line"]

HEAD: Final = (
    "set", "role", "points", "MAPE", "median", "worst", "rank corr.", "wanted", "reached", "naive MAPE",
)  # fmt: skip
_ROWS_SHOWN: Final = 60  # larger sets have their worst rows only
_WORST_SHOWN: Final = 10
_INTRODUCTION: Final = """\
# Scorecard: how far an answer can be trusted

Weftwork's predictions for iterations and collectives that others measured and published. This command writes the page:

```sh
weftwork validate --full --page docs/models/scorecard.md
```

The error of a row is predicted over measured time, less one; MAPE is the mean of absolute errors, the rank
correlation is Spearman's. *Calibration*: constants were fitted on these rows. *Declared*: an input, such as the
software generation or the CPU time of an operation, was read from these rows or from the recipes behind them.
*Blind*: neither. Each set has a naive rule for comparison; a model that loses to it is not worth its code.
Rows of a set of comparisons are ratios: the time on one fabric over the time on another. Only their sign is judged.
Sources and terms: `src/weftwork/data/published/README.md` and `NOTICE`.

An iteration is predicted by running a scenario, as in every other run.
`weftwork validate sc21 --write-scenarios rows` writes the scenarios of a set; `weftwork run` on one of them gives the
number on this page.
"""
_OWN_INTRODUCTION: Final = """\
# Your own rows: how far an answer can be trusted

Weftwork's predictions for your own rows. This command writes the page:

```sh
{command}
```

The error of a row is predicted over measured time, less one; MAPE is the mean of absolute errors, the rank
correlation is Spearman's. *Calibration*: constants were fitted on these rows. *Blind*: they were not. Each set has a
naive rule for comparison; a model that loses to it is not worth its code. The packaged sets have a page of this form.
"""


def line(score: Score) -> tuple[str, ...]:
    """Cells of a set under `HEAD`."""
    rank = score.rank_correlation
    return (
        score.key,
        score.role,
        str(len(score.points)),
        f"{100 * score.mape:.2f} %",
        _percent(score.median),
        f"{100 * score.worst.error:+.0f} %",
        "-" if rank is None else f"{rank:.3f}",
        "-" if score.tolerance is None else f"{100 * score.tolerance:.0f} %",
        {None: "-", True: "yes", False: "no"}[score.is_reached],
        _percent(score.naive_mape),
    )


def rank_line(ranks: Sequence[PlanRank]) -> str:
    """Ranks of the plans measured fastest in a set, in a sentence."""
    if len(ranks) == 1:
        only = ranks[0]
        text = f"The plan measured fastest is Weftwork's number {only.rank} of {only.plans}"
        return f"{text}; Weftwork's fastest plan was {100 * only.loss:.1f} % slower than it."
    first, second, third = (sum(rank.rank == place for rank in ranks) for place in (1, 2, 3))
    mean_loss = sum(rank.loss for rank in ranks) / len(ranks)
    jobs = plural(len(ranks), "job")
    text = f"For {jobs} with several plans, the plan measured fastest is Weftwork's first in {first}"
    text += f" and among its first three in {first + second + third}"
    return f"{text}; on average, Weftwork's first plan was {100 * mean_loss:.1f} % slower than the fastest plan."


def part_lines(score: Score) -> list[str]:
    """Errors of parts of a set, and of configurations outside a fit."""
    lines = []
    if score.subsets:
        shown = [
            f"{part.name} {100 * part.mape:.1f} % ({part.points} of {plural(len(score.points), 'row')},"
            f" median {100 * part.bias:+.1f} %)"
            for part in score.subsets
        ]
        lines.append(f"MAPE by part: {'; '.join(shown)}.")
    left = score.left_out
    if left is not None:
        text = f"MAPE of {left.configurations} configurations, each with {left.key} fitted to the rows of the others"
        lines.append(f"{text}: {100 * left.mape:.2f} % (fitted: {', '.join(left.values)}).")
    return lines


def sign_line(score: Score) -> str:
    """Number of comparisons with the published sign, in a sentence."""
    return (
        f"{score.same_signs} of {plural(len(score.points), 'comparison')} have the published sign; a difference below"
        " 2 % counts as equal."
    )


def page(scores: Sequence[Score], *, own: str | None = None) -> str:
    """The whole page, as Markdown.

    Parameters
    ----------
    scores : of all sets
    own : the command that scored a user's own rows; None: these are the packaged sets
    """
    head = _INTRODUCTION if own is None else _OWN_INTRODUCTION.format(command=own)
    parts = [head, _table(HEAD, [line(score) for score in scores], left=2)]
    for score in scores:
        parts.append(f"## {score.title}\n")
        parts.append(_about(score))
        shown = _shown(score)
        if len(shown) < len(score.points):
            parts.append(f"The {len(shown)} worst of {plural(len(score.points), 'row')}:\n")
        cells = [_row(score, point) for point in shown]
        names = ("row", "measured", "Weftwork", "error", "naive", *("same sign",) * score.is_ratio)
        parts.append(_table(names, cells, left=1))
    return "\n".join(parts).rstrip() + "\n"


def document(scores: Sequence[Score]) -> list[dict[str, Any]]:
    """The scorecard for programs."""
    return [
        {
            "set": score.key,
            "title": score.title,
            "role": score.role,
            "calibrated_on": score.calibrated_on,
            "source": score.source,
            "points": len(score.points),
            "mape": score.mape,
            "median": score.median,
            "bias": score.bias,
            "worst": {"row": score.worst.name, "error": score.worst.error},
            "rank_correlation": score.rank_correlation,
            "tolerance": score.tolerance,
            "reached": score.is_reached,
            "naive": {"rule": score.naive, "mape": score.naive_mape, "beaten": score.beats_naive},
            "best_plans": [
                {"job": rank.plan_set, "plans": rank.plans, "rank": rank.rank, "loss": rank.loss}
                for rank in score.plan_ranks()
            ],
            "subsets": [
                {"name": part.name, "points": part.points, "mape": part.mape, "bias": part.bias}
                for part in score.subsets
            ],
            "left_out": None if score.left_out is None else asdict(score.left_out),
            "excluded": [{"row": row.name, "reason": row.reason} for row in score.excluded],
            "notes": list(score.notes),
            "same_signs": score.same_signs if score.is_ratio else None,
            "rows": [
                {"row": point.name, "measured_s": point.measured_s, "predicted_s": point.predicted_s,
                 "naive_s": point.naive_s, "error": point.error, "parts_s": dict(point.parts_s)}
                for point in score.points
            ],
        }
        for score in scores
    ]  # fmt: skip


def _about(score: Score) -> str:
    reached = {None: "not judged", True: "reached", False: "not reached"}[score.is_reached]
    wanted = "" if score.tolerance is None else f" (wanted {100 * score.tolerance:.0f} %)"
    lost = "" if score.beats_naive else "; **Weftwork loses to it**"
    spread = (
        f"Median {_percent(score.median)}, worst {100 * score.worst.error:+.0f} % ({score.worst.name}), "
        f"median of signed errors {100 * score.bias:+.1f} %."
    )
    lines = [
        f"- *{score.role.capitalize()}*; calibrated on {score.calibrated_on}.",
        f"- Source: {score.source}.",
        f"- MAPE {100 * score.mape:.2f} %{wanted}: {reached}. {spread}",
        f"- Naive rule, {score.naive}: {_percent(score.naive_mape)}{lost}.",
    ]
    ranks = score.plan_ranks()
    lines += [f"- {rank_line(ranks)}"] if ranks else []
    lines += [f"- {text}" for text in part_lines(score)]
    lines += [f"- {sign_line(score)}"] if score.is_ratio else []
    lines += [f"- {note}" for note in score.notes]
    lines += [f"- Left out: {row.name}: {row.reason}." for row in score.excluded]
    return "\n".join(lines) + "\n"


def _row(score: Score, point: Point) -> tuple[str, ...]:
    errors = (f"{100 * point.error:+.1f} %", f"{100 * point.naive_error:+.0f} %")
    if not score.is_ratio:
        return (point.name, _time(point.measured_s), _time(point.predicted_s), *errors)
    published = f"{'> ' * point.is_over}{_ratio(point.measured_s)}"
    return (point.name, published, _ratio(point.predicted_s), *errors, "yes" if point.has_same_sign else "no")


def _shown(score: Score) -> list[Any]:
    if len(score.points) <= _ROWS_SHOWN:
        return list(score.points)
    return sorted(score.points, key=lambda point: -abs(point.error))[:_WORST_SHOWN]


def _table(head: Sequence[str], rows: Sequence[Sequence[str]], *, left: int) -> str:
    marks = "".join("|---" if column < left else "|---:" for column in range(len(head)))
    lines = [f"| {' | '.join(head)} |", f"{marks}|", *(f"| {' | '.join(row)} |" for row in rows)]
    return "\n".join(lines) + "\n"


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"


def _ratio(ratio: float) -> str:
    return f"{ratio:.3f}"


def _time(seconds: float) -> str:
    if seconds >= 1:
        return f"{seconds:.3f} s"
    return f"{1e3 * seconds:.2f} ms" if seconds >= 1e-3 else f"{1e6 * seconds:.0f} us"
