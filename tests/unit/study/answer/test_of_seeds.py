"""The answer of several seeds: means, the culprit that most of them name, and how many they are."""

from __future__ import annotations

from dataclasses import replace

import pytest
from helpers.seed_answers import answer

from weftwork.report.verdict_words import verdict_words
from weftwork.spec.answer import Answer, Culprit, CulpritKind, Evidence, How, Limit, Resource
from weftwork.study.answer.of_seeds import answer_of_seeds


def culprit(name: str, share: float | None, *, how: How = "simulated") -> Culprit:
    return Culprit(
        kind="none" if name == "nothing" else "link", name=name, key=None, text="is slow",
        cost_s=None if share is None else 2 * share, cost_share=share, how=how, of="the run",
        command="again" if how == "bound" else None,
    )  # fmt: skip


def test_most_seeds_name_the_culprit_and_its_cost_is_their_mean() -> None:
    found = answer_of_seeds(
        [
            answer(culprit("y", 0.5), culprit("x", 0.4), seconds=2.0),
            answer(culprit("x", 0.2), culprit("y", 0.1), seconds=1.0),
            answer(culprit("x", 0.6), seconds=6.0),
        ],
        {},
    )
    assert (found.seeds, found.took.seconds) == (3, 3.0)
    assert (found.culprit.name, found.culprit.named_by) == ("x", 2)
    assert (found.culprit.cost_share, found.culprit.cost_s) == pytest.approx((0.4, 0.8))
    (other,) = found.others
    assert (other.name, other.named_by) == ("y", 2)
    assert other.cost_share == pytest.approx(0.3)


def test_the_port_that_most_seeds_name_limits_them() -> None:
    nobody = culprit("nothing", 0.0)
    each = [answer(nobody, port=port, share=share) for port, share in (("a", 0.9), ("b", 0.4), ("b", 0.6))]
    found = answer_of_seeds(each, {"exposed_share": {"value": None}})
    assert found.limited_by == Limit(name="b", share=0.5, number="busiest_link", named_by=2)
    assert (found.culprit.kind, found.culprit.named_by, found.others) == ("none", 3, ())


def test_the_largest_mean_share_limits_an_iteration() -> None:
    each = [
        replace(answer(culprit("x", 0.1)), limited_by=Limit(name=name, share=0.6, number="any"))
        for name in ("exposed communication", "computing", "computing")
    ]
    numbers = {"computing_share": {"value": 0.3}, "exposed_share": {"value": 0.45}, "bubble_share": {"value": 0.25}}
    found = answer_of_seeds(each, numbers).limited_by
    assert found == Limit(name="exposed communication", share=0.45, number="exposed_share", named_by=1)


def test_one_bound_makes_the_mean_a_bound_and_a_cost_that_is_not_known_leaves_none() -> None:
    mixed = answer_of_seeds([answer(culprit("x", 0.2)), answer(culprit("x", 0.4, how="bound"))], {}).culprit
    assert (mixed.how, mixed.command) == ("bound", "again")
    assert mixed.cost_share == pytest.approx(0.3)
    unknown = answer_of_seeds([answer(culprit("x", 0.2)), answer(culprit("x", None), seconds=None)], {})
    assert (unknown.culprit.cost_s, unknown.culprit.cost_share, unknown.took.seconds) == (None, None, None)


def nameless(kind: CulpritKind, share: float, port: str = "a->b", lost: float = 0.0) -> Answer:
    """An answer without a culprit, with the useful work of one port and what was lost."""
    verdict = replace(culprit("nothing", None), kind=kind, name=kind)
    evidence = Evidence(resources=(Resource(name=port, useful_share=share),), lost_share=lost, slowdown=1 + lost)
    return answer(verdict, evidence=evidence)


def test_a_verdict_of_seeds_claims_no_more_than_that_of_any_of_them() -> None:
    healthy, loaded, unclear = nameless("none", 0.99), nameless("load", 0.95, lost=0.02), nameless("unknown", 0.5)
    assert answer_of_seeds([healthy, healthy, loaded], {}).culprit.kind == "load"
    assert answer_of_seeds([healthy, healthy, loaded, unclear], {}).culprit.kind == "unknown"
    assert answer_of_seeds([healthy, healthy], {}).culprit.kind == "none"


@pytest.mark.parametrize("order", [1, -1])
def test_evidence_of_seeds_is_true_of_each_of_them(order: int) -> None:
    each = [nameless("none", 0.99), nameless("none", 0.93, lost=0.005)][::order]
    found = answer_of_seeds(each, {}).evidence
    assert found == Evidence(resources=(Resource(name="a->b", useful_share=0.93),), lost_share=0.005, slowdown=1.005)
    other = answer_of_seeds([*each, nameless("none", 0.91, port="c->d")], {})
    assert other.evidence is not None
    assert other.evidence.resources == (Resource(name="", useful_share=0.91),)
    assert "the busiest resource of each seed did useful work for 91 % of the time" in verdict_words(other)
    assert answer_of_seeds([*each, answer(culprit("x", 0.1), seconds=None)], {}).evidence is None
