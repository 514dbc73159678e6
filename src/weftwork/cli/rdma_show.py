"""``weftwork rdma show``: queue pairs, regions, connections and counters of running processes.

Source: rdma-resource(8) and rdma-statistic(8), whose tables these resemble.
Leaves out: how processes answer, see `weftwork.rdma.status`.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

import typer
from rich.table import Table
from rich.text import Text

from weftwork.base.errors import ConfigError, Mistake, UsageError
from weftwork.base.grammar import plural
from weftwork.cli.console import console
from weftwork.rdma.drivers.udp import parse_address
from weftwork.rdma.status_query import ask_all

if TYPE_CHECKING:
    from rich.console import Console

    from weftwork.rdma.status_query import StatusAnswer

__all__ = ["show"]

_MOST_ROWS: Final = 20  # chosen: of a table in words; --json has all
_LONGEST_PROGRAM: Final = 60  # chosen: of a command line in words
_MOST_S: Final = 600.0  # chosen: ten minutes


def show(*, pid: int | None, address: str | None, patience_s: float, as_json: bool) -> int:
    """Show the devices of all processes of this user.

    Parameters
    ----------
    pid, address : of one process, of one device; None for all
    patience_s : seconds to wait for answers
    as_json : one JSON object instead of tables

    Returns
    -------
    exit code: 0 also where there is no device
    """
    mistakes = []
    wanted = None
    if address is not None:
        try:
            wanted = str(parse_address(address))
        except UsageError as error:
            mistakes.append(Mistake(path="--address", text=str(error).removeprefix("address: ")))
    if not 0 < patience_s <= _MOST_S:
        mistakes.append(Mistake(path="--wait", text=f"found {patience_s:g}, wanted up to {_MOST_S:g} seconds"))
    if mistakes:
        raise ConfigError("weftwork rdma show", mistakes)
    answers, strangers = ask_all(patience_s, pid)
    if wanted is not None:
        answers = [answer for answer in answers if answer.status is None or answer.status["address"] == wanted]
    if as_json:
        devices = [
            {"pid": a.pid, "program": a.program, "why_not": a.why_not or None, **(a.status or {})} for a in answers
        ]
        typer.echo(json.dumps({"devices": devices, "devices_of_other_users": strangers}, indent=2))
        return 0
    out = console()
    for answer in answers:
        _print(out, answer)
    if not answers:
        which = f" with the process number {pid}" if pid is not None else ""
        where = f" at {wanted}" if wanted is not None else ""
        out.print(
            Text(f"No process{which} of yours has an RDMA device of Weftwork{where} in this network namespace."),
            soft_wrap=True,
        )
    if strangers:
        out.print(Text(f"{plural(strangers, 'device')} of other users: not shown"))
    return 0


def _print(out: Console, answer: StatusAnswer) -> None:
    program = (
        answer.program if len(answer.program) <= _LONGEST_PROGRAM else answer.program[: _LONGEST_PROGRAM - 3] + "..."
    )
    status = answer.status
    if status is None:
        out.print(Text(f"pid {answer.pid}  {program}\n  {answer.why_not}"), soft_wrap=True)
        return
    out.print(Text(f"pid {answer.pid}  {status['address']}  {program}"), soft_wrap=True)
    _print_table(
        out,
        "queue pair",
        ("type", "state", "peer", "path MTU", "sends", "receives", "counters"),
        [
            (
                *(f"{qp['number']:#08x}", qp["type"], qp["state"]),
                f"{qp['peer']} {qp['peer_queue_pair']:#08x}" if qp["peer"] is not None else "",
                *(f"{qp[key]:,}" for key in ("path_mtu", "sends", "receives")),
                _counted(qp["counters"]),
            )
            for qp in status["queue_pairs"]
        ],
    )
    _print_table(
        out,
        "region",
        ("bytes", "rights"),
        [
            (f"{region['address']:#x}", f"{region['bytes']:,}", ", ".join(region["rights"]).replace("_", " ") or "none")
            for region in status["regions"]
        ],
    )
    _print_table(
        out,
        "connection",
        ("port", "state", "queue pair"),
        [
            (
                ("to " if link["asked_here"] else "from ") + link["peer"],
                *(str(link["port"]), link["state"]),
                f"{link['queue_pair']:#08x}" if link["queue_pair"] is not None else "",
            )
            for link in status["connections"]
        ],
    )
    if status["windows"]:
        out.print(Text(f"  {plural(status['windows'], 'memory window')}"))
    if status["listens"]:
        out.print(Text(f"  listens on port {', '.join(map(str, status['listens']))}"), soft_wrap=True)
    for name, counters in status["counters"].items():
        if any(counters.values()):
            out.print(Text(f"  {name.replace('_', ' ')}: {_counted(counters)}"), soft_wrap=True)


def _print_table(out: Console, first: str, others: tuple[str, ...], rows: list[tuple[str, ...]]) -> None:
    """Print a table, if it has rows."""
    if not rows:
        return
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for name in (f"  {first}", *others):
        table.add_column(name, no_wrap=True, justify="right" if name in _NUMBERS else "left")
    for row in rows[:_MOST_ROWS]:
        table.add_row(f"  {row[0]}", *row[1:])
    out.print(table)
    if len(rows) > _MOST_ROWS:
        out.print(Text(f"  {plural(len(rows) - _MOST_ROWS, f'other {first}')}: see --json"))


_NUMBERS: Final = frozenset({"path MTU", "sends", "receives", "bytes", "port"})


def _counted(counters: dict[str, Any]) -> str:
    return ", ".join(f"{name} {count:,}" for name, count in sorted(counters.items()) if count)
