"""Every plan that the search makes can be: preparing its scenario refuses nothing, whatever keys the user has fixed."""

from __future__ import annotations

from itertools import islice
from pathlib import Path
from typing import Final

from helpers.cases import Saw, case_count
from helpers.plan_questions import searched

from weftwork.study.plan.search import with_plan
from weftwork.study.plan.space import candidates
from weftwork.study.prepare.prepare import prepare

SEEDS: Final = range(case_count(plain=6, deep=60))
WAYS: Final = 30  # to spread the GPUs of a question
LOOKED_AT: Final = 100  # plans of a question, of which every twentieth is prepared


def test_every_candidate_can_be(tmp_path: Path, saw: Saw) -> None:
    prepared = 0
    for seed in SEEDS:
        asked = searched(seed, tmp_path)
        if asked is None:
            continue
        for one in islice(candidates(asked.space, asked.spread[:WAYS]), 0, LOOKED_AT, 20):
            prepare(with_plan(asked.scenario, one.keys))
            prepared += 1
    saw(len(SEEDS), f"{prepared} plans prepared")
    assert prepared >= len(SEEDS)
