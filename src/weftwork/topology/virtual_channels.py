"""Virtual channels: which one a packet takes on its next link, by a scheme.

A scheme gives channels so that packets of a network do not wait for each other in a circle. It sees the kind of the
link by which a packet has come, the channel held, the kind of the next link, and whether a new part of the way begins
(a turn: from an intermediate switch on, or towards one after a start on the shortest path).
Source: one channel for each hop: sst-elements, merlin, anytopo.cc; datelines: Dally and Seitz, IEEE Transactions on
Computers C-36(5), 1987, doi:10.1109/TC.1987.1676939; channels of a dragonfly that rise at global hops: Kim et al., ISCA
2008, doi:10.1109/ISCA.2008.19, section 4.1; one more for a second thought: Jiang, Kim and Dally, ISCA 2009,
doi:10.1145/1555754.1555783; one more for each valley: Hu et al., Tagger, CoNEXT 2017, doi:10.1145/3143361.3143382.
Leaves out: whether a network is free of deadlocks with them (`weftwork.topology.channel_dependencies`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from weftwork.spec.fabric import HOST
from weftwork.spec.fabric_direct import GLOBAL

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from weftwork.spec.fabric import Fabric
    from weftwork.spec.routing import ChannelScheme

__all__ = ["LinkKinds", "channel_rule", "link_kinds"]


UP: Final = 0  # kind of a port to a higher tier; a packet that has come by it has come down


@dataclass(frozen=True, kw_only=True, slots=True)
class LinkKinds:
    """Kinds of links between switches.

    Attributes
    ----------
    port_kind : shape (ports,), int64, the kind of each port; -1: of a link of a host
    dimension : shape (kinds,), dimension of each kind
    wraps : shape (kinds,), whether its links close rings
    is_global : shape (kinds,), whether its links join groups
    """

    port_kind: NDArray[np.int64]
    dimension: NDArray[np.int64]
    wraps: NDArray[np.bool_]
    is_global: NDArray[np.bool_]


def link_kinds(fabric: Fabric) -> LinkKinds:
    """Kinds of the ports of a fabric; where it is no direct network, they lead up or not."""
    ports, direct = fabric.ports, fabric.direct
    at_host = (fabric.node_kind[ports.node] == HOST) | (fabric.node_kind[ports.node[ports.peer]] == HOST)
    if direct is None:
        tier = fabric.node_tier
        kind = np.where(tier[ports.node[ports.peer]] > tier[ports.node], UP, 1 - UP)
        dimension, wraps, is_global = np.zeros(2, np.int64), np.zeros(2, np.bool_), np.zeros(2, np.bool_)
    else:
        kind = 2 * direct.link_dimension[ports.link].astype(np.int64) + direct.link_wraps[ports.link]
        dimension = np.repeat(np.arange(max(1, len(direct.dimensions))), 2)
        wraps = np.arange(len(dimension)) % 2 == 1
        is_global = np.array([word == GLOBAL for word in direct.dimensions or ("",)])[dimension]
    return LinkKinds(port_kind=np.where(at_host, -1, kind), dimension=dimension, wraps=wraps, is_global=is_global)


def channel_rule(kinds: LinkKinds, scheme: ChannelScheme, channels: int) -> NDArray[np.int8]:
    """Next virtual channel, for all cases.

    Parameters
    ----------
    kinds : of links
    scheme : see `weftwork.spec.routing.ChannelScheme`
    channels : how many there are; a packet that would need a further channel stays in the last

    Returns
    -------
    shape (2, kinds + 1, channels, kinds): by turn, kind of the link in (links of hosts first), channel held and kind of
    the link out
    """
    count = len(kinds.dimension)
    turn = np.arange(2)[:, None, None, None]
    came = np.arange(-1, count)[None, :, None, None]
    held = np.arange(channels)[None, None, :, None]
    out = np.arange(count)[None, None, None, :]
    fresh = came < 0  # from a host
    if scheme == "hops":
        found = np.where(fresh, 0, held + 1) + 0 * (turn + out)
    elif scheme == "global-hops":
        found = np.where(fresh, 0, held + kinds.is_global[came] + turn) + 0 * out
    elif scheme == "valleys":
        found = held + ((came == UP) & (out == UP)) + 0 * turn
    elif scheme == "dateline":
        goes_on = ~fresh & (turn == 0) & (kinds.dimension[came] == kinds.dimension[out])
        found = held // 2 * 2 + 2 * turn + (kinds.wraps[out] | (goes_on & (held % 2 == 1)))
    else:
        found = held + (turn if scheme == "turns" else 0 * turn) + 0 * (came + out)
    shape = (2, count + 1, channels, count)
    return np.broadcast_to(np.minimum(found, channels - 1), shape).astype(np.int8)
