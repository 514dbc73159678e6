"""Addresses: GIDs, routes, address handles.

Source: pyverbs, addr.pyx (names); IBTA vol. 1, 11.2.2 (address handles) and annex A17.4.5 (GIDs of RoCEv2).
Leaves out: local identifiers; on Ethernet all addresses are global.
"""

from __future__ import annotations

import copy
import ctypes
from errno import EINVAL, ENODATA
from typing import TYPE_CHECKING, Final

from weftwork.compat.pyverbs.base import PyverbsCM, PyverbsObject
from weftwork.compat.pyverbs.device_attr import FILLED_GIDS, GID_TABLE
from weftwork.compat.pyverbs.pyverbs_error import PyverbsRDMAError, PyverbsUserError
from weftwork.compat.pyverbs.software_nics import address_of, gid_of
from weftwork.compat.pyverbs.utils import gid_bytes
from weftwork.rdma.unreliable import GRH_BYTES
from weftwork.rdma.verbs import AddressHandle

if TYPE_CHECKING:
    from weftwork.compat.pyverbs.cq import WC
    from weftwork.compat.pyverbs.pd import PD

__all__ = ["AH", "GID", "GRH", "AHAttr", "GlobalRoute"]

_NO_GID: Final = bytes(16)
_DSCP_SHIFT: Final = 2  # RFC 2474: the upper six bits of the traffic class
_IPV4_AT: Final = 20  # IBTA vol. 1, annex A17.4.5.2: an IPv4 header lies in the last 20 bytes of the space for a GRH


def _text(gid: bytes) -> str:
    return ":".join(gid[at : at + 2].hex() for at in range(0, 16, 2))


class GID(PyverbsObject):
    """A GID.

    Parameters
    ----------
    val : eight words, ``xxxx:xxxx:xxxx:xxxx:xxxx:xxxx:xxxx:xxxx``

    Attributes
    ----------
    raw : its 16 bytes
    """

    def __init__(self, val: str | None = None) -> None:
        self.raw = gid_bytes(val) if val is not None else _NO_GID

    @classmethod
    def of_bytes(cls, raw: bytes) -> GID:
        """Make a GID of 16 bytes."""
        gid = cls()
        gid.raw = raw
        return gid

    @property
    def gid(self) -> str:
        """Text of eight words."""
        return _text(self.raw)

    @gid.setter
    def gid(self, val: str) -> None:
        self.raw = gid_bytes(val)

    def __str__(self) -> str:
        return self.gid


class _Route(PyverbsObject):
    """The destination of a global route."""

    _dgid: bytes

    @property
    def dgid(self) -> str:
        """Destination, as eight words."""
        return _text(self._dgid)

    @dgid.setter
    def dgid(self, val: str) -> None:
        self._dgid = gid_bytes(val)


class GRH(_Route):
    """A global routing header.

    Parameters
    ----------
    sgid, dgid : source and destination
    version_tclass_flow : 32 bits: version, traffic class and flow label
    paylen : bytes behind the header
    next_hdr, hop_limit : as in the packet
    """

    def __init__(
        self,
        sgid: GID | None = None,
        dgid: GID | None = None,
        version_tclass_flow: int = 0,
        paylen: int = 0,
        next_hdr: int = 0,
        hop_limit: int = 1,
    ) -> None:
        self._sgid = sgid.raw if sgid is not None else _NO_GID
        self._dgid = dgid.raw if dgid is not None else _NO_GID
        self.version_tclass_flow = version_tclass_flow
        self.paylen = paylen
        self.next_hdr = next_hdr
        self.hop_limit = hop_limit

    @property
    def sgid(self) -> str:
        """Source, as eight words."""
        return _text(self._sgid)

    @sgid.setter
    def sgid(self, val: str) -> None:
        self._sgid = gid_bytes(val)


class GlobalRoute(_Route):
    """Where packets of an address handle go.

    Parameters
    ----------
    dgid : destination
    flow_label : 20 bits
    sgid_index : source, in the GID table of the port
    hop_limit : routers that a packet may pass
    traffic_class : of the IP header
    """

    def __init__(
        self,
        dgid: GID | None = None,
        flow_label: int = 0,
        sgid_index: int = 0,
        hop_limit: int = 1,
        traffic_class: int = 0,
    ) -> None:
        self._dgid = dgid.raw if dgid is not None else _NO_GID
        self.flow_label = flow_label
        self.sgid_index = sgid_index
        self.hop_limit = hop_limit
        self.traffic_class = traffic_class


class AHAttr(PyverbsObject):
    """Attributes of an address handle.

    Parameters
    ----------
    dlid, sl, src_path_bits, static_rate : of InfiniBand; RoCE ignores them
    is_global : whether ``gr`` is given; RoCE needs it
    port_num : port of the device, 1
    gr : route
    """

    def __init__(
        self,
        dlid: int = 0,
        sl: int = 0,
        src_path_bits: int = 0,
        static_rate: int = 0,
        is_global: int = 0,
        port_num: int = 1,
        gr: GlobalRoute | None = None,
    ) -> None:
        self.dlid = dlid
        self.sl = sl
        self.src_path_bits = src_path_bits
        self.static_rate = static_rate
        self.is_global = is_global
        self.port_num = port_num
        if is_global and gr is None:
            raise PyverbsUserError("Global AH Attr is created but gr parameter is None")
        self.route = copy.copy(gr) if is_global and gr is not None else GlobalRoute()

    @property
    def dgid(self) -> str | None:
        """Destination, as eight words; None without a route."""
        return self.route.dgid if self.is_global else None

    @dgid.setter
    def dgid(self, val: str) -> None:
        if self.is_global:
            self.route.dgid = val

    @property
    def flow_label(self) -> int | None:
        """Flow label of the route, or None."""
        return self.route.flow_label if self.is_global else None

    @flow_label.setter
    def flow_label(self, val: int) -> None:
        self.route.flow_label = val

    @property
    def sgid_index(self) -> int | None:
        """Index of the source, or None."""
        return self.route.sgid_index if self.is_global else None

    @sgid_index.setter
    def sgid_index(self, val: int) -> None:
        self.route.sgid_index = val

    @property
    def hop_limit(self) -> int | None:
        """Hop limit of the route, or None."""
        return self.route.hop_limit if self.is_global else None

    @hop_limit.setter
    def hop_limit(self, val: int) -> None:
        self.route.hop_limit = val

    @property
    def traffic_class(self) -> int | None:
        """Traffic class of the route, or None."""
        return self.route.traffic_class if self.is_global else None

    @traffic_class.setter
    def traffic_class(self, val: int) -> None:
        self.route.traffic_class = val

    def copied(self) -> AHAttr:
        """Make a copy that does not change with this one."""
        other = copy.copy(self)
        other.route = copy.copy(self.route)
        return other

    def check(self, what: str) -> None:
        """Refuse what the kernel refuses of an address of RoCE.

        Source: rdma_check_ah_attr and rdma_fill_sgid_attr in Linux drivers/infiniband/core/verbs.c, and
        rdma_get_gid_attr in cache.c. No route leads to a destination of zeros.

        Raises
        ------
        PyverbsRDMAError : EINVAL without a GID, for another port, for an index beyond the table, and for a destination
            of zeros; ENODATA for an empty entry of the table
        """
        if not self.is_global:
            raise PyverbsRDMAError(f"{what} (the address has no GID)", EINVAL)
        if self.port_num != 1:
            raise PyverbsRDMAError(f"{what} (the address names port {self.port_num}, wanted 1)", EINVAL)
        index = self.route.sgid_index
        if not 0 <= index < GID_TABLE:
            raise PyverbsRDMAError(f"{what} (sgid_index {index} is beyond the table of {GID_TABLE} GIDs)", EINVAL)
        if index >= FILLED_GIDS:
            raise PyverbsRDMAError(f"{what} (sgid_index {index} is an empty entry of the GID table)", ENODATA)
        if gid_bytes(self.route.dgid) == _NO_GID:
            raise PyverbsRDMAError(f"{what} (the GID of the destination is zero)", EINVAL)

    def address(self, size_bytes: int) -> bytes:
        """IP address of the destination.

        Parameters
        ----------
        size_bytes : of the addresses of the NIC, 4 or 16
        """
        return address_of(gid_bytes(self.route.dgid), size_bytes)


class AH(PyverbsCM):
    """An address handle: receiver of datagrams.

    Parameters
    ----------
    pd : protection domain
    attr : where it is; or instead of it
    wc, grh, port_num : completion of a datagram, address of the 40 bytes in front of its payload, and port: the handle
        is then that of the sender

    Attributes
    ----------
    handle : for the NIC
    """

    def __init__(
        self,
        pd: PD,
        *,
        attr: AHAttr | None = None,
        wc: WC | None = None,
        grh: int = 0,
        port_num: int = 1,
    ) -> None:
        size_bytes = len(pd.nic.address)
        if attr is None and wc is not None and grh:
            attr = _answer_to(grh, port_num, size_bytes)
        if attr is None:
            raise PyverbsRDMAError("Failed to create AH", EINVAL)
        attr.check("Failed to create AH")
        self.handle = AddressHandle(address=attr.address(size_bytes), dscp=attr.route.traffic_class >> _DSCP_SHIFT)
        self.pd: PD | None = pd
        pd.add_ref(self)

    def close(self) -> None:
        """Forget the handle."""
        self.pd = None


def _answer_to(grh: int, port_num: int, size_bytes: int) -> AHAttr:
    """Attributes of the sender of a datagram.

    Parameters
    ----------
    grh : address of the 40 bytes in front of the payload, which hold the IP header
    port_num : port of the device
    size_bytes : of an address
    """
    header = ctypes.string_at(grh, GRH_BYTES)
    source = header[_IPV4_AT + 12 : _IPV4_AT + 16] if size_bytes == 4 else header[8:24]
    return AHAttr(is_global=1, port_num=port_num, gr=GlobalRoute(dgid=GID.of_bytes(gid_of(source))))
