"""Objects close their children, twice without harm, and when nobody refers to them."""

from __future__ import annotations

import gc
import os

from helpers.pyverbs_ends import DEVICE, End, pair

from weftwork.compat.pyverbs.base import close_orphans
from weftwork.compat.pyverbs.cq import CQ
from weftwork.compat.pyverbs.device import Context
from weftwork.compat.pyverbs.software_nics import open_nic


def test_garbage_is_closed_whatever_the_order_in_which_it_is_found() -> None:
    context = Context(name=DEVICE)
    nic = context.nic.device.nic
    for _ in range(3):
        ends = [End(), End()]
        ends.append(ends)  # a circle, which the collector alone can end
        del ends
    gc.collect()
    close_orphans()
    assert len(nic.memory) == 0
    queue = CQ(context, 8)
    assert queue.is_open


def test_a_fork_leaves_the_device_to_its_parent() -> None:
    client, server = pair()
    child = os.fork()
    if child == 0:
        client.context.close()  # nothing that the parent has may change
        os._exit(0 if open_nic(DEVICE).device is not server.context.nic.device else 1)
    assert os.waitpid(child, 0)[1] == 0
    server.receive()
    assert server.context.nic.is_here
    assert client.qp.qp_state == 3
