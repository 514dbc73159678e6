"""Lines of ``weftwork topology`` about a fabric whose hosts forward.

Leaves out: the measures themselves (`weftwork.topology.host_hops`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.table import Table

from weftwork.base.grammar import plural

if TYPE_CHECKING:
    from weftwork.topology.host_hops import HostHops

__all__ = ["host_hop_notes", "host_hop_rows", "host_hops_table"]


def host_hop_rows(hops: HostHops) -> list[tuple[str, str]]:
    """Rows about distances and disjoint paths."""
    least, most = hops.disjoint_min, hops.disjoint_max
    several = f"{least:,}" if least == most else f"{least:,} to {most:,}"
    return [
        ("diameter", f"{plural(hops.diameter, 'host hop')}; hosts in between forward"),
        ("disjoint paths", f"{several} between two hosts ({plural(hops.pairs_counted, 'pair')} counted)"),
    ]


def host_hops_table(hops: HostHops) -> Table:
    """Pairs of hosts by their distance."""
    table = Table(box=None, pad_edge=False)
    for heading in ("host hops", "share of pairs"):
        table.add_column(heading, justify="right")
    for number, pairs in enumerate(hops.pairs, start=1):
        table.add_row(str(number), f"{pairs / sum(hops.pairs):.2%}")
    return table


def host_hop_notes(hops: HostHops, hosts: int) -> list[str]:
    """Lines below the table.

    Parameters
    ----------
    hops : measured
    hosts : of the fabric
    """
    lines = ["No engine simulates hosts that forward, so weftwork run refuses this fabric."]
    if hops.sources < hosts:
        lines.insert(0, f"Distances from {hops.sources:,} of {plural(hosts, 'host')}, evenly spaced.")
    return lines
