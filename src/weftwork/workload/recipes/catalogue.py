"""Public training recipes of Megatron-Bridge.

A release sets them for a model, a GPU and a precision. Each row is what a recipe comes to with its base recipe, the
launcher's overrides and its environment; what nobody sets has the default of Megatron-LM. A release has a tag, and
recipes that did not change have several.
Source: NVIDIA-NeMo/Megatron-Bridge, each row with tag, file and name; Apache-2.0.
Leaves out: variants that the launcher takes only when they are named; GPUs that Weftwork has no figures of; what no
model of Weftwork obeys, such as the formats of optimizer states.
"""

from __future__ import annotations

import csv
from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Final, get_args

from weftwork.base.errors import ConfigError, Mistake
from weftwork.base.nearest import nearest
from weftwork.spec.training import (
    GraphModule,
    LoraTarget,
    Model,
    ModulePrecision,
    Overlap,
    Parallelism,
    Precision,
    RecomputeModule,
    Software,
)
from weftwork.workload.models.software import software

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = [
    "DEEPEP_MULTIPROCESSORS", "EXPERT_STREAMS", "RELEASES", "Recipe", "exchange_share", "recipe_named", "recipe_names",
    "recipes",
]  # fmt: skip

# docs/versions1.json at v0.6.0: containers of the releases
RELEASES: Final = {
    "26.02": "v0.3.0",
    "26.02.01": "v0.3.1",
    "26.04": "v0.4.0",
    "26.04.01": "v0.4.2",
    "26.06": "v0.5.0",
    "26.06.01": "v0.5.1",
    "26.08": "v0.6.0",
}
_FOLDERS: Final = {"configs": "scripts/performance/configs", "perf_recipes": "src/megatron/bridge/perf_recipes"}
DEEPEP_MULTIPROCESSORS: Final = 20  # NVIDIA/Megatron-LM, transformer_config.py: moe_deepep_num_sms, unless set
EXPERT_STREAMS: Final = 4  # NVIDIA/TransformerEngine, multi_stream_cublas_gemm
_WHOLE: Final = "full uniform 1"  # every layer is computed again by itself
_LORA_TARGETS: Final[tuple[LoraTarget, ...]] = ("linear_qkv",)  # cfg.peft.target_modules of all performance recipes
_GRADIENT_BYTES: Final = 2  # grad_reduce_in_fp32 is false in almost all of them
# Priors, never fitted: what a recipe overlaps is hidden but for the first and last of a row of operations
_HIDDEN_TENSOR: Final = 0.7
_HIDDEN: Final = 0.9
_HIDDEN_PIPELINE: Final = 0.8
# Share of NVLink's effective rate that an exchange gets, by the least multiprocessors: bytes that leave a rank, the
# mean of dispatch in BF16 and combine over all numbers of ranks, over the 711 GB/s of hardware/servers.toml. HybridEP:
# kernels alone, since Megatron-LM does the copy behind them in the permutation. Source: deepseek-ai/DeepEP, branch
# hybrid-ep, Hybrid-EP_Intra-node_Implementation.md (GB200 with 8 to 36 ranks, B200 with 8), read in a copy
_EXCHANGE: Final = {
    "hybridep": ((0, 0.82), (32, 0.88)),
    "deepep": ((0, 0.40), (20, 0.48), (24, 0.56), (32, 0.70)),
}


def exchange_share(dispatcher: str, multiprocessors: int) -> float:
    """Share of the NVLink message rate that a token dispatcher gets.

    Parameters
    ----------
    dispatcher : ``deepep`` or ``hybridep``; any other is an all-to-all of NCCL, which gets all of it
    multiprocessors : that it has

    Examples
    --------
    >>> exchange_share("hybridep", 16), exchange_share("alltoall", 0)
    (0.82, 1.0)
    """
    measured = _EXCHANGE.get(dispatcher, ((0, 1.0),))
    return next(share for least, share in reversed(measured) if multiprocessors >= least)


@dataclass(frozen=True, kw_only=True, slots=True)
class Recipe:
    """Settings of one recipe.

    Attributes
    ----------
    tags, file, recipe : where it is read
    model, task, gpu, gpus, precision : what it is for
    scaling : of FP8: by tensor or by block
    sequence, micro_batch, global_batch, tensor, pipeline, context, chunks, expert, expert_tensor : the plan
    fsdp : whether weights are sharded too
    layout : units of each part of the pipeline; ``ends`` where embedding and loss count as layers
    recompute : modules that a backward pass computes again, joined by ``+``; or full, with method and layers
    offload : what the memory of the host keeps of activations
    graphs : modules that CUDA graphs replay, joined by ``+``; ``iteration``: all
    dispatcher, dispatcher_multiprocessors : how tokens come to experts, and what of a GPU that takes
    capacity_factor : of the buffers of a rank's experts, where they have a fixed size
    hides_exchange, hides_tensor, hides_gradients, hides_parameters : what communication runs beside computing
    prediction_layers : of multi-token prediction
    has_fused_activations : the activation of experts and its cast happen inside their matrix product
    has_fused_router : the router is a few kernels
    has_fp8_attention : attention proper is in FP8
    bf16_first_layers, bf16_last_layers, module_precision : what stays in other numbers
    has_quantised_weights : weights are kept in the fewer bits of their products alone (``fp8_param_gather``)
    moments : numbers in which Adam keeps its moments
    is_balanced : tokens are spread over experts evenly, by force
    """

    tags: tuple[str, ...]
    file: str
    recipe: str
    model: str
    task: str
    gpu: str
    gpus: int
    precision: Precision
    scaling: str
    sequence: int
    micro_batch: int
    global_batch: int
    tensor: int
    pipeline: int
    context: int
    chunks: int
    expert: int
    expert_tensor: int
    fsdp: bool
    layout: str
    recompute: str
    offload: str
    graphs: str
    dispatcher: str
    dispatcher_multiprocessors: int
    capacity_factor: float
    hides_exchange: bool
    hides_tensor: bool
    hides_gradients: bool
    hides_parameters: bool
    prediction_layers: int
    has_fused_activations: bool
    has_fused_router: bool
    has_fp8_attention: bool
    bf16_first_layers: int
    bf16_last_layers: int
    module_precision: str
    has_quantised_weights: bool
    moments: str
    is_balanced: bool

    @property
    def graph_modules(self) -> tuple[GraphModule, ...]:
        """Modules that CUDA graphs replay."""
        return tuple(module for module in get_args(GraphModule) if module in self.graphs.split("+"))

    @property
    def recompute_modules(self) -> tuple[RecomputeModule, ...]:
        """Modules that a backward pass recomputes, unless it recomputes whole layers."""
        return tuple(module for module in get_args(RecomputeModule) if module in self.recompute.split("+"))

    @property
    def offloaded_layers(self) -> int:
        """Layers of a GPU with activations in the host's memory."""
        return int(self.offload.removesuffix(" layers")) if self.offload.endswith(" layers") else 0

    @property
    def modules(self) -> ModulePrecision:
        """Modules with a different number format than their layer."""
        return ModulePrecision.model_validate(dict(part.split(":") for part in self.module_precision.split()))

    @property
    def overlap(self) -> Overlap:
        """Communication that hides behind computing."""
        hides_data = self.hides_gradients and self.hides_parameters
        return Overlap(
            tensor=_HIDDEN_TENSOR if self.hides_tensor else 0.0,
            data=_HIDDEN if hides_data else 0.0,
            pipeline=_HIDDEN_PIPELINE if self.chunks > 1 else 0.0,  # overlap_p2p_comm needs virtual stages
            expert=_HIDDEN if self.hides_exchange else 0.0,
        )

    def plan(self, model: Model) -> Parallelism:
        """The plan of the recipe for a model.

        The model decides whether a format of prediction layers means anything. Recomputation of some layers, and
        layouts that only say how many layers the ends have, are no plan of Weftwork's: `unplanned` names them.
        """
        modules = self.modules if model.prediction_layers else self.modules.model_copy(update={"prediction": None})
        return Parallelism(
            gradient_bytes=_GRADIENT_BYTES,
            tensor=self.tensor,
            context=self.context,
            pipeline=self.pipeline,
            data=self.gpus // (self.tensor * self.context * self.pipeline),
            expert=self.expert,
            expert_tensor=self.expert_tensor,
            virtual_stages=self.chunks,
            micro_batch=self.micro_batch,
            global_batch=self.global_batch,
            sequence=self.sequence,
            is_sequence_parallel=self.tensor > 1,
            zero=3 if self.fsdp else 1,
            recompute="full" if self.recompute == _WHOLE else "selective" if self.recompute_modules else "none",
            recompute_modules=self.recompute_modules or ("core_attn",),
            offloaded_layers=self.offloaded_layers,
            precision=self.precision,
            has_quantised_weights=self.has_quantised_weights,
            moment_bytes=2 if self.moments == "bf16" else 4,
            module_precision=modules,
            bf16_first_layers=self.bf16_first_layers,
            bf16_last_layers=self.bf16_last_layers,
            has_lora=self.task == "lora",
            lora_targets=_LORA_TARGETS if self.task == "lora" else (),
            has_balanced_ends=self.layout == "ends",
            layout=self.layout if "L" in self.layout else "",
            overlap=self.overlap,
        )

    @property
    def unplanned(self) -> tuple[str, ...]:
        """Parts of the recipe that its `plan` leaves out, in words."""
        return tuple(
            words
            for words, is_there in (
                (
                    f"recomputation of some whole layers ({self.recompute})",
                    self.recompute.startswith("full") and self.recompute != _WHOLE,
                ),
                (f"layers of the first and last stage ({self.layout})", self.layout.startswith("first=")),
                (f"activations kept by the host ({self.offload})", bool(self.offload) and not self.offloaded_layers),
                (f"buffers of experts of {self.capacity_factor:g} times their share", self.capacity_factor > 0),
                ("experts chosen by the router, unevenly", self.expert > 1 and not self.is_balanced),
            )
            if is_there
        )

    @property
    def exchange_efficiency(self) -> float:
        """Share of NVLink's rate for the dispatcher with its multiprocessors."""
        return exchange_share(self.dispatcher, self.dispatcher_multiprocessors)

    def software(self, release: str) -> Software:
        """Software of the recipe.

        Parameters
        ----------
        release : such as ``26.04.01``; those after 26.06 have the figures of 26.06
        """
        short = min(".".join(release.split(".")[:2]), "26.06")
        return software(f"megatron-bridge-{short}").model_copy(
            update={
                "graphs": self.graph_modules,
                "has_deduplicated_experts": self.dispatcher in _EXCHANGE,
                "exchange_efficiency": self.exchange_efficiency,
                "expert_streams": 0 if self.has_fused_activations else EXPERT_STREAMS,
                "has_fused_router": self.has_fused_router,
                "has_fused_activations": self.has_fused_activations,
                "has_fp8_attention": self.has_fp8_attention,
                "exchange_multiprocessors": self.dispatcher_multiprocessors,
            }
        )


@cache
def recipes() -> tuple[Recipe, ...]:
    """All recipes, in the order of their releases.

    Examples
    --------
    >>> found = [one for one in recipes() if one.model == "deepseek-v3" and one.gpu == "gb300"]
    >>> sorted({one.graphs for one in found if "v0.5.0" in one.tags and one.precision == "mxfp8"})
    ['iteration']
    """
    text = (files("weftwork.workload.recipes") / "megatron_bridge.csv").read_text(encoding="utf-8")
    return tuple(_recipe(row) for row in csv.DictReader(text.splitlines()))


@cache
def recipe_names() -> dict[str, tuple[Recipe, str]]:
    """All recipes by their names, each with its release.

    A name has release, model, GPU and precision, where it is no pre-training the task, and where there are several the
    GPUs.
    """
    found: dict[str, list[tuple[Recipe, str]]] = {}
    for recipe in recipes():
        task = "" if recipe.task == "pretrain" else f"/{recipe.task}"
        for release, tag in RELEASES.items():
            if tag in recipe.tags:
                name = f"{release}/{recipe.model}/{recipe.gpu}/{recipe.precision}{task}"
                found.setdefault(name, []).append((recipe, release))
    named: dict[str, tuple[Recipe, str]] = {}
    for name, several in found.items():
        for recipe, release in several:
            scaling = f"-{recipe.scaling}" if len({one.scaling for one, _ in several}) > 1 else ""
            gpus = f"/{recipe.gpus}" if len({one.gpus for one, _ in several}) > 1 else ""
            named[f"{name}{scaling}{gpus}"] = (recipe, release)
    return named


def recipe_named(name: str) -> tuple[Recipe, str]:
    """A recipe by its name, with its release.

    Raises
    ------
    ConfigError : there is no such recipe; names the nearest

    Examples
    --------
    >>> recipe, release = recipe_named("26.06/deepseek-v3/gb300/mxfp8")
    >>> recipe.gpus, release
    (256, '26.06')
    """
    names = recipe_names()
    if name not in names:
        wanted = "wanted release/model/GPU/precision, see weftwork list recipe"
        raise ConfigError(
            "recipe", [Mistake(path="recipe", text=f"found '{name}', {wanted}", fix=nearest(name, names))]
        )
    return names[name]


def _recipe(row: dict[str, str]) -> Recipe:
    read: dict[str, Callable[[str], object]] = {"int": _whole, "float": _number, "bool": lambda text: text == "yes"}
    values: dict[str, Any] = {
        field.name: read.get(str(field.type), str)(row[field.name]) for field in fields(Recipe) if field.name != "tags"
    }
    if values["dispatcher"] == "deepep":
        values["dispatcher_multiprocessors"] = values["dispatcher_multiprocessors"] or DEEPEP_MULTIPROCESSORS
    folder, _, name = str(values.pop("file")).partition("/")
    return Recipe(tags=tuple(row["tags"].split()), file=f"{_FOLDERS[folder]}/{name}", **values)


def _is_yes(text: str) -> bool:
    return text == "yes"


def _whole(text: str) -> int:
    return int(text or 0)


def _number(text: str) -> float:
    return float(text or 0)
