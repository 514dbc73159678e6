"""Multicast groups of a NIC: queue pairs that take the datagrams of a group.

A group is an IP multicast address: its GID is the address, and that of an IPv4 group is mapped as ::ffff:230.0.0.1. A
datagram to a group names queue pair 0xFFFFFF, and each attached queue pair gets a copy.
Source: IBTA vol. 1, 10.5.2 (attach and detach), 9.8.3 and annex A17; the GID as in cma_iboe_set_mgid of Linux
drivers/infiniband/core/cma.c.
Leaves out: how a port joins an IP group, see `drivers.steering`; the subnet administrator's groups.
"""

from __future__ import annotations

from ipaddress import ip_address
from typing import TYPE_CHECKING, Final

from weftwork.base.errors import UsageError
from weftwork.rdma.verbs import QpType

if TYPE_CHECKING:
    from weftwork.rdma.queue_pair import NicLimits, RdmaQueuePair

__all__ = ["MULTICAST_QP", "MulticastGroups"]

MULTICAST_QP: Final = 0xFFFFFF  # IBTA vol. 1, 10.5: destination queue pair of every multicast datagram


class MulticastGroups:
    """Attached queue pairs, by group.

    Parameters
    ----------
    limits : on groups, and on queue pairs of a group
    """

    def __init__(self, limits: NicLimits) -> None:
        self._limits: Final = limits
        self._members: Final[dict[bytes, dict[RdmaQueuePair, None]]] = {}

    def attach(self, qp: RdmaQueuePair, group: bytes) -> bool:
        """Let a queue pair take the datagrams of a group.

        Parameters
        ----------
        qp : of type UD; a second time changes nothing
        group : IP multicast address, 4 or 16 bytes in network order

        Returns
        -------
        whether the group is new to this NIC

        Raises
        ------
        UsageError : the queue pair or the address does not fit, or there are too many
        """
        if qp.qp_type is not QpType.UD:
            raise UsageError(f"qp: found {qp.qp_type.name}, wanted a queue pair of type UD for multicast")
        if len(group) != len(qp.host.address) or not ip_address(group).is_multicast:
            version = 4 if len(qp.host.address) == len(bytes(4)) else 6
            raise UsageError(f"group: found {ip_address(group)}, wanted an IPv{version} multicast address")
        members = self._members.get(group, {})
        is_new = not members
        if is_new and len(self._members) >= self._limits.max_mcast_grp:
            raise UsageError(f"multicast groups: found {len(self._members)}, which is the limit")
        if qp not in members and len(members) >= self._limits.max_mcast_qp_attach:
            raise UsageError(f"queue pairs of the group: found {len(members)}, which is the limit")
        self._members.setdefault(group, {})[qp] = None
        return is_new

    def detach(self, qp: RdmaQueuePair, group: bytes) -> bool:
        """Take a queue pair out of a group.

        Returns
        -------
        whether no queue pair of this NIC is left in the group

        Raises
        ------
        UsageError : it is not in the group
        """
        members = self._members.get(group, {})
        if qp not in members:
            raise UsageError(f"group: found queue pair {qp.qp_num} outside it, wanted an attached queue pair")
        del members[qp]
        if not members:
            del self._members[group]
        return not members

    def members(self, group: bytes) -> tuple[RdmaQueuePair, ...]:
        """Queue pairs that take the datagrams of an address."""
        return tuple(self._members.get(group, ()))

    def of(self, qp: RdmaQueuePair) -> tuple[bytes, ...]:
        """Groups of a queue pair."""
        return tuple(group for group, members in self._members.items() if qp in members)
