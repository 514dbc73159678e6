"""Distributions of flow sizes: published or from a user's file.

A user's file has two columns. A file has the header ``size_bytes,cumulative_percent`` and a row per corner of the
cumulative distribution, which is linear between corners, starts at 0 % and ends at 100 %. Published tables and their
sources are in `weftwork.data.published`.
Leaves out: sizes that depend on the pair of hosts or on time.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from weftwork.base.errors import ConfigError, Mistake
from weftwork.base.nearest import nearest
from weftwork.base.plain_file import read_plain

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

__all__ = ["SizeDistribution", "load_sizes", "published_sizes", "read_sizes"]

HEADER = "size_bytes,cumulative_percent"
_PREFIX = "flow_sizes_"
_LARGEST_BYTES = 2**40  # chosen: a tebibyte; beyond it a flow outlasts every simulation


@dataclass(frozen=True, kw_only=True, slots=True)
class SizeDistribution:
    """A piecewise linear cumulative distribution.

    Attributes
    ----------
    name : for people
    size_bytes : sizes at the corners, ascending
    share : cumulative shares there, ascending from 0 to 1
    """

    name: str
    size_bytes: tuple[float, ...]
    share: tuple[float, ...]

    @property
    def mean_bytes(self) -> float:
        """Mean size.

        Each segment is uniform, so that its mean is its middle.
        """
        pairs = zip(self.size_bytes, self.size_bytes[1:], self.share, self.share[1:], strict=False)
        return math.fsum((high - low) * (left + right) / 2 for left, right, low, high in pairs)

    def quantiles(self, share: NDArray[np.float64]) -> NDArray[np.int64]:
        """Quantiles of the sizes at these shares, at least one byte.

        Parameters
        ----------
        share : any shape, from 0 to below 1

        Returns
        -------
        of the same shape

        Examples
        --------
        >>> halves = SizeDistribution(name="two steps", size_bytes=(100.0, 100.0, 300.0), share=(0.0, 0.5, 1.0))
        >>> halves.quantiles(np.array([0.0, 0.5, 0.75])).tolist()
        [100, 100, 200]
        """
        corners, sizes = np.array(self.share), np.array(self.size_bytes)
        first = int(np.searchsorted(corners, 0.0, side="right"))  # a step at 0 % holds no flow
        right = np.maximum(np.searchsorted(corners, share, side="left"), first)
        low, high, below, above = corners[right - 1], corners[right], sizes[right - 1], sizes[right]
        found = np.rint(below + (above - below) * (share - low) / (high - low))
        rounded: NDArray[np.int64] = np.maximum(1, found.astype(np.int64))
        return rounded


def published_sizes() -> tuple[str, ...]:
    """Names of the distributions shipped with Weftwork."""
    folder = files("weftwork") / "data" / "published"
    names = (entry.name for entry in folder.iterdir())
    return tuple(
        sorted(
            name.removeprefix(_PREFIX).removesuffix(".csv").replace("_", "-")
            for name in names
            if name.startswith(_PREFIX) and name.endswith(".csv")
        )
    )


def load_sizes(name_or_path: str | Path) -> SizeDistribution:
    """Load a published distribution by name, or a ``.csv`` file.

    Raises
    ------
    ConfigError : no such name or file, or the file is wrong, with the line of every mistake

    Examples
    --------
    >>> round(load_sizes("web-search").mean_bytes)
    1711250
    """
    text = str(name_or_path)
    if text.endswith(".csv"):
        try:
            lines = read_plain(Path(name_or_path)).decode().splitlines()
        except OSError as error:
            mistake = Mistake(path="traffic.sizes", text=f"cannot read '{text}': {error.strerror}")
            raise ConfigError(text, [mistake]) from error
        except UnicodeDecodeError as error:
            raise ConfigError(text, [Mistake(path="traffic.sizes", text="the file is not UTF-8 text")]) from error
        return read_sizes(Path(text).stem, lines, source=text)
    names = published_sizes()
    if text not in names:
        wanted = f"found '{text}', wanted {', '.join(names)} or a file that ends in .csv"
        raise ConfigError("traffic", [Mistake(path="traffic.sizes", text=wanted, fix=nearest(text, names))])
    file = files("weftwork") / "data" / "published" / f"{_PREFIX}{text.replace('-', '_')}.csv"
    return read_sizes(text, file.read_text(encoding="utf-8").splitlines(), source=text)


def read_sizes(name: str, lines: Sequence[str], *, source: str) -> SizeDistribution:
    """Read the lines of a file; ``source`` names it in errors.

    Raises
    ------
    ConfigError : with the line of every mistake
    """
    mistakes: list[Mistake] = []
    sizes: list[float] = []
    shares: list[float] = []
    if not lines or lines[0].replace(" ", "") != HEADER:
        found = lines[0] if lines else ""
        mistakes.append(Mistake(path="header", line=1, text=f"found {found[:60]!r}, wanted '{HEADER}'"))
    for number, line in enumerate(lines[1:], start=2):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        row = _row(line)
        if row is None:
            text = f"found {line[:60]!r}, wanted a size in bytes and a percentage, such as 10000,15"
            mistakes.append(Mistake(path="row", line=number, text=text))
            continue
        size, percent = row
        if not 0 <= size <= _LARGEST_BYTES:
            mistakes.append(Mistake(path="size_bytes", line=number, text=f"found {size:g}, wanted 0 to 2**40"))
        if not 0 <= percent <= 100:
            mistakes.append(Mistake(path="cumulative_percent", line=number, text=f"found {percent:g}, wanted 0 to 100"))
        if sizes and (size < sizes[-1] or percent / 100 < shares[-1]):
            text = f"found {size:g},{percent:g} after {sizes[-1]:g},{100 * shares[-1]:g}; both columns must not fall"
            mistakes.append(Mistake(path="row", line=number, text=text))
        sizes.append(size)
        shares.append(percent / 100)
    if not mistakes and (len(sizes) < 2 or shares[0] != 0 or shares[-1] != 1):
        text = "wanted at least two rows, the first at 0 % and the last at 100 %"
        mistakes.append(Mistake(path="cumulative_percent", line=len(lines), text=text))
    if not mistakes and sizes[-1] <= 0:
        mistakes.append(
            Mistake(path="size_bytes", line=len(lines), text="every size is 0, wanted a largest size above 0")
        )
    if mistakes:
        raise ConfigError(source, mistakes)
    return SizeDistribution(name=name, size_bytes=tuple(sizes), share=tuple(shares))


def _row(line: str) -> tuple[float, float] | None:
    parts = line.split(",")
    if len(parts) != 2:
        return None
    try:
        size, percent = float(parts[0]), float(parts[1])
    except ValueError:
        return None
    return (size, percent) if math.isfinite(size) and math.isfinite(percent) else None
