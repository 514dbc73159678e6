"""Count the items of a bill of materials.

These are devices by kind, links by rate and length, and the medium of each link. Equal links are grouped by NumPy, so
that a fabric of a million hosts takes seconds; only groups are looked at one by one. Leaves out: money
(`weftwork.topology.bill`).
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

from weftwork.base.errors import ConfigError, Mistake
from weftwork.base.grammar import plural
from weftwork.base.units import PROPAGATION_PS_PER_M, RATE, format_quantity
from weftwork.hardware.price_rows import Between, PriceBook, PriceRow
from weftwork.spec.fabric import HOST, SWITCH, Fabric
from weftwork.spec.fabric_extras import TIERS, Extra

__all__ = ["Cable", "CountedParts", "Device", "Media", "Module", "count", "media_of"]

_GBPS: Final = 10**9
_ANY_NUMBER: Final = 2**31  # chosen: ports of a switch that has as many as it has links; above any degree
_MOST_EXTRA_PORTS: Final = 1_000_000  # chosen: above any equipment that is no host; they are placed one by one
_WHERE: Final = {"switch": "switches", "host": "hosts", "appliance": "appliances"}
Ints = NDArray[np.int64]


@dataclass(frozen=True, kw_only=True, slots=True)
class Device:
    """Equal switches, hosts or appliances.

    Attributes
    ----------
    kind : what they are
    label : for people
    row : of the price book; None where it knows none
    count : how many
    ports : of each: all of a switch, or its links where its radix is open; the links of a host or appliance
    rate_bps : of its fastest link
    gpus : of a host
    """

    kind: Literal["switch", "host", "appliance"]
    label: str
    row: PriceRow | None
    count: int
    ports: int
    rate_bps: int
    gpus: int = 1


@dataclass(frozen=True, kw_only=True, slots=True)
class CountedParts:
    """The devices, and every link with both its ends.

    Attributes
    ----------
    devices : by index
    device : shape (nodes,), index of each node
    a, b : shape (links,), nodes, the lower device index first
    rate_bps, length_m : shape (links,)
    is_optical : shape (links,), whether the link goes through an optical switch
    """

    devices: tuple[Device, ...]
    device: Ints
    a: Ints
    b: Ints
    rate_bps: Ints
    length_m: Ints
    is_optical: NDArray[np.bool_]


@dataclass(frozen=True, kw_only=True, slots=True)
class Cable:
    """Equal cables; ``row`` is None if no medium of the book reaches."""

    label: str
    row: PriceRow | None
    count: int
    where: str
    rate_bps: int
    length_m: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Module:
    """Equal modules at switches, hosts or appliances."""

    row: PriceRow
    count: int
    where: str
    reach_m: float | None


@dataclass(frozen=True, kw_only=True, slots=True)
class Media:
    """Media of the links."""

    cables: tuple[Cable, ...]
    modules: tuple[Module, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class _End:
    """The modules at one end of a group of links."""

    row: PriceRow
    ports_per_module: int
    where: str
    reach_m: float | None


def count(fabric: Fabric, book: PriceBook, extras: Sequence[Extra]) -> CountedParts:
    """Count the devices of a fabric and find their rows in a price book.

    Raises
    ------
    ConfigError : an extra finds too few free ports
    """
    nodes = len(fabric.node_names)
    a, b = fabric.links["a"].astype(np.int64), fabric.links["b"].astype(np.int64)
    rate_bps = fabric.links["rate_bps"].astype(np.int64)
    length_m = -(-fabric.links["delay_ps"].astype(np.int64) // PROPAGATION_PS_PER_M)
    degree = np.bincount(np.concatenate([a, b]), minlength=nodes).astype(np.int64)
    kind = fabric.node_kind
    radix = np.array([switch.radix for switch in fabric.switches] or [0], np.int64)
    own_ports = np.where(kind == SWITCH, radix[np.where(kind == SWITCH, fabric.node_device, 0)], 0)

    at_host = (kind[a] == HOST) | (kind[b] == HOST)
    linked: list[tuple[int, int, int, int]] = []  # appliance, switch, rate, metres
    beside: list[Device] = []
    owners: list[int] = []
    for extra in extras:
        rate = extra.rate_bps or _commonest(rate_bps, at_host)
        metres = _commonest(length_m, at_host) if extra.length_m is None else int(np.ceil(extra.length_m))
        first = nodes + len(owners)
        switches = _free_ports(fabric, extra, degree, own_ports)
        linked += [(first + number // extra.ports, switch, rate, metres) for number, switch in enumerate(switches)]
        owners += [len(beside)] * extra.count
        row = book.appliance(extra.item)
        label = extra.item if row is None else row.name
        beside.append(
            Device(kind="appliance", label=label, row=row, count=extra.count, ports=extra.ports, rate_bps=rate)
        )
    if linked:
        more = np.array(linked, np.int64)
        a, b = np.concatenate([a, more[:, 0]]), np.concatenate([b, more[:, 1]])
        rate_bps, length_m = np.concatenate([rate_bps, more[:, 2]]), np.concatenate([length_m, more[:, 3]])

    devices, device = _devices(fabric, book, a, b, rate_bps, own_ports)
    device = np.concatenate([device, len(devices) + np.array(owners, np.int64)])
    swap = device[a] > device[b]
    return CountedParts(
        devices=(*devices, *beside),
        device=device,
        a=np.where(swap, b, a),
        b=np.where(swap, a, b),
        rate_bps=rate_bps,
        length_m=length_m,
        is_optical=np.concatenate([_optical_links(fabric), np.zeros(len(linked), np.bool_)]),
    )


def _optical_links(fabric: Fabric) -> NDArray[np.bool_]:
    """Whether each link goes through an optical switch."""
    if fabric.direct is None or fabric.direct.optical is None:
        return np.zeros(len(fabric.links), np.bool_)
    return fabric.direct.optical.link_switch >= 0


def _devices(
    fabric: Fabric, book: PriceBook, a: Ints, b: Ints, rate_bps: Ints, own_ports: Ints
) -> tuple[list[Device], Ints]:
    """The kinds of switches and hosts, and the kind of each node."""
    nodes = len(fabric.node_names)
    inside = np.concatenate([a[a < nodes], b[b < nodes]])  # nodes of the fabric, without appliances
    rates, rate_index = np.unique(rate_bps, return_inverse=True)
    fastest = np.zeros(nodes, np.int64)
    np.maximum.at(fastest, inside, np.concatenate([rate_index[a < nodes], rate_index[b < nodes]]))
    degree = np.bincount(inside, minlength=nodes)
    ports = np.where(own_ports > 0, own_ports, degree)
    server = np.zeros(nodes, np.int64) if fabric.node_server is None else np.maximum(fabric.node_server, 0)
    is_host = fabric.node_kind == HOST
    fields = (is_host, np.where(is_host, server, 0), fabric.node_device, fastest, ports)
    device = np.zeros(nodes, np.int64)
    for values in fields:  # one number for each different combination
        device = np.unique(device * (int(values.max(initial=0)) + 1) + values, return_inverse=True)[1].astype(np.int64)
    _, firsts, counts = np.unique(device, return_index=True, return_counts=True)
    found = []
    for node, number in zip(firsts.tolist(), counts.tolist(), strict=True):
        rate = int(rates[fastest[node]]) if len(rates) else 0
        index = int(fabric.node_device[node])
        if is_host[node]:
            model, owner = fabric.nics[index].name, fabric.server(node).name
            row = book.nic(model, owner, rate)
            label = row.name if row is not None else f"NIC '{model}' of '{owner}'"
        else:
            model = fabric.switches[index].name
            row = book.switch(model, rate)
            label = row.name if row is not None else f"switch '{model}' with {plural(int(ports[node]), 'port')}"
        found.append(
            Device(kind="host" if is_host[node] else "switch", label=label, row=row, count=number,
                   ports=int(ports[node]), rate_bps=rate, gpus=fabric.server(node).gpus if is_host[node] else 1)
        )  # fmt: skip
    return found, device


def _free_ports(fabric: Fabric, extra: Extra, degree: Ints, own_ports: Ints) -> list[int]:
    """Assign a switch to each port of an extra, and use up the port.

    It is always the switch with the most free ports.
    """
    tier = np.flatnonzero((fabric.node_kind == SWITCH) & (fabric.node_tier == TIERS[extra.where]))
    room = np.where(own_ports[tier] > 0, own_ports[tier], _ANY_NUMBER) - degree[tier]
    wanted = extra.count * extra.ports
    free_ports = min(int(room.clip(min=0).sum()), _MOST_EXTRA_PORTS)
    if free_ports < wanted:
        text = f"needs {plural(wanted, 'free port')} of the tier '{extra.where}', which has {free_ports:,}"
        raise ConfigError("fabric", [Mistake(path=f"fabric.extras.{extra.item}", text=text)])
    heap = [(-free, node) for free, node in zip(room.tolist(), tier.tolist(), strict=True)]
    heapq.heapify(heap)
    taken = []
    for _ in range(wanted):
        free, node = heap[0]
        heapq.heapreplace(heap, (free + 1, node))
        degree[node] += 1
        taken.append(node)
    return taken


def _commonest(values: Ints, where: NDArray[np.bool_]) -> int:
    """The commonest value of host links, or of all links without hosts."""
    found, numbers = np.unique(values[where] if where.any() else values, return_counts=True)
    return int(found[numbers.argmax()])


def media_of(counted: CountedParts, book: PriceBook) -> Media:
    """Choose a medium for every link and count cables and modules.

    A group of equal links takes the cheapest medium that carries its rate over its length: its own price and, where it
    needs modules, that of the share of a module at each end. A medium without a price is taken where no other reaches.
    """
    rates, rate_index = np.unique(counted.rate_bps, return_inverse=True)
    lengths, length_index = np.unique(counted.length_m, return_inverse=True)
    shape = (len(counted.devices), len(counted.devices), max(len(rates), 1), max(len(lengths), 1), 2)
    ends_of_link = (counted.device[counted.a], counted.device[counted.b])
    code = np.ravel_multi_index((*ends_of_link, rate_index, length_index, counted.is_optical.astype(np.int64)), shape)
    groups, group, numbers = np.unique(code, return_inverse=True, return_counts=True)
    cables: dict[tuple[str, str, int, int], Cable] = {}
    ends: dict[_End, int] = {}
    end_of = np.full((len(groups), 2), -1, np.int64)
    for index, (key, number) in enumerate(zip(groups.tolist(), numbers.tolist(), strict=True)):
        first, second, rate_at, length_at, is_optical = (int(part) for part in np.unravel_index(key, shape))
        pair = (counted.devices[first], counted.devices[second])
        rate, length = int(rates[rate_at]), int(lengths[length_at])
        kinds = [device.kind for device in pair]
        between: Between = "switches" if kinds == ["switch", "switch"] else "hosts"
        medium, modules = _cheapest(book, pair, rate, length, between, is_optical=bool(is_optical))
        where = " to ".join(sorted(kinds, key=list(_WHERE).index, reverse=True))
        if is_optical:  # a fibre to the optical switch, and one from it
            where, length = f"{kinds[0]} to optical switch", -(-length // 2)
        items = 2 * number if is_optical else number
        label = f"no medium of the book for {format_quantity(RATE, rate)}" if medium is None else medium.name
        cable = (label, where, rate, length)
        before = cables[cable].count if cable in cables else 0
        cables[cable] = Cable(label=label, row=medium, count=before + items, where=where, rate_bps=rate,
                              length_m=length)  # fmt: skip
        for side, module in enumerate(modules):
            end_of[index, side] = ends.setdefault(module, len(ends))
    return Media(cables=tuple(cables.values()), modules=_modules(counted, tuple(ends), end_of[group]))


def _cheapest(
    book: PriceBook, pair: tuple[Device, Device], rate_bps: int, length_m: int, between: Between, *, is_optical: bool
) -> tuple[PriceRow | None, tuple[_End, ...]]:
    """The cheapest medium at typical prices, and the modules at both ends.

    A link through an optical switch takes a medium with modules. None if no medium fits.
    """
    best: tuple[float, PriceRow, tuple[_End, ...]] | None = None
    for medium in book.media(rate_bps=rate_bps, length_m=length_m, between=between):
        ends = tuple(end for device in pair if (end := _end(book, medium, device, rate_bps)) is not None)
        if (medium.modules and len(ends) < len(pair)) or (is_optical and not medium.modules):
            continue
        fibres = 2 if is_optical else 1
        own = book.price_usd(medium, length_m=-(-length_m // fibres), gbps=rate_bps / _GBPS)
        parts = [book.price_usd(end.row, gbps=end.row.rates_bps[0] / _GBPS) for end in ends]
        price = np.inf
        if own is not None and None not in parts:
            shares = (part.typical / end.ports_per_module for part, end in zip(parts, ends, strict=True) if part)
            price = fibres * own.typical + sum(shares)
        if best is None or price < best[0]:
            best = (price, medium, ends)
    return (None, ()) if best is None else best[1:]


def _end(book: PriceBook, medium: PriceRow, device: Device, rate_bps: int) -> _End | None:
    """The module of a medium at a device.

    None if the medium takes no module, or the book has none for the device's cages.
    """
    if not medium.modules:
        return None
    own = device.row
    each = 1 if own is None else own.ports_per_module(rate_bps)
    cage_bps = rate_bps if own is None or own.cage_bps is None else own.cage_bps
    module = book.module(medium.name, cage_bps) if each else None
    if module is None:
        return None
    return _End(row=module, ports_per_module=each, where=_WHERE[device.kind], reach_m=medium.reach_m)


def _modules(counted: CountedParts, ends: tuple[_End, ...], end_of_link: Ints) -> tuple[Module, ...]:
    """Number of modules, by kind of end.

    Each device has as many as its ports fill; the last module may be filled in part.
    """
    if not ends:
        return ()
    kinds = len(ends)
    keys = [
        nodes[end_of_link[:, side] >= 0] * kinds + end_of_link[:, side][end_of_link[:, side] >= 0]
        for side, nodes in enumerate((counted.a, counted.b))
    ]
    found, ports = np.unique(np.concatenate(keys), return_counts=True)
    kind = found % kinds
    each = np.array([end.ports_per_module for end in ends], np.int64)
    number = np.zeros(kinds, np.int64)
    np.add.at(number, kind, -(-ports // each[kind]))
    return tuple(
        Module(row=end.row, count=int(total), where=end.where, reach_m=end.reach_m)
        for end, total in zip(ends, number.tolist(), strict=True)
    )
