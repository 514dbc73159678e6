"""Routes: groups of candidate ports, delivery, and what a failed link changes."""

from __future__ import annotations

import time

from helpers.topology_routing import RATES, all_up

from weftwork.spec.device import Nic, Switch
from weftwork.topology.routing import routes
from weftwork.topology.shapes.fat_tree import fat_tree


def test_8192_hosts_are_routed_in_under_two_seconds() -> None:
    fabric = fat_tree(tiers=3, radix=32, switch=Switch(), nic=Nic(), **RATES)
    began = time.process_time()
    table = routes(fabric, all_up(fabric))
    assert time.process_time() - began < 2
    assert table.group_of.shape == (8_192 + 1_280, 512)
