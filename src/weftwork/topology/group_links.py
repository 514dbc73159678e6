"""Link groups of switches with each other, as a dragonfly and a dragonfly+ do.

The global ports of a group are numbered from 0, switch by switch. An arrangement says to which group a port leads, and
to which port there. With several links for each pair of groups, the ports come in slices of groups - 1.
A circulant with an even number of groups has one port left, which leads to the opposite group.
Source: sst-elements, pymerlin-topo-dragonfly.py (slices, absolute, relative); nakacristo/caminos-lib, dragonfly.rs
(palm tree).
Leaves out: links inside a group, which stand beside their topology; random arrangements.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from weftwork.base.caveat import Caveat
from weftwork.base.grammar import plural
from weftwork.spec.fabric_direct import GLOBAL
from weftwork.spec.plug_in import Choice, Findings, Whole, row

__all__ = [
    "ARRANGEMENTS", "DIMENSIONS", "SwitchGroups", "arrangement_row", "far_port", "global_links", "groups_row",
    "links_per_pair_row", "plan_groups", "whole_servers",
]  # fmt: skip

DIMENSIONS: Final = ("local", GLOBAL)
ARRANGEMENTS: Final = ("absolute", "relative", "palm-tree", "circulant")


def groups_row(source: str) -> Any:  # noqa: ANN401 - as `row`
    """Row of the number of groups."""
    return row(
        "groups",
        Whole(low=1, high=65_536, unit="groups"),
        absent="as many as the hosts need; without hosts, the most: one more than the global ports of a group",
        text="Groups of switches; every two of them have the same number of links.",
        source=source,
    )


def links_per_pair_row() -> Any:  # noqa: ANN401 - as `row`
    """Row of the number of links between two groups."""
    return row(
        "links_per_group_pair",
        Whole(low=1, high=65_536, unit="links"),
        absent="as many as the global ports of a group allow",
        text="Links between every two groups.",
        source="sst-elements, pymerlin-topo-dragonfly.py",
    )


def arrangement_row() -> Any:  # noqa: ANN401 - as `row`
    """Row of the arrangement of global links."""
    return row(
        "arrangement",
        Choice(options=ARRANGEMENTS),
        default="absolute",
        text="Rule by which the global ports of a group lead to other groups.",
        source="chosen: the arrangement of csg-htsim",
    )


@dataclass(frozen=True, kw_only=True, slots=True)
class SwitchGroups:
    """Groups and the links between them.

    Attributes
    ----------
    groups : how many
    linkers : switches of a group with global ports
    global_ports : of each of these switches
    links_per_pair : between two groups; 0 with a single group
    """

    groups: int
    linkers: int
    global_ports: int
    links_per_pair: int

    @property
    def used(self) -> int:
        """Global ports of a group that have a link."""
        return self.links_per_pair * (self.groups - 1)

    @property
    def left(self) -> int:
        """Global ports of a group without a link."""
        return self.linkers * self.global_ports - self.used

    @property
    def links(self) -> int:
        """Global links of the network."""
        return self.groups * self.used // 2

    def caveats(self) -> dict[str, Caveat]:
        """Report the global ports left over, if any."""
        if not self.left:
            return {}
        text = (
            f"{self.left:,} of the {plural(self.linkers * self.global_ports, 'global port')} of each group stay empty"
        )
        if self.groups > 1:
            others = plural(self.groups - 1, "other group")
            text += f": {others} with {plural(self.links_per_pair, 'link')} each take {self.used:,}"
        return {"fabric.global_ports": Caveat(subject="fabric.global_ports", kind="note", text=text)}


def plan_groups(
    found: Findings,
    *,
    groups: int | None,
    links_per_pair: int | None,
    linkers: int,
    global_ports: int,
    places: int,
    endpoints: int | None,
) -> SwitchGroups | None:
    """Derive the number of groups and of links between them.

    Parameters
    ----------
    found : notes groups and links that the global ports do not allow
    groups, links_per_pair : as given; None: derived
    linkers, global_ports : switches of a group with global ports, and ports of each
    places : for NIC ports, in a group
    endpoints : NIC ports of the hosts; None where nobody says

    Returns
    -------
    None where a mistake was noted
    """
    ports = linkers * global_ports
    if groups is None:
        each = links_per_pair or 1
        most = ports // each + 1
        groups = most if endpoints is None else max(1, min(-(-endpoints // places), most))
        if links_per_pair is not None and links_per_pair > ports:
            text = f"found {links_per_pair:,}, but a group has {plural(ports, 'global port')}"
            found.wrong("links_per_group_pair", text, str(ports) if ports else None)
            return None
    elif groups > ports + 1:
        text = f"found {groups:,}, wanted at most {ports + 1:,}: a group has {plural(ports, 'global port')}"
        found.wrong("groups", text, str(ports + 1))
        return None
    if groups == 1:
        return SwitchGroups(groups=1, linkers=linkers, global_ports=global_ports, links_per_pair=0)
    most = ports // (groups - 1)
    if links_per_pair is not None and links_per_pair > most:
        text = (
            f"found {links_per_pair:,}, wanted at most {most:,}: a group has {plural(ports, 'global port')} for "
            f"{plural(groups - 1, 'other group')}"
        )
        found.wrong("links_per_group_pair", text, str(most))
        return None
    return SwitchGroups(
        groups=groups, linkers=linkers, global_ports=global_ports, links_per_pair=links_per_pair or most
    )


def far_port(
    arrangement: str, group: NDArray[np.int64], port: NDArray[np.int64], groups: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Group and port at the far end of a global port.

    Parameters
    ----------
    arrangement : one of `ARRANGEMENTS`
    group, port : of the near end; ports from 0 to groups - 2, in one slice
    groups : two or more
    """
    if arrangement == "absolute":
        other = np.where(port < group, port, port + 1)
        return other, np.where(group < other, group, group - 1)
    if arrangement == "relative":
        other = (group + port + 1) % groups
        return other, (group - other - 1) % groups
    if arrangement == "palm-tree":
        other = (group - port - 1) % groups
        return other, (other - group - 1) % groups
    step = port // 2 + 1
    other = (group + np.where(port % 2 == 0, step, -step)) % groups
    return other, np.minimum(port ^ 1, groups - 2)  # the last port of an even number of groups leads back to itself


def global_links(shape: SwitchGroups, arrangement: str) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Ends of all global links, as numbers of switches with global ports.

    Switch i of group G has the number ``G x linkers + i``. Port q of a group is on its switch
    ``q x linkers // used``, so that ports left over are spread evenly.

    Parameters
    ----------
    shape : of the network
    arrangement : one of `ARRANGEMENTS`
    """
    if shape.groups == 1:
        return np.empty(0, np.int64), np.empty(0, np.int64)
    port = np.arange(shape.used)
    group = np.repeat(np.arange(shape.groups), shape.used)
    near = np.tile(port, shape.groups)
    first = near // (shape.groups - 1) * (shape.groups - 1)  # of the slice
    other, there = far_port(arrangement, group, near - first, shape.groups)
    far = first + there
    once = group < other
    a = group * shape.linkers + near * shape.linkers // shape.used
    b = other * shape.linkers + far * shape.linkers // shape.used
    return a[once], b[once]


def whole_servers(places: int, ports: int) -> int:
    """Places of a switch rounded down to whole servers, if there is room for one.

    Parameters
    ----------
    places : for NIC ports
    ports : of a server

    Examples
    --------
    >>> whole_servers(30, 8), whole_servers(5, 8)
    (24, 5)
    """
    return places // ports * ports if places >= ports else places
