"""What a cluster's money buys: the work of its life for each dollar, and at which prices another fabric buys more.

The money is that of all GPUs with their servers, of the network, and of the electricity of both. Every fabric has the
same GPUs, so that their price decides how much a second of an iteration is worth.
Leaves out: interest, what is left at the end, staff, space, spare parts, and years in which the price of work falls.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from weftwork.hardware.price_rows import PriceBook, Range

__all__ = ["CRITERIA", "WORK", "ClusterMoney", "PriceRegion", "cluster_money", "regions"]

WORK: Final = "work-per-dollar"
# What a design is judged by: the most work for the money of the whole cluster; the bend of the front of network money
# and time; or the least of one of its costs.
CRITERIA: Final = (WORK, "knee", "time", "money", "power")
HOURS_OF_YEAR: Final = 8_766.0  # of 365.25 days
_WATTS_OF_KW: Final = 1_000.0


@dataclass(frozen=True, kw_only=True, slots=True)
class ClusterMoney:
    """Prices of a cluster of given GPUs.

    Attributes
    ----------
    gpus : of the cluster
    hours : of its life
    gpu_hour_usd : of a GPU with its share of the server and its electricity, without the network
    watt_usd : of a watt of the network over the life
    source, date, verified : of the price of a GPU-hour
    is_given : whether the user has given the price of a GPU-hour
    """

    gpus: int
    hours: float
    gpu_hour_usd: Range
    watt_usd: Range
    source: str
    date: str
    verified: bool
    is_given: bool = False

    @property
    def servers_usd(self) -> Range:
        """Dollars of all GPUs over the life."""
        return self.gpu_hour_usd.times(self.gpus * self.hours)

    def network_usd(self, price_usd: Range, power_w: Range) -> Range:
        """Dollars of a network over the life, with its electricity."""
        return Range(
            low=price_usd.low + power_w.low * self.watt_usd.low,
            typical=price_usd.typical + power_w.typical * self.watt_usd.typical,
            high=price_usd.high + power_w.high * self.watt_usd.high,
        )

    def total_usd(self, price_usd: Range, power_w: Range) -> Range:
        """Dollars of the whole cluster over its life."""
        return self.servers_usd + self.network_usd(price_usd, power_w)

    def at_gpu_hour(self, price_usd: float) -> ClusterMoney:
        """The same cluster with another price of a GPU-hour."""
        given = Range(low=price_usd, typical=price_usd, high=price_usd)
        return replace(self, gpu_hour_usd=given, source="--gpu-hour", date="", verified=True, is_given=True)


def cluster_money(book: PriceBook, node: str, gpus: int, server_gpus: int) -> ClusterMoney | None:
    """Prices of a cluster by a price book; None where it knows only networks.

    Parameters
    ----------
    book : with a table ``cluster`` and a row for the server
    node : server of the catalogue
    gpus, server_gpus : of the cluster, and of a server
    """
    row, cluster = book.server(node), book.cluster
    if row is None or cluster is None:
        return None
    price_usd, power_w = book.price_usd(row, gpus=server_gpus), book.power_w(row, gpus=server_gpus)
    if price_usd is None:
        return None
    hours = cluster.life_years * HOURS_OF_YEAR
    watt_usd = cluster.electricity_usd_per_kwh.times(cluster.power_usage_effectiveness * hours / _WATTS_OF_KW)
    watts = power_w or Range(low=0, typical=0, high=0)
    whole = Range(
        low=price_usd.low + watts.low * watt_usd.low,
        typical=price_usd.typical + watts.typical * watt_usd.typical,
        high=price_usd.high + watts.high * watt_usd.high,
    )
    return ClusterMoney(
        gpus=gpus,
        hours=hours,
        gpu_hour_usd=whole.times(1 / (server_gpus * hours)),
        watt_usd=watt_usd,
        source=f"{row.source}; over {cluster.life_years:g} years",
        date=row.date,
        verified=row.verified and cluster.verified,
    )


@dataclass(frozen=True, kw_only=True, slots=True)
class PriceRegion:
    """Prices of a GPU-hour at which one fabric buys most work.

    Attributes
    ----------
    name : of the fabric
    from_usd, to_usd : of a GPU-hour; None: without a bound
    """

    name: str
    from_usd: float
    to_usd: float | None


def regions(fabrics: Mapping[str, tuple[float, float]], gpu_hours: float) -> list[PriceRegion]:
    """Which fabric buys most work at which price of a GPU-hour, from 0 on.

    At a price g a piece of work costs t (g G + n) / life, a line in g for each fabric; the lowest line is the choice.

    Parameters
    ----------
    fabrics : time of a piece of work, and dollars of the network over the life, by name
    gpu_hours : of all GPUs over the life

    Examples
    --------
    >>> [(one.name, one.from_usd, one.to_usd) for one in regions({"thin": (2.0, 10.0), "fat": (1.0, 40.0)}, 10.0)]
    [('thin', 0.0, 2.0), ('fat', 2.0, None)]
    """
    if not fabrics:
        return []
    lines = {name: (time * gpu_hours, time * network_usd) for name, (time, network_usd) in fabrics.items()}
    name = min(lines, key=lambda one: (lines[one][1], lines[one][0], one))
    found, at_usd = [], 0.0
    while True:
        slope, height = lines[name]
        crossings = [
            ((its_height - height) / (slope - its_slope), its_slope, other)
            for other, (its_slope, its_height) in lines.items()
            if its_slope < slope
        ]
        later = [one for one in crossings if one[0] >= at_usd]
        if not later:
            found.append(PriceRegion(name=name, from_usd=at_usd, to_usd=None))
            return found
        next_usd, _, other = min(later)
        if next_usd > at_usd:
            found.append(PriceRegion(name=name, from_usd=at_usd, to_usd=next_usd))
        name, at_usd = other, next_usd


def most_work(work: Mapping[str, float], cost: Mapping[str, float]) -> str:
    """The fabric with the most work for a dollar; of equal ones the cheapest.

    Parameters
    ----------
    work : pieces of work in a unit of time, by name
    cost : dollars of the cluster, by name
    """
    return max(work, key=lambda name: (work[name] / cost[name], -cost[name], name))


def choices_at(
    work: Mapping[str, float], money: ClusterMoney, networks_usd: Mapping[str, Range]
) -> Sequence[tuple[str, str]]:
    """The choice at low and at high prices of GPUs and of networks, with what is low or high.

    Returns
    -------
    words for the prices, and the name of the fabric, for each corner of the two ranges
    """
    found = []
    for gpu, network in (("low", "high"), ("high", "low"), ("low", "low"), ("high", "high")):
        servers_usd = getattr(money.servers_usd, gpu)
        cost = {name: servers_usd + getattr(one, network) for name, one in networks_usd.items()}
        found.append((f"{gpu} prices of GPUs and {network} ones of the network", most_work(work, cost)))
    return found
