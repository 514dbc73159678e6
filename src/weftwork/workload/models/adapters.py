"""Adapters of LoRA: two thin matrices beside a matrix of a layer, whose own weights stand still.

The adapter of a matrix of ``given`` rows and ``taken`` columns has rank x (given + taken) parameters. Names of matrices
are those of Megatron-Bridge: ``linear_qkv`` and ``linear_fc1`` have one adapter (LoRA), their parts one each
(CanonicalLoRA). Tensor ranks split both thin matrices.
Source: Hu et al., arXiv:2106.09685, section 4.1; NVIDIA-NeMo/Megatron-Bridge, src/megatron/bridge/peft/lora.py and
canonical_lora.py.
Leaves out: adapters of experts, of latent attention, of state spaces and delta nets, of embedding and loss head;
DoRA, whose magnitudes are trained too.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from weftwork.spec.training import LoraTarget, Model, Parallelism
from weftwork.workload.models.size import layer_kinds

if TYPE_CHECKING:
    from weftwork.workload.models.size import LayerKind

__all__ = ["PARTS", "Adapter", "adapter_parameters", "adapters", "every_adapter", "lora_targets"]

_Shape = tuple[LoraTarget, int, int, bool]  # a matrix, its rows and columns, and whether ranks split its rows

# Parts of the matrices that are one in Megatron-LM
PARTS: Final[dict[LoraTarget, tuple[LoraTarget, ...]]] = {
    "linear_qkv": ("linear_q", "linear_k", "linear_v"),
    "linear_fc1": ("linear_fc1_gate", "linear_fc1_up"),
}
_ATTENTION: Final[tuple[LoraTarget, ...]] = ("linear_qkv", "linear_proj")
_MLP: Final[tuple[LoraTarget, ...]] = ("linear_fc1", "linear_fc2")


@dataclass(frozen=True, kw_only=True, slots=True)
class Adapter:
    """The adapter of one matrix of a layer, on all tensor ranks together.

    Attributes
    ----------
    target : name of the matrix
    given, taken : its rows and columns
    rank : columns of the first thin matrix and rows of the second
    has_split_input : whether tensor ranks split the rows of the matrix, and not its columns
    """

    target: LoraTarget
    given: int
    taken: int
    rank: int
    has_split_input: bool

    @property
    def parameters(self) -> int:
        """Parameters of both thin matrices."""
        return self.rank * (self.given + self.taken)


def lora_targets(model: Model, plan: Parallelism) -> tuple[LoraTarget, ...]:
    """Matrices with an adapter: those of the plan, or all of attention and of dense MLPs.

    A model with experts has adapters in attention alone unless the plan names others.
    """
    if plan.lora_targets:
        return plan.lora_targets
    return _ATTENTION if model.experts else (*_ATTENTION, *_MLP)


def adapters(model: Model, plan: Parallelism, kind: LayerKind) -> tuple[tuple[Adapter, ...], tuple[Adapter, ...]]:
    """Adapters of a layer under a plan: those of its token mixer, and those of its MLP."""
    if not plan.has_lora:
        return (), ()
    targets = lora_targets(model, plan)
    mixer, mlp = every_adapter(model, kind, plan.lora_rank)
    return (
        tuple(adapter for adapter in mixer if adapter.target in targets),
        tuple(adapter for adapter in mlp if adapter.target in targets),
    )


def every_adapter(model: Model, kind: LayerKind, rank: int = 1) -> tuple[tuple[Adapter, ...], tuple[Adapter, ...]]:
    """An adapter beside each matrix of a layer that can have one: those of its token mixer, and those of its MLP."""
    has_products = kind.mixer in {"attention", "window"} and model.latent_attention is None
    mixer: Iterable[_Shape] = _attention(model) if has_products else ()
    mlp: Iterable[_Shape] = _dense(model) if kind.mlp == "dense" else ()
    of_mixer, of_mlp = (
        tuple(
            Adapter(target=target, given=given, taken=taken, rank=rank, has_split_input=is_split)
            for target, given, taken, is_split in shapes
        )
        for shapes in (mixer, mlp)
    )
    return of_mixer, of_mlp


def adapter_parameters(model: Model, plan: Parallelism) -> int:
    """Parameters of the adapters of a whole model.

    Examples
    --------
    >>> from weftwork.workload.models.catalogue import model
    >>> plan = Parallelism(has_lora=True, lora_rank=8, lora_targets=("linear_q", "linear_v"))
    >>> adapter_parameters(model("llama-2-7b"), plan)
    4194304
    """
    return sum(
        adapter.parameters for kind in layer_kinds(model) for half in adapters(model, plan, kind) for adapter in half
    )


def _attention(model: Model) -> Iterator[_Shape]:
    queries = model.heads * model.head_dim * (2 if model.has_gated_attention else 1)
    keys = model.key_value_heads * model.head_dim
    yield "linear_qkv", model.hidden, queries + 2 * keys, False
    yield "linear_q", model.hidden, queries, False
    yield "linear_k", model.hidden, keys, False
    yield "linear_v", model.hidden, keys, False
    yield "linear_proj", model.heads * model.head_dim, model.hidden, True


def _dense(model: Model) -> Iterator[_Shape]:
    yield "linear_fc1", model.hidden, model.ffn * (2 if model.is_gated else 1), False
    if model.is_gated:
        yield "linear_fc1_gate", model.hidden, model.ffn, False
        yield "linear_fc1_up", model.hidden, model.ffn, False
    yield "linear_fc2", model.ffn, model.hidden, True
