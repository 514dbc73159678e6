"""A door for one connection in a thread, as the servers of the RDMA tools open it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from weftwork.base.errors import PeerError
from weftwork.rdma.connection import RdmaConnection
from weftwork.rdma.perf.meeting import Door

__all__ = ["opened_door"]

_PATIENCE_S = 60.0


@contextmanager
def opened_door(
    address: str, port: int, serve: Callable[[RdmaConnection, Door], Any], found: list[Any]
) -> Iterator[None]:
    """Serve one connection in a thread, which ends with the block; an error of the peer goes to ``found``."""
    listens = threading.Event()

    def run() -> None:
        with Door(address, port, wire="rocev2") as door:
            listens.set()
            connection = door.next_request()
            try:
                serve(connection, door)
            except PeerError as error:
                found.append(error)
            finally:
                connection.close()

    thread = threading.Thread(target=run)
    thread.start()
    try:
        assert listens.wait(_PATIENCE_S)
        yield
    finally:
        thread.join(_PATIENCE_S)
        assert not thread.is_alive()
