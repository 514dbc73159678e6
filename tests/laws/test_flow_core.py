"""The critical core: near what every rank by itself does, and its bracket holds for every rate."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from helpers.cases import case_count
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from tests.helpers.flow_jobs import Degrees
from tests.laws.test_flow_folding import DEGREES, FABRICS, Case, fold, matrix, packet_input_of, textbook_rates

from weftwork.engine.flow import run as flow
from weftwork.engine.flow.flow_input import FlowInput, Mode
from weftwork.engine.flow.folding import FlowFolding

cases = st.builds(
    Case,
    fabric=st.sampled_from(sorted(FABRICS)),
    degrees=st.sampled_from(DEGREES),
    mode=st.just(Mode.HASHED),
    order=st.sampled_from(["packed", "pods", "random-servers", "random"]),
    seed=st.integers(1, 20),
)


def kinds_of(network: dict[str, Any]) -> NDArray[np.int32]:
    """The kind of every activity of a core."""
    kinds: NDArray[np.int32] = np.full(len(network["latency_ps"]), -1, np.int32)
    first = np.concatenate([network[name]["first_activity"] for name in ("connections", "collectives")])
    count = np.concatenate(
        [network[name]["activities"] + network[name]["companions"] for name in ("connections", "collectives")]
    )
    for kind, (begin, many) in enumerate(zip(first.tolist(), count.tolist(), strict=True)):
        kinds[begin : begin + many] = kind
    return kinds


def end_s(engine_input: FlowInput, folding: str) -> float:
    return float(flow.run(replace(engine_input, fold=folding)).milestones["at_ps"].max()) / 1e12


@settings(max_examples=case_count(plain=15, deep=100), deadline=None)
@given(case=cases)
def test_a_core_of_all_replicas_is_exact_where_they_have_one_rank_a_stage(case: Case) -> None:
    engine_input = packet_input_of(replace(case, degrees=Degrees(pipeline=4, data=16, near=False)))
    assert FlowFolding(engine_input, "core").facts["replicas"] == 16
    end_of_all_s = end_s(engine_input, "exact")
    rounding_s = 10e-12  # chosen: instants are whole picoseconds, and a chain of transfers rounds at each of its ends
    assert end_s(engine_input, "core") == pytest.approx(end_of_all_s, rel=1e-9, abs=rounding_s)


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_a_core_is_near_what_every_rank_by_itself_does(seed: int) -> None:
    case = Case("rails, 3 tiers", Degrees(tensor=4, pipeline=4, data=8, near=False), Mode.HASHED, "random", seed)
    engine_input = packet_input_of(case)
    assert end_s(engine_input, "core") == pytest.approx(end_s(engine_input, "exact"), rel=0.05)


@settings(max_examples=case_count(plain=25, deep=150), deadline=None)
@given(case=cases, slots=st.sampled_from([1, 200, 1_000]))
def test_every_kind_has_somebody_to_wait_for(case: Case, slots: int) -> None:
    core = fold(case, "core", core_slots=slots, core_few=0)
    network, own = core.network, core.graph["activity_cell"]
    kinds = kinds_of(network)
    waited = np.concatenate([network[name]["activities"] for name in ("connections", "collectives")])
    assert set(kinds.tolist()) == set(own.tolist())  # also that ranges of activities leave none out
    assert (waited > 0).all()
    assert len(kinds) <= len(own)
    parties = core.facts["replicas"]
    assert network["actor_ranks"].sum() == case.degrees.ranks
    assert len(network["actor_ranks"]) >= parties


@settings(max_examples=case_count(plain=25, deep=150), deadline=None)
@given(case=cases, half=st.booleans())
def test_no_rate_is_outside_the_bracket(case: Case, half: bool) -> None:  # noqa: FBT001 - hypothesis names it
    core = fold(case, "core")
    graph, own = core.graph, core.graph["activity_cell"]
    active = np.ones(len(own), np.bool_)
    if half:
        active = np.random.default_rng(case.seed).random(len(own)) < 0.5
    rates = textbook_rates(matrix(graph, len(core.capacity)), core.capacity, active)
    fastest, lowest = core.bracket
    for network, holds in ((fastest, np.less_equal), (lowest, np.greater_equal)):
        assert network["connections"]["activities"].tolist() == [1] * len(network["connections"]["source"])
        limit = np.full(len(network["latency_ps"]), np.inf)
        has_link = np.diff(network["hop_ptr"]) > 0
        limit[has_link] = network["capacity"]
        shared = active & has_link[own]
        assert holds(rates[shared], limit[own[shared]] * (1 + (1e-9 if holds is np.less_equal else -1e-9))).all()


def test_actors_of_a_core_are_stages_of_replicas() -> None:
    case = Case("leaf-spine", Degrees(tensor=2, pipeline=4, data=16, near=False), Mode.HASHED, "random", 3)
    assert fold(case).facts["actors"] == 128  # nothing folds
    core = fold(case, "core")
    assert core.facts["replicas"] == 16
    assert core.network["actor_ranks"].tolist() == [2] * 64
    few = fold(case, "core", core_slots=100)
    assert few.facts["replicas"] == 2  # of 40 operations each
    assert few.network["actor_ranks"].tolist() == [32] * 8 or few.network["actor_ranks"].sum() == 128
    assert few.network["approximate"]


def test_a_core_is_taken_where_too_much_is_left() -> None:
    case = Case("leaf-spine", Degrees(tensor=2, pipeline=4, data=16, near=False), Mode.HASHED, "random", 3)
    assert not fold(case, "auto").network["approximate"]
    assert fold(case, "auto", cell_limit=100).network["approximate"]


def test_a_job_without_replicas_is_not_given_to_a_core() -> None:
    case = Case("leaf-spine", Degrees(tensor=1, pipeline=128, data=1, near=False), Mode.HASHED, "random", 3)
    folded = fold(case, "auto", cell_limit=100)
    assert not folded.network["approximate"]
    assert folded.facts["actors"] == 128


def test_bytes_of_links_are_those_of_the_whole_job_also_for_a_core() -> None:
    core = fold(Case("leaf-spine", DEGREES[0], Mode.HASHED, "random", 3), "core")
    count = len(core.network["connections"]["source"]) + len(core.network["collectives"]["communicator"])
    amount = np.arange(1, count + 1).astype(np.float64)
    wanted = matrix(core.graph, len(core.capacity)).T @ amount[core.graph["activity_cell"]]
    np.testing.assert_allclose(core.carried(amount), wanted, rtol=1e-12)


@pytest.mark.parametrize("has_two_shapes", [False, True])
def test_what_never_touches_the_fabric_takes_as_long_in_a_core(has_two_shapes: bool) -> None:  # noqa: FBT001
    degrees = Degrees(tensor=8, data=16)
    engine_input = packet_input_of(Case("rails", degrees, Mode.HASHED), has_two_shapes=has_two_shapes)
    ends = [
        np.unique(flow.run(replace(engine_input, fold=folding)).milestones["at_ps"]).tolist()
        for folding in ("exact", "core")
    ]
    assert ends[0] == ends[1]
