"""``weftwork rdma ping``: whether RDMA works to a peer, and how long it takes, in the lines of ping(8).

Source: ping(8) of iputils; rdma-core, librdmacm/examples/rping.c.
Leaves out: the protocol, see `weftwork.rdma.ping`.
"""

from __future__ import annotations

import json
import sys
from contextlib import ExitStack
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Final

import typer

from weftwork.base.errors import ConfigError, Mistake, PeerError
from weftwork.base.grammar import plural
from weftwork.base.stop import Stopped
from weftwork.cli.leave import FAILED
from weftwork.cli.rdma_perf import DEFAULT_WIRE
from weftwork.rdma.perf.meeting import Door, host_address, meet
from weftwork.rdma.ping import FEWEST_BYTES, MOST_BYTES, PingClient, ping_figures, serve_pings

if TYPE_CHECKING:
    from weftwork.rdma.connection import RdmaConnection

__all__ = ["ping", "ping_server"]

_LEAST_INTERVAL_S: Final = 0.0
_MOST_INTERVAL_S: Final = 3600.0  # chosen: an hour


def ping(
    address: str,
    *,
    port: int,
    source: str | None,
    count: int | None,
    size_bytes: int,
    interval_s: float,
    wire: str,
    as_json: bool,
) -> int:
    """Ping a server.

    Parameters
    ----------
    address, port : of the server
    count : pings; None until Ctrl-C
    size_bytes : of the data
    interval_s : from the end of one ping to the next
    source, wire : see `meet`
    as_json : one JSON object instead of the lines

    Returns
    -------
    exit code: 0 if all pings were answered
    """
    mistakes = []
    if not FEWEST_BYTES <= size_bytes <= MOST_BYTES:
        text = f"found {size_bytes}, wanted {FEWEST_BYTES} to {MOST_BYTES} bytes, as rping"
        mistakes.append(Mistake(path="--size", text=text))
    if not _LEAST_INTERVAL_S <= interval_s <= _MOST_INTERVAL_S:
        text = f"found {interval_s:g}, wanted {_LEAST_INTERVAL_S:g} to {_MOST_INTERVAL_S:g} seconds"
        mistakes.append(Mistake(path="--interval", text=text))
    if mistakes:
        raise ConfigError("weftwork rdma ping", mistakes)
    host = host_address(address)
    option = "" if wire == DEFAULT_WIRE else f" --wire {wire}"
    start = f"weftwork rdma ping --server --address {host} --port {port}{option}"
    remedy = f"Start on the machine with this address: {start}"
    with ExitStack() as stack:
        connection, _ = stack.enter_context(meet(host, port, b"", remedy=remedy, source=source, wire=wire))
        trips_ms: list[float] = []
        why = _ping_all(connection, trips_ms, count, size_bytes, interval_s, is_quiet=as_json)
    sent = len(trips_ms) + (why is not None)
    figures = asdict(ping_figures(trips_ms)) if trips_ms else None
    if as_json:
        found: dict[str, Any] = {"address": host, "port": port, "size_bytes": size_bytes, "sent": sent}
        found |= {"verified": len(trips_ms), "error": why, "round_trips_ms": trips_ms, "figures": figures}
        typer.echo(json.dumps(found, indent=2))
    else:
        typer.echo(f"\n--- {host} rdma ping statistics ---")
        lost = 100 * (sent - len(trips_ms)) / sent if sent else 0.0
        typer.echo(f"{plural(sent, 'ping')} sent, {len(trips_ms)} answered and verified, {lost:.0f} % lost")
        if figures is not None:
            values = "/".join(f"{figures[name]:.3f}" for name in ("min_ms", "average_ms", "max_ms", "deviation_ms"))
            typer.echo(f"rtt min/avg/max/mdev = {values} ms")
    if why is not None:
        typer.echo(why, err=True)
    return FAILED if why is not None or not trips_ms else 0


def _ping_all(
    connection: RdmaConnection,
    trips_ms: list[float],
    count: int | None,
    size_bytes: int,
    interval_s: float,
    *,
    is_quiet: bool,
) -> str | None:
    """Ping until the count, Ctrl-C or a failure; returns the words of the failure."""
    peer = connection.remote_address
    try:
        client = PingClient(connection, size_bytes)
        if not is_quiet:
            typer.echo(f"PING {peer}: {size_bytes} bytes of data by SEND, READ and WRITE")
        while count is None or len(trips_ms) < count:
            if trips_ms and connection.device.wait(lambda: connection.closed.is_done, interval_s):
                return f"{peer}: the server has ended the connection"
            trips_ms.append(client.ping())
            if not is_quiet:
                typer.echo(f"{size_bytes} bytes from {peer}: seq={len(trips_ms)} time={trips_ms[-1]:.3f} ms")
                sys.stdout.flush()
    except PeerError as error:
        return str(error)
    except Stopped:
        if not trips_ms:
            raise
    return None


def ping_server(*, address: str, port: int, wire: str, is_persistent: bool, as_json: bool) -> int:
    """Answer the pings of clients.

    Parameters
    ----------
    address, port, wire : where to listen
    is_persistent : serve one client after the other, until Ctrl-C
    as_json : one JSON object for each client

    Returns
    -------
    exit code
    """
    host = host_address(address)
    with Door(host, port, wire=wire) as door:
        while True:
            if not as_json:
                option = "" if wire == DEFAULT_WIRE else f" --wire {wire}"
                start = f"weftwork rdma ping {host} --port {port}{option}"
                typer.echo(f"waiting for a client; on its machine start: {start}")
                sys.stdout.flush()
            connection = door.next_request()
            peer = connection.remote_address
            try:
                count = serve_pings(connection)
            except PeerError as error:
                if not is_persistent:
                    raise
                typer.echo(f"{peer}: {error}", err=True)
            else:
                words = {"client": peer, "answered": count}
                typer.echo(json.dumps(words) if as_json else f"answered {plural(count, 'ping')} of {peer}")
            finally:
                connection.close()
            if not is_persistent:
                return 0
