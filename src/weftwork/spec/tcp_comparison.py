"""A measurement of TCP sockets and the software NIC on one machine.

It has transfers by size, work at the remote end, and the cost of registration. All times are of the clock of the
machine in nanoseconds, and all counts are of one message, unless a name says otherwise.
Leaves out: how it is measured (`weftwork.rdma.tcp_comparison`), published figures of hardware, and how it is told
(`weftwork.report`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

from pydantic import PositiveFloat, PositiveInt

__all__ = [
    "WORKLOADS",
    "EndCost",
    "MeasuringMachine",
    "RegistrationCost",
    "RemoteWork",
    "TcpComparison",
    "TransferMeasurement",
    "Way",
    "Workload",
]

Workload = Literal["ping-pong", "stream", "read of a value"]
Way = Literal["tcp", "send", "write", "read"]
# workload -> the ways in which it is measured, in the order of the tables
WORKLOADS: Final[dict[Workload, tuple[Way, ...]]] = {
    "ping-pong": ("tcp", "send"),
    "stream": ("tcp", "write"),
    "read of a value": ("tcp", "send", "read"),
}


@dataclass(frozen=True, kw_only=True, slots=True)
class MeasuringMachine:
    """The machine of a measurement.

    Attributes
    ----------
    cpu, cores, kernel, python : as the system names them; with two cores or more, each end has one of its own
    checksum : library that computes the ICRC
    receive_buffer_bytes : of the port of the software NIC, as the system has granted it
    date : of the measurement, YYYY-MM-DD
    commit : of Weftwork, or ``unknown``
    """

    cpu: str
    cores: int
    kernel: str
    python: str
    checksum: str
    receive_buffer_bytes: int
    date: str
    commit: str


@dataclass(frozen=True, kw_only=True, slots=True)
class EndCost:
    """Cost of one message at one end.

    Attributes
    ----------
    user_ns, system_ns : CPU time of the process
    calls : system calls that move data, by name; ``empty recvmsg`` is a call that found nothing
    sleeps : times at which a thread of the process gave up the CPU to wait
    cores : CPU time divided by the time on the clock
    """

    user_ns: float
    system_ns: float
    calls: dict[str, float]
    sleeps: float
    cores: float

    @property
    def cpu_ns(self) -> float:
        """CPU time in the program and in the system."""
        return self.user_ns + self.system_ns

    @property
    def all_calls(self) -> float:
        """System calls of all names."""
        return sum(self.calls.values())


@dataclass(frozen=True, kw_only=True, slots=True)
class TransferMeasurement:
    """A workload of one message size, in one way.

    Attributes
    ----------
    workload, way, size_bytes : what was measured
    messages : of each round
    latency_p50_ns, latency_p99_ns : half a round trip of a ping-pong, or a whole read of a value; medians of the
        rounds; None of a stream
    goodput_bps : payload; median of the rounds
    lowest, highest : among the rounds, of the latency p50, or of the goodput of a stream
    client, server : medians of the rounds
    """

    workload: Workload
    way: Way
    size_bytes: PositiveInt
    messages: PositiveInt
    latency_p50_ns: PositiveFloat | None
    latency_p99_ns: PositiveFloat | None
    goodput_bps: PositiveFloat
    lowest: PositiveFloat
    highest: PositiveFloat
    client: EndCost
    server: EndCost


@dataclass(frozen=True, kw_only=True, slots=True)
class RemoteWork:
    """Work at the remote end while a client reads or writes values.

    Attributes
    ----------
    way : of the operations; None of the same span without any operation
    operations, size_bytes : of the client
    requests : messages that the remote program received and answered
    completions : work completions that the remote program found in its queue; None of TCP
    wakeups : times at which the thread of the remote program slept
    program_ns : CPU time of the thread of the remote program, in total
    nic_ns : CPU time of the thread of the software NIC, in total; None of TCP
    packets : datagrams that the NIC took and sent; None of TCP
    """

    way: Way | None
    operations: int
    size_bytes: PositiveInt
    requests: int
    completions: int | None
    wakeups: int
    program_ns: int
    nic_ns: int | None
    packets: int | None


@dataclass(frozen=True, kw_only=True, slots=True)
class RegistrationCost:
    """Time to register a buffer whose pages are in memory.

    Attributes
    ----------
    size_bytes : of the buffer
    register_ns, deregister_ns : medians
    copy_ns : median time to copy the buffer into another one
    is_pinned : whether the system has locked the pages
    """

    size_bytes: PositiveInt
    register_ns: PositiveFloat
    deregister_ns: PositiveFloat
    copy_ns: PositiveFloat
    is_pinned: bool

    @property
    def uses_to_pay(self) -> float:
        """Transfers after which registration costs less than a copy each time."""
        return (self.register_ns + self.deregister_ns) / self.copy_ns


@dataclass(frozen=True, kw_only=True, slots=True)
class TcpComparison:
    """The whole measurement.

    Attributes
    ----------
    machine : that measured
    is_quick : whether only few sizes were measured, once and for a short time
    rounds : of each transfer
    elapsed_s : time that everything took
    transfers, remote, registration : measurements
    """

    machine: MeasuringMachine
    is_quick: bool
    rounds: int
    elapsed_s: float
    transfers: tuple[TransferMeasurement, ...]
    remote: tuple[RemoteWork, ...]
    registration: tuple[RegistrationCost, ...]

    def transfer(self, workload: Workload, way: Way, size_bytes: int) -> TransferMeasurement | None:
        """One transfer, or None if it was not measured."""
        return next(
            (
                one
                for one in self.transfers
                if one.workload == workload and one.way == way and one.size_bytes == size_bytes
            ),
            None,
        )

    def sizes(self, workload: Workload) -> list[int]:
        """Message sizes of a workload, ascending."""
        return sorted({one.size_bytes for one in self.transfers if one.workload == workload})
