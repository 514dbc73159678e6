"""Common parts of all codecs: the error, splitting, range checks.

Source: network byte order throughout, RFC 791, appendix B.
Leaves out: everything that belongs to one protocol.
"""

from __future__ import annotations

from weftwork.base.errors import PeerError, UsageError

__all__ = ["MalformedPacket", "check_bytes", "check_fits", "split"]


class MalformedPacket(PeerError):  # noqa: N818 - it names what arrived
    """Bytes violate their protocol: the only error of ``decode``.

    Parameters
    ----------
    layer : the protocol that refused, such as ``IPv4``
    text : what was found and what was wanted, one sentence without a full stop
    """

    def __init__(self, layer: str, text: str) -> None:
        self.layer = layer
        self.text = text
        super().__init__(layer, text)

    def __str__(self) -> str:
        return f"{self.layer}: {self.text}"


def split(data: memoryview | bytes, size_bytes: int, layer: str) -> tuple[memoryview, memoryview]:
    """Cut ``size_bytes`` off the front of ``data`` without a copy.

    Returns
    -------
    the front and the rest

    Raises
    ------
    MalformedPacket : there are fewer bytes than that
    """
    view = memoryview(data)
    if len(view) < size_bytes:
        raise MalformedPacket(layer, f"found {len(view)} bytes, wanted at least {size_bytes}")
    return view[:size_bytes], view[size_bytes:]


def check_fits(what: str, value: int, bits: int) -> None:
    """Refuse a value that does not fit its field.

    No bits are cut off in silence.

    Raises
    ------
    UsageError : ``value`` is negative or needs more than ``bits`` bits
    """
    if not 0 <= value < 1 << bits:
        raise UsageError(f"{what}: found {value}, wanted 0 to {(1 << bits) - 1}")


def check_bytes(what: str, value: bytes, size_bytes: int) -> None:
    """Refuse an address or a block of the wrong length.

    Raises
    ------
    UsageError : ``value`` does not have ``size_bytes`` bytes
    """
    if len(value) != size_bytes:
        raise UsageError(f"{what}: found {len(value)} bytes, wanted {size_bytes}")
