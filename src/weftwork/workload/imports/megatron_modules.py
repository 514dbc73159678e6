"""Arguments of Megatron-LM about single modules and layers.

They set recomputation, exchange between context ranks, layouts, numbers, graphs and experts.
Source: NVIDIA/Megatron-LM, megatron/training/arguments.py (commit 000c4ac2) and, for what is newer,
megatron/core/transformer/transformer_config.py (commit 002526d8), for names, words and defaults.
Leaves out: graphs of a whole mixture of experts, which need a fixed number of tokens for each expert.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, get_args

from weftwork.base.errors import ConfigError
from weftwork.base.grammar import plural
from weftwork.base.nearest import nearest
from weftwork.spec.training import GraphModule, RecomputeModule
from weftwork.workload.imports.reasons import CHANGES_TIME
from weftwork.workload.imports.shell import without_value
from weftwork.workload.parallelism.layout_text import layout_parts
from weftwork.workload.recipes.catalogue import DEEPEP_MULTIPROCESSORS, EXPERT_STREAMS, exchange_share

if TYPE_CHECKING:
    from weftwork.workload.imports.megatron_keys import ScenarioKeys

__all__ = ["read_bf16_layers", "read_context_exchange", "read_layout", "read_recomputation", "read_software"]

_OTHER_MODULES: Final = ("mhc", "gdn", "gdn_norm_out")  # of Megatron-LM, without a key
# Words of --cp-comm-type (transformer_config.py, cp_comm_type); an all-gather brings the bytes of a ring
_EXCHANGES: Final = {"p2p": "ring", "all_gather": "ring", "a2a": "all-to-all", "a2a+p2p": None}
_EXCHANGE: Final = "--cp-comm-type"
_LAYOUT: Final = "--pipeline-model-parallel-layout"
_SCOPES: Final = ("--cuda-graph-scope", "--cuda-graph-modules")  # the later name last
_SWITCHES: Final = ("--enable-cuda-graph", "--external-cuda-graph")  # as --cuda-graph-impl had it before
_IMPLEMENTATIONS: Final = ("none", "local", "transformer_engine", "full_iteration")
_LAYERS: Final[dict[str, tuple[GraphModule, ...]]] = {  # words that mean more than one module
    "full": ("attn", "mamba", "mlp", "moe_router", "moe_preprocess"),
    "moe": ("moe_router", "moe_preprocess"),
    "full_iteration": ("iteration",),
    "full_iteration_inference": (),
}
_BACKENDS: Final = ("deepep", "deepepv2", "hybridep", "ncclep")
_MULTIPROCESSORS: Final = {  # by backend: arguments that say how many; the first one is the newer
    "deepep": ("--moe-flex-dispatcher-num-sms", "--moe-deepep-num-sms"),
    "deepepv2": ("--moe-flex-dispatcher-num-sms", "--moe-deepep-num-sms"),
    "hybridep": ("--moe-flex-dispatcher-num-sms", "--moe-hybridep-num-sms"),
}
_DISPATCHER: Final = "--moe-token-dispatcher-type"
_BACKEND: Final = "--moe-flex-dispatcher-backend"
_DEEPEP: Final = "--moe-enable-deepep"


def read_recomputation(keys: ScenarioKeys) -> None:
    """Read the modules that a backward pass recomputes."""
    reader = keys.reader
    granularity = reader.word("--recompute-granularity", ("full", "selective"))
    if reader.flag("--recompute-activations"):
        granularity = "selective"
    words = _words(keys, "--recompute-modules", (*get_args(RecomputeModule), *_OTHER_MODULES))
    known = tuple(word for word in words if word in get_args(RecomputeModule))
    if granularity == "selective" and words and not known:
        granularity = "none"
        keys.read["--recompute-modules"] = f"training.recompute: none; {_no_key(words)}"
    elif granularity == "selective" and known:
        keys.put("training.recompute_modules", known, "--recompute-modules")
        if others := tuple(word for word in words if word not in known):
            keys.note("--recompute-modules", _no_key(others))
    keys.put("training.recompute", granularity or "none", "--recompute-granularity", "--recompute-activations")


def read_context_exchange(keys: ScenarioKeys, ranks: int) -> None:
    """Read what context ranks exchange.

    Parameters
    ----------
    keys : of the scenario
    ranks : that split a sequence
    """
    kinds = {_EXCHANGES[word] for word in _words(keys, _EXCHANGE, tuple(_EXCHANGES))}
    if ranks == 1:
        if keys.reader.has(_EXCHANGE):
            keys.read[_EXCHANGE] = "nothing: one rank has the whole sequence"
    elif len(kinds) == 1 and None not in kinds:
        keys.put("training.context_exchange", kinds.pop() or "", _EXCHANGE)
    elif kinds:
        keys.reader.ignored[_EXCHANGE] = f"{CHANGES_TIME}all layers exchange keys and values in a ring"


def _no_key(words: tuple[str, ...]) -> str:
    return f"no key of a scenario computes {' or '.join(words)} again"


def _words(keys: ScenarioKeys, argument: str, choices: tuple[str, ...]) -> tuple[str, ...]:
    """Distinct words of an argument; commas separate words too."""
    given = keys.reader.given.get(argument)
    if given is None:
        return ()
    missing = [name for value in given.values for name in without_value(value)]
    if missing:
        keys.reader.word(argument)  # which says so
        return ()
    found = [word for value in given.values for word in value.replace(",", " ").split()]
    for word in found:
        if word not in choices:
            text = f"found '{word[:60]}', wanted some of {', '.join(choices)}"
            keys.reader.wrong(argument, text, nearest(word, choices))
    return tuple(dict.fromkeys(word for word in found if word in choices))


def read_layout(keys: ScenarioKeys, stages: int, *, has_others: bool) -> int | None:
    """Read a manual layout; return its virtual stages, or None without one.

    Parameters
    ----------
    keys : of the scenario
    stages : of the pipeline
    has_others : whether other arguments say where layers go
    """
    text = keys.reader.word(_LAYOUT)
    if text is None:
        return None
    if has_others:
        wanted = "wanted it alone: it says how many virtual stages there are, and where embedding and loss are"
        keys.reader.wrong(_LAYOUT, f"found beside other arguments that give layers to stages, {wanted}")
        return None
    try:
        parts = len(layout_parts(text))
    except ConfigError as error:
        keys.reader.wrong(_LAYOUT, error.mistakes[0].text)
        return None
    if parts % stages:
        keys.reader.wrong(_LAYOUT, f"found {plural(parts, 'part')}, wanted a multiple of the {plural(stages, 'stage')}")
        return None
    keys.put("training.layout", text, _LAYOUT)
    return parts // stages


def read_bf16_layers(keys: ScenarioKeys, *, is_delayed: bool) -> None:
    """Read the layers at both ends that stay in BF16.

    It is one layer at each end unless arguments say otherwise.

    Parameters
    ----------
    keys : of the scenario
    is_delayed : whether all layers share the scales of FP8, so that none can be left out
    """
    is_on = keys.reader.flag("--first-last-layers-bf16")
    for key, argument in (
        ("bf16_first_layers", "--num-layers-at-start-in-bf16"),
        ("bf16_last_layers", "--num-layers-at-end-in-bf16"),
    ):
        count = keys.reader.whole(argument, 1, low=0)
        if is_on:
            keys.put(f"training.{key}", 1 if count is None else count, argument, "--first-last-layers-bf16")
        elif keys.reader.has(argument):
            keys.read[argument] = "nothing: --first-last-layers-bf16 is off"
    if is_on and is_delayed:
        text = (
            "found with --fp8-recipe delayed, wanted tensorwise, blockwise or mxfp8: delayed scales are of all layers"
        )
        keys.reader.wrong("--first-last-layers-bf16", text)


def read_software(keys: ScenarioKeys) -> None:
    """Read the kernels with names in a scenario, and how they are launched."""
    backend = keys.reader.word("--attention-backend", ("flash", "fused", "unfused", "local", "auto"))
    is_flash = backend not in {"unfused", "local"}
    keys.put("training.software.flash_attention", is_flash, "--attention-backend")
    has_experts = bool(keys.reader.whole("--num-experts", 0, low=0))
    _read_graphs(keys, has_experts=has_experts)
    if has_experts or not keys.reader.is_whole:
        _read_experts(keys)
        _read_dispatcher(keys)


def _read_graphs(keys: ScenarioKeys, *, has_experts: bool) -> None:
    reader = keys.reader
    implementation = reader.word("--cuda-graph-impl", _IMPLEMENTATIONS)
    is_switched = max(reader.flag(argument) for argument in _SWITCHES)
    words = tuple(
        word
        for argument in _SCOPES
        for word in _words(keys, argument, (*_LAYERS, "attn", "mamba", "mlp", *_LAYERS["moe"]))
    )
    if implementation is None and is_switched:
        implementation = "local"
    deciding = [*_SCOPES, "--cuda-graph-impl", *_SWITCHES]
    modules: tuple[str, ...] = ()
    if implementation == "full_iteration":
        modules = ("iteration",)
    elif implementation in {"local", "transformer_engine"}:
        captured = [_LAYERS.get(word, (word,)) for word in words or ("full",)]
        every = {module for part in captured for module in part}
        modules = tuple(module for module in get_args(GraphModule) if module in every)
        if not has_experts and reader.is_whole and (not words or "full" in words):
            modules = tuple(module for module in modules if module not in _LAYERS["moe"])
    keys.put("training.software.graphs", modules, *deciding)
    if has_experts and modules and "iteration" not in modules and (not words or {"full", "moe"} & set(words)):
        argument = next(one for one in deciding if reader.has(one))
        keys.note(argument, "experts themselves are launched one by one: their number of tokens is not fixed")


def _read_experts(keys: ScenarioKeys) -> None:
    """Read the kernels of a GPU's experts and of its router."""
    reader = keys.reader
    is_grouped, is_legacy = reader.flag("--moe-grouped-gemm"), reader.flag("--moe-use-legacy-grouped-gemm")
    streams = 1 if not is_grouped else 0 if is_legacy else EXPERT_STREAMS
    keys.put("training.software.expert_streams", streams, "--moe-grouped-gemm", "--moe-use-legacy-grouped-gemm")
    keys.put("training.software.fused_router", reader.flag("--moe-router-fusion"), "--moe-router-fusion")


def _read_dispatcher(keys: ScenarioKeys) -> None:
    """Read how tokens reach experts, and the GPU resources it takes."""
    reader = keys.reader
    kind = reader.word(_DISPATCHER, ("allgather", "alltoall", "flex"))
    backend = reader.word(_BACKEND, _BACKENDS)
    is_deep = reader.flag(_DEEPEP)
    used = None
    if kind == "flex" or (kind is None and is_deep):
        used = backend or "deepep"
    counts = {argument: reader.whole(argument) for each in _MULTIPROCESSORS.values() for argument in each}
    if kind == "allgather":
        keys.note(_DISPATCHER, "nothing: tokens go to experts by an all-to-all")
    if used == "ncclep":
        keys.note(_BACKEND, "nothing: how fast NCCL exchanges tokens of experts by itself is not published")
        used = None
    said = [_BACKEND, _DEEPEP, _DISPATCHER]
    keys.put("training.software.deduplicated_experts", used is not None, *said)
    if used is None:
        return
    usual = DEEPEP_MULTIPROCESSORS if used != "hybridep" else 0
    arguments = _MULTIPROCESSORS[used]
    given = [counts[argument] for argument in arguments if counts[argument] is not None]
    multiprocessors = given[0] if given and given[0] is not None else usual
    if given or usual:
        reason = f"what {used} takes"
        keys.put("training.software.exchange_multiprocessors", multiprocessors, *arguments, reason=reason)
    share = exchange_share("deepep" if used == "deepepv2" else used, multiprocessors)
    keys.put("training.software.exchange_efficiency", share, *said)
