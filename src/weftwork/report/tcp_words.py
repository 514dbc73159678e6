"""The comparison of TCP and RDMA in words and tables, for the page and for the terminal.

Every column says whether it is measured, derived from the code path, or cited.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from weftwork.base.grammar import plural
from weftwork.report.figures.by_size import size_words
from weftwork.report.tcp_cited import hardware_by_size
from weftwork.report.words import amount
from weftwork.spec.tcp_comparison import WORKLOADS

if TYPE_CHECKING:
    from weftwork.spec.tcp_comparison import EndCost, RemoteWork, TcpComparison, TransferMeasurement, Way, Workload

__all__ = [
    "ANSWER_LABELS",
    "COPIES",
    "GAINS",
    "OBTAINED",
    "WordedTable",
    "answer_texts",
    "cost_table",
    "figure_of",
    "machine_facts",
    "registration_table",
    "remote_table",
    "slower_counts",
    "way_name",
    "workload_table",
]

ANSWER_LABELS: Final = ("RDMA gives", "measured", "it costs", "hardware adds")
_NAMES: Final[dict[Way, str]] = {
    "tcp": "TCP",
    "send": "software NIC, SEND",
    "write": "software NIC, WRITE",
    "read": "software NIC, READ",
}
_PS_PER_NS: Final = 1000
_SHOWN_BYTES: Final = 64  # the size of the sentence about latency, which both measurements have


@dataclass(frozen=True, kw_only=True)
class WordedTable:
    """A table of words.

    Attributes
    ----------
    head : headings
    rows : cells, as many as headings
    note : what a reader has to know; may be empty
    texts : columns of words
    """

    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    note: str = ""
    texts: tuple[int, ...] = ()


# Work of the CPU for a message. Derived from `weftwork.rdma.drivers.udp`, `weftwork.rdma.responder` and tcp(7); the
# column of hardware from the design of RDMA, IBTA vol. 1, 3.2 and chapter 10.
COPIES: Final = WordedTable(
    head=("where", "TCP (derived)", "software NIC (derived)", "hardware (derived)"),
    rows=(
        (
            "sender",
            "1: send copies user memory into the system",
            "1: sendmsg copies user memory into the system; before that, the CRC reads it once",
            "0: the NIC reads user memory",
        ),
        (
            "receiver",
            "1: recv copies from the system into the buffer of the call",
            "2: recvmsg copies into the NIC's buffer, the NIC copies into registered memory; the CRC reads it once",
            "0: the NIC writes user memory",
        ),
        (
            "system calls",
            "one for what fits the buffer of the socket",
            "one for up to 15 packets of 4,096 bytes, and calls that find no packet",
            "0: requests are written to the NIC (kernel bypass)",
        ),
        (
            "remote end of a READ or WRITE",
            "there is none: the program runs",
            "a thread of the remote process executes it",
            "the NIC executes it, without the CPU",
        ),
    ),
    note=(
        "Copies by the CPU for each byte of payload. All cells are derived from the code path and not measured. Those"
        " of hardware follow from the design of RDMA (IBTA vol. 1, 3.2 and chapter 10)."
    ),
    texts=(1, 2, 3),
)
GAINS: Final = WordedTable(
    head=("gain", "who gives it", "evidence on this page"),
    rows=(
        ("the remote program does not run for READ and WRITE", "the interface", "measured: work at the remote end"),
        (
            "a message goes to its place in memory, without a copy by the program",
            "the interface, with registered memory",
            "derived: copies",
        ),
        ("no CPU at the remote end", "hardware", "measured: the thread of the software NIC does use the CPU"),
        ("no system call and no copy by the CPU", "hardware", "measured and derived: the software NIC has both"),
        ("a latency of a few microseconds", "hardware", "cited"),
        ("full link rate with little CPU time", "hardware", "cited"),
    ),
    texts=(1, 2),
)
OBTAINED: Final = WordedTable(
    head=("figure", "how it was obtained"),
    rows=(
        ("latency, goodput", "measured: clock of the client; each figure is the median of the rounds"),
        ("latency of a ping-pong", "measured: half the time until the answer of equal size has arrived"),
        ("CPU time, cores", "measured: getrusage(2) of each process; the share of the system is a sample (by ticks)"),
        (
            "system calls",
            "counted at send, recv, sendmsg and recvmsg in the program; calls that only wait are not counted (poll)",
        ),
        ("sleeps", "measured: voluntary context switches, getrusage(2)"),
        ("copies", "derived from the code path"),
        (
            "CPU time of the software NIC",
            "measured: CPU time of the process without the program's thread, in which posting runs the NIC too",
        ),
        ("registration, copy", "measured: clock around reg_mr, dereg_mr and one copy; pages are in memory before"),
        ("hardware", "cited, on other machines; never part of a measured figure"),
    ),
    texts=(1,),
)


def way_name(way: Way) -> str:
    """Name of a way."""
    return _NAMES[way]


def figure_of(one: TransferMeasurement) -> float:
    """The figure that counts: latency in ps, or the goodput of a stream in b/s."""
    return one.goodput_bps if one.latency_p50_ns is None else one.latency_p50_ns * _PS_PER_NS


def slower_counts(result: TcpComparison) -> tuple[int, int]:
    """Comparisons in which the software NIC is slower than TCP, and all of them."""
    slower = compared = 0
    for workload, (_, *others) in WORKLOADS.items():
        for size_bytes in result.sizes(workload):
            tcp = result.transfer(workload, "tcp", size_bytes)
            for way in others:
                other = result.transfer(workload, way, size_bytes)
                if tcp is None or other is None:
                    continue
                compared += 1
                is_more = figure_of(other) > figure_of(tcp)
                slower += is_more if workload != "stream" else not is_more
    return slower, compared


def answer_texts(result: TcpComparison) -> tuple[str, ...]:
    """The answer, a text for each of `ANSWER_LABELS`."""
    return _GIVEN, _counted(result), _costs(result), _hardware()


_GIVEN: Final = (
    "One-sided access: a READ or a WRITE does not run the remote program. The interface gives this, and hardware"
    " makes it fast."
)


def _counted(result: TcpComparison) -> str:
    work = {one.way: one for one in result.remote}
    tcp, read = work["tcp"], work["read"]
    return (
        f"For {plural(tcp.operations, 'value')} of {size_words(tcp.size_bytes)}, the TCP server answered"
        f" {plural(tcp.requests, 'request')} with {_time(tcp.program_ns)} of CPU time. With READ, the remote program"
        f" answered {plural(read.requests, 'request')} and used {_time(read.program_ns)}. The thread of the software"
        f" NIC used {_time(read.nic_ns or 0)}; in hardware, the NIC does this work."
    )


def _costs(result: TcpComparison) -> str:
    slower, compared = slower_counts(result)
    text = (
        f"The software NIC runs in Python. It is slower than TCP of the system in {slower} of"
        f" {plural(compared, 'comparison')}."
    )
    tcp, send = (result.transfer("ping-pong", way, _SHOWN_BYTES) for way in ("tcp", "send"))
    if tcp is not None and send is not None:
        text += (
            f" Half a round trip of {_SHOWN_BYTES} bytes takes {amount(figure_of(send), 'ps')} instead of"
            f" {amount(figure_of(tcp), 'ps')}."
        )
    first = result.registration[0]
    return (
        f"{text} Memory has to be registered first: {size_words(first.size_bytes)} cost"
        f" {_time(first.register_ns + first.deregister_ns)},"
        f" {amount(first.uses_to_pay, 'ratio')} times as much as a copy."
    )


def _hardware() -> str:
    point = hardware_by_size()[_SHOWN_BYTES]
    large = hardware_by_size()[1 << 16]
    return (
        f"The speed. All figures of hardware are cited: {_time(point.latency_ns)} for half a round trip of"
        f" {_SHOWN_BYTES} bytes, and {amount(large.goodput_bps, 'b/s')} with messages of 64 KiB (ConnectX-5,"
        " 100 Gb/s). Receiving at 40 Gb/s over TCP took 12 % of a server with 32 cores (Guo et al., SIGCOMM 2016)."
    )


def _time(value_ns: float) -> str:
    return amount(value_ns * _PS_PER_NS, "ps")


def workload_table(result: TcpComparison, workload: Workload) -> WordedTable:
    """Latency or goodput by message size, in every way and of hardware."""
    ways = WORKLOADS[workload]
    is_stream, is_cited = workload == "stream", workload != "read of a value"
    head = ["message" if workload != "read of a value" else "value"]
    for way in ways:
        head += [f"{_NAMES[way]} (measured)", "rounds (measured)" if is_stream else "p99 (measured)"]
    head += ["hardware, SEND (cited)"] if is_cited else []
    rows = []
    for size_bytes in result.sizes(workload):
        row = [size_words(size_bytes)]
        for way in ways:
            one = result.transfer(workload, way, size_bytes)
            row += ["-", "-"] if one is None else _shown(one)
        if is_cited:
            point = hardware_by_size().get(size_bytes)
            cited = "-"
            if point is not None:
                cited = amount(point.goodput_bps, "b/s") if is_stream else _time(point.latency_ns)
            row.append(cited)
        rows.append(tuple(row))
    return WordedTable(head=tuple(head), rows=tuple(rows), note=_WORKLOAD_NOTES[workload])


_WORKLOAD_NOTES: Final[dict[Workload, str]] = {
    "ping-pong": "Half a round trip, median and 99th percentile of single messages. Both programs wait in a call.",
    "stream": (
        "Payload of one connection. TCP sends each message by a call, and the system joins small messages; the software"
        " NIC keeps up to 64 WRITEs on their way, one packet or more for each. Rounds: lowest to highest."
    ),
    "read of a value": (
        "From the request to the checked value. TCP and SEND: the program of the server looks the value up. READ: the"
        " client knows the place of the value, and the program of the server sleeps."
    ),
}


def _shown(one: TransferMeasurement) -> list[str]:
    if one.latency_p99_ns is None:
        return [amount(one.goodput_bps, "b/s"), f"{amount(one.lowest, 'b/s')} to {amount(one.highest, 'b/s')}"]
    return [amount(figure_of(one), "ps"), _time(one.latency_p99_ns)]


def cost_table(result: TcpComparison, workload: Workload) -> WordedTable:
    """CPU time, cores, system calls and sleeps of one message."""
    rows = []
    for size_bytes in result.sizes(workload):
        for way in WORKLOADS[workload]:
            one = result.transfer(workload, way, size_bytes)
            if one is not None:
                rows.append((size_words(size_bytes), _NAMES[way], *_end(one.client), *_end(one.server)))
    columns = ("CPU time", "cores", "calls", "sleeps")
    head = tuple(f"{end} {name} (measured)" for end in ("client", "server") for name in columns)
    note = (
        "For one message. Calls: those that moved data, and in brackets those that found nothing. On the loopback, the"
        " sender's CPU time includes the system's work for the receiver."
    )
    return WordedTable(head=("message", "way", *head), rows=tuple(rows), note=note, texts=(1,))


def _end(one: EndCost) -> tuple[str, str, str, str]:
    empty = one.calls.get("empty recvmsg", 0.0)
    calls = amount(round(one.all_calls - empty, 2), "ratio") + (
        f" (+{amount(round(empty, 1), 'ratio')})" if empty else ""
    )
    return _time(one.cpu_ns), f"{one.cores:.2f}", calls, amount(round(one.sleeps, 2), "ratio")


def remote_table(result: TcpComparison) -> WordedTable:
    """Work at the remote end, of the program and of the NIC."""
    head = (
        "operations", "requests (measured)", "completions (measured)", "sleeps of the program (measured)",
        "CPU time of the program (measured)", "CPU time of the NIC (measured)", "packets of the NIC (measured)",
    )  # fmt: skip
    rows = tuple(_remote_row(one) for one in result.remote)
    note = (
        "The program is the thread that answers requests. With READ and WRITE it waits for the end of the measurement,"
        " which wakes it once; the last row shows that alone. The NIC is the thread that hardware would replace. For"
        " TCP, the system does that work, partly in the program's time."
    )
    return WordedTable(head=head, rows=rows, note=note)


def _remote_row(one: RemoteWork) -> tuple[str, ...]:
    counts = (one.completions, one.wakeups, one.packets)
    completions, wakeups, packets = ("-" if count is None else f"{count:,}" for count in counts)
    name = "none" if one.way is None else f"{one.operations:,} x {one.way.upper()}"
    nic = "-" if one.nic_ns is None else _time(one.nic_ns)
    return name, f"{one.requests:,}", completions, wakeups, _time(one.program_ns), nic, packets


def registration_table(result: TcpComparison) -> WordedTable:
    """Time to register, to deregister and to copy, by size."""
    head = (
        "buffer", "reg_mr (measured)", "dereg_mr (measured)", "a copy (measured)", "uses until it pays (measured)",
        "pinned (measured)",
    )  # fmt: skip
    rows = tuple(
        (
            size_words(one.size_bytes),
            _time(one.register_ns),
            _time(one.deregister_ns),
            _time(one.copy_ns),
            amount(max(1.0, round(one.uses_to_pay, 1)), "ratio"),
            "yes" if one.is_pinned else "no",
        )
        for one in result.registration
    )
    note = (
        "A program that does not register its own buffer has to copy each message into registered memory. Registration"
        " pays after as many transfers as the column says. Not pinned: the system refused to lock the pages"
        " (RLIMIT_MEMLOCK). Hardware also writes its translation table, which is not measured here."
    )
    return WordedTable(head=head, rows=rows, note=note)


_CORES: Final = ", each on a core of its own"


def machine_facts(result: TcpComparison) -> list[tuple[str, str]]:
    """The machine and the circumstances."""
    machine = result.machine
    kind = "quick: few sizes, short rounds" if result.is_quick else "full"
    return [
        ("measured on", f"{machine.cpu}, {plural(machine.cores, 'core')}, {machine.kernel}"),
        ("wire", f"loopback, client and server in two processes{_CORES if machine.cores > 1 else ''}"),
        ("programs", f"Python {machine.python}, ICRC by {machine.checksum}"),
        ("receive buffer", f"{amount(machine.receive_buffer_bytes, 'B')} of the software NIC"),
        ("rounds", f"{result.rounds} ({kind}), {result.elapsed_s:.0f} s in total"),
        ("date and commit", f"{machine.date}, {machine.commit[:8]}"),
    ]
