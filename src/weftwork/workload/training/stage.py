"""Work of one stage for one unit: computing and collectives.

The collectives are before, beside and behind computing. Of each kind of communication the share that `Overlap` names
runs beside computing, where it contends for links with whatever else runs, and the rest runs alone. Tensor traffic
hides behind nine tenths of the matrix products of its half of a layer, context traffic behind nine tenths of attention,
expert traffic behind the whole layer, as if another micro batch computed meanwhile. A layer takes no less than the CPU
needs to launch its operations.
Source: NVIDIA/Megatron-LM, user guide, tp_comm_overlap (matrix products in pieces); DeepSeek-V3, arXiv:2412.19437,
section 3.2.1 (experts behind another micro batch).
Where a schedule splits backward passes, all communication and recomputation goes with the gradients of inputs, also
what hides behind the computing of that half alone; gradients of weights only compute.
A hidden exchange of experts takes multiprocessors from the products beside it (``Software.exchange_multiprocessors``).
Leaves out: what all other communication takes from the multiprocessors of the GPU that computes beside it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final, Literal

from weftwork.base.clock import whole_ps
from weftwork.spec.job import Await, Compute, Notify, Operation, Wait
from weftwork.spec.training import Model, Parallelism
from weftwork.workload.parallelism.layout import Unit, recomputation
from weftwork.workload.parallelism.memory import unit_bytes
from weftwork.workload.training.communication import Communication, TimedCollective, label
from weftwork.workload.training.kernels import Kernels
from weftwork.workload.training.layers import Half, UnitWork, unit_work

__all__ = ["EXPERT_DONE", "EXPERT_GO", "UnitOperations", "duration_ps", "in_turn"]

HIDING_SHARE: Final = 0.9  # of the computing behind which traffic hides: the first and last piece have no partner
_WITH_PRODUCTS: Final = frozenset({"mixer", "mlp"})  # halves whose matrix products tensor traffic hides behind
EXPERT_GO, EXPERT_DONE = 0, 1  # tokens between the stream that computes and the one that exchanges tokens of experts


def duration_ps(time_s: float) -> int:
    """Seconds as simulated time, within its range."""
    return whole_ps(time_s * 1e12)


def in_turn(
    calls: Iterable[TimedCollective],
    share: float = 1.0,
    *,
    overhead_share: float | None = None,
    is_beside: bool = False,
) -> list[Operation]:
    """Do a share of each call in sequence, and wait for each.

    Parameters
    ----------
    calls : in order
    share : of their bytes; nothing happens at 0
    overhead_share : of their overhead, by default as their bytes
    is_beside : in a stream beside the computing one
    """
    if share <= 0:
        return []
    return [
        operation
        for call in calls
        for operation in (
            call.share(share, overhead_share=overhead_share, is_beside=is_beside),
            Wait(label=call.collect.label),
        )
    ]


@dataclass(frozen=True, kw_only=True)
class UnitOperations:
    """Operations of a plan's units, each made once."""

    model: Model
    plan: Parallelism
    kernels: Kernels
    communication: Communication

    @cached_property
    def work(self) -> dict[Unit, UnitWork]:
        """Cost of each unit, computed on demand."""
        return _Works(self)

    def forward(self, unit: Unit) -> list[Operation]:
        """The forward pass of a unit."""
        return self._forward(unit, "compute")

    def backward(self, unit: Unit, *, has_weights: bool = True) -> list[Operation]:
        """The backward pass of a unit, with its recomputation.

        Parameters
        ----------
        unit : of the model
        has_weights : whether gradients of weights belong to it, or follow later (`weights`)
        """
        work = self.work[unit]
        found: list[Operation] = []
        if unit.part in {"layer", "prediction"}:
            how = recomputation(unit, self.plan)
            if how == "full":
                found += self._forward(unit, "recompute", without_head=True)
            elif how != "none":
                found += self._again(unit, work)
        found += self._go(unit)
        halves = [(name, half if has_weights else _without_weights(half)) for name, half in reversed(work.halves)]
        for name, half in halves:
            found += self._half(unit, name, half, "backward", "compute")
        found += self._done(unit, sum(half.matmul_backward_s + half.core_backward_s for _, half in halves), "compute")
        share = 1.0 if has_weights else 1 - self._weights_share(unit)
        return [*found, *self._launch(unit, "backward", share)]

    def weights(self, unit: Unit) -> list[Operation]:
        """Weight gradients of a unit, without communication."""
        time_ps = duration_ps(self.work[unit].weights_s)
        found: list[Operation] = [Compute(duration_ps=time_ps, label=label("compute"))] if time_ps else []
        return [*found, *self._launch(unit, "backward", self._weights_share(unit))]

    def offload_ps(self, unit: Unit) -> int:
        """Time in which the activations of a unit go to the memory of the host, or come back."""
        has_flash_attention = self.kernels.software.has_flash_attention
        size_bytes = unit_bytes(self.model, self.plan, unit, has_flash_attention=has_flash_attention)
        return duration_ps(8 * size_bytes / self.communication.cluster.host_rate_bps)

    @property
    def hidden_exchange(self) -> list[Operation]:
        """Expert stream of one layer and pass; empty if nothing hides."""
        share = self.plan.overlap.expert
        calls = self.communication.exchange
        if share <= 0 or not calls:
            return []
        both = [*in_turn(calls, share, is_beside=True), *in_turn(_inverse(calls), share, is_beside=True)]
        return [Await(token=EXPERT_GO), *both, Notify(token=EXPERT_DONE)]

    def exchanges(self, unit: Unit) -> bool:
        """Whether a unit sends tokens to its experts."""
        return unit.layer is not None and unit.layer.mlp == "experts" and bool(self.communication.exchange)

    def _forward(
        self, unit: Unit, about: Literal["compute", "recompute"], *, without_head: bool = False
    ) -> list[Operation]:
        found = self._go(unit)
        halves = [(name, half) for name, half in self.work[unit].halves if name != "head" or not without_head]
        for name, half in halves:
            found += self._half(unit, name, half, "forward", about)
        found += self._done(unit, sum(half.matmul_s + half.core_s for _, half in halves), about)
        return [*found, *(self._launch(unit, "forward") if about == "compute" else ())]

    def _again(self, unit: Unit, work: UnitWork) -> list[Operation]:
        """Recomputation of a part of a unit.

        A mixture of experts exchanges its tokens once more, and attention its heads.
        """
        exchanges = self._has_experts_again(unit)
        again_s = sum(self._half_again_s(unit, half) for name, half in work.halves if not (exchanges and name == "mlp"))
        again_ps = duration_ps(again_s)
        heads, results = self._heads_again(unit)
        found: list[Operation] = in_turn(heads, 1 - self.plan.overlap.context)
        found += [Compute(duration_ps=again_ps, label=label("recompute"))] if again_ps else []
        found += in_turn(results, 1 - self.plan.overlap.context)
        if exchanges:
            hidden = self.plan.overlap.expert  # nothing is there to compute beside it
            calls = self.communication.exchange
            (half,) = (half for name, half in work.halves if name == "mlp")
            found += in_turn(calls, hidden)
            found += self._half(unit, "mlp", half, "forward", "recompute")
            found += in_turn(_inverse(calls), hidden)
        return found

    def _heads_again(self, unit: Unit) -> tuple[tuple[TimedCollective, ...], tuple[TimedCollective, ...]]:
        """Exchanges of heads that recomputation of attention, and not of the whole layer, does once more.

        What is kept are values of own tokens with all heads, or results with own heads of all tokens.
        """
        how = recomputation(unit, self.plan)
        is_again = how == "operations" or (how == "selective" and "core_attn" in self.plan.recompute_modules)
        if not is_again or not self.plan.exchanges_heads:
            return (), ()
        return self._beside(unit, "mixer", backward=False)

    def _has_experts_again(self, unit: Unit) -> bool:
        is_mixture = unit.layer is not None and unit.layer.mlp == "experts"
        is_selective = recomputation(unit, self.plan) == "selective"
        return is_mixture and is_selective and "moe" in self.plan.recompute_modules

    def _half_again_s(self, unit: Unit, half: Half) -> float:
        """Recomputation time of a part of half a layer."""
        if recomputation(unit, self.plan) == "operations":
            return half.operations_s
        return half.recomputed_s(self.plan.recompute_modules)

    def _half(
        self,
        unit: Unit,
        name: str,
        half: Half,
        direction: Literal["forward", "backward"],
        about: Literal["compute", "recompute"],
    ) -> list[Operation]:
        """Computing of half a layer with its communication."""
        is_back = direction == "backward"
        matmul_s = half.matmul_backward_s if is_back else half.matmul_s
        core_s = half.core_backward_s if is_back else half.core_s
        memory_s = half.memory_backward_s if is_back else half.memory_s
        before, after = self._around(unit, name, backward=is_back)
        overlap = self.plan.overlap
        hidden = overlap.tensor if name in _WITH_PRODUCTS else 0.0
        beside, behind = self._beside(unit, name, backward=is_back)
        routed = self.communication.exchange if name == "mlp" and self.exchanges(unit) else ()
        found = in_turn(before, 1 - hidden)
        found += in_turn(routed, 1 - overlap.expert)
        found += in_turn(beside, 1 - overlap.context)
        matmul_s = _hide(found, (*before, *after), hidden, matmul_s, about)
        core_s = _hide(found, (*beside, *behind), overlap.context, core_s, about)
        found.append(Compute(duration_ps=duration_ps(matmul_s + core_s + memory_s), label=label(about)))
        found += in_turn(behind, 1 - overlap.context)
        found += in_turn(_inverse(routed), 1 - overlap.expert)
        return found + in_turn(after, 1 - hidden)

    def _around(
        self, unit: Unit, name: str, *, backward: bool
    ) -> tuple[tuple[TimedCollective, ...], tuple[TimedCollective, ...]]:
        """Calls of tensor parallelism before and after half a unit."""
        calls = self.communication
        if name == "embedding":
            return ((), calls.embedding) if not backward else (calls.embedding_backward, ())
        if name == "head":
            return (calls.head, ()) if not backward else ((), calls.head_backward)
        if name == "join" or unit.layer is None:
            return (), ()
        return calls.before(unit.layer, name), calls.after(unit.layer, name)

    def _beside(
        self, unit: Unit, name: str, *, backward: bool
    ) -> tuple[tuple[TimedCollective, ...], tuple[TimedCollective, ...]]:
        """Calls of context parallelism before and behind attention."""
        kind = unit.layer
        if name != "mixer" or kind is None or kind.mixer not in {"attention", "window"}:
            return (), ()
        calls = self.communication
        return calls.context(backward=backward), calls.context_back(backward=backward)

    def _go(self, unit: Unit) -> list[Operation]:
        return [Notify(token=EXPERT_GO)] if self.exchanges(unit) and self.plan.overlap.expert > 0 else []

    def _done(self, unit: Unit, multiplied_s: float, about: Literal["compute", "recompute"]) -> list[Operation]:
        """Wait for the exchange beside a pass.

        It has taken multiprocessors from the pass's products.
        """
        if not self.exchanges(unit) or self.plan.overlap.expert <= 0:
            return []
        lost_ps = self._lost_ps(multiplied_s)
        found: list[Operation] = [Compute(duration_ps=lost_ps, label=label(about))] if lost_ps else []
        return [*found, Await(token=EXPERT_DONE, label=label("expert"))]

    def _lost_ps(self, multiplied_s: float) -> int:
        """Time that products and attention lose to a hidden exchange.

        Beside it they have the multiprocessors that it leaves, so that their work takes as much longer; no more of
        them is beside it than there is. Kernels bound by memory lose nothing.

        Parameters
        ----------
        multiplied_s : products and attention of the pass, with all multiprocessors
        """
        share = self.kernels.software.exchange_multiprocessors / self.kernels.gpu.streaming_multiprocessors
        calls = self.communication.exchange
        beside_ps = self.plan.overlap.expert * sum(call.alone_ps for call in (*calls, *_inverse(calls)))
        return whole_ps(share * min(beside_ps, duration_ps(multiplied_s) / (1 - share)))

    def _weights_share(self, unit: Unit) -> float:
        """Share of weight gradients in the computing of a backward pass."""
        work = self.work[unit]  # chosen: they take the same share of its launches
        return work.weights_s / work.backward_s if work.backward_s else 0.0

    def _launch(self, unit: Unit, direction: Literal["forward", "backward"], of_pass: float = 1.0) -> list[Operation]:
        """CPU time of a layer beyond the time of its GPU and network.

        Parameters
        ----------
        unit : of the model
        direction : of the pass
        of_pass : share of the pass that is launched now
        """
        forward_ps, backward_ps = self._excess_ps[unit]
        excess_ps = forward_ps if direction == "forward" else backward_ps
        if excess_ps * of_pass < 1:
            return []
        return [Compute(duration_ps=whole_ps(excess_ps * of_pass), label=label("launch"))]

    @cached_property
    def _excess_ps(self) -> dict[Unit, tuple[float, float]]:
        return _Excesses(self)

    def excess_ps(self, unit: Unit) -> tuple[float, float]:
        """CPU time of a unit beyond its GPU's time, forward and backward.

        The CPU runs ahead of the GPU, so that only a whole layer's time counts. A mixture of experts makes it wait in
        every forward pass for the number of tokens of each expert, unless one graph replays the whole iteration: then
        each pass counts alone (NVIDIA/Megatron-LM, docs/discussions/deepseek-v3-gb200-optimization, section 3.1).
        """
        work = self.work[unit]
        software = self.kernels.software
        launch_s = software.launch_ps * 1e-12
        launched = work.launched_s(software.graphs, launch_s)
        if not any(launched):
            return 0.0, 0.0
        again_s = self._again_s(unit)
        cpu_ps = [time_s * 1e12 for time_s in (launched[0], launched[1])]
        how = recomputation(unit, self.plan)
        if how in {"full", "operations"}:  # every operation is launched again, also one whose result is at hand
            cpu_ps[1] += cpu_ps[0]
        busy_ps = (
            duration_ps(work.forward_s) + self._exposed_in_pass_ps(unit, backward=False),
            duration_ps(work.backward_s + again_s)
            + self._exposed_in_pass_ps(unit, backward=True)
            + (self._exposed_in_pass_ps(unit, backward=False) if how == "full" else 0.0),
        )
        if unit.layer is not None and unit.layer.mlp == "experts":
            return max(0.0, cpu_ps[0] - busy_ps[0]), max(0.0, cpu_ps[1] - busy_ps[1])
        excess = max(0.0, sum(cpu_ps) - sum(busy_ps))
        return excess * cpu_ps[0] / sum(cpu_ps), excess * cpu_ps[1] / sum(cpu_ps)

    def _again_s(self, unit: Unit) -> float:
        """Recomputation time of a backward pass."""
        work, how = self.work[unit], recomputation(unit, self.plan)
        if how == "full":
            return work.forward_s
        if how == "none":
            return 0.0
        if how == "operations":
            return sum(half.operations_s for _, half in work.halves)
        return work.again_s(self.plan.recompute_modules)

    def _exposed_in_pass_ps(self, unit: Unit, *, backward: bool) -> float:
        """Exposed communication of a pass, each call alone on its links.

        What may hide and lasts longer than the computing beside it is not hidden either.
        """
        overlap = self.plan.overlap
        total = computed_ps = 0.0
        for name, half in self.work[unit].halves:
            matmul_s, core_s = (
                (half.matmul_backward_s, half.core_backward_s) if backward else (half.matmul_s, half.core_s)
            )
            before, after = self._around(unit, name, backward=backward)
            hidden = overlap.tensor if name in _WITH_PRODUCTS else 0.0
            total += _exposed((*before, *after), hidden, HIDING_SHARE * duration_ps(matmul_s))
            beside, behind = self._beside(unit, name, backward=backward)
            total += _exposed((*beside, *behind), overlap.context, HIDING_SHARE * duration_ps(core_s))
            computed_ps += duration_ps(half.backward_s if backward else half.forward_s)
        if self.exchanges(unit):
            exchange = self.communication.exchange
            total += _exposed((*exchange, *_inverse(exchange)), overlap.expert, total + computed_ps)
        return total


def _without_weights(half: Half) -> Half:
    """The same unit with only input gradients in its backward pass."""
    return replace(half, matmul_backward_s=half.matmul_backward_s - half.weights_s, weights_s=0.0)


class _Excesses(dict[Unit, tuple[float, float]]):
    """Excess CPU time of units' launches, computed at first use."""

    def __init__(self, units: UnitOperations) -> None:
        super().__init__()
        self._units = units

    def __missing__(self, unit: Unit) -> tuple[float, float]:
        self[unit] = self._units.excess_ps(unit)
        return self[unit]


class _Works(dict[Unit, UnitWork]):
    """Costs of units, computed at first use."""

    def __init__(self, units: UnitOperations) -> None:
        super().__init__()
        self._units = units

    def __missing__(self, unit: Unit) -> UnitWork:
        self[unit] = unit_work(unit, self._units.model, self._units.plan, self._units.kernels)
        return self[unit]


def _exposed(calls: Iterable[TimedCollective], share: float, beside_ps: float) -> float:
    """Exposed time of calls with a share that may hide.

    It is the rest of the calls, and the time by which the share outlasts computing.
    """
    alone_ps = sum(call.alone_ps for call in calls)
    return (1 - share) * alone_ps + max(0.0, share * alone_ps - beside_ps)


def _hide(
    found: list[Operation],
    calls: Sequence[TimedCollective],
    share: float,
    time_s: float,
    about: Literal["compute", "recompute"],
) -> float:
    """Hide a share of calls beside most of a computing time.

    Returns the rest of that time.
    """
    if share <= 0 or not calls:
        return time_s
    found.extend(call.share(share) for call in calls)
    found.append(Compute(duration_ps=duration_ps(HIDING_SHARE * time_s), label=label(about)))
    found.append(Wait(label=calls[0].collect.label))
    return (1 - HIDING_SHARE) * time_s


_OTHER_WAY: Final = {"all-gather": "reduce-scatter", "reduce-scatter": "all-gather"}


def _inverse(calls: Sequence[TimedCollective]) -> list[TimedCollective]:
    """The return of tokens: the same bytes in opposite order and direction."""
    return [_turned(call) for call in reversed(calls)]


def _turned(call: TimedCollective) -> TimedCollective:
    operation = call.collect.operation
    if operation not in _OTHER_WAY:
        return call
    return replace(call, collect=replace(call.collect, operation=_OTHER_WAY[operation]))
