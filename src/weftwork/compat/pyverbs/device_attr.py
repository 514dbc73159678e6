"""What a device and its port say about themselves.

Every number comes from the limits of the software NIC or is zero for what it lacks.
Source: pyverbs, device.pyx (names); libibverbs, ibv_query_device_ex(3) and ibv_query_port(3).
Leaves out: nothing; what a software NIC lacks is zero.
"""

from __future__ import annotations

import mmap
from hashlib import blake2b
from typing import TYPE_CHECKING, Final

from weftwork.base.version import VERSION
from weftwork.compat.pyverbs.base import PyverbsObject
from weftwork.compat.pyverbs.device_text import (
    guid_format,
    phys_state_to_str,
    port_state_to_str,
    speed_to_str,
    translate_device_caps,
    translate_gid_type,
    translate_link_layer,
    translate_mtu,
    width_to_str,
)
from weftwork.compat.pyverbs.libibverbs_enums import (
    IBV_LINK_LAYER_ETHERNET,
    IBV_QPF_GRH_REQUIRED,
    ibv_atomic_cap,
    ibv_device_cap_flags,
    ibv_gid_type,
    ibv_mtu,
    ibv_port_cap_flags,
    ibv_port_state,
)
from weftwork.compat.pyverbs.utils import be64toh, gid_str
from weftwork.rdma.requests import MOST_MESSAGE_BYTES

if TYPE_CHECKING:
    from weftwork.rdma.queue_pair import NicLimits

__all__ = [
    "CQModerationCaps",
    "DeviceAttr",
    "DeviceAttrEx",
    "GIDEntry",
    "ODPCaps",
    "PCIAtomicCaps",
    "PacketPacingCaps",
    "PortAttr",
    "RSSCaps",
    "TMCaps",
    "TSOCaps",
    "guid_of",
]

GID_TABLE: Final = 8  # chosen: entries of the table
# Entries with the address of the device. An adapter with an IPv4 address has so many in Linux: a link-local and the
# IPv4 address, each for RoCEv1 and RoCEv2 (ib_cache_gid_set_default_gid in cache.c); programs write index 0, 1 or 3.
FILLED_GIDS: Final = 4
_VENDOR: Final = 0xFFFFFF  # Linux drivers/infiniband/sw/rxe/rxe_param.h, RXE_VENDOR_ID: a NIC in software
_LINK_UP: Final = 5  # IBTA vol. 1, 14.2.5.6, PortPhysicalState
_WIDTH_4X: Final = 2
_SPEED_EDR: Final = 32  # 25 Gb/s a lane; four of them are the line rate that `RdmaDevice` starts from
_BIG_MEMORY: Final = (1 << 64) - 1
_CAPS: Final = (
    ibv_device_cap_flags.IBV_DEVICE_BAD_PKEY_CNTR
    | ibv_device_cap_flags.IBV_DEVICE_BAD_QKEY_CNTR
    | ibv_device_cap_flags.IBV_DEVICE_CURR_QP_STATE_MOD
    | ibv_device_cap_flags.IBV_DEVICE_RC_RNR_NAK_GEN
    | ibv_device_cap_flags.IBV_DEVICE_SRQ_RESIZE
    | ibv_device_cap_flags.IBV_DEVICE_MEM_WINDOW
    | ibv_device_cap_flags.IBV_DEVICE_MEM_WINDOW_TYPE_2B
    | ibv_device_cap_flags.IBV_DEVICE_SYS_IMAGE_GUID
)


def guid_of(name: str, address: bytes) -> int:
    """GUID of a device: 64 bits that its name and address decide."""
    return int.from_bytes(blake2b(name.encode() + b"\0" + address, digest_size=8).digest(), "big") | 1


class _Values(PyverbsObject):
    """Numbers that a query has found."""

    def __str__(self) -> str:
        return "".join(
            f"{name.replace('_', ' '):<24}: {self._word(name, value):<20}\n" for name, value in self._pairs()
        )

    def _pairs(self) -> list[tuple[str, object]]:
        return [(name, value) for name, value in vars(self).items() if not isinstance(value, PyverbsObject)]

    def _word(self, name: str, value: object) -> str:  # noqa: ARG002 - for classes with words of their own
        return str(value)


class DeviceAttr(_Values):
    """Limits and abilities of a device.

    Parameters
    ----------
    guid : of the device
    limits : of its NIC
    """

    def __init__(self, guid: int, limits: NicLimits) -> None:
        self.fw_version = VERSION
        self.node_guid = be64toh(guid)
        self.sys_image_guid = be64toh(guid)
        self.max_mr_size = _BIG_MEMORY
        self.page_size_cap = mmap.PAGESIZE
        self.vendor_id = _VENDOR
        self.vendor_part_id = 0
        self.hw_ver = 0
        self.max_qp = limits.max_qp
        self.max_qp_wr = limits.max_qp_wr
        self.device_cap_flags = int(_CAPS)
        self.max_sge = limits.max_sge
        self.max_sge_rd = limits.max_sge
        self.max_cq = limits.max_cq
        self.max_cqe = limits.max_cqe
        self.max_mr = limits.max_mr
        self.max_pd = limits.max_mr
        self.max_qp_rd_atom = limits.max_qp_rd_atom
        self.max_ee_rd_atom = 0
        self.max_res_rd_atom = limits.max_qp_rd_atom * limits.max_qp
        self.max_qp_init_rd_atom = limits.max_qp_rd_atom
        self.max_ee_init_rd_atom = 0
        self.atomic_caps = ibv_atomic_cap.IBV_ATOMIC_HCA
        self.max_ee = 0
        self.max_rdd = 0
        self.max_mw = limits.max_mr
        self.max_raw_ipv6_qps = 0
        self.max_raw_ethy_qp = 0
        self.max_mcast_grp = getattr(limits, "max_mcast_grp", 0)
        self.max_mcast_qp_attach = getattr(limits, "max_mcast_qp_attach", 0)
        self.max_ah = limits.max_mr
        self.max_fmr = 0
        self.max_map_per_fmr = 0
        self.max_srq = limits.max_srq
        self.max_srq_wr = limits.max_qp_wr
        self.max_srq_sge = limits.max_sge
        self.max_pkeys = 1
        self.local_ca_ack_delay = 0
        self.phys_port_cnt = 1

    def _word(self, name: str, value: object) -> str:
        if name.endswith("guid") and isinstance(value, int):
            return guid_format(value)
        if name == "device_cap_flags" and isinstance(value, int):
            return translate_device_caps(value)
        return str(value)


class ODPCaps(_Values):
    """On-demand paging by transport; a software NIC reports none."""

    general_caps = 0
    rc_odp_caps = 0
    uc_odp_caps = 0
    ud_odp_caps = 0
    xrc_odp_caps = 0


class PCIAtomicCaps(_Values):
    """Atomics of the PCI bus; none."""

    fetch_add = 0
    swap = 0
    compare_swap = 0


class TSOCaps(_Values):
    """Segmentation offload of raw packets; none."""

    max_tso = 0
    supported_qpts = 0


class RSSCaps(_Values):
    """Spreading of receives over queues; none."""

    supported_qpts = 0
    max_rwq_indirection_tables = 0
    rx_hash_fields_mask = 0
    rx_hash_function = 0
    max_rwq_indirection_table_size = 0


class PacketPacingCaps(_Values):
    """Rate limits of queue pairs; none."""

    qp_rate_limit_min = 0
    qp_rate_limit_max = 0
    supported_qpts = 0


class TMCaps(_Values):
    """Tag matching; none."""

    max_rndv_hdr_size = 0
    max_num_tags = 0
    flags = 0
    max_ops = 0
    max_sge = 0


class CQModerationCaps(_Values):
    """Moderation of completion events; none."""

    max_cq_count = 0
    max_cq_period = 0


class DeviceAttrEx(_Values):
    """Extended attributes of a device.

    Parameters
    ----------
    orig_attr : the plain ones
    """

    def __init__(self, orig_attr: DeviceAttr) -> None:
        self.orig_attr = orig_attr
        self.comp_mask = 0
        self.odp_caps = ODPCaps()
        self.completion_timestamp_mask = 0
        self.hca_core_clock = 0
        self.device_cap_flags_ex = orig_attr.device_cap_flags
        self.tso_caps = TSOCaps()
        self.pci_atomic_caps = PCIAtomicCaps()
        self.rss_caps = RSSCaps()
        self.max_wq_type_rq = 0
        self.packet_pacing_caps = PacketPacingCaps()
        self.raw_packet_caps = 0
        self.tm_caps = TMCaps()
        self.cq_mod_caps = CQModerationCaps()
        self.max_dm_size = 0
        self.phys_port_cnt_ex = 1


class PortAttr(_Values):
    """Attributes of the one port of a device.

    Parameters
    ----------
    mtu_bytes : largest path MTU of the port
    bad_pkeys, bad_qkeys : packets with a wrong key so far
    """

    def __init__(self, mtu_bytes: int, bad_pkeys: int, bad_qkeys: int) -> None:
        mtu = ibv_mtu[f"IBV_MTU_{mtu_bytes}"]
        self.state = ibv_port_state.IBV_PORT_ACTIVE
        self.max_mtu = ibv_mtu.IBV_MTU_4096
        self.active_mtu = mtu
        self.gid_tbl_len = GID_TABLE
        self.port_cap_flags = int(ibv_port_cap_flags.IBV_PORT_CM_SUP | ibv_port_cap_flags.IBV_PORT_IP_BASED_GIDS)
        self.max_msg_sz = MOST_MESSAGE_BYTES
        self.bad_pkey_cntr = bad_pkeys
        self.qkey_viol_cntr = bad_qkeys
        self.pkey_tbl_len = 1
        self.lid = 0
        self.sm_lid = 0
        self.lmc = 0
        self.max_vl_num = 1
        self.sm_sl = 0
        self.subnet_timeout = 0
        self.init_type_reply = 0
        self.active_width = _WIDTH_4X
        self.active_speed = _SPEED_EDR
        self.phys_state = _LINK_UP
        self.link_layer = IBV_LINK_LAYER_ETHERNET
        self.flags = IBV_QPF_GRH_REQUIRED
        self.port_cap_flags2 = 0
        self.active_speed_ex = 0

    def _word(self, name: str, value: object) -> str:
        if not isinstance(value, int):
            return str(value)
        words = {
            "state": port_state_to_str(value),
            "max_mtu": translate_mtu(value),
            "active_mtu": translate_mtu(value),
            "active_width": width_to_str(value),
            "active_speed": speed_to_str(value, self.active_speed_ex),
            "phys_state": phys_state_to_str(value),
            "link_layer": translate_link_layer(value),
        }
        return words.get(name, str(value))


class GIDEntry(_Values):
    """An entry of the GID table.

    Parameters
    ----------
    subnet_prefix, interface_id : halves of the GID, in network order
    gid_index, port_num : place in the table
    gid_type : protocol, one of ``ibv_gid_type``
    ndev_ifindex : network interface; 0 where it is unknown
    """

    def __init__(
        self,
        subnet_prefix: int = 0,
        interface_id: int = 0,
        gid_index: int = 0,
        port_num: int = 0,
        gid_type: int = ibv_gid_type.IBV_GID_TYPE_ROCE_V2,
        ndev_ifindex: int = 0,
    ) -> None:
        self.gid_subnet_prefix = subnet_prefix
        self.gid_interface_id = interface_id
        self.gid_index = gid_index
        self.port_num = port_num
        self.gid_type = gid_type
        self.ndev_ifindex = ndev_ifindex

    def gid_str(self) -> str:
        """The GID as eight words."""
        return gid_str(self.gid_subnet_prefix, self.gid_interface_id)

    def __str__(self) -> str:
        values = {
            "GID": self.gid_str(),
            "GID Index": self.gid_index,
            "Port number": self.port_num,
            "GID type": translate_gid_type(self.gid_type),
            "Ndev ifindex": self.ndev_ifindex,
        }
        return "".join(f"{name:<24}: {value!s:<20}\n" for name, value in values.items())
