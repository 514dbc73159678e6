"""``weftwork rdma decode``: a capture of RDMA packets, explained."""

from __future__ import annotations

import json
import mmap
from typing import TYPE_CHECKING, Any

import typer
from rich.table import Table
from rich.text import Text

from weftwork.base.errors import ConfigError, Mistake
from weftwork.base.grammar import plural
from weftwork.cli.console import console
from weftwork.cli.leave import FAILED, MISTAKE
from weftwork.cli.rdma_coverage import CoverageLine, clean_verdict, coverage_document, coverage_lines
from weftwork.rdma.capture import CaptureExplainer
from weftwork.rdma.findings import find_trouble
from weftwork.wire.fields import MalformedPacket
from weftwork.wire.pcapng import read_capture

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    from weftwork.rdma.capture import PacketRow
    from weftwork.rdma.flows import CaptureFlow

__all__ = ["decode"]

_LABEL_WIDTH = 13  # chosen: the longest label, "passed over", and two spaces
_MOST_FLOWS = 10  # chosen: rows of the table of flows, those with most trouble first; --json has all


def decode(file: Path, *, limit: int, is_noted: bool, as_json: bool) -> int:
    """Print a capture: what was read and checked, the culprit and other findings, then flows, then packets.

    Parameters
    ----------
    file : pcapng or pcap
    limit : rows of the table of packets
    is_noted : whether only packets that stand out get a row
    as_json : one JSON object instead of words

    Returns
    -------
    exit code: 0 where a packet of RDMA was read, 1 where none was, 2 where the file breaks off behind some frames

    Raises
    ------
    ConfigError : the file cannot be read, is no capture, or breaks off in its first frame; it names the byte
    """
    seen = CaptureExplainer()
    rows: list[PacketRow] = []
    rows_left_out = 0
    breaks_off: str | None = None
    try:
        with file.open("rb") as opened:
            is_empty = not opened.seek(0, 2)
            data = memoryview(b"" if is_empty else mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ))
            for packet in read_capture(data):
                for row in seen.explain(packet):
                    if is_noted and not row.notes:
                        continue
                    if len(rows) < limit:
                        rows.append(row)
                    else:
                        rows_left_out += 1
    except OSError as error:
        raise ConfigError(str(file), [Mistake(path="file", text=f"cannot be read: {error.strerror}")]) from error
    except MalformedPacket as error:
        if not seen.frames:
            raise ConfigError(str(file), [Mistake(path=error.layer, text=error.text)]) from error
        breaks_off = error.text
    if as_json:
        typer.echo(json.dumps(_document(file, seen, rows, breaks_off), indent=2))
    else:
        _print(file, seen, rows, rows_left_out, breaks_off)
    if breaks_off is not None:
        return MISTAKE
    return 0 if seen.coverage.rdma_read else FAILED


def _flows(seen: CaptureExplainer) -> list[CaptureFlow]:
    """Flows with data, those with most trouble first.

    Flows of answers alone are left out.
    """
    carrying = [flow for flow in seen.flows.by_key.values() if flow.requests.last is not None or flow.payload_bytes]
    return sorted(carrying, key=lambda flow: (-_trouble(flow), -flow.packets))


def _trouble(flow: CaptureFlow) -> int:
    return flow.sent_again + flow.naks.total() + flow.rnr_naks + flow.cnps + flow.wrong_icrc + flow.late + flow.missing


def _document(file: Path, seen: CaptureExplainer, rows: list[PacketRow], breaks_off: str | None) -> dict[str, Any]:
    findings = [finding._asdict() for finding in find_trouble(seen)]
    return {
        "file": str(file),
        "packets": seen.packets,
        "frames": seen.frames,
        "trains": seen.trains,
        "duration_ns": seen.last_ns - (seen.first_ns or 0),
        "packets_by_kind": {kind.value: count for kind, count in seen.kinds.items()},
        "coverage": coverage_document(seen.coverage, breaks_off),
        "culprit": findings[0] if findings else None,
        "findings": findings,
        "flows": [
            {
                "source": flow.key.source,
                "destination": flow.key.destination,
                "destination_qp": flow.key.destination_qp,
                "packets": flow.packets,
                "messages": flow.messages,
                "payload_bytes": flow.payload_bytes,
                "sent_again": flow.sent_again,
                "late": flow.late,
                "missing": flow.missing,
                "marked": flow.marked,
                "wrong_icrc": flow.wrong_icrc,
                "acks": flow.acks,
                "naks": dict(flow.naks),
                "rnr_naks": flow.rnr_naks,
                "cnps": flow.cnps,
            }
            for flow in _flows(seen)
        ],
        "pfc_pauses": dict(seen.pauses),
        "table": [{**row._asdict(), "notes": list(row.notes)} for row in rows],
    }


def _print(
    file: Path, seen: CaptureExplainer, rows: list[PacketRow], rows_left_out: int, breaks_off: str | None
) -> None:
    out = console()
    findings = find_trouble(seen)
    kinds = ", ".join(f"{count:,} {kind.value}" for kind, count in seen.kinds.most_common())
    duration_us = (seen.last_ns - (seen.first_ns or 0)) / 1000
    flows = _flows(seen)
    messages = sum(flow.messages for flow in flows)
    out.print(
        Text(f"{file}: {plural(seen.packets, 'packet')} in {duration_us:,.1f} us ({kinds or 'none'})"), soft_wrap=True
    )
    out.print(Text(f"{plural(len(flows), 'flow')}, {plural(messages, 'message')}"))
    _print_lines(coverage_lines(seen.coverage, breaks_off))
    if seen.trains:
        trains = plural(seen.trains, "frame holds", "frames hold")
        text = f"{trains} several packets, of {plural(seen.frames, 'frame')} in total, because of segmentation offload"
        out.print(Text(f"{text}; the packets of one frame have the same number"), soft_wrap=True)
    _print_lines(
        CoverageLine("also" if at else "to blame", f"{finding.text}{_first(finding.first_packet)}")
        for at, finding in enumerate(findings)
    )
    if not findings or not seen.coverage.rdma_read:
        out.print(Text(clean_verdict(seen.coverage)), soft_wrap=True)
    if flows:
        out.print()
        out.print(_flow_table(flows[:_MOST_FLOWS]))
        if len(flows) > _MOST_FLOWS:
            out.print(Text(f"{plural(len(flows) - _MOST_FLOWS, 'other flow')}: see --json"))
    if rows:
        out.print()
        out.print(_packet_table(rows, rows[0].time_ns if seen.first_ns is None else seen.first_ns))
    if rows_left_out:
        out.print(Text(f"{plural(rows_left_out, 'other packet')}: see --limit"))


def _print_lines(lines: Iterable[CoverageLine]) -> None:
    for line in lines:
        console().print(Text(f"{line.label:<{_LABEL_WIDTH}}{line.text}"), soft_wrap=True)


def _first(number: int | None) -> str:
    return "" if number is None else f" (first: packet {number})"


def _table(*columns: tuple[str, bool]) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for name, is_number in columns:
        table.add_column(name, justify="right" if is_number else "left", no_wrap=is_number)
    return table


def _flow_table(flows: list[CaptureFlow]) -> Table:
    """A row for each flow.

    Columns of trouble appear if any flow has that trouble.
    """
    counts: dict[str, Callable[[CaptureFlow], int]] = {
        "packets": lambda flow: flow.packets,
        "messages": lambda flow: flow.messages,
        "bytes": lambda flow: flow.payload_bytes,
    }
    trouble: dict[str, Callable[[CaptureFlow], int]] = {
        "again": lambda flow: flow.sent_again,
        "NAKs": lambda flow: flow.naks.total(),
        "RNR": lambda flow: flow.rnr_naks,
        "CNPs": lambda flow: flow.cnps,
        "marked": lambda flow: flow.marked,
        "late": lambda flow: flow.late,
        "missing": lambda flow: flow.missing,
        "bad ICRC": lambda flow: flow.wrong_icrc,
    }
    counts |= {name: of for name, of in trouble.items() if any(of(flow) for flow in flows)}
    table = _table(("flow", False), *((name, True) for name in counts))
    for flow in flows:
        table.add_row(str(flow.key), *(f"{of(flow):,}" for of in counts.values()))
    return table


def _packet_table(rows: list[PacketRow], start_ns: int) -> Table:
    table = _table(
        *[("no.", True), ("us", True), ("from", False), ("to", False), ("QP", True), ("PSN", True)],
        *[("packet", False), ("bytes", True), ("what", False)],
    )
    for row in rows:
        qp = "" if row.destination_qp is None else f"{row.destination_qp:#x}"
        psn = "" if row.psn is None else f"{row.psn:#x}"
        what = "; ".join(part for part in (", ".join(row.notes), row.detail) if part)
        table.add_row(
            *(f"{row.number:,}", f"{(row.time_ns - start_ns) / 1000:,.3f}", row.source, row.destination, qp, psn),
            *(row.name, f"{row.payload_bytes:,}", what),
        )
    return table
