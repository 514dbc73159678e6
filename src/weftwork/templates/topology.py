"""Full mesh: every switch has some hosts and a link to every other switch.

A topology turns the keys of a scenario into a fabric: nodes, links, devices. docs/howto/own-topology.md explains every
part.

    weftwork topology topology.yaml    counts its links and paths
    weftwork run topology.yaml         sends a permutation over it
    weftwork test topology.py          builds it in several sizes and checks that all hosts reach each other

Source: Ahn et al., HyperX, SC 2009, doi:10.1145/1654059.1654101, with one dimension.
Leaves out: more dimensions, and paths over a third switch: packets take shortest paths.
"""

from __future__ import annotations

import numpy as np

from weftwork.base.grammar import plural
from weftwork.spec.fabric import HOST, SWITCH, Fabric
from weftwork.spec.fabric_names import NodeNames
from weftwork.spec.plug_in import Findings, Ground, Parts, Record, Topology, Whole, row
from weftwork.topology.assemble import assemble, links_between


class Keys(Record):
    """Keys of ``fabric`` besides those of every fabric.

    Every fabric has ``link_rate``, for example.
    """

    switches: int = row(
        "switches",
        Whole(low=2, high=1_000, unit="switches"),
        default=4,
        text="Switches, each linked to all others.",
        source="chosen: small enough to see",
    )
    hosts_per_switch: int = row(
        "hosts_per_switch",
        Whole(low=1, high=1_000, unit="hosts"),
        default=3,
        text="Hosts on every switch.",
        source="chosen: as many links down as to other switches",
    )


def resolve(keys: Keys, ground: Ground, found: Findings) -> tuple[Keys, int | None]:
    """Check the keys against the common keys.

    Returns the keys and the number of hosts.
    """
    places = keys.switches * keys.hosts_per_switch
    if ground.hosts is not None and ground.hosts > places:
        text = f"found {ground.hosts:,}, wanted at most {places:,}, switches x hosts_per_switch"
        found.wrong(found.which("hosts", "gpus"), text)  # a mistake is noted by its key and printed with its line
    return keys, places if ground.hosts is None else ground.hosts


def build(keys: Keys, parts: Parts) -> Fabric:
    """Make the fabric.

    Nodes are hosts 0, 1 ..., then switches; host i is on switch i // hosts_per_switch.
    """
    hosts = keys.switches * keys.hosts_per_switch if parts.hosts is None else parts.hosts
    errors = {"loss": parts.loss, "corruption": parts.corruption}
    host = np.repeat(np.arange(hosts), parts.server.nic_ports)  # a link for each NIC port
    down = links_between(
        host,
        hosts + host // keys.hosts_per_switch,
        rate_bps=parts.host_rate_bps,
        delay_ps=parts.host_delay_ps,
        **errors,
    )
    one, other = np.triu_indices(keys.switches, k=1)  # each pair of switches once
    across = links_between(
        hosts + one, hosts + other, rate_bps=parts.fabric_rate_bps, delay_ps=parts.fabric_delay_ps, **errors
    )
    counts = [hosts, keys.switches]
    return assemble(
        name=f"full mesh of {plural(keys.switches, 'switch', 'switches')}",
        node_names=NodeNames([("host", hosts), ("leaf", keys.switches)]),
        node_kind=np.repeat([HOST, SWITCH], counts),
        node_tier=np.repeat([0, 1], counts),
        links=np.concatenate([down, across]),
        switches=[parts.switch],
        nics=[parts.nic],
        servers=[parts.server],
        caveats=parts.caveats,
        source="fabric",
    )


TOPOLOGY = Topology(keys=Keys, resolve=resolve, build=build, source="doi:10.1145/1654059.1654101")
