"""Ports of a flat network: every switch has as many hosts, and as many links to other switches, as any other.

The bound of uniform traffic is that of all links: n switches with r links each carry n r in all, and each host loads as
many links as its packets cross on average. No graph of n switches with r links has a lower mean distance than
`least_mean_distance`, so no such network carries more.
Source: Singla, Hong, Popa and Godfrey, Jellyfish, NSDI 2012; Singla, Godfrey and Kolla, NSDI 2014 (bound).
Leaves out: which switches are linked (`weftwork.topology.random_graphs`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Final

from weftwork.base.caveat import Caveat
from weftwork.base.grammar import plural
from weftwork.spec.plug_in import Whole, row
from weftwork.topology.random_graphs import least_mean_distance

if TYPE_CHECKING:
    from weftwork.spec.plug_in import Findings

__all__ = [
    "FEWEST_LINKS", "MOST_SWITCHES", "FlatPorts", "hosts_per_switch_row", "network_ports_row", "seed_row",
    "split_ports",
]  # fmt: skip

FEWEST_LINKS: Final = 3  # chosen: with 2 links for each switch, a random network is a set of rings
MOST_SWITCHES: Final = 65_536  # chosen: far more than the few thousand that the papers try


def network_ports_row(source: str) -> Any:  # noqa: ANN401 - as `row`
    """Row of the ports to other switches."""
    return row(
        "network_ports",
        Whole(low=FEWEST_LINKS, high=512, unit="ports"),
        absent="the ports of the switch without those to hosts",
        text="Ports of a switch that lead to other switches (r).",
        source=source,
    )


def hosts_per_switch_row(source: str) -> Any:  # noqa: ANN401 - as `row`
    """Row of the ports to hosts."""
    return row(
        "hosts_per_switch",
        Whole(low=1, high=4_096, unit="ports"),
        absent="as many as let uniform traffic run at full rate, by the bound of the mean distance",
        text="Ports of a switch that lead to hosts; a server with four NIC ports takes four of them.",
        source=source,
    )


def seed_row() -> Any:  # noqa: ANN401 - as `row`
    """Row of the seed."""
    return row(
        "seed",
        Whole(low=0, high=2**32 - 1),
        default=1,
        text="Seed of the random links between switches; another seed makes another network.",
        source="chosen: as engine.seed",
    )


@dataclass(frozen=True, kw_only=True, slots=True)
class FlatPorts:
    """Counts of a flat network.

    Attributes
    ----------
    switches : how many
    network_ports : of a switch, to other switches
    hosts_per_switch : places for NIC ports on each switch
    """

    switches: int
    network_ports: int
    hosts_per_switch: int

    @property
    def places(self) -> int:
        """Places for NIC ports in all."""
        return self.switches * self.hosts_per_switch

    @property
    def links(self) -> int:
        """Links between switches."""
        return self.switches * self.network_ports // 2

    @property
    def most_throughput(self) -> Fraction:
        """Bound of the throughput of uniform traffic, as a share of the rate of a host; above 1: at full rate.

        Examples
        --------
        >>> round(float(FlatPorts(switches=50, network_ports=7, hosts_per_switch=4).most_throughput), 3)
        0.962
        """
        load = self.hosts_per_switch * least_mean_distance(self.switches, self.network_ports)
        return Fraction(self.network_ports * self.switches, self.switches - 1) / load

    def caveats(self) -> dict[str, Caveat]:
        """Report that uniform traffic does not run at full rate, if so."""
        if self.most_throughput >= 1:
            return {}
        text = (
            f"{plural(self.hosts_per_switch, 'host')} and {plural(self.network_ports, 'link')} for each of "
            f"{plural(self.switches, 'switch', 'switches')}: uniform traffic runs at {float(self.most_throughput):.1%} "
            "of the rate of a host at most, by the bound of the mean distance"
        )
        return {"fabric.hosts_per_switch": Caveat(subject="fabric.hosts_per_switch", kind="note", text=text)}

    def judge_ports(self, ports: int, found: Findings, blamed: str) -> None:
        """Note a switch with too few ports.

        Parameters
        ----------
        ports : of the switch; 0: any number
        found, blamed : takes the mistake, at the key that gives the number of ports
        """
        needed = self.hosts_per_switch + self.network_ports
        if ports and needed > ports:
            text = (
                f"found {plural(ports, 'port')}, but a switch needs {needed:,}: {self.hosts_per_switch:,} to hosts and "
            )
            found.wrong(blamed, text + f"{self.network_ports:,} to other switches")


def split_ports(
    found: Findings,
    *,
    network_ports: int | None,
    hosts_per_switch: int | None,
    ports: int,
    blamed: str,
    switches_for: Callable[[int, int], int],
) -> FlatPorts | None:
    """Split the ports of a switch between hosts and other switches.

    The most hosts that leave uniform traffic at full rate are chosen where the keys do not say.

    Parameters
    ----------
    found : notes what is missing
    network_ports, hosts_per_switch : as given; None: derived
    ports : of a switch; 0: any number
    blamed : key that gives the number of ports
    switches_for : number of switches, from the ports to other switches and to hosts

    Returns
    -------
    None where a mistake was noted
    """
    pairs: Iterable[tuple[int, int]]
    if network_ports is not None:
        free = ports - network_ports if ports else network_ports
        wanted = range(max(1, free), 0, -1) if hosts_per_switch is None else [hosts_per_switch]
        pairs = [(network_ports, places) for places in wanted]
    elif not ports:
        found.wrong("network_ports", "missing: give network_ports, or radix")
        return None
    else:
        wanted = range(ports - FEWEST_LINKS, 0, -1) if hosts_per_switch is None else [hosts_per_switch]
        pairs = [(ports - places, places) for places in wanted]
        if not pairs or pairs[-1][0] < FEWEST_LINKS:
            needed = FEWEST_LINKS + (hosts_per_switch or 1)
            text = f"found {plural(ports, 'port')}, wanted at least {needed:,}: {plural(hosts_per_switch or 1, 'host')}"
            found.wrong(blamed, f"{text} and {FEWEST_LINKS} links to other switches")
            return None
    for degree, places in pairs:
        shape = FlatPorts(switches=switches_for(degree, places), network_ports=degree, hosts_per_switch=places)
        if shape.most_throughput >= 1:
            break
    shape.judge_ports(ports, found, blamed)
    return shape
