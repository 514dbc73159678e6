"""Rail-optimized fabrics: closed forms, the leaf of each NIC port, three tiers, planes, rails that nothing joins."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from helpers.rail_optimized import leaves_of, rail_fabric
from hypothesis import given
from hypothesis import strategies as st

from weftwork.base.errors import ConfigError
from weftwork.spec.device import Server
from weftwork.spec.rails import ports_by_rail, rail_mistakes
from weftwork.topology.measures import measure
from weftwork.topology.routing import switch_distances


@st.composite
def shapes(draw: st.DrawFn) -> dict[str, Any]:
    gpus = draw(st.sampled_from([1, 2, 4, 8]))
    planes = draw(st.sampled_from([1, 2]))
    server = Server(name="any", gpus=gpus, nic_ports=gpus * planes * draw(st.sampled_from([1, 2])))
    possible = [rails for rails in range(1, 33) if not rail_mistakes(server, rails=rails, planes=planes)]
    return {
        "gpus": gpus, "nic_ports": server.nic_ports, "planes": planes, "rails": draw(st.sampled_from(possible)),
        "servers": draw(st.integers(1, 24)), "radix": draw(st.sampled_from([32, 64])),
        "ratio": draw(st.sampled_from([None, 1, 2, 3])), "rail_only": draw(st.booleans()),
    }  # fmt: skip


@given(shape=shapes())
def test_any_shape_keeps_its_promises(shape: dict[str, Any]) -> None:
    node = {"gpus": shape["gpus"], "nic_ports": shape["nic_ports"]}
    try:
        fabric = rail_fabric(
            node=node, hosts=shape["servers"], planes=shape["planes"], rails=shape["rails"], radix=shape["radix"],
            oversubscription=shape["ratio"], topology="rail-only" if shape["rail_only"] else "rail-optimized",
        )  # fmt: skip
    except ConfigError as refused:
        text = str(refused)
        reasons = ("ports", "do not divide into equal pods", "nothing is above these leaves")
        assert any(reason in text for reason in reasons[: 1 if shape["ratio"] is None else 3])
        return
    server = fabric.servers[0]
    leaves = leaves_of(fabric)
    plane, rail = ports_by_rail(server, rails=shape["rails"], planes=shape["planes"])
    width = shape["nic_ports"] // (shape["planes"] * shape["rails"])
    assert fabric.node_pod is not None
    for host, row in enumerate(leaves.tolist()):
        leaf = np.array(row)
        assert set(fabric.node_pod[leaf].tolist()) == {int(fabric.node_pod[host])}
        counts = np.unique(leaf, return_counts=True)[1]
        assert (counts == width).all()  # every leaf of the pod has this server's ports of its rail and plane, no other
        assert len(counts) == shape["planes"] * shape["rails"]
        assert len(set(zip(leaf.tolist(), plane.tolist(), rail.tolist(), strict=True))) == len(counts)
    degree = np.diff(fabric.ports.base)[len(fabric.hosts) :]
    assert (degree <= shape["radix"]).all()
    ratios = measure(fabric).oversubscription_by_tier
    if shape["ratio"] is None:
        assert ratios.get(1, 0) <= 1 + 1e-9
    else:
        assert ratios[1] == pytest.approx(shape["ratio"], rel=1e-3)
        assert len(set(np.bincount(fabric.node_pod[fabric.hosts]).tolist())) == 1
    reached = switch_distances(fabric, np.ones(len(fabric.links), np.bool_), np.unique(leaves).astype(np.int32))
    same_plane = reached[np.unique(leaves[:, plane == 0])] if shape["planes"] == 1 and not shape["rail_only"] else None
    if same_plane is not None and len(fabric.node_names) > len(fabric.hosts) + 1 and ratios:
        assert (same_plane >= 0).all()
