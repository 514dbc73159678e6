"""Endings of runs and of studies are rows of spec, whose fields fit each other."""

from __future__ import annotations

from weftwork.spec.endings import CUT_BY_HAND, ENDINGS, WHOLE, ending_of_all
from weftwork.spec.study_ends import STUDY_ENDS


def test_one_ending_is_whole_and_one_is_by_hand() -> None:
    assert [ending.status for ending in ENDINGS.values() if ending.is_whole] == [WHOLE]
    assert [ending.status for ending in ENDINGS.values() if ending.is_by_hand] == [CUT_BY_HAND]
    for ending in ENDINGS.values():
        assert bool(ending.headline and ending.notice and ending.predicate) == (not ending.is_whole)
        assert not (ending.has_failed and ending.is_as_asked)


def test_the_first_run_that_is_not_whole_names_them_all() -> None:
    assert ending_of_all([WHOLE, "stopped", "stuck"]) == "stopped"
    assert ending_of_all([WHOLE, WHOLE]) == WHOLE


def test_an_end_without_a_result_says_why_and_what_to_do() -> None:
    for end in STUDY_ENDS.values():
        assert bool(end.why and end.cause and end.then) == (not end.is_done)
