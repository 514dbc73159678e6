"""Native InfiniBand in memory: bytes on each link, what the switch changes and drops, addresses, and devices."""

from __future__ import annotations

import select
import threading

from helpers.rdma_devices import PATIENCE_S

from weftwork.rdma.drivers.mailbox import Mailbox


def test_a_mailbox_rings_for_each_of_two_threads() -> None:
    """The reader sleeps only while nothing waits, however the threads take turns."""
    box: Mailbox[int] = Mailbox()
    count = 20_000

    def write() -> None:
        for number in range(count):
            while not box.put(number):
                pass

    writer = threading.Thread(target=write)
    writer.start()
    poller = select.poll()
    poller.register(box.fileno(), select.POLLIN)
    found = []
    while len(found) < count:
        assert poller.poll(PATIENCE_S * 1000), f"asleep after {len(found)}"
        while (number := box.take()) is not None:
            found.append(number)
    writer.join(PATIENCE_S)
    assert found == list(range(count))
    box.close()
