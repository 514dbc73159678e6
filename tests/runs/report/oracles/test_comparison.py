"""What the comparison of two runs says, on the page and in the terminal, computed again from both folders.

The runs differ in every column that is shown, so that A for B, or one column for another, cannot go unseen.
"""

from __future__ import annotations

import json
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
import yaml
from helpers.gallery import Gallery
from helpers.run_folders import ABOUT, ANSWER, OF_SEVERAL, PROVENANCE, all_tables
from helpers.shown import charts, columns, is_shown, printed, rows, section, three_lines, told, value_of, wrong
from numpy.typing import NDArray

from weftwork.cli import main
from weftwork.store.runs import Run, open_run, write_run, write_run_set
from weftwork.study.results.compare_runs import compare_runs

FABRIC = "topology: leaf-spine, leaves: 2, spines: 2, hosts_per_leaf: 3"
FIRST = f"""schema: 3
name: the first
fabric: {{{FABRIC}, link_rate: 100Gbps, fabric_rate: 40Gbps, switch: {{buffer: 500KB}}}}
transport: {{congestion_control: fixed-window}}
traffic: {{pattern: all-to-all, size: 90KB}}
engine: {{seed: 3}}
"""
SECOND = f"""schema: 3
name: the second
fabric: {{{FABRIC}, link_rate: 50Gbps, fabric_rate: 50Gbps, switch: {{buffer: 200KB}}}}
transport: {{congestion_control: none, flow_control: none, timeout: 150us}}
traffic: {{pattern: all-to-all, size: 60KB, repeat: 2}}
engine: {{seed: 5, record: {{ports: [leaf0]}}}}
faults: [{{at: 30us, link: leaf0-spine1, event: down}}]
"""
GAP_BYTES = 20  # IEEE 802.3
NAMES = ("the first", "the second")


class Pair(NamedTuple):
    first: Run
    second: Run
    page: str
    terminal: str


def compared(folder: Path, first: Run, second: Run) -> Pair:
    out = StringIO()
    with pytest.raises(SystemExit):
        main(["report", str(first.path), str(second.path), "-o", str(folder / "page.html")])
    with redirect_stdout(out), pytest.raises(SystemExit):
        main(["compare", str(first.path), str(second.path)])
    return Pair(first, second, (folder / "page.html").read_text(encoding="utf-8"), out.getvalue())


@pytest.fixture(scope="module")
def pair(gallery: Gallery, tmp_path_factory: pytest.TempPathFactory) -> Pair:
    first, second = gallery.run(FIRST, name="first"), gallery.run(SECOND, name="second")
    return compared(tmp_path_factory.mktemp("pair"), first, second)


@pytest.fixture(scope="module")
def turned(pair: Pair, tmp_path_factory: pytest.TempPathFactory) -> Pair:
    """The same two the other way round."""
    return compared(tmp_path_factory.mktemp("turned"), pair.second, pair.first)


def keys(run: Run) -> dict[str, str]:
    """Dotted keys of the resolved scenario and their texts."""
    found: dict[str, str] = {}

    def walk(path: str, tree: Any) -> None:
        if isinstance(tree, dict) or (isinstance(tree, list) and tree and isinstance(tree[0], dict)):
            items = tree.items() if isinstance(tree, dict) else enumerate(tree)
            for key, value in items:
                walk(f"{path}.{key}" if path else str(key), value)
        else:
            found[path] = str(tree).lower() if isinstance(tree, bool) else str(tree)

    walk("", yaml.safe_load((run.path / "scenario.yaml").read_text()))
    return found


def numbers(run: Run) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = json.loads((run.path / "summary.json").read_text())["numbers"]
    return found


WORDS = {"acks": "ACKs", "cnps": "CNPs", "naks": "NAKs", "fct": "FCT", "jain": "Jain"}


def words(name: str) -> str:
    """How a number of the summary is called."""
    for unit in ("_ps", "_bps", "_bytes"):
        name = name.removesuffix(unit)
    return " ".join(WORDS.get(word, word) for word in name.split("_"))


def test_the_runs_differ_in_every_column(pair: Pair) -> None:
    a, b = numbers(pair.first), numbers(pair.second)
    changed = [name for name in a if a[name]["value"] != b[name]["value"]]
    assert len(changed) > 20
    assert not [name for name in changed if a[name]["value"] == -(b[name]["value"] or 0)]
    assert pair.second.path.name != pair.first.path.name


@pytest.mark.parametrize("where", ["page", "terminal"])
def test_the_keys_that_differ(pair: Pair, where: str) -> None:
    a, b = keys(pair.first), keys(pair.second)
    wanted = {key: (a.get(key), b.get(key)) for key in {*a, *b} if a.get(key) != b.get(key)}
    if where == "page":
        part = section(pair.page, "answer")
        shown = rows(section(pair.page, "scenario"), "key of the scenario")
        found = {row["key of the scenario"]: (row["the first"], row["the second"]) for row in shown}
        none = "\u2013"
        (count,) = told(part.text, "The scenarios differ in {} keys.")
        assert value_of(count) == len(wanted)
    else:
        listed = printed(pair.terminal, "scenario")
        found = {row["scenario"]: (row["the first"], row["the second"]) for row in listed}
        none = "-"
    assert found == {key: tuple(none if text is None else text for text in texts) for key, texts in wanted.items()}


@pytest.mark.parametrize("where", ["page", "terminal"])
def test_the_numbers_that_changed(pair: Pair, where: str) -> None:
    a, b = numbers(pair.first), numbers(pair.second)
    part = section(pair.page, "numbers")
    if where == "page":
        listed = rows(part, "number")
        shown = {row["number"]: (row["the first"], row["the second"], row["change"]) for row in listed}
        text = part.text
    else:
        found = printed(pair.terminal, "number")
        shown = {row["number"]: (row["the first"], row["the second"], row["change"]) for row in found}
        text = pair.terminal
    wanted = {name: (a[name]["value"], b[name]["value"]) for name in a if a[name]["value"] != b[name]["value"]}
    assert list(shown) == [words(name) for name in wanted]
    pairs: list[tuple[str, str, float | None]] = []
    for name, (first, second) in wanted.items():
        cells = shown[words(name)]
        pairs += [(f"{name} A", cells[0], first), (f"{name} B", cells[1], second)]
        change = None if not first or second is None else second / first - 1
        if change is None:
            assert cells[2] in {"-", "\u2013"}
        else:
            pairs.append((f"{name} change", cells[2], change))
            assert cells[2][0] == ("+" if change >= 0 else "-")
    assert wrong(pairs) == []
    (same,) = told(text, "{} other numbers are equal")
    assert value_of(same) == len(set(a) | set(b)) - len(wanted)


@pytest.mark.parametrize("where", ["page", "terminal"])
def test_the_headline_says_which_was_faster(pair: Pair, turned: Pair, where: str) -> None:
    first, second = (numbers(run)["completion_ps"]["value"] for run in pair[:2])
    for one, before, after in ((pair, first, second), (turned, second, first)):
        text = section(one.page, "answer").text if where == "page" else one.terminal
        who, other = ("The second", "the first") if one is pair else ("The first", "the second")
        change = after / before - 1
        if change >= 1:
            factor, now, then = told(text, f"{who} takes {{}} times as long as {other} ({{}} against {{}}).")
            assert is_shown(factor, after / before)
        else:
            way = "more" if change > 0 else "less"
            share, now, then = told(text, f"{who} takes {{}} {way} time than {other} ({{}} against {{}}).")
            assert is_shown(share, abs(change))
        assert wrong([("now", now, after), ("then", then, before)]) == []


def test_both_culprits_are_named(pair: Pair) -> None:
    lines = pair.terminal.splitlines()
    for name, run in zip(("the first", "the second"), pair[:2], strict=True):
        assert run.answer is not None
        line = next(line for line in lines if line.startswith(f"to blame in {name}: "))
        assert line.partition(": ")[2].startswith(run.answer.culprit.name)
    out = StringIO()
    with redirect_stdout(out), pytest.raises(SystemExit):
        main(["compare", str(pair.first.path), str(pair.second.path), "--json"])
    found = json.loads(out.getvalue())
    for place, run in enumerate(pair[:2]):
        known = json.loads((run.path / "summary.json").read_text())["answer"]["culprit"]
        assert found["runs"][place]["answer_culprit"] == known


def test_each_run_is_told_in_its_own_half(pair: Pair) -> None:
    part = section(pair.page, "runs")
    for name, run in zip(NAMES, pair[:2], strict=True):
        (text,) = (one.text for one in part.all("figure") if one.text.startswith(name))
        lines = three_lines(next(one for one in part.all("figure") if one.text == text))
        took, goodput = told(lines["took"], "{}: ")[0], told(lines["took"], "of payload at {} in total")[0]
        assert run.answer is not None
        assert lines["to blame"].startswith(run.answer.culprit.name)
        known = numbers(run)
        assert (
            wrong([(name, took, known["completion_ps"]["value"]), (name, goodput, known["goodput_bps"]["value"])]) == []
        )
    origin = _origin(pair.page)
    for key in ("seed", "digest", "engine", "status"):
        assert origin[key] == tuple(str(run.provenance[key]) for run in pair[:2])
    assert origin["run"] == tuple(run.path.name for run in pair[:2])
    assert origin["wall, s"] == tuple(str(run.provenance["wall_s"]) for run in pair[:2])
    scenarios = [one.text for one in section(pair.page, "provenance").all("pre")]
    assert ["the first" in text for text in scenarios] == [True, False]


def _origin(page: str) -> dict[str, tuple[str, str]]:
    table = section(page, "provenance").all("table")[0]
    cells = [[cell.text for cell in row.all("td")] for row in table.all("tr")]
    return {row[0]: (row[1], row[2]) for row in cells if row}


def test_the_distributions_of_both(pair: Pair) -> None:
    found = {chart.heading: chart for chart in charts(section(pair.page, "times"))}
    for heading, column in (("Completion time of flows", "fct_ps"), ("Slowdown of flows", "slowdown")):
        chart = found[heading]
        for line, run in zip(NAMES, pair[:2], strict=True):
            values = columns(run.path, "flows")[column].astype(float)
            half, _, most = told(chart.label, f"{line}: p50 {{}}, p95 {{}}, p99 {{}}")
            at = np.quantile(values[~np.isnan(values)], [0.5, 0.99])
            assert wrong([("p50", half, at[0]), ("p99", most, at[1])]) == []
            shares = [value_of(text) for text in chart.lines[line]]
            limits = [value_of(text.removeprefix("within ")) for text in chart.until]
            for limit, share in zip(limits, shares, strict=True):
                low, high = ((values <= limit * factor).mean() for factor in (0.994, 1.006))
                assert low - 0.006 <= share <= high + 0.006


def test_the_links_that_changed_most(pair: Pair) -> None:
    used = [dict(zip(found["name"], found["utilisation"], strict=True))
            for found in (columns(run.path, "links") for run in pair[:2])]  # fmt: skip
    change = {name: used[1][name] - used[0][name] for name in used[0].keys() & used[1].keys()}
    shown = rows(section(pair.page, "links"), "links that changed most")
    assert sorted((abs(one) for one in change.values()), reverse=True)[:5] == [
        abs(change[row["links that changed most"]]) for row in shown
    ]
    for row in shown:
        name = row["links that changed most"]
        assert (
            wrong([(name, row["in use, the first"], used[0][name]), (name, row["in use, the second"], used[1][name])])
            == []
        )
        assert value_of(row["change"].removesuffix(" points")) / 100 == pytest.approx(change[name], abs=0.000501)


def over_time(run: Run) -> tuple[NDArray[Any], NDArray[Any], list[str]]:
    """Ends of the bins, shares of the time by port and bin, and the direction of each port."""
    links, nodes, line = (columns(run.path, name) for name in ("links", "nodes", "timeline"))
    length = int((line["at_ps"] - line["start_ps"]).max())
    edges = np.array([*range(0, int(line["at_ps"].max()), length), int(line["at_ps"].max())])
    wire = np.zeros((len(links["port"]), len(edges) - 1))
    np.add.at(wire, (line["port"].astype(int), np.searchsorted(edges, line["at_ps"]) - 1), line["bytes"])
    gap = np.divide(links["frames"] * GAP_BYTES, links["bytes"], out=np.zeros(len(wire)), where=links["bytes"] > 0)
    up = np.tile(np.diff(edges).astype(float), (len(wire), 1))
    events = columns(run.path, "events")
    for event, where, what, at in zip(*(events[one] for one in ("event", "place", "detail", "at_ps")), strict=True):
        if event == "fault":  # a link that goes down and stays down, which is all that happens here
            assert what == "down"
            up[links["link"] == where] *= np.clip((at - edges[:-1]) / np.diff(edges), 0.0, 1.0)
    could = links["rate_bps"][:, None] * up
    sent = wire * (1 + gap[:, None]) * 8e12
    shares = np.divide(sent, could, out=np.zeros_like(sent), where=could > 0)
    kinds = [
        f"{nodes['role'][int(a)]} \u2192 {nodes['role'][int(b)]}"
        for a, b in zip(links["node"], links["peer"], strict=True)
    ]
    return edges, np.minimum(shares, 1.0), kinds


def test_how_busy_the_links_of_both_were(pair: Pair) -> None:
    """Both share an axis: the mean of each of its steps is that of the bytes which the run's own steps had in it."""
    both = [over_time(run) for run in pair[:2]]
    found = {chart.heading: chart for chart in charts(section(pair.page, "links"))}
    end = max(int(edges[-1]) for edges, _, _ in both)
    steps = np.unique(np.linspace(0, end, 241).astype(np.int64))
    pairs: list[tuple[str, str, float | None]] = []
    for name, (edges, shares, kinds) in zip(NAMES, both, strict=True):
        for kind in sorted(set(kinds)):
            mean = shares[[place for place, one in enumerate(kinds) if one == kind]].mean(axis=0)
            busy = [
                sum(share * max(min(b, end_b) - max(a, end_a), 0)
                    for share, end_a, end_b in zip(mean.tolist(), edges[:-1].tolist(), edges[1:].tolist(), strict=True))
                / (b - a)
                for a, b in zip(steps[:-1].tolist(), steps[1:].tolist(), strict=True)
            ]  # fmt: skip
            chart = found[f"Mean utilisation, {kind}"]
            pairs += [(kind, text.removeprefix("until "), float(at))
                      for text, at in zip(chart.until, steps[1:], strict=True)]  # fmt: skip
            pairs += [(f"{name} {kind}", text, value) for text, value in zip(chart.lines[name], busy, strict=True)]
    assert wrong(pairs) == []


def test_the_longest_queues_of_both(pair: Pair) -> None:
    found = {chart.heading: chart for chart in charts(section(pair.page, "queues"))}
    for name, run in zip(NAMES, pair[:2], strict=True):
        line, (_, _, kinds) = columns(run.path, "timeline"), over_time(run)
        for kind in sorted(set(kinds)):
            own = np.isin(line["port"], [place for place, one in enumerate(kinds) if one == kind])
            most = float(line["queue_bytes"][own].max(initial=0))
            shown = found[f"Longest queue, {kind}"].lines[name] if f"Longest queue, {kind}" in found else ("0 B",)
            assert is_shown(max(shown, key=value_of), most)


def test_seeds_that_do_not_touch_are_clear(tmp_path: Path) -> None:
    """Intervals of several seeds, and numbers that only some of them have: made by hand, each case once."""
    for name, low, high in (("first", 10, 12), ("second", 11, 13), ("third", 20, 22)):
        folder = tmp_path / name
        folder.mkdir()
        for seed in (1, 2):
            write_run(
                folder / f"seed-{seed}", scenario=f"name: {name}\n", about=ABOUT, summary={}, answer=ANSWER,
                tables=all_tables(), provenance={**PROVENANCE, "seed": seed},
            )  # fmt: skip
        number = {"value": (low + high) / 2 * 1e6, "unit": "ps", "text": "It.", "low": low * 1e6, "high": high * 1e6,
                  "seeds": 2}  # fmt: skip
        write_run_set(
            folder, scenario=f"name: {name}\n", about={**ABOUT, "name": name}, numbers={"completion_ps": number},
            answer=ANSWER, provenance={**OF_SEVERAL, "seeds": [1, 2]},
        )  # fmt: skip
    first, second, third = (open_run(tmp_path / name) for name in ("first", "second", "third"))

    def clear(a: Run, b: Run) -> bool | None:
        (found,) = compare_runs([a, b]).numbers
        return found.is_clear[1]

    assert [clear(first, second), clear(second, first), clear(first, third), clear(third, first)] == [
        False,
        False,
        True,
        True,
    ]
