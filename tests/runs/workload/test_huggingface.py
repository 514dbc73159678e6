"""Configurations of Hugging Face: they give the models of the catalogue, and their mistakes are told at once."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weftwork.base.errors import ConfigError
from weftwork.spec.training import Model
from weftwork.workload.models.catalogue import model
from weftwork.workload.models.huggingface import ARCHITECTURES, model_from_config, model_of, read_config
from weftwork.workload.models.size import active_parameters, attended_tokens, layer_kinds, parameters
from weftwork.workload.models.text_part import ALIASES

LLAMA = {
    "model_type": "llama",
    "hidden_size": 8192,
    "intermediate_size": 28672,
    "num_hidden_layers": 80,
    "num_attention_heads": 64,
    "num_key_value_heads": 8,
    "vocab_size": 128256,
    "max_position_embeddings": 131072,
    "rope_scaling": {"rope_type": "llama3", "original_max_position_embeddings": 8192},
    "tie_word_embeddings": False,
    "attention_dropout": 0.0,
}
CONFIGS: dict[str, dict[str, Any]] = {
    "llama-3-70b": LLAMA,
    "mixtral-8x7b": {
        "model_type": "mixtral",
        "hidden_size": 4096,
        "intermediate_size": 14336,
        "num_hidden_layers": 32,
        "num_attention_heads": 32,
        "num_key_value_heads": 8,
        "num_local_experts": 8,
        "num_experts_per_tok": 2,
        "sliding_window": None,
        "max_position_embeddings": 4096,
        "vocab_size": 32000,
    },
    "qwen3-32b": {
        "model_type": "qwen3",
        "hidden_size": 5120,
        "intermediate_size": 25600,
        "num_hidden_layers": 64,
        "num_attention_heads": 64,
        "num_key_value_heads": 8,
        "head_dim": 128,
        "use_sliding_window": False,
        "sliding_window": None,
        "max_window_layers": 64,
        "max_position_embeddings": 4096,
        "vocab_size": 151936,
    },
    "qwen3-235b-a22b": {
        "model_type": "qwen3_moe",
        "hidden_size": 4096,
        "intermediate_size": 12288,
        "moe_intermediate_size": 1536,
        "num_hidden_layers": 94,
        "num_attention_heads": 64,
        "num_key_value_heads": 4,
        "head_dim": 128,
        "num_experts": 128,
        "num_experts_per_tok": 8,
        "decoder_sparse_step": 1,
        "mlp_only_layers": [],
        "max_position_embeddings": 4096,
        "vocab_size": 151936,
    },
    "deepseek-v3": {
        "model_type": "deepseek_v3",
        "hidden_size": 7168,
        "intermediate_size": 18432,
        "moe_intermediate_size": 2048,
        "num_hidden_layers": 61,
        "num_attention_heads": 128,
        "num_key_value_heads": 128,
        "q_lora_rank": 1536,
        "kv_lora_rank": 512,
        "qk_nope_head_dim": 128,
        "qk_rope_head_dim": 64,
        "v_head_dim": 128,
        "n_routed_experts": 256,
        "n_shared_experts": 1,
        "num_experts_per_tok": 8,
        "first_k_dense_replace": 3,
        "num_nextn_predict_layers": 1,
        "max_position_embeddings": 163840,
        "rope_scaling": {"original_max_position_embeddings": 4096},
        "vocab_size": 129280,
    },
    "gpt-oss-20b": {
        "model_type": "gpt_oss",
        "hidden_size": 2880,
        "intermediate_size": 2880,
        "num_hidden_layers": 24,
        "num_attention_heads": 64,
        "num_key_value_heads": 8,
        "head_dim": 64,
        "num_local_experts": 32,
        "experts_per_token": 4,
        "sliding_window": 128,
        "layer_types": ["sliding_attention", "full_attention"] * 12,
        "initial_context_length": 4096,
        "vocab_size": 201088,
    },
    "qwen3-next-80b-a3b": {
        "model_type": "qwen3_next",
        "hidden_size": 2048,
        "num_hidden_layers": 48,
        "num_attention_heads": 16,
        "num_key_value_heads": 2,
        "head_dim": 256,
        "num_experts": 512,
        "num_experts_per_tok": 10,
        "moe_intermediate_size": 512,
        "shared_expert_intermediate_size": 512,
        "linear_num_key_heads": 16,
        "linear_num_value_heads": 32,
        "linear_key_head_dim": 128,
        "linear_value_head_dim": 128,
        "linear_conv_kernel_dim": 4,
        "full_attention_interval": 4,
        "mtp_num_hidden_layers": 1,
        "max_position_embeddings": 4096,
        "vocab_size": 151936,
    },
    "nemotron-3-super": {
        "model_type": "nemotron_h",
        "hidden_size": 4096,
        "num_hidden_layers": 88,
        "num_attention_heads": 32,
        "num_key_value_heads": 2,
        "head_dim": 128,
        "hybrid_override_pattern": "ME" * 40 + "*" * 8,
        "mamba_num_heads": 128,
        "mamba_head_dim": 64,
        "ssm_state_size": 128,
        "n_groups": 8,
        "conv_kernel": 4,
        "n_routed_experts": 512,
        "num_experts_per_tok": 22,
        "moe_intermediate_size": 2688,
        "moe_shared_expert_intermediate_size": 5376,
        "moe_latent_size": 1024,
        "num_nextn_predict_layers": 2,
        "mtp_hybrid_override_pattern": "*E",
        "mtp_use_repeated_layer": True,
        "max_position_embeddings": 8192,
        "vocab_size": 131072,
    },
    "minitron-8b": {
        "model_type": "nemotron",
        "hidden_act": "relu2",
        "hidden_size": 4096,
        "intermediate_size": 16384,
        "num_hidden_layers": 32,
        "num_attention_heads": 48,
        "num_key_value_heads": 8,
        "head_dim": 128,
        "partial_rotary_factor": 0.5,
        "norm_eps": 1e-05,
        "max_position_embeddings": 4096,
        "vocab_size": 256000,
    },
    "nemotron-4-340b": {
        "model_type": "nemotron",
        "hidden_act": "relu2",
        "hidden_size": 18432,
        "intermediate_size": 73728,
        "num_hidden_layers": 96,
        "num_attention_heads": 96,
        "num_key_value_heads": 8,
        "max_position_embeddings": 4096,
        "tie_word_embeddings": False,
        "vocab_size": 256000,
    },
    "grok-1": {
        "model_type": "grok-1",
        "hidden_size": 6144,
        "intermediate_size": 32768,
        "num_hidden_layers": 64,
        "num_attention_heads": 48,
        "num_key_value_heads": 8,
        "num_experts": 8,
        "num_experts_per_tok": 2,
        "max_attn_value": 30.0,
        "attn_output_multiplier": 0.08838834764831845,
        "max_position_embeddings": 8192,
        "vocab_size": 131072,
    },
}


@pytest.mark.parametrize("name", CONFIGS)
def test_a_configuration_is_the_model_of_the_catalogue(name: str) -> None:
    assert model_from_config(CONFIGS[name], name=name) == model(name)


def test_kinds_of_layers_say_which_are_delta_nets() -> None:
    config = {**CONFIGS["qwen3-next-80b-a3b"], "layer_types": ["linear_attention"] * 40 + ["full_attention"] * 8}
    assert model_from_config(config, name="x").delta_layers == 40
    plain = {**config, "attn_output_gate": False}
    assert not model_from_config(plain, name="x").has_gated_attention


def test_a_module_of_another_kind_is_refused() -> None:
    config = {**CONFIGS["nemotron-3-super"], "mtp_hybrid_override_pattern": "M*E"}
    with pytest.raises(ConfigError) as caught:
        model_from_config(config, name="x")
    assert [mistake.path for mistake in caught.value.mistakes] == ["mtp_hybrid_override_pattern"]


def test_gpt2_and_neox_have_plain_mlps() -> None:
    small = {"n_embd": 768, "n_layer": 12, "n_head": 12, "vocab_size": 50257, "n_positions": 1024, "resid_pdrop": 0.1}
    gpt2 = model_from_config({"model_type": "gpt2", **small}, name="gpt2")
    assert (gpt2.ffn, gpt2.sequence, gpt2.has_dropout, gpt2.is_gated) == (3072, 1024, True, False)
    assert parameters(gpt2).total == pytest.approx(124e6, rel=0.01)  # the published 124 million
    shape = {"hidden_size": 6144, "num_hidden_layers": 44, "num_attention_heads": 64, "intermediate_size": 24576}
    neox = model_from_config({"model_type": "gpt_neox", "vocab_size": 50432, **shape}, name="gpt-neox-20b")
    assert parameters(neox).total == pytest.approx(20.55e9, rel=0.01)  # Black et al., arXiv:2204.06745, section 2


PHI3_MINI = {  # microsoft/Phi-3-mini-4k-instruct, config.json
    "model_type": "phi3",
    "hidden_size": 3072,
    "intermediate_size": 8192,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "num_key_value_heads": 32,
    "vocab_size": 32064,
    "max_position_embeddings": 4096,
    "original_max_position_embeddings": 4096,
    "sliding_window": 2047,
    "tie_word_embeddings": False,
    "resid_pdrop": 0.0,
}
PHI4 = {  # microsoft/phi-4, config.json
    **PHI3_MINI,
    "hidden_size": 5120,
    "intermediate_size": 17920,
    "num_hidden_layers": 40,
    "num_attention_heads": 40,
    "num_key_value_heads": 10,
    "vocab_size": 100352,
    "max_position_embeddings": 16384,
    "original_max_position_embeddings": 16384,
    "sliding_window": None,
}
GEMMA3_1B = {  # google/gemma-3-1b-it, config.json
    "model_type": "gemma3_text",
    "head_dim": 256,
    "hidden_size": 1152,
    "intermediate_size": 6912,
    "max_position_embeddings": 32768,
    "num_attention_heads": 4,
    "num_hidden_layers": 26,
    "num_key_value_heads": 1,
    "query_pre_attn_scalar": 256,
    "sliding_window": 512,
    "sliding_window_pattern": 6,
    "vocab_size": 262144,
}
GEMMA3_27B = {  # google/gemma-3-27b-it, config.json, text_config: what is not there is the default of its class
    "model_type": "gemma3_text",
    "head_dim": 128,
    "hidden_size": 5376,
    "intermediate_size": 21504,
    "num_attention_heads": 32,
    "num_hidden_layers": 62,
    "num_key_value_heads": 16,
    "query_pre_attn_scalar": 168,
    "rope_scaling": {"factor": 8.0, "rope_type": "linear"},
    "sliding_window": 1024,
}


@pytest.mark.parametrize(
    ("tree", "published", "windows", "sequence"),
    [
        (PHI3_MINI, 3_821_079_552, 32, 4_096),  # of the model's safetensors, norms included
        (PHI4, 14_659_507_200, 0, 16_384),
        (GEMMA3_1B, 999_885_952, 22, 32_768),
        (GEMMA3_27B, 27.0e9, 52, 131_072),  # Gemma Team, arXiv:2503.19786, table 1: 25.6 and 1.416 billion
    ],
)
def test_phi3_and_gemma3_have_their_published_parameters(
    tree: dict[str, Any], published: float, windows: int, sequence: int
) -> None:
    found = model_from_config(tree, name="x")
    assert parameters(found).total == pytest.approx(published, rel=0.001)
    assert (found.window_layers, found.attention_window > 0, found.sequence) == (windows, windows > 0, sequence)
    assert found.is_gated
    assert found.has_tied_embeddings == (tree["model_type"] == "gemma3_text")


def test_layers_of_gemma3_may_be_named_one_by_one() -> None:
    kinds = ["sliding_attention"] * 20 + ["full_attention"] * 6
    assert model_from_config({**GEMMA3_1B, "layer_types": kinds}, name="x").window_layers == 20
    with pytest.raises(ConfigError, match="names 25 layers, wanted 26"):
        model_from_config({**GEMMA3_1B, "layer_types": kinds[1:]}, name="x")
    assert model_from_config({**GEMMA3_1B, "sliding_window_pattern": 2}, name="x").window_layers == 13


def test_a_stretched_phi3_was_made_for_its_original_length() -> None:
    tree = {**PHI3_MINI, "max_position_embeddings": 131_072}
    assert model_from_config(tree, name="x").sequence == 4_096


def test_a_model_of_images_says_where_its_text_is() -> None:
    whole = {"model_type": "gemma3", "text_config": GEMMA3_27B, "vision_config": {}}
    found, alone = model_from_config(whole, name="x"), model_from_config(GEMMA3_27B, name="x")
    assert found.model_copy(update={"name": "x"}) == alone
    assert found.name == "x, its text part alone"
    with pytest.raises(ConfigError, match="attention to images inside the language model") as caught:
        model_from_config({"model_type": "mllama", "text_config": {"model_type": "mllama_text_model"}}, name="x")
    assert caught.value.mistakes[0].fix is None


def test_no_layers_are_a_mistake() -> None:
    with pytest.raises(ConfigError, match="found 0, wanted a whole number from 1 to 100,000"):
        model_from_config({**GEMMA3_1B, "num_hidden_layers": 0}, name="x")


def test_windows_of_mistral_and_qwen() -> None:
    mistral = model_from_config({**LLAMA, "model_type": "mistral", "sliding_window": 4096}, name="m")
    assert (mistral.attention_window, mistral.window_layers) == (4096, 80)
    windows = {"use_sliding_window": True, "sliding_window": 4096, "max_window_layers": 60}
    qwen = model_from_config({**LLAMA, "model_type": "qwen2", **windows}, name="q")
    assert (qwen.attention_window, qwen.window_layers) == (4096, 20)


def test_dense_layers_among_experts_are_counted() -> None:
    tree = {**CONFIGS["qwen3-235b-a22b"], "mlp_only_layers": [0, 1], "shared_expert_intermediate_size": 64}
    found = model_from_config({**tree, "model_type": "qwen2_moe"}, name="q")
    assert (found.expert_layers, found.ffn, found.shared_ffn) == (92, 12288, 64)
    assert [kind.mlp for kind in layer_kinds(found)[:3]] == ["dense", "dense", "experts"]


def test_an_unknown_architecture_names_those_that_are_known() -> None:
    with pytest.raises(ConfigError) as caught:
        model_from_config({"model_type": "lama"}, name="x")
    (mistake,) = caught.value.mistakes
    assert mistake.fix == "llama"
    assert all(kind in mistake.text for kind in ARCHITECTURES)
    with pytest.raises(ConfigError, match="missing, or no text"):
        model_from_config({}, name="x")


def test_all_mistakes_are_told_at_once() -> None:
    tree = {**CONFIGS["deepseek-v3"], "hidden_size": "big", "num_experts_per_tok": 300, "tie_word_embeddings": 1}
    tree |= {"vocab_size": 0, "kv_lora_rank": None, "attention_dropout": 2}
    with pytest.raises(ConfigError) as caught:
        model_from_config(tree, name="x")
    paths = {mistake.path for mistake in caught.value.mistakes}
    assert paths == {
        "hidden_size", "num_experts_per_tok", "tie_word_embeddings", "vocab_size", "kv_lora_rank",
        "attention_dropout",
    }  # fmt: skip


def test_heads_that_do_not_divide_are_told() -> None:
    with pytest.raises(ConfigError) as caught:
        model_from_config({**LLAMA, "num_attention_heads": 60, "num_key_value_heads": 7}, name="x")
    assert [mistake.path for mistake in caught.value.mistakes] == ["num_attention_heads", "num_key_value_heads"]


@pytest.mark.parametrize(
    ("own", "name"),
    [
        ({"_name_or_path": "meta-llama/Llama-3-70B"}, "Llama-3-70B"),
        ({"_name_or_path": "/home/somebody/models/wide/"}, "wide"),
        ({"_name_or_path": "C:\\models\\wide"}, "wide"),
        ({"_name_or_path": "./", "architectures": ["LlamaForCausalLM"]}, "mine-7b (LlamaForCausalLM)"),
        ({"_name_or_path": ""}, "mine-7b (llama)"),
        ({"_name_or_path": "\x1b[2J"}, "mine-7b (llama)"),
        ({"_name_or_path": 7, "architectures": [7]}, "mine-7b"),
        ({}, "mine-7b (llama)"),
    ],
)
def test_a_model_bears_its_own_name_or_that_of_its_folder(own: dict[str, Any], name: str, tmp_path: Path) -> None:
    folder = tmp_path / "mine-7b"
    folder.mkdir()
    file = folder / "config.json"
    file.write_text(json.dumps({**LLAMA, **own}), encoding="utf-8")
    assert read_config(file).name == name


def test_a_file_that_is_no_config_json_gives_its_own_name(tmp_path: Path) -> None:
    file = tmp_path / "mine.json"
    file.write_text(json.dumps(LLAMA), encoding="utf-8")
    assert read_config(file).name == "mine (llama)"
    assert model_of(str(file)) == read_config(file)
    assert model_of("llama-3-70b") == model("llama-3-70b")


@pytest.mark.parametrize("text", [b"", b"[1]", b"{", b"\xff\xfe", b"nul", b"[" * 5_000, b" " * (2**20 + 1)])
def test_a_file_that_is_no_configuration_is_refused(text: bytes, tmp_path: Path) -> None:
    file = tmp_path / "config.json"
    file.write_bytes(text)
    with pytest.raises(ConfigError) as caught:
        read_config(file)
    assert caught.value.source == str(file)


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be read"):
        read_config(tmp_path / "config.json")


KEYS = sorted({key for config in [*CONFIGS.values(), PHI3_MINI, GEMMA3_1B] for key in config} - {"model_type"})
SWITCHES = ("mtp_hybrid_override_pattern", "mtp_use_repeated_layer")
VALUES = (
    st.none() | st.booleans() | st.integers(-2, 300) | st.integers() | st.floats() | st.text(max_size=3)
) | st.lists(st.sampled_from(["sliding_attention", "x", 1]), max_size=3)


@given(kind=st.sampled_from(sorted(ARCHITECTURES)), tree=st.dictionaries(st.sampled_from(KEYS), VALUES))
def test_whatever_stands_in_a_file_gives_a_model_or_mistakes(kind: str, tree: dict[str, Any]) -> None:
    full = {key: 64 for key in KEYS if key not in {"layer_types", "rope_scaling", "hybrid_override_pattern", *SWITCHES}}
    try:
        found = model_from_config({**full, "tie_word_embeddings": True, **tree, "model_type": kind}, name="x")
    except ConfigError as error:
        found = None
        told = str(error)
        assert told.isprintable() or "\n" in told
    assert found is None or isinstance(found, Model)


QWEN3_TEXT = {
    "hidden_size": 2048, "intermediate_size": 6144, "num_hidden_layers": 28, "num_attention_heads": 16,
    "num_key_value_heads": 8, "head_dim": 128, "vocab_size": 151936, "tie_word_embeddings": True,
}  # fmt: skip


@pytest.mark.parametrize(
    "tree",
    [
        {"model_type": "qwen3_vl", "text_config": {"model_type": "qwen3_vl_text", **QWEN3_TEXT}, "vision_config": {}},
        {"model_type": "qwen3_vl_text", **QWEN3_TEXT},
        {"model_type": "internvl_chat", "llm_config": {"model_type": "qwen3", **QWEN3_TEXT}},
        {"model_type": "omni", "thinker_config": {"text_config": {"model_type": "qwen3", **QWEN3_TEXT}}},
        {
            "model_type": "x",
            "tie_word_embeddings": True,
            "vocab_size": 151936,
            "language_config": {
                "model_type": "qwen3",
                **{key: value for key, value in QWEN3_TEXT.items() if key not in {"vocab_size", "tie_word_embeddings"}},
            },
        },
    ],
)
def test_the_text_part_of_a_model_is_the_model_alone(tree: dict[str, Any]) -> None:
    alone = model_from_config({"model_type": "qwen3", **QWEN3_TEXT}, name="x")
    assert model_from_config(tree, name="x").model_copy(update={"name": "x"}) == alone


def test_a_text_part_without_a_name_is_what_its_whole_says() -> None:
    part = {key: value for key, value in LLAMA.items() if key != "model_type"}
    assert model_from_config({"model_type": "llava", "text_config": part}, name="x").layers == 80
    with pytest.raises(ConfigError) as caught:
        model_from_config({"model_type": "strange", "text_config": part}, name="x")
    assert caught.value.mistakes[0].path == "text_config.model_type"


def test_a_mistake_of_a_text_part_has_its_place() -> None:
    part = {"model_type": "qwen3", **QWEN3_TEXT, "hidden_size": "wide"}
    with pytest.raises(ConfigError) as caught:
        model_from_config({"model_type": "qwen3_vl", "text_config": part}, name="x")
    assert caught.value.mistakes[0].path == "text_config.hidden_size"


def test_kimi_k2_has_the_architecture_of_deepseek_v3() -> None:
    tree = {**CONFIGS["deepseek-v3"], "model_type": "kimi_k2", "num_attention_heads": 64, "num_key_value_heads": 64}
    tree |= {"n_routed_experts": 384, "first_k_dense_replace": 1, "num_nextn_predict_layers": 0, "vocab_size": 163840}
    tree |= {"rope_scaling": None, "max_position_embeddings": 4096}
    assert model_from_config(tree, name="kimi-k2") == model("kimi-k2")


@pytest.mark.parametrize("suggestion", [*ALIASES, *ARCHITECTURES])
def test_a_suggested_architecture_is_read(suggestion: str) -> None:
    """A suggestion leads to a model, or to other mistakes than the one before."""
    with pytest.raises(ConfigError) as caught:
        model_from_config({"model_type": f"{suggestion}x"}, name="x")
    fix = caught.value.mistakes[0].fix
    assert fix is not None
    with pytest.raises(ConfigError) as next_one:
        model_from_config({"model_type": fix}, name="x")
    assert all("wanted an architecture" not in one.text for one in next_one.value.mistakes)


def test_a_hybrid_may_name_its_layers() -> None:
    tree = dict(CONFIGS["nemotron-3-super"])
    pattern = tree.pop("hybrid_override_pattern")
    letters = {"M": "mamba", "E": "moe", "*": "attention", "-": "mlp"}
    found = model_from_config({**tree, "layers_block_type": [letters[one] for one in pattern]}, name="x")
    assert found == model_from_config({**tree, "hybrid_override_pattern": pattern}, name="x")
    with pytest.raises(ConfigError) as caught:
        model_from_config({**tree, "layers_block_type": ["mamba", "attenton"]}, name="x")
    assert caught.value.mistakes[0].fix == "attention"


def test_lists_of_layers_have_two_names() -> None:
    tree = CONFIGS["qwen3-next-80b-a3b"]
    kinds = (["linear_attention"] * 3 + ["attention"]) * 12
    found = model_from_config({**tree, "layers_block_type": kinds}, name="x")
    assert found == model_from_config(tree, name="x")


GLM = {
    "model_type": "glm4_moe", "hidden_size": 5120, "intermediate_size": 12288, "moe_intermediate_size": 1536,
    "num_hidden_layers": 92, "num_attention_heads": 96, "num_key_value_heads": 8, "head_dim": 128,
    "n_routed_experts": 160, "n_shared_experts": 1, "num_experts_per_tok": 8, "first_k_dense_replace": 3,
    "num_nextn_predict_layers": 1, "use_qk_norm": True, "max_position_embeddings": 131072, "vocab_size": 151552,
    "tie_word_embeddings": False,
}  # fmt: skip
GLM_AIR = GLM | {
    "hidden_size": 4096, "intermediate_size": 10944, "moe_intermediate_size": 1408, "num_hidden_layers": 46,
    "n_routed_experts": 128, "first_k_dense_replace": 1,
}  # fmt: skip
SCOUT = {
    "model_type": "llama4_text", "hidden_size": 5120, "intermediate_size": 8192, "intermediate_size_mlp": 16384,
    "num_hidden_layers": 48, "num_attention_heads": 40, "num_key_value_heads": 8, "head_dim": 128,
    "num_local_experts": 16, "num_experts_per_tok": 1, "interleave_moe_layer_step": 1, "attention_chunk_size": 8192,
    "max_position_embeddings": 10485760, "vocab_size": 202048, "tie_word_embeddings": False,
}  # fmt: skip
MAVERICK = SCOUT | {"num_local_experts": 128, "interleave_moe_layer_step": 2}


@pytest.mark.parametrize(
    ("config", "total", "active"),
    [
        (GLM, 355, 32),  # zai-org/GLM-4.5, model card: 355 billion, 32 billion active
        (GLM_AIR, 106, 12),
        (SCOUT, 109, 17),  # Meta, "The Llama 4 herd": 109 and 400 billion, 17 billion active; with the vision encoder
        (MAVERICK, 400, 17),
    ],
    ids=["GLM-4.5", "GLM-4.5-Air", "Scout", "Maverick"],
)
def test_mixtures_have_as_many_parameters_as_their_cards_say(config: dict[str, Any], total: int, active: int) -> None:
    made = model_from_config(config, name="x")
    assert parameters(made).total / 1e9 == pytest.approx(total, rel=0.02)
    assert active_parameters(made) / 1e9 == pytest.approx(active, rel=0.12)  # cards leave embeddings out or in


def test_mixtures_of_every_second_layer_are_spread_among_dense_ones() -> None:
    maverick = model_from_config({"model_type": "llama4", "text_config": MAVERICK}, name="maverick")
    assert maverick.name == "maverick, its text part alone"
    kinds = layer_kinds(maverick)
    assert [kind.mlp for kind in kinds] == ["dense", "experts"] * 24
    assert sum(kind.mixer == "window" for kind in kinds) == 36
    stepped = CONFIGS["qwen3-235b-a22b"] | {"decoder_sparse_step": 2}
    assert [kind.mlp for kind in layer_kinds(model_from_config(stepped, name="x"))][:4] == ["dense", "experts"] * 2


def test_a_chunk_is_looked_back_to_its_begin() -> None:
    scout = model_from_config(SCOUT, name="scout")
    chunked = next(kind for kind in layer_kinds(scout) if kind.mixer == "window")
    assert attended_tokens(scout, chunked, 4096) == 2048
    assert attended_tokens(scout, chunked, 8192) == 4096
    assert attended_tokens(scout, chunked, 65536) == 4096
