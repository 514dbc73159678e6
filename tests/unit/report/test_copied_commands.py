"""Commands, keys and paths on pages are what a terminal takes: ASCII, without thin spaces and the sign for micro."""

from __future__ import annotations

import html

import pytest
from helpers.copied_commands import copied
from helpers.designs import design_document
from helpers.plans import plan_document

from weftwork.report.page_design import design_page
from weftwork.report.page_elements import notice
from weftwork.report.page_plan import plan_page
from weftwork.report.page_sweep import sweep_page
from weftwork.report.page_tune import tune_page
from weftwork.report.words import typeset
from weftwork.spec.sweep import SweepRow
from weftwork.spec.tuning import TuneParameter, TuneResult, TuneScenario, TuneTrial
from weftwork.study.sweep.verdict import judged

FOLDER = "runs/a 4 MB 5 us folder"


COMMAND = f"weftwork sweep 4MB.yaml --set fabric.link_rate=400Gbps,800Gbps --set 'a.b=5 us' --size 4MB -o '{FOLDER}'"


def sweep() -> str:
    row = SweepRow(place=0, values={"fabric.link_rate": "400Gbps"}, status="refused", reason="why", wanted=1, runs=(),
                   digests=(), numbers={})  # fmt: skip
    return sweep_page(judged([row], name="tiny", seeds=1), FOLDER, COMMAND)


def tune() -> str:
    key = "fabric.link_latency"
    trials = [
        TuneTrial(number=number, values=values, places={key: 0.5}, status="complete", score=1.0)
        for number, values in enumerate(({}, {key: "5 us"}))
    ]
    result = TuneResult(
        objective="completion_ps", unit="ps", is_larger_better=False, is_ratio=True, is_gain_ratio=True, seeds=(1,),
        finalist_seeds=(2,), fresh_seeds=(3,),
        scenarios=(TuneScenario(name="tiny", file="4 MB.yaml", tuned="tuned 4 MB.yaml", before=2.0, after=1.0),),
        parameters=(TuneParameter(key=key, text="Latency.", before="9 us", best="5 us", low="1 us", high="9 us"),),
        trials=tuple(trials), best=1, finalists=(1,), gain=None, why="", others=(), unread={}, runs=2,
    )  # fmt: skip
    return tune_page(result, FOLDER, COMMAND)


PAGES = {
    "design": lambda: design_page(design_document(end="interrupted"), FOLDER, COMMAND, {}),
    "plan": lambda: plan_page(plan_document(), FOLDER, "schema: 3\nfabric: {link_rate: 400Gbps}"),
    "tune": tune,
    "sweep": sweep,
}


@pytest.mark.parametrize("kind", PAGES)
def test_what_people_copy_is_ascii(kind: str) -> None:
    found = copied(PAGES[kind]())
    assert any(one.startswith("weftwork ") for one in found)
    assert [one for one in found if not one.isascii()] == []


@pytest.mark.parametrize("kind", ["design", "tune", "sweep"])
def test_the_command_is_whole(kind: str) -> None:
    assert COMMAND in html.unescape(PAGES[kind]())


def test_values_of_parameters_are_those_of_a_scenario() -> None:
    assert '<td class="text">9 us</td><td class="text"><b>5 us</b></td>' in tune()


def test_a_sentence_keeps_its_command_and_typesets_its_numbers() -> None:
    shown = html.unescape(notice([f"It took 12 us of 4MB. Continue with: {COMMAND}"]))
    assert COMMAND in shown
    assert "12\u202f\u00b5s of 4\u202fMB." in shown
    assert typeset("400Gbps-run/x, 4MB.yaml").isascii()
