"""Objects close their children, twice without harm, and when nobody refers to them."""

from __future__ import annotations

from contextlib import suppress

from helpers.pyverbs_ends import DEVICE, End

from weftwork.compat.pyverbs.base import close_orphans
from weftwork.compat.pyverbs.device import Context
from weftwork.compat.pyverbs.mr import MR, MW
from weftwork.compat.pyverbs.pd import PD
from weftwork.compat.pyverbs.software_nics import set_devices
from weftwork.compat.pyverbs.srq import SRQ, SrqInitAttr


def test_a_context_closes_all_that_it_has() -> None:
    end = End(srq=lambda pd: SRQ(pd, SrqInitAttr()))
    window = MW(end.pd, 1)
    device = end.context.nic.device
    end.context.close()
    made = (end.qp, end.mr, end.shared, window, end.cq, end.pd, end.context)
    assert [thing.is_open for thing in made] == [False] * 7
    assert device.is_closed
    for thing in made:
        thing.close()


def test_a_domain_closes_its_objects_and_not_the_queue() -> None:
    end = End()
    end.pd.close()
    assert (end.qp.is_open, end.mr.is_open, end.cq.is_open) == (False, False, True)
    assert len(end.context.nic.device.nic.memory) == 0


def test_a_completion_queue_closes_its_queue_pairs() -> None:
    end = End()
    end.cq.close()
    assert (end.qp.is_open, end.mr.is_open) == (False, True)


def test_contexts_of_a_program_share_the_device_and_the_last_one_closes_it() -> None:
    set_devices({DEVICE: "127.63.0.1"})
    first, second = Context(name=DEVICE), Context(name=DEVICE)
    device = first.nic.device
    assert second.nic.device is device
    first.close()
    assert not device.is_closed
    second.close()
    assert device.is_closed


def test_what_nobody_refers_to_is_closed_by_the_next_call() -> None:
    context = Context(name=DEVICE)
    memory = context.nic.device.nic.memory
    region = MR(PD(context), 64, 1)
    assert len(memory) == 1
    del region
    close_orphans()
    assert len(memory) == 0


def test_a_context_manager_closes_and_reports_no_error_of_its_own() -> None:
    with suppress(KeyError), Context(name=DEVICE) as context, PD(context) as pd:
        raise KeyError
    assert not pd.is_open
    assert not context.is_open
