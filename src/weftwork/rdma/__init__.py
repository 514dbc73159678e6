"""RDMA in software: a NIC that speaks RoCEv2 on any Linux machine, and the verbs to use it."""

from __future__ import annotations

TYPE_CHECKING = False  # as `typing` has it, whose import takes longer than all the rest
if TYPE_CHECKING:
    from typing import Any

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
    **dict.fromkeys(_VERBS, "verbs"),
    "LocalRange": "region",
    "RdmaConnection": "connection",
    "RdmaConnector": "rendezvous",
    "RdmaDevice": "device",
    "RdmaListener": "rendezvous",
    "RemoteRange": "region",
    "Rendezvous": "rendezvous",
    "Work": "work",
    "WorkError": "work",
    "connect": "rendezvous",
    "listen": "rendezvous",
}

__all__ = [
    "AccessFlags",
    "AddressHandle",
    "LocalRange",
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

    return getattr(import_module(f"weftwork.rdma.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
