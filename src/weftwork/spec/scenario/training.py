"""The keys of ``training``, ``jobs`` and ``stragglers``.

They say which model is trained, and how it is spread.
Leaves out: what one key means for another (`weftwork.spec.scenario.training_checks`), and whether the plan can be,
which needs the model (`weftwork.workload.parallelism.refuse`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, get_args

from weftwork.base.fix import Settings
from weftwork.base.units import DURATION, RATE, SIZE
from weftwork.spec.device import Record
from weftwork.spec.limits import MAX_HOSTS
from weftwork.spec.scenario.devices import DeviceChoice
from weftwork.spec.scenario.kinds import (
    Choice,
    DeviceKind,
    Flag,
    Listing,
    Measure,
    NameOrFile,
    Number,
    Section,
    Text,
    Whole,
)
from weftwork.spec.scenario.rows import REQUIRED, row
from weftwork.spec.scenario.training_gpu import gpu_row, memory_row, rates_row, sustained_rate_row
from weftwork.spec.scenario.workload import PLACEMENT_TEXT, PLACEMENTS, fragment_row
from weftwork.spec.training import (
    ContextExchange,
    LoraTarget,
    Model,
    ModulePrecision,
    Overlap,
    Parallelism,
    PipelineSchedule,
    Precision,
    ProductRates,
    Recompute,
    RecomputeModule,
    Software,
)

__all__ = [
    "AUTO_RECIPE",
    "LONG_SEQUENCE",
    "NO_RECIPE",
    "Checkpoint",
    "LoraSection",
    "OverlapSection",
    "PlanProposal",
    "Straggler",
    "TrainingJobSection",
    "TrainingSection",
]

LONG_SEQUENCE = 131_072  # tokens; Grattafiori et al., arXiv:2407.21783, section 3.4.2: the last stage of Llama 3
PIPELINE_OVERLAP = 0.8  # chosen: with virtual stages, all but what the first pass of a stage waits for
_MEGATRON = "NVIDIA/Megatron-LM, megatron/training/arguments.py"
_BRIDGE = "NVIDIA-NeMo/Megatron-Bridge, src/megatron/bridge/training/comm_overlap.py"


def _degree(key: str, text: str) -> int:
    degree: int = row(
        key, Whole(low=1, high=MAX_HOSTS, unit="GPUs"), default=1, text=text, source="chosen: nothing is split"
    )
    return degree


def _share(key: str, what: str, default: float, source: str) -> float:
    share: float = row(
        key,
        Number(low=0, high=1, unit="share"),
        default=default,
        text=f"Share of {what} that may hide behind computation.",
        source=source,
    )
    return share


class OverlapSection(Record):
    """Communication that may hide behind computation."""

    tensor: float = _share(
        "tensor",
        "the communication of tensor parallelism",
        0,
        f"{_MEGATRON}: --tp-comm-overlap is off unless asked for",
    )
    data: float = _share(
        "data", "gradients and weights between data parallel ranks", 0.9,
        f"{_BRIDGE}: overlap_grad_reduce and overlap_param_gather are on with several data parallel ranks; chosen: 0.9,"
        " all but the first and the last of a row of operations",
    )  # fmt: skip
    pipeline: float | None = row(
        "pipeline",
        Number(low=0, high=1, unit="share"),
        absent=f"{PIPELINE_OVERLAP} with virtual stages, 0 without",
        text="Share of activations between pipeline stages that may hide behind computation.",
        source=f"{_BRIDGE}: overlap_p2p_comm is on with virtual stages and off without, as in Megatron-LM; chosen:"
        f" {PIPELINE_OVERLAP}",
    )
    expert: float = _share(
        "expert", "the all-to-all of experts", 0,
        f"{_MEGATRON}: --overlap-moe-expert-parallel-comm is off unless asked for",
    )  # fmt: skip
    context: float = _share(
        "context", "keys and values in a ring of context ranks", 0.9, "chosen: ring attention hides most"
    )

    def resolved(self, virtual_stages: int, context_exchange: ContextExchange | None = None) -> Overlap:
        """Resolve the overlap for a number of virtual stages per pipeline stage.

        Attention waits for all of an exchange of heads, which therefore hides behind nothing.
        """
        usual = PIPELINE_OVERLAP if virtual_stages > 1 else 0.0
        pipeline = usual if self.pipeline is None else self.pipeline
        context = 0.0 if context_exchange == "all-to-all" else self.context
        return Overlap(tensor=self.tensor, data=self.data, pipeline=pipeline, expert=self.expert, context=context)


AUTO_RECIPE: Final = "auto"
NO_RECIPE: Final = "none"
_NUMBERS: Final = ("bf16", "fp8", "mxfp8", "nvfp4")


def _module(key: str, what: str) -> Precision | None:
    precision: Precision | None = row(
        key,
        Choice(options=_NUMBERS),
        absent="as the layer",
        text=f"Numbers for {what}.",
        source=f"{_BRIDGE}: te_quant.cfg of Nemotron 3 Super in NVFP4; chosen: as the layer",
    )
    return precision


class PrecisionByModule(Record):
    """Number formats of the modules that differ from their layer."""

    qkv: Precision | None = _module("qkv", "queries, keys and values")
    projection: Precision | None = _module("projection", "the product behind attention")
    latent: Precision | None = _module("latent", "products to and from the width of latent experts")
    mamba_out: Precision | None = _module("mamba_out", "the product behind a state space")
    prediction: Precision | None = _module("prediction", "all of a prediction layer")

    @property
    def modules(self) -> ModulePrecision:
        """These number formats as a record of a plan."""
        return ModulePrecision.model_validate(self.model_dump())


class Checkpoint(Record):
    """Writing the state of a job to storage."""

    every: int = row(
        "every",
        Whole(low=1, high=1_000_000_000, unit="iterations"),
        default=REQUIRED,
        text="Iterations from one checkpoint to the next.",
        source="chosen: the user does",
    )
    size_bytes: int | None = row(
        "size",
        Measure(quantity=SIZE, low=1),
        absent=(
            "weights, and for Adam a master copy and two moments: 14 bytes for each parameter that is trained (10 with "
            "moments in BF16)"
        ),
        text="Bytes of a checkpoint of the whole job.",
        source="Rajbhandari et al., arXiv:1910.02054, section 3.1",
    )
    rate_bps: int = row(
        "rate",
        Measure(quantity=RATE, low=1_000_000),
        default="8Gbps",
        text="Rate at which storage takes data from one GPU while all GPUs write.",
        source="chosen: 1 GB/s",
    )
    is_asynchronous: bool = row(
        "asynchronous",
        Flag(),
        default=False,
        text="Whether training goes on while a copy in the host's memory is written.",
        source="chosen: the simplest",
    )


class LoraSection(Record):
    """Adapters of fine-tuning."""

    rank: int = row(
        "rank",
        Whole(low=1, high=65_536, unit="columns"),
        default=32,
        text="Rank of each adapter; a matrix of m rows and n columns gets rank x (m + n) trained parameters.",
        source="Hu et al., arXiv:2106.09685, section 4.1; NVIDIA-NeMo/Megatron-Bridge, peft/lora.py: dim",
    )
    targets: tuple[LoraTarget, ...] | None = row(
        "targets",
        Listing(item=Choice(options=get_args(LoraTarget))),
        absent="linear_qkv and linear_proj, and without experts also linear_fc1 and linear_fc2",
        text="Matrices with adapters; linear_q, linear_k, linear_v, linear_fc1_gate and linear_fc1_up are parts that"
        " get an adapter each, as in peft.",
        source="NVIDIA-NeMo/Megatron-Bridge, peft/lora.py and peft/canonical_lora.py: target_modules",
    )


class TrainingSection(Record):
    """A training job."""

    model: str = row(
        "model",
        NameOrFile(catalogue="model", endings=(".json",)),
        default=REQUIRED,
        text="Model of the catalogue, or its config.json from Hugging Face.",
        source="chosen: it decides what is asked, so the user does",
    )
    recipe: str = row(
        "recipe",
        Text(longest=120),
        default=AUTO_RECIPE,
        text="Public recipe whose values the keys software, overlap, recompute, gradients, moments, quantised_weights,"
        " layout and balanced_ends have unless the scenario sets them: a name of `weftwork list recipe`, none, or auto:"
        " for a mixture of experts the newest recipe of its model, GPU and precision, none for others.",
        source="NVIDIA-NeMo/Megatron-Bridge; chosen: a mixture whose exchange nobody has tuned is several times slower",
    )
    tensor: int = _degree("tensor", "Ranks that split every matrix.")
    context: int = _degree("context", "Ranks that split a sequence.")
    context_exchange: ContextExchange | None = row(
        "context_exchange",
        Choice(options=get_args(ContextExchange)),
        absent="ring",
        text="What context ranks exchange for attention: keys and values in a ring, or heads by all-to-alls before and"
        " behind it (Ulysses).",
        source=f"Jacobs et al., arXiv:2309.14509, section 3; {_MEGATRON}: --cp-comm-type, by default p2p",
    )
    pipeline: int = _degree("pipeline", "Stages that split the layers.")
    data: int | None = row(
        "data",
        Whole(low=1, high=MAX_HOSTS, unit="copies"),
        absent="the GPUs divided by tensor x context x pipeline",
        text="Copies of the model that split the batch.",
        source="chosen: what is left",
    )
    expert: int = _degree("expert", "Ranks of a stage over which experts are spread.")
    expert_tensor: int = _degree("expert_tensor", "Ranks that split the matrices of one expert.")
    virtual_stages: int = row(
        "virtual_stages",
        Whole(low=1, high=1_024, unit="virtual stages"),
        default=1,
        text="Virtual stages on each pipeline stage; above 1 the schedule is interleaved.",
        source="Narayanan et al., arXiv:2104.04473, section 2.2.2; chosen: plain stages",
    )
    schedule: str = row(
        "schedule",
        Choice(options=get_args(PipelineSchedule)),
        default="1f1b",
        text="Order of forward and backward passes in a stage; zb-h1 and dualpipe delay gradients of weights, and"
        " dualpipe sends micro batches from both ends, through two copies of the weights.",
        source="Narayanan et al., arXiv:2006.09503; Qi et al., arXiv:2401.10241 (zb-h1); DeepSeek-V3, arXiv:2412.19437"
        " (dualpipe)",
    )
    micro_batch: int = row(
        "micro_batch",
        Whole(low=1, high=65_536, unit="sequences"),
        default=1,
        text="Sequences of one pass.",
        source="chosen: the least memory",
    )
    global_batch: int = row(
        "global_batch",
        Whole(low=1, high=2**31 - 1, unit="sequences"),
        default=REQUIRED,
        text="Sequences of an iteration over all copies.",
        source="chosen: it decides what is learnt, so the user does",
    )
    sequence: int | None = row(
        "sequence",
        Whole(low=1, high=2**31 - 1, unit="tokens"),
        absent=f"the tokens that the model was made for; {LONG_SEQUENCE:,} with phase long-context",
        text="Tokens of a sequence.",
        source="Grattafiori et al., arXiv:2407.21783, section 3.4.2: 128 Ki tokens in the last stage",
    )
    force: bool = row(
        "force",
        Flag(),
        default=False,
        text="Whether a sequence may be many times longer than the sequences that the model was made for.",
        source="chosen: a slip of the pen is likelier",
    )
    sequence_parallel: bool = row(
        "sequence_parallel",
        Flag(),
        default=True,
        text="Whether tensor ranks also split the activations between the matrices, along the sequence.",
        source="Korthikanti et al., arXiv:2205.05198, section 4.2",
    )
    zero: int = row(
        "zero",
        Whole(low=0, high=3, unit="stage"),
        default=1,
        text="Sharding over data parallel ranks: 1 the optimizer, 2 also gradients, 3 also weights (FSDP); 0 nothing.",
        source="Rajbhandari et al., arXiv:1910.02054; chosen: the distributed optimizer of Megatron-LM",
    )
    prefetch: bool | None = row(
        "prefetch",
        Flag(),
        default=True,
        only=("zero", ("3",)),
        text="Whether the weights of the next layer are gathered while this one computes.",
        source="chosen: as FSDP does",
    )
    recompute: str = row(
        "recompute",
        Choice(options=get_args(Recompute)),
        default="none",
        text="Activations that a backward pass recomputes instead of keeping them: some modules, all but the results "
        "of attention and of every second matrix product (operations), or whole layers.",
        source="Korthikanti et al., arXiv:2205.05198, section 5; operations: pytorch/torchtitan, "
        "torchtitan/distributed/activation_checkpoint.py, selective_ac_option op",
    )
    recompute_every: int | None = row(
        "recompute_every",
        Whole(low=1, high=100_000, unit="layers"),
        default=1,
        only=("recompute", ("selective", "operations", "full")),
        text="One of so many layers is recomputed, the others keep their activations.",
        source="pytorch/torchtitan, torchtitan/distributed/activation_checkpoint.py, selective_ac_option as a number",
    )
    recompute_modules: tuple[str, ...] | None = row(
        "recompute_modules",
        Listing(item=Choice(options=get_args(RecomputeModule))),
        default=("core_attn",),
        only=("recompute", ("selective",)),
        text="Modules that selective recomputation computes again; moe_act is the activation of experts.",
        source=f"{_MEGATRON}: --recompute-modules, the core of attention unless asked for others",
    )
    offloaded_layers: int = row(
        "offloaded_layers",
        Whole(low=0, high=100_000, unit="layers"),
        default=0,
        text="Layers of a GPU with activations in the memory of its host; neighbouring layers hide their transfers as"
        " far as they last.",
        source="NVIDIA/TransformerEngine, get_cpu_offload_context; chosen: none, the simplest",
    )
    precision: str = row(
        "precision",
        Choice(options=_NUMBERS),
        default="bf16",
        text="Numbers that matrices are multiplied in.",
        source="chosen: what every GPU of the catalogue has",
    )
    precision_by_module: PrecisionByModule = row(
        "precision_by_module",
        Section(model=PrecisionByModule),
        text="Number formats of the modules that differ from their layer.",
        source="see its keys",
    )
    bf16_first_layers: int = row(
        "bf16_first_layers",
        Whole(low=0, high=10_000, unit="layers"),
        default=0,
        text="Layers at the front with matrix products in BF16.",
        source=f"{_MEGATRON}: --num-layers-at-start-in-bf16; chosen: none, as without --first-last-layers-bf16",
    )
    bf16_last_layers: int = row(
        "bf16_last_layers",
        Whole(low=0, high=10_000, unit="layers"),
        default=0,
        text="Layers at the end with matrix products in BF16.",
        source=f"{_MEGATRON}: --num-layers-at-end-in-bf16; chosen: none, as without --first-last-layers-bf16",
    )
    quantised_weights: bool = row(
        "quantised_weights",
        Flag(),
        default=False,
        text="Whether weights are kept in the fewer bits of their products alone, without a copy in BF16.",
        source=f"{_MEGATRON}: --fp8-param-gather; chosen: its default",
    )
    moments: str = row(
        "moments",
        Choice(options=("bf16", "fp32")),
        default="fp32",
        text="Numbers in which Adam keeps its two moments.",
        source=f"{_MEGATRON}: --exp-avg-dtype; chosen: its default",
    )
    gradients: str = row(
        "gradients",
        Choice(options=("bf16", "fp32", "bf16+fp32")),
        default="fp32",
        text="Numbers in which gradients are summed and sent; bf16+fp32 keeps a copy in BF16 beside the sum in FP32.",
        source=f"{_MEGATRON}: FP32 under --bf16 unless --grad-reduce-in-bf16; bigscience-workshop/bigscience,"
        " train/tr11-176B-ml/README.md: BF16_Optimizer of DeepSpeed, whose sum in FP32 comes on top and is not sharded",
    )
    phase: str = row(
        "phase",
        Choice(options=("pre-training", "long-context", "fine-tuning-lora")),
        default="pre-training",
        text="Kind of training: all weights, all weights on long sequences, or adapters beside frozen weights.",
        source="Hu et al., arXiv:2106.09685: LoRA",
    )
    lora: LoraSection | None = row(
        "lora",
        Section(model=LoraSection, optional=True),
        absent="with phase fine-tuning-lora the defaults of its keys",
        only=("phase", ("fine-tuning-lora",)),
        text="Adapters that are trained.",
        source="see its keys",
    )
    order: str = row(
        "order",
        Choice(options=("tp-cp-dp-pp", "tp-cp-pp-dp")),
        default="tp-cp-dp-pp",
        text="Order of the parallel degrees in rank numbers; the first degree changes fastest.",
        source=f"{_MEGATRON}: tp-cp-ep-dp-pp, or --use-tp-pp-dp-mapping",
    )
    placement: str = row(
        "placement",
        Choice(options=PLACEMENTS),
        default="packed",
        text=PLACEMENT_TEXT,
        source="chosen: as launchers number ranks",
    )
    fragment: int | None = fragment_row()
    gpus: int | None = row(
        "gpus",
        Whole(low=1, high=MAX_HOSTS, unit="GPUs"),
        absent="all GPUs of the fabric; with several jobs as many as a job's degrees need",
        text="GPUs that take part.",
        source="chosen: everybody",
    )
    first_gpu: int | None = row(
        "first_gpu",
        Whole(low=0, high=MAX_HOSTS - 1, unit="GPU number"),
        absent="0; of several jobs the first that the one before leaves",
        text="Number of the first GPU, in the order of the placement.",
        source="chosen: the first",
    )
    iterations: int = row(
        "iterations",
        Whole(low=1, high=10_000, unit="iterations"),
        default=1,
        text="Iterations that are simulated.",
        source="chosen: iterations are alike unless something happens",
    )
    gpu: str | None = gpu_row()
    rates: ProductRates = rates_row()
    sustained_rate: float | None = sustained_rate_row()
    memory_bytes: int | None = memory_row()
    software: DeviceChoice = row(
        "software",
        DeviceKind(record=Software, catalogue="software", head="name", unit="name"),
        default="plain",
        text="Efficiency of the software on the hardware.",
        source="see its keys",
    )
    overlap: OverlapSection = row(
        "overlap",
        Section(model=OverlapSection),
        text="Communication that hides behind computation.",
        source="see its keys",
    )
    balanced_ends: bool = row(
        "balanced_ends",
        Flag(),
        default=False,
        text="Whether embedding and loss count as a layer each when layers are given to stages.",
        source=f"{_MEGATRON}: --account-for-embedding-in-pipeline-split; chosen: Megatron-LM's default",
    )
    layout: str | None = row(
        "layout",
        Text(longest=2_000),
        absent="layers are cut into parts as equal as can be",
        text="Units of each part of the pipeline: E embedding, t layer, m prediction layer, L loss, | between parts.",
        source=f"{_MEGATRON}: --pipeline-model-parallel-layout",
    )
    checkpoint: Checkpoint | None = row(
        "checkpoint",
        Section(model=Checkpoint, optional=True),
        absent="none is written",
        text="Writing the state to storage.",
        source="see its keys",
    )
    loading_ps: int = row(
        "loading",
        Measure(quantity=DURATION),
        default="0ps",
        text="Time in which every iteration waits for its data.",
        source="chosen: data are prefetched",
    )

    @property
    def name(self) -> str:
        """Name of the job."""
        return "training"

    def prefetches(self, zero: int) -> bool:
        """Whether weights are prefetched at this degree of sharding."""
        return zero == 3 and self.prefetch is not False

    def parallelism(self, model: Model) -> Parallelism:
        """The parallel plan of ``model``.

        ``data`` is 1 if the number of GPUs is unknown.
        """
        lora = self.lora or LoraSection()
        long = LONG_SEQUENCE if self.phase == "long-context" else model.sequence
        return Parallelism.model_validate(
            {
                "tensor": self.tensor,
                "context": self.context,
                "context_exchange": self.context_exchange or "ring",
                "pipeline": self.pipeline,
                "data": self.data or 1,
                "expert": self.expert,
                "expert_tensor": self.expert_tensor,
                "virtual_stages": self.virtual_stages,
                "schedule": self.schedule,
                "micro_batch": self.micro_batch,
                "global_batch": self.global_batch,
                "sequence": self.sequence or long,
                "is_sequence_parallel": self.sequence_parallel,
                "zero": self.zero,
                "has_prefetch": self.prefetches(self.zero),
                "recompute": self.recompute,
                "recompute_modules": self.recompute_modules or ("core_attn",),
                "recompute_every": self.recompute_every or 1,
                "precision": self.precision,
                "module_precision": self.precision_by_module.modules,
                "bf16_first_layers": self.bf16_first_layers,
                "bf16_last_layers": self.bf16_last_layers,
                "layout": self.layout or "",
                "offloaded_layers": self.offloaded_layers,
                "has_quantised_weights": self.quantised_weights,
                "moment_bytes": 2 if self.moments == "bf16" else 4,
                "gradient_bytes": 2 if self.gradients == "bf16" else 4,
                "has_gradient_copy": self.gradients == "bf16+fp32",
                "has_lora": self.phase == "fine-tuning-lora",
                "lora_rank": lora.rank,
                "lora_targets": lora.targets or (),
                "has_balanced_ends": self.balanced_ends,
                "order": self.order,
                "overlap": self.overlap.resolved(self.virtual_stages, self.context_exchange),
            }
        )


class TrainingJobSection(TrainingSection):
    """One of several training jobs: the keys of ``training``, and a name."""

    job: str | None = row(
        "name",
        Text(longest=60),
        absent="job0, job1 and so on",
        text="Name of the job.",
        source="chosen: its place",
    )

    @property
    def name(self) -> str:
        """Name of the job."""
        return self.job or "job"


class Straggler(Record):
    """A GPU that computes slower than other GPUs."""

    gpu: int = row(
        "gpu",
        Whole(low=0, high=MAX_HOSTS - 1, unit="GPU number"),
        default=REQUIRED,
        text="Number of the GPU in the fabric, server by server.",
        source="chosen: the user does",
    )
    factor: float = row(
        "factor",
        Number(low=1, high=1_000),
        default=REQUIRED,
        text="Computing time relative to other GPUs; 2 takes twice as long.",
        source="chosen: the user does",
    )


# From a section with its GPUs, the name of its servers and its path: the nearest plan that all rules accept.
PlanProposal = Callable[[TrainingSection, str, str], Settings | None]
