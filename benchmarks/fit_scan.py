"""Derive how fast the scan of a state space is (`Gpu.scan_flops`) from training throughput of a Mamba-2 model.

    python benchmarks/fit_scan.py

state-spaces/mamba, issue 904, prints the training throughput of Mamba-2 models of 48 layers of width 2,048 on an A100,
an H200 and a GB200, with BF16 and 4 sequences of 4,096 tokens. What Weftwork's kernels say of all but the scan is taken
off; what is left of an iteration is the scan's. Rows of the scorecard take no part in it.
Leaves out: launches, which an iteration of 16,384 tokens hides.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from weftwork.hardware.catalogue import gpu
from weftwork.spec.training import Model, Parallelism, StateSpace
from weftwork.workload.models.size import parameters
from weftwork.workload.models.software import software
from weftwork.workload.parallelism.layout import virtual_stages_of
from weftwork.workload.training.kernels import BACKWARD_SHARE, BACKWARD_WORK, Kernels
from weftwork.workload.training.layers import scan_flops_per_token, unit_work

__all__ = ["main", "scan_flops"]

# state-spaces/mamba, issue 904, section "Training throughput": TFLOP/s of Mamba-2
PUBLISHED_TFLOPS: Final = {"a100": 102.5, "h200": 239.2, "gb200": 360.4}
OPTIMIZER_BYTES: Final = 34  # of a parameter, by Adam: states, gradient and weight, read and written
MODEL: Final = Model(
    name="mamba2-1.3b",
    layers=48,
    hidden=2_048,
    heads=1,
    key_value_heads=1,
    head_dim=1,
    ffn=0,
    vocabulary=50_288,  # state-spaces/mamba, MambaConfig: 50,277 padded to a multiple of 16
    sequence=4_096,
    has_dropout=False,
    state_space_layers=48,
    attention_layers=0,
    state_space=StateSpace(heads=64, head_dim=64, state=128, groups=1),  # the module's defaults: expand 2, headdim 64
)
PLAN: Final = Parallelism(micro_batch=4, global_batch=4, sequence=4_096)


@dataclass(frozen=True, kw_only=True, slots=True)
class Split:
    """One GPU: seconds of an iteration, of all but the scan, and the rate of the scan that the rest leaves."""

    iteration_s: float
    other_s: float
    scan_flops: float


def scan_flops(name: str) -> Split:
    """Rate of the forward scan on a GPU.

    Parameters
    ----------
    name : of `PUBLISHED_TFLOPS`

    Returns
    -------
    FLOP/s, with the seconds that it follows from
    """
    kernels = Kernels(gpu=gpu(name), software=software("plain"))
    count = parameters(MODEL).total
    iteration_s = 6 * count * PLAN.tokens / (PUBLISHED_TFLOPS[name] * 1e12)
    other_s = kernels.memory_s(OPTIMIZER_BYTES * count)
    for (units,) in virtual_stages_of(MODEL, PLAN):
        for unit in units:
            work = unit_work(unit, MODEL, PLAN, kernels)
            cores = sum(half.core_s + half.core_backward_s for _, half in work.halves)
            other_s += work.forward_s + work.backward_s - cores
    passes = 1 + BACKWARD_WORK / BACKWARD_SHARE
    flops = MODEL.layers * PLAN.tokens * scan_flops_per_token(MODEL.state_space) * passes
    return Split(iteration_s=iteration_s, other_s=other_s, scan_flops=flops / (iteration_s - other_s))


def main() -> None:
    """Print the rate on each GPU."""
    for name in PUBLISHED_TFLOPS:
        found = scan_flops(name)
        parts = f"{found.iteration_s * 1e3:.0f} ms an iteration, {found.other_s * 1e3:.0f} ms of it without the scan"
        print(f"{name}: {parts}; the scan runs at {found.scan_flops / 1e12:.1f} TFLOP/s")


if __name__ == "__main__":
    main()
