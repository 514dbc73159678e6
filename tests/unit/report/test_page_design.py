"""The page of a design: what it says, where its dots are and lead, and what must not be overlooked."""

from __future__ import annotations

import html
import json
import re
from typing import Any

import pytest
from helpers.designs import design_document, fabric
from helpers.pages import Page, plain

from weftwork.report.design_words import design_verdict
from weftwork.report.figures.front import FrontDot, FrontLimit, front_chart
from weftwork.report.page_design import design_page

RESUME = "weftwork design 'tiny <job>.yaml' -o 'runs/a design'"


def page_of(document: dict[str, Any], scenarios: dict[str, str] | None = None) -> str:
    given = {one["name"]: f"schema: 3 # <{one['name']}>" for one in document["candidates"]}
    return design_page(document, "runs/a design", RESUME, given if scenarios is None else scenarios)


def text_of(page: str) -> str:
    body = page[page.index("<main>") : page.index("<script>")]
    text: str = plain(html.unescape(re.sub(r"<[^>]*>", " ", body)))
    return text


def test_the_page_says_what_to_take_what_each_costs_and_why_others_lose() -> None:
    text = text_of(page_of(design_document()))
    for said in (
        "Take f002: rail-only, <f002>, 400 Gbps. Its network costs $1.200M",
        "money of the network $1.200M $960,000 to $1.440M",
        "work for a dollar 2,679 tokens cluster: $11.20M",
        "The cluster trains 2,679 tokens per dollar: $11.20M in 4 years ($9.200M to $13.20M)",
        "A GPU-hour costs $1.25 ($1.00 to $1.50) with server and electricity (a <list>, unverified)",
        "Another fabric is the choice below $0.50 a GPU-hour: f001 (rail-only, <f001>, 400 Gbps).",
        "It does not rest on prices: low and high prices choose the same fabric. Not varied: the plan and its overlap,",
        "candidates counted 20 pruned by closed forms 15 left 5 3 on the front",
        "f002 take knee rail-only, <f002>, 400 Gbps $1.200M 12.0 kW 100 ms $200,000 more, 33.3 % less time",
        "Tree: PGFT(2; 4,4; 1,2; 1,1), 8 times, one for each rail or plane.",
        "A server has 50 % of its bandwidth to the farthest server.",
        "Closed forms: 90 ms (nobody shares a link) to 120 ms (all traffic crosses the tier with the least bandwidth);",
        "with the least bandwidth); the run: 100",
        "the run: 150 ms, 25 % above.",
        "1, leaves 32 128 2, spines 16 64",
        "transceivers $400,000 $320,000 to $480,000",
        "weftwork report 'runs/a design/runs/f002 & 1'",
        "schema: 3 # <f002>",
        "110 ms to f002 : money +25 %, time +10 %",
        "9 no <port> of that rate fat-tree, a & b fabric.switch: x < y",
        "unverified share of money 75 %",
        "plan of the job as in the file",
        f"again, or continue {RESUME}",
    ):
        assert said in text, said
    assert "Closed forms alone" not in text
    assert "appliances" not in text


def test_a_candidate_that_weftwork_could_not_run_is_no_loser() -> None:
    cheap = fabric("f000", money=0.4e6, power=9_000, ms=None, reason="its run is stuck", has_failed=True)
    dear = fabric("f006", money=3e6, power=9_000, ms=None, reason="an error of Weftwork itself", has_failed=True)
    document = design_document()
    document["candidates"] = [cheap, *document["candidates"], dear]
    said = (
        "Weftwork could not judge 2 candidates, such as f000 (rail-only, <f000>, 400Gbps): its run is stuck. This is a "
        "fault of Weftwork, not of the fabric; please report it with the folder runs/f000 & 1. It costs $800,000 less "
        "than f002, and may be the better choice."
    )
    first, second, *_ = design_verdict(document)
    assert first.startswith("Take f002")
    assert second == said
    page = text_of(page_of(document))
    assert said.replace("400Gbps", "400 Gbps") in page
    assert "f000 (rail-only, <f000>, 400 Gbps) has no time" not in page
    document["candidates"] = [dear]
    assert any("could not judge 1 candidate, such as f006" in text for text in design_verdict(document))


def test_every_link_leads_somewhere_and_nothing_is_loaded() -> None:
    document = design_document()
    page = Page(page_of(document))
    assert len(page.ids) == len(set(page.ids))
    inside = [link[1:] for link in page.links if link.startswith("#")]
    assert set(inside) <= set(page.ids)
    names = [one["name"] for one in document["candidates"]]
    for name in names:
        assert inside.count(f"fabric-{name}") >= 2, name  # a dot of each figure
    assert all(link.startswith("#") for link in page.links)  # a page may be moved without its folder


def test_a_front_by_closed_forms_alone_says_so_where_one_looks() -> None:
    document = design_document(by="closed forms")
    for one in document["candidates"]:
        one["run"] = ""
    page = page_of(document)
    assert page.count('<div class="notice"><p>Closed forms alone: nothing was run.') == 2
    text = text_of(page)
    assert text.index("Closed forms alone: nothing was run.") < text.index("Take f002")
    assert "by closed forms alone; less is better" in text
    assert "times closed forms alone; no fabric of this page was run" in text
    assert (
        "Closed forms: 90 ms (nobody shares a link) to 120 ms (all traffic crosses the tier with the least bandwidth)."
        in text
    )
    assert "weftwork run 'runs/a design/fabrics/f002.yaml'" in text
    assert "runs of the flow engine" not in text


def test_a_design_that_has_not_ended_says_how_to_go_on() -> None:
    waiting = [
        fabric(name, money=1e6, power=1e4, ms=None, reason="it has not run yet", run="") for name in ("f001", "f002")
    ]
    text = text_of(page_of(design_document(candidates=waiting, front=[], knee=None, end="interrupted")))
    assert "it was interrupted; 2 of 2 fabrics have no time. It may choose otherwise." in text
    assert f"Continue with: {RESUME}" in text
    assert "No fabric has a time yet." in text
    assert "Money, power and time" not in text
    assert "it has not run yet" in text


def test_a_fabric_without_a_time_is_named_and_drawn_nowhere() -> None:
    document = design_document()
    document["candidates"].append(fabric("f009", money=9e6, power=1e4, ms=None, reason="its run is <refused>"))
    page = page_of(document)
    assert "f009 (rail-only, <f009>, 400 Gbps) has no time: its run is <refused>" in text_of(page)
    assert 'class="spot" href="#fabric-f009"' not in page


def test_failures_make_time_that_counts() -> None:
    document = design_document()
    for one in document["candidates"]:
        one["useful_share"] = 0.8
        one["counting_time_ps"] = one["time_ps"] / 0.8
    text = text_of(page_of(document))
    assert "time of an iteration that counts" in text
    assert (
        "80 % of the time is useful; the rest goes to failures and checkpoints: 100 ms without them, 125 ms with"
        in text
    )


def test_a_confirmation_has_a_section() -> None:
    assert "packets" not in Page(page_of(design_document())).ids
    found = {
        "candidate": "f002", "how": "whole", "gpus": 64, "of_gpus": 64, "flow_ps": 100 * 10**9,
        "packet_ps": 103 * 10**9, "longer_share": 0.03, "why_no_more": "", "left_out": "nothing", "collectives": [],
    }  # fmt: skip
    text = text_of(page_of(design_document(confirmation=found)))
    assert "f002 packet by packet" in text
    assert "packet by packet 103 ms 64 of 64 GPUs" in text
    assert "difference +3 %" in text


def test_budgets_are_lines_of_the_figures() -> None:
    page = page_of(design_document(budget_usd=1.9e6, power_budget_w=25_000))
    assert page.count('<span class="moment"') == 2
    assert "budget: $1.900M" in page
    assert "at most 25.0 kW" in page
    assert '<span class="moment"' not in page_of(design_document())


def dot(name: str, x: float, y: float, **more: bool) -> FrontDot:
    return FrontDot(name=name, words=f"<{name}>", x=x, y=y, anchor=f"fabric-{name}", **more)


def places(drawn: str) -> dict[str, tuple[float, float]]:
    """Left and top of each dot, in percent."""
    found = re.findall(r'href="#fabric-(\w+)"[^>]*left:([-\d.]+)%;top:([-\d.]+)%', drawn)
    return {name: (float(left), float(top)) for name, left, top in found}


def chart(*dots: FrontDot, limit: FrontLimit | None = None) -> str:
    return front_chart(("money", "time"), dots, words="{:g}".format, short="{:g}".format, limit=limit)


def test_dots_lie_where_their_costs_are_and_stairs_go_down() -> None:
    dots = [dot("a", 10, 100, is_front=True), dot("b", 20, 50, is_front=True, is_knee=True), dot("c", 30, 80)]
    drawn = chart(*dots)
    at = places(drawn)
    assert at["b"][0] - at["a"][0] == pytest.approx(at["c"][0] - at["b"][0], abs=0.05)
    assert at["a"][1] < at["c"][1] < at["b"][1]
    assert all(0 < left < 100 and 0 < top < 100 for left, top in at.values())
    path = re.search(r'class="s c1" d="([^"]*)"', drawn)
    assert path is not None
    (first_x, first_y), (second_x, second_y) = at["a"], at["b"]
    numbers = [float(one) for one in re.findall(r"[\d.]+", path[1])]
    assert numbers == pytest.approx([10 * first_x, 0, 10 * first_y, 10 * second_x, 10 * second_y, 1000], abs=0.1)
    assert re.findall(r'class="spotted[^>]*>(\w+)<', drawn) == ["b", "a"]
    assert 'aria-label="b: &lt;b&gt;; 20, 50\u202fps"' in drawn


def test_one_dot_and_equal_dots_are_drawn() -> None:
    assert places(chart(dot("a", 10, 100, is_front=True, is_knee=True))) == {"a": (50.0, 50.0)}
    assert len(places(chart(dot("a", 10, 100), dot("b", 10, 100)))) == 2


def test_a_limit_is_inside_the_axis_and_names_do_not_lie_on_each_other() -> None:
    near = [dot(f"f{place}", 10 + place / 10, 100 - place / 10, is_front=True) for place in range(5)]
    drawn = chart(*near, dot("far", 40, 50, is_front=True), limit=FrontLimit(at=60, words="budget"))
    line = re.search(r'class="moment" d="M([\d.]+) 0', drawn)
    assert line is not None
    assert 900 < float(line[1]) < 1000
    assert re.findall(r'class="spotted[^>]*>(\w+)<', drawn) == ["far", "f4"]


def test_the_tip_has_every_dot() -> None:
    drawn = chart(dot("a", 10, 100), dot("b", 20, 50, is_front=True))
    found = re.search(r"data-tip='([^']*)'", drawn)
    assert found is not None
    tip = json.loads(html.unescape(found[1]))
    assert tip["t"] == ["a: <a>", "b: <b>"]
    assert tip["s"][1][2] == ["10", "20"]
