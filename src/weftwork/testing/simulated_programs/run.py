"""Runs unchanged programs on the hosts of a simulated fabric.

Each program is a Python file that uses `weftwork.rdma` or the pyverbs of `weftwork.compat`. Its devices are put on the
simulated host of the program, whatever address it names, and its clock shows virtual time.
Source: own.
Leaves out: how a thread waits, see `stage`; the NICs of a host, see `host`.
"""

from __future__ import annotations

import sys
import threading
import traceback
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from ipaddress import ip_address
from pathlib import Path
from random import Random
from types import ModuleType
from typing import IO, TYPE_CHECKING, Any, Final

from weftwork.base.errors import ProgramError, UsageError
from weftwork.rdma.psn_order import PATH_MTUS_BYTES
from weftwork.rdma.queue_pair import RdmaQueuePair
from weftwork.rdma.wires import carried_by
from weftwork.testing.rdma_fabric import RdmaFabric
from weftwork.testing.simulated_programs.host import HostTraffic, SimulatedHost
from weftwork.testing.simulated_programs.stage import Strand, TurnStage
from weftwork.testing.simulated_programs.substitutes import substituted

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from weftwork.engine.packet_input import PacketInput
    from weftwork.rdma.datagram import Datagram
    from weftwork.rdma.nic import RdmaNic
    from weftwork.rdma.wires import OpenWire, WireOptions

__all__ = ["HostReport", "HostedProgram", "ProgramsRun", "SimulatedPrograms"]


@dataclass(frozen=True, kw_only=True, slots=True)
class HostedProgram:
    """A program and its host.

    Parameters
    ----------
    host : number of the host in the fabric
    file : Python file, or a function without arguments
    arguments : command line of the file, without its name
    """

    host: int
    file: Path | Callable[[], object]
    arguments: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The program as its output and errors name it."""
        return f"host {self.host}, {self.title}"

    @property
    def title(self) -> str:
        """Name of the file or of the function."""
        return self.file.name if isinstance(self.file, Path) else self.file.__name__


@dataclass(frozen=True, kw_only=True, slots=True)
class HostReport:
    """Traffic and counters of one host.

    Parameters
    ----------
    host, address : its number and its address in the fabric
    traffic : packets that entered or left the fabric
    counters : of its queue pairs and NICs, summed by name
    """

    host: int
    address: str
    traffic: HostTraffic
    counters: Mapping[str, int]


@dataclass(frozen=True, kw_only=True, slots=True)
class ProgramsRun:
    """How the programs ended.

    Parameters
    ----------
    exit_codes : of each program, in their order
    ended_ps : virtual instant at which each program ended
    end_ps : virtual instant of the last event
    hosts : those with a program, in the order of their numbers
    """

    exit_codes: tuple[int, ...]
    ended_ps: tuple[int, ...]
    end_ps: int
    hosts: tuple[HostReport, ...]


@dataclass(eq=False)
class _Running:
    """A program that runs."""

    program: HostedProgram
    host: SimulatedHost
    module: ModuleType
    output: _Lines
    exit_code: int = 0
    ended_ps: int = 0
    threads: list[threading.Thread] = field(default_factory=list)


class _Lines:
    """Output of a program: whole lines, with the name of the program in front.

    Parameters
    ----------
    to : where lines go
    prefix : in front of each
    """

    def __init__(self, to: IO[str], prefix: str) -> None:
        self._to: Final = to
        self._prefix: Final = prefix
        self._rest = ""

    def write(self, text: str) -> int:
        """Take text; whole lines go on."""
        *lines, self._rest = (self._rest + text).split("\n")
        for line in lines:
            self._to.write(f"{self._prefix}{line}\n")
        return len(text)

    def flush(self) -> None:
        """Pass on whole lines."""
        self._to.flush()

    def close(self) -> None:
        """Pass on the rest."""
        if self._rest:
            self.write("\n")

    def isatty(self) -> bool:
        """Return False: lines are passed on."""
        return False


class _Passage:
    """The fabric as virtual time."""

    def __init__(self, fabric: RdmaFabric) -> None:
        self._fabric: Final = fabric

    @property
    def now_ps(self) -> int:
        return self._fabric.now_ps

    def run(self, has_come: Callable[[], bool], limit_ps: int) -> bool:
        return self._fabric.wait_for(has_come, limit_ps)


class SimulatedPrograms:
    """Programs on a simulated fabric.

    Parameters
    ----------
    engine_input : fabric, transport and policies, as ``prepare(scenario).engine_input`` has them
    programs : in the order in which they start
    runs_job : the scenario's own traffic runs as well, between other hosts
    addresses : IP addresses that the programs name, and the host that is meant
    on_packet : called with the host, the packet and the instant, whenever a packet enters or leaves the fabric there
    on_progress : called now and then with the virtual instant

    Attributes
    ----------
    fabric : with the counters of its ports

    Raises
    ------
    UsageError : no such host, no such file, or the scenario's traffic uses the host of a program
    """

    def __init__(
        self,
        engine_input: PacketInput,
        programs: Sequence[HostedProgram],
        *,
        runs_job: bool = False,
        addresses: Mapping[str, int] | None = None,
        on_packet: Callable[[int, Datagram, int], None] = lambda _host, _datagram, _now_ps: None,
        on_progress: Callable[[int], None] = lambda _: None,
    ) -> None:
        self.fabric: Final = RdmaFabric(engine_input, runs_job=runs_job)
        self._input: Final = engine_input
        self._programs: Final = tuple(programs)
        self._on_packet: Final = on_packet
        self._stage: Final = TurnStage(
            _Passage(self.fabric), on_turn=self._give_turn, where=self._where, on_progress=on_progress
        )
        self._listeners: dict[int, list[SimulatedHost]] = {}
        self._hosts: dict[int, SimulatedHost] = {}
        self._resolved: dict[bytes, bytes] = {}
        for program in self._programs:
            if isinstance(program.file, Path) and not program.file.is_file():
                raise UsageError(f"program: found no file {program.file}, wanted a Python program")
            if program.host not in self._hosts:
                self._hosts[program.host] = self._host(program.host)
        if runs_job:
            self._check_job()
        for text, host in (addresses or {}).items():
            self._resolved[ip_address(text).packed] = self.fabric.address_of(host)
        self._running: list[_Running] = []

    def run(self, output: IO[str], *, names_lines: bool | None = None) -> ProgramsRun:
        """Run the programs to their end.

        Parameters
        ----------
        output : gets what they print
        names_lines : each line begins with its program; None for more than one program

        Raises
        ------
        ProgramError : every thread waits, and nothing is left to happen
        """
        is_named = len(self._programs) > 1 if names_lines is None else names_lines
        for program in self._programs:
            lines = _Lines(output, f"[{program.name}] " if is_named else "")
            made = _Running(program, self._hosts[program.host], ModuleType("__main__"), lines)
            self._running.append(made)
            strand = Strand(program.name, made, is_main=True)
            self._stage.add(strand)
            thread = threading.Thread(target=self._run_program, args=(made, strand), name=program.name, daemon=True)
            made.threads.append(thread)
        with ExitStack() as stack:
            stack.enter_context(_kept(sys, "argv", "stdout"))
            stack.enter_context(_kept_main())
            stack.enter_context(_kept_path())
            stack.enter_context(substituted(self._stage))
            stack.enter_context(carried_by(self._open))
            for made in self._running:
                made.threads[0].start()
            try:
                self._stage.run()
            except ProgramError:
                self._stage.end()
                raise
            self._stage.end()
        for made in self._running:
            made.output.close()
        return ProgramsRun(
            exit_codes=tuple(made.exit_code for made in self._running),
            ended_ps=tuple(made.ended_ps for made in self._running),
            end_ps=self.fabric.now_ps,
            hosts=tuple(self._report(self._hosts[number]) for number in sorted(self._hosts)),
        )

    # Hosts

    def _host(self, number: int) -> SimulatedHost:
        fabric, control = self.fabric, self._input.congestion_control
        packed = fabric.address_of(number)
        host = SimulatedHost(
            number=number,
            address=packed,
            stage=self._stage,
            random=Random(self._input.seed << 32 | number),
            congestion_control=None if control.name == "none" else control,
            line_rate_bps=fabric.rate_bps(number),
            path_mtu=max(size for size in PATH_MTUS_BYTES if size <= max(self._input.transport.mtu_bytes, 256)),
            later=lambda action: fabric.later(packed, action),
            wake=lambda: fabric.wake(packed),
            listeners=self._listeners,
            resolved=self._resolved,
            on_packet=lambda datagram, now_ps: self._on_packet(number, datagram, now_ps),
        )
        fabric.attach(number, host)
        return host

    def _check_job(self) -> None:
        """Refuse traffic of the scenario at the hosts of programs."""
        node_of = self._input.port_node
        busy = {int(node) for node in node_of[self._input.rank_ports[:, 0]]}
        hosts = (self._input.node_kind == 0).nonzero()[0].tolist()
        taken = sorted(number for number in self._hosts if hosts[number] in busy)
        if taken:
            free = [number for number, node in enumerate(hosts) if node not in busy]
            wanted = f"free hosts such as {free[0]}" if free else "a smaller job, since it uses all hosts"
            raise UsageError(f"program: found hosts {taken} in use by the scenario's own traffic, wanted {wanted}")

    def _open(self, address: str, options: WireOptions) -> OpenWire:
        """Open a device of the program whose turn it is."""
        strand = self._stage.strand()
        if strand is None:
            raise UsageError("device: found it opened outside a program, wanted a thread of a program")
        host: SimulatedHost = strand.program.host
        packed = ip_address(address).packed
        meant = self._resolved.get(packed, packed)
        is_here = meant == host.address or ip_address(address).is_loopback or ip_address(address).is_unspecified
        if not is_here:
            here = ip_address(host.address)
            raise UsageError(
                f"address: found {address}, wanted {here} or a loopback address: the program runs on host {host.number}"
            )
        return host.open(options)

    def _report(self, host: SimulatedHost) -> HostReport:
        counters: Counter[str] = Counter()
        for nic in (*host.nics.values(), *host.closed):
            counters.update(nic.counters)
            counters.update(_queue_pair_counters(nic))
        return HostReport(
            host=host.number, address=str(ip_address(host.address)), traffic=host.traffic, counters=dict(counters)
        )

    # Programs

    def _give_turn(self, strand: Strand) -> None:
        """Make the process look as the program of a strand expects it."""
        running: _Running = strand.program
        sys.argv = [str(running.program.file), *running.program.arguments]
        sys.modules["__main__"] = running.module
        sys.stdout = running.output

    def _where(self, thread: int) -> str:
        """Line of a program at which a thread is, in words."""
        files = {str(program.file) for program in self._programs}
        frame = sys._current_frames().get(thread)  # noqa: SLF001 - the library's way to ask for it
        while frame is not None and frame.f_code.co_filename not in files:
            frame = frame.f_back
        return f" at line {frame.f_lineno}" if frame is not None else ""

    def _run_program(self, running: _Running, strand: Strand) -> None:
        with suppress(SystemExit):  # it was told to end before it began
            try:
                self._stage.begin(strand)
                running.exit_code = _exit_code(running)
            finally:
                running.ended_ps = self._stage.now_ps
                self._stage.finish()


def _exit_code(running: _Running) -> int:
    """Run the file, and return the exit code that its process would have."""
    file = running.program.file
    try:
        if isinstance(file, Path):
            sys.path.insert(0, str(file.parent.resolve()))
            names: dict[str, Any] = vars(running.module)
            names.update(__file__=str(file), __builtins__=__builtins__)
            exec(compile(file.read_bytes(), str(file), "exec"), names)  # noqa: S102 - the user's own program
        else:
            file()
    except SystemExit as left:
        if left.code is None or isinstance(left.code, int):
            return left.code or 0
        running.output.write(f"{left.code}\n")
        return 1
    except Exception:  # noqa: BLE001 - whatever ends a program ends it with its traceback
        running.output.write(_traceback())
        return 1
    return 0


def _traceback() -> str:
    """The traceback of the program, without the lines of this file."""
    kind, error, trace = sys.exc_info()
    return "".join(traceback.format_exception(kind, error, trace.tb_next if trace is not None else None))


def _queue_pair_counters(nic: RdmaNic) -> Counter[str]:
    counters: Counter[str] = Counter(nic.ended_counters)
    for end in nic.ends():
        if isinstance(end, RdmaQueuePair):
            counters.update(end.counters)
    return counters


@contextmanager
def _kept(of: Any, *names: str) -> Iterator[None]:  # noqa: ANN401 - a module
    """Restore attributes of a module afterwards."""
    before = {name: getattr(of, name) for name in names}
    try:
        yield
    finally:
        for name, value in before.items():
            setattr(of, name, value)


@contextmanager
def _kept_main() -> Iterator[None]:
    before = sys.modules["__main__"]
    try:
        yield
    finally:
        sys.modules["__main__"] = before


@contextmanager
def _kept_path() -> Iterator[None]:
    before = list(sys.path)
    try:
        yield
    finally:
        sys.path[:] = before
