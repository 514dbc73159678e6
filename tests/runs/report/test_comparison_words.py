"""The sentences of a comparison: which run is faster, which fabric is cheaper, and what they rest on."""

from __future__ import annotations

from dataclasses import replace
from io import StringIO
from typing import Any

import pytest
from helpers.shown import page_of, printed, rows
from rich.console import Console

from weftwork.cli.compare_tables import run_table
from weftwork.report.comparison_rows import run_tables
from weftwork.report.comparison_words import (
    changed_numbers,
    comparison_verdict,
    different_keys,
    fabric_names,
    price_doubts,
    ratio_words,
    switch_words,
)
from weftwork.spec.comparison import (
    ComparedFabric,
    ComparedKey,
    ComparedNumber,
    ComparedRun,
    RunComparison,
    Spread,
    WorkloadGroup,
)


def fabric(place: int, dollars: float | None, *, missing: tuple[str, ...] = ()) -> ComparedFabric:
    return ComparedFabric(
        place=place,
        gpus=100,
        links=64,
        switches_by_tier=(("leaves", 4), ("spines", 2)),
        switch_models=(("SN5600", 6),),
        oversubscription=f"{place + 1}:1",
        asked_oversubscription="",
        price_usd=None if dollars is None else Spread(low=dollars / 2, typical=dollars, high=dollars * 2),
        power_w=Spread(low=1, typical=2, high=3),
        not_priced=missing,
        power_unknown=(),
        unverified_money_share=1.0,
        unverified_power_share=1.0,
    )


def a_run(label: str, value_ps: float | None, *, group: int = 0, **fields: Any) -> ComparedRun:
    known: dict[str, Any] = {
        "folder": label, "label": label, "short": label, "group": group, "status": "complete", "is_whole": True,
        "seeds": 1, "number": "completion_ps", "value_ps": value_ps, "low_ps": None, "high_ps": None, "change": None,
        "is_clear": None, "speed": None, "speed_name": "", "speed_unit": "", "exposed_share": None, "culprit": "",
        "culprit_share": None, "culprit_how": "", "fabric": None, "no_fabric": "",
    }  # fmt: skip
    return ComparedRun(**known | fields)


def compared(
    *runs: ComparedRun, keys: tuple[str, ...] = (), work: tuple[str, ...] = (), **fields: Any
) -> RunComparison:
    """A comparison of runs, whose groups are called ``work 0`` and so on."""
    groups = []
    for number in sorted({run.group for run in runs}):
        own = tuple(place for place, run in enumerate(runs) if run.group == number)
        first = next((place for place in own if runs[place].value_ps is not None), None)
        groups.append(WorkloadGroup(name=f"work {number}", runs=own, first=first, keys=keys, work_keys=work))
    known: dict[str, Any] = {"differences": (), "numbers": (), "is_same_result": False, "given_twice": (),
                             "prices": "mine"}  # fmt: skip
    return RunComparison(runs=runs, groups=tuple(groups), **known | fields)


def said(*runs: ComparedRun, **fields: Any) -> list[str]:
    return comparison_verdict(compared(*runs, **fields))


@pytest.mark.parametrize(
    ("first", "second", "sentence"),
    [
        (8e6, 10e6, "b takes 25 % more time than a (10 us against 8 us)."),
        (10e6, 8e6, "b takes 20 % less time than a (8 us against 10 us)."),
        (8e6, 24e6, "b takes 3 times as long as a (24 us against 8 us)."),
        (8e6, 16e6, "b takes 2 times as long as a (16 us against 8 us)."),
        (8e6, 8e6, "b takes as long as a (8 us)."),
    ],
)
def test_a_run_is_told_against_the_first(first: float, second: float, sentence: str) -> None:
    assert said(a_run("a", first), a_run("b", second)) == [sentence]


@pytest.mark.parametrize(
    ("is_clear", "end"), [(True, ", beyond what seeds explain)."), (False, ", within what seeds explain).")]
)
def test_seeds_say_whether_it_is_clear(*, is_clear: bool, end: str) -> None:
    assert said(a_run("a", 8e6), a_run("b", 10e6, is_clear=is_clear))[0].endswith(end)


@pytest.mark.parametrize(
    ("dollars", "end"),
    [(75.0, " and saves $25 (25 %)."), (150.0, " and costs $50 (50 %) more."), (100.0, "."), (None, ".")],
)
def test_the_price_is_told_beside_the_time(dollars: float | None, end: str) -> None:
    found = said(a_run("a", 8e6, fabric=fabric(0, 100.0)), a_run("b", 10e6, fabric=fabric(1, dollars)))
    assert found[0] == f"b takes 25 % more time than a (10 us against 8 us){end}"
    doubt = "All of the money rests on unverified prices (mine)."
    assert (found[-1] == doubt) == (dollars != 100.0)


def test_what_cannot_be_compared_is_not() -> None:
    cut = a_run("b", None, status="stopped", is_whole=False)
    assert said(a_run("a", 8e6), cut) == ["The completion times cannot be compared, since not every run finished."]
    found = said(a_run("a", 8e6), cut, a_run("c", 4e6))
    assert found == ["c takes 50 % less time than a (4 us against 8 us).",
                     "b was stopped before its end, so that its time is not compared."]  # fmt: skip
    assert said(a_run("a", 8e6), a_run("b", 4e6, group=1)) == [
        "The workloads differ (work 0; work 1), so that the times of the runs are not compared."
    ]


def test_a_run_is_measured_against_the_first_of_its_own_workload() -> None:
    found = said(a_run("a", 10e6), a_run("b", 20e6, group=1), a_run("c", 5e6), a_run("d", 60e6, group=1))
    assert found == ["For work 0, c takes 50 % less time than a (5 us against 10 us).",
                     "For work 1, d takes 3 times as long as b (60 us against 20 us)."]  # fmt: skip
    alone = said(a_run("a", 10e6), a_run("b", 20e6, group=1), a_run("c", 5e6))
    assert alone[-1] == "Work 1 has one run, which is measured against no other."


def test_other_work_is_no_measure_of_a_network() -> None:
    found = said(a_run("a", 8e6), a_run("b", 10e6), keys=("traffic.size",), work=("traffic.size",))
    assert found[-1] == ("The runs do not carry the same work (traffic.size), so that a time is no measure of a network"
                         " alone.")  # fmt: skip


def priced(group: int, *times_ps: float) -> list[ComparedRun]:
    """Runs of one workload on fabrics of $100, $80, $60 and so on."""
    return [a_run(f"f{place}", time, group=group, fabric=fabric(place, 100.0 - 20 * place))
            for place, time in enumerate(times_ps)]  # fmt: skip


@pytest.mark.parametrize(
    ("first", "second", "told"),
    [
        ((100e6, 100e6, 110e6), (100e6, 100e6, 100e6), ("f1", "$80, 20 % less than f0", 0)),
        ((100e6, 101e6, 110e6), (100e6, 100e6, 130e6), ("f1", "$80, 20 % less than f0", 1)),
        ((100e6, 110e6, 120e6), (100e6, 100e6, 100e6), ("f0", "$100", 0)),
        ((100e6, 100e6, 101e6), (100e6, 100e6, 101.5e6), ("f2", "$60, 40 % less than f0", 1.5)),
    ],
)
def test_the_cheapest_fabric_within_a_small_loss_of_all_workloads_comes_first(
    first: tuple[float, ...], second: tuple[float, ...], told: tuple[str, str, float]
) -> None:
    found = said(*priced(0, *first), *priced(1, *second), keys=("fabric.oversubscription",))
    name, price, slower = told
    lost = f"It takes at most {slower:g} % more time than the fastest fabric." if slower else "No fabric is faster."
    limit = "at most 2 % slower than the fastest for every workload"
    assert found[0] == f"{name} is the cheapest fabric that is {limit}: {price}. {lost}"


def test_a_fabric_without_a_run_of_a_workload_is_left_out_aloud() -> None:
    """It may be the fastest of the others, so that times are measured against it too."""
    runs = [*priced(0, 100e6, 100e6, 99e6), *priced(1, 100e6, 100e6)]
    found = said(*runs, keys=("fabric.oversubscription",))
    assert found[0].endswith("$80, 20 % less than f0. It takes at most 1.01 % more time than the fastest fabric.")
    assert found[1] == "f2 is left out: work 1 has no finished run on it."
    whole = said(*priced(0, 100e6, 100e6, 99e6), *priced(1, 100e6, 100e6, 100e6), keys=("fabric.oversubscription",))
    assert not any("left out" in text for text in whole)


def test_a_workload_with_one_run_is_not_among_those_of_the_verdict() -> None:
    runs = [*priced(0, 100e6, 100e6, 110e6), *priced(1, 100e6)]
    assert "slower than the fastest for work 0:" in said(*runs, keys=("fabric.oversubscription",))[0]


def test_times_that_print_alike_get_more_digits() -> None:
    assert said(a_run("a", 13.81e12), a_run("b", 13.84e12))[0].endswith("(13.84 s against 13.81 s).")
    assert said(a_run("a", 100.3e12), a_run("b", 100.46e12))[0].endswith("(100.5 s against 100.3 s).")
    assert said(a_run("a", 13.8e12), a_run("b", 13.9e12))[0].endswith("(13.9 s against 13.8 s).")


def test_a_bound_is_not_told_as_a_measured_cost() -> None:
    blamed = {"culprit": "oversubscription", "culprit_share": 0.662}
    runs = [a_run("a", 8e6, **blamed, culprit_how="bound"), a_run("b", 9e6, **blamed, culprit_how="simulated")]
    page = [row["to blame"] for row in rows(page_of(run_tables(compared(*runs))), "run")]
    assert page == ["oversubscription at most 66.2 %", "oversubscription 66.2 %"]
    told = StringIO()
    out = Console(width=100, file=told)
    out.print(run_table(out, compared(*runs)))
    assert [row["to blame"] for row in printed(told.getvalue(), "run")] == [
        "oversubscription <= 66 %", "oversubscription 66 %"
    ]  # fmt: skip


def test_no_fabric_may_be_good_for_all() -> None:
    found = said(*priced(0, 100e6, 110e6), *priced(1, 110e6, 100e6), keys=("fabric.oversubscription",))
    assert found[0] == "No fabric is at most 2 % slower than the fastest for every workload."


def test_a_fabric_is_not_chosen_where_other_keys_differ_too() -> None:
    keys = ("fabric.oversubscription", "training.tensor")
    assert not any("cheapest" in text for text in said(*priced(0, 1e6, 1e6, 1e6), keys=keys))
    assert any("cheapest" in text for text in said(*priced(0, 1e6, 1e6, 1e6), keys=keys[:1]))


def test_what_has_no_price_is_named() -> None:
    runs = (a_run("a", 8e6, fabric=fabric(0, None, missing=("4 x a new NIC",))), a_run("b", 8e6, no_fabric="why"))
    assert price_doubts(compared(*runs)) == ["Not priced (mine), so that the fabric has no total: 4 x a new NIC.",
                         "The fabric of b was not counted and priced: why."]  # fmt: skip


def test_equal_results_are_told_and_a_folder_that_is_given_twice_too() -> None:
    found = said(a_run("a", 8e6), a_run("a (2)", 8e6), is_same_result=True, given_twice=("a",))
    assert found == ["a is given more than once.", "The results are equal to the bit."]


def test_of_many_runs_the_extremes_are_told() -> None:
    runs = [a_run(f"r{place}", (10 + (place * 7 + 3) % 11) * 1e6) for place in range(9)]
    found = said(*runs)
    fastest, slowest = (choose(runs[1:], key=lambda one: one.value_ps or 0).label for choose in (min, max))
    assert found[0] == f"The fastest of 9 runs (11 us): {fastest}."
    assert {text.split()[0] for text in found[1:3]} == {fastest, slowest}
    assert found[3] == "The other 6 runs lie between them in time."


def test_a_realised_ratio_that_nobody_asked_for_names_both() -> None:
    assert ratio_words(fabric(1, 1.0)) == "2:1"
    assert ratio_words(replace(fabric(1, 1.0), asked_oversubscription="3:1")) == "2:1 (asked: 3:1)"
    assert switch_words(fabric(1, 1.0)) == "4 leaves, 2 spines (SN5600)"


def test_a_workload_that_a_run_lacks_is_one_row() -> None:
    differences = (
        ComparedKey(key="name", values=("a", "b")),
        ComparedKey(key="traffic.size", values=("1MB", None)),
        ComparedKey(key="traffic.pattern", values=("incast", None)),
        ComparedKey(key="fabric.radix", values=("4", None)),
        ComparedKey(key="fabric.hosts", values=("4", "8")),
    )
    found = different_keys(compared(a_run("a", 1e6), a_run("b", 1e6, group=1), differences=differences))
    assert [(one.key, one.values) for one in found] == [
        ("name", ("a", "b")), ("traffic", ("2 keys", None)), ("fabric.radix", ("4", None)),
        ("fabric.hosts", ("4", "8")),
    ]  # fmt: skip


def test_numbers_of_one_workload_alone_are_counted() -> None:
    def number(name: str, *values: float | None) -> ComparedNumber:
        empty = (None,) * len(values)
        return ComparedNumber(name=name, unit="ps", values=values, changes=empty, is_clear=empty)

    numbers = (number("both", 1.0, 2.0), number("mine", 1.0, None), number("same", 3.0, 3.0))
    runs = (a_run("a", 1e6), a_run("b", 1e6, group=1))
    changed, alone = changed_numbers(compared(*runs, numbers=numbers))
    assert ([one.name for one in changed], alone) == (["both"], 1)
    together = compared(runs[0], replace(runs[1], group=0), numbers=numbers)
    assert [one.name for one in changed_numbers(together)[0]] == ["both", "mine"]


def test_fabrics_of_named_runs_have_the_names_of_what_differs() -> None:
    """Runs that a user named say nothing of a fabric that several of them share."""
    fabrics = [fabric(place, 30.0 - place) for place in range(2)]
    runs = [a_run(f"{model}-{place}", 10.0 + place, group=group, fabric=fabrics[place])
            for group, model in enumerate(("dense", "moe")) for place in range(2)]  # fmt: skip
    asked = ComparedKey(key="fabric.oversubscription", values=("1", "2", "1", "2"))
    assert fabric_names(compared(*runs, differences=(asked,))) == {0: "oversubscription 1:1", 1: "oversubscription 2:1"}
    radix = ComparedKey(key="fabric.radix", values=("64", None, "64", None))
    assert fabric_names(compared(*runs, differences=(radix,))) == {0: "radix 64", 1: "radix not set"}
    many = tuple(ComparedKey(key=f"fabric.{key}", values=("1", "2", "1", "2")) for key in ("a", "b", "c"))
    assert fabric_names(compared(*runs, differences=many)) == {0: "dense-0", 1: "dense-1"}


def test_the_first_columns_are_those_that_people_compare() -> None:
    """A narrow screen shows the name, time, change and price; long names wrap there."""
    speed = {"speed": 0.4, "speed_name": "MFU", "speed_unit": "share", "exposed_share": 0.1}
    runs = [a_run("a", 8e6, fabric=fabric(0, 100.0), **speed), a_run("b", 9e6, fabric=fabric(1, 80.0), **speed)]
    made = run_tables(compared(*runs))
    assert made.startswith('<div class="named">')
    assert list(rows(page_of(made), "run")[0])[:5] == ["run", "completion", "change", "price of the fabric", "per GPU"]
