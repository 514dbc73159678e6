"""Letters between the two ends of a tool: JSON objects over one reliable connection.

Source: own.
Leaves out: the content of the letters, see `plan` and `ends`.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from weftwork.base.errors import PeerError

if TYPE_CHECKING:
    from weftwork.rdma.connection import RdmaConnection
    from weftwork.rdma.region import LocalRange
    from weftwork.rdma.verbs import Wc
    from weftwork.rdma.work import Work

__all__ = ["Letters"]

LONGEST_BYTES: Final = 1 << 17  # chosen: the numbers of 1,024 queue pairs take about 100 KB
_RECEIVES: Final = 2  # chosen: one that is being read, and one for the next letter


class Letters:
    """Letters of a connection, in the order of sending.

    A receive is always posted, so that a letter never waits for its reader.

    Parameters
    ----------
    connection : established, or asked for by the peer and not yet accepted
    """

    def __init__(self, connection: RdmaConnection) -> None:
        self._connection: Final = connection
        self._out: Final = connection.reg_mr(bytearray(LONGEST_BYTES))
        self._buffers: Final = [bytearray(LONGEST_BYTES) for _ in range(_RECEIVES)]
        self._regions: Final = [connection.reg_mr(buffer) for buffer in self._buffers]
        self._works: Final[list[Work[Wc]]] = [connection.recv(region) for region in self._regions]
        self._next = 0

    @property
    def has_arrived(self) -> bool:
        """Whether a letter can be read, or the connection has ended."""
        return self._works[self._next].is_done

    def send(self, letter: dict[str, Any]) -> None:
        """Send a letter and wait until the peer has it; PeerError if it is gone."""
        data = json.dumps(letter).encode()
        if len(data) > LONGEST_BYTES:
            raise PeerError(f"a letter of {len(data)} bytes is longer than {LONGEST_BYTES}")
        self._out.mr.view[: len(data)] = data
        self._connection.send(self._out[: len(data)]).wait()

    def receive(self) -> dict[str, Any]:
        """Wait for a letter; PeerError if the peer is gone or sends anything else."""
        at = self._next
        size_bytes = self._works[at].wait().byte_len
        try:
            letter = json.loads(bytes(self._buffers[at][:size_bytes]))
        except (ValueError, RecursionError) as error:
            raise PeerError("the peer sent a message that is no letter of this tool") from error
        self._works[at] = self._repost(self._regions[at])
        self._next = (at + 1) % _RECEIVES
        if not isinstance(letter, dict):
            raise PeerError("the peer sent a message that is no letter of this tool")
        return letter

    def _repost(self, region: LocalRange) -> Work[Wc]:
        return self._connection.recv(region)

    def expect(self, key: str) -> Any:  # noqa: ANN401 - what JSON holds
        """Wait for a letter with this key.

        Raises
        ------
        PeerError : the peer refused, with its reason; or another letter came
        """
        letter = self.receive()
        if "refused" in letter:
            raise PeerError(str(letter["refused"]))
        if key not in letter:
            raise PeerError(f"the peer sent {', '.join(map(str, letter))}, wanted {key}; use one version at both ends")
        return letter[key]
