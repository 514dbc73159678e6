"""Files that hold captures in another form than pcap and pcapng, by their first bytes.

Source: RFC 1952 (gzip), RFC 8878 (Zstandard), the format notes of LZ4, xz and bzip2, APPNOTE of PKWARE (ZIP),
RFC 1761 (snoop), and wiretap of Wireshark for Network Monitor and the changed pcap of Kuznetzov.
Leaves out: records of ERF without a file around them, which begin with a time.
"""

from __future__ import annotations

from typing import Final, NamedTuple

__all__ = ["ForeignCapture", "foreign_capture"]

_CONVERT: Final = "editcap -F pcapng IN OUT converts it"


class ForeignCapture(NamedTuple):
    """A form of file.

    Parameters
    ----------
    magic : its first bytes
    name : in words
    advice : how to make a pcap or pcapng of it
    """

    magic: bytes
    name: str
    advice: str


_FORMS: Final = (
    ForeignCapture(bytes.fromhex("1f8b"), "a file of gzip", "unpack it with gunzip"),
    ForeignCapture(bytes.fromhex("28b52ffd"), "a file of Zstandard", "unpack it with unzstd"),
    ForeignCapture(bytes.fromhex("04224d18"), "a file of LZ4", "unpack it with unlz4"),
    ForeignCapture(bytes.fromhex("fd377a585a00"), "a file of xz", "unpack it with unxz"),
    ForeignCapture(b"BZh", "a file of bzip2", "unpack it with bunzip2"),
    ForeignCapture(b"PK\3\4", "a ZIP archive", "unpack it with unzip"),
    ForeignCapture(b"snoop\0\0\0", "a capture of snoop", _CONVERT),
    ForeignCapture(b"GMBU", "a capture of Network Monitor", _CONVERT),
    ForeignCapture(b"RTSS", "a capture of Network Monitor", _CONVERT),
    ForeignCapture(bytes.fromhex("34cdb2a1"), "a pcap with longer records (of Kuznetzov)", _CONVERT),
    ForeignCapture(bytes.fromhex("a1b2cd34"), "a pcap with longer records (of Kuznetzov)", _CONVERT),
)


def foreign_capture(data: memoryview | bytes) -> ForeignCapture | None:
    """The form of a file that is neither pcap nor pcapng, or None if its first bytes are not known."""
    return next((form for form in _FORMS if bytes(data[: len(form.magic)]) == form.magic), None)
