"""BCube: servers with a port on each of several levels of switches, and no link between switches.

A server has L digits in base n, and so has BCube(n, L - 1) n^L servers. A switch of level i joins the n servers that
differ in digit i alone. Servers forward packets for each other: each hop corrects a digit, so any order of the digits
is a path, and L paths share no server.
Source: Guo et al., BCube, SIGCOMM 2009, doi:10.1145/1592568.1592577.
Leaves out: runs, because servers forward in no engine; a partial BCube's extra switches without a server.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from weftwork.base.caveat import Caveat
from weftwork.base.grammar import plural
from weftwork.spec.fabric import HOST, SWITCH, Fabric
from weftwork.spec.fabric_direct import TO_HOST, DirectNetwork
from weftwork.spec.plug_in import (
    MAX_HOSTS,
    DirectLimits,
    DirectSize,
    FabricSize,
    Findings,
    Ground,
    MeasuredNetwork,
    Parts,
    Record,
    Topology,
    Whole,
    row,
)
from weftwork.topology.assemble import assemble, links_between
from weftwork.topology.direct_fabric import resolved_shape, sound_shape

__all__ = ["TOPOLOGY"]

SOURCE: Final = "Guo et al., SIGCOMM 2009, doi:10.1145/1592568.1592577"


class Keys(Record):
    """The keys of a BCube."""

    levels: int | None = row(
        "levels",
        Whole(low=1, high=16, unit="levels"),
        absent="the NIC ports of a server",
        text="Levels of switches (l + 1 of BCube(n, l)); a server has a NIC port for each.",
        source=SOURCE,
    )
    hosts_per_switch: int | None = row(
        "hosts_per_switch",
        Whole(low=2, high=1_024, unit="servers"),
        absent="the fewest for the hosts; without hosts, the ports of the switch",
        text="Servers that a switch joins (n).",
        source=SOURCE,
    )


@dataclass(frozen=True, kw_only=True, slots=True)
class BcubeShape:
    """Counts of a full BCube."""

    per_switch: int
    levels: int

    @property
    def servers(self) -> int:
        return int(self.per_switch**self.levels)

    @property
    def places(self) -> int:
        """Places for NIC ports."""
        return self.servers * self.levels

    def switches(self, hosts: int) -> list[int]:
        """Switches of every level that join the first hosts."""
        counts = []
        for level in range(self.levels):
            wide, whole = self.per_switch**level, self.per_switch ** (level + 1)
            counts.append(hosts // whole * wide + min(hosts % whole, wide))
        return counts


def _shape(keys: Keys, ports: int, endpoints: int | None, found: Findings, blamed: str) -> BcubeShape | None:
    """Counts of the shape, given or derived.

    Parameters
    ----------
    keys : given, with the number of levels
    ports : of a switch; 0: any number
    endpoints : NIC ports of the hosts; None where nobody says
    found : notes counts that do not fit
    blamed : key that gives the number of ports
    """
    levels = keys.levels or 1
    per_switch = keys.hosts_per_switch
    if per_switch is None and endpoints is not None:
        per_switch = 2
        while per_switch**levels * levels < endpoints:
            per_switch += 1
        if ports and per_switch > ports:
            most = ports**levels
            text = f"found {plural(ports, 'port')}, which join at most {plural(most, 'server')}"
            text += f" on {plural(levels, 'level')}"
            found.wrong(blamed, f"{text}; {plural(endpoints // levels, 'server')} need {plural(per_switch, 'port')}")
            return None
    if per_switch is None:
        per_switch = ports
    if per_switch < 2:
        what = (
            f"found {plural(ports, 'port')}, wanted at least 2" if ports else "missing: give hosts_per_switch, hosts or"
        )
        found.wrong(blamed if ports else "hosts_per_switch", what if ports else f"{what} radix")
        return None
    if ports and per_switch > ports:
        found.wrong(blamed, f"found {plural(ports, 'port')}, but a switch joins {plural(per_switch, 'server')}")
        return None
    shape = BcubeShape(per_switch=per_switch, levels=levels)
    if shape.servers > MAX_HOSTS and endpoints is None:
        near = int(MAX_HOSTS ** (1 / levels))
        text = f"makes {plural(shape.servers, 'server')}, wanted at most {MAX_HOSTS:,}"
        found.wrong("hosts_per_switch", text, str(near) if near > 1 else None)
        return None
    return shape


def _resolve(keys: Keys, ground: Ground, found: Findings) -> tuple[Keys, int | None]:
    if not found.is_sound("radix", "hosts", "gpus") or ground.server is None:
        return keys, ground.hosts
    ports = ground.server.nic_ports
    if keys.levels is not None and keys.levels != ports:
        name = ground.server.name
        text = f"found {keys.levels}, but '{name}' has {plural(ports, 'NIC port')}, wanted one for each level:"
        found.wrong("levels", f"{text} node: {{model: {name}, nic_ports: {keys.levels}}}")
        return keys, ground.hosts
    return resolved_shape(
        _shape, keys.model_copy(update={"levels": ports}), ground, found, key="hosts_per_switch",
        is_given=keys.hosts_per_switch is not None,
        filled=lambda shape: {"hosts_per_switch": shape.per_switch},
    )  # fmt: skip


def _size(keys: Keys, parts: Parts) -> FabricSize:
    shape = sound_shape(_shape, keys, parts)
    hosts = parts.hosts or shape.servers
    switches = sum(shape.switches(hosts))
    return FabricSize(hosts=hosts, switches=switches, links=hosts * shape.levels, leaves=switches)


def digits(numbers: NDArray[np.int64], shape: BcubeShape) -> NDArray[np.int32]:
    """Digits of servers, shape (servers, levels), the highest first."""
    place = shape.per_switch ** np.arange(shape.levels - 1, -1, -1)
    return (numbers[:, None] // place % shape.per_switch).astype(np.int32)


def _told(shape: BcubeShape) -> dict[str, Caveat]:
    """What a reader of its measures should know."""
    if shape.levels == 1:
        return {}
    text = "paths, bisection and losses are counted over switches alone; servers of a BCube forward, but in no engine"
    return {"fabric.topology": Caveat(subject="fabric.topology", kind="approximate", text=text)}


def _build(keys: Keys, parts: Parts) -> Fabric:
    """NIC port i of a server leads to its switch of level i."""
    shape = sound_shape(_shape, keys, parts)
    n, hosts = shape.per_switch, parts.hosts or shape.servers
    counts = shape.switches(hosts)
    first = hosts + np.cumsum([0, *counts])
    host = np.arange(hosts)
    # a switch of level i is numbered by the digits of its servers without digit i: the higher ones, then the lower ones
    far = np.stack([first[i] + host // n ** (i + 1) * n**i + host % n**i for i in range(shape.levels)], axis=1)
    links = links_between(
        np.repeat(host, shape.levels), far.ravel(), rate_bps=parts.host_rate_bps, delay_ps=parts.host_delay_ps,
        loss=parts.loss, corruption=parts.corruption,
    )  # fmt: skip
    names = [f"host{number}" for number in range(hosts)]
    names += [f"level{level}.{number}" for level, count in enumerate(counts) for number in range(count)]
    direct = DirectNetwork(
        family="bcube",
        dimensions=(),
        link_dimension=np.full(len(links), TO_HOST, np.int8),
        link_wraps=np.zeros(len(links), np.bool_),
        axes=tuple(f"digit{level}" for level in range(shape.levels - 1, -1, -1)),
        sides=(n,) * shape.levels,
        coordinates=np.concatenate([digits(host, shape), np.full((sum(counts), shape.levels), -1, np.int32)]),
        hosts_forward=True,
    )
    return assemble(
        name=f"bcube, n = {n}, {plural(shape.levels, 'level')}",
        node_names=names,
        node_kind=np.repeat([HOST, SWITCH], [hosts, sum(counts)]),
        node_tier=np.repeat(np.arange(shape.levels + 1), [hosts, *counts]),
        links=links,
        switches=(parts.switch,),
        nics=(parts.nic,),
        servers=(parts.server,),
        caveats={**parts.caveats, **_told(shape)},
        direct=None if shape.levels == 1 else direct,  # a single switch is no direct network
        source="fabric",
    )


def _limits(found: MeasuredNetwork) -> DirectLimits:
    """A BCube: one NIC port of a server for each level."""
    levels, n = len(found.direct.sides), found.direct.sides[0]
    k = found.ports or n
    ends = f"The {plural(levels, 'NIC port')} of a server end this fabric, one for each level of switches"
    size = DirectSize(
        words=f"{plural(levels, 'level')} of switches that join {k:,} servers each",
        endpoints=levels * k**levels,
        switches=levels * k ** (levels - 1),
        switch_links=0,
        diameter_links=2 * (levels - 1),  # from server to server, each over one switch
    )
    far = f"Two servers are at most {plural(levels, 'hop')} apart, each over one switch and on to the next server. "
    far += f"In a full BCube, {plural(levels, 'path')} between them share no server and no switch."
    servers = plural(k ** (levels + 1), "server")
    more = f"With one NIC port more for each server, {k:,} ports of a switch join {servers}."
    return DirectLimits(family=found.direct.family, ports=found.ports, ends=ends, facts=(far, more), sizes=(size,))


TOPOLOGY: Final = Topology(
    keys=Keys,
    resolve=_resolve,
    build=_build,
    size=_size,
    limits=_limits,
    defaults={"node": {"model": "plain", "nic_ports": 2}},
    source=SOURCE,
)
