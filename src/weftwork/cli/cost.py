"""``weftwork cost FILE``: the parts of a fabric, with price and power."""

from __future__ import annotations

import csv
import json
from collections.abc import Mapping
from dataclasses import asdict
from io import StringIO
from pathlib import Path
from typing import Any, Final

import typer

from weftwork.base.errors import ConfigError, Mistake
from weftwork.base.nearest import nearest
from weftwork.base.whole_file import write_whole
from weftwork.cli.console import console
from weftwork.cli.cost_text import print_bill
from weftwork.cli.topology import fabric_in
from weftwork.hardware.price_rows import Range
from weftwork.hardware.prices import SHIPPED, price_book, shipped_text
from weftwork.topology.bill import KINDS, Bill, BillRow, bill

__all__ = ["cost", "csv_text", "print_template", "record", "refuse_nothing"]

_COLUMNS: Final = (
    "item", "kind", "where", "count", "rate_bps", "length_m", "reach_m",
    "unit_price_low_usd", "unit_price_typical_usd", "unit_price_high_usd",
    "price_low_usd", "price_typical_usd", "price_high_usd",
    "unit_power_low_w", "unit_power_typical_w", "unit_power_high_w",
    "power_low_w", "power_typical_w", "power_high_w",
    "verified", "source", "date", "power_verified", "power_source",
)  # fmt: skip


def cost(
    file: Path,
    *,
    prices: str | None = None,
    as_json: bool = False,
    to: Path | None = None,
    overrides: Mapping[str, str] | None = None,
    user_code: bool = True,
) -> None:
    """Print a fabric's bill of materials, and write it if asked.

    Parameters
    ----------
    file : a scenario, or a fabric as JSON or GraphML
    prices : name of a shipped price book, or the path of another; by default `weftwork.hardware.prices.DEFAULT`
    as_json : print one JSON object with units in the names
    to : file of the rows as CSV
    overrides : keys of a scenario set from the command line
    user_code : False refuses every Python file of the user's own that the scenario names

    Raises
    ------
    ConfigError : the file describes no fabric, or the price book is wrong
    """
    book = price_book(prices)
    found = bill(fabric_in(file, overrides, user_code=user_code), book)
    if to is not None:
        write_whole(to, csv_text(found))
    if as_json:
        typer.echo(json.dumps(record(found), indent=2))
        return
    out = console()
    print_bill(out, found)
    if to is not None:
        out.print(f"wrote {to}", soft_wrap=True)


def print_template(prices: str | None) -> None:
    """Print a shipped price book, as a start for a user's own.

    Raises
    ------
    ConfigError : no shipped book has that name
    """
    name = next(iter(SHIPPED)) if prices is None else prices
    if name not in SHIPPED:
        text = f"found '{name}', wanted one of {', '.join(SHIPPED)}"
        raise ConfigError("command line", [Mistake(path="--prices", text=text, fix=nearest(name, SHIPPED))])
    typer.echo(shipped_text(name), nl=False)


def refuse_nothing() -> None:
    """Say that a file is missing.

    Raises
    ------
    ConfigError : always
    """
    text = "is missing, wanted a scenario or a fabric file; only --template needs no file"
    raise ConfigError("command line", [Mistake(path="FILE", text=text)])


def record(found: Bill) -> dict[str, Any]:
    """A bill as JSON values: totals and all rows.

    Totals are also per GPU and by kind.
    """
    return {
        "name": found.name,
        "prices": {"name": found.book.name, "title": found.book.title},
        "gpus": found.gpus,
        "hosts": found.hosts,
        "host_ports": found.host_ports,
        "mismatches": list(found.mismatches),
        "total": _money_and_power(found.price_usd, found.power_w),
        "per_gpu": _money_and_power(found.price_usd.times(1 / found.gpus), found.power_w.times(1 / found.gpus)),
        "unverified_share_of_money": found.unverified_money_share,
        "unverified_share_of_power": found.unverified_power_share,
        "by_kind": {
            kind: {"count": found.count(kind),
                   **_money_and_power(found.price_of_kind_usd(kind), found.power_of_kind_w(kind))}
            for kind in KINDS
        },
        "not_priced": [{"item": row.item, "kind": row.kind, "count": row.count} for row in found.not_priced],
        "power_unknown": [{"item": row.item, "kind": row.kind, "count": row.count} for row in found.not_powered],
        "rows": [
            {**asdict(row),
             "price_usd": None if row.price_usd is None else asdict(row.price_usd),
             "power_w": None if row.power_w is None else asdict(row.power_w)}
            for row in found.rows
        ],
    }  # fmt: skip


def csv_text(found: Bill) -> str:
    """The rows of a bill as CSV, then totals.

    The kind of the last two rows marks the total and the total per GPU.
    """
    out = StringIO()
    table = csv.DictWriter(out, _COLUMNS, restval="", lineterminator="\n")
    table.writeheader()
    for row in found.rows:
        table.writerow(_csv_row(row))
    for kind, share in (("total", 1.0), ("per GPU", 1 / found.gpus)):
        money, power = found.price_usd.times(share), found.power_w.times(share)
        table.writerow({"item": kind, "kind": kind, **_flat("price", money, "usd"), **_flat("power", power, "w")})
    return out.getvalue()


def _csv_row(row: BillRow) -> dict[str, Any]:
    plain = {key: getattr(row, key) for key in _COLUMNS if hasattr(row, key)}
    for name, value, unit in (
        ("unit_price", row.unit_price_usd, "usd"),
        ("price", row.price_usd, "usd"),
        ("unit_power", row.unit_power_w, "w"),
        ("power", row.power_w, "w"),
    ):
        plain |= _flat(name, value, unit)
    return {key: "" if value is None else value for key, value in plain.items()}


def _flat(name: str, value: Range | None, unit: str) -> dict[str, float]:
    if value is None:
        return {}
    return {f"{name}_{end}_{unit}": round(getattr(value, end), 6) for end in ("low", "typical", "high")}


def _money_and_power(price: Range, power: Range) -> dict[str, Any]:
    return {"price_usd": asdict(price), "power_w": asdict(power)}
