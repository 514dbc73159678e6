"""The library of a collective, which launches the collective and starts each of its steps."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from weftwork.study.answer.suspect import Suspect
from weftwork.study.answer.suspicion import RunRecords, Suspicion
from weftwork.study.prepare import what_if

if TYPE_CHECKING:
    from collections.abc import Iterator


__all__ = ["SUSPICION"]


def _overhead(_: RunRecords) -> Iterator[Suspect]:
    yield Suspect(
        kind="part",
        name="overhead of the library",
        key="collective.size",
        text="launches the collective and starts each of its steps, which a larger size would hide",
        change=what_if.without_overheads,
    )


SUSPICION: Final = Suspicion(
    rank=250, key="collective.size", needs=frozenset({"collective", "idle resources"}), suspects=_overhead
)
