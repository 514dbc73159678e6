"""Numbers of the connection manager, by the names of librdmacm.

Source: rdma-core, librdmacm/rdma_cma.h.
Leaves out: nothing that pyverbs exports.
"""
# ruff: noqa: N801 - the names are those of the header

from __future__ import annotations

from enum import IntEnum, IntFlag
from typing import Final

from weftwork.compat.pyverbs.enum_members import members_of


class rdma_cm_event_type(IntEnum):
    """``enum rdma_cm_event_type``."""

    RDMA_CM_EVENT_ADDR_RESOLVED = 0
    RDMA_CM_EVENT_ADDR_ERROR = 1
    RDMA_CM_EVENT_ROUTE_RESOLVED = 2
    RDMA_CM_EVENT_ROUTE_ERROR = 3
    RDMA_CM_EVENT_CONNECT_REQUEST = 4
    RDMA_CM_EVENT_CONNECT_RESPONSE = 5
    RDMA_CM_EVENT_CONNECT_ERROR = 6
    RDMA_CM_EVENT_UNREACHABLE = 7
    RDMA_CM_EVENT_REJECTED = 8
    RDMA_CM_EVENT_ESTABLISHED = 9
    RDMA_CM_EVENT_DISCONNECTED = 10
    RDMA_CM_EVENT_DEVICE_REMOVAL = 11
    RDMA_CM_EVENT_MULTICAST_JOIN = 12
    RDMA_CM_EVENT_MULTICAST_ERROR = 13
    RDMA_CM_EVENT_ADDR_CHANGE = 14
    RDMA_CM_EVENT_TIMEWAIT_EXIT = 15


class rdma_port_space(IntEnum):
    """``enum rdma_port_space``."""

    RDMA_PS_IPOIB = 2
    RDMA_PS_TCP = 262
    RDMA_PS_UDP = 273
    RDMA_PS_IB = 319


class rdma_cm_join_mc_attr_mask(IntFlag):
    """``enum rdma_cm_join_mc_attr_mask``."""

    RDMA_CM_JOIN_MC_ATTR_ADDRESS = 1
    RDMA_CM_JOIN_MC_ATTR_JOIN_FLAGS = 2


class rdma_cm_mc_join_flags(IntFlag):
    """``enum rdma_cm_mc_join_flags``."""

    RDMA_MC_JOIN_FLAG_FULLMEMBER = 0
    RDMA_MC_JOIN_FLAG_SENDONLY_FULLMEMBER = 1


RAI_PASSIVE: Final = 1
RAI_NUMERICHOST: Final = 2
RAI_NOROUTE: Final = 4
RAI_FAMILY: Final = 8
RDMA_OPTION_ID: Final = 0
RDMA_OPTION_ID_ACK_TIMEOUT: Final = 3

# Each member is also a name of the module, as Cython exports enumerations.
globals().update(members_of(globals()))
