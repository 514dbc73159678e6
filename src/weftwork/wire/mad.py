"""The header of a management datagram (MAD).

A UD SEND to queue pair 1 carries it.
Source: IBTA vol. 1, 13.4.3, as encoded in struct ib_mad_hdr of Linux include/rdma/ib_mad.h.
Leaves out: the classes other than communication management (see ``cm``), and messages of several datagrams (RMPP).
"""

from __future__ import annotations

from struct import Struct
from typing import NamedTuple, Self

from weftwork.wire.fields import MalformedPacket, check_fits

__all__ = [
    "CM_CLASS",
    "GENERAL_SERVICES_QP",
    "GENERAL_SERVICES_QUEUE_KEY",
    "MAD_BYTES",
    "MAD_HEADER_BYTES",
    "MadHeader",
]

MAD_BYTES = 256  # IBTA vol. 1, 13.4.2
MAD_HEADER_BYTES = 24  # IBTA vol. 1, 13.4.3
CM_CLASS = 0x07  # IB_MGMT_CLASS_CM in Linux ib_mad.h
GENERAL_SERVICES_QP = 1  # IB_QP1 in Linux ib_mad.h
GENERAL_SERVICES_QUEUE_KEY = 0x80010000  # IB_QP1_QKEY in Linux ib_mad.h
_SEND = 0x03  # IB_MGMT_METHOD_SEND in Linux ib_mad.h

_MAD = Struct(">BBBBHHQHHI")


class MadHeader(NamedTuple):
    """The first 24 bytes of a management datagram.

    Parameters
    ----------
    attribute : what the datagram is, such as the kind of a message of communication management; 16 bits
    transaction : number that requests and answers share, 64 bits
    management_class, class_version, method : 8 bits each
    base_version : 1
    status, class_specific : 16 bits each
    attribute_modifier : 32 bits
    reserved16 : sent as 0
    """

    attribute: int
    transaction: int
    management_class: int = CM_CLASS
    class_version: int = 2  # IB_CM_CLASS_VERSION in Linux ib_cm.h
    method: int = _SEND
    base_version: int = 1
    status: int = 0
    class_specific: int = 0
    attribute_modifier: int = 0
    reserved16: int = 0

    def encode(self) -> bytes:
        """24 bytes; UsageError for a field that does not fit."""
        for name in ("management_class", "class_version", "method", "base_version"):
            check_fits(name, getattr(self, name), 8)
        for name in ("attribute", "status", "class_specific", "reserved16"):
            check_fits(name, getattr(self, name), 16)
        check_fits("attribute_modifier", self.attribute_modifier, 32)
        check_fits("transaction", self.transaction, 64)
        return _MAD.pack(
            self.base_version,
            self.management_class,
            self.class_version,
            self.method,
            self.status,
            self.class_specific,
            self.transaction,
            self.attribute,
            self.reserved16,
            self.attribute_modifier,
        )

    @classmethod
    def decode(cls, data: memoryview | bytes) -> tuple[Self, memoryview]:
        """Read 24 bytes; returns record and rest, or raises MalformedPacket."""
        if len(data) < MAD_HEADER_BYTES:
            raise MalformedPacket("MAD", f"found {len(data)} bytes, wanted at least {MAD_HEADER_BYTES}")
        base, management, version, method, status, specific, transaction, attribute, reserved, modifier = (
            _MAD.unpack_from(data)
        )
        record = cls(
            attribute=attribute,
            transaction=transaction,
            management_class=management,
            class_version=version,
            method=method,
            base_version=base,
            status=status,
            class_specific=specific,
            attribute_modifier=modifier,
            reserved16=reserved,
        )
        return record, memoryview(data)[MAD_HEADER_BYTES:]
