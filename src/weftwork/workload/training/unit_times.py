"""Computing times of a layer, in two halves by kind of work, and what a CPU launches for it.

Leaves out: how long each kind of work takes (`weftwork.workload.training.layers`).
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Final

from weftwork.spec.training import GraphModule, RecomputeModule

__all__ = ["Half", "UnitWork"]

WHOLE_HALVES: Final[frozenset[RecomputeModule]] = frozenset({"mlp", "moe"})  # modules that are all of a half of a layer


@dataclass(frozen=True, kw_only=True, slots=True)
class Half:
    """Computing times of half a layer in seconds, by kind of work."""

    matmul_s: float = 0.0
    core_s: float = 0.0
    memory_s: float = 0.0
    matmul_backward_s: float = 0.0
    core_backward_s: float = 0.0
    memory_backward_s: float = 0.0
    weights_s: float = 0.0  # of matmul_backward_s: products that give gradients of weights
    again_s: tuple[tuple[RecomputeModule, float], ...] = ()  # of modules, which a backward pass may compute again
    operations_s: float = 0.0  # of all but attention itself and every second product, which may be computed again

    @property
    def forward_s(self) -> float:
        """Time of the forward pass."""
        return self.matmul_s + self.core_s + self.memory_s

    @property
    def backward_s(self) -> float:
        """Time of the backward pass, without recomputation."""
        return self.matmul_backward_s + self.core_backward_s + self.memory_backward_s

    def recomputed_s(self, modules: Collection[RecomputeModule]) -> float:
        """Time to recompute these modules; a whole-half module includes the others."""
        found = {module: taken_s for module, taken_s in self.again_s if module in modules}
        whole = [taken_s for module, taken_s in found.items() if module in WHOLE_HALVES]
        return sum(whole) if whole else sum(found.values())


@dataclass(frozen=True, kw_only=True, slots=True)
class UnitWork:
    """Costs of a unit on one GPU.

    Attributes
    ----------
    halves : in the order of the forward pass, by name: mixer, mlp, embedding, head, and join in a prediction module
    operations : that the CPU launches, forward and backward, by the module that a CUDA graph may replay; of module
        None those that only a graph of the whole iteration replays
    loops_s : CPU time, forward and backward, of launches in a loop over experts, which none but that graph replays
    parameters, expert_parameters : that this GPU holds, those of routed experts apart, without adapters
    adapter_parameters : that this GPU holds and trains beside frozen weights (LoRA)
    """

    halves: tuple[tuple[str, Half], ...]
    operations: tuple[tuple[GraphModule | None, float, float], ...] = ()
    loops_s: tuple[float, float] = (0.0, 0.0)
    parameters: float = 0.0
    expert_parameters: float = 0.0
    adapter_parameters: float = 0.0

    @property
    def forward_s(self) -> float:
        """Computing time of the forward pass."""
        return sum(half.forward_s for _, half in self.halves)

    @property
    def backward_s(self) -> float:
        """Computing time of the backward pass, without recomputation."""
        return sum(half.backward_s for _, half in self.halves)

    @property
    def weights_s(self) -> float:
        """Time of weight gradients, a part of the backward pass."""
        return sum(half.weights_s for _, half in self.halves)

    def again_s(self, modules: Collection[RecomputeModule]) -> float:
        """Time to recompute these modules, without expert exchange."""
        return sum(half.recomputed_s(modules) for _, half in self.halves)

    def launched_s(self, graphs: Collection[GraphModule], launch_s: float) -> tuple[float, float]:
        """CPU time of launches, forward and backward, without CUDA graphs.

        Parameters
        ----------
        graphs : modules that are replayed
        launch_s : of one operation
        """
        if "iteration" in graphs:
            return 0.0, 0.0
        left = [(forward, backward) for module, forward, backward in self.operations if module not in graphs]
        forward_s, backward_s = self.loops_s
        return (
            forward_s + launch_s * sum(forward for forward, _ in left),
            backward_s + launch_s * sum(backward for _, backward in left),
        )
