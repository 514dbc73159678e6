"""A network whose hosts forward is refused by every run, and answers what needs no run."""

from __future__ import annotations

from typing import Any

import pytest

import weftwork
from weftwork.base.errors import ConfigError
from weftwork.topology.build import fabric_of

FABRIC: dict[str, Any] = {"topology": "bcube", "hosts_per_switch": 4, "link_rate": "100Gbps"}


WORKLOADS: dict[str, dict[str, Any]] = {
    "traffic": {"traffic": {"pattern": "permutation", "size": "64KiB"}},
    "collective": {"collective": {"operation": "all-reduce", "size": "1MiB"}},
    "training": {"training": {"model": "llama-3-8b", "global_batch": 16}},
}


@pytest.mark.parametrize("fidelity", ["packet", "flow"])
@pytest.mark.parametrize("workload", WORKLOADS)
def test_a_run_is_refused_with_the_reason(workload: str, fidelity: str) -> None:
    document = {"schema": 3, "fabric": FABRIC, **WORKLOADS[workload], "engine": {"fidelity": fidelity}}
    with pytest.raises(ConfigError) as wrong:
        weftwork.prepare(document)
    (mistake,) = wrong.value.mistakes
    assert mistake.path == "fabric.topology"
    assert "found bcube, in which servers forward packets of other servers" in mistake.text


def test_a_fabric_built_in_python_is_refused() -> None:
    fabric = fabric_of(topology="bcube", hosts_per_switch=4, link_rate_bps=10**11)
    document = {"schema": 3, "fabric": FABRIC, **WORKLOADS["traffic"]}
    with pytest.raises(ConfigError, match="servers do not forward in either engine"):
        weftwork.prepare(document, fabric=fabric)
