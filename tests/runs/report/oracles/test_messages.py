"""What a page and an answer say of messages, computed again from the tables of the run.

Three runs: one pauses and marks, one drops, one was stopped with messages under way.
"""

from __future__ import annotations

import json
import re
from base64 import b64decode
from collections.abc import Iterator
from dataclasses import dataclass
from io import StringIO
from typing import Any

import numpy as np
import pytest
from helpers.gallery import Gallery
from helpers.message_facts import Facts
from helpers.message_runs import MESSAGE_RUNS, STOPPED_PS, message_run
from helpers.shown import (
    charts,
    columns,
    is_shown,
    is_told,
    printed,
    prose,
    rows,
    section,
    three_lines,
    told,
    value_of,
    wrong,
)  # fmt: skip
from numpy.typing import NDArray
from rich.console import Console

from weftwork.report.answer import print_answer
from weftwork.report.page import run_page
from weftwork.store.runs import Run

PS = 1e12


@pytest.fixture(scope="module", params=MESSAGE_RUNS)
def run(request: pytest.FixtureRequest, gallery: Gallery) -> Run:
    return message_run(gallery, request.param)


@pytest.fixture(scope="module")
def page(run: Run) -> str:
    return run_page(run)


@pytest.fixture(scope="module")
def terminal(run: Run) -> str:
    print_answer(run, console := Console(width=200, record=True, file=StringIO()))
    return console.export_text()


def slack_of(run: Run) -> float:
    """A run that was stopped counts its utilisation until the last arrival, a little before where it stopped."""
    return 0.004 if run.status == "stopped" else 0.0


@pytest.fixture(scope="module")
def facts(run: Run) -> Facts:
    return Facts(run)


def test_the_runs_are_what_the_oracles_need(run: Run, facts: Facts) -> None:
    lengths = np.diff(facts.edges_ps)
    assert lengths[-1] < 0.9 * lengths[0]
    assert len(set(facts.links["rate_bps"])) == 2
    assert len(set(facts.size_bytes)) > 20
    marks, pauses, drops = (int(facts.links[name].sum()) for name in ("marks", "pauses_sent", "drops"))
    kind = run.path.name
    assert (marks > 0, pauses > 0) == ((True, True) if kind == "paused" else (False, kind == "stopped"))
    assert (drops > 0) == (kind != "stopped")
    assert (not facts.done.all()) == (kind == "stopped")


def quantiles(values: NDArray[np.float64]) -> dict[str, float]:
    return {
        name: float(np.quantile(values, at))
        for name, at in (("p50", 0.5), ("p95", 0.95), ("p99", 0.99), ("p99.9", 0.999))
    }


@pytest.mark.parametrize("where", ["page", "terminal"])
def test_the_sentences_of_an_answer(run: Run, facts: Facts, page: str, terminal: str, where: str) -> None:
    part = section(page, "answer")
    text = part.text if where == "page" else " ".join(terminal.split())
    lines = three_lines(part if where == "page" else terminal)
    posted, done = len(facts.flows["flow"]), int(facts.done.sum())
    pairs: list[tuple[str, str, float | None]] = []
    payload = float(facts.size_bytes.sum())
    if facts.done.all():
        took, size, rate = told(lines["took"], "{}: {} of payload at {} in total")
        pairs += [("took", took, facts.took_ps), ("payload", size, payload)]
        pairs.append(("goodput", rate, payload * 8 * PS / facts.took_ps))
        assert "flows completed" not in text
    else:
        (until,) = told(lines["took"], "PARTIAL: stopped at engine.until, {} of simulated time, with work left")
        first, second = told(text, "{} of {} flows completed")
        pairs += [("until", until, STOPPED_PS), ("completed", first, done), ("flows", second, posted)]
    which = "Flows" if facts.done.all() else "The flows that completed"
    half, most, slow, slowest = told(text, f"{which} took {{}} (p50) and {{}} (p99): {{}} and {{}} times as long")
    times, ratios = quantiles(facts.fct_ps), quantiles(facts.slowdown)
    pairs += [("p50", half, times["p50"]), ("p99", most, times["p99"])]
    pairs += [("slowdown p50", slow, ratios["p50"]), ("slowdown p99", slowest, ratios["p99"])]
    drops = facts.totals("drop")
    if drops:
        lost, again = told(text, "{} packets were lost (")[0], told(text, "); {} packets were sent again.")[0]
        inside = re.search(r"packets were lost \((.*?)\)", text)
        assert inside
        reasons = {part.rpartition(" ")[0]: part.rpartition(" ")[2] for part in inside[1].split(", ")}
        assert {name: value_of(count) for name, count in reasons.items()} == {
            name.replace("_", " "): count for name, count in drops.items()
        }
        pairs += [("lost", lost, sum(drops.values())), ("again", again, sum(facts.totals("retransmission").values()))]
    else:
        assert "Nothing was lost." in text
    pauses, paused_ps = int(facts.links["pauses_sent"].sum()), float(facts.links["paused_ps"].sum())
    if pauses:
        count, stood = told(text, "PFC asked for a pause {} times, and ports were paused for {} in total")
        pairs += [("pauses", count, pauses), ("paused", stood, paused_ps)]
    else:
        assert "Nobody was paused" in text
    if marks := int(facts.links["marks"].sum()):
        pairs.append(("marks", told(text, "ECN marked {} packets")[0], marks))
    else:
        assert "nothing was marked" in text
    rows_ = [row for row in run.table("events").to_pylist() if row["event"] == "fault"]
    happened = [(row["place"], row["detail"], row["at_ps"]) for row in rows_]
    # what the third line says of a fault is not said again below it
    blamed = lines["to blame"]
    below = [one for one in happened if f"{one[0]} (faults." not in blamed or "and more" in blamed]
    for name, what, at_ps in below:
        pairs.append((f"{name} {what}", told(text, f"{name} {what} at {{}}")[0], at_ps))
    assert ("Faults: " in text) == bool(below)
    assert wrong(pairs) == []


def test_what_the_answer_leaves_to_the_list_of_numbers(facts: Facts, page: str) -> None:
    shown = {row["number"]: row["value"] for row in rows(section(page, "provenance"), "number")}
    payload = float(facts.size_bytes.sum())
    wanted = {
        "flows": len(facts.flows["flow"]), "flows completed": int(facts.done.sum()), "payload": payload,
        "goodput": payload * 8 * PS / facts.took_ps, "FCT p95": quantiles(facts.fct_ps)["p95"],
        "FCT p99.9": quantiles(facts.fct_ps)["p99.9"], "slowdown p95": quantiles(facts.slowdown)["p95"],
        "slowdown p99.9": quantiles(facts.slowdown)["p99.9"],
    }  # fmt: skip
    assert wrong([(name, shown[name], value) for name, value in wanted.items()]) == []


@pytest.mark.parametrize("where", ["page", "terminal"])
def test_who_is_to_blame(run: Run, facts: Facts, page: str, terminal: str, where: str) -> None:
    """The culprit of the folder; its cost is that of the flow that it names, or of a run without it."""
    line = three_lines(section(page, "answer") if where == "page" else terminal)["to blame"]
    assert run.answer is not None
    culprit = run.answer.culprit
    assert line.startswith(culprit.name)
    marked = [one.text for one in section(page, "answer").all("b", kind="culprit")]
    assert marked == ([] if culprit.kind == "unknown" else [culprit.name])
    if not facts.done.all():
        assert is_shown(told(line, "engine.until cut the run at {}, before its end")[0], run.value("simulated_ps"))
        return
    cost, share = told(line, ": {}, {}")[:2] if culprit.how == "simulated" else told(line, ": {}, {} of the time of")
    if culprit.how == "recorded":
        source, _, destination = told(line, "of the flow {w}, a victim of the pauses")[0].partition("->")
        mine = (facts.flows["source"] == source) & (facts.flows["destination"] == destination)
        took, ideal = (facts.flows[name][mine].astype(float) for name in ("fct_ps", "ideal_fct_ps"))
        lost = (took - ideal) / took
        worst = int(lost.argmax())
        assert wrong([("cost", cost, float((took - ideal)[worst])), ("share", share, float(lost[worst]))]) == []
    else:
        assert wrong([("cost", cost, (culprit.cost_s or 0) * PS), ("share", share, culprit.cost_share)]) == []
        assert culprit.cost_share == pytest.approx((culprit.cost_s or 0) * PS / facts.took_ps)


def test_the_bottleneck_is_the_busiest_link(facts: Facts, page: str, terminal: str) -> None:
    order = np.lexsort((facts.links["port"], -facts.links["utilisation"]))
    first, second = order[:2]
    names, share = facts.links["name"], facts.links["utilisation"]
    for found in (terminal, section(page, "answer")):
        name, used = told(three_lines(found)["limited by"], "{w}, in use {} of the time")
        assert (name, is_shown(used, share[first])) == (names[first], True)
    assert (name, is_shown(used, share[first])) == (names[first], True)
    kind = f"{facts.role[facts.links['node'][first]]} \u2192 {facts.role[facts.links['peer'][first]]}"
    text = section(page, "links").text
    assert f"{names[first]} ({kind})" in text
    if share[first] >= 0.85:
        (used,) = told(text, f"The bottleneck was {names[first]} ({kind}): it was in use {{}} of the time")
        assert (f"far more than the next, {names[second]}" in text) == (share[second] < 0.75 * share[first])
    elif share[first] >= 0.5:
        (used,) = told(text, f"The busiest link, {names[first]} ({kind}), was in use {{}} of the time.")
    else:
        (used,) = told(text, f"the busiest link, {names[first]} ({kind}), was in use only {{}} of the time")
    assert is_shown(used, share[first])


def test_the_tiles(facts: Facts, page: str) -> None:
    shown = {one.all("span")[0].text: one.all("b")[0].text for one in section(page, "answer").all(kind="tile")}
    links = facts.links
    wanted = {
        "completion time": facts.took_ps,
        "goodput, all together": float(facts.size_bytes.sum()) * 8 * PS / facts.took_ps,
        "completion time of flows, p99": quantiles(facts.fct_ps)["p99"],
        "slowdown, p99": quantiles(facts.slowdown)["p99"],
        "busiest link in use": float(links["utilisation"].max()),
        "longest queue": float(links["max_queue_bytes"].max()),
        "ECN marks": int(links["marks"].sum()),
        "pause frames": int(links["pauses_sent"].sum()),
        "packets lost": sum(facts.totals("drop").values()),
        "packets sent again": sum(facts.totals("retransmission").values()),
    }
    lines, said = three_lines(section(page, "answer")), prose(section(page, "answer"))
    above = f"{lines['took']}; {lines['limited by']}; {said}"
    names = ("completion time", "goodput, all together", "completion time of flows, p99", "busiest link in use")
    assert set(shown) == set(wanted) - {name for name in names if is_told(above, wanted[name])} < set(wanted)
    assert wrong([(name, text, wanted[name]) for name, text in shown.items()]) == []


BINS = {
    "up to 10 kB": (0, 10_000), "10 to 100 kB": (10_000, 100_000), "100 kB to 1 MB": (100_000, 1_000_000),
    "1 to 10 MB": (1_000_000, 10_000_000),
}  # fmt: skip


def of_size(facts: Facts, name: str) -> NDArray[np.bool_]:
    low, high = BINS[name]
    return (facts.size_bytes > low) & (facts.size_bytes <= high)


def test_the_table_by_size(facts: Facts, page: str) -> None:
    pairs: list[tuple[str, str, float | None]] = []
    own = facts.size_bytes * 8 * PS / facts.fct_ps
    found = rows(section(page, "times"), "size")
    there = [name for name in BINS if of_size(facts, name).any()]
    assert [row["size"] for row in found] == there
    for row in found:
        mine = of_size(facts, row["size"])
        times, ratios = quantiles(facts.fct_ps[mine]), quantiles(facts.slowdown[mine])
        wanted = {
            "flows": int(mine.sum()), "p50": times["p50"], "p99": times["p99"], "p99.9": times["p99.9"],
            "slowdown p50": ratios["p50"], "p99 2": ratios["p99"], "p99.9 2": ratios["p99.9"],
            "mean goodput": float(own[mine].mean()),
        }  # fmt: skip
        assert set(row) == {"size", *wanted}
        pairs += [(f"{row['size']} {name}", row[name], value) for name, value in wanted.items()]
    assert wrong(pairs) == []


def test_the_tables_of_links(facts: Facts, page: str, terminal: str) -> None:
    links = facts.links
    kept = [int(at) for at in np.lexsort((links["port"], -links["utilisation"])) if links["bytes"][at] > 0]
    pairs: list[tuple[str, str, float | None]] = []
    limit = three_lines(terminal)["limited by"]
    assert limit.startswith(f"{links['name'][kept[0]]}, in use ")  # no two ports are alike, and it has no row below
    shown = printed(terminal, "next busiest links")
    assert [row["next busiest links"] for row in shown] == [links["name"][at] for at in kept[1:6]]
    wanted_bps = {at: facts.mean_bps(at, 0.0, facts.end_ps) for at in kept}
    for at in kept:
        assert links["mean_rate_bps"][at] == pytest.approx(wanted_bps[at], rel=1e-6)
    names = {
        "rate": "mean_rate_bps",
        "in use": "utilisation",
        "longest queue": "max_queue_bytes",
        "marks": "marks",
        "drops": "drops",
    }
    for row, at in zip(shown, kept[1:], strict=False):
        pairs += [
            (f"{row['next busiest links']} {name}", row[name], float(links[column][at]))
            for name, column in names.items()
        ]
    hot = rows(section(page, "fabric"), "busiest links")
    once = list({links["link"][at]: at for at in reversed(kept)}.values())[::-1]  # the busier direction of each
    kept = sorted(once, key=kept.index)[:5]
    wanted_names = [f"{number} {links['name'][at]}" for number, at in enumerate(kept, 1)]
    assert [row["busiest links"] for row in hot] == wanted_names
    names["was paused"] = "paused_ps"
    for row, at in zip(hot, kept, strict=False):
        assert set(row) == {"busiest links", *names}
        pairs += [
            (f"{row['busiest links']} {name}", row[name], float(links[column][at])) for name, column in names.items()
        ]
    if links["paused_ps"].any():
        other = {at: next(b for b in range(len(links["port"])) if links["link"][b] == links["link"][at] and b != at)
                 for at in range(len(links["port"]))}  # fmt: skip
        order = [int(at) for at in np.lexsort((links["port"], -links["paused_ps"])) if links["paused_ps"][at] > 0]
        shown = printed(terminal, "paused longest")
        assert [row["paused longest"] for row in shown] == [links["name"][at] for at in order[:3]]
        for row, at in zip(shown, order, strict=False):
            pairs += [("paused for", row["for"], float(links["paused_ps"][at]))]
            pairs += [("asked", row["pause frames"], int(links["pauses_sent"][other[at]]))]
    else:
        assert "paused longest" not in terminal
    assert wrong(pairs) == []


def test_the_distributions(facts: Facts, page: str) -> None:
    found = {chart.heading: chart for chart in charts(section(page, "times"))}
    for heading, values in (("Completion time of flows", facts.fct_ps), ("Slowdown of flows", facts.slowdown)):
        chart = found[heading]
        half, tail, most = told(chart.label, ": all flows: p50 {}, p95 {}, p99 {}")
        at = quantiles(values)
        assert wrong([("p50", half, at["p50"]), ("p95", tail, at["p95"]), ("p99", most, at["p99"])]) == []
        (shares,) = chart.lines.values()
        for within, share in zip(chart.until, shares, strict=True):
            limit = value_of(within.removeprefix("within "))
            low, high = ((values <= limit * factor).mean() for factor in (0.994, 1.006))
            assert low - 0.006 <= value_of(share) <= high + 0.006, (heading, within, share)


def test_how_busy_links_were_over_time(run: Run, facts: Facts, page: str) -> None:
    part = section(page, "links")
    found = charts(part)
    directions = {
        f"{facts.role[a]} \u2192 {facts.role[b]}" for a, b in zip(facts.links["node"], facts.links["peer"], strict=True)
    }
    assert {chart.label.partition(".")[0].removeprefix("Utilisation, ") for chart in found} == directions
    (width,) = told(part.text, "in steps of {}.")
    assert is_shown(width, float(np.diff(facts.edges_ps)[0]))
    pairs: list[tuple[str, str, float | None]] = []
    for chart in found:
        name = chart.label.partition(".")[0].removeprefix("Utilisation, ")
        ports = facts.direction(name)
        shares = facts.shares(ports)
        rates = facts.links["rate_bps"][ports]
        (rate,) = told(chart.heading, f"{name} {len(ports)} links of {{}}")
        pairs.append((f"{name} rate", rate, float(rates.mean())))
        pairs += [(f"{name} until", text.removeprefix("until "), float(edge))
                  for text, edge in zip(chart.until, facts.edges_ps[1:], strict=True)]  # fmt: skip
        for line, values in (("mean of all links", shares.mean(axis=0)), ("busiest at each time", shares.max(axis=0))):
            shown = chart.lines[line]
            pairs += [(f"{name} {line} {place}", text, float(value))
                      for place, (text, value) in enumerate(zip(shown, values, strict=True))]  # fmt: skip
            (most,) = told(chart.label, f"{line}: at most {{}}")
            pairs.append((f"{name} {line} at most", most, float(values.max())))
    assert wrong(pairs, slack_of(run)) == []


def test_the_heat_maps(facts: Facts, page: str) -> None:
    part = section(page, "links")
    for cells in part.all(kind="cells"):
        names = json.loads(cells.attributes["data-rows"])
        bins, high = int(cells.attributes["data-bins"]), float(cells.attributes["data-high"])
        ports = np.array([facts.port[name] for name in names])
        shares = facts.shares(ports)
        assert sorted(names) == sorted(facts.links["name"][facts.direction(_kind(facts, int(ports[0])))])
        assert (np.diff(shares.mean(axis=1)) <= 1e-12).all()  # the busiest on top
        drawn = np.frombuffer(b64decode(cells.attributes["data-shares"]), np.uint8).reshape(len(names), bins)
        levels = int(np.ceil(drawn.max() / max(float(np.minimum(shares / high, 1).max()), 1e-9)))
        assert np.abs(drawn / levels - np.minimum(shares / high, 1.0)).max() <= 1.5 / levels
        assert is_shown(
            cells.attributes["data-bin"].replace("\u202f", " ").replace("\u00b5", "u"),
            float(np.diff(facts.edges_ps)[0]),
        )


def _kind(facts: Facts, port: int) -> str:
    return f"{facts.role[facts.links['node'][port]]} \u2192 {facts.role[facts.links['peer'][port]]}"


def test_queues_pauses_marks_and_drops_over_time(facts: Facts, page: str) -> None:
    found = {chart.label.partition(".")[0]: chart for chart in charts(section(page, "queues"))}
    every = np.arange(len(facts.links["port"]))
    lengths = np.diff(facts.edges_ps)
    pairs: list[tuple[str, str, float | None]] = []
    queues = {
        _kind(facts, port): facts.by_bin("queue_bytes", facts.direction(_kind(facts, port))).max(axis=0)
        for port in every
    }
    longest = max(values.max() for values in queues.values())
    shown = found.pop("Longest queue")
    assert set(shown.lines) == {name for name, values in queues.items() if values.max() > 0.01 * longest}
    for name, texts in shown.lines.items():
        pairs += [(f"queue {name} {place}", text, float(queues[name][place])) for place, text in enumerate(texts)]
    wanted = {
        "PFC pause frames, in each step": facts.by_bin("pauses", every).sum(axis=0),
        "Paused ports, mean of each step": facts.by_bin("paused_ps", every).sum(axis=0) / lengths,
        "ECN marks, in each step": facts.by_bin("marks", every).sum(axis=0),
        "Dropped packets, in each step": facts.by_bin("drops", every).sum(axis=0),
    }
    assert set(found) == {name for name, values in wanted.items() if values.any()}
    for name, chart in found.items():
        (texts,) = chart.lines.values()
        pairs += [
            (f"{name} {place}", text, float(value))
            for place, (text, value) in enumerate(zip(texts, wanted[name], strict=True))
        ]
    assert wrong(pairs) == []
    text = section(page, "queues").text
    for what in ("PFC pause frames", "ECN marks", "dropped packets"):
        is_absent = not any(one.lower().startswith(what.lower()) for one in found)
        assert (what in text.partition(".")[0] and "There were no" in text) == is_absent


def test_the_slowest_flows(facts: Facts, page: str, run: Run) -> None:
    flows = facts.flows
    end_ps = float(run.summary["simulated_ps"]["value"])
    ideal = flows["ideal_fct_ps"].astype(float)
    took = np.where(facts.done, flows["delivered_ps"].astype(float), end_ps) - flows["start_ps"]
    slowdown = np.where(facts.done, took / ideal, np.nan)
    open_ones = [int(at) for at in np.lexsort((flows["flow"], flows["start_ps"])) if not facts.done[at]][:5]
    slow_ones = [int(at) for at in np.lexsort((flows["flow"], -took, -slowdown)) if facts.done[at]][
        : 10 - len(open_ones)
    ]
    shown = {int(told(facts_[-1], "flow {}, queue")[0]): (name, facts_) for name, facts_ in _flows(page)}
    assert set(shown) == {*open_ones, *slow_ones}
    pairs: list[tuple[str, str, float | None]] = []
    for flow, (name, (size, time, *ratio, posted, numbers)) in shown.items():
        assert name == f"{flows['source'][flow]} \u2192 {flows['destination'][flow]}"
        assert numbers == f"flow {flow}, queue pair {flows['queue_pair'][flow]:.0f}"
        assert value_of(size) == pytest.approx(flows["size_bytes"][flow])
        pairs.append((f"flow {flow} posted", posted.removeprefix("posted at "), float(flows["start_ps"][flow])))
        pairs.append((f"flow {flow} took", time.removeprefix("not done after "), float(took[flow])))
        assert time.startswith("not done after ") == (not facts.done[flow])
        assert len(ratio) == int(facts.done[flow])
        pairs += [(f"flow {flow} slowdown", one.removeprefix("slowdown "), float(slowdown[flow])) for one in ratio]
    assert wrong(pairs) == []
    order = [flow for flow in shown if facts.done[flow]]
    first = order[0]  # of those that tell one story together the first leads
    assert slowdown[first] == max(slowdown[flow] for flow in order)


def _flows(page: str) -> Iterator[tuple[str, list[str]]]:
    """Name and facts of every flow that is told, by itself or with others of the same story."""
    for card in section(page, "slow").all("article", kind="flow"):
        for head in card.all(kind="head"):
            name = head.all("h3")[0].text.partition(". ")[2]
            yield name, [one.text for one in head.all("span")]
        for line in card.all("details"):
            for one in line.all("li"):
                name = one.all("b")[0].text
                told_, _, rest = one.text.removeprefix(name).strip().partition(", flow ")
                yield name, [*told_.split(", "), f"flow {rest.partition('.')[0]}"]


@dataclass(frozen=True, kw_only=True)
class Story:
    """What the reasons of one slow flow are computed from: its time, its ports, and who else was there."""

    facts: Facts
    flow: int
    pair: int
    start_ps: float
    begun_ps: float  # when its queue pair was free for it
    end_ps: float
    behind: int
    share: dict[int, float]  # port to share of its packets
    queue_bytes: dict[int, float]
    there: dict[int, set[float]]  # port to queue pairs

    @classmethod
    def of(cls, facts: Facts, paths: dict[str, NDArray[Any]], flow: int, until_ps: float) -> Story:
        flows, pair = facts.flows, facts.flows["queue_pair"][flow]
        start = float(flows["start_ps"][flow])
        free = np.where(facts.done, flows["delivered_ps"].astype(float), until_ps)
        waiting = (flows["queue_pair"] == pair) & (flows["flow"] < flow) & (free > start)
        mine = paths["queue_pair"] == pair
        ports = [int(port) for port in paths["port"][mine]]
        packets, queue = paths["packets"][mine], paths["mean_queue_bytes"][mine]
        return cls(
            facts=facts, flow=flow, pair=int(pair), start_ps=start, end_ps=float(free[flow]), behind=int(waiting.sum()),
            begun_ps=min(float(free[waiting].max(initial=start)), float(free[flow])),
            share=dict(zip(ports, (packets / packets.max()).tolist(), strict=True)),
            queue_bytes=dict(zip(ports, queue.tolist(), strict=True)),
            there={port: set(paths["queue_pair"][paths["port"] == port].tolist()) for port in ports},
        )  # fmt: skip

    @property
    def took_ps(self) -> float:
        return self.end_ps - self.start_ps

    def rate_bps(self, port: int) -> float:
        return self.facts.mean_bps(port, self.begun_ps, self.end_ps)

    def at_its_rate_ps(self, port: int, size_bytes: float) -> float:
        """Time that bytes take at the rate that the link had, at most that of the flow."""
        whole, rate = self.end_ps - self.begun_ps, self.rate_bps(port)
        if not rate:
            return whole if size_bytes else 0.0
        return min(size_bytes * 8 * PS / rate, whole)

    def wait_ps(self, port: int) -> float:
        return self.at_its_rate_ps(port, self.queue_bytes[port])

    def inside(self) -> NDArray[np.float64]:
        """Share of each bin in which the flow was under way."""
        edges = self.facts.edges_ps
        both = np.minimum(edges[1:], self.end_ps) - np.maximum(edges[:-1], self.begun_ps)
        return np.clip(both, 0, None) / np.diff(edges)

    def busy_ps(self, port: int) -> float:
        nominal_ps = float((self.facts.sending_ps(port) * self.inside()).sum())
        return self.at_its_rate_ps(port, nominal_ps * float(self.facts.links["rate_bps"][port]) / (8 * PS))

    def others_ps(self, port: int) -> float:
        own = self.at_its_rate_ps(port, self.share[port] * float(self.facts.flows["wire_bytes"][self.flow]))
        return self.busy_ps(port) - min(own, self.busy_ps(port))

    def paused_ps(self, port: int) -> float:
        paused = float((self.facts.by_bin("paused_ps", np.array([port]))[0] * self.inside()).sum())
        return min(paused, self.end_ps - self.begun_ps - self.busy_ps(port))

    def sharers(self, port: int) -> int:
        """Other queue pairs that took the port while the flow was under way."""
        flows = self.facts.flows
        free = np.where(self.facts.done, flows["delivered_ps"].astype(float), self.end_ps + 1)
        both = (flows["start_ps"] < self.end_ps) & (free > self.begun_ps) & (flows["queue_pair"] != self.pair)
        return len(set(flows["queue_pair"][both].tolist()) & self.there[port])


def behind(story: Story, text: str) -> list[tuple[str, str, float | None]]:
    count, waited = told(text, "behind {} message")[0], told(text, "It waited {} (")[0]
    return [("behind", count, story.behind), ("waited", waited, story.begun_ps - story.start_ps)]


def paused(story: Story, text: str) -> list[tuple[str, str, float | None]]:
    peer, name, stood, part = told(text, "{w} paused {w} for {} ({} of its time).")
    port = story.facts.port[name]
    assert story.facts.nodes["name"][int(story.facts.links["peer"][port])] == peer
    wanted = story.paused_ps(port)
    return [("paused", stood, wanted), ("of its time", part, wanted / story.took_ps)]


def queued(story: Story, text: str) -> list[tuple[str, str, float | None]]:
    name, size, waited = told(text, "Queued at {w}: a packet found {} ahead on average, {} of waiting")
    port = story.facts.port[name]
    weights = {at: story.wait_ps(at) * story.share[at] for at in story.share}
    assert weights[port] == max(weights.values())
    pairs: list[tuple[str, str, float | None]] = [("waiting", waited, story.wait_ps(port))]
    pairs.append(("queue", size, story.queue_bytes[port]))
    assert ("of all queueing" in text) == (len(weights) > 1)
    if len(weights) > 1:
        (share,) = told(text, "of waiting, {} of all queueing")
        pairs.append(("of all queueing", share, weights[port] / sum(weights.values())))
    return pairs


def collided(story: Story, text: str) -> list[tuple[str, str, float | None]]:
    name, spent, part = told(text, "{w} sent other traffic for {} ({} of its time)")
    port = story.facts.port[name]
    others = story.others_ps(port)
    assert others == pytest.approx(max(story.others_ps(at) for at in story.share))
    pairs: list[tuple[str, str, float | None]] = [("others", spent, others)]
    pairs.append(("of its time", part, min(others / story.took_ps, 1.0)))
    if "the flow collided there with" in text:
        pairs.append(
            ("collided with", told(text, "the flow collided there with {} other flow")[0], story.sharers(port))
        )
    return pairs


def shared(story: Story, text: str) -> list[tuple[str, str, float | None]]:
    count, name = told(text, "{} other flow")[0], told(text, " on {w} at the same time")[0]
    return [("on it", count, story.sharers(story.facts.port[name]))]


REASONS = {
    "It waited": behind, "sent other traffic for": collided, "Queued at": queued, " paused ": paused,
    "at the same time": shared,
}  # fmt: skip


def test_why_the_slowest_were_slow(facts: Facts, page: str, run: Run) -> None:
    """The numbers of the reasons: pauses and others by overlap with the bins, queues by what was seen on the way."""
    paths = columns(run.path, "paths")
    pairs: list[tuple[str, str, float | None]] = []
    met: set[str] = set()
    for card in section(page, "slow").all("article", kind="flow"):
        for head in card.all(kind="head"):
            (flow,) = told(head.text, "flow {}, queue pair")
            story = Story.of(facts, paths, int(flow), float(run.summary["simulated_ps"]["value"] or 0))
            for one in card.all("ul")[0].all("li"):
                kind = next((words for words in REASONS if words in one.text), None)
                if kind is not None:
                    met.add(kind)
                    pairs += [(f"flow {flow} {name}", *rest) for name, *rest in REASONS[kind](story, one.text)]
    assert met >= {"sent other traffic for", "Queued at"} | ({" paused "} if run.path.name != "dropped" else set())
    assert wrong(pairs, slack_of(run)) == []


def test_every_number_stands_in_the_list_with_its_meaning(page: str, run: Run) -> None:
    found = rows(section(page, "provenance"), "number")
    summary = json.loads((run.path / "summary.json").read_text())["numbers"]
    assert len(found) == len(summary)
    assert [row["meaning"] for row in found] == [number["text"] for number in summary.values()]
    assert (
        wrong(
            [
                (row["number"], row["value"], number["value"])
                for row, number in zip(found, summary.values(), strict=True)
            ]
        )
        == []
    )
