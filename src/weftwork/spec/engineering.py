"""Input and answer of central traffic engineering, as arrays.

A pair of NIC ports has one demand and takes one path. Paths are those of its relation: the two switches at its ends.
Leaves out: fabrics, jobs and time, which the floor that asks knows (`weftwork.study.prepare.engineering`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["PathProblem", "Planned"]


@dataclass(frozen=True, kw_only=True, slots=True)
class PathProblem:
    """Demands between pairs of NIC ports, and the candidate paths of each.

    Attributes
    ----------
    demand_bps : shape (pairs,), float64, rate of each pair at which the busiest NIC port sends at its line rate
    priority : shape (pairs,), int64, the highest of the pair's messages, 0 to 7
    relation : shape (pairs,), int64, which candidates are those of the pair
    path_ptr : shape (relations + 1,), int64: relation r has the paths path_ptr[r] to path_ptr[r + 1], at least one
    link_ptr : shape (paths + 1,), int64: path p crosses link[link_ptr[p] : link_ptr[p + 1]]
    link : int64, a link in one direction, 0 to links - 1
    capacity_bps : shape (links,), float64, above 0
    seed : of the run; ties that a scheme breaks by chance follow from it
    """

    demand_bps: NDArray[np.float64]
    priority: NDArray[np.int64]
    relation: NDArray[np.int64]
    path_ptr: NDArray[np.int64]
    link_ptr: NDArray[np.int64]
    link: NDArray[np.int64]
    capacity_bps: NDArray[np.float64]
    seed: int

    def padded(self) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Links of each path as rows of equal length, and padded capacities.

        The capacity behind the last link is endless.

        Returns
        -------
        shape (paths, most links), where the number of links stands for none; and shape (links + 1,)
        """
        hops = np.diff(self.link_ptr)
        none = len(self.capacity_bps)
        rows = np.full((len(hops), int(hops.max(initial=0))), none, np.int64)
        rows[np.arange(rows.shape[1]) < hops[:, None]] = self.link
        return rows, np.append(self.capacity_bps, np.inf)

    def candidates(self, pair: int) -> range:
        """Numbers of the candidate paths of a pair."""
        relation = int(self.relation[pair])
        return range(int(self.path_ptr[relation]), int(self.path_ptr[relation + 1]))

    def shares(self, chosen: NDArray[np.int64]) -> NDArray[np.float64]:
        """Load of each link as a share of its capacity.

        Parameters
        ----------
        chosen : shape (pairs,), the path of each pair

        Returns
        -------
        shape (links,)
        """
        rows, _ = self.padded()
        load = np.zeros(len(self.capacity_bps) + 1)
        np.add.at(load, rows[chosen], self.demand_bps[:, None])
        shares: NDArray[np.float64] = load[:-1] / self.capacity_bps
        return shares


@dataclass(frozen=True, kw_only=True, slots=True)
class Planned:
    """The answer of a scheme.

    Attributes
    ----------
    chosen : shape (pairs,), int64, the path of each pair, one of its candidates
    bound : lower bound of the share that the most loaded link carries under any choice of these paths; None: the
        scheme makes none
    overloaded : pairs for which no path had room left; None: the scheme does not look for room
    limit : the limit that ended the search before its end, in words; empty: none did
    depends_on_machine : whether that limit is a time, so that another machine may choose other paths
    """

    chosen: NDArray[np.int64]
    bound: float | None = None
    overloaded: int | None = None
    limit: str = ""
    depends_on_machine: bool = False
