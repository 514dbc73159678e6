"""What each congestion control costs the packet engine: CPU time per packet-hop beside that of a fixed window.

    python benchmarks/congestion_controls.py [--rounds 7] [--packets 2048] [--radix 8] [--only NAME]... [--variants]
        [--json FILE] [--markdown]

All hosts of a fat tree of three tiers (128 with k=8) send long flows whose paths share no link (destination modulo
radix, each host to the one half way round), so that nothing is congested and every control sends the same packets:
what differs are its step, and what it adds to headers and packets of its own. Rounds of all controls are interleaved;
the ratio is the median over rounds of a control's time per packet-hop divided by that of `fixed-window` in the same
round. At most 1.6 is wanted. Controls that need trimming run without PFC, by selective repeat.
Leaves out: what a control saves or costs by the queues that it leaves, which depends on the traffic.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from machine import circumstances
from measure import run_row
from rows import MTU_BYTES, Row

from weftwork.policies.load import catalogue, load
from weftwork.spec.job import Group, Job, Peer, Program, Send, Size, Wait
from weftwork.workload.placement import one_per_host

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from weftwork.engine.packet_input import PacketInput

__all__ = ["BASE", "WANTED", "main", "row_of"]

BASE: Final = "fixed-window"
WANTED: Final = 1.6  # times the fixed window
CUT: Final = {"flow_control": "none", "recovery": "selective-repeat", "trimming": True}


def row_of(name: str, variant: str | None, packets: int, radix: int = 8) -> Row:
    """The row of a control.

    Parameters
    ----------
    name, variant : of the catalogue
    packets : of each flow
    radix : of the fat tree
    """
    needs = load("congestion_control", name, variant=variant).plugin.needs
    return Row(
        text=name if variant is None else f"{name} {variant}",
        job=_half_way_round(packets),
        radix=radix,
        port_selection="destination-modulo",
        congestion_control=name,
        variant=variant,
        telemetry=not {"telemetry", "path-load"}.isdisjoint(needs),
        transport=CUT if "trimming" in needs else {},
    )


def _half_way_round(packets: int) -> Callable[[int], Job]:
    """Each host sends one flow to the host half way round."""

    def job(hosts: int) -> Job:
        peer = Peer(rule="shift", group=Group(size=hosts), shift=hosts // 2)
        send = Send(peer=peer, size=Size(total_bytes=packets * MTU_BYTES))
        return Job(
            name="half way round",
            ranks=hosts,
            programs=(Program(streams=((send, Wait()),)),),
            rank_program=np.zeros(hosts, np.int32),
            placement=one_per_host(hosts),
        )

    return job


def main() -> None:
    """Run all controls and print the table."""
    arguments = _arguments()
    rows = {row.text: row for row in _rows(arguments)}
    inputs = {}
    for name, row in rows.items():
        _progress(f"compiling {name}")
        inputs[name] = row.engine_input(row.fabric())
        inputs[name].congestion_control.compile()
    runs = _measured(rows, inputs, arguments.rounds)
    found = {name: _figures(name, runs) for name in rows}
    report = {**circumstances(arguments.rounds), "packets": arguments.packets, "radix": arguments.radix}
    report["controls"] = found
    print(_text(report, is_markdown=arguments.markdown))
    if arguments.json is not None:
        arguments.json.write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")
    if slow := [name for name, figures in found.items() if figures["ratio"] > WANTED]:
        raise SystemExit(f"more than {WANTED:g} times {BASE}: {', '.join(slow)}")


def _arguments() -> argparse.Namespace:
    names = [entry.name for entry in catalogue("congestion_control")]
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--rounds", type=int, default=7, help="runs of each control")
    parser.add_argument("--packets", type=int, default=2_048, help="of each flow")
    parser.add_argument("--radix", type=int, default=8, help="of the fat tree, which has radix^3 / 4 hosts")
    parser.add_argument("--only", action="append", choices=names, help="only this control; may be repeated")
    parser.add_argument("--variants", action="store_true", help="every variant too")
    parser.add_argument("--json", type=Path, help="also write all figures here")
    parser.add_argument("--markdown", action="store_true", help="print the table for docs/models/speed.md")
    return parser.parse_args()


def _rows(arguments: argparse.Namespace) -> Iterable[Row]:
    for entry in catalogue("congestion_control"):
        if arguments.only and entry.name not in (*arguments.only, BASE):
            continue
        yield row_of(entry.name, None, arguments.packets, arguments.radix)
        if arguments.variants:
            for variant in load("congestion_control", entry.name).plugin.variants:
                yield row_of(entry.name, variant, arguments.packets, arguments.radix)


def _measured(rows: dict[str, Row], inputs: dict[str, PacketInput], rounds: int) -> dict[str, list[dict[str, Any]]]:
    runs: dict[str, list[dict[str, Any]]] = {name: [] for name in rows}
    for round_ in range(rounds):
        for name, row in rows.items():
            _progress(f"round {round_ + 1} of {rounds}: {name}")
            runs[name].append(run_row(row, inputs[name]))
    _progress("")
    for name, own in runs.items():
        if len({run["digest"] for run in own}) > 1:
            raise SystemExit(f"{name}: rounds differ in their results")
    return runs


def _figures(name: str, runs: dict[str, list[dict[str, Any]]]) -> dict[str, Any]:
    ns_per_hop = [run["run_s"] * 1e9 / run["packet_hops"] for run in runs[name]]
    base = [run["run_s"] * 1e9 / run["packet_hops"] for run in runs[BASE]]
    last = runs[name][-1]
    return {
        "ns_per_hop": statistics.median(ns_per_hop),
        "ns_per_hop_least": min(ns_per_hop),
        "ratio": statistics.median(own / other for own, other in zip(ns_per_hop, base, strict=True)),
        "packet_hops": last["packet_hops"],
        "data_packets": last["data_packets"],
        "retransmissions": last["retransmissions"],
        "marks": last["marks"],
        "pauses": last["pauses"],
        "last_arrival_ps": last["last_arrival_ps"],
        "ns_per_hop_rounds": ns_per_hop,
    }


def _progress(text: str) -> None:
    if sys.stderr.isatty():
        print(f"\r\033[K{text}", end="", file=sys.stderr)


def _text(report: dict[str, Any], *, is_markdown: bool) -> str:
    changed = " with uncommitted changes" if report["uncommitted_changes"] else ""
    machine = f"{report['date']}, commit {report['commit']}{changed}, Python {report['python']}, {report['cpu']}"
    what = f"CPU ns per packet-hop, one thread, median and least of {report['rounds']} rounds"
    head = ["control", "median", "least", f"times {BASE}", "wanted", "packet-hops", "end us"]
    table = [
        [
            f"`{name}`" if is_markdown else name,
            f"{row['ns_per_hop']:.1f}",
            f"{row['ns_per_hop_least']:.1f}",
            f"{row['ratio']:.2f}",
            "" if name == BASE else f"<= {WANTED:g}" if row["ratio"] <= WANTED else f"<= {WANTED:g}, missed",
            f"{row['packet_hops']:,}",
            f"{row['last_arrival_ps'] / 1e6:,.0f}",
        ]
        for name, row in sorted(report["controls"].items(), key=lambda item: item[1]["ratio"])
    ]
    out = [f"{machine}; {what}; k={report['radix']}, flows of {report['packets']:,} packets", ""]
    if is_markdown:
        rule = ["---", *["---:"] * (len(head) - 1)]
        return "\n".join([*out, *(f"| {' | '.join(cells)} |" for cells in (head, rule, *table))])
    widths = [max(len(row[place]) for row in (head, *table)) for place in range(len(head))]
    rights = [
        "  ".join(cell.rjust(width) if place else cell.ljust(width)
                  for place, (cell, width) in enumerate(zip(row, widths, strict=True)))
        for row in (head, *table)
    ]  # fmt: skip
    return "\n".join([*out, *rights])


if __name__ == "__main__":
    main()
