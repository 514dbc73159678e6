"""Shares, or categories, as a PNG of few colours.

The image is small enough to be part of a page.

Source: PNG (Portable Network Graphics) Specification, third edition, W3C, sections 5 and 11.
Leaves out: everything that these images do not need, such as filters and other depths.
"""

from __future__ import annotations

import base64
import struct
import zlib
from typing import TYPE_CHECKING, Any

import numpy as np

from weftwork.report.figures.colours import ramp

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["LEVELS", "levels", "png", "png_of", "png_url"]

LEVELS = 100  # index 0 is nothing at all and transparent; 1 ... 100 are per cent, rounded up


def levels(shares: NDArray[Any]) -> NDArray[np.uint8]:
    """Shares from 0 to 1 as indices of the palette."""
    return np.asarray(np.ceil(np.clip(shares, 0.0, 1.0) * LEVELS), np.uint8)


def png(indices: NDArray[np.uint8], theme: str) -> bytes:
    """Encode an image.

    Parameters
    ----------
    indices : shape (rows, columns), from `levels`
    theme : of `weftwork.report.figures.colours.ramp`
    """
    return png_of(indices, ramp(theme, LEVELS))


def png_of(indices: NDArray[np.uint8], colours: NDArray[np.uint8]) -> bytes:
    """Encode an image of chosen colours.

    Parameters
    ----------
    indices : shape (rows, columns); 0 is transparent
    colours : shape (colours, 3), of the indices from 1 on
    """
    rows, columns = indices.shape
    colours = np.vstack([np.zeros((1, 3), np.uint8), colours])
    raw = np.hstack([np.zeros((rows, 1), np.uint8), indices]).tobytes()  # every row begins with its filter, 0: none
    header = struct.pack(">IIBBBBB", columns, rows, 8, 3, 0, 0, 0)  # 8 bits, colours by index
    chunks = (
        (b"IHDR", header),
        (b"PLTE", colours.tobytes()),
        (b"tRNS", b"\x00"),
        (b"IDAT", zlib.compress(raw, 9)),
        (b"IEND", b""),
    )
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data)) for name, data in chunks
    )


def png_url(indices: NDArray[np.uint8], theme: str) -> str:
    """The image as a data URL that needs no network."""
    return "data:image/png;base64," + base64.b64encode(png(indices, theme)).decode()
