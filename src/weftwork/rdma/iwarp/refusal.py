"""Refusals of what the peer has sent: the code of the Terminate that answers it.

Source: RFC 5040, 7 and 8 (RDMAP), RFC 5041, 6.2 and 7.1 (DDP).
Leaves out: refusals of MPA, which `queue_pair` maps.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from weftwork.base.errors import PeerError
from weftwork.rdma.memory import AccessRefusal
from weftwork.rdma.verbs import AccessFlags
from weftwork.wire.rdmap import TerminateCode

if TYPE_CHECKING:
    from weftwork.rdma.iwarp.queue_pair import IwarpQueuePair

__all__ = ["SegmentRefused", "peer_memory"]

_T = TerminateCode
# RFC 5041, 7.1: DDP checks the place of a tagged segment. RFC 5040, 7.1: rights are the affair of RDMAP.
_OF_WRITE: Final = {
    AccessRefusal.UNKNOWN_KEY: _T.DDP_INVALID_STAG,
    AccessRefusal.OTHER_OWNER: _T.DDP_NOT_ASSOCIATED,
    AccessRefusal.NO_RIGHT: _T.RDMAP_ACCESS,
    AccessRefusal.OUT_OF_BOUNDS: _T.DDP_BOUNDS,
}
_OF_REQUEST: Final = {
    AccessRefusal.UNKNOWN_KEY: _T.RDMAP_INVALID_STAG,
    AccessRefusal.OTHER_OWNER: _T.RDMAP_NOT_ASSOCIATED,
    AccessRefusal.NO_RIGHT: _T.RDMAP_ACCESS,
    AccessRefusal.OUT_OF_BOUNDS: _T.RDMAP_BOUNDS,
}
_SPACE: Final = 1 << 64


class SegmentRefused(PeerError):  # noqa: N818 - it says what happened to a segment
    """A segment of the peer breaks the protocol or asks for too much.

    Parameters
    ----------
    code : of the Terminate
    has_request : the segment is a request of RDMAP, whose header the Terminate repeats
    """

    def __init__(self, code: TerminateCode, *, has_request: bool = False) -> None:
        self.code = code
        self.has_request = has_request
        super().__init__(code, has_request)

    def __str__(self) -> str:
        return f"the segment was refused: {self.code.name}"


def peer_memory(qp: IwarpQueuePair, stag: int, offset: int, length: int, access: AccessFlags) -> memoryview:
    """Memory that the peer may use so.

    Of nothing, neither STag nor offset is checked (RFC 5040, 5.1 and 5.2). A WRITE is checked as by DDP, a request as
    by RDMAP.

    Raises
    ------
    SegmentRefused : it may not
    """
    if length == 0:
        return memoryview(b"")
    is_write = access is AccessFlags.REMOTE_WRITE
    if offset + length > _SPACE:
        raise SegmentRefused(_T.DDP_OFFSET_WRAP if is_write else _T.RDMAP_OFFSET_WRAP, has_request=not is_write)
    found = None
    if int(qp.attr.qp_access_flags) & int(access):
        found = qp.memory.remote(qp.pd, stag, offset, length, access, qp.qp_num)
    if found is None:
        why = qp.memory.refusal(qp.pd, stag, offset, length, access, qp.qp_num)
        table = _OF_WRITE if is_write else _OF_REQUEST
        raise SegmentRefused(_T.RDMAP_ACCESS if why is None else table[why], has_request=not is_write)
    return found
