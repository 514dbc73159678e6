"""RDMA ping of Weftwork with the program rping of rdma-core at the other end."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from weftwork.rdma.ping import PingClient, ping_data, serve_pings

if TYPE_CHECKING:
    import subprocess

    from weftwork.rdma.rendezvous import RdmaConnector, RdmaListener

PATIENCE_S: Final = 60.0


def serve_rping(listener: RdmaListener, client: subprocess.Popen[str], pings: int) -> None:
    """Serve the program until it has ended; both ends check the data of each ping."""
    try:
        connection = listener.get_request().wait(PATIENCE_S)
    except TimeoutError:
        client.kill()
        raise AssertionError(f"no request; the client says: {client.communicate()[0]}") from None
    assert serve_pings(connection) == pings
    told, _ = client.communicate(timeout=PATIENCE_S)
    connection.close()
    assert (client.returncode, told.count("ping data: ")) == (0, pings), told


def ping_rping(connector: RdmaConnector, server: subprocess.Popen[str], pings: int, size_bytes: int = 64) -> None:
    """Ping the program, which has to give back what it has read, and to print it."""
    with connector as connection:
        client = PingClient(connection, size_bytes)
        for _ in range(pings):
            client.ping()
    told, _ = server.communicate(timeout=PATIENCE_S)
    shown = [f"server ping data: {ping_data(number, size_bytes)[:-1].decode()}\n" for number in range(pings)]
    assert [line in told for line in shown] == [True] * pings, told
