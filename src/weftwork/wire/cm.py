"""Messages of communication management: setup and close of connections.

Both ends send them as datagrams to queue pair 1.
Source: IBTA vol. 1, 12.6 (tables 106 to 120), as encoded in Linux include/rdma/ibta_vol1_c12.h; tshark agrees.
Leaves out: loading of alternate paths (LAP, APR), the meaning of private data, and when a message is sent.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, ClassVar, Final, Self

from weftwork.base.errors import UsageError
from weftwork.wire.bit_layout import BitField, BitLayout
from weftwork.wire.fields import MalformedPacket
from weftwork.wire.mad import CM_CLASS, MAD_BYTES, MAD_HEADER_BYTES, MadHeader

__all__ = [
    "CM_MESSAGES",
    "CmDisconnectReply",
    "CmDisconnectRequest",
    "CmMessage",
    "CmPath",
    "CmReady",
    "CmReject",
    "CmReply",
    "CmRequest",
    "CmServiceReply",
    "CmServiceRequest",
    "CmWait",
    "decode_cm",
    "encode_cm",
]

_BODY_BYTES: Final = MAD_BYTES - MAD_HEADER_BYTES
_F = BitField


@dataclass(frozen=True, kw_only=True, slots=True)
class CmPath:
    """A path as a REQ describes it: 44 bytes.

    Parameters
    ----------
    local_lid, remote_lid : 16 bits; 0xFFFF with RoCE
    local_gid, remote_gid : 128 bits
    flow_label : 20 bits
    packet_rate : 6 bits, a code of the specification
    traffic_class, hop_limit : 8 bits
    service_level : 4 bits
    is_subnet_local : whether the path stays in the subnet, 0 or 1
    local_ack_timeout : 5 bits; 4.096 us times 2 to that power
    """

    local_lid: int = 0
    remote_lid: int = 0
    local_gid: int = 0
    remote_gid: int = 0
    flow_label: int = 0
    packet_rate: int = 0
    traffic_class: int = 0
    hop_limit: int = 0
    service_level: int = 0
    is_subnet_local: int = 0
    local_ack_timeout: int = 0


_PATH: Final = (
    _F("local_lid", 0, 16),
    _F("remote_lid", 2, 16),
    _F("local_gid", 4, 128),
    _F("remote_gid", 20, 128),
    _F("flow_label", 36, 20),
    _F("packet_rate", 39, 6, bit=2),
    _F("traffic_class", 40, 8),
    _F("hop_limit", 41, 8),
    _F("service_level", 42, 4),
    _F("is_subnet_local", 42, 1, bit=4),
    _F("local_ack_timeout", 43, 5),
)


def _path_fields(prefix: str, first_byte: int) -> tuple[BitField, ...]:
    return tuple(field._replace(name=f"{prefix}.{field.name}", byte=first_byte + field.byte) for field in _PATH)


@dataclass(frozen=True, kw_only=True, slots=True)
class CmMessage:
    """The common part of all messages.

    It has a layout, private data, and the bits that the specification reserves.

    Parameters
    ----------
    private_data : of the application; shorter than the room for it, it is filled with zeros
    reserved : the bits that no field has, as one number; 0 when sent
    """

    NAME: ClassVar[str] = ""
    ATTRIBUTE: ClassVar[int] = 0
    LAYOUT: ClassVar[BitLayout]

    private_data: bytes = b""
    reserved: int = 0

    def encode(self) -> bytes:
        """The 232 bytes after the datagram header; UsageError for wrong fields.

        A field is wrong if its value does not fit.
        """
        values: dict[str, int] = {}
        for field in fields(self):
            value = getattr(self, field.name)
            if isinstance(value, CmPath):
                values |= {f"{field.name}.{inner.name}": getattr(value, inner.name) for inner in fields(value)}
            elif field.name not in {"private_data", "reserved"}:
                values[field.name] = value
        room_bytes = self.LAYOUT.data_bytes
        if len(self.private_data) > room_bytes:
            raise UsageError(f"private_data: found {len(self.private_data)} bytes, wanted up to {room_bytes}")
        return self.LAYOUT.encode(values, self.private_data.ljust(room_bytes, b"\0"), self.reserved)

    @classmethod
    def decode(cls, data: memoryview | bytes) -> tuple[Self, memoryview]:
        """Read 232 bytes; returns record and rest, or raises MalformedPacket."""
        numbers, private_data, reserved = cls.LAYOUT.decode(data)
        values: dict[str, Any] = {name: value for name, value in numbers.items() if "." not in name}
        for prefix in dict.fromkeys(name.partition(".")[0] for name in numbers if "." in name):
            inner = {name.partition(".")[2]: value for name, value in numbers.items() if name.startswith(f"{prefix}.")}
            values[prefix] = CmPath(**inner)
        record = cls(**values, private_data=private_data, reserved=reserved)
        return record, memoryview(data)[_BODY_BYTES:]


@dataclass(frozen=True, kw_only=True, slots=True)
class CmRequest(CmMessage):
    """REQ: asks for a connection (IBTA vol. 1, table 106).

    Parameters
    ----------
    local_comm_id : 32 bits; number of the conversation at the sender
    service_id : 64 bits; what is asked for; of the RDMA connection manager, the port
    local_ca_guid : 64 bits; identity of the sender's adapter
    local_queue_key : 32 bits
    local_qpn : 24 bits; queue pair of the sender
    responder_resources : 8 bits; READs and atomics that the sender takes at once
    local_eecn : 24 bits
    initiator_depth : 8 bits; READs and atomics that the sender asks for at once
    remote_eecn : 24 bits
    remote_response_timeout : 5 bits; 4.096 us times 2 to that power
    transport_service : 2 bits; 0 RC, 1 UC, 2 RD, 3 see ``extended_transport``
    has_flow_control : 1 bit; end-to-end flow control, 0 or 1
    starting_psn : 24 bits; first PSN that the receiver of this message will send (cm_req_handler in Linux cm.c)
    local_response_timeout : 5 bits
    retry_count : 3 bits
    partition_key : 16 bits
    path_mtu : 4 bits; 1 for 256 bytes to 5 for 4,096
    has_rd_channel : 1 bit
    rnr_retry_count : 3 bits; 7 without end
    cm_retries : 4 bits
    has_shared_receive_queue : 1 bit
    extended_transport : 3 bits; 1 for XRC
    primary : the path
    alternate : the path to fall back to
    has_service_agent : 1 bit; answers alternate paths, 0 or 1
    """

    NAME: ClassVar[str] = "REQ"
    ATTRIBUTE: ClassVar[int] = 0x10
    LAYOUT: ClassVar[BitLayout] = BitLayout(
        "REQ",
        _BODY_BYTES,
        (
            _F("local_comm_id", 0, 32),
            _F("service_id", 8, 64),
            _F("local_ca_guid", 16, 64),
            _F("local_queue_key", 28, 32),
            _F("local_qpn", 32, 24),
            _F("responder_resources", 35, 8),
            _F("local_eecn", 36, 24),
            _F("initiator_depth", 39, 8),
            _F("remote_eecn", 40, 24),
            _F("remote_response_timeout", 43, 5),
            _F("transport_service", 43, 2, bit=5),
            _F("has_flow_control", 43, 1, bit=7),
            _F("starting_psn", 44, 24),
            _F("local_response_timeout", 47, 5),
            _F("retry_count", 47, 3, bit=5),
            _F("partition_key", 48, 16),
            _F("path_mtu", 50, 4),
            _F("has_rd_channel", 50, 1, bit=4),
            _F("rnr_retry_count", 50, 3, bit=5),
            _F("cm_retries", 51, 4),
            _F("has_shared_receive_queue", 51, 1, bit=4),
            _F("extended_transport", 51, 3, bit=5),
            *_path_fields("primary", 52),
            *_path_fields("alternate", 96),
            _F("has_service_agent", 139, 1, bit=5),
        ),
        data_byte=140,
    )

    local_comm_id: int = 0
    service_id: int = 0
    local_ca_guid: int = 0
    local_queue_key: int = 0
    local_qpn: int = 0
    responder_resources: int = 0
    local_eecn: int = 0
    initiator_depth: int = 0
    remote_eecn: int = 0
    remote_response_timeout: int = 0
    transport_service: int = 0
    has_flow_control: int = 0
    starting_psn: int = 0
    local_response_timeout: int = 0
    retry_count: int = 0
    partition_key: int = 0
    path_mtu: int = 0
    has_rd_channel: int = 0
    rnr_retry_count: int = 0
    cm_retries: int = 0
    has_shared_receive_queue: int = 0
    extended_transport: int = 0
    primary: CmPath = CmPath()
    alternate: CmPath = CmPath()
    has_service_agent: int = 0


@dataclass(frozen=True, kw_only=True, slots=True)
class CmReply(CmMessage):
    """REP: agrees to a connection (IBTA vol. 1, table 110).

    Parameters
    ----------
    local_comm_id : 32 bits
    remote_comm_id : 32 bits; that of the REQ
    local_queue_key : 32 bits
    local_qpn : 24 bits; queue pair of the sender
    local_eecn : 24 bits
    starting_psn : 24 bits; first PSN that the receiver of this message will send (cm_req_handler in Linux cm.c)
    responder_resources : 8 bits
    initiator_depth : 8 bits
    target_ack_delay : 5 bits; 4.096 us times 2 to that power
    failover_accepted : 2 bits; 0 yes, 1 not supported, 2 path refused
    has_flow_control : 1 bit
    rnr_retry_count : 3 bits
    has_shared_receive_queue : 1 bit
    local_ca_guid : 64 bits
    """

    NAME: ClassVar[str] = "REP"
    ATTRIBUTE: ClassVar[int] = 0x13
    LAYOUT: ClassVar[BitLayout] = BitLayout(
        "REP",
        _BODY_BYTES,
        (
            _F("local_comm_id", 0, 32),
            _F("remote_comm_id", 4, 32),
            _F("local_queue_key", 8, 32),
            _F("local_qpn", 12, 24),
            _F("local_eecn", 16, 24),
            _F("starting_psn", 20, 24),
            _F("responder_resources", 24, 8),
            _F("initiator_depth", 25, 8),
            _F("target_ack_delay", 26, 5),
            _F("failover_accepted", 26, 2, bit=5),
            _F("has_flow_control", 26, 1, bit=7),
            _F("rnr_retry_count", 27, 3),
            _F("has_shared_receive_queue", 27, 1, bit=3),
            _F("local_ca_guid", 28, 64),
        ),
        data_byte=36,
    )

    local_comm_id: int = 0
    remote_comm_id: int = 0
    local_queue_key: int = 0
    local_qpn: int = 0
    local_eecn: int = 0
    starting_psn: int = 0
    responder_resources: int = 0
    initiator_depth: int = 0
    target_ack_delay: int = 0
    failover_accepted: int = 0
    has_flow_control: int = 0
    rnr_retry_count: int = 0
    has_shared_receive_queue: int = 0
    local_ca_guid: int = 0


@dataclass(frozen=True, kw_only=True, slots=True)
class CmReady(CmMessage):
    """RTU: the sender is ready to use the connection.

    Source: IBTA vol. 1, table 111.

    Parameters
    ----------
    local_comm_id : 32 bits
    remote_comm_id : 32 bits
    """

    NAME: ClassVar[str] = "RTU"
    ATTRIBUTE: ClassVar[int] = 0x14
    LAYOUT: ClassVar[BitLayout] = BitLayout(
        "RTU",
        _BODY_BYTES,
        (
            _F("local_comm_id", 0, 32),
            _F("remote_comm_id", 4, 32),
        ),
        data_byte=8,
    )

    local_comm_id: int = 0
    remote_comm_id: int = 0


@dataclass(frozen=True, kw_only=True, slots=True)
class CmReject(CmMessage):
    """REJ: refuses a message (IBTA vol. 1, table 108).

    Parameters
    ----------
    local_comm_id : 32 bits; 0 where there is none
    remote_comm_id : 32 bits
    message_rejected : 2 bits; 0 REQ, 1 REP, 2 no message
    rejected_info_bytes : 7 bits; of ``rejected_info`` that count
    reason : 16 bits; such as 28, by the application
    rejected_info : 576 bits; 72 bytes as one number
    """

    NAME: ClassVar[str] = "REJ"
    ATTRIBUTE: ClassVar[int] = 0x12
    LAYOUT: ClassVar[BitLayout] = BitLayout(
        "REJ",
        _BODY_BYTES,
        (
            _F("local_comm_id", 0, 32),
            _F("remote_comm_id", 4, 32),
            _F("message_rejected", 8, 2),
            _F("rejected_info_bytes", 9, 7),
            _F("reason", 10, 16),
            _F("rejected_info", 12, 576),
        ),
        data_byte=84,
    )

    local_comm_id: int = 0
    remote_comm_id: int = 0
    message_rejected: int = 0
    rejected_info_bytes: int = 0
    reason: int = 0
    rejected_info: int = 0


@dataclass(frozen=True, kw_only=True, slots=True)
class CmWait(CmMessage):
    """MRA: a message has come, and its answer takes time.

    Source: IBTA vol. 1, table 107.

    Parameters
    ----------
    local_comm_id : 32 bits
    remote_comm_id : 32 bits
    message_received : 2 bits; 0 REQ, 1 REP, 2 LAP
    service_timeout : 5 bits; 4.096 us times 2 to that power
    """

    NAME: ClassVar[str] = "MRA"
    ATTRIBUTE: ClassVar[int] = 0x11
    LAYOUT: ClassVar[BitLayout] = BitLayout(
        "MRA",
        _BODY_BYTES,
        (
            _F("local_comm_id", 0, 32),
            _F("remote_comm_id", 4, 32),
            _F("message_received", 8, 2),
            _F("service_timeout", 9, 5),
        ),
        data_byte=10,
    )

    local_comm_id: int = 0
    remote_comm_id: int = 0
    message_received: int = 0
    service_timeout: int = 0


@dataclass(frozen=True, kw_only=True, slots=True)
class CmDisconnectRequest(CmMessage):
    """DREQ: asks to close a connection (IBTA vol. 1, table 112).

    Parameters
    ----------
    local_comm_id : 32 bits
    remote_comm_id : 32 bits
    remote_qpn : 24 bits; queue pair of the receiver
    """

    NAME: ClassVar[str] = "DREQ"
    ATTRIBUTE: ClassVar[int] = 0x15
    LAYOUT: ClassVar[BitLayout] = BitLayout(
        "DREQ",
        _BODY_BYTES,
        (
            _F("local_comm_id", 0, 32),
            _F("remote_comm_id", 4, 32),
            _F("remote_qpn", 8, 24),
        ),
        data_byte=12,
    )

    local_comm_id: int = 0
    remote_comm_id: int = 0
    remote_qpn: int = 0


@dataclass(frozen=True, kw_only=True, slots=True)
class CmDisconnectReply(CmMessage):
    """DREP: says that a connection is closed (IBTA vol. 1, table 113).

    Parameters
    ----------
    local_comm_id : 32 bits
    remote_comm_id : 32 bits
    """

    NAME: ClassVar[str] = "DREP"
    ATTRIBUTE: ClassVar[int] = 0x16
    LAYOUT: ClassVar[BitLayout] = BitLayout(
        "DREP",
        _BODY_BYTES,
        (
            _F("local_comm_id", 0, 32),
            _F("remote_comm_id", 4, 32),
        ),
        data_byte=8,
    )

    local_comm_id: int = 0
    remote_comm_id: int = 0


@dataclass(frozen=True, kw_only=True, slots=True)
class CmServiceRequest(CmMessage):
    """SIDR_REQ: asks for the queue pair of a datagram service.

    Source: IBTA vol. 1, table 119.

    Parameters
    ----------
    request_id : 32 bits
    partition_key : 16 bits
    service_id : 64 bits
    """

    NAME: ClassVar[str] = "SIDR_REQ"
    ATTRIBUTE: ClassVar[int] = 0x17
    LAYOUT: ClassVar[BitLayout] = BitLayout(
        "SIDR_REQ",
        _BODY_BYTES,
        (
            _F("request_id", 0, 32),
            _F("partition_key", 4, 16),
            _F("service_id", 8, 64),
        ),
        data_byte=16,
    )

    request_id: int = 0
    partition_key: int = 0
    service_id: int = 0


@dataclass(frozen=True, kw_only=True, slots=True)
class CmServiceReply(CmMessage):
    """SIDR_REP: names the queue pair of a datagram service.

    Source: IBTA vol. 1, table 120.

    Parameters
    ----------
    request_id : 32 bits
    status : 8 bits; 0 is valid
    additional_info_bytes : 8 bits; of ``additional_info`` that count
    service_qpn : 24 bits
    service_id : 64 bits
    queue_key : 32 bits
    additional_info : 576 bits; 72 bytes as one number
    """

    NAME: ClassVar[str] = "SIDR_REP"
    ATTRIBUTE: ClassVar[int] = 0x18
    LAYOUT: ClassVar[BitLayout] = BitLayout(
        "SIDR_REP",
        _BODY_BYTES,
        (
            _F("request_id", 0, 32),
            _F("status", 4, 8),
            _F("additional_info_bytes", 5, 8),
            _F("service_qpn", 8, 24),
            _F("service_id", 12, 64),
            _F("queue_key", 20, 32),
            _F("additional_info", 24, 576),
        ),
        data_byte=96,
    )

    request_id: int = 0
    status: int = 0
    additional_info_bytes: int = 0
    service_qpn: int = 0
    service_id: int = 0
    queue_key: int = 0
    additional_info: int = 0


CM_MESSAGES: Final[dict[int, type[CmMessage]]] = {
    kind.ATTRIBUTE: kind
    for kind in (
        CmRequest,
        CmWait,
        CmReject,
        CmReply,
        CmReady,
        CmDisconnectRequest,
        CmDisconnectReply,
        CmServiceRequest,
        CmServiceReply,
    )
}  # by the attribute of the datagram (CM_REQ_ATTR_ID and so on in Linux ib_cm.h)


def encode_cm(message: CmMessage, transaction: int) -> bytes:
    """UD SEND payload of a message, 256 bytes; UsageError for wrong fields.

    A field is wrong if its value does not fit.
    """
    return MadHeader(attribute=message.ATTRIBUTE, transaction=transaction).encode() + message.encode()


def decode_cm(data: memoryview | bytes) -> tuple[MadHeader, CmMessage]:
    """Read the payload of a UD SEND to queue pair 1.

    Raises
    ------
    MalformedPacket : too few bytes, another class of management, or a message that this module does not know
    """
    header, body = MadHeader.decode(data)
    if header.management_class != CM_CLASS:
        raise MalformedPacket("MAD", f"found class {header.management_class:#04x}, wanted {CM_CLASS:#04x} (CM)")
    kind = CM_MESSAGES.get(header.attribute)
    if kind is None:
        raise MalformedPacket("CM", f"found attribute {header.attribute:#06x}, wanted one of REQ to SIDR_REP")
    return header, kind.decode(body)[0]
