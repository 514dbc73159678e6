"""Control characters of printed texts, spelled out.

Names may come from files of others.

In a terminal such characters move the cursor, change the title of the window and more. Of the sequences only those that
set colours pass, since Rich writes such itself.
"""

from __future__ import annotations

import re
from typing import IO, Any, Final

__all__ = ["Printable", "printable"]

# ECMA-48: C0 but the line feed, DEL and C1; a sequence that ends in m (SGR) sets colours and faces alone
_CONTROL: Final = re.compile(r"(\x1b\[[0-9;]*m)|[\x00-\x09\x0b-\x1f\x7f-\x9f]")


def printable(text: str) -> str:
    r"""Spell out control characters, except line ends and colours.

    Examples
    --------
    >>> printable("leaf0\x1b]0;title\x07")
    'leaf0\\x1b]0;title\\x07'
    """
    return _CONTROL.sub(lambda found: found[1] or ascii(found[0])[1:-1], text)


class Printable:
    """A stream that writes texts as `printable` spells them."""

    def __init__(self, stream: IO[str]) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        """Write a text."""
        return self._stream.write(printable(text))

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - whatever the stream has
        return getattr(self._stream, name)
