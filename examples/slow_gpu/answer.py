"""What a slow GPU costs a job, and where the others wait: prints the tables of README.md and draws its figure.

python -m examples.slow_gpu.answer
"""

from __future__ import annotations

from dataclasses import dataclass

from examples import cases

import weftwork
from weftwork.report.figures import cards

__all__ = ["Case", "figure", "measure", "report"]

SECOND_PS = 1e12
FACTORS = (1.05, 1.1, 1.25, 1.5, 2.0)
LAST, FIRST = 204, 12  # a GPU of the last stage and one of the first, both of the second pipeline
ZERO = {
    "training": "{model: llama-3-70b, zero: 3, global_batch: 256, recompute: full, gradients: bf16, overlap: {data: 1}}"
}
HEALTHY, HEALTHY_ZERO = "pipelines, all alike", "ZeRO 3, all alike"
DRAWN = ("ZeRO 3", "pipelines, last stage", "pipelines, first stage")


def _slow(gpus: range, factor: float) -> dict[str, str]:
    return {"stragglers": "[" + ", ".join(f"{{gpu: {gpu}, factor: {factor}}}" for gpu in gpus) + "]"}


def _limps(link: str) -> dict[str, str]:
    return {"stragglers": "[]", "faults": f"[{{at: 0ps, link: {link}, event: degrade, fraction: 0.1}}]"}


CASES = {HEALTHY: {"stragglers": "[]"}}
CASES |= {f"pipelines, last stage x {factor:g}": _slow(range(LAST, LAST + 1), factor) for factor in FACTORS}
CASES |= {f"pipelines, first stage x {factor:g}": _slow(range(FIRST, FIRST + 1), factor) for factor in FACTORS}
CASES |= {
    "pipelines, a server of the last stage x 1.25": _slow(range(200, 208), 1.25),
    "pipelines, the whole last stage x 1.25": _slow(range(192, 256), 1.25),
    "pipelines, everybody x 1.25": _slow(range(256), 1.25),
    "pipelines, a link at a tenth": _limps("host25-leaf4"),
    HEALTHY_ZERO: {**ZERO, "stragglers": "[]"},
}
CASES |= {f"ZeRO 3 x {factor:g}": {**ZERO, **_slow(range(FIRST, FIRST + 1), factor)} for factor in FACTORS}
CASES |= {"ZeRO 3, a link at a tenth": {**ZERO, **_limps("host1-leaf4")}}

GROUPS = ("the slow GPU", "the 7 beside it", "other stages, 24", "other pipelines, 224")
TOLD = (
    "pipelines, last stage x 1.05",
    "pipelines, last stage x 1.25",
    "pipelines, last stage x 2",
    "pipelines, a link at a tenth",
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Case:
    """An iteration, what it would be with an infinitely fast network, and by group of ranks how long they wait."""

    name: str
    took_s: float
    computing_s: float
    mfu: float
    exposed_s: float
    bubble_s: float
    skew_s: float
    ranks: dict[str, int]
    waits_s: dict[str, tuple[float, float]]


def _group(rank: int) -> str:
    """Where a rank is, seen from the slow GPU; tensor ranks (8) change fastest, then pipelines (8), then stages (4)."""
    if rank // 8 % 8 != LAST // 8 % 8:
        return GROUPS[3]
    if rank // 64 != LAST // 64:
        return GROUPS[2]
    return GROUPS[0] if rank == LAST else GROUPS[1]


def _read(run: weftwork.Run) -> tuple[dict[str, float], dict[str, int], dict[str, tuple[float, float]]]:
    """Numbers, how many ranks each group has, and how long its ranks wait: in the bubble, and for late ones."""
    rows = run.query(
        "select rank, any_value(ranks) as ranks, "
        "coalesce(sum(end_ps - start_ps) filter (kind = 'bubble'), 0)::double as bubble, "
        "coalesce(sum(end_ps - start_ps) filter (kind = 'skew'), 0)::double as skew from segments group by rank"
    ).to_pylist()
    ranks, waits_s = {}, {}
    for group in ("all", *GROUPS):
        own = [row for row in rows if group in ("all", _group(row["rank"]))]
        ranks[group] = sum(row["ranks"] for row in own)
        scale = SECOND_PS * max(ranks[group], 1)
        bubble_s, skew_s = (sum(row[kind] * row["ranks"] for row in own) / scale for kind in ("bubble", "skew"))
        waits_s[group] = (bubble_s, skew_s)
    what_if = {row["change"]: row["iteration_ps"] for row in run.table("what_if").to_pylist()}
    numbers = {
        "took_s": cases.number(run, "iteration_ps") / SECOND_PS,
        "computing_s": what_if["infinite network"] / SECOND_PS,
        "mfu": cases.number(run, "mfu"),
        "exposed_s": cases.number(run, "exposed_ps") / SECOND_PS,
    }
    return numbers, ranks, waits_s


def measure() -> list[Case]:
    """Run all cases."""
    found = []
    for name, changes in CASES.items():
        numbers, ranks, waits_s = cases.run(cases.in_folder(__file__), changes, _read)
        bubble_s, skew_s = waits_s.pop("all")
        found.append(Case(name=name, **numbers, bubble_s=bubble_s, skew_s=skew_s, ranks=ranks, waits_s=waits_s))
    return found


def _costs(measured: list[Case]) -> dict[str, float]:
    """By how much longer an iteration takes than where all are alike."""
    costs, healthy_s = {}, 0.0
    for case in measured:
        if case.name.endswith("all alike"):  # those that follow are held against it
            healthy_s = case.took_s
        costs[case.name] = case.took_s / healthy_s - 1
    return costs


def report(measured: list[Case]) -> str:
    """The tables of README.md."""
    costs = _costs(measured)
    rows = [("who is slow", "iteration", "costs", "MFU", "exposed", "bubble", "skew")]
    rows += [
        (
            case.name,
            f"{case.took_s:.2f} s",
            f"{100 * costs[case.name]:+.1f} %" if costs[case.name] else "",
            f"{100 * case.mfu:.1f} %",
            f"{case.exposed_s:.2f} s",
            f"{case.bubble_s:.2f} s",
            f"{case.skew_s:.2f} s",
        )
        for case in measured
    ]
    waits: list[tuple[str, ...]] = [("waiting, bubble + skew, s", *GROUPS)]
    waits += [
        (case.name, *("{:.2f} + {:.2f}".format(*case.waits_s[group]) for group in GROUPS))
        for case in measured
        if case.name in TOLD
    ]
    return f"{cases.table(rows)}\n\n{cases.table(waits)}"


def figure(measured: list[Case]) -> str:
    """The figure of README.md, as SVG."""
    costs = _costs(measured)
    drawn = [
        cards.Polyline(name=place, points=((1.0, 0.0), *((f, 100 * costs[f"{place} x {f:g}"]) for f in FACTORS)))
        for place in DRAWN
    ]
    return cards.lines(
        "One of 256 GPUs takes longer to compute: what an iteration takes longer",
        drawn,
        x_axis="times that the slow GPU takes for what others compute in one",
        y_axis="an iteration takes longer by, %",
        x_ticks=[(factor, f"{factor:g}") for factor in (1.0, 1.25, 1.5, 1.75, 2.0)],
        is_log=False,
    )


if __name__ == "__main__":
    cases.answer(__file__, measure, report, figure)
