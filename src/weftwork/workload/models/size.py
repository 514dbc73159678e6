"""Size of a model: parameters by part, active parameters, training FLOPs.

Model FLOPs count forward and backward passes once and no recomputation: 6 for each parameter of a matrix that a token
meets, and attention. Norms, biases and learned positions are left out: below 0.5 % of any model of the catalogue.
Source: Narayanan et al., arXiv:2104.04473, appendix; DeepSeek-V2, arXiv:2405.04434, section 2.1 (latent attention);
Dao and Gu, arXiv:2405.21060 (Mamba-2); Yang et al., arXiv:2412.06464 (gated delta nets).
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import lru_cache
from typing import Final, Literal

from weftwork.spec.training import DeltaNet, Model, Parallelism, StateSpace

__all__ = [
    "LayerKind", "Parameters", "active_parameters", "attended_tokens", "attention_parameters", "delta_parameters",
    "expert_parameters", "iteration_flops", "layer_kinds", "mlp_parameters", "model_flops_per_token", "parameters",
    "prediction_kind", "prediction_share", "state_space_parameters",
]  # fmt: skip

_LORA_SHARE: Final = 2 / 3  # of matrix products: forward and data gradients; weights have none

# FLOPs of the scan of Mamba-2, forward, for each token, inner channel and state.
SCAN_FLOPS: Final = 7  # NVIDIA/Megatron-LM, megatron/training/training.py, mamba_layer_flops; unverified
# FLOPs of a gated delta net's recurrence, forward, for each token, value head, and entry of its state: read with the
# key, written, decayed, read with the query. NVIDIA-NeMo/Megatron-Bridge, training/utils/flop_utils.py, gdn_layer_flops
DELTA_FLOPS: Final = 8


@dataclass(frozen=True, kw_only=True, slots=True)
class LayerKind:
    """Kind of one layer: its token mixing, and its MLP."""

    mixer: Literal["attention", "window", "state-space", "delta", "none"]
    mlp: Literal["dense", "experts", "none"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Parameters:
    """Parameters by part of a model.

    ``head`` is 0 if it is the embedding's matrix. ``prediction`` are those of multi-token prediction, which published
    counts leave out and `total` too.
    """

    embedding: int
    head: int
    attention: int
    state_space: int
    delta: int
    dense: int
    router: int
    shared: int
    experts: int
    prediction: int

    @property
    def total(self) -> int:
        """All parameters except multi-token prediction."""
        return sum([int(getattr(self, field.name)) for field in fields(self)]) - self.prediction


@lru_cache(maxsize=64)
def parameters(model: Model) -> Parameters:
    """Count the parameters of a model.

    Examples
    --------
    >>> from weftwork.workload.models.catalogue import model
    >>> round(parameters(model("llama-3-70b")).total / 1e9, 1)
    70.6
    """
    kinds = layer_kinds(model)
    attentions = sum(kind.mixer in {"attention", "window"} for kind in kinds)
    mixtures = sum(kind.mlp == "experts" for kind in kinds)
    embedding = model.vocabulary * model.hidden
    return Parameters(
        embedding=embedding,
        head=0 if model.has_tied_embeddings else embedding,
        attention=attentions * attention_parameters(model),
        state_space=sum(kind.mixer == "state-space" for kind in kinds) * state_space_parameters(model),
        delta=sum(kind.mixer == "delta" for kind in kinds) * delta_parameters(model),
        dense=sum(kind.mlp == "dense" for kind in kinds) * mlp_parameters(model, model.ffn),
        router=mixtures * model.hidden * model.experts,
        shared=mixtures * (mlp_parameters(model, model.shared_ffn) + _latent_experts(model)),
        experts=mixtures * model.experts * expert_parameters(model),
        prediction=round(
            model.prediction_layers * prediction_share(model) * _prediction_parameters(model, model.experts)
        ),
    )


def active_parameters(model: Model) -> int:
    """Active parameters of one token.

    Embedding and head are included, multi-token prediction is not.
    """
    counted = parameters(model)
    share = model.experts_per_token / model.experts if model.experts else 0.0
    return counted.total - counted.experts + round(counted.experts * share)


def attention_parameters(model: Model) -> int:
    """Parameters of the attention of one layer."""
    latent = model.latent_attention
    if latent is None:
        gates = model.heads if model.has_gated_attention else 0
        return model.hidden * model.head_dim * (2 * (model.heads + model.key_value_heads) + gates)
    query_dim = model.heads * (latent.no_position_dim + latent.rope_dim)
    rank = latent.query_rank
    query = model.hidden * rank + rank * query_dim if rank else model.hidden * query_dim
    down = model.hidden * (latent.key_value_rank + latent.rope_dim)
    up = latent.key_value_rank * model.heads * (latent.no_position_dim + latent.value_dim)
    return query + down + up + model.heads * latent.value_dim * model.hidden


def mlp_parameters(model: Model, width: int, hidden: int = 0) -> int:
    """Parameters of an MLP of a width.

    ``hidden`` is the width of its input and output; 0 means the model's.
    """
    return (3 if model.is_gated else 2) * (hidden or model.hidden) * width


def expert_parameters(model: Model) -> int:
    """Parameters of one routed expert."""
    return mlp_parameters(model, model.expert_ffn, model.expert_hidden)


def state_space_parameters(model: Model) -> int:
    """Parameters of a Mamba-2 layer; 0 for a model without such layers."""
    space = model.state_space
    if space is None:
        return 0
    inner, both = space.heads * space.head_dim, 2 * space.groups * space.state
    return model.hidden * (2 * inner + both + space.heads) + inner * model.hidden + space.kernel * (inner + both)


def delta_parameters(model: Model) -> int:
    """Parameters of a gated delta net.

    They are queries, keys, values, gate, two numbers a head, convolution, and the output.
    """
    delta = model.delta
    if delta is None:
        return 0
    keys, values = delta.key_heads * delta.key_dim, delta.value_heads * delta.value_dim
    into = model.hidden * (2 * keys + 2 * values + 2 * delta.value_heads)
    return into + delta.kernel * (2 * keys + values) + values * model.hidden


def _latent_experts(model: Model) -> int:
    """Parameters of one layer's matrices around its routed experts.

    The matrices go to and from the width of routed experts.
    """
    return 2 * model.hidden * model.expert_hidden


def _prediction_parameters(model: Model, experts: int) -> int:
    """Parameters of a multi-token prediction module: a layer and a matrix.

    The layer is like the last one; the matrix goes from two hidden vectors to one.
    """
    mixture = model.hidden * model.experts + mlp_parameters(model, model.shared_ffn) + _latent_experts(model)
    mixture += experts * expert_parameters(model)
    mlp = mixture if model.experts else mlp_parameters(model, model.ffn)
    return 2 * model.hidden * model.hidden + attention_parameters(model) + mlp


def prediction_kind(model: Model) -> LayerKind:
    """Kind of the layer inside a multi-token prediction module.

    It has attention to all tokens, and the model's MLP of late layers. A hybrid whose layers are one thing each has two
    of them there, attention and experts (``*E``), which are the two halves of one layer. Source:
    NVIDIA-NeMo/Megatron-Bridge, models/nemotronh/nemotron_h_provider.py, ``mtp_hybrid_override_pattern``; DeepSeek-V3,
    arXiv:2412.19437, section 2.2.
    """
    return LayerKind(mixer="attention", mlp="experts" if model.expert_layers else "dense")


def prediction_share(model: Model) -> float:
    """Share of a prediction module's parameters that each use adds."""
    return 1 / max(1, model.prediction_layers) if model.has_shared_predictions else 1.0


@lru_cache(maxsize=64)
def model_flops_per_token(
    model: Model, sequence: int = 0, *, causal: bool = True, has_frozen_weights: bool = False
) -> float:
    """FLOPs of training on one token, forward and backward.

    Nothing is done twice.

    Parameters
    ----------
    sequence : tokens; 0 for those the model was made for
    causal : whether a token attends only to those before it, which halves the attention; SC 2021 counts it whole
    has_frozen_weights : whether weights stand still, so that their products have no gradient of them; attention and
        scans have no weights and cost what they always do
    """
    sequence = sequence or model.sequence
    embedding = 0 if model.has_tied_embeddings else model.vocabulary * model.hidden
    kinds = layer_kinds(model)
    matrices = active_parameters(model) - embedding - _convolutions(model)
    modules = model.prediction_layers
    matrices += modules * (
        _prediction_parameters(model, model.experts_per_token if model.experts else 0) + model.vocabulary * model.hidden
    )
    widths = _attention_widths(model)
    seen = sum(attended_tokens(model, kind, sequence, causal=causal) for kind in kinds)
    seen += modules * attended_tokens(model, prediction_kind(model), sequence, causal=causal)
    scans = sum(kind.mixer == "state-space" for kind in kinds) * _scan_flops(model.state_space)
    scans += sum(kind.mixer == "delta" for kind in kinds) * _delta_flops(model.delta)
    products = 6.0 * matrices * (_LORA_SHARE if has_frozen_weights else 1.0)
    return products + 6.0 * widths * seen + 3.0 * scans


def iteration_flops(model: Model, plan: Parallelism) -> float:
    """FLOPs of one iteration on all GPUs.

    Nothing is done twice. Weights that stand still need no gradient of their own.

    Parameters
    ----------
    model, plan : what is trained; the batch, and whether only adapters are
    """
    of_token = model_flops_per_token(model, plan.sequence, has_frozen_weights=plan.has_lora)
    return plan.global_batch * plan.sequence * of_token


def attended_tokens(model: Model, kind: LayerKind, sequence: int, *, causal: bool = True) -> float:
    """Tokens that a token attends to in a layer, on average.

    It is 0 if the layer has no attention.
    """
    if kind.mixer not in {"attention", "window"}:
        return 0.0
    if kind.mixer == "window" and model.attention_window < sequence:
        window = float(model.attention_window)
        if model.has_chunked_windows:
            return window / 2 if causal else window
        return window - window * window / (2 * sequence) if causal else window
    return sequence / 2 if causal else float(sequence)


@lru_cache(maxsize=64)
def layer_kinds(model: Model) -> tuple[LayerKind, ...]:
    """Kind of each layer, from the first to the last.

    Dense layers come first unless mixtures are spread; kinds that are mixed are spread evenly. Models publish their
    own order of layers, which differs from it by a layer at a place and never in the number of each kind.
    """
    if model.state_space_layers:
        return _hybrid_kinds(model)
    dense = model.layers - model.expert_layers
    attentions = model.layers if model.attention_layers is None else model.attention_layers
    found = []
    for layer in range(model.layers):
        mixer: Literal["attention", "window", "delta", "none"] = "attention"
        if _is_chosen(layer, model.delta_layers, model.layers):
            mixer = "delta"
        elif not _is_chosen(layer, attentions, model.layers):
            mixer = "none"
        elif _is_chosen(layer, model.window_layers, model.layers):
            mixer = "window"
        is_dense = layer < dense
        if (
            model.has_spread_experts
        ):  # a mixture is the last of its turn: decoder_sparse_step, interleave_moe_layer_step
            is_dense = not _is_chosen(model.layers - 1 - layer, model.expert_layers, model.layers)
        found.append(LayerKind(mixer=mixer, mlp="dense" if is_dense else "experts"))
    return tuple(found)


def _hybrid_kinds(model: Model) -> tuple[LayerKind, ...]:
    """Kinds of hybrid layers, one kind per layer.

    The kind that lags most behind its share comes next.
    """
    attentions = model.attention_layers or 0
    counts = {
        LayerKind(mixer="state-space", mlp="none"): model.state_space_layers,
        LayerKind(mixer="none", mlp="experts"): model.expert_layers,
        LayerKind(mixer="attention", mlp="none"): attentions,
        LayerKind(mixer="none", mlp="dense"): model.layers
        - model.state_space_layers
        - model.expert_layers
        - attentions,
    }
    given = dict.fromkeys(counts, 0)
    found = []
    for layer in range(model.layers):
        kind = max(counts, key=lambda kind: counts[kind] * (layer + 1) - given[kind] * model.layers)
        given[kind] += 1
        found.append(kind)
    return tuple(found)


def _is_chosen(layer: int, chosen: int, layers: int) -> bool:
    """Whether a layer is one of ``chosen`` evenly spread layers.

    The first layer is one of them.
    """
    return -(-(layer + 1) * chosen // layers) > -(-layer * chosen // layers)


def _attention_widths(model: Model) -> int:
    """Width of query plus value over all heads.

    It is half of the FLOPs of a pair of tokens.
    """
    latent = model.latent_attention
    if latent is None:
        return 2 * model.heads * model.head_dim
    return model.heads * (latent.no_position_dim + latent.rope_dim + latent.value_dim)


def _convolutions(model: Model) -> int:
    space = model.state_space
    if space is None:
        return 0
    return model.state_space_layers * space.kernel * (space.heads * space.head_dim + 2 * space.groups * space.state)


def _scan_flops(space: StateSpace | None) -> float:
    return 0.0 if space is None else float(SCAN_FLOPS * space.heads * space.head_dim * space.state)


def _delta_flops(delta: DeltaNet | None) -> float:
    return 0.0 if delta is None else float(DELTA_FLOPS * delta.value_heads * delta.key_dim * delta.value_dim)
