"""The bill of materials of a fabric, with money and power.

It has switches, NICs, optics, cables and optical switches; prices come from a price book. Everything is counted on the
links and devices of a `Fabric`, never by a formula of its topology. A link's length is its delay at 5 ns a metre,
rounded up to whole metres. Each link takes the cheapest medium of the book that reaches. A link through an optical
switch takes modules at both ends and two fibres, each of half its length.
Leaves out: servers, storage and management networks, racks, power supplies, cooling, installation and spare parts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Final, Literal, get_args

from weftwork.base.caveat import mismatch_texts
from weftwork.hardware.price_rows import PriceBook, PriceRow, Range
from weftwork.spec.fabric import HOST, Fabric
from weftwork.spec.fabric_extras import Extra
from weftwork.topology.bill_counts import CountedParts, Media, count, media_of

__all__ = ["KINDS", "Bill", "BillRow", "ItemKind", "bill"]

ItemKind = Literal["switch", "module", "cable", "nic", "optical", "appliance"]
KINDS: Final[tuple[ItemKind, ...]] = get_args(ItemKind)
_GBPS: Final = 10**9


@dataclass(frozen=True, kw_only=True, slots=True)
class BillRow:
    """One line of a bill: a number of equal items.

    Attributes
    ----------
    item : for people
    kind : what it is
    where : ``switches``, ``hosts`` or ``appliances`` for a module, the ends of a cable, else empty
    count : how many
    rate_bps : of a port or cable; 0 where it means nothing
    length_m : of a cable, in whole metres; 0 for others
    reach_m : longest link of a module's medium; None: no limit, or no module
    unit_price_usd, unit_power_w : of one item; None: unknown
    price_usd, power_w : of all items; None: unknown
    source, date, verified : of the price
    power_source, power_verified : of the power
    """

    item: str
    kind: ItemKind
    where: str
    count: int
    rate_bps: int = 0
    length_m: int = 0
    reach_m: float | None = None
    unit_price_usd: Range | None
    unit_power_w: Range | None
    source: str
    date: str
    verified: bool
    power_source: str
    power_verified: bool

    @property
    def price_usd(self) -> Range | None:
        """Price of all items, in dollars."""
        return None if self.unit_price_usd is None else self.unit_price_usd.times(self.count)

    @property
    def power_w(self) -> Range | None:
        """Power of all items, in watts."""
        return None if self.unit_power_w is None else self.unit_power_w.times(self.count)


@dataclass(frozen=True, kw_only=True)
class Bill:
    """All rows of a fabric, and their totals.

    Attributes
    ----------
    name : of the fabric
    book : price book
    rows : by kind, in the order of `KINDS`
    gpus, hosts, host_ports : of the fabric; a host port is a NIC port with a cable
    mismatches : parts of the fabric that do not fit each other
    """

    name: str
    book: PriceBook
    rows: tuple[BillRow, ...]
    gpus: int
    hosts: int
    host_ports: int
    mismatches: tuple[str, ...] = ()

    @cached_property
    def price_usd(self) -> Range:
        """Dollars of all rows that have a price.

        The low value is that of all rows at their lowest.
        """
        return _total(row.price_usd for row in self.rows)

    @cached_property
    def power_w(self) -> Range:
        """Watts of all rows whose power is known."""
        return _total(row.power_w for row in self.rows)

    @property
    def not_priced(self) -> list[BillRow]:
        """Rows without a price, which the total of dollars lacks."""
        return [row for row in self.rows if row.unit_price_usd is None]

    @property
    def not_powered(self) -> list[BillRow]:
        """Rows without a power figure, which the total of watts lacks."""
        return [row for row in self.rows if row.unit_power_w is None]

    @property
    def unverified_money_share(self) -> float:
        """Share of the typical dollars from unverified rows; 0 without rows."""
        part = _total(row.price_usd for row in self.rows if not row.verified)
        return _share(part, self.price_usd)

    @property
    def unverified_power_share(self) -> float:
        """Share of the typical watts from unverified rows; 0 without rows."""
        part = _total(row.power_w for row in self.rows if not row.power_verified)
        return _share(part, self.power_w)

    def of_kind(self, kind: ItemKind) -> list[BillRow]:
        """Rows of a kind of item."""
        return [row for row in self.rows if row.kind == kind]

    def price_of_kind_usd(self, kind: ItemKind) -> Range:
        """Dollars of a kind of item."""
        return _total(row.price_usd for row in self.of_kind(kind))

    def power_of_kind_w(self, kind: ItemKind) -> Range:
        """Watts of a kind of item."""
        return _total(row.power_w for row in self.of_kind(kind))

    def count(self, kind: ItemKind, where: str | None = None) -> int:
        """Number of items of a kind, in total or in one place."""
        return sum(row.count for row in self.of_kind(kind) if where is None or row.where == where)


def bill(fabric: Fabric, book: PriceBook, extras: Sequence[Extra] | None = None) -> Bill:
    """The bill of materials of a fabric.

    Parameters
    ----------
    fabric : any
    book : prices and watts
    extras : equipment beside the hosts that takes ports of switches; None: that of the fabric

    Returns
    -------
    every device and cable once; what the book does not know has a row without a price

    Raises
    ------
    ConfigError : an extra finds too few free ports, or a formula of the book gives less than nothing

    Examples
    --------
    >>> from weftwork.hardware.prices import price_book
    >>> from weftwork.topology.build import fabric_of
    >>> tree = bill(fabric_of(topology="fat-tree", tiers=2, radix=8), price_book("deepseek-2025"))
    >>> tree.count("switch"), tree.count("cable"), tree.price_usd.typical
    (12, 64, 366160.0)
    """
    counted = count(fabric, book, fabric.extras if extras is None else extras)
    media = media_of(counted, book)
    rows = [
        *_switches(counted, book),
        *_modules(media, book),
        *_cables(media, book),
        *_nics(counted, book),
        *_optical(fabric, book),
        *_appliances(counted, book),
    ]
    at_host = fabric.node_kind == HOST
    return Bill(
        name=fabric.name,
        book=book,
        rows=tuple(_merged(rows)),
        gpus=fabric.gpus,
        hosts=len(fabric.hosts),
        host_ports=int(at_host[fabric.links["a"]].sum() + at_host[fabric.links["b"]].sum()),
        mismatches=mismatch_texts(fabric.caveats.values()),
    )


def _switches(counted: CountedParts, book: PriceBook) -> list[BillRow]:
    return [
        _row(book, device.row, kind="switch", item=device.label, number=device.count,
             rate_bps=device.rate_bps, ports=device.ports, gbps=device.ports * device.rate_bps / _GBPS)
        for device in counted.devices
        if device.kind == "switch"
    ]  # fmt: skip


def _nics(counted: CountedParts, book: PriceBook) -> list[BillRow]:
    """NICs, by the cabled ports of every host."""
    rows = []
    for device in counted.devices:
        if device.kind != "host":
            continue
        card_bps = None if device.row is None else device.row.card_bps
        cards = device.ports if card_bps is None else _cards(device.ports, device.rate_bps, card_bps, device.gpus)
        number, ports = device.count * cards, -(-device.ports // cards)
        gbps = ports * device.rate_bps / _GBPS
        rows.append(_row(book, device.row, kind="nic", item=device.label, number=number, rate_bps=device.rate_bps,
                         ports=ports, gbps=gbps))  # fmt: skip
    return rows


def _cards(ports: int, rate_bps: int, card_bps: int, gpus: int) -> int:
    """Cards of a host: enough for its ports.

    A port that is faster than a card is sold with is one card's all the same, as in a run. A host with at least as many
    ports as GPUs has one card for each GPU.
    """
    return max(-(-ports * min(rate_bps, card_bps) // card_bps), min(ports, gpus))


def _optical(fabric: Fabric, book: PriceBook) -> list[BillRow]:
    """Optical circuit switches; they stay where their circuits are lost."""
    optical = None if fabric.direct is None else fabric.direct.optical
    if optical is None:
        return []
    row = book.optical(optical.model)
    label = f"optical switch '{optical.model}'" if row is None else row.name
    return [_row(book, row, kind="optical", item=label, number=len(optical.names), ports=optical.ports)]


def _appliances(counted: CountedParts, book: PriceBook) -> list[BillRow]:
    return [
        _row(book, device.row, kind="appliance", item=device.label, number=device.count, ports=device.ports)
        for device in counted.devices
        if device.kind == "appliance"
    ]


def _modules(media: Media, book: PriceBook) -> list[BillRow]:
    return [
        _row(book, module.row, kind="module", item=module.row.name, number=module.count, where=module.where,
             rate_bps=module.row.rates_bps[0], reach_m=module.reach_m, gbps=module.row.rates_bps[0] / _GBPS)
        for module in media.modules
    ]  # fmt: skip


def _cables(media: Media, book: PriceBook) -> list[BillRow]:
    return [
        _row(book, cable.row, kind="cable", item=cable.label, number=cable.count, where=cable.where,
             rate_bps=cable.rate_bps, length_m=cable.length_m, gbps=cable.rate_bps / _GBPS)
        for cable in media.cables
    ]  # fmt: skip


def _row(  # noqa: PLR0913 - what a line of a bill says, by name
    book: PriceBook,
    row: PriceRow | None,
    *,
    kind: ItemKind,
    item: str,
    number: int,
    where: str = "",
    rate_bps: int = 0,
    length_m: int = 0,
    reach_m: float | None = None,
    ports: int = 0,
    gbps: float = 0,
) -> BillRow:
    """A row of the bill; without a price if the book has no row."""
    place: dict[str, Any] = {
        "item": item,
        "kind": kind,
        "where": where,
        "count": number,
        "rate_bps": rate_bps,
        "length_m": length_m,
    }
    if row is None:
        unknown = "not in the book"
        return BillRow(**place, reach_m=reach_m, unit_price_usd=None, unit_power_w=None, source=unknown, date="",
                       verified=False, power_source=unknown, power_verified=False)  # fmt: skip
    return BillRow(
        **place,
        reach_m=reach_m,
        unit_price_usd=book.price_usd(row, ports=ports, length_m=length_m, gbps=gbps),
        unit_power_w=book.power_w(row, ports=ports, length_m=length_m, gbps=gbps),
        source=row.source,
        date=row.date,
        verified=row.verified,
        power_source=row.power_source,
        power_verified=row.power_verified,
    )


def _merged(rows: Iterable[BillRow]) -> list[BillRow]:
    """Merge rows of equal items.

    Switches of one product may differ in ports that their price does not know.
    """
    numbers: Counter[BillRow] = Counter()
    for row in rows:
        numbers[replace(row, count=0)] += row.count
    return [replace(row, count=number) for row, number in numbers.items() if number]


def _total(parts: Iterable[Range | None]) -> Range:
    return sum((part for part in parts if part is not None), start=Range(low=0, typical=0, high=0))


def _share(part: Range, whole: Range) -> float:
    return part.typical / whole.typical if whole.typical else 0.0
