"""Devices and contexts.

Source: pyverbs, device.pyx (names); libibverbs, ibv_open_device(3) and ibv_query_gid_table(3).
Leaves out: device memory; contexts of other processes; clocks.
"""

from __future__ import annotations

from collections import deque
from errno import EINVAL, ENODATA
from typing import TYPE_CHECKING, Any, Final

from weftwork.compat.pyverbs.addr import GID
from weftwork.compat.pyverbs.base import NicObject, PyverbsCM, PyverbsObject, close_orphans
from weftwork.compat.pyverbs.device_attr import (
    FILLED_GIDS,
    GID_TABLE,
    CQModerationCaps,
    DeviceAttr,
    DeviceAttrEx,
    GIDEntry,
    ODPCaps,
    PacketPacingCaps,
    PCIAtomicCaps,
    PortAttr,
    RSSCaps,
    TMCaps,
    TSOCaps,
    guid_of,
)
from weftwork.compat.pyverbs.device_text import (
    guid_format,
    guid_to_hex,
    phys_state_to_str,
    port_state_to_str,
    speed_to_str,
    str_from_flags,
    translate_device_caps,
    translate_event_type,
    translate_gid_type,
    translate_link_layer,
    translate_mtu,
    translate_node_type,
    translate_port_cap_flags,
    translate_port_cap_flags2,
    translate_transport_type,
    width_to_str,
)
from weftwork.compat.pyverbs.libibverbs_enums import (
    ibv_event_type,
    ibv_gid_type,
    ibv_gid_type_sysfs,
    ibv_node_type,
    ibv_transport_type,
)
from weftwork.compat.pyverbs.pyverbs_error import (
    PyverbsRDMAError,
    PyverbsUserError,
    not_supported,
    refused_as,
)
from weftwork.compat.pyverbs.software_nics import SoftwareNic, device_address, device_names, gid_of, open_nic
from weftwork.rdma.drivers.udp import parse_address
from weftwork.rdma.queue_pair import EventType
from weftwork.wire.ib import DEFAULT_PARTITION_KEY

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = [
    "DM",
    "AllocDmAttr",
    "AsyncEvent",
    "CQModerationCaps",
    "Context",
    "Device",
    "DeviceAttr",
    "DeviceAttrEx",
    "FdArr",
    "GIDEntry",
    "ODPCaps",
    "PCIAtomicCaps",
    "PacketPacingCaps",
    "PortAttr",
    "QueryDeviceExInput",
    "RSSCaps",
    "TMCaps",
    "TSOCaps",
    "get_device_list",
    "guid_format",
    "guid_to_hex",
    "phys_state_to_str",
    "port_state_to_str",
    "rdma_get_devices",
    "speed_to_str",
    "str_from_flags",
    "translate_device_caps",
    "translate_event_type",
    "translate_gid_type",
    "translate_link_layer",
    "translate_mtu",
    "translate_node_type",
    "translate_port_cap_flags",
    "translate_port_cap_flags2",
    "translate_transport_type",
    "width_to_str",
]

_PORT: Final = 1
_EVENTS: Final = {
    EventType.QP_FATAL: ibv_event_type.IBV_EVENT_QP_FATAL,
    EventType.SQ_DRAINED: ibv_event_type.IBV_EVENT_SQ_DRAINED,
    EventType.SRQ_LIMIT_REACHED: ibv_event_type.IBV_EVENT_SRQ_LIMIT_REACHED,
    EventType.CQ_ERR: ibv_event_type.IBV_EVENT_CQ_ERR,
}


class Device(PyverbsObject):
    """A device that can be opened.

    Parameters
    ----------
    name : its name, as bytes
    guid : 64 bits
    node_type, transport_type : kinds of it
    index : place in the list
    """

    def __init__(self, name: bytes, guid: int, node_type: int, transport_type: int, index: int) -> None:
        self.name = name
        self.guid = guid
        self.node_type = node_type
        self.transport_type = transport_type
        self.index = index

    def __str__(self) -> str:
        return (
            f"Device {self.name.decode()}, node type {translate_node_type(self.node_type)}, "
            f"transport type {translate_transport_type(self.transport_type)}, guid {guid_to_hex(self.guid)}, "
            f"index {self.index}"
        )


def get_device_list() -> list[Device]:
    """Find the devices, see `software_nics`."""
    return [
        Device(
            name.encode(),
            guid_of(name, parse_address(device_address(name)).packed),
            ibv_node_type.IBV_NODE_CA,
            ibv_transport_type.IBV_TRANSPORT_IB,
            index,
        )
        for index, name in enumerate(device_names())
    ]


def rdma_get_devices() -> list[Device]:
    """Find the devices that the connection manager uses: all of them."""
    return get_device_list()


class QueryDeviceExInput(PyverbsObject):
    """Attributes of an extended query.

    Parameters
    ----------
    comp_mask : 0
    """

    def __init__(self, comp_mask: int) -> None:
        self.comp_mask = comp_mask


class Context(NicObject):
    """An open device.

    Parameters
    ----------
    name : of the device
    cmid : a communication identifier instead of it, whose ``device_name`` counts
    attr : of a provider, which a software NIC does not have
    cmd_fd : of a context to import, which it does not support

    Attributes
    ----------
    nic : the device
    events : asynchronous events of this context
    """

    closes = 10

    def __init__(self, **kwargs: Any) -> None:  # noqa: ANN401 - as pyverbs
        if kwargs.get("cmd_fd") is not None or kwargs.get("attr") is not None:
            raise not_supported("A context that is imported or has attributes of a provider")
        cmid = kwargs.get("cmid")
        name = kwargs.get("name") if cmid is None else cmid.device_name
        if name is None:
            raise PyverbsUserError("Device name must be provided")
        if name not in device_names():
            raise PyverbsRDMAError(f"Failed to find device {name}")
        self.name: str = name
        self.events: deque[EventType] = deque()
        with refused_as(f"Failed to open device {name}"):
            close_orphans()
            self.nic: SoftwareNic = open_nic(name)
        self.is_open = True
        if cmid is not None:
            cmid.ctx = self

    @property
    def num_comp_vectors(self) -> int:
        """Completion vectors; a software NIC has one."""
        return 1

    @property
    def cmd_fd(self) -> int:
        """Refuse: there is no driver behind a descriptor."""
        raise not_supported("The descriptor of a context")

    def query_device(self) -> DeviceAttr:
        """Limits and abilities."""
        return DeviceAttr(guid_of(self.name, self.nic.address), self.nic.device.nic.limits)

    def query_device_ex(self, ex_input: QueryDeviceExInput | None = None) -> DeviceAttrEx:  # noqa: ARG002 - no content
        """Limits and abilities, with extensions."""
        return DeviceAttrEx(self.query_device())

    def query_port(self, port_num: int) -> PortAttr:
        """Attributes of a port; PyverbsRDMAError for another one than 1."""
        _check_port(port_num, f"Failed to query port {port_num}")
        nic = self.nic.device
        counters = nic.nic.counters
        return PortAttr(nic.port.path_mtu(self.nic.address), counters["pkey_violation"], counters["qkey_violation"])

    def query_pkey(self, port_num: int, index: int) -> int:
        """Partition key in network order at an index of the table, which has one."""
        if port_num != _PORT or index != 0:
            raise PyverbsRDMAError(f"Failed to query pkey {index} of port {port_num}", EINVAL)
        return DEFAULT_PARTITION_KEY

    def get_pkey_index(self, port_num: int, pkey: int) -> int:
        """Index of a partition key."""
        if port_num != _PORT or pkey != DEFAULT_PARTITION_KEY:
            raise PyverbsRDMAError(f"Failed to get pkey index of pkey = {pkey} of port {port_num}", EINVAL)
        return 0

    def query_gid(self, port_num: int, index: int) -> GID:
        """GID at an index; zeros for an empty entry."""
        if port_num != _PORT or not 0 <= index < GID_TABLE:
            raise PyverbsRDMAError(f"Failed to query gid {index} of port {port_num}", EINVAL)
        return GID.of_bytes(self.nic.gid if index < FILLED_GIDS else bytes(16))

    def query_gid_type(self, port_num: int, index: int) -> ibv_gid_type_sysfs:
        """Protocol of a GID."""
        if port_num != _PORT or not 0 <= index < GID_TABLE:
            raise PyverbsRDMAError(f"Failed to query gid type of port {port_num} and gid index {index}", EINVAL)
        return ibv_gid_type_sysfs.IBV_GID_TYPE_SYSFS_ROCE_V2

    def query_gid_table(self, max_entries: int, flags: int = 0) -> list[GIDEntry]:
        """Entries of the table that are not empty.

        Parameters
        ----------
        max_entries : room for them; PyverbsRDMAError where it is too small
        flags : 0
        """
        if max_entries < FILLED_GIDS or flags:
            raise PyverbsRDMAError("Failed to query gid tables of the device", -EINVAL)
        return [self._entry(index) for index in range(FILLED_GIDS)]

    def query_gid_ex(self, port_num: int, gid_index: int, flags: int = 0) -> GIDEntry:
        """Entry of the table; PyverbsRDMAError for an empty one."""
        what = f"Failed to query gid table of port {port_num} in index {gid_index}"
        if port_num != _PORT or not 0 <= gid_index < GID_TABLE or flags:
            raise PyverbsRDMAError(what, EINVAL)
        if gid_index >= FILLED_GIDS:
            raise PyverbsRDMAError(what, ENODATA)
        return self._entry(gid_index)

    def _entry(self, index: int) -> GIDEntry:
        gid = gid_of(self.nic.address)
        prefix, interface = int.from_bytes(gid[:8], "little"), int.from_bytes(gid[8:], "little")
        return GIDEntry(prefix, interface, index, _PORT, ibv_gid_type.IBV_GID_TYPE_ROCE_V2, 0)

    def query_rt_values_ex(self, comp_mask: int = 1) -> tuple[int, int]:
        """Refuse: a software NIC has no clock of its own."""
        raise not_supported(f"Reading the clock of a device (mask {comp_mask})")

    def get_async_event(self) -> AsyncEvent:
        """Wait for the next asynchronous event of this context."""
        return AsyncEvent(_EVENTS[self.nic.next_event(self.events)])

    def close(self) -> None:
        """Close all objects of the context; the last context closes the device."""
        if self.is_open:
            self.close_children()
            self.is_open = False
            self.nic.release()


def _check_port(port_num: int, what: str) -> None:
    if port_num != _PORT:
        raise PyverbsRDMAError(what, EINVAL)


class AsyncEvent(PyverbsObject):
    """An asynchronous event.

    Parameters
    ----------
    event_type : what happened
    """

    def __init__(self, event_type: int = 0) -> None:
        self.event_type = event_type

    def ack(self) -> None:
        """Acknowledge the event."""

    def __str__(self) -> str:
        return f"{'Event Type':<24}: {translate_event_type(self.event_type):<20}\n"


class AllocDmAttr(PyverbsObject):
    """Attributes of device memory.

    Parameters
    ----------
    length : bytes
    log_align_req : logarithm of its alignment
    comp_mask : 0
    """

    def __init__(self, length: int, log_align_req: int = 0, comp_mask: int = 0) -> None:
        self.length = length
        self.log_align_req = log_align_req
        self.comp_mask = comp_mask


class DM(PyverbsCM):
    """Device memory, which a software NIC does not have."""

    def __init__(self, context: Context, dm_attr: AllocDmAttr | None = None, **kwargs: Any) -> None:  # noqa: ANN401, ARG002
        raise not_supported("Device memory")


class FdArr(PyverbsObject):
    """A list of descriptors.

    Parameters
    ----------
    arr : descriptors
    count : how many of them count
    """

    def __init__(self, arr: Sequence[int] = (), count: int = 0) -> None:
        self.arr = list(arr[:count])
        self.count = count

    def __str__(self) -> str:
        return f"{'Number of fd in arr':20}: {self.count:<20}\n{'FDs in arr':20}: {self.arr!s:<20}\n"
