"""``weftwork topology --limits`` without a fabric: largest trees of switches.

They are by tiers, ports and rates.
"""

from __future__ import annotations

import json
from dataclasses import asdict
from fractions import Fraction
from typing import Any, Final

import typer
from rich.table import Table

from weftwork.base.errors import ConfigError, Mistake
from weftwork.base.grammar import plural
from weftwork.base.units import RATE, format_quantity
from weftwork.cli.console import console
from weftwork.hardware import catalogue
from weftwork.topology.limits import ends_by_radix, tree_limit, widest_tree
from weftwork.topology.oversubscription import exact_ratio, ratio_of, ratio_text

__all__ = ["limits_of_switches", "plain_table"]

RADIX: Final = 64  # chosen: 64 x 400 Gb/s of a QM9700, and 64 x 800 Gb/s of a switch of 51.2 Tb/s
TIERS: Final = (1, 2, 3, 4)  # chosen: nobody builds five


def limits_of_switches(
    *, radix: int | None = None, switch: str | None = None, oversubscription: str | None = None, as_json: bool = False
) -> None:
    """Print the largest trees of a switch.

    They are by tiers for a number of ports, and by rate for a switch of the catalogue.

    Parameters
    ----------
    radix : ports of a switch; without it and ``switch`` 64, and the ports of all switches of the catalogue besides
    switch : of the catalogue
    oversubscription : of the leaves, such as ``3:1``; by default 1:1
    as_json : print one JSON object with units in the names

    Raises
    ------
    ConfigError : no such switch, one with any number of ports, both a radix and a switch, no ratio, or one that no
        leaf has
    """
    ratio = Fraction(1) if oversubscription is None else _ratio(oversubscription)
    if switch is None:
        record: dict[str, Any] = {"oversubscription": float(ratio), "radix": RADIX if radix is None else radix}
        record["by_tiers"] = _by_tiers(record["radix"], ratio)
        if radix is None and ratio == 1:
            record["by_radix"] = [asdict(row) for row in ends_by_radix()]
    else:
        if radix is not None:
            raise _wrong("--radix", f"found {radix} and --switch {switch}, which has its own ports; leave one out")
        record = {"oversubscription": float(ratio), "switch": switch, "by_rate": _by_rate(switch, ratio)}
    if as_json:
        typer.echo(json.dumps(record, indent=2))
        return
    out = console()
    leaves = "Without blocking" if ratio == 1 else f"With leaves at {ratio_text(ratio)}"
    if switch is None:
        out.print(f"{leaves}, switches of {plural(record['radix'], 'port')}", style="bold")
        out.print(_tiers_table(record["by_tiers"]))
        if "by_radix" in record:
            out.print("\nWithout blocking, switches of the catalogue", style="bold")
            out.print(_radix_table(record["by_radix"]))
    else:
        out.print(f"{leaves}, {switch}: {catalogue.SWITCHES[switch].title}", style="bold")
        out.print(_rate_table(record["by_rate"]))


def _wrong(option: str, text: str) -> ConfigError:
    return ConfigError("command line", [Mistake(path=option, text=text)])


def _ratio(text: str) -> Fraction:
    """A ratio as people write it."""
    value = ratio_of(text)
    if not 0.01 <= value <= 1_000:  # chosen: as where the shape of a leaf-spine follows from its ratio
        raise _wrong("--oversubscription", f"found {text!r}, wanted a ratio from 0.01 to 1000 such as 3:1")
    return exact_ratio(value)


def _by_tiers(radix: int, ratio: Fraction) -> list[dict[str, Any]]:
    """The widest tree of every number of tiers."""
    rows = []
    for tiers in TIERS:
        tree = widest_tree(radix, tiers, ratio=ratio)
        limit = tree_limit(tree)
        carried = Fraction(limit.servers)
        for down, up in zip(tree.down, tree.up, strict=False):
            carried *= min(Fraction(1), Fraction(up, down))
        rows.append(
            {
                "tiers": tiers,
                "endpoints": limit.servers,
                "switches": limit.switches,
                "switch_links": limit.switch_links,
                "longest_path_switches": limit.longest_path_switches,
                "switches_per_endpoint": limit.switches / limit.servers,
                "switch_links_per_endpoint": limit.switch_links / limit.servers,
                "bisection_links": int(carried // 2),
            }
        )
    return rows


def _by_rate(switch: str, ratio: Fraction) -> list[dict[str, Any]]:
    """The largest trees of a switch by rate.

    Ports are whole, or split as long as that makes more of them.
    """
    row = catalogue.SWITCHES.find(switch, path="--switch")
    if "capacity_bps" not in row.figures:
        raise _wrong("--switch", f"found '{switch}', which has any number of ports; wanted --radix with a number")
    fastest = int(row.value("port_rate_bps"))
    rows: list[dict[str, Any]] = []
    parts = 1
    while not rows or catalogue.ports_at(switch, fastest // parts) > rows[-1]["radix"]:
        radix = catalogue.ports_at(switch, fastest // parts)
        ends = {str(tiers): tree_limit(widest_tree(radix, tiers, ratio=ratio)).servers for tiers in TIERS}
        rows.append({"rate_bps": fastest // parts, "radix": radix, "planes": parts, "endpoints_by_tiers": ends})
        parts *= 2
    return rows


def _tiers_table(rows: list[dict[str, Any]]) -> Table:
    table = plain_table(
        "tiers", "endpoints", "switches", "switch links", "longest path", "switches / endpoint", "links / endpoint",
        "bisection",
    )  # fmt: skip
    for row in rows:
        path = row["longest_path_switches"]
        table.add_row(
            str(row["tiers"]), f"{row['endpoints']:,}", f"{row['switches']:,}", f"{row['switch_links']:,}",
            plural(path, "switch", "switches"), f"{row['switches_per_endpoint']:.4f}",
            f"{row['switch_links_per_endpoint']:.4g}", plural(row["bisection_links"], "link"),
        )  # fmt: skip
    return table


def _radix_table(rows: list[dict[str, Any]]) -> Table:
    table = plain_table("ports", "2 tiers", "3 tiers")
    table.add_column("  switches", overflow="fold")
    for row in rows:
        by_rate: dict[int, list[str]] = {}
        for name, rate in row["switches"].items():
            by_rate.setdefault(rate, []).append(name)
        words = "; ".join(
            f"at {format_quantity(RATE, rate)} {', '.join(names)}" for rate, names in sorted(by_rate.items())
        )
        table.add_row(f"{row['radix']:,}", f"{row['two_tiers']:,}", f"{row['three_tiers']:,}", f"  {words}")
    return table


def _rate_table(rows: list[dict[str, Any]]) -> Table:
    table = plain_table("NIC port", "planes", "ports", *(f"{plural(tiers, 'tier')}" for tiers in TIERS))
    for row in rows:
        ends = row["endpoints_by_tiers"]
        table.add_row(
            format_quantity(RATE, row["rate_bps"]), str(row["planes"]), f"{row['radix']:,}",
            *(f"{ends[str(tiers)]:,}" for tiers in TIERS),
        )  # fmt: skip
    return table


def plain_table(*headings: str, left: int = 0) -> Table:
    """Make a table without a frame.

    Numbers are to the right, except in the first columns.
    """
    table = Table(box=None, pad_edge=False)
    for number, heading in enumerate(headings):
        table.add_column(heading, justify="left" if number < left else "right")
    return table
