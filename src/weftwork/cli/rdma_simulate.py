"""``weftwork rdma simulate``: unchanged RDMA programs on a simulated fabric."""

from __future__ import annotations

import json
import shlex
import sys
import time
from collections.abc import Mapping
from dataclasses import asdict
from ipaddress import IPv4Address, ip_address
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import typer
import yaml
from rich.table import Table

from weftwork.base.errors import ConfigError, Mistake
from weftwork.base.grammar import plural
from weftwork.base.whole_file import write_whole
from weftwork.cli.console import console
from weftwork.cli.settings import overrides
from weftwork.compat.pyverbs.alias import install
from weftwork.engine.packet_input import PacketInput
from weftwork.rdma.encapsulation import ROCE_V2
from weftwork.report.words import amount
from weftwork.study.prepare.prepare import prepare, read_scenario
from weftwork.testing.simulated_programs.effects import fabric_effects
from weftwork.testing.simulated_programs.run import HostedProgram, SimulatedPrograms
from weftwork.topology.port_names import port_names
from weftwork.wire.ethernet import ETHERTYPE_IPV4, EthernetHeader
from weftwork.wire.pcap import LINK_ETHERNET, CapturedPacket
from weftwork.wire.pcapng import encode_pcapng

if TYPE_CHECKING:
    from collections.abc import Sequence

    from weftwork.rdma.datagram import Datagram
    from weftwork.study.prepare.prepared import Prepared
    from weftwork.testing.simulated_programs.effects import FabricEffects, PortEffect
    from weftwork.testing.simulated_programs.run import ProgramsRun

__all__ = ["simulate"]

_WORKLOADS: Final = ("training", "collective", "traffic", "import", "jobs")
_IDLE: Final = {"pattern": "permutation", "size": "1B"}  # chosen: stands where a fabric comes without a workload
_MOST_PORTS: Final = 8  # chosen: rows of the table; --json has all
_PS_PER_NS: Final = 1000
_EVERY_S: Final = 0.1
_LOCAL_MAC: Final = bytes.fromhex("0200")  # IEEE 802: locally administered


def simulate(  # noqa: PLR0913 - the options, all by name
    file: Path,
    *,
    programs: Sequence[str],
    runs_job: bool,
    addresses: Sequence[str] | None,
    capture: Path | None,
    capture_host: int | None,
    settings: Sequence[str] | None,
    user_code: bool,
    as_json: bool,
) -> int:
    """Run programs on the fabric of a scenario, and print what the fabric did to their packets.

    Parameters
    ----------
    file : a scenario; its own traffic runs with ``runs_job`` alone, and may be missing otherwise
    programs : ``HOST:FILE ARGUMENTS`` of each, in the order in which they start
    runs_job : whether the scenario's own traffic runs as well
    addresses : ``IP=HOST`` of addresses that the programs name
    capture, capture_host : pcapng file with the packets of a host, by default that of the first program
    settings : ``key=value`` texts of ``--set``
    user_code : False refuses every Python file that the scenario names
    as_json : one JSON object; the output of the programs goes to standard error

    Returns
    -------
    exit code: 0, or 1 where a program ended with an error

    Raises
    ------
    ConfigError : the scenario or an option is wrong
    ProgramError : the programs wait for each other
    """
    parsed, mapped = _programs(programs), _addresses(addresses)
    prepared = _prepared(file, overrides(settings), user_code=user_code, runs_job=runs_job)
    _check_hosts(parsed, mapped, capture_host, len(prepared.fabric.hosts))
    engine_input = prepared.engine_input
    if not isinstance(engine_input, PacketInput):
        text = "found flow, wanted packet: programs exchange single packets"
        raise ConfigError(str(file), [Mistake(path="engine.fidelity", text=text)])
    captured = _Captured(parsed[0].host if capture_host is None else capture_host)
    install()  # programs that import pyverbs get the one that is simulated
    line = _TimeLine()
    made = SimulatedPrograms(
        engine_input,
        parsed,
        runs_job=runs_job,
        addresses=mapped,
        on_packet=captured.take if capture is not None else lambda _host, _datagram, _now_ps: None,
        on_progress=line,
    )
    with line:
        run = made.run(sys.stderr if as_json else sys.stdout)
    effects = fabric_effects(made.fabric, port_names(prepared.fabric))
    if capture is not None:
        write_whole(capture, b"".join(encode_pcapng(captured.packets, comment="packets of a simulated host")))
    if as_json:
        typer.echo(json.dumps(_document(parsed, run, effects), indent=2))
    else:
        _print(parsed, run, effects)
        if capture is not None:
            count = plural(len(captured.packets), "packet")
            typer.echo(f"Wrote {count} of host {captured.host} to {capture}: read it with weftwork rdma decode.")
    return 1 if any(run.exit_codes) else 0


# Options


def _programs(texts: Sequence[str]) -> list[HostedProgram]:
    parsed: list[HostedProgram] = []
    mistakes: list[Mistake] = []
    for text in texts:
        number, colon, command = text.partition(":")
        words = shlex.split(command)
        if not colon or not number.strip().isdigit() or not words:
            wanted = "HOST:FILE, such as 0:server.py or '3:client.py --size 4096'"
            mistakes.append(Mistake(path="PROGRAM", text=f"found {text!r}, wanted {wanted}"))
        elif not Path(words[0]).is_file():
            mistakes.append(Mistake(path="PROGRAM", text=f"found no file {words[0]}, wanted a Python program"))
        else:
            parsed.append(HostedProgram(host=int(number), file=Path(words[0]), arguments=tuple(words[1:])))
    if mistakes:
        raise ConfigError("command line", mistakes)
    return parsed


def _check_hosts(
    programs: Sequence[HostedProgram], mapped: Mapping[str, int], capture_host: int | None, hosts: int
) -> None:
    named = [("PROGRAM", program.host) for program in programs]
    named += [("--address", host) for host in mapped.values()]
    named += [("--capture-host", capture_host)] if capture_host is not None else []
    wanted = f"wanted 0 to {hosts - 1}: the fabric has {plural(hosts, 'host')}"
    mistakes = [Mistake(path=path, text=f"found host {host}, {wanted}") for path, host in named if host >= hosts]
    if mistakes:
        raise ConfigError("command line", mistakes)


def _addresses(texts: Sequence[str] | None) -> dict[str, int]:
    mapped: dict[str, int] = {}
    mistakes: list[Mistake] = []
    for text in texts or ():
        address, equals, number = text.partition("=")
        try:
            ip_address(address)
        except ValueError:
            equals = ""
        if not equals or not number.isdigit():
            mistakes.append(Mistake(path="--address", text=f"found {text!r}, wanted IP=HOST such as 192.0.2.1=0"))
        else:
            mapped[address] = int(number)
    if mistakes:
        raise ConfigError("command line", mistakes)
    return mapped


def _prepared(file: Path, settings: dict[str, str], *, user_code: bool, runs_job: bool) -> Prepared:
    """Prepare a scenario; a fabric alone will do where nothing of its own runs."""
    changes: dict[str, object] = dict(settings)
    if not runs_job and not _has_workload(file):
        changes.setdefault("traffic", _IDLE)
    return prepare(read_scenario(file, changes, user_code=user_code))


def _has_workload(file: Path) -> bool:
    try:
        found = yaml.safe_load(file.read_bytes())
    except (OSError, UnicodeDecodeError, yaml.YAMLError):
        return True  # `read_scenario` says what is wrong with it
    return not isinstance(found, Mapping) or any(name in found for name in _WORKLOADS)


# What happens meanwhile


class _TimeLine:
    """The virtual time on one line of standard error, where that is a terminal."""

    def __init__(self) -> None:
        self._is_on = sys.stderr.isatty()
        self._last_s = time.monotonic()
        self._clock: Final = time.monotonic  # the machine's, whatever stands in its place later
        self._width = 0

    def __enter__(self) -> None:
        return

    def __exit__(self, *_: object) -> None:
        if self._width:
            sys.stderr.write("\r" + " " * self._width + "\r")

    def __call__(self, now_ps: int) -> None:
        """Update the line, at most ten times a second."""
        if not self._is_on or self._clock() - self._last_s < _EVERY_S:
            return
        self._last_s = self._clock()
        text = f"virtual time {amount(now_ps, 'ps')}"
        sys.stderr.write("\r" + text.ljust(self._width))
        sys.stderr.flush()
        self._width = max(self._width, len(text))


class _Captured:
    """Packets of one host as Ethernet frames."""

    def __init__(self, host: int) -> None:
        self.host: Final = host
        self.packets: Final[list[CapturedPacket]] = []

    def take(self, host: int, datagram: Datagram, now_ps: int) -> None:
        """Keep a packet that enters or leaves the fabric at a host."""
        if host != self.host:
            return
        payload = bytes(datagram.payload())
        ethernet = EthernetHeader(
            destination=_LOCAL_MAC + datagram.destination,
            source=_LOCAL_MAC + datagram.source,
            ethertype=ETHERTYPE_IPV4,
        ).encode()
        frame = ethernet + ROCE_V2.front(datagram, len(payload)) + payload
        self.packets.append(
            CapturedPacket(
                time_ns=now_ps // _PS_PER_NS,
                data=frame,
                original_bytes=len(frame),
                link_type=LINK_ETHERNET,
                interface=f"host{host}",
            )
        )


# Results


def _print(programs: Sequence[HostedProgram], run: ProgramsRun, effects: FabricEffects) -> None:
    out = console()
    failed = [program for program, code in zip(programs, run.exit_codes, strict=True) if code]
    for program in failed:
        out.print(f"{program.name} ended with an error: see its traceback above.")
    out.print(_verdict(run, effects), soft_wrap=True)
    out.print(_host_table(programs, run))
    if effects.troubled:
        out.print(_port_table(effects.troubled[:_MOST_PORTS]))
        if len(effects.troubled) > _MOST_PORTS:
            out.print(f"{plural(len(effects.troubled) - _MOST_PORTS, 'more port')} with a queue: --json has all.")
    out.print("Programs and their processors take no virtual time: only the fabric and the NICs do.")


def _verdict(run: ProgramsRun, effects: FabricEffects) -> str:
    end = f"The programs took {amount(run.end_ps, 'ps')} of virtual time."
    culprit = effects.culprit
    if culprit is None:
        return f"{end} The fabric was not congested: no queue held more than two packets."
    waited = f"up to {amount(culprit.max_queue_bytes, 'B')} waited there, which takes {amount(culprit.queue_ps, 'ps')}"
    counts = (
        f"marked {plural(effects.marks, 'packet')}, dropped {effects.drops:,} and paused {effects.pauses_sent:,} times"
    )
    return f"{end} Port {culprit.name} held them up: {waited}. In all, the fabric {counts}."


def _host_table(programs: Sequence[HostedProgram], run: ProgramsRun) -> Table:
    table = Table(title="Programs, and packets of their hosts", title_justify="left", box=None, pad_edge=False)
    for name in ("host", "address", "program", "ended at"):
        table.add_column(name)
    for name in ("sent", "average", "received", "marked", "CNPs", "again"):
        table.add_column(name, justify="right")
    for report in run.hosts:
        here = [i for i, program in enumerate(programs) if program.host == report.host]
        traffic, counters = report.traffic, report.counters
        time_ps = (traffic.last_ps or 0) - (traffic.first_ps or 0)
        rate_bps = traffic.sent_bytes * 8 * 10**12 / time_ps if time_ps else None
        table.add_row(
            str(report.host),
            report.address,
            ", ".join(programs[i].title for i in here),
            ", ".join(amount(run.ended_ps[i], "ps") for i in here),
            f"{traffic.sent:,}",
            amount(rate_bps, "b/s"),
            f"{traffic.received:,}",
            f"{traffic.marked:,}",
            f"{counters.get('rp_cnp_handled', 0):,}",
            f"{_repeats(counters):,}",
        )
    return table


def _repeats(counters: Mapping[str, int]) -> int:
    """Times that a queue pair went back or waited for a receiver."""
    names = ("packet_seq_err", "local_ack_timeout_err", "implied_nak_seq_err", "rnr_nak")
    return sum(counters.get(name, 0) for name in names)


def _port_table(ports: Sequence[PortEffect]) -> Table:
    table = Table(title="Ports with a queue", title_justify="left", box=None, pad_edge=False)
    table.add_column("port")
    for name in ("rate", "busy", "longest queue", "wait", "marked", "dropped", "paused for"):
        table.add_column(name, justify="right")
    for port in ports:
        table.add_row(
            port.name,
            amount(port.rate_bps, "b/s"),
            amount(port.busy, "share"),
            amount(port.max_queue_bytes, "B"),
            amount(port.queue_ps, "ps"),
            f"{port.marks:,}",
            f"{port.drops:,}",
            amount(port.paused_ps, "ps"),
        )
    return table


def _document(programs: Sequence[HostedProgram], run: ProgramsRun, effects: FabricEffects) -> dict[str, Any]:
    return {
        "end_ps": run.end_ps,
        "culprit": None if effects.culprit is None else effects.culprit.name,
        "marks": effects.marks,
        "drops": effects.drops,
        "pauses_sent": effects.pauses_sent,
        "programs": [
            {
                "host": program.host,
                "file": str(program.file),
                "arguments": list(program.arguments),
                "exit_code": run.exit_codes[i],
                "ended_ps": run.ended_ps[i],
            }
            for i, program in enumerate(programs)
        ],
        "hosts": [
            {
                "host": report.host,
                "address": str(IPv4Address(report.address)),
                **asdict(report.traffic),
                "counters": dict(sorted(report.counters.items())),
            }
            for report in run.hosts
        ],
        "ports": [{**asdict(port), "queue_ps": port.queue_ps} for port in effects.ports],
    }
