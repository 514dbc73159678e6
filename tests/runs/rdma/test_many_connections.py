"""Connections that begin together all begin, and leave nothing behind."""

from __future__ import annotations

import asyncio
import gc
import threading
from pathlib import Path

from weftwork import rdma

TOGETHER = 500
PORT = 7_701


async def connected(address: str) -> tuple[int, dict[str, int]]:
    """Let all connections begin at once from one device: those that stand, and what else came out of it."""
    failures: dict[str, int] = {}
    async with rdma.listen(address, PORT) as listener, rdma.RdmaDevice(address) as device:

        async def serve() -> None:
            waiting = [listener.get_request() for _ in range(TOGETHER)]
            for each in waiting:
                await (await each).accept()

        served = asyncio.create_task(serve())
        rendezvous = rdma.Rendezvous(device)
        asked = [rendezvous.connect(address, PORT) for _ in range(TOGETHER)]
        stand = 0
        for result in await asyncio.gather(*asked, return_exceptions=True):
            if isinstance(result, BaseException):
                failures[str(result)] = failures.get(str(result), 0) + 1
            else:
                stand += 1
        await asyncio.wait_for(served, 60)
    return stand, failures


def held() -> tuple[int, int]:
    """Descriptors and threads of this process, without those that only the collector of garbage still knows."""
    gc.collect()
    return len(list(Path("/proc/self/fd").iterdir())), threading.active_count()


def test_five_hundred_connections_begin_together() -> None:
    """A hand-over that has no room waits, and a request is not taken inside the one before it."""
    before = held()
    assert asyncio.run(connected("127.0.0.1")) == (TOGETHER, {})
    assert held() == before
