"""Every kind of suspect keeps the contract of its folder, and every reaction of an answer has its kind."""

from __future__ import annotations

import pytest

from weftwork.spec.answer import REACTIONS
from weftwork.study.answer.suspects import SUSPICIONS
from weftwork.study.answer.suspicion import NEEDS, RunRecords
from weftwork.testing.suspicions import (
    SmallRun,
    gain_findings,
    kind_findings,
    repeat_findings,
    small_records,
    trace_findings,
    word_findings,
)


@pytest.fixture(scope="module")
def records() -> list[tuple[str, RunRecords]]:
    """Small runs of all kinds of workload, which all kinds of suspects are asked about."""
    return list(small_records())


@pytest.mark.parametrize("name", SUSPICIONS.names)
def test_a_kind_passes_the_kit_of_a_users_own_file(name: str, records: list[tuple[str, RunRecords]]) -> None:
    assert list(kind_findings(name)) == []
    for words, each in records:
        run = SmallRun.of(name, words, each)
        if run is not None:
            findings = [*word_findings(run), *repeat_findings(run), *gain_findings(run), *trace_findings(run)]
            assert (words, findings) == (words, [])


def test_the_small_runs_have_what_kinds_need(records: list[tuple[str, RunRecords]]) -> None:
    """Else a file of a user's own would pass the kit unasked."""
    assert {need for need, is_met in NEEDS.items() if any(is_met(each) for _, each in records)} == set(NEEDS)


@pytest.mark.parametrize("name", SUSPICIONS.names)
def test_a_kind_keeps_its_contract(name: str) -> None:
    kind = SUSPICIONS[name]
    assert kind.rank > 0  # 0 is for files of a user's own
    assert kind.needs <= set(NEEDS)
    assert kind.unless == () or kind.rank > max(SUSPICIONS[other].rank for other in kind.unless)
    assert (kind.standing == "reaction") == (kind.key in REACTIONS)
    assert SUSPICIONS.text(name).endswith(".")


def test_every_reaction_has_its_kind() -> None:
    assert {kind.key for kind in SUSPICIONS.values() if kind.standing == "reaction"} == set(REACTIONS)


def test_kinds_of_one_rank_have_keys_of_a_job() -> None:
    """Suspects of one rank go by job, so that they are of jobs."""
    ranks = [kind.rank for kind in SUSPICIONS.values()]
    shared = [kind for kind in SUSPICIONS.values() if ranks.count(kind.rank) > 1]
    assert all(kind.key.startswith("training.") for kind in shared)
