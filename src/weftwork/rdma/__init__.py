"""RDMA in software: a RoCEv2 NIC for any Linux machine, and its verbs."""

from __future__ import annotations

TYPE_CHECKING = False  # as `typing` has it, whose import takes longer than all the rest
if TYPE_CHECKING:
    from typing import Any

    from weftwork.base.errors import PeerError
    from weftwork.rdma.connection import RdmaConnection
    from weftwork.rdma.device import RdmaDevice
    from weftwork.rdma.region import LocalRange, RemoteRange
    from weftwork.rdma.rendezvous import RdmaConnector, RdmaListener, Rendezvous, connect, listen
    from weftwork.rdma.verbs import (
        AccessFlags,
        AddressHandle,
        QpAttr,
        QpState,
        QpType,
        RecvWr,
        SendFlags,
        SendWr,
        Sge,
        Wc,
        WcOpcode,
        WcStatus,
        WrOpcode,
    )
    from weftwork.rdma.work import Work, WorkError

_VERBS = (
    *("AccessFlags", "AddressHandle", "QpAttr", "QpState", "QpType", "RecvWr", "SendFlags", "SendWr", "Sge"),
    *("Wc", "WcOpcode", "WcStatus", "WrOpcode"),
)
# Imported when first used, since `weftwork rdma decode` needs no sockets.
_HOMES = {
    **dict.fromkeys(_VERBS, "weftwork.rdma.verbs"),
    "LocalRange": "weftwork.rdma.region",
    "PeerError": "weftwork.base.errors",
    "RdmaConnection": "weftwork.rdma.connection",
    "RdmaConnector": "weftwork.rdma.rendezvous",
    "RdmaDevice": "weftwork.rdma.device",
    "RdmaListener": "weftwork.rdma.rendezvous",
    "RemoteRange": "weftwork.rdma.region",
    "Rendezvous": "weftwork.rdma.rendezvous",
    "Work": "weftwork.rdma.work",
    "WorkError": "weftwork.rdma.work",
    "connect": "weftwork.rdma.rendezvous",
    "listen": "weftwork.rdma.rendezvous",
}

__all__ = [
    "AccessFlags",
    "AddressHandle",
    "LocalRange",
    "PeerError",
    "QpAttr",
    "QpState",
    "QpType",
    "RdmaConnection",
    "RdmaConnector",
    "RdmaDevice",
    "RdmaListener",
    "RecvWr",
    "RemoteRange",
    "Rendezvous",
    "SendFlags",
    "SendWr",
    "Sge",
    "Wc",
    "WcOpcode",
    "WcStatus",
    "Work",
    "WorkError",
    "WrOpcode",
    "connect",
    "listen",
]


def __getattr__(name: str) -> Any:  # noqa: ANN401 - whatever the name stands for
    if name not in _HOMES:
        message = f"module 'weftwork.rdma' has no attribute {name!r}"
        raise AttributeError(message)
    from importlib import import_module

    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
