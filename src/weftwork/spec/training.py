"""Records of a training job: model, parallel plan, GPU and software.

They are numbers with units. `weftwork.workload.models` and the hardware catalogue fill these records; the sections of a
scenario choose among them.
Leaves out: optimizers other than Adam, and models that are not transformers.
"""

from __future__ import annotations

from typing import Final, Literal

from pydantic import Field

from weftwork.spec.device import Record, row

__all__ = [
    "ContextExchange",
    "DeltaNet",
    "Gpu",
    "GraphModule",
    "LatentAttention",
    "LoraTarget",
    "Model",
    "ModulePrecision",
    "Overlap",
    "Parallelism",
    "PipelineSchedule",
    "Precision",
    "ProductRates",
    "Recompute",
    "RecomputeModule",
    "Software",
    "StateSpace",
]

Precision = Literal["bf16", "fp8", "mxfp8", "nvfp4"]
ProductRates = Literal["best-shape", "measured"]  # of a GPU: `weftwork.hardware.catalogue.gpu`
PipelineSchedule = Literal["gpipe", "1f1b", "zb-h1", "dualpipe"]
# What context ranks exchange for attention: keys and values around a ring, or heads (Ulysses).
ContextExchange = Literal["ring", "all-to-all"]
# Names of NVIDIA/Megatron-LM: --cuda-graph-scope (here `iteration` for full_iteration) and --recompute-modules.
GraphModule = Literal["iteration", "attn", "mamba", "mlp", "moe_router", "moe_preprocess"]
Recompute = Literal["none", "selective", "operations", "full"]
RecomputeModule = Literal["core_attn", "layernorm", "mla_up_proj", "mlp", "moe", "moe_act", "shared_experts"]

# Matrices beside which LoRA trains adapters: target_modules of LoRA and CanonicalLoRA in NVIDIA-NeMo/Megatron-Bridge
LoraTarget = Literal[
    "linear_qkv", "linear_q", "linear_k", "linear_v", "linear_proj", "linear_fc1", "linear_fc1_gate", "linear_fc1_up",
    "linear_fc2",
]  # fmt: skip


class LatentAttention(Record):
    """Multi-head latent attention. Source: DeepSeek-V2, arXiv:2405.04434, section 2.1."""

    query_rank: int = Field(ge=0)  # 0: the query is not compressed
    key_value_rank: int = Field(gt=0)
    no_position_dim: int = Field(gt=0)
    rope_dim: int = Field(ge=0)
    value_dim: int = Field(gt=0)


class StateSpace(Record):
    """A Mamba-2 layer, whose inner width is ``heads x head_dim``.

    Source: Dao and Gu, arXiv:2405.21060, section 7.
    """

    heads: int = Field(gt=0)
    head_dim: int = Field(gt=0)
    state: int = Field(gt=0)
    groups: int = Field(gt=0)
    kernel: int = Field(default=4, gt=0)  # of the convolution


class DeltaNet(Record):
    """A gated delta net, which mixes tokens in linear time.

    Source: Yang et al., arXiv:2412.06464, sections 3 and 4.
    """

    key_heads: int = Field(gt=0)
    value_heads: int = Field(gt=0)  # a multiple of the key heads
    key_dim: int = Field(gt=0)  # of a head
    value_dim: int = Field(gt=0)
    kernel: int = Field(default=4, gt=0)  # of the convolution


class Model(Record):
    """A decoder-only transformer.

    ``expert_layers`` of the ``layers`` are mixtures of experts; the first ``layers - expert_layers`` are dense, or
    those between spread mixtures. With
    ``state_space_layers`` each layer is one thing: so many are Mamba-2, ``attention_layers`` are attention,
    ``expert_layers`` mixtures of experts, and those that are left, if any, dense MLPs. ``delta_layers`` of the layers
    have a gated delta net in place of attention.
    """

    name: str
    layers: int = Field(gt=0)
    hidden: int = Field(gt=0)
    heads: int = Field(gt=0)
    key_value_heads: int = Field(gt=0)
    head_dim: int = Field(gt=0)
    ffn: int = Field(ge=0)  # width of a dense MLP
    vocabulary: int = Field(gt=0)
    sequence: int = Field(default=2048, gt=0)  # tokens it was made for
    has_stated_sequence: bool = True  # else the default stands, and a job that rests on it says so
    is_gated: bool = False  # three matrices in an MLP (SwiGLU) instead of two
    has_squared_relu: bool = False  # without gates: the activation, else GELU; no time or memory depends on it
    has_tied_embeddings: bool = True
    has_dropout: bool = True
    has_query_key_norm: bool = False  # of every head, in front of attention
    experts: int = Field(default=0, ge=0)
    experts_per_token: int = Field(default=0, ge=0)
    expert_ffn: int = Field(default=0, ge=0)
    shared_ffn: int = Field(default=0, ge=0)  # width of all shared experts together
    expert_layers: int = Field(default=0, ge=0)
    has_spread_experts: bool = (
        False  # mixtures of experts are spread evenly among dense layers, which are not the first
    )
    expert_hidden: int = Field(default=0, ge=0)  # width that routed experts take and give (latent experts); 0: hidden
    latent_attention: LatentAttention | None = None
    attention_window: int = Field(default=0, ge=0)  # tokens that a layer with a window looks back; 0: no such layers
    window_layers: int = Field(default=0, ge=0)
    has_chunked_windows: bool = False  # such a layer looks back to the begin of a chunk of as many tokens (Llama 4)
    state_space_layers: int = Field(default=0, ge=0)  # layers without attention and without MLP (Mamba-2)
    state_space: StateSpace | None = None
    delta_layers: int = Field(default=0, ge=0)
    delta: DeltaNet | None = None
    has_gated_attention: bool = False  # a matrix as wide as the queries whose values gate what attention gives
    attention_layers: int | None = None  # layers that have attention; None: all
    prediction_layers: int = Field(default=0, ge=0)  # multi-token prediction, DeepSeek-V3: further tokens predicted
    has_shared_predictions: bool = False  # one module for all of them, its output its next input


class Gpu(Record):
    """A GPU as the model of computation sees it.

    Rates are bytes and FLOP, both per second; no sparsity.
    """

    name: str
    bf16_flops: float = Field(gt=0)
    fp8_flops: float = Field(gt=0)
    fp4_flops: float = Field(gt=0)
    achieved_share: float = Field(gt=0, le=1)  # best measured matmul over the peak
    achieved_fp8_share: float = Field(gt=0, le=1)  # in eight bits and fewer, before ``Software.fp8_efficiency``
    achieved_fp4_share: float = Field(gt=0, le=1)  # in four bits, likewise
    achieved_fp8_low_share: float = Field(gt=0, le=1)  # that it has at least, where nobody has measured it
    memory_bytes: int = Field(gt=0)
    memory_copy_bytes_per_s: float = Field(gt=0)  # measured, reads and writes together
    flash_attention_share: float = Field(gt=0, le=1)  # of the peak, forward, long sequences
    scan_flops: float = Field(gt=0)  # scan of a state space in blocks, forward
    streaming_multiprocessors: int = Field(gt=0)


class Software(Record):
    """Efficiency of software on the hardware: inputs with defaults.

    The presets are rows of the software catalogue.
    """

    name: str = "plain"
    matmul_efficiency: float = row(
        default=0.92,
        gt=0,
        le=1.2,
        text="Share of the best measured matrix product that large products reach; the one constant that was fitted.",
        source="fitted to vTrain, MICRO 2024: 39.1 billion parameters on 512 A100",
    )
    fp8_efficiency: float = row(
        default=0.84,
        gt=0,
        le=1,
        text="Factor of matmul_efficiency in FP8; its square in FP4.",
        source="Azure AI benchmarking guide: FP8 and BF16 matrix products on an H100",
    )
    memory_efficiency: float = row(
        default=0.85,
        gt=0,
        le=1,
        text="Share of the measured memory copy that other kernels reach.",
        source="chosen: between 0.8 and 1.0, which fit alike",
    )
    kernel_tail_ps: int = row(
        default=3_000_000,
        ge=0,
        text="Time in which a kernel fills and empties the GPU.",
        source="chosen: a few microseconds",
    )
    launch_ps: int = row(
        default=8_000_000,
        ge=0,
        text="CPU time to launch one operation; a layer never takes less than that for all of its operations.",
        source="chosen: PyTorch with fused operations; eager code takes four times as long",
    )
    graphs: tuple[GraphModule, ...] = row(
        default=(),
        text="Modules whose operations CUDA graphs replay, which costs the CPU nothing; iteration: all of them.",
        source="NVIDIA/Megatron-LM: --cuda-graph-scope; chosen: none",
    )
    network_efficiency: float = row(
        default=0.96,
        gt=0,
        le=1,
        text="Share of a NIC that collectives reach, beyond headers.",
        source="chosen: what large collectives of NCCL reach",
    )
    latency_scale: float = row(
        default=1.0,
        ge=0,
        le=1000,
        text="Factor of all latencies of NCCL: launches, steps and ramps of collectives, and messages between stages.",
        source="chosen: 1, the latencies of NCCL, src/graph/tuning.cc",
    )
    has_deduplicated_experts: bool = row(
        default=False,
        text="Whether a token goes once to each server and not once to each expert (DeepEP, HybridEP).",
        source="deepseek-ai/DeepEP",
    )
    expert_streams: int = row(
        default=0,
        ge=0,
        text="Streams of matrix products of a GPU's experts, with one kernel per expert; 0: one kernel for all.",
        source="NVIDIA/TransformerEngine, GroupedLinear: 4 streams of cuBLAS; chosen: one grouped matrix product",
    )
    has_fused_router: bool = row(
        default=True,
        text="Whether the router of experts is fused into fewer kernels.",
        source="NVIDIA/Megatron-LM: --moe-router-fusion",
    )
    has_fused_activations: bool = row(
        default=False,
        text="Whether the experts' activation, and its cast to a smaller format, happen inside their matrix product.",
        source="NVIDIA-NeMo/Megatron-Bridge: cutedsl_fused_grouped_mlp",
    )
    exchange_efficiency: float = row(
        default=1.0,
        gt=0,
        le=1,
        text="Share of the NVLink message rate that the exchange of experts gets.",
        source="chosen: all of it, as NCCL's all-to-all",
    )
    exchange_multiprocessors: int = row(
        default=0,
        ge=0,
        text="Multiprocessors that the exchange of experts takes from computing beside it.",
        source="deepseek-ai/DeepEP: num_sms; chosen: none, as where nothing hides",
    )
    has_flash_attention: bool = row(
        default=True,
        text="Whether attention keeps its square of scores in registers.",
        source="Dao et al., arXiv:2205.14135",
    )
    attention_efficiency: float = row(
        default=1.0,
        gt=0,
        le=1.2,
        text="Share of the GPU's rate of fused attention that the kernels of this stack reach.",
        source="chosen: all of it; FlashAttention-2 on an H100: 0.47, 327.9 TFLOP/s in the Azure AI benchmarking guide",
    )
    has_fp8_attention: bool = row(
        default=False,
        text="Whether fused attention runs in FP8 where matrix products run in eight bits or fewer.",
        source="NVIDIA-NeMo/Megatron-Bridge: fp8_dot_product_attention",
    )


# Share of a GPU's memory that a plan leaves free: beyond it a run warns. Of the 42 measured peaks of BLOOM's
# experiments, which count all that a GPU holds, 38 were predicted 10 % low or more (data/published/peak_memory.csv).
HEADROOM: Final = 0.10  # chosen: a round share that nearly all published plans leave


class Overlap(Record):
    """Share of each communication that may hide behind computation."""

    tensor: float = Field(default=0.0, ge=0, le=1)
    data: float = Field(default=0.0, ge=0, le=1)
    pipeline: float = Field(default=0.0, ge=0, le=1)
    expert: float = Field(default=0.0, ge=0, le=1)
    context: float = Field(default=0.9, ge=0, le=1)


class ModulePrecision(Record):
    """Number formats of the modules that differ from their layer.

    None: the format of the layer.
    """

    qkv: Precision | None = None  # queries, keys and values
    projection: Precision | None = None  # behind attention
    latent: Precision | None = None  # to and from the width of latent experts
    mamba_out: Precision | None = None  # behind the scan of a state space
    prediction: Precision | None = None  # all of a module of multi-token prediction


class Parallelism(Record):
    """Spread of a model over GPUs, and the schedule of an iteration.

    World size is ``tensor x context x data x pipeline``. Experts are spread over ``expert`` ranks of the
    ``tensor x context x data`` ranks of a stage (``expert_tensor`` of which share an expert).
    """

    tensor: int = Field(default=1, gt=0)
    context: int = Field(default=1, gt=0)
    context_exchange: ContextExchange = "ring"
    pipeline: int = Field(default=1, gt=0)
    data: int = Field(default=1, gt=0)
    expert: int = Field(default=1, gt=0)
    expert_tensor: int = Field(default=1, gt=0)
    virtual_stages: int = Field(default=1, gt=0)  # on each pipeline stage; above 1 the schedule is interleaved
    schedule: PipelineSchedule = "1f1b"
    micro_batch: int = Field(default=1, gt=0)  # sequences
    global_batch: int = Field(default=1, gt=0)  # sequences
    sequence: int = Field(default=2048, gt=0)  # tokens
    is_sequence_parallel: bool = True
    zero: Literal[0, 1, 2, 3] = 1
    has_prefetch: bool = True  # ZeRO 3: the next layer is gathered while this one computes
    recompute: Recompute = "none"
    recompute_every: int = Field(default=1, gt=0)  # layers: one of so many is computed again, the last of them
    recompute_modules: tuple[RecomputeModule, ...] = ("core_attn",)  # that selective recomputation computes again
    precision: Precision = "bf16"
    module_precision: ModulePrecision = ModulePrecision()
    bf16_first_layers: int = Field(default=0, ge=0)  # layers whose products stay in BF16
    bf16_last_layers: int = Field(default=0, ge=0)
    offloaded_layers: int = Field(default=0, ge=0)  # of a GPU, whose activations wait in the memory of its host
    has_quantised_weights: bool = False  # weights are kept in the fewer bits of their products, and not in BF16
    moment_bytes: Literal[2, 4] = 4  # of each of Adam's two moments
    gradient_bytes: int = Field(default=4, gt=0)  # FP32, as Megatron-LM sums them
    has_gradient_copy: bool = False  # in BF16 beside their sum in FP32 (BF16_Optimizer of DeepSpeed)
    has_lora: bool = False  # weights stand still, and adapters beside them are trained
    lora_rank: int = Field(default=32, gt=0)  # the default of Megatron-Bridge's LoRA, dim
    lora_targets: tuple[LoraTarget, ...] = ()  # matrices with adapters; none: all of attention and of dense MLPs
    has_balanced_ends: bool = False  # embedding and loss head count as layers when layers are given to stages
    layout: str = ""  # units of every part of the pipeline, by hand: NVIDIA/Megatron-LM, pipeline-model-parallel-layout
    order: Literal["tp-cp-dp-pp", "tp-cp-pp-dp"] = "tp-cp-dp-pp"  # the first changes fastest with the rank
    overlap: Overlap = Overlap()

    @property
    def ranks(self) -> int:
        """Number of GPUs."""
        return self.tensor * self.context * self.pipeline * self.data

    @property
    def exchanges_heads(self) -> bool:
        """Whether context ranks exchange heads before and behind attention."""
        return self.context > 1 and self.context_exchange == "all-to-all"

    @property
    def has_split_backward(self) -> bool:
        """Whether the schedule delays weight gradients behind input gradients."""
        return self.schedule in {"zb-h1", "dualpipe"}

    @property
    def has_mirror(self) -> bool:
        """Whether every rank also holds the mirrored pipeline stage (DualPipe).

        The mirrored stage is as far from the other end of the pipeline.
        """
        return self.schedule == "dualpipe"

    @property
    def has_both_ends(self) -> bool:
        """Whether the same ranks hold the first and the last layers."""
        return self.pipeline == 1 or self.has_mirror

    @property
    def micro_batches(self) -> int:
        """Micro batches of one pipeline and iteration."""
        return self.global_batch // (self.data * self.micro_batch)

    @property
    def tokens(self) -> float:
        """Tokens of a micro batch on one context rank."""
        return self.micro_batch * self.sequence / self.context

    @property
    def own_tokens(self) -> float:
        """Tokens of a micro batch that one tensor rank norms, adds and keeps."""
        return self.tokens / self.tensor if self.is_sequence_parallel else self.tokens
