"""The page of a search for plans: what it says, what its bars add up to, and where its dots are."""

from __future__ import annotations

import html
import json
import re
from math import log

import pytest
from helpers.pages import Page
from helpers.plans import GB, MS, plan_document

from weftwork.report.figures.scatter import ScatterDot, highest_shown, scatter
from weftwork.report.figures.stacked import StackedBar, stacked
from weftwork.report.page_plan import plan_page

THIN = "\u202f"


def text_of(page: str) -> str:
    body = page[page.index("<body>") :]
    return " ".join(html.unescape(re.sub(r"<[^>]*>", " ", body)).replace(THIN, " ").split())


def test_the_page_says_who_wins_why_the_next_loses_and_what_was_left_out() -> None:
    text = text_of(plan_page(plan_document(), "runs/a plan", "schema: 3 # <winner>"))
    assert "Best plan: DP 8, 0 & 'more'" in text
    assert "takes 6 ms (6 %) longer: 10 ms more of bubble." in text
    assert "2 DP4 <mb1> 106 ms 104 ms -1.89 % 9,434 50 % 50 GB 20 % computing bubble, 10 ms" in text
    assert "40 plans counted by closed forms, 3 run on the flow engine (0.5 s and 0.2 s); 10 are infeasible" in text
    assert "needs more memory than a GPU has, less the headroom 7" in text
    assert "7 for memory beyond 72 GB" in text
    assert "Every plan leaves 10 % of a GPU's memory free (--headroom); the best is predicted to use 75 %" in text
    assert "headroom 10 % of a GPU's 80 GB: no plan needs more than 72 GB; no measured row is near" in text
    assert "the GPU has 80 GB, less 10 %" in text
    assert "training.context does not suit the model, the batch or the GPUs 3" in text
    assert "given, not searched training.zero" in text
    assert "weftwork sweep 'runs/a plan'/best.yaml" in text
    assert "schema: 3 # <winner>" in text
    assert "9 of 40 counted plans" in text
    assert "1 plan is slower than the axis shows" in text


def test_a_page_loads_nothing_and_names_its_sections() -> None:
    page = Page(plan_page(plan_document(), "runs/plan", "schema: 3"))
    assert all(link.startswith("#") and link[1:] in page.ids for link in page.links)
    assert len(page.links) == 8


def test_one_plan_has_no_next_one_and_nothing_to_compare() -> None:
    text = text_of(plan_page(plan_document(best=1, pruned={}), "runs/plan", "schema: 3"))
    assert "The next" not in text
    assert "Against the best plan" not in text
    assert "infeasible" not in text


def test_plans_that_may_be_as_good_are_told_of() -> None:
    text = text_of(plan_page(plan_document(unsure=2), "runs/plan", "schema: 3"))
    assert "2 plans may be as good and did not run on the flow engine." in text


def test_the_users_own_plan_stands_beside_the_best() -> None:
    document = plan_document()
    document["own"] = {"plan": 2}
    assert "Yours, with zero as set, DP 2, 2 & 'more', takes 12 ms (12 %) longer: 20 ms more of bubble." in text_of(
        plan_page(document, "runs/plan", "schema: 3")
    )
    document["own"] = {"plan": None, "mistakes": ["training.memory: too much"]}
    assert "Your plan is infeasible: training.memory: too much." in text_of(plan_page(document, "runs/plan", ""))
    document["own"] = {"plan": 0}
    assert "The best plan is yours." in text_of(plan_page(document, "runs/plan", ""))


def test_arguments_say_whose_they_are_and_what_they_leave_out() -> None:
    document = plan_document()
    document["megatron"] = {"plan": 1, "arguments": ["--bf16"], "left_out": {"training.placement": "the launcher does"}}
    text = text_of(plan_page(document, "runs/plan", ""))
    assert "The arguments are those of DP 4, 1 & 'more', which takes 6 % longer" in text
    assert "No argument sets training.placement: the launcher does." in text
    document["megatron"] = None
    assert "Megatron-LM can run none of the plans" in text_of(plan_page(document, "runs/plan", ""))


def test_a_confirmation_has_a_section() -> None:
    document = plan_document()
    assert "packets" not in Page(plan_page(document, "runs/plan", "")).ids
    document["confirmation"] = {
        "how": "replicas", "gpus": 4, "of_gpus": 8, "flow_ps": 100 * MS, "packet_ps": 101 * MS, "longer_share": 0.01,
        "why_no_more": "packets of 2 replicas would take long", "left_out": "the other replica",
        "collectives": [
            {"kind": "data", "operation": "all-reduce", "size_bytes": GB, "ranks": 8, "closed_form_ps": MS,
             "flow_ps": 2 * MS, "packet_ps": None, "reason": "too many packets"},
        ],
    }  # fmt: skip
    page = plan_page(document, "runs/plan", "")
    assert "packets" in Page(page).ids
    text = text_of(page)
    for said in ("101 ms", "4 of 8 GPUs", "Left out: the other replica.", "too many packets"):
        assert said in text


def bars(drawn: str) -> list[list[tuple[float, float]]]:
    """Begin and length of the parts of each bar, in percent of the width."""
    return [
        [(float(left), float(width)) for left, width in re.findall(r"left:([\d.]+)%;width:([\d.]+)%", line)]
        for line in drawn.split('<div class="stack')[2:]
    ]


def test_parts_of_a_bar_follow_each_other_and_those_below_zero_lie_left_of_the_axis() -> None:
    rows = [
        StackedBar(name="a", lengths=(30.0, 10.0, 20.0), note=""),
        StackedBar(name="b", lengths=(10.0, -40.0, 0.0), note=""),
    ]
    drawn = stacked([("x", "k0"), ("y", "k1"), ("z", "k2")], rows, "count")
    assert bars(drawn) == [[(40, 30), (70, 10), (80, 20)], [(40, 10), (0, 40)]]
    assert drawn.count('<u style="left:40.000%">') == 2


def test_parts_that_no_bar_has_are_not_in_the_legend() -> None:
    drawn = stacked(
        [("x", "k0"), ("y", "k1"), ("z", "k2")], [StackedBar(name="a", lengths=(1, 0, 2), note="")], "count"
    )
    assert re.findall(r"</i>(\w)</span>", drawn) == ["x", "z"]


def test_the_nearest_dot_is_found_by_place_and_the_best_stand_first() -> None:
    cloud = [ScatterDot(x=20 * GB, y=150 * MS, name="in"), ScatterDot(x=20 * GB, y=9_000 * MS, name="far above")]
    best = [ScatterDot(x=40 * GB, y=100 * MS, name="best", note="by the flow engine")]
    front = [ScatterDot(x=40 * GB, y=100 * MS, name="front"), ScatterDot(x=10 * GB, y=300 * MS, name="small")]
    drawn = scatter(
        ("memory", "time"), ("B", "ps"), cloud=cloud, front=front, best=best, limit=(80 * GB, "the GPU has 80 GB")
    )
    found = re.search(r"data-tip='([^']*)'", drawn)
    assert found is not None
    tip = json.loads(html.unescape(found[1]))
    assert tip["t"] == ["best", "front", "small", "in"]
    assert tip["s"][0][2][0] == f"100{THIN}ms by the flow engine"
    assert tip["x"][0] == pytest.approx(2 * tip["x"][3], abs=0.2)  # linear from zero
    assert tip["x"][0] == pytest.approx(4 * tip["x"][2], abs=0.4)
    assert tip["y"][0] == 900  # room for its name below
    assert tip["y"][2] == pytest.approx(900 * (1 - log(3) / log(3 * 1.05)), abs=0.1)
    assert tip["y"][2] < tip["y"][3] < tip["y"][0]


def test_an_axis_ends_at_eight_times_the_fastest() -> None:
    best = [ScatterDot(x=40, y=100, name="best")]
    front = [*best, ScatterDot(x=20, y=790, name="slow"), ScatterDot(x=10, y=5_000, name="too slow")]
    assert highest_shown(front, best) == 800
    assert highest_shown(front[:2], best) == 790
    assert highest_shown(best, best) == 200
    drawn = scatter(("memory", "time"), ("B", "ps"), cloud=front, front=front, best=best, limit=(50, "limit"))
    assert "too slow" not in drawn
    assert "slow" in drawn


def test_a_mixture_of_experts_is_told_of_the_overlap_that_was_assumed() -> None:
    document = plan_document()
    assert "behind computation" not in text_of(plan_page(document, "runs/plan", ""))
    document["overlap"] = [
        {"kind": "expert traffic", "key": "training.overlap.expert", "share": 0.0, "share_with": 0.9,
         "argument": "--overlap-moe-expert-parallel-comm", "trainer": "Megatron-LM"},
        {"kind": "data traffic", "key": "training.overlap.data", "share": 0.9},
    ]  # fmt: skip
    text = text_of(plan_page(document, "runs/plan", ""))
    assert "at most (training.overlap): expert traffic 0 %, data traffic 90 %." in text
    assert "No expert traffic is hidden, as in Megatron-LM without --overlap-moe-expert-parallel-comm;" in text
    assert "--set training.overlap.expert=0.9 stands for a job with it." in text
    document["overlap"][0]["share"] = 0.5
    assert "is hidden" not in text_of(plan_page(document, "runs/plan", ""))
