"""A run's series over time as arrays, and the directions of its fabric.

A direction is the ports that send from one tier to another.

Reads the tables `timeline`, `links` and `nodes` of a run's folder and nothing else. Leaves out: runs without those
tables; for them `read_over_time` and `directions` give None and nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from weftwork.base.clock import SECOND_PS
from weftwork.base.grammar import plural
from weftwork.report.link_rates import read_link_rates

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from weftwork.report.link_rates import LinkRates
    from weftwork.store.runs import Run

__all__ = ["Direction", "OverTime", "directions", "plural_role", "read_over_time"]


@dataclass(frozen=True, kw_only=True)
class Direction:
    """Ports that send from one kind of node to another.

    An example is ``leaf -> spine``.

    Attributes
    ----------
    name : for people
    ports : numbers of the ports, ascending
    rate_bps : of all of them together
    """

    name: str
    ports: NDArray[np.int64]
    rate_bps: int


@dataclass(frozen=True, kw_only=True)
class OverTime:
    """The timeline of all ports.

    Attributes
    ----------
    bin_ps, end_ps : length of a bin, and the end of the last one
    ports : how many there are
    columns : of the table, by name; ``port`` and ``bin`` say which
    rate_bps, wire_factor : shape (ports,); nominal rate, and bytes on the wire with gaps for every byte of a frame
    rates : that ports had over time
    """

    bin_ps: int
    end_ps: int
    ports: int
    columns: dict[str, NDArray[np.int64]]
    rate_bps: NDArray[np.int64]
    wire_factor: NDArray[np.float64]
    rates: LinkRates

    @cached_property
    def edges_ps(self) -> NDArray[np.int64]:
        """Shape (bins + 1,): begins of bins, and the last end."""
        starts = np.arange(0, self.end_ps, self.bin_ps, dtype=np.int64)
        return np.append(starts, self.end_ps)

    @property
    def bins(self) -> int:
        """Number of bins."""
        return len(self.edges_ps) - 1

    @cached_property
    def length_ps(self) -> NDArray[np.int64]:
        """Shape (bins,): length of each bin; the last may be shorter."""
        return np.diff(self.edges_ps)

    @property
    def edges(self) -> NDArray[np.float64]:
        """Shape (bins + 1,): edges of the bins from 0 to 1."""
        return self.edges_ps / self.end_ps

    def values(self, name: str, ports: NDArray[np.int64]) -> NDArray[np.int64]:
        """One column of some ports.

        Returns
        -------
        shape (ports, bins); 0 where nothing was recorded
        """
        place = np.full(self.ports, -1, np.int64)
        place[ports] = np.arange(len(ports))
        rows = place[self.columns["port"]]
        there = rows >= 0
        found = np.zeros((len(ports), self.bins), np.int64)
        found[rows[there], self.columns["bin"][there]] = self.columns[name][there]
        return found

    @cached_property
    def _by_port(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Rows in the order of their ports, and each port's first row."""
        order = np.argsort(self.columns["port"], kind="stable")
        base = np.searchsorted(self.columns["port"][order], np.arange(self.ports + 1))
        return order, base

    def total(self, name: str) -> NDArray[np.int64]:
        """Sum of a column over all ports; shape (bins,)."""
        return np.bincount(self.columns["bin"], self.columns[name], self.bins).astype(np.int64)

    def utilisation(self, ports: NDArray[np.int64]) -> NDArray[np.float64]:
        """Share of the time in which ports were sending, gaps included.

        It is measured by the rate that their links had at the time; 0 while a link was down.
        """
        wire_bytes = self.values("bytes", ports) * self.wire_factor[ports, None]
        could = self.rate_bps[ports, None] * (self.length_ps / (8 * SECOND_PS))
        for place, port in enumerate(ports.tolist()):
            if port in self.rates.steps:
                could[place] = self.rates.could_bytes(port, self.edges_ps)
        used = np.divide(wire_bytes, could, out=np.zeros_like(could), where=could > 0)
        return np.minimum(used, 1.0)

    def within(self, name: str, port: int, start_ps: int, end_ps: int) -> float:
        """Sum of a column of one port between two instants.

        A bin at an end counts by its share inside the interval.
        """
        order, base = self._by_port
        mine = order[base[port] : base[port + 1]]
        bins = self.columns["bin"][mine]
        first = np.maximum(self.edges_ps[bins], start_ps)
        last = np.minimum(self.edges_ps[bins + 1], end_ps)
        share = np.maximum(last - first, 0) / self.length_ps[bins]
        return float((self.columns[name][mine] * share).sum())


def read_over_time(run: Run) -> OverTime | None:
    """Read the timeline of a run.

    None if nothing was recorded over time.
    """
    table = run.table("timeline")
    if table.num_rows == 0:
        return None
    columns = {name: table[name].to_numpy() for name in table.column_names}
    starts, ends = columns.pop("start_ps"), columns.pop("at_ps")
    bin_ps = int((ends - starts).max())
    columns["bin"] = starts // bin_ps
    links = run.query("select * from links order by port")
    columns_of_links = ("rate_bps", "mean_rate_bps", "utilisation", "bytes")
    rate, mean_bps, used, sent = (links[name].to_numpy() for name in columns_of_links)
    wire_bytes = used * mean_bps * ((run.value("simulated_ps") or 0) / (8 * SECOND_PS))
    factor = np.ones(len(rate))
    np.divide(wire_bytes, sent, out=factor, where=sent > 0)
    # An interrupted run counts its utilisation until the last arrival, which is a little earlier than where it stopped.
    return OverTime(
        bin_ps=bin_ps,
        end_ps=int(ends.max()),
        ports=len(rate),
        columns=columns,
        rate_bps=rate,
        wire_factor=np.clip(factor, 1.0, 2.0),
        rates=read_link_rates(run),
    )


def directions(run: Run) -> list[Direction]:
    """Kinds of ports, from hosts up to the top tier and down again."""
    table = run.query(
        "select a.role as sends, b.role as receives, a.tier as low, b.tier as high, "
        "list(port order by port) as ports, sum(rate_bps)::bigint as rate "
        "from links join nodes a on links.node = a.node join nodes b on links.peer = b.node "
        "group by all"
    )
    found: list[tuple[tuple[Any, ...], Direction]] = []
    for row in table.to_pylist():
        up, low, high = row["high"] > row["low"], row["low"], row["high"]
        order = (0 if up else 1 if low == high else 2, low if up else -low, high, row["sends"])
        ports = np.array(row["ports"], np.int64)
        name = f"{row['sends']} \u2192 {row['receives']}"
        found.append((order, Direction(name=name, ports=ports, rate_bps=row["rate"])))
    return [direction for _, direction in sorted(found, key=lambda item: item[0])]


def plural_role(role: str, count: int) -> str:
    """A count with the name of the nodes.

    Examples
    --------
    >>> plural_role("leaf", 4), plural_role("switch", 2), plural_role("host", 1)
    ('4 leaves', '2 switches', '1 host')
    """
    return plural(count, role, {"leaf": "leaves"}.get(role, f"{role}es" if role.endswith("ch") else None))
