"""Fit what one server's NVLink gives an all-reduce: launch, bandwidth and ramp, from published nccl-tests.

    python benchmarks/fit_one_node.py

Prints the fitted figures of src/weftwork/workload/collectives/figures.toml. Time of W bus bytes: alpha + W / B +
ramp W / (W + ramp_bytes). Fitted by the least mean of absolute relative errors (L1), so that single sizes do not pull.
Source: Azure AI benchmarking guide, by `weftwork.data.measured`. Leaves out: groups of fewer than eight GPUs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
from scipy.optimize import minimize

from weftwork.data.measured import measured

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["fit", "main"]

BUS_FACTOR: Final = 2 * 7 / 8  # all-reduce of eight GPUs
# us, GB/s, us, MB. chosen: near the solution, since the method is local; the best of all starts is kept
STARTS: Final = (
    (40.0, 236.0, 230.0, 50.0), (30.0, 480.0, 75.0, 35.0), (30.0, 480.0, 90.0, 65.0), (20.0, 300.0, 100.0, 20.0),
)  # fmt: skip


def fit(gpu: str) -> tuple[dict[str, int], float]:
    """Fit one column of the table.

    Parameters
    ----------
    gpu : ``a100`` or ``h100``

    Returns
    -------
    figures by their keys in figures.toml, and the mean absolute relative error of the times
    """
    table = measured("nccl-all-reduce-one-node")
    size = np.asarray(table["size_bytes"], np.float64)
    bus = size * BUS_FACTOR / 1e3  # kB: one GB/s is one kB/us
    taken_us = bus / np.asarray(table[f"{gpu}_bus_bandwidth_gbyte_per_s"], np.float64)

    def error(x: NDArray[np.float64]) -> float:
        alpha, rate, ramp, knee = np.abs(x)
        found = alpha + bus / rate + ramp * bus / (bus + knee * 1e3)
        return float(np.mean(np.abs(found / taken_us - 1)))

    options = {"maxiter": 20_000, "maxfev": 20_000, "xatol": 1e-6, "fatol": 1e-10}
    found = [minimize(error, np.array(start), method="Nelder-Mead", options=options) for start in STARTS]
    best = min(found, key=lambda one: float(one.fun))
    alpha, rate, ramp, knee = np.abs(best.x)
    bandwidth = "nvls" if gpu == "h100" else "ring"  # what NCCL takes for all of eight GPUs
    figures = {
        "alpha_ps": round(alpha * 1e6),
        f"{bandwidth}_bus_bandwidth_bps": round(rate * 8e9),
        "ramp_ps": round(ramp * 1e6),
        "ramp_bytes": round(knee * 1e6),
    }
    return figures, float(best.fun)


def main() -> None:
    """Print the figures."""
    for gpu in ("a100", "h100"):
        figures, error = fit(gpu)
        print(f"[{gpu}]  # mean absolute error {100 * error:.2f} %")
        for key, value in figures.items():
            print(f"{key} = {value:_}")


if __name__ == "__main__":
    main()
