"""Folding is exact: what runs on cells has the rates of the job unfolded, on every kind of routing and placement."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np
import pytest
from helpers.cases import case_count
from hypothesis import example, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.sparse import csr_array
from tests.helpers.flow_jobs import Degrees, parallel_job

from weftwork.engine.flow.flow_input import FlowInput, Mode
from weftwork.engine.flow.folding import FlowFolding, Folding
from weftwork.engine.flow.lower import lower_flow
from weftwork.engine.settings import EngineSettings
from weftwork.policies.load import load
from weftwork.spec.fabric import Fabric
from weftwork.spec.routing import Routing
from weftwork.spec.transport import Transport
from weftwork.topology.build import fabric_of
from weftwork.workload import placement

FABRICS: dict[str, dict[str, Any]] = {
    "rails": {"topology": "rail-optimized", "hosts": 16, "node": {"model": "dgx-h100"}, "pods": 2, "spines": 8},
    "rails, 3 tiers": {"topology": "rail-optimized", "hosts": 16, "node": {"model": "dgx-h100"}, "radix": 16,
                       "tiers": 3, "nodes_per_pod": 4},
    "leaf-spine": {"topology": "leaf-spine", "leaves": 4, "spines": 4, "hosts_per_leaf": 4,
                   "node": {"model": "dgx-h100"}},
    "halves": {"topology": "leaf-spine", "leaves": 4, "spines": 2, "hosts_per_leaf": 4,
               "node": {"model": "dgx-h100", "nvlink_domain_gpus": 4}},
    "fat tree": {"topology": "fat-tree", "tiers": 3, "radix": 8, "hosts": 64, "node": {"gpus": 2, "nic_ports": 1}},
}  # fmt: skip
DEGREES = (
    Degrees(tensor=8, pipeline=4, data=4),
    Degrees(tensor=4, context=2, pipeline=2, data=8, expert=4),
    Degrees(tensor=2, pipeline=4, data=16, expert=8, near=False),
    Degrees(tensor=1, pipeline=2, data=32, expert=32, near=False),
    Degrees(tensor=2, context=2, pipeline=1, data=16),
    Degrees(tensor=3, pipeline=3, data=5, expert=5),
    Degrees(tensor=8, pipeline=8, data=2, near=False),
)
EXACT = 1e-12


@dataclass(frozen=True)
class Case:
    fabric: str
    degrees: Degrees
    mode: Mode
    order: str = "packed"
    seed: int = 1
    straggler: int | None = None
    slow_link: int | None = None
    paths: int = 0
    spreads_ways: bool = False


@cache
def fabric(name: str) -> Fabric:
    return fabric_of(**FABRICS[name])


def packet_input_of(case: Case, *, has_two_shapes: bool = False) -> FlowInput:
    built = fabric(case.fabric)
    if case.slow_link is not None:
        links = built.links.copy()
        links["rate_bps"][case.slow_link % len(links)] //= 3
        built = replace(built, links=links)
    place = placement.PLACEMENTS[case.order](built, case.degrees.ranks, seed=case.seed)
    job = parallel_job(case.degrees, place, network_share=0.75, has_two_shapes=has_two_shapes)
    factor = np.ones(job.ranks)
    if case.straggler is not None:
        factor[case.straggler % job.ranks] = 1.25
    engine_input = lower_flow(
        fabric=built,
        job=job,
        transport=Transport(),
        compute_factor=factor,
        settings=EngineSettings(
            port_selection=load("port_selection", "ecmp"), seed=case.seed, routing=Routing(paths=case.paths)
        ),
    )
    return replace(engine_input, mode=case.mode, spreads_ways=case.spreads_ways)


def fold(case: Case, folding: Folding = "exact", **options: Any) -> FlowFolding:
    return FlowFolding(packet_input_of(case), folding, **options)


def matrix(of: dict[str, Any], links: int) -> csr_array:
    """Weights, activities by links."""
    return csr_array((of["hop_weight"], of["hop_link"], of["hop_ptr"]), shape=(len(of["hop_ptr"]) - 1, links))


def textbook_rates(weights: csr_array, capacity: NDArray[np.float64], active: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Progressive filling, round by round: all rates grow until a link is full; who crosses it keeps what it has."""
    rates = np.full(weights.shape[0], np.inf)
    rates[~active] = 0.0
    open_ = active & (np.diff(weights.indptr) > 0)
    rest = capacity.copy()
    columns = weights.tocsc()
    by_link = columns.T.tocsr()
    while open_.any():
        pull = by_link @ open_.astype(float)
        with np.errstate(divide="ignore", invalid="ignore"):
            level = np.where(pull > 0, rest / pull, np.inf)
        lowest = level.min()
        full = level <= lowest * (1 + 1e-13)
        fixed = open_ & ((weights != 0) @ full)
        rates[fixed] = lowest
        open_ &= ~fixed
        rest = np.maximum(capacity - by_link @ np.where(np.isfinite(rates), rates, 0.0), 0.0)
        rest[by_link @ open_.astype(float) == 0] = np.inf
    return rates


cases = st.builds(
    Case,
    fabric=st.sampled_from(sorted(FABRICS)),
    degrees=st.sampled_from(DEGREES),
    mode=st.sampled_from(Mode),
    order=st.sampled_from(["packed", "rails", "pods", "random-servers", "random"]),
    seed=st.integers(1, 5),
    straggler=st.none() | st.integers(0, 1000),
    slow_link=st.none() | st.integers(0, 1000),
    paths=st.sampled_from((0, 0, 1, 3)),
    spreads_ways=st.booleans(),
)


def active_kinds(folded: FlowFolding, seed: int) -> NDArray[np.bool_]:
    """Classes of activities that are active: all, or half of them."""
    count = len(folded.network["latency_ps"])
    draw = np.random.default_rng(seed)
    return np.ones(count, np.bool_) if seed % 2 else draw.random(count) < 0.5


@settings(max_examples=case_count(plain=60, deep=300), deadline=None)
@given(case=cases)
@example(case=Case("rails", DEGREES[1], Mode.SPRAY, "random", 2, straggler=17, slow_link=40))
@example(case=Case("rails, 3 tiers", DEGREES[0], Mode.HASHED, "pods", 3, straggler=5, slow_link=130))
@example(case=Case("fat tree", DEGREES[2], Mode.DETERMINISTIC, "rails", 4, straggler=99, slow_link=7))
@example(case=Case("rails, 3 tiers", DEGREES[4], Mode.HASHED, "random", 2, paths=5))
@example(case=Case("leaf-spine", DEGREES[1], Mode.SPRAY, "random", 2, paths=5, spreads_ways=True))
def test_rates_of_cells_are_those_of_the_job_unfolded(case: Case) -> None:
    folded = fold(case)
    graph, network, capacity = folded.graph, folded.network, folded.capacity
    active = active_kinds(folded, case.seed)
    own = graph["activity_cell"]
    whole = textbook_rates(matrix(graph, len(capacity)), capacity, active[own])
    cells = textbook_rates(matrix(network, len(network["capacity"])), network["capacity"], active)
    finite = np.isfinite(whole) & (whole > 0)
    assert (np.isfinite(cells[own]) == np.isfinite(whole)).all()
    np.testing.assert_allclose(cells[own][finite], whole[finite], rtol=EXACT)


def rows(of: dict[str, Any], class_of: NDArray[np.int32], row: int) -> dict[int, list[float]]:
    """Weights of an activity by class of link, each class in order."""
    found: dict[int, list[float]] = {}
    for hop in range(of["hop_ptr"][row], of["hop_ptr"][row + 1]):
        found.setdefault(int(class_of[of["hop_link"][hop]]), []).append(float(of["hop_weight"][hop]))
    return {link: sorted(weights) for link, weights in found.items()}


@settings(max_examples=case_count(plain=25, deep=150), deadline=None)
@given(case=cases)
def test_members_of_a_class_have_the_same_neighbours(case: Case) -> None:
    engine_input = packet_input_of(case)
    folded = FlowFolding(engine_input, "exact")
    graph, network = folded.graph, folded.network
    own, actor, link_cell = graph["activity_cell"], graph["rank_cell"], network["link_cell"]
    seen: dict[int, Any] = {}
    by_link: dict[int, list[tuple[int, float]]] = {}
    connections = len(graph["source"])
    for activity in range(len(own)):
        hops = rows(graph, link_cell, activity)
        if activity < connections:
            ends: Any = (int(actor[graph["source"][activity]]), int(actor[graph["destination"][activity]]))
        else:
            group = graph["communicator"][activity - connections]
            ends = sorted(actor[graph["members"][graph["member_ptr"][group] : graph["member_ptr"][group + 1]]].tolist())
        found = (hops, ends, int(graph["latency_ps"][activity]))
        assert seen.setdefault(int(own[activity]), found) == found
        for hop in range(graph["hop_ptr"][activity], graph["hop_ptr"][activity + 1]):
            by_link.setdefault(int(graph["hop_link"][hop]), []).append(
                (int(own[activity]), float(graph["hop_weight"][hop]))
            )
    of_link: dict[int, Any] = {}
    for link, shares in by_link.items():
        both = (float(folded.capacity[link]), sorted(shares))
        assert of_link.setdefault(int(link_cell[link]), both) == both
    first_operation = len(network["connections"]["source"])
    for rank in range(len(actor)):
        mine = graph["slots"][graph["slot_ptr"][rank] : graph["slot_ptr"][rank + 1]]
        a = actor[rank]
        wanted = network["slots"][network["slot_ptr"][a] : network["slot_ptr"][a + 1]]
        cells = [
            slot if slot < 0 else own[slot] - (first_operation if slot >= connections else 0) for slot in mine.tolist()
        ]
        assert cells == wanted.tolist()
        assert engine_input.rank_program[rank] == network["actor_program"][a]
        assert engine_input.rank_factor[rank] == network["actor_factor"][a]
    assert network["actor_ranks"].sum() == len(actor)
    assert network["activity_instances"].sum() == len(own)


@pytest.mark.parametrize("mode", list(Mode))
def test_what_links_have_carried_is_that_of_the_job(mode: Mode) -> None:
    folded = fold(Case("rails, 3 tiers", DEGREES[1], mode))
    graph, own = folded.graph, folded.graph["activity_cell"]
    amount = np.arange(1000, 1000 + len(folded.network["latency_ps"])).astype(np.float64)
    whole = matrix(graph, len(folded.capacity)).T @ amount[own]
    np.testing.assert_allclose(folded.carried(amount), whole, rtol=EXACT)
    cells = matrix(folded.network, len(folded.network["capacity"])).T @ amount
    crossed = folded.network["link_cell"] >= 0
    np.testing.assert_allclose(cells[folded.network["link_cell"][crossed]], whole[crossed], rtol=EXACT)


def test_a_symmetric_job_folds_to_one_actor_a_stage() -> None:
    folded = fold(Case("rails", Degrees(tensor=8, pipeline=4, data=4), Mode.SPRAY))
    assert folded.facts["ranks"] == 128
    assert folded.facts["actors"] == 4


def test_a_straggler_is_an_actor_of_its_own() -> None:
    case = Case("rails", DEGREES[1], Mode.SPRAY, straggler=17)
    network = fold(case).network
    alone = np.flatnonzero(network["actor_factor"] > 1)
    assert network["actor_ranks"][alone].tolist() == [1]
    assert network["actor_rank"][alone].tolist() == [17]


def test_never_means_every_rank_for_itself() -> None:
    folded = fold(Case("rails", DEGREES[0], Mode.SPRAY), "never")
    assert folded.facts["actors"] == 128
    assert folded.facts["activity_cells"] == folded.facts["activities"]
    assert not folded.network["folded"]


def test_links_that_change_apart_are_not_alike() -> None:
    case = Case("leaf-spine", DEGREES[1], Mode.DETERMINISTIC)
    fate = np.zeros(len(fold(case).capacity), np.uint64)
    fate[0] = 1
    link_cell = fold(case, link_fate=fate.tolist()).network["link_cell"]
    assert (link_cell == link_cell[0]).sum() == 1
    same = fold(case).network["link_cell"]
    assert (same == same[0]).sum() > 1
