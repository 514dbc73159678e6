"""Refusals of connection management.

Source: IBTA vol. 1, 12.6.7 (REJ).
Leaves out: when a message is refused, see `cm_id` and `connection_manager`.
"""

from __future__ import annotations

from typing import Final

from weftwork.wire.cm import CmReject

__all__ = ["GUID_BYTES", "OF_NONE", "OF_REP", "OF_REQ", "rejection", "rejection_info"]

GUID_BYTES: Final = 8  # IBTA vol. 1, 12.6.7.2: identity of an adapter in a REJ
OF_REQ, OF_REP, OF_NONE = 0, 1, 2  # IBTA vol. 1, 12.6.7.1: the message that a REJ refuses
_INFO_BYTES: Final = 72


def rejection(ids: tuple[int, int], refused: int, reason: int, *, info: bytes = b"", data: bytes = b"") -> CmReject:
    """Make a REJ.

    Parameters
    ----------
    ids : communication IDs of this end and of the peer, 0 where there is none
    refused : 0 a REQ, 1 a REP, 2 no message
    reason : see `CmRejReason`
    info : what explains the reason, at most 72 bytes
    data : private data
    """
    return CmReject(
        local_comm_id=ids[0],
        remote_comm_id=ids[1],
        message_rejected=refused,
        rejected_info_bytes=len(info),
        reason=reason,
        rejected_info=int.from_bytes(info.ljust(_INFO_BYTES, b"\0")),
        private_data=data,
    )


def rejection_info(message: CmReject) -> bytes:
    """Bytes that explain the reason of a REJ."""
    return message.rejected_info.to_bytes(_INFO_BYTES)[: message.rejected_info_bytes]
