"""Build a checked `Fabric` from arrays.

Links get default names, and everything that a fabric must obey is checked. The builders, the reader of files and Python
users all end here, so that one set of rules decides what a fabric is.
Leaves out: whether a job fits (that is the placement's question) and whether a product exists that has these ports.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from weftwork.base.caveat import Caveat
from weftwork.base.clock import NS_PS
from weftwork.base.errors import ConfigError, Mistake
from weftwork.base.findings import Findings
from weftwork.base.grammar import plural
from weftwork.base.random import Stream, draws
from weftwork.spec.device import Nic, Server, Switch
from weftwork.spec.fabric import HOST, LINK_DTYPE, SWITCH, Fabric
from weftwork.spec.fabric_direct import DirectNetwork
from weftwork.spec.fabric_extras import Extra
from weftwork.spec.fabric_names import LinkNames, NodeNames
from weftwork.spec.scenario.devices import device_mistakes
from weftwork.topology.connected import connected_parts

__all__ = ["MIN_DELAY_PS", "assemble", "check", "default_link_names", "links_between"]

# chosen: the packet engine needs a lookahead above zero, and 1 ns is 0.2 m of fibre, shorter than any real cable
MIN_DELAY_PS = NS_PS
LONGEST_NAME = 200  # chosen: names are for people, and for files in which control characters do harm
SHOWN = 5  # chosen: examples of one kind of mistake; a fabric of a million links may repeat it a million times


def links_between(
    a: ArrayLike,
    b: ArrayLike,
    *,
    rate_bps: ArrayLike,
    delay_ps: ArrayLike,
    loss: ArrayLike = 0.0,
    corruption: ArrayLike = 0.0,
) -> NDArray[np.void]:
    """Links between nodes ``a`` (lower tier) and ``b`` (upper tier).

    Parameters
    ----------
    a, b : shape (links,), node indices
    rate_bps, delay_ps, loss, corruption : one value, or shape (links,)

    Returns
    -------
    shape (links,), dtype `LINK_DTYPE`
    """
    links = np.empty(len(np.atleast_1d(np.asarray(a))), LINK_DTYPE)
    links["a"], links["b"] = a, b
    links["rate_bps"], links["delay_ps"] = rate_bps, delay_ps
    links["loss"], links["corruption"] = loss, corruption
    return links


def default_link_names(
    node_names: Sequence[str], node_tier: NDArray[np.int8], links: NDArray[np.void]
) -> Sequence[str]:
    """Names such as ``leaf3-spine1``, with the lower tier first.

    Parallel links are numbered ``.2``, ``.3`` in order.

    Parameters
    ----------
    node_names : of all nodes
    node_tier : shape (nodes,)
    links : shape (links,), dtype `LINK_DTYPE`
    """
    if isinstance(node_names, NodeNames):
        return LinkNames(node_names, node_tier, links["a"], links["b"])
    a, b = links["a"].astype(np.int64), links["b"].astype(np.int64)
    swap = node_tier[a] > node_tier[b]
    a, b = np.where(swap, b, a), np.where(swap, a, b)
    names = [f"{node_names[low]}-{node_names[high]}" for low, high in zip(a.tolist(), b.tolist(), strict=True)]
    pair = np.minimum(a, b) * len(node_names) + np.maximum(a, b)
    if len(np.unique(pair)) < len(pair):
        seen: Counter[int] = Counter()
        first: dict[int, str] = {}
        for index, key in enumerate(pair.tolist()):
            seen[key] += 1
            base = first.setdefault(key, names[index])
            if seen[key] > 1:
                names[index] = f"{base}.{seen[key]}"
    return tuple(names)


def assemble(  # noqa: PLR0913 - the parts of a fabric, all by name
    *,
    name: str,
    node_names: Sequence[str],
    node_kind: ArrayLike,
    node_tier: ArrayLike,
    links: NDArray[np.void],
    switches: Sequence[Switch],
    nics: Sequence[Nic],
    node_device: ArrayLike | None = None,
    link_names: Sequence[str] | None = None,
    caveats: Mapping[str, Caveat] | None = None,
    servers: Sequence[Server] = (Server(),),
    node_server: ArrayLike | None = None,
    node_pod: ArrayLike | None = None,
    extras: Sequence[Extra] = (),
    tree: str = "",
    direct: DirectNetwork | None = None,
    source: str | None = None,
) -> Fabric:
    """Build a fabric from its parts and check it.

    Parameters
    ----------
    name : of the topology, for people
    node_names : of all nodes
    node_kind, node_tier, node_device : shape (nodes,), see `Fabric`; without ``node_device`` all use device 0
    links : shape (links,), dtype `LINK_DTYPE`
    switches, nics : the devices
    link_names : by default `default_link_names`
    caveats : what a user should know, such as unverified figures
    servers, node_server, node_pod, extras, tree, direct : see `Fabric`; by default every host is a plain server
    source : what to call the input in an error; by default ``name``

    Raises
    ------
    ConfigError : with all reasons, see `check`
    """
    tier = np.asarray(node_tier, np.int8)
    ends_exist = bool(len(links) == 0 or (min(links["a"].min(), links["b"].min()) >= 0
                      and max(links["a"].max(), links["b"].max()) < len(node_names)))  # fmt: skip
    if not ends_exist:
        text = f"the ends of links must be node indices from 0 to {len(node_names) - 1}"
        raise ConfigError(source or name, [Mistake(path="links", text=text)])
    fabric = Fabric(
        name=name,
        node_names=node_names if isinstance(node_names, NodeNames) else tuple(node_names),
        node_kind=np.asarray(node_kind, np.int8),
        node_tier=tier,
        node_device=np.zeros(len(node_names), np.int32) if node_device is None else np.asarray(node_device, np.int32),
        links=links,
        link_names=tuple(link_names) if link_names is not None else default_link_names(node_names, tier, links),
        switches=tuple(switches),
        nics=tuple(nics),
        caveats=dict(caveats or {}),
        servers=tuple(servers),
        node_server=None if node_server is None else np.asarray(node_server, np.int32),
        node_pod=None if node_pod is None else np.asarray(node_pod, np.int32),
        extras=tuple(extras),
        tree=tree,
        direct=direct,
    )
    check(fabric, source=source)
    return fabric


def check(fabric: Fabric, *, source: str | None = None) -> None:
    """Refuse an invalid fabric.

    Parameters
    ----------
    fabric : to be checked
    source : what to call the input in the error; by default the fabric's name

    Raises
    ------
    ConfigError : duplicate or unprintable names, self loops, rates, delays or probabilities out of range, hosts without
        a link, switches with more links than ports, hosts that cannot reach each other over switches, servers that
        contradict themselves or have not as many links as NIC ports; all at once
    """
    findings = Findings(source=source or fabric.name)
    _check_names(fabric, findings)
    _check_links(fabric, findings)
    _check_nodes(fabric, findings)
    _check_servers(fabric, findings)
    if len(fabric.hosts) and (np.diff(fabric.ports.base) > 0).all():  # else the reason has been told
        _check_reach(fabric, findings)
    findings.refuse()


def _note_few(kind: str, found: Iterable[tuple[str, str]], total: int, findings: Findings) -> None:
    """Note the first mistakes of a kind, and the number of further mistakes."""
    shown = 0
    for path, text in found:
        findings.wrong(path, text)
        shown += 1
    if total > shown:
        findings.wrong(kind, f"and {total - shown:,} more of the same")


def _check_names(fabric: Fabric, findings: Findings) -> None:
    for kind, names in (("nodes", fabric.node_names), ("links", fabric.link_names)):
        if isinstance(names, NodeNames | LinkNames):  # unique and printable as they are made
            continue
        if len(set(names)) < len(names):
            twice = [(name, count) for name, count in Counter(names).items() if count > 1]
            found = ((f"{kind}.{name}", f"the name occurs {count} times, wanted once") for name, count in twice[:SHOWN])
            _note_few(kind, found, len(twice), findings)
        odd = [name for name in names if not name.isprintable() or not 1 <= len(name) <= LONGEST_NAME]
        text = "found the name {!r}, wanted printable text of 1 to " + f"{LONGEST_NAME} characters"
        found = ((kind, text.format(name[:20])) for name in odd[:SHOWN])
        _note_few(kind, found, len(odd), findings)


def _check_links(fabric: Fabric, findings: Findings) -> None:
    links = fabric.links
    rules: list[tuple[NDArray[np.bool_], str, Any]] = [
        (links["a"] == links["b"], "a", "the link leads from '{node}' to itself"),
        (links["rate_bps"] <= 0, "rate_bps", "found {value}, wanted a rate above 0"),
        (links["delay_ps"] < MIN_DELAY_PS, "delay_ps",
         f"found {{value}}, wanted at least {MIN_DELAY_PS} (1 ns): the engines need a delay between devices"),
        (~((links["loss"] >= 0) & (links["loss"] <= 1)), "loss", "found {value}, wanted a probability from 0 to 1"),
        (~((links["corruption"] >= 0) & (links["corruption"] <= 1)), "corruption",
         "found {value}, wanted a probability from 0 to 1"),
    ]  # fmt: skip
    for wrong, column, text in rules:
        where = np.flatnonzero(wrong)
        found = (
            (f"links.{fabric.link_names[i]}",
             text.format(value=f"{column} {links[column][i]}", node=fabric.node_names[links["a"][i]]))
            for i in where[:SHOWN].tolist()
        )  # fmt: skip
        _note_few("links", found, len(where), findings)


def _check_nodes(fabric: Fabric, findings: Findings) -> None:
    if not len(fabric.hosts):
        findings.wrong("nodes", "there are no hosts, wanted at least one")
        return
    degree = np.diff(fabric.ports.base)
    lonely = np.flatnonzero(degree == 0)
    kinds = {HOST: "host", SWITCH: "switch"}
    found = (
        (f"nodes.{fabric.node_names[i]}", f"the {kinds[int(fabric.node_kind[i])]} is linked to nothing")
        for i in lonely[:SHOWN].tolist()
    )
    _note_few("nodes", found, len(lonely), findings)
    radix = np.array([switch.radix for switch in fabric.switches] or [0], np.int64)
    is_switch = fabric.node_kind == SWITCH
    ports = np.where(is_switch, radix[np.where(is_switch, fabric.node_device, 0)], 0)
    crowded = np.flatnonzero((ports > 0) & (degree > ports))
    found = (
        (f"nodes.{fabric.node_names[i]}",
         f"{plural(degree[i], 'link')}, but switch '{fabric.switches[fabric.node_device[i]].name}' has {ports[i]} port"
         + ("s" if ports[i] > 1 else ""))
        for i in crowded[:SHOWN].tolist()
    )  # fmt: skip
    _note_few("nodes", found, len(crowded), findings)


def _check_servers(fabric: Fabric, findings: Findings) -> None:
    """Find mistakes of servers, alone and against the links of their hosts.

    A plain server says nothing about links.
    """
    for number, server in enumerate(fabric.servers):
        for key, text in device_mistakes(server):
            findings.wrong(f"servers.{number}.{key}", text)
    hosts = fabric.hosts
    kind = np.zeros(len(hosts), np.int32) if fabric.node_server is None else fabric.node_server[hosts]
    if len(kind) and not 0 <= int(kind.min()) <= int(kind.max()) < len(fabric.servers):
        text = f"found servers {kind.min()} to {kind.max()}, wanted 0 to {len(fabric.servers) - 1}"
        findings.wrong("nodes", text)
        return
    wanted = np.array([-1 if server == Server() else server.nic_ports for server in fabric.servers], np.int64)[kind]
    degree = np.diff(fabric.ports.base)[hosts]
    wrong = np.flatnonzero((wanted >= 0) & (wanted != degree) & (degree > 0))
    text = "{}, but the NIC ports of server '{}' are {}"
    found = (
        (
            f"nodes.{fabric.node_names[hosts[i]]}",
            text.format(plural(degree[i], "link"), fabric.servers[kind[i]].name, wanted[i]),
        )
        for i in wrong[:SHOWN].tolist()
    )
    _note_few("nodes", found, len(wrong), findings)


def _check_reach(fabric: Fabric, findings: Findings) -> None:
    """Find hosts and switches that are out of reach: every two hosts must share connected switches.

    Hosts do not forward, unless the network says so.
    """
    if fabric.direct is not None and fabric.direct.hosts_forward:
        _check_forwarding(fabric, findings)
        return
    count, links = len(fabric.node_names), fabric.links
    is_host = fabric.node_kind == HOST
    a, b = links["a"].astype(np.int64), links["b"].astype(np.int64)
    between = ~is_host[a] & ~is_host[b]
    part = connected_parts(a[between], b[between], count)
    # an island is a set of connected switches, or a link from host to host
    island_of_link = np.where(is_host[a], np.where(is_host[b], count + np.arange(len(links)), part[b]), part[a])
    low, high = is_host[a], is_host[b]
    host = np.concatenate([a[low], b[high]])
    island = np.concatenate([island_of_link[low], island_of_link[high]])
    islands = np.unique(island)
    if len(islands) == 1 and len(np.unique(part[~is_host])) <= 1:
        return
    host, island = _one_of_each(host, island)
    members: defaultdict[int, set[int]] = defaultdict(set)
    for node, where in zip(host.tolist(), island.tolist(), strict=True):
        members[node].add(where)
    example = {frozenset(members[node]): node for node in sorted(members, reverse=True)}
    sets = sorted(example, key=lambda where: example[where])
    for first, one in enumerate(sets):
        for other in sets[first + 1 :]:
            if not one & other:
                names = (fabric.node_names[example[one]], fabric.node_names[example[other]])
                text = f"the fabric is disconnected: no path over switches from '{names[0]}' to '{names[1]}'"
                findings.wrong("links", text)
                return
    idle = np.flatnonzero(~is_host & ~np.isin(part, islands))
    found = (
        (f"nodes.{fabric.node_names[i]}", "the fabric is disconnected: no host reaches this switch")
        for i in idle[:SHOWN].tolist()
    )
    _note_few("nodes", found, len(idle), findings)


def _check_forwarding(fabric: Fabric, findings: Findings) -> None:
    """Find nodes that are out of reach where hosts forward: links must join all nodes."""
    part = connected_parts(fabric.links["a"], fabric.links["b"], len(fabric.node_names))
    apart = np.flatnonzero(part != part[0])
    text = f"the fabric is disconnected: no path from '{fabric.node_names[0]}', even over hosts that forward"
    found = ((f"nodes.{fabric.node_names[i]}", text) for i in apart[:SHOWN].tolist())
    _note_few("nodes", found, len(apart), findings)


def _one_of_each(host: NDArray[np.int64], island: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """One pair (host, island) per host and set of islands.

    It is the first host of those with the same set.
    """
    order = np.lexsort((island, host))
    host, island = host[order], island[order]
    fresh = np.append(True, (host[1:] != host[:-1]) | (island[1:] != island[:-1]))
    host, island = host[fresh], island[fresh]
    nodes, start = np.unique(host, return_index=True)
    # a set as the sum of its members' draws, 64 bits each: two sets of a fabric do not meet by chance
    signature = np.add.reduceat(draws(0, Stream.PLACEMENT, island, 0, 0), start)
    _, first = np.unique(signature, return_index=True)
    chosen = np.isin(host, nodes[first])
    return host[chosen], island[chosen]
