"""``weftwork rdma perf``: bandwidth, message rate and latency, in the columns of perftest.

Source: linux-rdma/perftest, src/perftest_parameters.h (RESULT_FMT, RESULT_FMT_LAT, REPORT_EXT_CPU_UTIL).
Leaves out: the measurement, see `weftwork.rdma.perf`.
"""

from __future__ import annotations

import json
import re
import sys
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Final

import typer

from weftwork.base.errors import ConfigError, Mistake, PeerError
from weftwork.base.units import SIZE, UnitError, parse_quantity
from weftwork.cli.progress import CountLine
from weftwork.rdma.perf.figures import BandwidthFigures
from weftwork.rdma.perf.meeting import Door, host_address, meet
from weftwork.rdma.perf.operation import PerfVerb
from weftwork.rdma.perf.own_server import own_server
from weftwork.rdma.perf.plan import ALL_SIZES, PerfPlan
from weftwork.rdma.perf.session import MAGIC, PerfClient, PerfServer

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from weftwork.rdma.perf.lanes import PerfLanes
    from weftwork.rdma.perf.session import PerfRow

__all__ = ["PerfStyle", "chosen_end", "head_line", "perf", "perf_server", "plan_keys", "row_line"]

_LINE: Final = "-" * 87  # RESULT_LINE
# Names of columns, and where each starts.
_BANDWIDTH: Final[tuple[tuple[str, int], ...]] = (
    *(("#bytes", 1), ("#iterations", 12), ("BW peak[MB/sec]", 27), ("BW average[MB/sec]", 46), ("MsgRate[Mpps]", 67)),
    *(("CPU_Util[%]", 84), ("Peer CPU_Util[%]", 98)),
)
_LATENCY: Final[tuple[tuple[str, int], ...]] = (
    *(("#bytes", 1), ("#iterations", 8), ("t_min[usec]", 23), ("t_max[usec]", 38), ("t_typical[usec]", 51)),
    *(("t_avg[usec]", 70), ("t_stdev[usec]", 85), ("99% percentile[usec]", 101), ("99.9% percentile[usec]", 124)),
    *(("CPU_Util[%]", 150), ("Peer CPU_Util[%]", 164)),
)
_CPU_COLUMNS: Final = 2
_HOME: Final = "127.0.0.1"
DEFAULT_WIRE: Final = "rocev2"
_MB: Final = 0x100000  # of perftest's "MB/sec"
_GBIT: Final = 125_000_000  # bytes per second
_NAMES: Final = {
    PerfVerb.WRITE: "RDMA_Write",
    PerfVerb.READ: "RDMA_Read",
    PerfVerb.SEND: "Send",
    PerfVerb.ATOMIC: "Atomic",
}
_PERFTEST_SIZE: Final = re.compile(r"^(\d+)([KM])$")  # perftest_parameters.c, case 's': times 1024 or 1024 * 1024
_PERFTEST_ATOMICS: Final = {"FETCH_AND_ADD": "fetch-add", "CMP_AND_SWAP": "cmp-swap"}
_ATOMICS: Final = {"fetch-add": "FETCH_AND_ADD ", "cmp-swap": "CMP_AND_SWAP "}
_MOST_ADDRESSES: Final = 8  # chosen: queue pairs that are listed


def chosen_end(*, server: bool, client: str | None, loopback: bool) -> None:
    """Refuse a command without an end, or with two."""
    given = [name for name, is_on in (("--server", server), ("--client", client), ("--loopback", loopback)) if is_on]
    if len(given) != 1:
        found = " and ".join(given) or "none"
        text = f"found {found}, wanted one of --server, --client ADDRESS and --loopback"
        raise ConfigError("weftwork rdma perf", [Mistake(path="options", text=text)])


def plan_keys(given: Mapping[str, Any], size: str | None, *, is_all: bool) -> dict[str, Any]:
    """Keys of `PerfPlan` that the user has given.

    Parameters
    ----------
    given : values of keys other than the sizes, or None
    size : such as ``64KiB`` or ``65536``, or as perftest has it, ``64K``, which is 64 KiB
    is_all : whether all sizes were asked for

    Raises
    ------
    ConfigError : the size is none, or was given together with all sizes
    """
    found = {key: value for key, value in given.items() if value is not None}
    if found.get("atomic") in _PERFTEST_ATOMICS:
        found["atomic"] = _PERFTEST_ATOMICS[found["atomic"]]
    if size is not None and is_all:
        text = "found --size and --all, wanted one of them"
        raise ConfigError("weftwork rdma perf", [Mistake(path="--size", text=text)])
    if is_all:
        found["sizes"] = ALL_SIZES
    elif size is not None:
        try:
            found["sizes"] = (int(parse_quantity(SIZE, _PERFTEST_SIZE.sub(r"\1\2iB", size))),)
        except UnitError as error:
            mistake = Mistake(path="--size", text=error.text, fix=error.fix)
            raise ConfigError("weftwork rdma perf", [mistake]) from error
    return found


@dataclass(frozen=True, kw_only=True, slots=True)
class PerfStyle:
    """How figures are printed.

    Parameters
    ----------
    in_gbits : bandwidth in Gbit/s instead of MiB/s
    with_cpu : columns with the CPU time of both processes
    as_json : one JSON object instead of the table
    """

    in_gbits: bool = False
    with_cpu: bool = False
    as_json: bool = False


def perf(plan: PerfPlan, *, client: str | None, port: int, source: str | None, wire: str, style: PerfStyle) -> int:
    """Measure from the client's end.

    Parameters
    ----------
    plan : of the measurement
    client : address of the server; None starts a server in a process on this machine
    port, source, wire : see `meet`
    style : of the output

    Returns
    -------
    exit code
    """
    address = host_address(client if client is not None else source or _HOME)
    rows: list[PerfRow] = []
    with ExitStack() as stack:
        if client is None:
            port = stack.enter_context(own_server(address, port, wire))
        start = f"weftwork rdma perf {plan.verb} --server --address {address} --port {port}{_wire_option(wire)}"
        remedy = f"Start on the machine with this address: {start}"
        connection, another = stack.enter_context(meet(address, port, MAGIC, remedy=remedy, source=source, wire=wire))
        end = PerfClient(connection, plan, another)
        if not style.as_json:
            _print_head(plan, end.lanes, connection.remote_address, style)
        for size in plan.sizes:
            with _progress(plan, size) as tell:
                row = end.measure(size, tell)
            rows.append(row)
            if not style.as_json:
                typer.echo(row_line(row, style))
                sys.stdout.flush()
        path_mtu = end.lanes.path_mtu
        end.close()
    if style.as_json:
        measured = [_document(row) for row in rows]
        typer.echo(
            json.dumps({"plan": plan.encode(), "path_mtu": path_mtu, "server": address, "rows": measured}, indent=2)
        )
        return 0
    typer.echo(_LINE)
    for row in rows:
        if row.received != row.sent:
            lost = f"{row.received:,} of {row.sent:,} messages of {row.figures.size_bytes:,} bytes arrived"
            typer.echo(f"{lost}: {plan.connection} repeats no lost packet; the columns count sent messages")
    return 0


def perf_server(
    wanted: Mapping[str, Any], *, address: str, port: int, wire: str, is_persistent: bool, as_json: bool
) -> int:
    """Serve clients.

    Parameters
    ----------
    wanted : keys of `PerfPlan` that a client has to agree with
    address, port, wire : where to listen
    is_persistent : serve one client after the other, until Ctrl-C
    as_json : one JSON object for each client

    Returns
    -------
    exit code: 1 where the one client failed
    """
    address = host_address(address)
    with Door(address, port, wire=wire) as door:
        while True:
            if not as_json:
                start = f"weftwork rdma perf VERB --client {address} --port {port}{_wire_option(wire)}"
                typer.echo(f"waiting for a client; on its machine start: {start}")
                sys.stdout.flush()
            connection = door.next_request()
            peer = connection.remote_address
            try:
                server = PerfServer(connection, wanted, door.next_request)
                server.serve()
                connection.closed.wait()
            except PeerError as error:
                if not is_persistent:
                    raise
                typer.echo(f"{peer}: {error}", err=True)
            else:
                _print_served(peer, server.plan, as_json=as_json)
            finally:
                connection.close()
            if not is_persistent:
                return 0


def _wire_option(wire: str) -> str:
    """The option of a command for the other end."""
    return "" if wire == DEFAULT_WIRE else f" --wire {wire}"


def _print_served(peer: str, plan: PerfPlan, *, as_json: bool) -> None:
    if as_json:
        typer.echo(json.dumps({"client": peer, "plan": plan.encode()}))
    else:
        typer.echo(f"served {peer}: {_title(plan)}; the client has the figures")


@contextmanager
def _progress(plan: PerfPlan, size: int) -> Iterator[Any]:
    """Progress of one size on standard error, if that is a terminal."""
    count = plan.iterations * (1 if plan.latency else plan.qps)
    with CountLine({"messages": f"messages of {size:,} bytes"}) as line:
        yield lambda done: line("messages", done, done if plan.duration_s else count)


def _title(plan: PerfPlan) -> str:
    atomic = _ATOMICS[plan.atomic] if plan.verb is PerfVerb.ATOMIC else ""
    kind = "Latency" if plan.latency else "Bidirectional BW" if plan.bidirectional else "BW"
    return f"{_NAMES[plan.verb]} {atomic}{kind} Test"


def head_line(style: PerfStyle, *, latency: bool) -> str:
    """Names of the columns, as perftest prints them."""
    columns = _LATENCY if latency else _BANDWIDTH
    names = [name.replace("MB/sec", "Gb/sec") if style.in_gbits else name for name, _ in columns]
    return _in_columns(columns, names if style.with_cpu else names[:-_CPU_COLUMNS])


def _print_head(plan: PerfPlan, lanes: PerfLanes, peer: str, style: PerfStyle) -> None:
    typer.echo(_LINE)
    typer.echo(f"                    {_title(plan)}")
    about = {"Number of qps": plan.qps, "Connection type": plan.connection}
    if not plan.latency:
        about |= {"TX depth": plan.tx_depth, "CQ Moderation": plan.moderation(max(plan.sizes))}
    if plan.verb is PerfVerb.SEND:
        about["RX depth"] = plan.rx_depth
    about["Mtu"] = f"{lanes.path_mtu}[B]"
    about |= {"Max inline data": f"{plan.inline_bytes}[B]"} if plan.halves else {"Outstand reads": plan.outstanding}
    for name, value in about.items():
        typer.echo(f" {name:<16}: {value}")
    typer.echo(_LINE)
    here = lanes.local_address
    for lane in lanes.lanes[:_MOST_ADDRESSES]:
        typer.echo(f" local address:  {here} QPN {lane.qp.qp_num:#08x} PSN {lane.psn:#08x}")
        typer.echo(f" remote address: {peer} QPN {lane.peer_qp:#08x} PSN {lane.peer_psn:#08x}")
    if plan.qps > _MOST_ADDRESSES:
        typer.echo(f" and {plan.qps - _MOST_ADDRESSES} other pairs of queue pairs")
    typer.echo(_LINE)
    typer.echo(head_line(style, latency=plan.latency))


def row_line(row: PerfRow, style: PerfStyle) -> str:
    """One row, each number below the start of its column's name."""
    found = row.figures
    if isinstance(found, BandwidthFigures):
        unit = _GBIT if style.in_gbits else _MB
        columns = _BANDWIDTH
        cells = [
            *(str(found.size_bytes), str(found.messages), f"{(found.peak_bytes_per_s or 0.0) / unit:.2f}"),
            *(f"{found.average_bytes_per_s / unit:.2f}", f"{found.messages_per_s / 1e6:.6f}"),
        ]
    else:
        columns = _LATENCY
        times = (found.min_us, found.max_us, found.typical_us, found.average_us, found.stdev_us, found.p99_us)
        cells = [str(found.size_bytes), str(found.messages), *(f"{time:.2f}" for time in (*times, found.p99_9_us))]
    shares = [f"{100 * share:.2f}" for share in (row.cpu_share, row.peer_cpu_share)]
    return _in_columns(columns, cells + shares if style.with_cpu else cells)


def _in_columns(columns: tuple[tuple[str, int], ...], cells: list[str]) -> str:
    """Put each cell at the start of its column; a cell that is too long moves the next one."""
    text = ""
    for (_, start), cell in zip(columns, cells, strict=False):
        text = (text + " ").ljust(start) if text else " " * start
        text += cell
    return text


def _document(row: PerfRow) -> dict[str, Any]:
    document: dict[str, Any] = dict(asdict(row.figures))
    cpu = {"cpu_share": row.cpu_share, "peer_cpu_share": row.peer_cpu_share}
    return {**document, **cpu, "sent": row.sent, "received": row.received}
