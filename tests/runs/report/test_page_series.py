"""Recorded series: each one is drawn, several runs share the axes, and what is not drawn is said."""

from __future__ import annotations

import re

import pytest
from helpers.gallery import Gallery
from helpers.pages import Page, plain, simulated

from weftwork.report.page_series import series_section
from weftwork.store.runs import Run


def recorded(gallery: Gallery, record: str, *, control: str = "dcqcn") -> Run:
    """The incast, of which something is recorded."""
    keys = {"engine.record": record, "transport.congestion_control": control}
    run: Run = gallery("incast", overrides=keys)
    return run


def titles(html: str) -> list[str]:
    return re.findall(r"<figcaption>(.*?)(?: <small>.*?)?</figcaption>", html)


def named(html: str, title: str) -> list[str]:
    """Lines of a chart, by its legend."""
    (chart,) = (one for one in html.split("<figure>") if one.startswith(f"<figcaption>{title}"))
    keys = chart.partition('<div class="plot')[0]
    return re.findall(r"</svg>(.*?)</span>", keys)


def test_a_run_that_recorded_nothing_has_no_section(gallery: Gallery) -> None:
    assert series_section([("", gallery("short-incast"))]) is None


def test_rate_state_and_queue_have_a_chart_each(gallery: Gallery) -> None:
    record = "{flows: [0, 2], ports: [leaf0->host0], every: 1us, state: [alpha, target_bps]}"
    run = recorded(gallery, record)
    section = series_section([("", run)])
    assert section is not None
    assert titles(section.content) == ["Rate", "Window", "alpha", "target_bps", "Queue"]
    for title in ("Rate", "alpha", "target_bps"):
        assert [name.partition(",")[0] for name in named(section.content, title)] == ["flow 0", "flow 2"]
    assert named(section.content, "Queue") == ["leaf0-&gt;host0"]
    assert "No window limits the 2 recorded flows." in plain(section.content)
    assert "2 flows and the queue of 1 port" in section.lead


def test_the_ends_of_a_line_are_the_ends_of_the_samples(gallery: Gallery) -> None:
    run = recorded(gallery, "{ports: [leaf0->host0], every: 1us}")
    samples = run.query("select max(value) as most, max(at_ps) as last from series").to_pylist()[0]
    section = series_section([("", run)])
    assert section is not None
    (path,) = re.findall(r'<path class="s c1"[^>]* d="(M[^"]*)"/>', section.content.partition('<div class="plot')[2])
    points = [tuple(map(float, point.split())) for point in path[1:].split("L")]
    assert points[-1][0] == 1000
    top = min(y for _, y in points)
    assert top == pytest.approx(1000 * (1 - 1 / 1.06), abs=0.1)
    assert samples["most"] > 0
    assert samples["last"] > 0


def test_two_runs_share_one_chart_of_each_quantity(gallery: Gallery) -> None:
    record = "{flows: [0, 1], ports: [leaf0->host0], every: 1us}"
    both = [
        ("A", recorded(gallery, record)),
        ("B", recorded(gallery, record, control="fixed-window")),
    ]
    section = series_section(both)
    assert section is not None
    assert titles(section.content) == ["Rate", "Window", "Queue"]
    assert named(section.content, "Queue") == ["A: leaf0-&gt;host0", "B: leaf0-&gt;host0"]
    assert [name.partition(",")[0] for name in named(section.content, "Rate")] == [
        "A: flow 0", "A: flow 1", "B: flow 0", "B: flow 1",
    ]  # fmt: skip
    assert "No window limits the 2 recorded flows of A." in plain(section.content)
    colours = re.findall(r'<path class="s (c\d)" stroke-dasharray="([^"]*)" d="M\d', section.content)
    assert len({colour for colour, _ in colours}) == 2


def test_what_one_of_two_runs_did_not_record_is_said(gallery: Gallery) -> None:
    both = [
        ("A", recorded(gallery, "{flows: [0], every: 1us, state: [alpha]}")),
        ("B", recorded(gallery, "{ports: [leaf0], every: 1us}", control="fixed-window")),
    ]
    section = series_section(both)
    assert section is not None
    text = plain(Page(f"<div>{section.content}</div>").text)
    assert "Not recorded in B." in text
    assert "Not recorded in A." in text
    assert "A: 1 flow; B: the queues of" in section.lead


def test_many_flows_are_drawn_by_their_mean_and_range_and_as_thin_lines(gallery: Gallery) -> None:
    run = simulated(
        gallery, "traffic: {pattern: all-to-all, size: 64KB}\nengine: {record: {flows: all, ports: all, every: 1us}}"
    )
    section = series_section([("", run)])
    assert section is not None
    flows = len(run.query("select distinct queue_pair from flows"))
    assert flows > 8
    assert named(section.content, "Window") == [f"mean of {flows} flows"]
    chart = next(one for one in section.content.split("<figure>") if one.startswith("<figcaption>Window"))
    assert chart.count('<path class="thin') == flows
    assert chart.count('<path class="a c1"') == 1
    assert "the band is their range" in chart
    longest = named(section.content, "Queue")
    assert len(longest) == 8
    assert longest[-1].startswith("longest of")


def test_a_port_without_a_queue_is_named_and_not_drawn(gallery: Gallery) -> None:
    run = recorded(gallery, '{ports: ["leaf0->host0", "leaf0->host1"], every: 1us}')
    section = series_section([("", run)])
    assert section is not None
    assert named(section.content, "Queue") == ["leaf0-&gt;host0"]
    assert "The queue of 1 recorded port was always empty: leaf0->host1." in plain(
        Page(f"<div>{section.content}</div>").text
    )
