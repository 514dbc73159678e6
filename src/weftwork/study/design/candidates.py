"""Enumerate the fabrics for a number of GPUs.

They are all combinations of topology, switch, ratios, planes and NIC rate. What varies of a topology, and how it
chooses its shape, stands in its record (`weftwork.spec.scenario.topology_growth.DesignSpace`).

A candidate is keys of ``fabric`` as a scenario has them. Combinations that say the same are left out here: planes of a
topology that has none, a ratio of a tier that a topology does not know.
Leaves out: whether a candidate can be built and what it costs (`weftwork.study.design.built`); fabrics that nobody has
a generator for; mixtures of switches.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import Any, Final

from weftwork.base.errors import ConfigError, Mistake
from weftwork.base.folder import is_path
from weftwork.base.grammar import plural
from weftwork.base.nearest import nearest
from weftwork.base.units import RATE, UnitError, format_quantity, parse_quantity
from weftwork.hardware import catalogue
from weftwork.hardware.price_rows import PriceBook
from weftwork.spec.scenario.choices import TOPOLOGIES
from weftwork.spec.scenario.topology_growth import DesignSpace, ServersAndSwitch
from weftwork.topology.oversubscription import ratio_of, ratio_text

__all__ = [
    "DIMENSIONS", "Choices", "FabricCandidate", "candidates", "choices_of", "nic_for", "searched_topologies",
    "topology_word", "unsearched",
]  # fmt: skip

RATIOS: Final = (1.0, 2.0, 4.0)  # chosen: of a tier; Meta's 7:1 and HPN's 15:1 come with --only
PLANES: Final = (1, 2, 4)  # chosen: a port of 800G splits into at most four of 200G
DIMENSIONS: Final = ("topology", "switch", "link_rate", "planes", "oversubscription", "upper")


@dataclass(frozen=True, kw_only=True, slots=True)
class Choices:
    """The values that each dimension may have.

    Attributes
    ----------
    topologies, switches : names of the catalogues
    rates_bps : of all NIC ports of a GPU together
    planes : that these are split into
    ratios, upper_ratios : of the leaves, and of the tier above them
    """

    topologies: tuple[str, ...]
    switches: tuple[str, ...]
    rates_bps: tuple[int, ...]
    planes: tuple[int, ...]
    ratios: tuple[float, ...]
    upper_ratios: tuple[float, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class FabricCandidate:
    """One fabric.

    Attributes
    ----------
    number : in the order of the search
    fabric : keys of the section, as a scenario has them
    rate_bps : of all NIC ports of a GPU together
    """

    number: int
    fabric: Mapping[str, Any] = field(hash=False)
    rate_bps: int

    @property
    def name(self) -> str:
        """The name by which a user asks for the candidate, such as ``f017``."""
        return f"f{self.number:03d}"

    @property
    def is_custom(self) -> bool:
        """Whether the servers are not sold with its NIC."""
        node = self.fabric["node"]
        return catalogue.is_custom_nic(str(node["model"] if isinstance(node, Mapping) else node), self.fabric["nic"])

    @property
    def words(self) -> str:
        """The candidate in a few words."""
        fabric = self.fabric
        parts = [topology_word(str(fabric["topology"])), str(fabric["switch"]), format_quantity(RATE, self.rate_bps)]
        if "tiers" in fabric:
            parts.append(plural(fabric["tiers"], "tier"))
        if "routing" in fabric:
            parts.append(f"{fabric['routing']} routing")
        if "planes" in fabric:
            parts.append(plural(fabric["planes"], "plane"))
        ratios = fabric.get("oversubscription")
        if isinstance(ratios, Mapping):
            parts.append(" and ".join(f"{ratio_text(ratio)} at the {tier}" for tier, ratio in ratios.items()))
        if self.is_custom:
            parts.append(f"custom {fabric['nic']}")
        return ", ".join(parts)


def searched_topologies() -> tuple[str, ...]:
    """Names of the topologies of the catalogue that a design searches, in the order of the search."""
    orders = {name: offer.design.order for name, offer in TOPOLOGIES.items() if offer.design is not None}
    return tuple(sorted(orders, key=lambda name: (orders[name], name)))


def topology_word(topology: str) -> str:
    """A name of the catalogue as it is; of a file of the user's own its own name."""
    return Path(topology).name if is_path(topology) else topology


def unsearched(topology: str) -> str | None:
    """Why a topology of a user's own takes no part in a design, and how it would; None if it does.

    Parameters
    ----------
    topology : path of the file

    Raises
    ------
    CodeError : the file is wrong; with file and line
    """
    if TOPOLOGIES.load(topology).design is not None:
        return None
    name = topology_word(topology)
    return f"'{name}' does not say what a design may vary of it; give its Topology(...) design=DesignSpace(...)"


def choices_of(
    node: str, book: PriceBook, only: Mapping[str, Sequence[str]], own_topologies: Sequence[str] = ()
) -> Choices:
    """The choices for a server, with the user's restrictions.

    Parameters
    ----------
    node : server of the catalogue
    book : prices; switches and NICs that it lacks are left out
    only : texts by a name of `DIMENSIONS`
    own_topologies : files of the user's own that take part where ``only`` names no topologies

    Raises
    ------
    ConfigError : a dimension or a value that is not known, with the nearest
    CodeError : a topology of the user's own is wrong; with file and line
    """
    mistakes: list[Mistake] = []
    searched = searched_topologies()
    known = {"topology": searched, "switch": tuple(catalogue.SWITCHES)}
    for key, values in only.items():
        if key not in DIMENSIONS:
            text = f"found '{key}', wanted one of {', '.join(DIMENSIONS)}"
            mistakes.append(Mistake(path="--only", text=text, fix=nearest(key, DIMENSIONS)))
        mistakes += [
            Mistake(path=f"--only {key}", text=f"found '{value}', wanted one of {', '.join(known[key])}",
                    fix=nearest(value, known[key]))
            for value in values
            if key in known and value not in known[key] and not (key == "topology" and is_path(value))
        ]  # fmt: skip
    own = [value for value in only.get("topology", ()) if is_path(value)]
    mistakes += [Mistake(path="--only topology", text=why) for file in own if (why := unsearched(file)) is not None]
    numbers = {key: _numbers(key, only.get(key, ()), mistakes) for key in ("planes", "oversubscription", "upper")}
    rates = tuple(_rate(value, mistakes) for value in only.get("link_rate", ()))
    if mistakes:
        raise ConfigError("command line", mistakes)
    model = catalogue.node(node)
    own_bps = model.nic_port_rate_bps * max(1, model.server.nic_ports // model.server.gpus)
    return Choices(
        topologies=tuple(only.get("topology", (*searched, *own_topologies))),
        switches=tuple(only.get("switch") or _priced(book, own_bps)),
        rates_bps=rates or tuple(rate for rate in (own_bps // 2, own_bps, 2 * own_bps) if nic_for(node, rate, book)),
        planes=tuple(int(one) for one in numbers["planes"]) or PLANES,
        ratios=tuple(numbers["oversubscription"]) or RATIOS,
        upper_ratios=tuple(numbers["upper"]) or RATIOS,
    )


def _numbers(key: str, texts: Sequence[str], mistakes: list[Mistake]) -> list[float]:
    """Numbers, or ratios such as ``2:1``."""
    found = []
    for text in texts:
        value = ratio_of(text)
        if not 0 < value < 1e6 or (key == "planes" and value != int(value)):
            wanted = "a whole number above 0" if key == "planes" else "a ratio such as 2:1"
            mistakes.append(Mistake(path=f"--only {key}", text=f"found '{text}', wanted {wanted}"))
        found.append(value)
    return found


def _rate(text: str, mistakes: list[Mistake]) -> int:
    try:
        return int(parse_quantity(RATE, text))
    except UnitError as wrong:
        mistakes.append(Mistake(path="--only link_rate", text=wrong.text, fix=wrong.fix))
        return 1


def _priced(book: PriceBook, rate_bps: int) -> list[str]:
    """Switches of products with a price in the book."""
    return [name for name in catalogue.SWITCHES if name != "plain" and book.switch(name, rate_bps) is not None]


def nic_for(node: str, rate_bps: int, book: PriceBook) -> str | None:
    """The NIC of a server at a rate.

    It is the server's own NIC, else the slowest priced NIC that is fast enough; None without one.
    """
    own = catalogue.node(node).nic
    rates = catalogue.nic_rates_bps()
    if own not in rates or rates[own] >= rate_bps:
        return own
    fast = sorted(
        (rate, name) for name, rate in rates.items() if rate >= rate_bps and book.nic(name, node, rate_bps) is not None
    )
    return fast[0][1] if fast else None


def candidates(
    node: str, gpus: int, choices: Choices, book: PriceBook, common: Mapping[str, Any], fields: Mapping[str, Any]
) -> Iterator[FabricCandidate]:
    """Every candidate, in the order of topologies.

    Parameters
    ----------
    node : server of the catalogue
    gpus : of all servers together
    choices : what may be chosen
    book : prices, for the NICs
    common : keys of ``fabric`` that all of them have
    fields : of the server that differ from the catalogue
    """
    number = 0
    spaces = {topology: TOPOLOGIES.load(topology).design or DesignSpace() for topology in choices.topologies}
    for topology, switch, rate_bps, planes in product(
        choices.topologies, choices.switches, choices.rates_bps, choices.planes
    ):
        space = spaces[topology]
        nic = nic_for(node, rate_bps, book) if space.has_planes(planes) else None
        if nic is None:
            continue
        with TOPOLOGIES.blaming(topology):
            shape = _shape(space, node, gpus, planes, switch, rate_bps)
        if shape is None:
            continue
        for ratios in _ratios(space, choices):
            fabric = {
                **space.usual,
                **common,
                "topology": topology,
                "gpus": gpus,
                **_servers(node, fields, planes, rate_bps),
                "nic": nic,
                "switch": switch,
                **({"planes": planes} if planes > 1 and space.takes_planes else {}),
                **({"oversubscription": ratios} if ratios else {}),
                **shape,
            }
            yield FabricCandidate(number=number, fabric=fabric, rate_bps=rate_bps)
            number += 1


def _shape(
    space: DesignSpace, node: str, gpus: int, planes: int, switch: str, rate_bps: int
) -> Mapping[str, Any] | None:
    """Keys of the shape that a topology chooses; None where it has none for these servers and this switch."""
    if space.shape is None:
        return {}
    server = catalogue.node(node).server
    ports = max(1, server.nic_ports // server.gpus, planes)
    return space.shape(
        ServersAndSwitch(
            servers=-(-gpus // server.gpus),
            ports=ports * server.gpus,
            radix=_radix(switch, rate_bps // ports),
            gpu_rate_bps=rate_bps,
        )
    )


def _radix(switch: str, port_bps: int) -> int | None:
    """Ports of a switch at a rate; None where none is so fast."""
    if port_bps > int(catalogue.SWITCHES[switch].value("port_rate_bps")):
        return None
    return catalogue.ports_at(switch, port_bps)


def _servers(node: str, fields: Mapping[str, Any], planes: int, rate_bps: int) -> dict[str, Any]:
    """Servers with their ports split into planes."""
    server = catalogue.node(node).server
    each = max(1, server.nic_ports // server.gpus)
    ports = max(each, planes)
    own = {**fields, **({} if ports == each else {"nic_ports": server.gpus * ports})}
    return {"node": {"model": node, **own} if own else node, "link_rate": format_quantity(RATE, rate_bps // ports)}


def _ratios(space: DesignSpace, choices: Choices) -> Iterator[dict[str, float]]:
    """Oversubscription by tier.

    Empty if a topology has none or nothing is oversubscribed.
    """
    lowest, second = (*space.ratio_tiers, None, None)[:2]
    for low, high in product(choices.ratios if lowest else (1.0,), choices.upper_ratios if second else (1.0,)):
        found = {lowest or "": low, second or "": high}
        yield {tier: ratio for tier, ratio in found.items() if tier and ratio != 1}
