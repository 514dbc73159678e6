"""Rates of a run's links over time, nominal or changed by faults.

Reads the tables `links` and `rates` of a run's folder.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from weftwork.base.clock import SECOND_PS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from weftwork.store.runs import Run

__all__ = ["LinkRates", "read_link_rates"]


@dataclass(frozen=True, kw_only=True)
class LinkRates:
    """Rates of ports over time.

    Attributes
    ----------
    nominal_bps : by port
    steps : of ports whose rate a fault changed: instants in ps from 0 on, and the rates in b/s from then on
    """

    nominal_bps: Mapping[int, int]
    steps: Mapping[int, tuple[NDArray[np.int64], NDArray[np.int64]]]

    def could_bytes(self, port: int, edges_ps: NDArray[np.int64]) -> NDArray[np.float64]:
        """Bytes that a port could send in each step.

        Parameters
        ----------
        port : its number
        edges_ps : shape (bins + 1,), ascending

        Returns
        -------
        shape (bins,); 0 where its link was down all the time
        """
        if port not in self.steps:
            return np.diff(edges_ps) * (self.nominal_bps[port] / (8 * SECOND_PS))
        at_ps, rate_bps = self.steps[port]
        begins = np.append(at_ps, max(int(edges_ps[-1]), int(at_ps[-1]) + 1))
        carried = np.append(0.0, np.cumsum(np.diff(begins) * (rate_bps / (8 * SECOND_PS))))
        return np.diff(np.interp(edges_ps, begins, carried))

    def mean_bps(self, port: int, start_ps: int, end_ps: int) -> float:
        """Average rate of a port between two instants."""
        if port not in self.steps or end_ps <= start_ps:
            return float(self.nominal_bps[port])
        could = self.could_bytes(port, np.array([start_ps, end_ps], np.int64))
        return float(could[0]) * 8 * SECOND_PS / (end_ps - start_ps)


def read_link_rates(run: Run) -> LinkRates:
    """Read the rates of a run."""
    links = run.query("select port, rate_bps from links")
    nominal = dict(zip(links["port"].to_pylist(), links["rate_bps"].to_pylist(), strict=True))
    rows = run.query(
        "select port, list(at_ps) as at_ps, list(rate_bps) as rate_bps from (from rates order by at_ps) group by port"
    ).to_pylist()
    steps = {row["port"]: (np.array(row["at_ps"], np.int64), np.array(row["rate_bps"], np.int64)) for row in rows}
    return LinkRates(nominal_bps=nominal, steps=steps)
