"""The protocol of rping, on a connection of Weftwork.

A ping: the client names a buffer, the server reads it and says so; the client names another one, the server writes what
it has read there and says so.
Source: rdma-core librdmacm/examples/rping.c.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Final

from weftwork.rdma.region import RemoteRange
from weftwork.rdma.verbs import AccessFlags

if TYPE_CHECKING:
    import subprocess

    from weftwork.rdma.connection import RdmaConnection
    from weftwork.rdma.region import LocalRange
    from weftwork.rdma.rendezvous import RdmaConnector, RdmaListener

_INFO: Final = struct.Struct(">QII")  # struct rping_rdma_info: address, key, size
PATIENCE_S: Final = 60.0


class RpingEnd:
    """One end; it posts its receive at once, so it is made before the connection is accepted or asked for."""

    def __init__(self, connection: RdmaConnection, size_bytes: int = 64) -> None:
        self._connection: Final = connection
        self._heard: Final = bytearray(_INFO.size)
        self._said: Final = bytearray(_INFO.size)
        self._heard_range: Final = connection.reg_mr(self._heard)
        self._said_range: Final = connection.reg_mr(self._said)
        self.data: Final = bytearray(size_bytes)
        rights = AccessFlags.REMOTE_READ | AccessFlags.REMOTE_WRITE
        self._range: Final = connection.reg_mr(self.data, rights)
        self._receive = connection.recv(self._heard_range)

    def _say(self, named: LocalRange) -> None:
        self._said[:] = _INFO.pack(named.addr, named.mr.rkey, named.length)
        self._connection.send(self._said_range).wait(PATIENCE_S)

    def _hear(self) -> RemoteRange:
        completion = self._receive.wait(PATIENCE_S)
        assert completion.byte_len == _INFO.size
        address, rkey, length = _INFO.unpack(self._heard)
        self._receive = self._connection.recv(self._heard_range)
        return RemoteRange(address, length, rkey)

    def ping(self, data: bytes) -> bytes:
        """As the client: the bytes that come back."""
        self.data[: len(data)] = data
        self._say(self._range)
        self._hear()
        self.data[:] = bytes(len(self.data))
        self._say(self._range)
        self._hear()
        return bytes(self.data[: len(data)])

    def serve(self) -> bytes:
        """As the server, once: the bytes of the client."""
        source = self._hear()
        self._connection.read(self._range[: source.length], source).wait(PATIENCE_S)
        seen = bytes(self.data[: source.length])
        self._say(self._range)
        sink = self._hear()
        self._connection.write(self._range[: sink.length], sink).wait(PATIENCE_S)
        self._say(self._range)
        return seen


def serve_rping(listener: RdmaListener, client: subprocess.Popen[str], pings: int, size_bytes: int = 64) -> list[bytes]:
    """Serve the program rping until it has ended: the bytes of each ping."""
    try:
        connection = listener.get_request().wait(PATIENCE_S)
    except TimeoutError:
        client.kill()
        raise AssertionError(f"no request; the client says: {client.communicate()[0]}") from None
    end = RpingEnd(connection, size_bytes)
    connection.accept().wait(PATIENCE_S)
    seen = [end.serve() for _ in range(pings)]
    connection.closed.wait(PATIENCE_S)
    told, _ = client.communicate(timeout=PATIENCE_S)
    connection.close()
    assert (client.returncode, told.count("ping data: ")) == (0, pings), told
    return seen


def ping_rping(connector: RdmaConnector, server: subprocess.Popen[str], pings: int, size_bytes: int = 64) -> None:
    """Ping the program rping, which has to give back what it has read, and to print it."""
    with connector as connection:
        end = RpingEnd(connection, size_bytes)
        sent = [b"from weftwork %d" % number for number in range(pings)]
        sent = [data.ljust(size_bytes - 1, b"x") + bytes(1) for data in sent]
        assert [end.ping(data) for data in sent] == sent
    told, _ = server.communicate(timeout=PATIENCE_S)
    assert [f"server ping data: {data[:-1].decode()}" in told for data in sent] == [True] * pings, told
