"""What is written as arguments of Megatron-LM is read back as it was: plans and models, drawn at random.

Leaves out: keys that no argument says (`weftwork.workload.imports.megatron_write`), which stay at their defaults.
"""

from __future__ import annotations

import contextlib
import shlex
from typing import Any, get_args

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from weftwork.base.errors import ConfigError
from weftwork.spec.scenario.devices import DeviceChoice
from weftwork.spec.scenario.scenario import loads
from weftwork.spec.scenario.training import Checkpoint, OverlapSection, TrainingSection
from weftwork.spec.training import GraphModule, LatentAttention, Model, RecomputeModule, StateSpace
from weftwork.workload.imports.megatron import read_megatron
from weftwork.workload.imports.megatron_arguments import IGNORED, READ, REFUSED
from weftwork.workload.imports.megatron_limits import lacking
from weftwork.workload.imports.megatron_model import model_arguments
from weftwork.workload.imports.megatron_write import write_megatron
from weftwork.workload.models.catalogue import MODELS, model
from weftwork.workload.parallelism.layout import virtual_stages_of

COUNTS = st.sampled_from([1, 2, 4, 8, 16])
NUMBERS = ("bf16", "fp8", "mxfp8", "nvfp4")
GRAPHS = get_args(GraphModule)
DISPATCHERS = [(20, 0.48), (24, 0.56), (32, 0.70), (16, 0.82), (32, 0.88)]  # DeepEP's, then those of HybridEP
SIZES = st.integers(1, 2**20)
PLAIN = loads("{schema: 3, fabric: {radix: 4}, training: {model: llama-2-7b, global_batch: 64}}").training


@st.composite
def sections(draw: st.DrawFn) -> TrainingSection:
    """A training section of keys that both know."""
    assert PLAIN is not None
    tensor, zero = draw(COUNTS), draw(st.integers(0, 3))
    software = {
        "has_flash_attention": draw(st.booleans()),
        "expert_streams": draw(st.sampled_from([0, 1, 4])),
        "has_deduplicated_experts": draw(st.booleans()),
    }
    every, is_asynchronous = draw(SIZES), draw(st.booleans())
    checkpoint = Checkpoint.model_construct(every=every, size_bytes=None, is_asynchronous=is_asynchronous)
    overlap = OverlapSection.model_construct(
        tensor=draw(st.sampled_from([0.0, 0.7])),
        data=draw(st.sampled_from([0.0, 0.9, *([0.45] if zero else [])])),
        pipeline=draw(st.sampled_from([None, 0.0])),
        expert=draw(st.sampled_from([0.0, 0.9])),
        context=0.9,
    )
    recompute, precision = draw(st.sampled_from(["none", "selective", "full"])), draw(st.sampled_from(NUMBERS))
    newer = draw(what_recipes_set(software["has_deduplicated_experts"], recompute, precision))
    return PLAIN.model_copy(
        update={
            **{key: draw(COUNTS) for key in ("context", "pipeline", "expert", "expert_tensor", "virtual_stages")},
            **{key: draw(SIZES) for key in ("micro_batch", "global_batch", "sequence")},
            "tensor": tensor,
            "zero": zero,
            "sequence_parallel": draw(st.booleans()) or tensor == 1,
            "recompute": recompute,
            "precision": precision,
            "gradients": draw(st.sampled_from(["bf16", "fp32"])),
            # Megatron-FSDP, which ZeRO 2 and 3 are, has one order
            "context_exchange": draw(st.sampled_from([None, "all-to-all"])),
            "order": draw(st.sampled_from(["tp-cp-dp-pp", *(["tp-cp-pp-dp"] if zero < 2 else [])])),
            "balanced_ends": draw(st.booleans()),
            "overlap": overlap,
            "checkpoint": draw(st.sampled_from([None, checkpoint])),
            **newer["plan"],
            "software": DeviceChoice(model="plain", fields=software | newer["software"]),
        }
    )


@st.composite
def what_recipes_set(draw: st.DrawFn, deduplicates: bool, recompute: str, precision: str) -> dict[str, dict[str, Any]]:  # noqa: FBT001
    """Keys that say something of single modules and layers."""
    plan: dict[str, Any] = {}
    if recompute == "selective":
        modules = draw(st.lists(st.sampled_from(get_args(RecomputeModule)), unique=True, min_size=1))
        plan["recompute_modules"] = tuple(modules)
    outer = draw(st.integers(0, 3)), draw(st.integers(0, 3))
    plan |= {"bf16_first_layers": outer[0], "bf16_last_layers": outer[1]} if precision != "bf16" else {}
    plan |= {"quantised_weights": draw(st.booleans())} if precision != "bf16" else {}
    graphs = draw(st.lists(st.sampled_from(get_args(GraphModule)), unique=True))
    software: dict[str, Any] = {"has_fused_router": draw(st.booleans())}
    software["graphs"] = ("iteration",) if "iteration" in graphs else tuple(sorted(graphs, key=GRAPHS.index))
    if deduplicates:
        software["exchange_multiprocessors"], software["exchange_efficiency"] = draw(st.sampled_from(DISPATCHERS))
    if draw(st.booleans()):
        pipeline, virtual = draw(COUNTS), draw(COUNTS)
        text = "E" + "|".join(draw(st.sampled_from(["t", "t*3", "(t)*2"])) for _ in range(pipeline * virtual)) + "L"
        plan |= {"pipeline": pipeline, "virtual_stages": virtual, "layout": text, "balanced_ends": False}
    return {"plan": plan, "software": software}


def keys_of(section: TrainingSection, trained: Model) -> dict[str, Any]:
    """What a reader of its arguments should find."""
    keys = ["tensor", "context", "pipeline", "virtual_stages", "micro_batch", "global_batch", "sequence", "zero"]
    keys += ["recompute", "precision", "gradients", "order", "balanced_ends"]
    keys += ["quantised_weights"] if section.precision != "bf16" else []
    keys += ["layout"] if section.layout is not None else []
    keys += ["context_exchange"] if section.context > 1 and section.context_exchange is not None else []
    outer = section.bf16_first_layers, section.bf16_last_layers
    keys += ["bf16_first_layers", "bf16_last_layers"] if any(outer) else []
    if section.recompute == "selective" and section.recompute_modules != ("core_attn",):
        keys.append("recompute_modules")
    found = {f"training.{key}": getattr(section, key) for key in keys}
    found |= {f"training.overlap.{key}": getattr(section.overlap, key) for key in ("tensor", "data", "expert")}
    if section.overlap.pipeline is not None:
        found["training.overlap.pipeline"] = section.overlap.pipeline
    if section.tensor > 1:
        found["training.sequence_parallel"] = section.sequence_parallel
    software = section.software.fields
    found |= {"training.software.flash_attention": software["has_flash_attention"]}
    found |= {"training.software.graphs": software["graphs"]}
    if trained.experts:
        for name in ("fused_router", "deduplicated_experts"):
            found[f"training.software.{name}"] = software[f"has_{name}"]
        for name in ("expert_streams", "exchange_multiprocessors", "exchange_efficiency"):
            if name in software:
                found[f"training.software.{name}"] = software[name]
    for key in ("expert", "expert_tensor"):
        found[f"training.{key}"] = getattr(section, key) if trained.experts else 1
    if section.checkpoint is not None:
        found["training.checkpoint.every"] = section.checkpoint.every
        if section.checkpoint.is_asynchronous:
            found["training.checkpoint.asynchronous"] = True
    return found


@given(section=sections(), name=st.sampled_from([name for name in MODELS if not model_arguments(model(name))[1]]))
def test_a_plan_is_read_as_it_was_written(section: TrainingSection, name: str) -> None:
    plan = section.parallelism(model(name))
    assume(not lacking(model(name), plan, {}))
    written = write_megatron(section, model(name))
    found = read_megatron(shlex.join(written.words))
    keys = dict(found.keys)
    if section.layout is None and "training.layout" in keys:  # a cut that no numbers say
        cut = plan.model_copy(update={"layout": keys.pop("training.layout"), "has_balanced_ends": False})
        assert virtual_stages_of(model(name), cut) == virtual_stages_of(model(name), plan)
        keys["training.balanced_ends"] = section.balanced_ends
    assert keys == {**keys_of(section, model(name)), "training.model": name}
    assert (found.model, dict(written.left_out), dict(found.unknown)) == (model(name), {}, {})


@st.composite
def models(draw: st.DrawFn) -> Model:
    """A model of any kind that arguments can say."""
    kind = draw(st.sampled_from(["plain", "gated", "windows", "experts", "expert windows", "latent", "hybrid"]))
    layers, groups = draw(st.integers(1, 80)), draw(st.integers(1, 8))
    is_gated = kind not in {"plain", "hybrid"}
    sizes: dict[str, Any] = {
        "name": "drawn",
        "layers": layers,
        "hidden": draw(SIZES),
        "heads": groups * draw(st.integers(1, 8)),
        "key_value_heads": groups,
        "head_dim": draw(SIZES),
        "ffn": draw(SIZES),
        "vocabulary": draw(SIZES),
        "sequence": draw(SIZES),
        "is_gated": is_gated,
        "has_squared_relu": not is_gated and draw(st.booleans()),
        "has_tied_embeddings": draw(st.booleans()),
        "has_dropout": draw(st.booleans()),
    }
    if "windows" in kind:
        sizes |= {"attention_window": draw(SIZES), "window_layers": draw(st.integers(1, layers))}
    if kind == "hybrid":
        spaces, attentions = draw(st.integers(1, layers)), 0
        attentions = draw(st.integers(0, layers - spaces))
        experts = draw(st.integers(0, layers - spaces - attentions))
        has_dense = layers > spaces + attentions + experts
        space = StateSpace(heads=draw(SIZES), head_dim=draw(SIZES), state=draw(SIZES), groups=draw(SIZES))
        sizes |= {"state_space": space, "state_space_layers": spaces, "attention_layers": attentions}
        sizes |= {"ffn": sizes["ffn"] if has_dense else 0, "expert_layers": experts}
    if kind in {"experts", "latent"}:
        sizes["expert_layers"] = draw(st.integers(1, layers))
    if kind == "expert windows":
        sizes["expert_layers"] = layers
    if sizes.get("expert_layers"):
        experts, width = draw(st.integers(1, 512)), draw(SIZES)
        shared = 0 if kind == "expert windows" else width * draw(st.integers(0, 4))
        each = draw(st.integers(1, experts))
        sizes |= {"experts": experts, "experts_per_token": each, "expert_ffn": width, "shared_ffn": shared}
        if kind != "hybrid" and sizes["expert_layers"] == layers:
            sizes["ffn"] = 0
        if kind == "hybrid":
            sizes |= {"prediction_layers": draw(st.integers(0, 3)), "has_shared_predictions": draw(st.booleans())}
    if kind == "latent":
        ranks = {key: draw(SIZES) for key in LatentAttention.model_fields}
        sizes |= {"latent_attention": LatentAttention(**ranks), "head_dim": ranks["value_dim"]}
        sizes |= {"prediction_layers": draw(st.integers(0, 3))}
    if kind in {"gated", "experts"}:
        sizes["has_query_key_norm"] = draw(st.booleans())
    return Model(**sizes)


@given(drawn=models())
def test_a_model_is_read_as_it_was_written(drawn: Model) -> None:
    words, left_out = model_arguments(drawn)
    plan = "--micro-batch-size 1 --global-batch-size 8 --seq-length 1 --bf16"
    found = read_megatron(f"{shlex.join(words)} {plan}", name="drawn")
    assert found.model == drawn
    assert left_out == {}


VALUES = st.sampled_from(
    ["1", "2", "3", "8", "64", "4096", "1099511627776", "0", "-1", "0.1", "full", "selective", "hybrid", "e2m1",
     "mxfp8",     "MEM*-", "[1]*8", "([0]*1+[1]*7)", "128,0", "optim", "unfused", "GPT2BPETokenizer", "$X", "${X:-4}",
     "$((4 / 2))",
     "'", '"', "\\", "#", "(", ")", "&&", ";", ">", "if", "then", "fi", "\n", "=", ""]
)  # fmt: skip


@given(words=st.lists(st.tuples(st.sampled_from([*READ, *IGNORED, *REFUSED]), st.lists(VALUES, max_size=2))))
def test_any_arguments_are_read_or_refused(words: list[tuple[str, list[str]]]) -> None:
    base = "--num-layers 8 --hidden-size 512 --num-attention-heads 8 --bf16 --micro-batch-size 1 --seq-length 8"
    text = " ".join([base, *(" ".join([argument, *values]) for argument, values in words)])
    with contextlib.suppress(ConfigError):  # any other error fails
        found = read_megatron(text, gpus=8)
        assert found.model is not None
        assert set(found.read) <= set(READ)


@pytest.mark.parametrize(
    ("text", "left_out"),
    [
        ("schedule: gpipe", {"training.schedule"}),
        ("overlap: {tensor: 0.5}", {"training.overlap.tensor"}),
        ("overlap: {data: 0.8, pipeline: 0.8}", {"training.overlap.data", "training.overlap.pipeline"}),
        ("memory: 60GB, loading: 1ms", {"training.memory", "training.loading"}),
        ("software: {latency_scale: 2}", {"training.software.latency_scale"}),
        ("precision: fp8, precision_by_module: {qkv: bf16}", {"training.precision_by_module.qkv"}),
        ("software: megatron-bridge-26.04", {"training.software"}),
        ("phase: fine-tuning-lora, placement: rails", {"training.phase", "training.placement"}),
        ("phase: long-context", set()),
        ("zero: 3, prefetch: false, order: tp-cp-pp-dp", {"training.prefetch", "training.order"}),
        ("recompute: operations, recompute_every: 2", {"training.recompute", "training.recompute_every"}),
    ],
)
def test_what_no_argument_says_is_told(text: str, left_out: set[str]) -> None:
    line = f"{{schema: 3, fabric: {{radix: 4}}, training: {{model: llama-2-7b, global_batch: 64, {text}}}}}"
    section = loads(line).training
    assert section is not None
    assert set(write_megatron(section, model("llama-2-7b")).left_out) == left_out
