"""What stands on a page in words, and the numbers there that are sums, means and quantiles of a run's tables.

They are computed here from the tables again, without `weftwork.report`, but for how a number is written.
"""

from __future__ import annotations

import re

import numpy as np
from helpers.pages import plain
from helpers.shown import Element
from numpy.typing import NDArray

from weftwork.base.units import RATE, SIZE, QuantityKind, format_quantity
from weftwork.report.words import amount, typeset
from weftwork.store.runs import Run

SIZES_BYTES = (0, 10_000, 100_000, 1_000_000, 10_000_000)  # bounds of the table by size, as most papers have them
# What `visible` leaves out, each by its element: scales of charts; what is written below a chart on how it was drawn;
# what the run was made from; what nobody sees. Reasons of slow flows are estimates from a timeline, which
# oracles/test_messages.py computes again: they are the words directly in an item of a list.
_SCALES, _HOW_DRAWN, _UNSEEN = {"yt", "xt", "scale"}, {"note"}, {"script", "style"}
_ORIGIN = {"provenance", "notes"}
_REASONS = ("slow", "li")


def visible(page: Element, inside: str = "") -> list[tuple[Element, str]]:
    """The words of a page, each with the element that they stand in.

    Parameters
    ----------
    page : an element
    inside : id of the section around it
    """
    found = []
    for one in page.children:
        if isinstance(one, str):
            found += [] if (inside, page.tag) == _REASONS else [(page, plain(one))]
            continue
        where = one.attributes.get("id", "") if one.tag == "section" else inside
        kinds = set(one.attributes.get("class", "").split())
        if where not in _ORIGIN and one.tag not in _UNSEEN and not kinds & (_SCALES | _HOW_DRAWN):
            found += visible(one, where)
    return found


def counted(run: Run, page: Element) -> set[str]:
    """How numbers that follow from the tables are written on a page."""
    return (
        _activities(run) | _tiers(run) | _links(run) | _flows(run) | _jobs(run) | _slow_flows(run, page) | _victims(run)
    )


def _as_in_a_scenario(value: float, quantity: QuantityKind) -> str:
    return plain(typeset(format_quantity(quantity, round(value))))


def _activities(run: Run) -> set[str]:
    """Sizes and times of what was asked of the network, by kind, and the flow that an average byte belongs to."""
    found: set[str] = set()
    rows = run.table("activities").to_pylist()
    for kind in {(row["job"], row["kind"], row["operation"]) for row in rows}:
        mine = [row for row in rows if (row["job"], row["kind"], row["operation"]) == kind]
        times = np.array([row["instances"] for row in mine])
        lengths = np.array([row["end_ps"] - row["start_ps"] for row in mine], float)
        sizes = np.array([row["size_bytes"] for row in mine], float)
        late = np.array([row["start_ps"] - row["posted_ps"] for row in mine], float)
        found.add(amount(float((sizes * times).sum() / times.sum()), "B"))
        found.add(amount(float((late * times).sum() / times.sum()), "ps"))
        found |= {amount(_nearest(lengths, times, share), "ps") for share in (0.5, 0.99)}
    flows = [row for row in rows if row["flows"] and row["end_ps"] > row["start_ps"] and row["size_bytes"]]
    if flows:
        moved = [row["flows"] * row["instances"] * row["size_bytes"] for row in flows]
        squares = sum(each * row["size_bytes"] for each, row in zip(moved, flows, strict=True))
        found.add(amount(squares / sum(moved), "B"))
    return found


def _nearest(lengths: NDArray[np.float64], times: NDArray[np.int64], share: float) -> float:
    """The least length which at least this share of all do not exceed; each counts so many times."""
    order = np.argsort(lengths, kind="stable")
    return float(lengths[order][np.searchsorted(np.cumsum(times[order]), share * times.sum())])


def _tiers(run: Run) -> set[str]:
    """What each tier carried, its mean rate while it was busy, and its highest."""
    found: set[str] = set()
    rows = [row for row in run.table("tiers").to_pylist() if row["bytes"]]
    for tier in {row["tier"] for row in rows}:
        mine = [(row["bytes"], row["at_ps"] - row["start_ps"]) for row in rows if row["tier"] == tier]
        carried, busy_ps = (sum(one) for one in zip(*mine, strict=True))
        rates = (carried * 8e12 / busy_ps, max(size * 8e12 / length for size, length in mine))
        found |= {amount(carried, "B"), *(amount(rate, "b/s") for rate in rates)}
    return found


def _links(run: Run) -> set[str]:
    """Rates and mean use of the links from tier to tier, and the step of what is shown over time."""
    role = dict(zip(*(run.table("nodes")[name].to_pylist() for name in ("node", "role")), strict=True))
    rows = run.links.to_pylist()
    found: set[str] = set()
    for kind in {(role[row["node"]], role[row["peer"]]) for row in rows}:
        mine = [row for row in rows if (role[row["node"]], role[row["peer"]]) == kind]
        found.add(_as_in_a_scenario(sum(row["rate_bps"] for row in mine) // len(mine), RATE))
        used = [row["utilisation"] for row in mine if row["bytes"]]
        found |= {amount(float(np.mean(used)), "share")} if used else set()
    steps = run.query("select max(at_ps - start_ps) as step from timeline")["step"].to_pylist()
    return found | {amount(step, "ps") for step in steps if step}


def _flows(run: Run) -> set[str]:
    """Quantiles and goodput by size of the flow, and bandwidths of collectives."""
    found = {amount(bound, "B") for bound in SIZES_BYTES[1:]}
    flows = run.query("select size_bytes, fct_ps, goodput_bps from flows where fct_ps is not null")
    size, fct, goodput = (flows[name].to_numpy() for name in ("size_bytes", "fct_ps", "goodput_bps"))
    for low, high in zip(SIZES_BYTES, [*SIZES_BYTES[1:], np.inf], strict=True):
        mine = (size > low) & (size <= high)
        if mine.any():
            found |= {amount(float(np.quantile(fct[mine], share)), "ps") for share in (0.5, 0.99, 0.999)}
            found.add(amount(float(goodput[mine].mean()), "b/s"))
    for row in run.collectives.to_pylist():
        bus = row["bus_bandwidth_bps"]
        found |= {amount(row["duration_ps"], "ps"), amount(row["algorithm_bandwidth_bps"], "b/s"), amount(bus, "b/s")}
        found |= {amount(None if bus is None else bus / 8, "B/s"), _as_in_a_scenario(row["size_bytes"], SIZE)}
    return found


def _jobs(run: Run) -> set[str]:
    """Numbers of each job, which stand side by side."""
    rows = run.table("jobs").to_pylist()
    shares = {amount(row[name], "share") for row in rows for name in ("mfu", "exposed_share", "bubble_share")}
    return shares | {amount(row["iteration_ps"], "ps") for row in rows}


def _victims(run: Run) -> set[str]:
    """What flows lost to others, what jobs lost to each other, and what rows of the pipeline waited."""
    flows = run.query("select * from flows where fct_ps is not null and ideal_fct_ps is not null").to_pylist()
    found = {amount(1 - row["ideal_fct_ps"] / row["fct_ps"], "share") for row in flows}
    found |= {amount(row[name], "ps") for row in flows for name in ("fct_ps", "ideal_fct_ps")}
    whole = {row["job"]: row["iteration_ps"] for row in run.table("jobs").to_pylist() if row["iteration_ps"]}
    for row in run.query("select * from what_if where change = 'alone'").to_pylist():
        lost = whole.get(row["job"], 0) - row["iteration_ps"]
        found |= {amount(lost, "ps"), amount(lost / whole[row["job"]], "share")} if row["job"] in whole else set()
    waits = run.query(
        "select job, sum(case when kind = 'skew' then end_ps - start_ps else 0 end)::bigint as skew, "
        "sum(case when kind = 'bubble' then end_ps - start_ps else 0 end)::bigint as bubble "
        "from segments group by job, stage, rank"
    ).to_pylist()
    for row in waits:
        for ps in (row["skew"], row["bubble"], row["skew"] + row["bubble"]):
            found |= {amount(ps, "ps"), amount(ps / whole[row["job"]], "share")} if row["job"] in whole else set()
    return found


def _slow_flows(run: Run, page: Element) -> set[str]:
    """Size, time and start of the flows that the page names."""
    found: set[str] = set()
    numbers = re.findall(r"flow (\d+), queue pair", page.text)
    if not numbers:
        return found
    end_ps = run.value("simulated_ps") or 0
    for row in run.query(f"select * from flows where flow in ({', '.join(numbers)})").to_pylist():  # noqa: S608 - digits
        took = (end_ps if row["delivered_ps"] is None else row["delivered_ps"]) - row["start_ps"]
        found |= {amount(took, "ps"), amount(row["start_ps"], "ps"), _as_in_a_scenario(row["size_bytes"], SIZE)}
    return found
