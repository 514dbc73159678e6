"""Requests of a connection that the other end has to refuse, and the refusals that it sent."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from helpers.cm_pair import CmPair

from weftwork.rdma.cm_records import CmEventType, CmRejReason
from weftwork.rdma.cm_states import CmState
from weftwork.wire.cm import (
    CmReject,
    CmRequest,
)
from weftwork.wire.rdma_ip_cm import IpCmHeader

E, R, S = CmEventType, CmRejReason, CmState


def asked(pair: CmPair) -> tuple[CmRequest, int]:
    """A right REQ of end 0 that has not been sent, and its transaction."""
    mine = pair.connect()
    return mine._request, mine._transaction


def rejections(pair: CmPair) -> list[CmReject]:
    return [message for _, _, message in pair.messages() if isinstance(message, CmReject)]


def bad_header(request: CmRequest, **change: Any) -> CmRequest:
    header, user = IpCmHeader.decode(request.private_data)
    return replace(request, private_data=replace(header, **change).encode() + bytes(user))
