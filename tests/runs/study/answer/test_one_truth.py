"""Every number that an answer or a page tells stands in the folder of its run: nothing is counted twice, and two ways.

A number of a page may also be a sum, a mean or a quantile of a table (`helpers.page_numbers`), and one of a comparison
the difference of two runs.
"""

from __future__ import annotations

import io
import json
import re
from collections import Counter
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from helpers.examples import as_a_run
from helpers.page_numbers import counted, visible
from helpers.pages import plain
from helpers.shown import page_of
from rich.console import Console

import weftwork
from weftwork.cli import main
from weftwork.report.answer import details, print_answer
from weftwork.report.comparison_words import (
    changed_numbers,
    comparison_verdict,
    different_keys,
    price_doubts,
    ratio_words,
    switch_words,
)
from weftwork.report.money import money_words, power_words
from weftwork.report.page import run_page
from weftwork.report.three_lines import labelled_lines, other_suspects, repair_text, three_lines
from weftwork.report.words import amount, typeset
from weftwork.spec.answer import FULL_SHARE, TROUBLED_SHARE
from weftwork.store.runs import Run
from weftwork.study.results.compare_runs import compare_runs

EXAMPLES = Path(__file__).parents[4] / "examples"
LONG = ("plan_405b", "which_fabric_405b")  # a minute and more of CPU time, with the tables of goodput_scale
SCENARIOS = sorted(EXAMPLES.glob("*.yaml")) + [
    file for file in sorted(EXAMPLES.glob("*/scenario.yaml")) if file.parent.name not in LONG
]
# a number with its unit, that is no part of a name such as host0, leaf3->spine1 or llama-3-8b
NUMBER = re.compile(
    r"(?<![\w.,+>-])[+-]?\d+(?:,\d{3})*(?:\.\d+)?(?:e[+-]?\d+)?"
    r"(?: (?:%|[munp]?s|min|h|d|days|[TGMk]?b/s|[TGMk]?B/s|[TGMk]?B|[KMGT]i?B|[kMGT]bps)(?![\w/]))?(?![\w.-]*\w)"
)
WIDTH = 80


SCREEN = 32  # lines, two of them for the interval; terminals open with 24 to 40 and more
LABELS = ["took", "measured", "limited by", "to blame"]


def printed(run: Run) -> str:
    """The answer on a terminal of 80 columns."""
    out = io.StringIO()
    print_answer(run, Console(file=out, width=WIDTH, force_terminal=True, color_system=None, highlight=False))
    return out.getvalue()


def three(run: Run) -> tuple[str, str]:
    """The three lines of an answer, and what stands behind them."""
    first = printed(run).index("\n") + 1
    lines, behind = printed(run)[first:].split("\n\n", 1)
    return lines, behind


def known(run: Run) -> set[str]:
    """How the numbers of a run's folder are written: the summary, its answer, and the rows that the tables show."""
    document = json.loads((run.path / "summary.json").read_text(encoding="utf-8"))
    found = {amount(number["value"], number["unit"]) for number in document["numbers"].values()}
    found |= {amount(round(number["value"]), "count") for number in document["numbers"].values() if number["value"]}
    for name, number in document["numbers"].items():
        if name.endswith(("_low_ps", "_high_ps")):  # which quantiles they are, told as "5 to 95 %"
            shares = NUMBER.findall(number["text"])
            found |= {*shares, *(share.removesuffix(" %") for share in shares)}
    answer = document["answer"]
    for culprit in (answer["culprit"], *answer["others"]):
        found |= {amount((culprit["cost_s"] or 0) * 1e12, "ps"), amount(culprit["cost_share"] or 0, "share")}
        if answer["took"]["seconds"] is not None:  # what the run takes when it is repaired
            found.add(amount((answer["took"]["seconds"] - (culprit["cost_s"] or 0)) * 1e12, "ps"))
    found.add(amount(answer["limited_by"]["share"], "share"))
    if interval := answer["took"]["interval"]:
        found |= {*NUMBER.findall(interval["basis"]), *NUMBER.findall(dict(labelled_lines(run))["measured"])}
    if evidence := answer["evidence"]:
        found |= {amount(one["useful_share"], "share") for one in evidence["resources"]}
        found |= {amount(evidence[name], "share") for name in ("lost_share", "resent_share", "paused_share")}
        found |= {
            amount(evidence["slowdown"] or 0, "ratio"),
            *(f"{100 * limit:g} %" for limit in (FULL_SHARE, TROUBLED_SHARE)),
        }
        found |= {str(count) for count in range(1, len(answer["others"]) + 1)}  # suspects that were not simulated
    suspects = (answer["culprit"], *answer["others"])
    for text in (*document["about"].values(), *(one[key] for one in suspects for key in ("text", "name"))):
        found.update(NUMBER.findall(text))
    jobs = {row["job"]: row for row in run.table("jobs").to_pylist()}
    found |= {f"{row['gpus']:,}" for row in jobs.values()}
    found |= {amount(row["iteration_ps"] or 0, "ps", more=digits) for row in jobs.values() for digits in range(4)}
    for row in run.table("what_if").to_pylist():
        found |= {amount(row["iteration_ps"], "ps", more=digits) for digits in range(4)}
        change = 100 * (row["iteration_ps"] / jobs[row["job"]]["iteration_ps"] - 1)
        found |= {f"{change:+.3g} %", *NUMBER.findall(row["change"])}
    for row in run.collectives.to_pylist():  # who had its result last is a column of this table alone
        if row["last_rank"] is not None:
            found |= {str(row["last_rank"]), amount(row["end_ps"] - row["first_end_ps"], "ps")}
    for caveat in (*bounds(run), *texts_of(run, "memory_bytes")):
        found.update(NUMBER.findall(caveat))
    for row in run.query("select distinct at_ps from events where event = 'fault'").to_pylist():
        found.add(amount(row["at_ps"], "ps"))
    shown = [
        (amount(row["mean_rate_bps"], "b/s"), amount(row["utilisation"], "share"), amount(row["max_queue_bytes"], "B"),
         f"{row['marks']:,}", f"{row['drops']:,}")
        for row in run.query("select * from links where bytes > 0").to_pylist()
    ]  # fmt: skip
    found |= {text for row in shown for text in row}
    found |= {f"{count - 1:,}" for count in Counter(shown).values()}  # how many are like the first of them
    for row in run.links.to_pylist():
        found |= {amount(row["paused_ps"], "ps"), f"{row['pauses_sent']:,}"}
    return found


def bounds(run: Run) -> list[str]:
    """What the engine says of how far off a time may be, since it depends on the paths of hashing."""
    return texts_of(run, "iteration_ps")


def texts_of(run: Run, ending: str) -> list[str]:
    """Texts of the caveats whose subject ends like that."""
    caveats = run.provenance["caveats"]
    assert isinstance(caveats, list)
    return [one["text"] for one in caveats if one["subject"].endswith(ending)]


def numbers(text: str) -> list[str]:
    return [found for found in NUMBER.findall(text) if found.strip("+-0., %")]


def param(path: Path) -> Any:
    """The scenarios of the first page in the test command, all others in the step `truth`."""
    name = path.parent.name if path.stem == "scenario" else path.stem
    return pytest.param(path, id=name, marks=() if path.parent == EXAMPLES else pytest.mark.deep)


@pytest.fixture(scope="module", params=[param(path) for path in SCENARIOS])
def run(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Run:
    return weftwork.run(request.param, out=tmp_path_factory.mktemp("truth") / "run", overrides=as_a_run(request.param))


def body(text: str) -> str:
    """What is said of the run; the head repeats what ran, the foot what was assumed."""
    return text[text.index("\n") + 1 : text.rindex("\n\n")]


def test_every_number_that_is_told_is_a_number_of_the_run(run: Run) -> None:
    there = known(run)
    told = numbers(body(printed(run)))
    assert len(told) >= 4
    assert [number for number in told if number not in there] == []


def test_an_answer_begins_with_three_lines_and_fits_one_screen(run: Run) -> None:
    lines = three(run)[0].splitlines()
    labels = [line[:11].strip() for line in lines if not line.startswith(" ")]
    suspects = other_suspects(run)
    assert labels == [*LABELS, *["also"] * len(suspects), *repair_labels(run)]
    assert [line for line in printed(run).splitlines()[1:-1] if len(line) > WIDTH] == []  # but the folder's name
    whole = printed(run).splitlines()
    more = 5 * ("effective_share" in run.summary)  # what was asked for beside the answer
    texts = [*suspects, repair_text(run.answer)] if run.answer is not None else suspects
    more += sum(-(-(len(text) + 11) // (WIDTH - 11)) for text in texts if text)
    more += len(bounds(run)) + len(texts_of(run, "memory_bytes"))  # how far off a number may be
    assert sum(-(-max(1, len(line.rstrip())) // WIDTH) for line in whole) <= SCREEN + more


def repair_labels(run: Run) -> list[str]:
    """A line gives the order of repairs where more than one suspect of the run is listed, or has its price."""
    assert run.answer is not None
    suspects = (run.answer.culprit, *run.answer.others)
    single = [one for one in suspects if one.of == "the run" and not one.members and one.kind != "part"]
    has_line = repair_text(run.answer) != ""
    assert not has_line or len(single) > 1
    assert has_line or sum(one.is_listed for one in single) < 2
    return ["repair"] if has_line else []


def test_no_number_is_told_twice(run: Run) -> None:
    """Not inside the three lines, not in a sentence behind them; and no table has the port that they are about.

    Two other suspects may cost the same; their shares do not repeat those of the line above them.
    """
    lines, behind = three(run)
    first = lines.split("\nalso ", 1)[0]
    told = [number for number in numbers(first) if " " in number]
    assert sorted(told) == sorted(set(told))
    parts = [one for one in run.answer.others if one.kind == "part"] if run.answer is not None else []
    limit = three_lines(run)[1]
    for part, text in product(parts, other_suspects(run)):
        if text.startswith(part.name) and amount(part.cost_share or 0.0, "share") in limit:
            assert amount(part.cost_share or 0.0, "share") not in text
    assert [number for number in told for text in details(run) if number in numbers(text)] == []
    assert run.answer is not None
    port = run.answer.limited_by.name
    rows = [line for line in behind.splitlines() if line.split()[:1] == [port]]
    assert "->" not in port or rows == []


def test_the_shares_of_an_iteration_add_up(run: Run) -> None:
    summary: dict[str, Any] = run.summary
    if not run.table("jobs").num_rows:
        assert "computing_share" not in summary
        return
    others = [f"spent_{kind}_share" for kind in ("checkpoint", "loading", "other")]
    groups = ["computing_share", "exposed_share", "bubble_share", "waiting_share", *others]
    assert sum(summary[name]["value"] or 0 for name in groups) == pytest.approx(1, abs=1e-6)


def told_by(document: dict[str, Any], run: Run) -> set[str]:
    """Numbers in words that stand in the folder: what ran, what suspects and other worlds are called, and notes."""
    words = [*document["about"].values(), *run.provenance.get("notes", [])]
    words += [one["text"] for one in document["answer"]["others"]]
    words += [row["change"] for row in run.table("what_if").to_pylist()]
    return {number for text in words for number in NUMBER.findall(plain(typeset(text)))}


def test_every_number_with_a_unit_of_a_page_is_a_number_of_the_run(run: Run) -> None:
    page = page_of(run_page(run))
    document = json.loads((run.path / "summary.json").read_text(encoding="utf-8"))
    there = known(run) | told_by(document, run) | counted(run, page)
    told = [(one.tag, number) for one, text in visible(page) for number in numbers(text) if " " in number]
    assert len(told) >= 20
    assert [(tag, number) for tag, number in told if number not in there] == []


@pytest.fixture(scope="module")
def others(tmp_path_factory: pytest.TempPathFactory) -> list[Run]:
    """A run of messages and one of training, that others are compared with."""
    folder = tmp_path_factory.mktemp("others")
    names = ("pfc_victim", "slow_gpu")
    return [weftwork.run(EXAMPLES / name / "scenario.yaml", out=folder / name) for name in names]


def differences(first: Run, second: Run) -> set[str]:
    """How changes from a run to another are written: of each number, as a share and as a multiple."""
    found: set[str] = set()
    for name, number in first.summary.items():
        before, after = number["value"], second.summary.get(name, {"value": None})["value"]
        if before and after is not None:
            share = after / before - 1
            found |= {f"{'-' if share < 0 else '+'}{amount(abs(share), 'share')}", amount(abs(share), "share")}
            found.add(amount(1 + share, "ratio"))
    return found


def test_every_number_of_a_comparison_is_of_one_of_the_runs_or_their_difference(
    run: Run, others: list[Run], capsys: pytest.CaptureFixture[str]
) -> None:
    most = 0
    for other in others:
        with pytest.raises(SystemExit):
            main(["compare", str(run.path), str(other.path)])
        both = (run, other)
        there = differences(*both)
        for one in both:
            values = [amount(number["value"], number["unit"]) for number in one.summary.values()]
            there |= known(one) | set(values) | set(NUMBER.findall(one.scenario))
        names = {*run.summary, *other.summary}
        prices = compare_runs(both)
        for row in prices.runs:
            if row.fabric is not None and row.fabric.price_usd is not None and row.fabric.power_w is not None:
                dollars = row.fabric.price_usd.typical
                told_of = (row.fabric.links, row.fabric.switches, *(count for _, count in row.fabric.switches_by_tier))
                there |= {f"{count:,}" for count in told_of} | set(
                    NUMBER.findall(power_words(row.fabric.power_w.typical))
                )
                there |= set(NUMBER.findall(f"{money_words(dollars)} {money_words(dollars / row.fabric.gpus)}"))
                there |= set(NUMBER.findall(f"{switch_words(row.fabric)} {ratio_words(row.fabric)}"))
            if row.culprit_share is not None:
                there.add(f"{100 * row.culprit_share:.0f} %")
        there |= set(NUMBER.findall(" ".join([*comparison_verdict(prices), *price_doubts(prices)])))
        there |= set(NUMBER.findall(" ".join(value or "" for one in different_keys(prices) for value in one.values)))
        there.add(str(changed_numbers(prices)[1]))
        values_of = [{name: one.summary.get(name, {"value": None})["value"] for name in names} for one in both]
        there.add(str(sum(values_of[0][name] == values_of[1][name] for name in names)))
        told = numbers(capsys.readouterr().out)
        most = max(most, len(told))
        assert [number for number in told if number not in there] == []
    assert most >= 20  # one of the two is of its kind, and has numbers in common


def test_what_training_assumes_is_told_in_the_terminal_and_on_the_page(run: Run) -> None:
    assumed = run.about.get("assumes")
    assert (assumed is not None) == bool(run.table("jobs").num_rows)
    if assumed is not None:
        assert " ".join(assumed.split()) in " ".join(printed(run).split())
        assert assumed in [text for _, text in visible(page_of(run_page(run)))]
