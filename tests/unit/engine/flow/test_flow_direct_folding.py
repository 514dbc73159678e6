"""Symmetric jobs on direct networks fold to few classes, and end as they do unfolded."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from helpers.direct_networks import dragonfly, torus
from helpers.tiny import flow_input_of, job_of

from weftwork.base.errors import ConfigError
from weftwork.engine.flow.flow_input import FlowInput
from weftwork.engine.flow.folding import FlowFolding
from weftwork.engine.flow.run import run
from weftwork.spec.fabric import Fabric
from weftwork.spec.job import Collect, Grid, Peer, Send, Size, Wait
from weftwork.spec.routing import Routing

SIZE_BYTES = 1 << 20
ORDERED = Routing(dimension_order=True)
GROUPS = Routing(fewest_global_hops=True)
BY_GROUP = Routing(fewest_global_hops=True, detour="always", detour_by_group=True)
BY_SWITCH = Routing(dimension_order=True, detour="always")
ADAPTIVE = Routing(fewest_global_hops=True, detour="adaptive", detour_by_group=True)

Peers = Callable[[int], list[int]]


def along(axis: int) -> Peers:
    """The next host of a 4 x 4 x 4 torus along an axis, as in a ring."""
    stride = 4**axis
    return lambda host: [host + ((host // stride + 1) % 4 - host // stride % 4) * stride]


def everyone(hosts: int) -> Peers:
    """All others, in turn by their distance."""
    return lambda host: [(host + step) % hosts for step in range(1, hosts)]


def everywhere(host: int) -> list[int]:
    """All others of a 4 x 4 torus, by their distance along both axes."""
    return [(host + x) % 4 + (host // 4 + y) % 4 * 4 for x in range(4) for y in range(4) if x or y]


CASES: dict[str, tuple[Fabric, Routing, Peers, int]] = {  # and the most classes of messages
    "a ring along x": (torus(4, 3), ORDERED, along(0), 1),
    "a ring along z": (torus(4, 3), ORDERED, along(2), 1),
    "a ring along y by detours": (torus(4, 3), BY_SWITCH, along(1), 1),
    "all to all on a torus": (torus(4, 2), ORDERED, everywhere, 15),
    "the next group": (dragonfly(2, 4, 2), GROUPS, lambda host: [(host + 8) % 72], 8),
    "the next group by detours": (dragonfly(2, 4, 2), BY_GROUP, lambda host: [(host + 8) % 72], 8),
    "all to all on a dragonfly": (dragonfly(1, 2, 1), GROUPS, everyone(6), 10),
}


def job_input(fabric: Fabric, routing: Routing, peers: Peers, **others: Any) -> FlowInput:
    hosts = len(fabric.hosts)
    table = [peers(host) for host in range(hosts)]
    program = [
        Send(peer=Peer(rule="table", table=column), size=Size(total_bytes=SIZE_BYTES), channel=number)
        for number, column in enumerate(zip(*table, strict=True))
    ]
    alone = Collect(  # one member, nothing to send: a job with collectives runs as activities, folded or not
        operation="barrier", size_bytes=1, group=Grid(axes=((1, 1),)), channel=0, pattern="ring", amount_bytes=1,
        label=0,
    )  # fmt: skip
    one = job_of([[[alone, *program, Wait()]]] * hosts)
    job = replace(one, programs=one.programs[:1], rank_program=np.zeros(hosts, np.int32))
    policy = "ecmp" if routing.detour == "adaptive" else "spray"
    return flow_input_of(fabric, job, routing=routing, port_selection=policy, **others)


@pytest.mark.parametrize("name", CASES)
def test_a_symmetric_job_folds_and_ends_alike(name: str) -> None:
    fabric, routing, peers, most = CASES[name]
    facts = FlowFolding(job_input(fabric, routing, peers, fold="exact"), "exact").facts
    assert facts["activities"] == len(fabric.hosts) * (len(peers(0)) + 1)
    assert facts["activity_cells"] - facts["actors"] <= most  # each kind of rank has one collective of its own
    folded, whole = (
        run(job_input(fabric, routing, peers, fold=fold)).packets.counters["end_ps"] for fold in ("exact", "never")
    )
    assert folded == pytest.approx(whole, rel=1e-9)


def test_folding_follows_the_rule_of_routes() -> None:
    """A diagonal message crosses two links of a torus in dimension order, and four by all shortest paths."""

    def diagonal(host: int) -> list[int]:
        return [(host // 4 + 1) % 4 * 4 + (host + 1) % 4]

    facts = [
        FlowFolding(job_input(torus(4, 2), routing, diagonal, fold="exact"), "exact").facts
        for routing in (ORDERED, Routing())
    ]
    assert [one["hops"] for one in facts] == [16 * (2 + 2), 16 * (2 + 4)]


def test_flows_under_adaptive_routing_do_not_fold() -> None:
    fabric = dragonfly(1, 2, 1)
    folded = run(job_input(fabric, ADAPTIVE, everyone(6), fold="auto"))
    assert "nothing folds" in folded.caveats["engine.folding"].text
    assert len(folded.actors) == 6
    with pytest.raises(ConfigError, match="alike at no time"):
        job_input(fabric, ADAPTIVE, everyone(6), fold="exact")
