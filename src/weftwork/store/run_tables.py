"""The tables of a run as attributes, for completion of their names.

Leaves out: what their columns mean (`weftwork.spec.result`), and how a table is read (`weftwork.store.runs`).
"""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, NoReturn

from weftwork.base.nearest import nearest
from weftwork.spec.result import TABLES

if TYPE_CHECKING:
    from pathlib import Path

    import pyarrow as pa

__all__ = ["RunTables"]


class RunTables:
    """An attribute for each table, read as Arrow on demand."""

    path: Path

    @abstractmethod
    def table(self, name: str) -> pa.Table:
        """Read one table."""

    @abstractmethod
    def has_table(self, name: str) -> bool:
        """Whether the run has a table, with rows or without."""

    @property
    def tables(self) -> tuple[str, ...]:
        """Names of the tables of the run, with rows or without.

        Each of several seeds has its own tables (``run.seeds``).
        """
        return tuple(name for name in TABLES if self.has_table(name))

    def __dir__(self) -> list[str]:
        missing = set(TABLES) - set(self.tables)
        return [name for name in super().__dir__() if name not in missing]

    if not TYPE_CHECKING:  # a type checker then knows the names below and refuses any other

        def __getattr__(self, name: str) -> NoReturn:
            known = [one for one in super().__dir__() if not one.startswith("_")]
            near = None if name.startswith("_") else nearest(name, known)
            hint = "" if near is None else f"; did you mean {near!r}?"
            message = f"{type(self).__name__!r} object has no attribute {name!r}{hint}"
            raise AttributeError(message)

    @property
    def flows(self) -> pa.Table:
        """One row per message."""
        return self.table("flows")

    @property
    def links(self) -> pa.Table:
        """One row per direction of a link."""
        return self.table("links")

    @property
    def rates(self) -> pa.Table:
        """One row per change of a link's rate by a fault."""
        return self.table("rates")

    @property
    def collectives(self) -> pa.Table:
        """One row per collective operation."""
        return self.table("collectives")

    @property
    def series(self) -> pa.Table:
        """Samples of the flows and ports that were chosen."""
        return self.table("series")

    @property
    def events(self) -> pa.Table:
        """Pauses, marks, drops by reason, retransmissions and faults."""
        return self.table("events")

    @property
    def timeline(self) -> pa.Table:
        """One row per port and bin of time: bytes, queue, marks, drops, pauses."""
        return self.table("timeline")

    @property
    def paths(self) -> pa.Table:
        """One row per queue pair and sending port on its path."""
        return self.table("paths")

    @property
    def nodes(self) -> pa.Table:
        """One row per host and switch."""
        return self.table("nodes")

    @property
    def segments(self) -> pa.Table:
        """One row per stretch of a rank's time in training: compute, exposed communication, bubble."""
        return self.table("segments")

    @property
    def activities(self) -> pa.Table:
        """One row per communication of training: collective or message."""
        return self.table("activities")

    @property
    def tiers(self) -> pa.Table:
        """One row per tier of the network and bin of time."""
        return self.table("tiers")

    @property
    def jobs(self) -> pa.Table:
        """One row per training job: iteration, tokens, MFU, shares."""
        return self.table("jobs")

    @property
    def what_if(self) -> pa.Table:
        """One row per imagined case: what an iteration would take without one limit."""
        return self.table("what_if")

    @property
    def waits(self) -> pa.Table:
        """One row per rank that still waited when the run ended."""
        return self.table("waits")

    @property
    def deadlock(self) -> pa.Table:
        """One row per port of a cycle of pauses."""
        return self.table("deadlock")

    @property
    def victims(self) -> pa.Table:
        """One row per flow that PFC held back at a port off its path."""
        return self.table("victims")
