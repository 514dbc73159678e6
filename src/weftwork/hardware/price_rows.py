"""Read a price book of network parts, with prices and power.

The parts are switches, NICs, optics, cables, optical switches and appliances. A price is linear: fixed + per port +
per metre + per Gb/s + per Gb/s and metre, each term with a low, a typical and a high value. One form carries a list
price, fibre by the metre, and the formulas of papers (Besta and Hoefler, SC 2014).
Leaves out: discounts by volume, currencies other than the dollar, and what changes with time.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from weftwork.base.errors import ConfigError, Mistake

__all__ = ["Between", "ClusterPrices", "Linear", "PriceBook", "PriceRow", "Range", "RowKind"]

RowKind = Literal["switch", "nic", "module", "medium", "optical", "appliance", "server"]
Between = Literal["hosts", "switches"]  # a link with a host at an end, or one between two switches


@dataclass(frozen=True, kw_only=True, slots=True)
class Range:
    """Low, typical and high value of one quantity.

    Examples
    --------
    >>> Range(low=1, typical=2, high=4) + Range(low=1, typical=1, high=1).times(3)
    Range(low=4, typical=5, high=7)
    """

    low: float
    typical: float
    high: float

    def __add__(self, other: Range) -> Range:
        return Range(low=self.low + other.low, typical=self.typical + other.typical, high=self.high + other.high)

    def times(self, factor: float) -> Range:
        """Return all three values times a factor of 0 or more."""
        return Range(low=self.low * factor, typical=self.typical * factor, high=self.high * factor)


NOTHING = Range(low=0, typical=0, high=0)


@dataclass(frozen=True, kw_only=True, slots=True)
class Linear:
    """A linear form of dollars or watts.

    Parameters
    ----------
    fixed : of the item itself
    per_port : of each port
    per_m : of each metre
    per_gbps : of each Gb/s
    per_gbps_m : of each Gb/s and metre
    per_gpu : of each GPU of a server
    """

    fixed: Range = NOTHING
    per_port: Range = NOTHING
    per_m: Range = NOTHING
    per_gbps: Range = NOTHING
    per_gbps_m: Range = NOTHING
    per_gpu: Range = NOTHING

    def at(self, *, ports: int = 0, length_m: float = 0, gbps: float = 0, gpus: int = 0) -> Range:
        """Value of one item.

        Parameters
        ----------
        ports : of the item
        length_m : of the item, in metres
        gbps : rate of all its ports together, in Gb/s
        gpus : of a server
        """
        return (
            self.fixed
            + self.per_port.times(ports)
            + self.per_m.times(length_m)
            + self.per_gbps.times(gbps)
            + self.per_gbps_m.times(gbps * length_m)
            + self.per_gpu.times(gpus)
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class PriceRow:
    """A row of a price book: item, price, power and source.

    Attributes
    ----------
    kind : what the row prices
    name : for people; of a medium also what modules refer to
    models : of switches or NICs in the hardware catalogue, of optical switches, or appliances, that the row is for;
        empty: all
    nodes : servers that the row of a NIC is for; empty: all
    rates_bps : of the ports or links that the row is for; empty: all. Of a module: of its cage
    cage_bps : rate of a cage of the switch or NIC, which holds cage / port rate ports; None: a cage for each port
    card_bps : of one NIC, which it may split into several ports; None: each port is a card
    medium : that a module belongs to
    reach_m : longest link of a medium; None: no limit
    between : links that a medium is for; None: all
    modules : whether a medium needs a module at each end
    price : in dollars; None: unknown
    power : in watts; None: unknown
    source, date, verified : of the price
    power_source, power_verified : of the power
    """

    kind: RowKind
    name: str
    models: tuple[str, ...] = ()
    nodes: tuple[str, ...] = ()
    rates_bps: tuple[int, ...] = ()
    cage_bps: int | None = None
    card_bps: int | None = None
    medium: str = ""
    reach_m: float | None = None
    between: Between | None = None
    modules: bool = False
    price: Linear | None = None
    power: Linear | None = None
    source: str
    date: str
    verified: bool
    power_source: str
    power_verified: bool

    def fits(self, *, model: str = "", node: str = "", rate_bps: int = 0) -> bool:
        """Whether the row fits this model, server and rate."""
        return (
            (not self.models or model in self.models)
            and (not self.nodes or node in self.nodes)
            and (not self.rates_bps or rate_bps in self.rates_bps)
        )

    def ports_per_module(self, rate_bps: int) -> int:
        """Ports that share a module at a rate; 0 in too slow cages.

        They share a cage of this switch or NIC.
        """
        return 1 if self.cage_bps is None else self.cage_bps // rate_bps


@dataclass(frozen=True, kw_only=True, slots=True)
class ClusterPrices:
    """What a whole cluster costs beside its parts.

    Attributes
    ----------
    life_years : in which it trains
    electricity_usd_per_kwh : of electricity
    power_usage_effectiveness : watts of the building for each watt of its machines
    source, date, verified : of these figures
    """

    life_years: float
    electricity_usd_per_kwh: Range
    power_usage_effectiveness: float
    source: str
    date: str
    verified: bool


@dataclass(frozen=True, kw_only=True, slots=True)
class PriceBook:
    """The rows of a price book; the first row that fits is taken.

    Attributes
    ----------
    name : of a shipped book, or the path of a file
    title : what it is, one sentence
    rows : in the order of the file
    cluster : of the whole cluster; None: the book knows only networks
    """

    name: str
    title: str
    rows: tuple[PriceRow, ...]
    cluster: ClusterPrices | None = None

    def switch(self, model: str, rate_bps: int) -> PriceRow | None:
        """The row of a switch, by the rate of its fastest links."""
        return self._first("switch", model=model, rate_bps=rate_bps)

    def nic(self, model: str, node: str, rate_bps: int) -> PriceRow | None:
        """The row of a NIC of a server."""
        return self._first("nic", model=model, node=node, rate_bps=rate_bps)

    def server(self, model: str) -> PriceRow | None:
        """The row of a server with its GPUs, without NICs."""
        return self._first("server", model=model)

    def optical(self, model: str) -> PriceRow | None:
        """The row of an optical circuit switch."""
        return self._first("optical", model=model)

    def appliance(self, item: str) -> PriceRow | None:
        """The row of equipment other than hosts and switches."""
        return self._first("appliance", model=item)

    def module(self, medium: str, cage_bps: int) -> PriceRow | None:
        """The module of a medium for a cage of a rate."""
        fitting = (row for row in self.rows if row.kind == "module" and row.medium == medium)
        return next((row for row in fitting if row.fits(rate_bps=cage_bps)), None)

    def media(self, *, rate_bps: int, length_m: float, between: Between) -> list[PriceRow]:
        """Media for a rate over a length, in the order of the file."""
        return [
            row for row in self.rows
            if row.kind == "medium"
            and row.fits(rate_bps=rate_bps)
            and (row.reach_m is None or row.reach_m >= length_m)
            and row.between in {None, between}
        ]  # fmt: skip

    def price_usd(
        self, row: PriceRow, *, ports: int = 0, length_m: float = 0, gbps: float = 0, gpus: int = 0
    ) -> Range | None:
        """Price of one item in dollars; None if unknown.

        Raises
        ------
        ConfigError : the formula gives less than nothing, or more than a number holds
        """
        return self._value(row, "price_usd", row.price, ports=ports, length_m=length_m, gbps=gbps, gpus=gpus)

    def power_w(
        self, row: PriceRow, *, ports: int = 0, length_m: float = 0, gbps: float = 0, gpus: int = 0
    ) -> Range | None:
        """Power of one item in watts; None if unknown.

        Raises
        ------
        ConfigError : as `price_usd`
        """
        return self._value(row, "power_w", row.power, ports=ports, length_m=length_m, gbps=gbps, gpus=gpus)

    def _value(
        self, row: PriceRow, key: str, form: Linear | None, *, ports: int, length_m: float, gbps: float, gpus: int
    ) -> Range | None:
        if form is None:
            return None
        value = form.at(ports=ports, length_m=length_m, gbps=gbps, gpus=gpus)
        if value.low < 0 or not math.isfinite(value.high):
            size = f"{ports:,} {'port' if ports == 1 else 'ports'}, {length_m:g} m and {gbps:,g} Gb/s"
            text = f"'{row.name}' gives {value.low:,.2f} for {size}, wanted a finite number of 0 or more"
            raise ConfigError(self.name, [Mistake(path=f"{row.kind}.{key}", text=text)])
        return value

    def _first(self, kind: RowKind, *, model: str, node: str = "", rate_bps: int = 0) -> PriceRow | None:
        rows = (row for row in self.rows if row.kind == kind)
        return next((row for row in rows if row.fits(model=model, node=node, rate_bps=rate_bps)), None)
