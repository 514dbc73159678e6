"""``weftwork rdma peer``: a peer that misbehaves by a script, and its judgement of the other end."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

import typer
from rich.table import Table
from rich.text import Text

from weftwork.base.errors import ConfigError, Mistake, UsageError
from weftwork.base.grammar import plural
from weftwork.base.units import DURATION, UnitError, parse_quantity
from weftwork.cli.console import console
from weftwork.rdma.peer.in_memory import SelfTest
from weftwork.rdma.peer.judge import Result, judge
from weftwork.rdma.peer.live import connect, listen
from weftwork.rdma.peer.reading import find_script, peer_schema, read_script, scenario_names
from weftwork.rdma.peer.workload import workload_text

if TYPE_CHECKING:
    from weftwork.rdma.peer.judge import Judgement
    from weftwork.rdma.peer.packets import SeenPacket
    from weftwork.rdma.peer.script import PeerScript
    from weftwork.rdma.peer.scripted import PeerReport

__all__ = ["list_scripts", "print_schema", "run_peer", "run_self_test", "show_script"]

_PS_PER_S: Final = 1_000_000_000_000
_PS_PER_US: Final = 1_000_000
_STYLES: Final = {Result.MET: "green", Result.MISSED: "bold red", Result.OPEN: "yellow"}


def list_scripts(*, as_json: bool) -> None:
    """Print the shipped scenarios."""
    scripts = [(name, read_script(find_script(name))) for name in scenario_names()]
    if as_json:
        rows = [{"name": name, "shows": script.shows, "source": script.clause} for name, script in scripts]
        typer.echo(json.dumps({"scenarios": rows}, indent=2))
        return
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column("name", no_wrap=True)
    table.add_column("what happens")
    for name, script in scripts:
        table.add_row(name, script.shows)
    console().print(table)


def show_script(name: str) -> None:
    """Print the text of a script."""
    path = find_script(name)
    read_script(path)
    typer.echo(path.read_text(encoding="utf-8"), nl=False)


def print_schema() -> None:
    """Print the JSON Schema of scripts."""
    typer.echo(json.dumps(peer_schema(), indent=2))


def run_self_test(given: str | None, *, has_packets: bool, as_json: bool) -> int:
    """Run one script or all shipped ones against Weftwork's own NIC; returns the exit code."""
    if given is not None:
        script = read_script(find_script(given))
        test = SelfTest(script)
        test.run()
        peer, end = test.reports()
        return _tell(script, judge(script, peer, end), peer, has_packets=has_packets, as_json=as_json)
    results = []
    for name in scenario_names():
        script = read_script(find_script(name))
        test = SelfTest(script)
        test.run()
        results.append((script, judge(script, *test.reports())))
    failed = sum(_has_missed(judgements) for _, judgements in results)
    if as_json:
        rows = [_document(script, judgements) for script, judgements in results]
        typer.echo(json.dumps({"passed": len(results) - failed, "scenarios": rows}, indent=2))
    else:
        _print_all(results)
    return int(failed > 0)


def run_peer(
    given: str,
    *,
    address: str | None,
    port: int,
    connect_to: str | None,
    limit: str,
    has_packets: bool,
    as_json: bool,
) -> int:
    """Apply a script to one connection, or be its other end; returns the exit code."""
    script = read_script(find_script(given))
    limit_s = _seconds(limit)
    if connect_to is not None:
        report = connect(script, connect_to, port, limit_s, source=address)
        return _tell(script, judge(script, None, report), None, has_packets=has_packets, as_json=as_json)
    here = address if address is not None else "127.0.0.1"
    seen = listen(script, here, port, limit_s, ready=lambda: _tell_ready(script, here, port))
    return _tell(script, judge(script, seen, None, is_live=True), seen, has_packets=has_packets, as_json=as_json)


def _tell(
    script: PeerScript, judgements: list[Judgement], peer: PeerReport | None, *, has_packets: bool, as_json: bool
) -> int:
    """Print the judgement of one script, and the packets if they are asked for; returns the exit code."""
    packets = peer.packets if peer is not None and has_packets else ()
    if as_json:
        document = _document(script, judgements)
        if has_packets:
            document["packets"] = [_packet(packet, packets[0].at_ps) for packet in packets]
        typer.echo(json.dumps(document, indent=2))
    else:
        _print(script, judgements)
        if packets:
            _print_packets(packets)
    return int(_has_missed(judgements))


def _packet(packet: SeenPacket, start_ps: int) -> dict[str, Any]:
    return {
        "at_ps": packet.at_ps - start_ps,
        "from": packet.sender,
        "packet": packet.name,
        "psn": packet.psn,
        "payload_bytes": packet.payload_bytes,
        "rule": packet.rule or None,
    }


def _print_packets(packets: tuple[SeenPacket, ...]) -> None:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for name, justify in (("us", "right"), ("from", "left"), ("packet", "left"), ("PSN", "right"), ("bytes", "right")):
        table.add_column(name, justify="right" if justify == "right" else "left", no_wrap=True)
    table.add_column("rule")
    for packet in packets:
        at_us = f"{(packet.at_ps - packets[0].at_ps) / _PS_PER_US:,.3f}"
        psn = "" if packet.psn is None else str(packet.psn)
        table.add_row(at_us, packet.sender, packet.name, psn, f"{packet.payload_bytes:,}", packet.rule)
    console().print()
    console().print(table)


def _tell_ready(script: PeerScript, address: str, port: int) -> None:
    typer.echo(f"{script.name}: listening on {address}, port {port}", err=True)
    typer.echo(f"the other end: {workload_text(script)}", err=True)


def _seconds(limit: str) -> float:
    try:
        limit_ps = parse_quantity(DURATION, limit)
    except UnitError as error:
        raise ConfigError("--limit", [Mistake(path="--limit", text=error.text, fix=error.fix)]) from error
    if not limit_ps:
        raise UsageError("--limit: found 0, wanted a time such as 60s")
    return limit_ps / _PS_PER_S


def _has_missed(judgements: list[Judgement]) -> bool:
    return any(judgement.result is Result.MISSED for judgement in judgements)


def _document(script: PeerScript, judgements: list[Judgement]) -> dict[str, Any]:
    return {
        "scenario": script.name,
        "shows": script.shows,
        "source": script.clause,
        "passed": not _has_missed(judgements),
        "expectations": [
            {"says": judgement.says, "result": judgement.result.value, "found": judgement.found}
            for judgement in judgements
        ],
    }


def _print(script: PeerScript, judgements: list[Judgement]) -> None:
    out = console()
    out.print(Text(f"{script.name}: {script.shows}"), soft_wrap=True)
    out.print(Text(f"source: {script.clause}"), soft_wrap=True)
    out.print()
    _print_judgements(judgements)
    counts = {result: sum(judgement.result is result for judgement in judgements) for result in Result}
    parts = [f"{count} {result.value}" for result, count in counts.items() if count]
    out.print()
    out.print(Text(f"{script.name}: {', '.join(parts)}"))


def _print_judgements(judgements: list[Judgement], indent: str = "") -> None:
    width = max(len(result.value) for result in Result)
    for judgement in judgements:
        line = Text(indent)
        line.append(f"{judgement.result.value:<{width}}  ", style=_STYLES[judgement.result])
        line.append(f"{judgement.says} ({judgement.found})")
        console().print(line, soft_wrap=True)


def _print_all(results: list[tuple[PeerScript, list[Judgement]]]) -> None:
    out = console()
    width = max(len(script.name) for script, _ in results)
    for script, judgements in results:
        missed = [judgement for judgement in judgements if judgement.result is not Result.MET]
        line = Text(f"{script.name:<{width}}  ")
        result = Result.MISSED if missed else Result.MET
        line.append(result.value, style=_STYLES[result])
        line.append(f"  {plural(len(judgements), 'expectation')}")
        out.print(line)
        _print_judgements(missed, "  ")
    good = sum(not _has_missed(judgements) for _, judgements in results)
    out.print()
    out.print(Text(f"{good} of {plural(len(results), 'scenario')} as expected on Weftwork's own NIC"))
