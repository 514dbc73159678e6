"""What a topology says of its size before it is built is what is built."""

from pathlib import Path
from typing import Any

import yaml
from hypothesis import assume, given
from hypothesis import strategies as st

from weftwork.base.errors import ConfigError
from weftwork.hardware.catalogue import nodes
from weftwork.spec.fabric import HOST
from weftwork.spec.scenario.scenario import loads
from weftwork.study.prepare.prepare import known_names
from weftwork.topology.build import fabric_of_section, fabric_size
from weftwork.topology.routing import attachments

small = st.integers(1, 6)
fat_trees = st.fixed_dictionaries(
    {"topology": st.just("fat-tree"), "tiers": st.sampled_from([2, 3]), "radix": st.sampled_from([2, 4, 6, 8])},
    optional={"hosts": st.integers(1, 40)},
)
leaf_spines = st.fixed_dictionaries(
    {"topology": st.just("leaf-spine"), "leaves": small, "spines": small, "hosts_per_leaf": small},
    optional={"links_per_pair": st.integers(1, 3), "hosts": st.integers(1, 30), "dual_homed": st.booleans()},
)
derived = st.fixed_dictionaries(
    {"topology": st.just("leaf-spine"), "hosts": st.integers(1, 60), "radix": st.sampled_from([4, 8, 16, 32])},
    optional={"oversubscription": st.sampled_from([1, 2, 3])},
)
rails = st.fixed_dictionaries(
    {
        "topology": st.sampled_from(["rail-optimized", "rail-only"]),
        "hosts": st.integers(1, 40),
        "radix": st.sampled_from([4, 8, 16]),
    },
    optional={"tiers": st.sampled_from([2, 3]), "planes": st.sampled_from([1, 2])},
)
ports = st.sampled_from([1, 2, 4])


@given(st.one_of(fat_trees, leaf_spines, derived, rails), ports)
def test_the_size_that_is_told_is_the_size_that_is_built(fabric: dict[str, object], nic_ports: int) -> None:
    node = {"model": "plain", "gpus": nic_ports, "nic_ports": nic_ports}
    document = {
        "schema": 3,
        "fabric": {"link_rate": "400Gbps", "node": node, **fabric},
        "traffic": {"pattern": "incast"},
    }
    told, built = _told_and_built(document)
    assume(told is not None)
    is_host = built.node_kind == HOST
    assert (told.hosts, told.switches, told.links) == (is_host.sum(), (~is_host).sum(), len(built.links))
    assert told.leaves == len(attachments(built)[0])


def _told_and_built(document: dict[str, object]) -> tuple[Any, Any]:
    """None for a fabric that cannot be."""
    try:
        section = loads(yaml.safe_dump(document), known=known_names(), nodes=nodes()).fabric
        return fabric_size(section), fabric_of_section(section, directory=Path())
    except ConfigError:
        return None, None
