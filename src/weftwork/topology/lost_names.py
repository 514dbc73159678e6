"""Names that ``--without`` takes.

They name nodes, links and NIC ports, and sets that are lost together.

| name | what is lost |
|---|---|
| ``leaf3``, ``host7`` | a node with all of its links |
| ``leaf3-spine1``, ``leaf3-spine1.2`` | a link |
| ``leaf3-spine1.all`` | a bundle: all parallel links of a pair |
| ``leaf3/up`` | all links of a switch to higher tiers |
| ``host3/nic2`` | a NIC port, counted from 0 |
| ``network2`` | all switches of one of the networks that no link joins, numbered by their first links |
| ``plane1`` | all networks that the second port of each GPU leads to, where its ports lead to separate ones |
| ``cube7`` | a cube of a TPU pod: its chips and their hosts |
| ``ocs12`` | an optical switch with all of its circuits |
| ``random:2%@17`` | what a seed draws (`weftwork.topology.random_loss`) |

A node or link of the fabric that has such a name itself is meant first. No name needs quotes in a shell.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Sequence

import numpy as np
from numpy.typing import NDArray

from weftwork.base.errors import ConfigError
from weftwork.base.findings import Findings
from weftwork.base.grammar import number_ranges, plural
from weftwork.base.nearest import nearest, turned_round
from weftwork.spec.fabric import HOST, SWITCH, Fabric
from weftwork.spec.fabric_direct import OpticalSwitches
from weftwork.spec.rails import ports_of_gpu
from weftwork.spec.scenario.choices import TOPOLOGIES
from weftwork.topology.random_loss import PREFIX, draw_lost, random_part
from weftwork.topology.reach import networks_of_links

__all__ = ["cubes_in", "find_lost", "planes_of"]

MOST_COMPARED = 50_000  # chosen: names among which the nearest is looked for; difflib takes seconds for them
_NIC = re.compile(r"(?P<host>.+)/nic(?P<port>[0-9]{1,6})")
_GROUP = re.compile(r"(?P<word>plane|network)(?P<number>[0-9]{1,6})")
_ALL = ".all"
_UP = "/up"
_WORDS = ("network", "plane")
_CUBE = re.compile(r"cube(?P<number>[0-9]{1,6})")
_OPTICAL = re.compile(r"ocs[0-9]{1,6}")


def find_lost(fabric: Fabric, names: Sequence[str]) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Find the nodes and links of the names.

    Returns
    -------
    lost nodes, shape (nodes,), and lost links with all of the lost nodes, shape (links,)

    Raises
    ------
    ConfigError : names that the fabric does not have, each with the nearest
    """
    lost = _LostNames(fabric)
    findings = Findings(source="--without", section="--without")
    for name in names:
        try:
            lost.add(name, findings)
        except ConfigError as wrong:  # a random loss that is written in another way
            findings.include(wrong.mistakes)
    findings.refuse()
    lost.links |= lost.nodes[fabric.links["a"]] | lost.nodes[fabric.links["b"]]
    return lost.nodes, lost.links


def cubes_in(fabric: Fabric) -> list[int]:
    """Numbers of the cubes in the slice of a TPU pod, ascending; none in another fabric."""
    direct = fabric.direct
    if direct is None or fabric.node_pod is None or direct.family not in TOPOLOGIES:
        return []
    if TOPOLOGIES[direct.family].cubes is None:
        return []
    found: list[int] = np.unique(fabric.node_pod[fabric.node_pod >= 0]).tolist()
    return found


def planes_of(fabric: Fabric) -> list[list[int]]:
    """Networks by plane.

    The first ports of all GPUs lead to the first plane, the second ports to the second, and so on.

    Returns
    -------
    numbers of networks as of `weftwork.topology.reach.networks_of_links`; one plane where two ports of GPUs lead to
    the same network
    """
    return _planes(fabric, networks_of_links(fabric, np.ones(len(fabric.links), np.bool_)))


def _planes(fabric: Fabric, network: NDArray[np.int64]) -> list[list[int]]:
    """Networks by plane, from the network of every link."""
    ports, base = fabric.ports, fabric.ports.base.tolist()
    planes: list[set[int]] = []
    for host in fabric.hosts.tolist():
        own = network[ports.link[base[host] : base[host + 1]]].tolist()
        gpus = fabric.server(host).gpus
        for gpu in range(gpus) if own else ():
            for place, port in enumerate(ports_of_gpu(len(own), gpus, gpu)):
                if place == len(planes):
                    planes.append(set())
                planes[place].add(own[port])
    merged: list[set[int]] = []
    for plane in planes:  # ports of more than one place may share a plane
        meets = [other for other in merged if other & plane]
        merged = [other for other in merged if not other & plane] + [plane.union(*meets)]
    return sorted(sorted(plane) for plane in merged)


class _LostNames:
    """Nodes and links that are lost by the names so far."""

    def __init__(self, fabric: Fabric) -> None:
        self.fabric = fabric
        self.nodes = np.zeros(len(fabric.node_names), np.bool_)
        self.links = np.zeros(len(fabric.links), np.bool_)

    def add(self, name: str, findings: Findings) -> None:
        """Add the loss of a name, or note the mistake."""
        fabric = self.fabric
        if (node := _found(fabric.node, name)) is not None:
            self.nodes[node] = True
        elif (link := _found(fabric.link, name)) is not None:
            self.links[link] = True
        elif name.startswith(PREFIX):
            self._at_random(name, findings)
        elif name.endswith(_ALL) and (link := _found(fabric.link, name.removesuffix(_ALL))) is not None:
            self.links |= self._parallel(link)
        elif name.endswith(_UP) and (node := _found(fabric.node, name.removesuffix(_UP))) is not None:
            self._uplinks(node, findings)
        elif (match := _NIC.fullmatch(name)) and (host := _found(fabric.node, match["host"])) is not None:
            self._nic_port(host, int(match["port"]), findings)
        elif match := _GROUP.fullmatch(name):
            self._networks(match["word"], int(match["number"]), findings)
        elif (match := _CUBE.fullmatch(name)) and (cubes := cubes_in(fabric)):
            self._cube(int(match["number"]), cubes, findings)
        elif _OPTICAL.fullmatch(name) and fabric.direct is not None and fabric.direct.optical is not None:
            self._optical(name, fabric.direct.optical, findings)
        else:
            findings.wrong("", *_unknown(fabric, name))

    def _cube(self, number: int, cubes: Sequence[int], findings: Findings) -> None:
        pods = self.fabric.node_pod
        if number not in cubes or pods is None:
            near = min(cubes, key=lambda cube: abs(cube - number))
            some = number_ranges([*cubes], " to ")
            text = f"found 'cube{number}', which is not in the slice, wanted a cube of it: {some}"
            findings.wrong("", text, f"cube{near}")
            return
        self.nodes |= pods == number

    def _optical(self, name: str, optical: OpticalSwitches, findings: Findings) -> None:
        if name not in optical.names:
            text = f"found '{name}', wanted {optical.names[0]} to {optical.names[-1]}"
            findings.wrong("", text, optical.names[-1])
            return
        self.links |= optical.link_switch == optical.names.index(name)

    def _at_random(self, name: str, findings: Findings) -> None:
        part = random_part(name)
        if part is None or part.seed is None:
            text = f"found '{name}', another loss for each seed; wanted it alone, or {name}@17 for one seed"
            findings.wrong("", text)
            return
        nodes, links = draw_lost(self.fabric, part, part.seed)
        self.nodes |= nodes
        self.links |= links

    def _parallel(self, link: int) -> NDArray[np.bool_]:
        """All links that are parallel to a link."""
        a, b = self.fabric.links["a"], self.fabric.links["b"]
        one, other = a[link], b[link]
        found: NDArray[np.bool_] = ((a == one) & (b == other)) | ((a == other) & (b == one))
        return found

    def _uplinks(self, node: int, findings: Findings) -> None:
        fabric = self.fabric
        a, b, tier, name = fabric.links["a"], fabric.links["b"], fabric.node_tier, fabric.node_names[node]
        up = ((a == node) & (tier[b] > tier[node])) | ((b == node) & (tier[a] > tier[node]))
        if fabric.node_kind[node] == HOST:
            text = f"found '{name}{_UP}', but '{name}' is a host, wanted a switch"
            findings.wrong("", text, name)
            return
        if not up.any():
            findings.wrong("", f"found '{name}{_UP}', but nothing is above '{name}'", name)
            return
        self.links |= up

    def _nic_port(self, node: int, port: int, findings: Findings) -> None:
        fabric, ports = self.fabric, self.fabric.ports
        name = fabric.node_names[node]
        if fabric.node_kind[node] != HOST:
            text = f"found '{name}/nic{port}', but '{name}' is a switch, wanted a host"
            findings.wrong("", text)
            return
        first, last = int(ports.base[node]), int(ports.base[node + 1])
        if port >= last - first:
            text = f"found '{name}/nic{port}', wanted nic0 to nic{last - first - 1}"
            findings.wrong("", text, f"{name}/nic{last - first - 1}")
            return
        self.links[ports.link[first + port]] = True

    def _networks(self, word: str, number: int, findings: Findings) -> None:
        """Lose the switches of a network or plane."""
        fabric = self.fabric
        network = networks_of_links(fabric, np.ones(len(fabric.links), np.bool_))
        count = int(network.max(initial=-1)) + 1
        groups = _planes(fabric, network) if word == "plane" else [[one] for one in range(count)]
        if len(groups) < 2:
            text = f"found '{word}{number}', but the fabric is one {word}"
            if count > 1:
                text += f" of {plural(count, 'network')}, wanted network0 to network{count - 1}"
            findings.wrong("", text)
            return
        if number >= len(groups):
            text = f"found '{word}{number}', wanted {word}0 to {word}{len(groups) - 1}"
            findings.wrong("", text, f"{word}{len(groups) - 1}")
            return
        mine = np.isin(network, groups[number])
        ends = np.unique(np.concatenate([fabric.links["a"][mine], fabric.links["b"][mine]]))
        self.nodes[ends[fabric.node_kind[ends] == SWITCH]] = True
        self.links |= mine


def _unknown(fabric: Fabric, name: str) -> tuple[str, str | None]:
    """Words of a name that the fabric does not have, and the nearest."""
    some = [fabric.node_names[index] for index in np.flatnonzero(fabric.node_kind == SWITCH)[:1].tolist()]
    wanted = ", ".join([*some, *fabric.link_names[:1], f"{fabric.node_names[fabric.hosts[0]]}/nic0"])
    text = f"found '{name}', which the fabric does not have, wanted a node, a link or a NIC port such as {wanted}"
    node, slash, _ = name.rpartition("/")
    if slash and (own := _found(fabric.node, node)) is not None:
        is_host = fabric.node_kind[own] == HOST
        return text, f"{node}/nic0" if is_host else f"{node}{_UP}"
    ending = next((one for one in (_ALL, _UP) if name.endswith(one)), "")
    plain = name.removesuffix(ending)
    fix = turned_round(plain, _Links(fabric))
    if fix is None and len(fabric.links) <= MOST_COMPARED:
        fix = nearest(plain, fabric.node_names) if ending != _ALL else None
        fix = fix or (nearest(plain, fabric.link_names) if ending != _UP else None)
    if fix is None and not ending:
        fix = nearest(name.rstrip("0123456789"), _WORDS)
        fix = None if fix is None else f"{fix}0"
    return text, None if fix is None else f"{fix}{ending}"


def _found(find: Callable[[str], int], name: str) -> int | None:
    try:
        return find(name)
    except KeyError:
        return None


class _Links(Container[str]):
    """Set of link names, without a list of all of them.

    It says whether a fabric has a link.
    """

    def __init__(self, fabric: Fabric) -> None:
        self._fabric = fabric

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and _found(self._fabric.link, name) is not None
