"""The options of ``weftwork rdma perf``, ``ping`` and ``show``.

What a command needs is imported when it runs, so that ``weftwork --help`` answers at once.
"""

from __future__ import annotations

from typing import Annotated

import typer

from weftwork.cli.options import Json
from weftwork.rdma.perf.operation import PerfVerb

__all__ = ["perf_command", "ping_command", "show_command"]

Wire = Annotated[str, typer.Option(help="How packets reach the peer; see weftwork.rdma.wires.")]
Persistent = Annotated[
    bool, typer.Option("-P", "--persistent", help="With --server: serve one client after the other, until Ctrl-C.")
]


def perf_command(  # noqa: PLR0913 - the options, all by name
    *,
    verb: Annotated[PerfVerb, typer.Argument(help="Operation to measure.")],
    server: Annotated[bool, typer.Option("--server", help="Wait for a client and serve it.")] = False,
    client: Annotated[
        str | None, typer.Option(metavar="ADDRESS", help="Measure against the server at this address or host.")
    ] = None,
    loopback: Annotated[
        bool, typer.Option("--loopback", help="Measure on this machine: start the server in a process, too.")
    ] = False,
    latency: Annotated[bool, typer.Option("--latency", help="Measure latency instead of bandwidth.")] = False,
    size: Annotated[
        str | None, typer.Option("-s", "--size", help="Size of a message; 64KiB by default, 2 bytes for latency.")
    ] = None,
    is_all: Annotated[bool, typer.Option("-a", "--all", help="All sizes from 2 bytes to 8 MiB.")] = False,
    iterations: Annotated[
        int | None,
        typer.Option(
            "-n",
            "--iterations",
            "--iters",
            help="Messages of each queue pair; 1000 by default, 5000 for the bandwidth of WRITE.",
        ),
    ] = None,
    duration: Annotated[
        float | None, typer.Option("-D", "--duration", metavar="SECONDS", help="Measure for so long instead.")
    ] = None,
    connection: Annotated[
        str | None, typer.Option("-c", "--connection", help="RC, UC (WRITE, SEND) or UD (SEND); RC by default.")
    ] = None,
    qps: Annotated[int | None, typer.Option("-q", "--qps", "--qp", help="Number of queue pairs; 1 by default.")] = None,
    tx_depth: Annotated[
        int | None, typer.Option("-t", "--tx-depth", help="Requests in flight of a queue pair; 128 by default.")
    ] = None,
    rx_depth: Annotated[
        int | None, typer.Option("-r", "--rx-depth", help="Posted receives of a queue pair; 512 by default.")
    ] = None,
    mtu: Annotated[
        int | None, typer.Option("-m", "--mtu", help="Path MTU, 256 to 4096; by default the largest that fits.")
    ] = None,
    bidirectional: Annotated[
        bool, typer.Option("-b", "--bidirectional", help="Both ends send; the columns are sums.")
    ] = False,
    inline: Annotated[
        int | None,
        typer.Option("-I", "--inline", "--inline_size", help="Largest message to copy as it is posted; 0 by default."),
    ] = None,
    cq_mod: Annotated[
        int | None,
        typer.Option("-Q", "--cq-mod", help="A completion for so many requests; by default 100 up to 8 KiB, else 1."),
    ] = None,
    outstanding: Annotated[
        int | None, typer.Option("-o", "--outstanding", "--outs", help="READs and atomics in flight; 16 by default.")
    ] = None,
    atomic_type: Annotated[
        str | None, typer.Option("-A", "--atomic-type", "--atomic_type", help="fetch-add (default) or cmp-swap.")
    ] = None,
    rdma_cm: Annotated[
        bool,
        typer.Option(
            "-R", "--rdma-cm", "--rdma_cm", help="Join queue pairs by the connection manager; iWARP always does."
        ),
    ] = False,
    port: Annotated[int, typer.Option("-p", "--port", min=1, max=65_535, help="Port of the server.")] = 18_515,
    address: Annotated[
        str | None,
        typer.Option(
            "--address",
            "--bind_source_ip",
            help="Address of this machine: to listen on (127.0.0.1 by default), or to connect from.",
        ),
    ] = None,
    wire: Wire = "rocev2",
    report_gbits: Annotated[
        bool,
        typer.Option(
            "--report-gbits",
            "--report_gbits",
            help="Bandwidth in Gbit/s; by default in MiB/s, which perftest calls MB.",
        ),
    ] = False,
    cpu_util: Annotated[
        bool,
        typer.Option("--cpu-util", "--cpu_util", help="Columns with the CPU time of both processes, in % of one core."),
    ] = False,
    persistent: Persistent = False,
    as_json: Json = False,
) -> None:
    """Measure two software NICs: bandwidth, message rate, latency.

    The columns and options are those of perftest (ib_write_bw, ib_send_lat and so on), in its spellings too.
    """
    from weftwork.cli.rdma_perf import PerfStyle, chosen_end, perf, perf_server, plan_keys
    from weftwork.rdma.perf.plan import ONLY_BY_CONNECTIONS, make_plan

    chosen_end(server=server, client=client, loopback=loopback)
    options = {
        "duration_s": duration,
        "latency": latency or None,
        "iterations": iterations,
        "connection": connection.upper() if connection is not None else None,
        "qps": qps,
        "tx_depth": tx_depth,
        "rx_depth": rx_depth,
        "path_mtu": mtu,
        "bidirectional": bidirectional or None,
        "inline_bytes": inline,
        "cq_moderation": cq_mod,
        "outstanding": outstanding,
        "atomic": atomic_type,
        "rdma_cm": rdma_cm or (wire in ONLY_BY_CONNECTIONS and not server) or None,
    }
    given = plan_keys(options, size, is_all=is_all)
    if server:
        found = perf_server(
            {"verb": verb, **given},
            address=address or "127.0.0.1",
            port=port,
            wire=wire,
            is_persistent=persistent,
            as_json=as_json,
        )
    else:
        style = PerfStyle(in_gbits=report_gbits, with_cpu=cpu_util, as_json=as_json)
        found = perf(make_plan(verb, given), client=client, port=port, source=address, wire=wire, style=style)
    raise typer.Exit(found)


def ping_command(  # noqa: PLR0913 - the options, all by name
    *,
    address: Annotated[
        str | None, typer.Argument(metavar="ADDRESS", help="Address or host of the server.", show_default=False)
    ] = None,
    server: Annotated[bool, typer.Option("--server", help="Wait for a client and answer its pings.")] = False,
    count: Annotated[int | None, typer.Option("-c", "--count", min=1, help="Pings; until Ctrl-C by default.")] = None,
    size: Annotated[int, typer.Option("-s", "--size", metavar="BYTES", help="Data of a ping, 26 to 65535.")] = 64,
    interval: Annotated[float, typer.Option("-i", "--interval", metavar="SECONDS", help="Between two pings.")] = 1.0,
    port: Annotated[int, typer.Option("-p", "--port", min=1, max=65_535, help="Port of the server.")] = 7174,
    own: Annotated[
        str | None,
        typer.Option(
            "--address",
            metavar="ADDRESS",
            help="Address of this machine: to listen on (127.0.0.1 by default), or to connect from.",
        ),
    ] = None,
    wire: Wire = "rocev2",
    persistent: Persistent = False,
    as_json: Json = False,
) -> None:
    """Check that RDMA works to a peer: READ and WRITE of data that both ends verify.

    Both ends speak the protocol of rping.
    """
    from weftwork.base.errors import ConfigError, Mistake
    from weftwork.cli.rdma_ping import ping, ping_server

    if (address is None) is not server:
        found = "an address and --server" if server else "neither an address nor --server"
        text = f"found {found}, wanted the address of a server, or --server"
        raise ConfigError("weftwork rdma ping", [Mistake(path="ADDRESS", text=text)])
    if address is None:
        code = ping_server(address=own or "127.0.0.1", port=port, wire=wire, is_persistent=persistent, as_json=as_json)
    else:
        code = ping(
            address,
            port=port,
            source=own,
            count=count,
            size_bytes=size,
            interval_s=interval,
            wire=wire,
            as_json=as_json,
        )
    raise typer.Exit(code)


def show_command(
    *,
    pid: Annotated[int | None, typer.Option(min=1, help="Show this process alone.")] = None,
    address: Annotated[str | None, typer.Option(help="Show devices with this address alone.")] = None,
    wait: Annotated[float, typer.Option("--wait", metavar="SECONDS", help="Time for the answers of processes.")] = 1.0,
    as_json: Json = False,
) -> None:
    """Show queue pairs, regions, connections and counters of running processes.

    These are processes of Weftwork with an RDMA device, of this user and in this network namespace. Keys are not shown.
    """
    from weftwork.cli.rdma_show import show

    raise typer.Exit(show(pid=pid, address=address, patience_s=wait, as_json=as_json))
