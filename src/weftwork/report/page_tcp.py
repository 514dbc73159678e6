"""The page that compares TCP sockets, the software NIC and cited hardware.

Leaves out: the measurement itself, which `weftwork.rdma.tcp_comparison` makes.
"""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Final

from weftwork.report.figures import cards
from weftwork.report.figures.axes import figure
from weftwork.report.figures.bars import BarGroup, NamedBar, bars
from weftwork.report.figures.by_size import SizeLine, by_size, size_words
from weftwork.report.page_elements import PageSection, answer_lines, notice, render, table
from weftwork.report.tcp_cited import HARDWARE, cited_facts, hardware_by_size
from weftwork.report.tcp_words import (
    ANSWER_LABELS,
    COPIES,
    GAINS,
    OBTAINED,
    WordedTable,
    answer_texts,
    cost_table,
    figure_of,
    machine_facts,
    registration_table,
    remote_table,
    way_name,
    workload_table,
)
from weftwork.report.words import amount, typeset
from weftwork.spec.tcp_comparison import WORKLOADS

if TYPE_CHECKING:
    from weftwork.spec.tcp_comparison import TcpComparison, Workload

__all__ = ["tcp_page", "tcp_picture"]

_PS_PER_NS: Final = 1000
_TITLE: Final = "TCP and RDMA side by side"
_SECTIONS: Final[dict[Workload, tuple[str, str, str]]] = {
    "ping-pong": ("latency", "Latency", "Latency of a message"),
    "stream": ("goodput", "Goodput", "Goodput of a stream"),
    "read of a value": ("values", "Key-value", "Reading a value of a remote table"),
}


def tcp_page(result: TcpComparison, command: str) -> str:
    """Make the page.

    Parameters
    ----------
    result : of the measurement
    command : that made it

    Returns
    -------
    HTML, one file
    """
    sections = [
        _answer(result),
        *(_workload(result, workload) for workload in WORKLOADS),
        _remote(result),
        _costs(result),
        _copies(),
        _registration(result),
        _facts(),
        _origin(result, command),
    ]
    return render(_TITLE, machine_facts(result)[:3], sections)


def _worded(of: WordedTable) -> str:
    """A table with its note."""
    rows = [[escape(typeset(cell)) for cell in row] for row in of.rows]
    note = f'<p class="note">{escape(typeset(of.note))}</p>' if of.note else ""
    return f'<div class="named">{table(of.head, rows, texts=of.texts)}</div>{note}'


def _answer(result: TcpComparison) -> PageSection:
    quick = (
        ["This measurement was quick: few sizes and short rounds. Without --quick, the figures are steadier."]
        if result.is_quick
        else []
    )
    marks = (
        "Every column says what it is. Measured: on this machine. Derived: from the code path. Cited: published by"
        " others, measured on their machines."
    )
    content = answer_lines(ANSWER_LABELS, answer_texts(result), "") + notice(quick)
    content += f'<p class="lead">{escape(marks)}</p>' + _worded(GAINS)
    return PageSection(id="answer", short="Answer", title="What RDMA gives over TCP", content=content)


def _workload(result: TcpComparison, workload: Workload) -> PageSection:
    anchor, short, title = _SECTIONS[workload]
    unit = "b/s" if workload == "stream" else "ps"
    lines = []
    for way in WORKLOADS[workload]:
        found = (result.transfer(workload, way, size_bytes) for size_bytes in result.sizes(workload))
        values = {one.size_bytes: figure_of(one) for one in found if one is not None}
        lines.append(SizeLine(name=f"{way_name(way)} (measured)", values=values))
    if workload != "read of a value":
        lines.append(SizeLine(name="hardware, SEND (cited)", values=_hardware_line(workload), is_cited=True))
    chart = by_size("", lines, unit, note=f"Hardware: {HARDWARE}." if workload != "read of a value" else "")
    content = chart + _worded(workload_table(result, workload))
    return PageSection(id=anchor, short=short, title=title, content=content)


def _hardware_line(workload: Workload) -> dict[int, float]:
    if workload == "stream":
        return {size: point.goodput_bps for size, point in hardware_by_size().items()}
    return {size: point.latency_ns * _PS_PER_NS for size, point in hardware_by_size().items()}


def _remote(result: TcpComparison) -> PageSection:
    groups = []
    for title, values in (
        ("CPU time of the remote program, for each operation", [one.program_ns for one in result.remote]),
        ("CPU time of the software NIC's thread, for each operation", [one.nic_ns for one in result.remote]),
    ):
        shown = tuple(
            NamedBar(
                name=way_name(one.way),
                words=amount(value * _PS_PER_NS / one.operations, "ps"),
                value=value / one.operations,
            )
            for one, value in zip(result.remote, values, strict=True)
            if value is not None and one.way is not None and one.operations
        )
        groups.append(BarGroup(name=title, bars=shown))
    size = size_words(result.remote[0].size_bytes)
    lead = (
        f"The client reads or writes values of {size}. A READ or WRITE reaches the NIC of the remote end and not its"
        " program. Hardware has a NIC in silicon; here a thread of the remote process is the NIC and uses the CPU."
    )
    content = figure("", bars(groups, "CPU time at the remote end")) + _worded(remote_table(result))
    return PageSection(id="remote", short="Remote CPU", title="Work at the remote end", lead=lead, content=content)


def _costs(result: TcpComparison) -> PageSection:
    lines = []
    for way in WORKLOADS["stream"]:
        found = (result.transfer("stream", way, size_bytes) for size_bytes in result.sizes("stream"))
        values = {one.size_bytes: (one.client.cpu_ns + one.server.cpu_ns) * _PS_PER_NS for one in found if one}
        lines.append(SizeLine(name=f"{way_name(way)} (measured)", values=values))
    content = by_size("CPU time of both ends for a message of a stream", lines, "ps")
    for workload in WORKLOADS:
        name = _SECTIONS[workload][2]
        content += f"<details open><summary>{escape(name)}</summary>{_worded(cost_table(result, workload))}</details>"
    lead = "CPU time, cores in use, system calls and sleeps of one message, at both ends."
    return PageSection(id="costs", short="CPU", title="CPU time and system calls", lead=lead, content=content)


def _copies() -> PageSection:
    return PageSection(id="copies", short="Copies", title="Copies, and work of the CPU", content=_worded(COPIES))


def _registration(result: TcpComparison) -> PageSection:
    lines = [
        SizeLine(
            name="reg_mr and dereg_mr (measured)",
            values={one.size_bytes: (one.register_ns + one.deregister_ns) * _PS_PER_NS for one in result.registration},
        ),
        SizeLine(
            name="one copy (measured)",
            values={one.size_bytes: one.copy_ns * _PS_PER_NS for one in result.registration},
        ),
    ]
    content = by_size("", lines, "ps") + _worded(registration_table(result))
    lead = (
        "The NIC may use registered memory alone: registration checks the buffer, draws its keys and locks its pages."
    )
    return PageSection(
        id="registration", short="Registration", title="Cost of registration", lead=lead, content=content
    )


def _facts() -> PageSection:
    rows = tuple((one.transport, one.quantity, one.figure, one.conditions, one.origin) for one in cited_facts())
    worded = WordedTable(
        head=("transport", "quantity", "figure (cited)", "conditions", "source"),
        rows=rows,
        note="None of these figures was measured here, and none is mixed with a measured figure.",
        texts=(1, 2, 3, 4),
    )
    return PageSection(id="cited", short="Cited", title="Published figures", content=_worded(worded))


def _origin(result: TcpComparison, command: str) -> PageSection:
    facts = [*machine_facts(result), ("command", command)]
    content = table(("", ""), [[escape(name), escape(typeset(text))] for name, text in facts], texts=(1,))
    return PageSection(
        id="provenance", short="Provenance", title="How each figure was obtained", content=_worded(OBTAINED) + content
    )


def tcp_picture(result: TcpComparison) -> str:
    """Goodput by message size, as an SVG file with a light and a dark form."""
    sizes = result.sizes("stream")
    rows = []
    for way in WORKLOADS["stream"]:
        found = (result.transfer("stream", way, size_bytes) for size_bytes in sizes)
        points = tuple((float(one.size_bytes), one.goodput_bps / 1e9) for one in found if one is not None)
        rows.append(cards.Polyline(name=f"{way_name(way)} (measured)", points=points))
    cited = hardware_by_size()
    points = tuple((float(size), cited[size].goodput_bps / 1e9) for size in sizes if size in cited)
    rows.append(cards.Polyline(name="hardware (cited)", points=points))
    return cards.lines(
        "Goodput of a stream, by message size",
        rows,
        x_axis="message",
        y_axis="Gb/s",
        x_ticks=[(float(size), size_words(size)) for size in sizes],
    )
