"""Arguments of Megatron-LM as keys of a scenario: each rule of `validate_args` that matters, by hand."""

from __future__ import annotations

from typing import Any

import pytest
from helpers.imports_megatron import BASE, LAYOUT, SHAPE, TENSOR, read

from weftwork.base.errors import ConfigError
from weftwork.spec.scenario.devices import device_rows
from weftwork.spec.scenario.rows import rows_of
from weftwork.spec.scenario.training import OverlapSection, TrainingSection
from weftwork.spec.training import Software
from weftwork.workload.imports.megatron import read_megatron
from weftwork.workload.imports.megatron_arguments import ANYWAY, IGNORED, READ, REFUSED
from weftwork.workload.imports.megatron_keys import USUAL
from weftwork.workload.models.catalogue import model

ENDS = "--account-for-embedding-in-pipeline-split --account-for-loss-in-pipeline-split"


MIXTURE = "--swiglu --num-experts 8 --moe-ffn-hidden-size 256"


FLEX = f"{MIXTURE} --moe-token-dispatcher-type flex"


FP8 = "--fp8-format hybrid --fp8-recipe tensorwise"


def refused(more: str = "", base: str = f"{BASE} {SHAPE}", **options: Any) -> dict[str, tuple[str, str | None]]:
    """Mistakes by argument: text and fix."""
    with pytest.raises(ConfigError) as caught:
        read_megatron(f"{base} {more}", **options)
    return {one.path: (one.text, one.fix) for one in caught.value.mistakes}


def test_the_usual_values_are_the_defaults_of_a_scenario() -> None:
    found = {f"training.{row.key}": row.default for row in rows_of(TrainingSection).values()}
    found |= {f"training.overlap.{row.key}": row.default for row in rows_of(OverlapSection).values()}
    software = Software()
    for field, row in device_rows(Software).items():
        found[f"training.software.{row.key}"] = getattr(software, field)
    assert {key: found[key] for key in USUAL} == dict(USUAL)


@pytest.mark.parametrize("words", ["a2a+p2p", "a2a p2p"])
def test_an_exchange_that_no_key_says_is_told(words: str) -> None:
    found = read(f"--context-parallel-size 2 --cp-comm-type {words}")
    assert found.ignored["--cp-comm-type"].startswith("changes time")
    assert "training.context_exchange" not in found.keys
    assert (
        "wanted some of p2p, all_gather" in refused("--context-parallel-size 2 --cp-comm-type x")["--cp-comm-type"][0]
    )


def test_squared_relu_is_read_and_excludes_gates() -> None:
    found = read("--squared-relu --num-query-groups 2 --group-query-attention")
    assert found.model is not None
    assert found.model.has_squared_relu
    assert found.read["--squared-relu"] == "model.has_squared_relu: true"
    assert "wanted one of the two" in refused("--squared-relu --swiglu")["--squared-relu"][0]


def test_one_rank_exchanges_nothing() -> None:
    found = read("--cp-comm-type a2a")
    assert found.read["--cp-comm-type"] == "nothing: one rank has the whole sequence"
    assert "training.context_exchange" not in found.keys


def test_an_argument_is_in_one_table_alone() -> None:
    assert not READ.keys() & IGNORED.keys()
    assert not REFUSED.keys() & (READ.keys() | IGNORED.keys())
    assert ANYWAY.keys() <= IGNORED.keys()
    assert all(argument.startswith("--") for argument in [*READ, *IGNORED, *REFUSED])


@pytest.mark.parametrize(
    ("more", "key", "value"),
    [
        ("--tensor-model-parallel-size 4", "tensor", 4),
        ("--tensor-model-parallel-size=4", "tensor", 4),
        ("--pipeline-model-parallel-size 2", "pipeline", 2),
        ("--context-parallel-size 2", "context", 2),
        ("--context-parallel-size 2 --cp-comm-type a2a", "context_exchange", "all-to-all"),
        ("--context-parallel-size 2 --cp-comm-type all_gather", "context_exchange", "ring"),
        ("--context-parallel-size 2 --cp-comm-type p2p p2p all_gather", "context_exchange", "ring"),
        ("--expert-model-parallel-size 8", "expert", 8),
        ("--tensor-model-parallel-size 2 --sequence-parallel", "sequence_parallel", True),
        ("--tensor-model-parallel-size 2", "sequence_parallel", False),
        ("--pipeline-model-parallel-size 2 --num-layers-per-virtual-pipeline-stage 2", "virtual_stages", 2),
        ("--pipeline-model-parallel-size 2 --num-virtual-stages-per-pipeline-rank 4", "virtual_stages", 4),
        (
            f"--num-layers 14 {ENDS} --pipeline-model-parallel-size 2 --num-layers-per-virtual-pipeline-stage 4",
            "virtual_stages",
            2,
        ),
        (ENDS, "balanced_ends", True),
        ("--account-for-loss-in-pipeline-split", "balanced_ends", False),
        ("--micro-batch-size 2", "micro_batch", 2),
        ("--global-batch-size 128", "global_batch", 128),
        ("--seq-length 1024", "sequence", 1024),
        ("", "zero", 0),
        ("--use-distributed-optimizer", "zero", 1),
        ("--use-megatron-fsdp --data-parallel-sharding-strategy optim", "zero", 1),
        ("--use-megatron-fsdp --data-parallel-sharding-strategy optim_grads", "zero", 2),
        ("--use-custom-fsdp --data-parallel-sharding-strategy optim_grads_params", "zero", 3),
        ("--use-megatron-fsdp", "zero", 0),
        ("--use-torch-fsdp2", "zero", 3),
        ("--use-torch-fsdp2 --torch-fsdp2-no-reshard-after-forward", "zero", 2),
        ("", "recompute", "none"),
        ("--recompute-activations", "recompute", "selective"),
        ("--recompute-granularity selective --recompute-modules core_attn moe_act", "recompute", "selective"),
        ("--recompute-granularity selective --recompute-modules mlp", "recompute", "selective"),
        ("--recompute-granularity selective --recompute-modules mhc gdn", "recompute", "none"),
        ("--recompute-granularity selective --recompute-modules mlp mhc moe", "recompute_modules", ("mlp", "moe")),
        (
            "--recompute-granularity selective --recompute-modules layernorm,mlp",
            "recompute_modules",
            ("layernorm", "mlp"),
        ),
        ("--pipeline-model-parallel-layout Et*8L", "layout", "Et*8L"),
        ("--pipeline-model-parallel-size 2 --pipeline-model-parallel-layout 'Et|t*2|t*2|t*3L'", "virtual_stages", 2),
        (f"{FP8} --first-last-layers-bf16", "bf16_first_layers", 1),
        (f"{FP8} --first-last-layers-bf16", "bf16_last_layers", 1),
        (f"{FP8} --first-last-layers-bf16 --num-layers-at-start-in-bf16 0", "bf16_first_layers", 0),
        (f"{FP8} --first-last-layers-bf16 --num-layers-at-end-in-bf16 4", "bf16_last_layers", 4),
        ("", "software.graphs", ()),
        ("--cuda-graph-impl none --cuda-graph-scope attn", "software.graphs", ()),
        ("--cuda-graph-impl transformer_engine --cuda-graph-scope mlp attn", "software.graphs", ("attn", "mlp")),
        ("--cuda-graph-impl transformer_engine --cuda-graph-modules attn", "software.graphs", ("attn",)),
        ("--cuda-graph-impl local", "software.graphs", ("attn", "mamba", "mlp")),
        ("--external-cuda-graph --cuda-graph-scope attn", "software.graphs", ("attn",)),
        ("--enable-cuda-graph --cuda-graph-scope full_iteration", "software.graphs", ("iteration",)),
        ("--cuda-graph-impl full_iteration", "software.graphs", ("iteration",)),
        ("--recompute-granularity full --recompute-method uniform --recompute-num-layers 1", "recompute", "full"),
        ("", "precision", "bf16"),
        ("--fp8-format hybrid", "precision", "fp8"),
        ("--fp8-format hybrid --fp8-param-gather", "quantised_weights", True),
        ("--fp4-format e2m1 --fp4-param-gather", "quantised_weights", True),
        ("--fp8-format hybrid", "quantised_weights", False),
        ("--fp8-format e4m3 --fp8-recipe blockwise", "precision", "fp8"),
        ("--fp8-format hybrid --fp8-recipe mxfp8", "precision", "mxfp8"),
        ("--fp4-format e2m1", "precision", "nvfp4"),
        ("", "gradients", "fp32"),
        ("--accumulate-allreduce-grads-in-fp32", "gradients", "fp32"),
        ("--grad-reduce-in-bf16", "gradients", "bf16"),
        ("--use-tp-pp-dp-mapping", "order", "tp-cp-pp-dp"),
        ("", "overlap.data", 0.0),
        ("--overlap-grad-reduce", "overlap.data", 0.9),
        ("--use-distributed-optimizer --overlap-grad-reduce", "overlap.data", 0.45),
        ("--use-distributed-optimizer --overlap-grad-reduce --overlap-param-gather", "overlap.data", 0.9),
        ("--tp-comm-overlap", "overlap.tensor", 0.7),
        ("--overlap-moe-expert-parallel-comm", "overlap.expert", 0.9),
        ("--no-overlap-p2p-communication", "overlap.pipeline", 0.0),
        ("--save-interval 500", "checkpoint.every", 500),
        ("--save-interval 500 --async-save", "checkpoint.asynchronous", True),
        ("--attention-backend unfused", "software.flash_attention", False),
        ("--attention-backend fused", "software.flash_attention", True),
        (MIXTURE, "software.expert_streams", 1),
        (f"{MIXTURE} --moe-grouped-gemm", "software.expert_streams", 4),
        (f"{MIXTURE} --moe-grouped-gemm --moe-use-legacy-grouped-gemm", "software.expert_streams", 0),
        (MIXTURE, "software.fused_router", False),
        (f"{MIXTURE} --moe-router-fusion", "software.fused_router", True),
        (
            f"{MIXTURE} --cuda-graph-impl local",
            "software.graphs",
            ("attn", "mamba", "mlp", "moe_router", "moe_preprocess"),
        ),
        (
            f"{MIXTURE} --cuda-graph-impl local --cuda-graph-scope moe",
            "software.graphs",
            ("moe_router", "moe_preprocess"),
        ),
        (MIXTURE, "software.deduplicated_experts", False),
        (f"{MIXTURE} --moe-token-dispatcher-type alltoall", "software.deduplicated_experts", False),
        (f"{MIXTURE} --moe-token-dispatcher-type alltoall --moe-enable-deepep", "software.deduplicated_experts", False),
        (f"{MIXTURE} --moe-enable-deepep", "software.deduplicated_experts", True),
        (f"{MIXTURE} --moe-enable-deepep", "software.exchange_multiprocessors", 20),
        (f"{MIXTURE} --moe-enable-deepep", "software.exchange_efficiency", 0.48),
        (f"{FLEX} --moe-deepep-num-sms 32", "software.exchange_multiprocessors", 32),
        (f"{FLEX} --moe-deepep-num-sms 32", "software.exchange_efficiency", 0.70),
        (f"{FLEX} --moe-flex-dispatcher-backend hybridep", "software.exchange_efficiency", 0.82),
        (
            f"{FLEX} --moe-flex-dispatcher-backend hybridep --moe-hybridep-num-sms 32",
            "software.exchange_efficiency",
            0.88,
        ),
        (
            f"{FLEX} --moe-flex-dispatcher-backend hybridep --moe-flex-dispatcher-num-sms 24",
            "software.exchange_multiprocessors",
            24,
        ),
        (f"{FLEX} --moe-flex-dispatcher-backend ncclep", "software.deduplicated_experts", False),
        (f"{MIXTURE} --tensor-model-parallel-size 2", "expert_tensor", 2),
        (f"{MIXTURE} --tensor-model-parallel-size 2 --expert-tensor-parallel-size 1", "expert_tensor", 1),
        ("--tensor-model-parallel-size 2", "expert_tensor", 1),
    ],
)
def test_an_argument_becomes_a_key(more: str, key: str, value: object) -> None:
    assert read(more).keys[f"training.{key}"] == value


def test_fp16_is_as_wide_as_bf16_and_so_are_its_gradients() -> None:
    base = BASE.replace("--bf16", "--fp16")
    found = read_megatron(f"{base} {SHAPE}")
    assert (found.keys["training.precision"], found.keys["training.gradients"]) == ("bf16", "bf16")
    found = read_megatron(f"{base} {SHAPE} --accumulate-allreduce-grads-in-fp32")
    assert found.keys["training.gradients"] == "fp32"


@pytest.mark.parametrize(
    ("more", "size", "value"),
    [
        ("", "ffn", 2048),
        ("--swiglu", "ffn", 1344),  # 4 x 512 x 2 / 3, down to a multiple of 64
        ("--swiglu --ffn-hidden-size 1500", "ffn", 1500),
        ("", "is_gated", False),
        ("--swiglu", "is_gated", True),
        ("", "key_value_heads", 8),
        ("--num-query-groups 2", "key_value_heads", 8),
        ("--group-query-attention --num-query-groups 2", "key_value_heads", 2),
        ("--group-query-attention", "key_value_heads", 1),
        ("", "head_dim", 64),
        ("--kv-channels 128", "head_dim", 128),
        ("", "has_tied_embeddings", True),
        ("--untie-embeddings-and-output-weights", "has_tied_embeddings", False),
        ("", "has_dropout", True),
        ("--attention-dropout 0 --hidden-dropout 0.0", "has_dropout", False),
        ("--attention-dropout 0", "has_dropout", True),
        ("--padded-vocab-size 1024", "vocabulary", 1024),
        (MIXTURE, "experts_per_token", 2),
        (MIXTURE, "expert_layers", 8),
        (f"{MIXTURE} --moe-layer-freq 3", "expert_layers", 3),
        (f"{MIXTURE} --moe-layer-freq ([0]*1+[1]*7)", "expert_layers", 7),
        (f"{MIXTURE} --moe-layer-freq ([0]+[1]*3)*2", "expert_layers", 6),
        (f"{MIXTURE} --moe-shared-expert-intermediate-size 512", "shared_ffn", 512),
        ("--swiglu --num-experts 8 --ffn-hidden-size 768", "expert_ffn", 768),
        ("--swiglu --window-size 128,0", "window_layers", 8),
        ("--swiglu --window-size (128,0) --window-attn-skip-freq 4", "window_layers", 6),
        ("--swiglu --window-size 128,0 --window-attn-skip-freq [1,0]*4", "window_layers", 4),
        (f"{MIXTURE} --window-size 128,0 --window-attn-skip-freq 2", "window_layers", 4),
        (f"{MIXTURE} --multi-latent-attention --mtp-num-layers 1", "prediction_layers", 1),
        ("--num-experts 0", "experts", 0),
    ],
)
def test_an_argument_becomes_a_size_of_the_model(more: str, size: str, value: object) -> None:
    found = read(more.replace("(", "'(").replace(")*2", ")*2'").replace("7)", "7)'").replace("0)", "0)'"))
    assert getattr(found.model, size) == value


def test_a_model_of_the_catalogue_is_named() -> None:
    shape = "--num-layers 96 --hidden-size 12288 --num-attention-heads 96"
    found = read_megatron(f"{BASE} {shape} --vocab-file gpt2-vocab.json --tensor-model-parallel-size 8")
    assert (found.keys["training.model"], found.config) == ("gpt-3-175b", None)
    assert found.assumed["model.vocabulary"].endswith("padded to 51,200")
    # one rank pads 50,257 to 50,304, which no model of the catalogue has
    found = read_megatron(f"{BASE} {shape} --vocab-file gpt2-vocab.json", name="other")
    assert (found.keys["training.model"], found.model and found.model.vocabulary) == ("./other.json", 50_257)


def test_models_that_differ_in_their_vocabulary_alone_are_not_confused() -> None:
    shape = (
        "--num-layers 80 --hidden-size 8192 --ffn-hidden-size 28672 --num-attention-heads 64 --group-query-attention"
        " --num-query-groups 8 --swiglu --untie-embeddings-and-output-weights --attention-dropout 0 --hidden-dropout 0"
    )
    assert read_megatron(f"{BASE} {shape} --max-position-embeddings 8192").keys["training.model"] == "llama-3-70b"
    assert read_megatron(f"{BASE} {shape} --max-position-embeddings 4096").keys["training.model"] == "llama-2-70b"
    assert read_megatron(f"{BASE} {shape} --vocab-size 128256").keys["training.model"] == "llama-3-70b"
    (text, _) = refused(f"{shape} --max-position-embeddings 131072", base=BASE)["--vocab-size"]
    assert text == "missing, and llama-2-70b and llama-3-70b have these sizes; wanted 32000 or 128256"


@pytest.mark.parametrize(
    ("more", "argument", "told", "fix"),
    [
        ("--num-layers many", "--num-layers", "found 'many', wanted a whole number from 1 on", None),
        ("--num-layers 0", "--num-layers", "found '0', wanted", None),
        ("--num-layers 8 9", "--num-layers", "found 2 values, wanted one", None),
        ("--num-layers", "--num-layers", "found 0 values, wanted one", None),
        ("--swiglu yes", "--swiglu", "the argument is a switch", None),
        ("--seq-length $SEQ", "--seq-length", "give --variable SEQ=VALUE", None),
        ("--seq-length $(date)", "--seq-length", "needs '$(date)', which has no value", None),
        ("--tensor-model-paralel-size 8", "--tensor-model-paralel-size", "is no argument", TENSOR),
        ("--tensor_model_parallel_size 8", "--tensor_model_parallel_size", "is no argument", TENSOR),
        ("--recompute-granularity ful", "--recompute-granularity", "wanted full or selective", "full"),
        ("--fp16", "--fp16", "found beside --bf16", None),
        ("--overlap-param-gather", "--overlap-param-gather", "wanted --overlap-grad-reduce as well", None),
        ("--attention-dropout 1.5", "--attention-dropout", "wanted a number from 0 to 1", None),
        ("--attention-dropout .", "--attention-dropout", "wanted a number from 0 to 1", None),
        ("--num-attention-heads 7", "--num-attention-heads", "wanted a divisor of the hidden size", None),
        ("--group-query-attention --num-query-groups 3", "--num-query-groups", "wanted a divisor of the 8 heads", None),
        ("--swiglu --num-experts 4 --moe-router-topk 5", "--moe-router-topk", "wanted at most the 4 experts", None),
        ("--num-experts 4", "--num-experts", "wanted --swiglu as well", None),
        ("--swiglu --multi-latent-attention", "--multi-latent-attention", "wanted --num-experts as well", None),
        (f"{MIXTURE} --moe-layer-freq [1]*7", "--moe-layer-freq", "a list of 8 zeros and ones", None),
        (f"{MIXTURE} --moe-layer-freq [1]*99999999999", "--moe-layer-freq", "a list of 8 zeros and ones", None),
        (f"{MIXTURE} --moe-layer-freq __import__", "--moe-layer-freq", "a list of 8 zeros and ones", None),
        ("--window-size 128", "--window-size", "wanted two numbers", None),
        (
            "--mtp-num-layers 1",
            "--mtp-num-layers",
            "with --multi-latent-attention, or with a pattern and experts, alone",
            None,
        ),
        ("--checkpoint-activations", "--checkpoint-activations", "wanted --recompute-granularity full", None),
        (f"{LAYOUT} Ex*8L", LAYOUT, "wanted letters E, t, m and L", None),
        (f"--pipeline-model-parallel-size 3 {LAYOUT} 'Et*4|t*4L'", LAYOUT, "wanted a multiple of the 3 stages", None),
        (f"{LAYOUT} 'Et*4|t*4L' --num-virtual-stages-per-pipeline-rank 2", LAYOUT, "beside other arguments", None),
        (f"{LAYOUT} 'Et*4|t*4L' {ENDS}", LAYOUT, "beside other arguments", None),
        (
            "--recompute-granularity selective --recompute-modules mla_up_pro",
            "--recompute-modules",
            "found 'mla_up_pro', wanted some of core_attn, layernorm",
            "mla_up_proj",
        ),
        ("--cuda-graph-impl local --cuda-graph-scope atn", "--cuda-graph-scope", "found 'atn', wanted some of", "attn"),
        (
            "--fp8-format hybrid --first-last-layers-bf16",
            "--first-last-layers-bf16",
            "found with --fp8-recipe delayed",
            None,
        ),
        (
            f"{FLEX} --moe-flex-dispatcher-backend deep",
            "--moe-flex-dispatcher-backend",
            "found 'deep', wanted",
            "deepep",
        ),
        (
            "--pipeline-model-parallel-size 2 --num-layers-per-virtual-pipeline-stage 3",
            "--num-layers-per-virtual-pipeline-stage",
            "8 layers over 2 stages",
            None,
        ),
        (
            "--num-layers-per-virtual-pipeline-stage 2 --num-virtual-stages-per-pipeline-rank 2",
            "--num-layers-per-virtual-pipeline-stage",
            "wanted one of the two",
            None,
        ),
        ("--hybrid-override-pattern M*M*M*M*", "--mamba-num-heads", "missing", None),
        ("--hybrid-override-pattern M* --mamba-num-heads 8", "--hybrid-override-pattern", "each of the 8 layers", None),
        ("--hybrid-attention-ratio 0.1", "--hybrid-attention-ratio", "wanted --hybrid-override-pattern", None),
        ("--tokenizer-type HuggingFaceTokenizer --vocab-size many", "--vocab-size", "found 'many'", None),
    ],
)
def test_a_mistake_is_told_by_its_argument(more: str, argument: str, told: str, fix: str | None) -> None:
    more = more.replace("Et|L", "'Et|L'")
    text, near = refused(more)[argument]
    assert told in text
    assert near == fix


def test_all_mistakes_come_at_once_and_each_once() -> None:
    found = refused("--num-layers x --recompute-granularity y --swiglu z", base="--hidden-size 1.5")
    assert set(found) == {
        "--num-layers", "--hidden-size", "--num-attention-heads", "--recompute-granularity", "--swiglu",
        "--micro-batch-size", "--seq-length", "--bf16", "--global-batch-size",
    }  # fmt: skip


def test_without_a_batch_there_is_one_micro_batch_for_each_copy() -> None:
    base = f"{SHAPE} --micro-batch-size 4 --seq-length 2048 --bf16 --tensor-model-parallel-size 2"
    assert read_megatron(base, gpus=16).keys["training.global_batch"] == 32
    assert "the number of GPUs is unknown" in refused(base=base)["--global-batch-size"][0]


def test_some_arguments_are_enough_for_a_plan() -> None:
    found = read_megatron("--tensor-model-parallel-size 8 --use-distributed-optimizer", is_whole=False)
    assert dict(found.keys) == {"training.tensor": 8, "training.zero": 1}
    assert (found.model, found.gpus, dict(found.assumed)) == (None, None, {})


def test_arguments_that_are_not_read_say_why() -> None:
    found = read(
        "--lr 1e-4 --my-own x --log-intervall 3 --optimizer adam --hierarchical-context-parallel-sizes 2 $MORE"
    )
    assert found.ignored["--lr"] == "how weights are learnt; says nothing about time"
    assert found.ignored["--optimizer"] == "says what a scenario has anyway"
    assert found.ignored["--hierarchical-context-parallel-sizes"].startswith("changes time")
    assert dict(found.unknown) == {"--my-own": None, "--log-intervall": "--log-interval", "$MORE": None}


def test_what_is_assumed_says_without_which_argument() -> None:
    found = read("--tensor-model-parallel-size 2")
    text = found.assumed["training.sequence_parallel"]
    assert text == "false: Megatron-LM's default without --sequence-parallel"
    assert "training.pipeline" not in found.assumed  # 1 in both
    assert "training.sequence_parallel" not in read("--sequence-parallel").keys  # one rank splits nothing


def test_the_sizes_of_a_file_are_a_model_of_its_name() -> None:
    found = read("--swiglu", name="mine")
    assert found.keys["training.model"] == "./mine.json"
    assert found.model is not None
    assert found.config is not None
    assert (found.model.name, found.config["model_type"]) == ("mine", "llama")
    assert model("llama-2-7b").model_dump().keys() == found.model.model_dump().keys()


def test_what_no_key_says_of_modules_is_told_at_the_argument() -> None:
    selective = "--recompute-granularity selective --recompute-modules"
    found = read(f"{selective} mlp gdn")
    assert found.read["--recompute-modules"] == (
        "training.recompute_modules: [mlp]; no key of a scenario computes gdn again"
    )
    found = read(f"{selective} gdn mhc")
    assert (
        found.read["--recompute-modules"] == "training.recompute: none; no key of a scenario computes gdn or mhc again"
    )
    found = read("--num-layers-at-end-in-bf16 2")
    assert found.read["--num-layers-at-end-in-bf16"] == "nothing: --first-last-layers-bf16 is off"
    found = read(f"{MIXTURE} --cuda-graph-impl local --cuda-graph-scope moe")
    assert found.read["--cuda-graph-scope"].endswith("their number of tokens is not fixed")
    found = read(f"{MIXTURE} --moe-token-dispatcher-type allgather")
    assert "nothing: tokens go to experts by an all-to-all" in found.read["--moe-token-dispatcher-type"]


def test_defaults_of_experts_that_differ_are_assumed_aloud() -> None:
    """Megatron-LM fuses neither experts nor router unless it is told to."""
    assumed = read(MIXTURE).assumed
    assert assumed["training.software.expert_streams"] == "1: Megatron-LM's default without --moe-grouped-gemm"
    assert assumed["training.software.fused_router"] == "false: Megatron-LM's default without --moe-router-fusion"
    assumed = read(f"{MIXTURE} --moe-enable-deepep").assumed
    told = "20: what deepep takes without --moe-flex-dispatcher-num-sms"
    assert assumed["training.software.exchange_multiprocessors"] == told


def test_a_norm_of_queries_and_keys_is_one_of_the_model() -> None:
    for shape, is_there in (("--swiglu", True), (MIXTURE, True), ("", False), ("--swiglu --window-size 128,0", False)):
        found = read(f"{shape} --qk-layernorm")
        assert found.model is not None
        assert found.model.has_query_key_norm == is_there
        text = found.read["--qk-layernorm"]
        assert text == "model.has_query_key_norm: true" if is_there else text.startswith("nothing: ")
        plain = read(shape).model
        assert plain is not None
        assert plain == found.model.model_copy(update={"has_query_key_norm": False})
