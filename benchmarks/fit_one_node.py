"""Fit what one server's NVLink gives an all-reduce: launch, bandwidth and ramp, from published nccl-tests.

    python benchmarks/fit_one_node.py

Prints the fitted figures of src/weftwork/workload/collectives/figures.toml. The rate of the A100's NVLink
(src/weftwork/hardware/servers.toml) was fitted on the same table before NCCL's rounds were modelled; what a fit of
today would make of it is printed too. The model is the closed form itself, with the method that NCCL's tuner takes at
each size. Fitted by the least mean of absolute relative errors (L1), so that single sizes do not pull.
Source: Azure AI benchmarking guide, by `weftwork.data.measured`. Leaves out: groups of fewer than eight GPUs.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

import numpy as np
from scipy.optimize import minimize

from weftwork.base.clock import SECOND_PS
from weftwork.data.measured import measured
from weftwork.hardware.catalogue import node
from weftwork.study.calibrate.fit import mean_error
from weftwork.workload.collectives.closed_form import GroupShape
from weftwork.workload.collectives.figures import CollectiveFigures, collective_figures
from weftwork.workload.collectives.tuner import chosen

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["fit", "main", "nvlink_share"]

BUS_FACTOR: Final = 2 * 7 / 8  # all-reduce of eight GPUs
GROUP: Final = GroupShape(members=8, per_domain=8, domain_gpus=8)
SERVERS: Final = {"a100": "azure-nd-a100-v4", "h100": "azure-nd-h100-v5"}
# launch us, ramp us, ramp MB. chosen: near the solution, since the method is local; the
# best of all starts is kept
STARTS: Final = {
    "a100": ((20.0, 230.0, 50.0), (10.0, 100.0, 20.0), (25.0, 150.0, 30.0)),
    "h100": ((6.0, 75.0, 35.0), (6.0, 30.0, 10.0), (10.0, 200.0, 200.0), (2.0, 120.0, 100.0)),
}


def fit(gpu: str) -> tuple[dict[str, float], float]:
    """Fit one column of the table, with the rate of NVLink as it is.

    Parameters
    ----------
    gpu : ``a100`` or ``h100``

    Returns
    -------
    figures by their keys, and the mean absolute relative error of the times
    """
    return _fit(gpu, STARTS[gpu])


def nvlink_share() -> float:
    """Rate of NVLink of the A100 that fits best with the others, over the catalogue's."""
    starts = tuple((*start, 236.0) for start in STARTS["a100"])
    return _fit("a100", starts)[0]["nvlink_rate_share"]


def _fit(gpu: str, starts: tuple[tuple[float, ...], ...]) -> tuple[dict[str, float], float]:
    table = measured("nccl-all-reduce-one-node")
    size = np.asarray(table["size_bytes"], np.float64)
    taken_ps = size * BUS_FACTOR * SECOND_PS / (
        np.asarray(table[f"{gpu}_bus_bandwidth_gbyte_per_s"], np.float64) * 1e9
    )  # fmt: skip
    model = node(SERVERS[gpu])
    known = collective_figures(model.server, nic_port_rate_bps=model.nic_port_rate_bps)

    def figures(x: NDArray[np.float64]) -> CollectiveFigures:
        launch, ramp, knee, *rate = (float(value) for value in np.abs(x))
        rates = {"nvlink_rate_bps": rate[0] * 8e9} if rate else {}
        return replace(known, launch_ps=launch * 1e6, ramp_ps=ramp * 1e6, ramp_bytes=knee * 1e6, **rates)

    def error(x: NDArray[np.float64]) -> float:
        now = figures(x)
        found = np.array([chosen("all-reduce", GROUP, one, now).time_ps for one in size])
        return mean_error(found, taken_ps)

    options = {"maxiter": 4_000, "maxfev": 4_000, "xatol": 1e-5, "fatol": 1e-9}
    found = [minimize(error, np.array(start), method="Nelder-Mead", options=options) for start in starts]
    best = min(found, key=lambda one: float(one.fun))
    now = figures(best.x)
    fitted = {"launch_ps": now.launch_ps, "ramp_ps": now.ramp_ps, "ramp_bytes": now.ramp_bytes}
    if len(starts[0]) > len(fitted):
        fitted["nvlink_rate_share"] = now.nvlink_rate_bps / model.server.nvlink_rate_bps
    return fitted, float(best.fun)


def main() -> None:
    """Print the figures."""
    for gpu in SERVERS:
        figures, error = fit(gpu)
        print(f"[{gpu}]  # mean absolute error {100 * error:.2f} %")
        for key, value in figures.items():
            print(f"{key} = {round(value):_}")
    print(f"# with it, the A100's NVLink would have {nvlink_share():.4f} of the catalogue's rate")


if __name__ == "__main__":
    main()
