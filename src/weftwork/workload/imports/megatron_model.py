"""Model sizes in arguments of Megatron-LM, as a model; and back.

The model is one of the catalogue, or a ``config.json``.
Source: NVIDIA/Megatron-LM, megatron/training/arguments.py, ``validate_args`` for what follows from other arguments;
huggingface/transformers, src/transformers/models, for the keys of a ``config.json``.
Leaves out: the padding of a vocabulary, less than 1 % of most models, and models that no ``config.json`` describes.
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from weftwork.base.errors import ConfigError
from weftwork.spec.training import Model
from weftwork.workload.imports.megatron_arguments import GATED
from weftwork.workload.models.catalogue import MODELS, model
from weftwork.workload.models.huggingface import PREDICTION_PATTERN, model_from_config
from weftwork.workload.models.size import layer_kinds

if TYPE_CHECKING:
    from weftwork.workload.imports.argument_reader import ArgumentReader

__all__ = ["MODEL_ARGUMENTS", "ModelFound", "find_model", "model_arguments"]

# Argument, and what it is called where a user reads what became of it.
MODEL_ARGUMENTS: Final = {
    "--num-layers": "layers",
    "--hidden-size": "hidden",
    "--num-attention-heads": "heads",
    "--ffn-hidden-size": "ffn",
    "--kv-channels": "head_dim",
    "--group-query-attention": "key_value_heads",
    "--num-query-groups": "key_value_heads",
    "--vocab-size": "vocabulary",
    "--padded-vocab-size": "vocabulary",
    "--make-vocab-size-divisible-by": "vocabulary",
    "--tokenizer-type": "vocabulary",
    "--max-position-embeddings": "sequence",
    "--swiglu": "is_gated",
    "--quick-geglu": "is_gated",
    "--squared-relu": "has_squared_relu",
    "--untie-embeddings-and-output-weights": "has_tied_embeddings",
    "--attention-dropout": "has_dropout",
    "--hidden-dropout": "has_dropout",
    "--num-experts": "experts",
    "--moe-router-topk": "experts_per_token",
    "--moe-ffn-hidden-size": "expert_ffn",
    "--moe-shared-expert-intermediate-size": "shared_ffn",
    "--moe-layer-freq": "expert_layers",
    "--multi-latent-attention": "latent_attention",
    "--q-lora-rank": "latent_attention",
    "--kv-lora-rank": "latent_attention",
    "--qk-head-dim": "latent_attention",
    "--qk-pos-emb-head-dim": "latent_attention",
    "--v-head-dim": "latent_attention",
    "--mtp-num-layers": "prediction_layers",
    "--mtp-use-repeated-layer": "has_shared_predictions",
    "--mtp-hybrid-override-pattern": "prediction_layers",
    "--window-size": "attention_window",
    "--window-attn-skip-freq": "window_layers",
    "--hybrid-override-pattern": "state_space_layers",
    "--mamba-state-dim": "state_space",
    "--mamba-head-dim": "state_space",
    "--mamba-num-groups": "state_space",
    "--mamba-num-heads": "state_space",
    "--qk-layernorm": "has_query_key_norm",
}
_REQUIRED: Final = ("--num-layers", "--hidden-size", "--num-attention-heads")
# Keys of a config.json, and the argument that a mistake there is about.
_CONFIG_KEYS: Final = {
    "hidden_size": "--hidden-size",
    "num_attention_heads": "--num-attention-heads",
    "num_key_value_heads": "--num-query-groups",
    "num_experts_per_tok": "--moe-router-topk",
    "num_hidden_layers": "--num-layers",
    "hybrid_override_pattern": "--hybrid-override-pattern",
    "mamba_num_heads": "--mamba-num-heads",
}
_DROPOUT: Final = 0.1  # megatron/training/arguments.py: of attention and of hidden states
_DIVISIBLE_BY: Final = 128  # as above: --make-vocab-size-divisible-by
_MOST_LAYERS: Final = 100_000  # chosen: as of a config.json
# Words of tokenizers that need no file to be counted.
_TOKENIZERS: Final = {
    "GPT2BPETokenizer": 50_257,  # openai/gpt-2, encoder.json; Brown et al., arXiv:2005.14165, have the same
    "Llama2Tokenizer": 32_000,  # Touvron et al., arXiv:2307.09288, section 2.2
}
_USUAL_TOKENIZER: Final = "GPT2BPETokenizer"  # NVIDIA/Megatron-LM, pretrain_gpt.py: args_defaults
_USUAL_TEXT: Final = f"that of {_USUAL_TOKENIZER}, which pretrain_gpt.py takes if no tokenizer is named"
_VOCABULARY_FILES: Final = frozenset({"--vocab-file", "--merge-file"})  # those that this tokenizer reads


@dataclass(frozen=True, kw_only=True, slots=True)
class ModelFound:
    """A model that arguments describe.

    Attributes
    ----------
    model : its sizes
    config : as a ``config.json``; None for a model of the catalogue
    assumed : what was not given, by key, with its value and the reason
    """

    model: Model
    config: dict[str, Any] | None
    assumed: dict[str, str]


def find_model(reader: ArgumentReader, *, name: str, tensor: int) -> ModelFound | None:
    """Find the model.

    None if its sizes are wrong or missing; the reader has the mistakes.

    Parameters
    ----------
    reader : of the arguments
    name : of the model, where it is none of the catalogue
    tensor : ranks that split the vocabulary, which is padded for them
    """
    if not reader.is_whole and not reader.has(*_REQUIRED):
        return None
    sequence = reader.whole("--max-position-embeddings") or reader.whole("--seq-length") or 2048
    before = len(reader.mistakes)
    assumed: dict[str, str] = {}
    config = {**_config(reader, assumed), "max_position_embeddings": sequence}
    words = _vocabulary(reader, assumed)
    if len(reader.mistakes) > before:
        return None
    config |= {"_name_or_path": name, "vocab_size": words or 1}
    try:
        described = model_from_config(config, name=name)
    except ConfigError as error:
        for one in error.mistakes:
            reader.wrong(_CONFIG_KEYS.get(one.path, f"model {one.path}"), one.text, one.fix)
        return None
    alike = _of_the_catalogue(described, words, _padded(reader, words, tensor))
    if len({one.vocabulary for one in alike}) > 1:
        names = " and ".join(one.name for one in alike)
        wanted = " or ".join(str(one.vocabulary) for one in alike)
        reader.wrong("--vocab-size", f"missing, and {names} have these sizes; wanted {wanted}")
        return None
    known = alike[0] if alike else None
    if described.experts and not described.ffn and (reader.has("--moe-ffn-hidden-size") or "model.ffn" not in assumed):
        assumed.pop("model.ffn", None)  # no layer has that width
    if known is not None:
        if words is None:
            assumed["model.vocabulary"] = f"{known.vocabulary:,}: that of {known.name}, which has the same other sizes"
        elif words != known.vocabulary and "model.vocabulary" in assumed:
            assumed["model.vocabulary"] += f", padded to {known.vocabulary:,}"
        return ModelFound(model=known, config=None, assumed=assumed)
    if words is None and reader.has("--tokenizer-type"):
        text = "missing, and neither the tokenizer nor a model of the catalogue says it; wanted a whole number"
        reader.wrong("--vocab-size", text)
        return None
    if words is None:
        config["vocab_size"] = _TOKENIZERS[_USUAL_TOKENIZER]
        assumed["model.vocabulary"] = f"{_TOKENIZERS[_USUAL_TOKENIZER]:,}: {_USUAL_TEXT}"
    return ModelFound(model=model_from_config(config, name=name), config=config, assumed=assumed)


def _config(reader: ArgumentReader, assumed: dict[str, str]) -> dict[str, Any]:
    """The configuration without vocabulary, in the form that can hold it."""
    layers, hidden, heads = (reader.needed(argument) for argument in _REQUIRED)
    if layers > _MOST_LAYERS:
        reader.wrong("--num-layers", f"found {layers:,}, wanted at most {_MOST_LAYERS:,}")
        layers = 1
    is_gated = max(reader.flag(argument) for argument in GATED)
    groups = reader.whole("--num-query-groups", 1) or 1
    if not reader.flag("--group-query-attention"):
        groups = heads
    drops = [reader.share(argument, _DROPOUT) for argument in ("--attention-dropout", "--hidden-dropout")]
    if not reader.has("--attention-dropout", "--hidden-dropout"):
        assumed["model.has_dropout"] = f"true: Megatron-LM drops {_DROPOUT:.0%} unless told otherwise"
    ffn = reader.whole("--ffn-hidden-size")
    if ffn is None:
        ffn = max(hidden * 8 // 3 // 64, 1) * 64 if is_gated else 4 * hidden
        assumed["model.ffn"] = f"{ffn:,}: Megatron-LM's width without --ffn-hidden-size"
    config: dict[str, Any] = {
        "num_hidden_layers": layers,
        "hidden_size": hidden,
        "num_attention_heads": heads,
        "num_key_value_heads": groups,
        "intermediate_size": ffn,
        "tie_word_embeddings": not reader.flag("--untie-embeddings-and-output-weights"),
        "attention_dropout": drops[0],
        "hidden_dropout": drops[1],
    }
    width = reader.whole("--kv-channels")
    if width is not None:
        config["head_dim"] = width
    return config | _kind(reader, config, assumed, is_gated=is_gated)


def _kind(reader: ArgumentReader, config: dict[str, Any], assumed: dict[str, str], *, is_gated: bool) -> dict[str, Any]:
    """Features beyond equal layers, and an architecture with all of them."""
    experts = reader.whole("--num-experts", 0, low=0) or 0
    layers, ffn = config["num_hidden_layers"], config["intermediate_size"]
    pattern = reader.word("--hybrid-override-pattern")
    squares = reader.flag("--squared-relu")
    if squares and is_gated:
        reader.wrong("--squared-relu", "found with a gated activation, wanted one of the two")
    is_latent = reader.flag("--multi-latent-attention")
    mixtures = _expert_layers(reader, layers) if experts else 0
    extras = _experts(reader, experts, ffn, assumed) if experts and (mixtures or pattern) else {}
    window, windows = _windows(reader, layers)
    if reader.has("--mtp-num-layers") and not is_latent and not (pattern and extras):
        text = "a config.json has such layers with --multi-latent-attention, or with a pattern and experts, alone"
        reader.wrong("--mtp-num-layers", text)
    if pattern is None:
        for argument in filter(reader.has, ("--mtp-use-repeated-layer", "--mtp-hybrid-override-pattern")):
            reader.wrong(argument, "a config.json has it with --hybrid-override-pattern alone")
    if windows and (pattern or is_latent or (extras and (mixtures < layers or extras["shared"]))):
        reader.wrong("--window-size", "no config.json has windows together with the other features of this model")
    if pattern is not None:
        if is_gated:
            reader.wrong("--hybrid-override-pattern", "is read without --swiglu alone: such a config.json has no gates")
        return _hybrid(reader, pattern, extras)
    if (extras or is_latent or windows) and not is_gated:
        wanted = "wanted --swiglu as well: no config.json has such layers without it"
        kind = "--num-experts" if extras else "--multi-latent-attention" if is_latent else "--window-size"
        reader.wrong(kind, wanted)
    if is_latent:
        return _latent(reader, extras, layers - mixtures)
    if windows:
        kinds = ["sliding_attention"] * windows + ["full_attention"] * (layers - windows)
        found = {"sliding_window": window, "layer_types": kinds, "head_dim": config.get("head_dim") or _width(config)}
        both = {"num_local_experts": extras["experts"], "num_experts_per_tok": extras["each"]} if extras else {}
        ffn_key = {"intermediate_size": extras["ffn"]} if extras else {}
        return {"model_type": "gpt_oss" if extras else "gemma3_text", **found, **both, **ffn_key}
    if extras:
        return {
            "model_type": "qwen3_moe" if reader.flag("--qk-layernorm") else "qwen2_moe",
            "num_experts": extras["experts"],
            "num_experts_per_tok": extras["each"],
            "moe_intermediate_size": extras["ffn"],
            "shared_expert_intermediate_size": extras["shared"],
            "mlp_only_layers": list(range(layers - mixtures)),
        }
    if not is_gated:
        return {"model_type": "nemotron"} if squares else {"model_type": "gpt2", "n_inner": ffn}
    return {"model_type": "qwen3" if reader.flag("--qk-layernorm") else "llama"}


def _experts(reader: ArgumentReader, experts: int, ffn: int, assumed: dict[str, str]) -> dict[str, int]:
    each = reader.whole("--moe-router-topk", 2) or 2
    if not reader.has("--moe-router-topk"):
        assumed |= {"model.experts_per_token": "2: Megatron-LM's default"}
    width = reader.whole("--moe-ffn-hidden-size", ffn) or ffn
    shared = reader.whole("--moe-shared-expert-intermediate-size", 0) or 0
    return {"experts": experts, "each": each, "ffn": width, "shared": shared}


def _latent(reader: ArgumentReader, extras: dict[str, int], dense: int) -> dict[str, Any]:
    if not extras:
        text = "wanted --num-experts as well: no config.json has one without the other"
        reader.wrong("--multi-latent-attention", text)
        return {}
    if extras["shared"] % extras["ffn"]:
        text = f"found {extras['shared']:,}, wanted a multiple of the width {extras['ffn']:,} of an expert"
        reader.wrong("--moe-shared-expert-intermediate-size", text)
    width = reader.whole("--v-head-dim", 128)
    return {
        "model_type": "deepseek_v3",
        "head_dim": width,
        "q_lora_rank": reader.whole("--q-lora-rank", 0),
        "kv_lora_rank": reader.whole("--kv-lora-rank", 32),
        "qk_nope_head_dim": reader.whole("--qk-head-dim", 128),
        "qk_rope_head_dim": reader.whole("--qk-pos-emb-head-dim", 64, low=0),
        "v_head_dim": width,
        "n_routed_experts": extras["experts"],
        "num_experts_per_tok": extras["each"],
        "moe_intermediate_size": extras["ffn"],
        "n_shared_experts": extras["shared"] // extras["ffn"],
        "first_k_dense_replace": dense,
        "num_nextn_predict_layers": reader.whole("--mtp-num-layers", 0, low=0),
    }


def _hybrid(reader: ArgumentReader, pattern: str, extras: dict[str, int]) -> dict[str, Any]:
    if not reader.has("--mamba-num-heads"):
        reader.wrong("--mamba-num-heads", "missing, wanted the heads of a Mamba layer beside its pattern")
    found = {
        "model_type": "nemotron_h",
        "mlp_hidden_act": "relu2" if reader.flag("--squared-relu") else "gelu",
        "hybrid_override_pattern": pattern,
        "mamba_num_heads": reader.whole("--mamba-num-heads", 1),
        "mamba_head_dim": reader.whole("--mamba-head-dim", 64),
        "ssm_state_size": reader.whole("--mamba-state-dim", 128),
        "n_groups": reader.whole("--mamba-num-groups", 8),
    }
    if extras:
        found |= {
            "n_routed_experts": extras["experts"],
            "num_experts_per_tok": extras["each"],
            "moe_intermediate_size": extras["ffn"],
            "moe_shared_expert_intermediate_size": extras["shared"],
            "num_nextn_predict_layers": reader.whole("--mtp-num-layers", 0, low=0),
            "mtp_use_repeated_layer": reader.flag("--mtp-use-repeated-layer"),
            "mtp_hybrid_override_pattern": reader.word("--mtp-hybrid-override-pattern") or PREDICTION_PATTERN,
        }
    return found


def _expert_layers(reader: ArgumentReader, layers: int) -> int:
    text = reader.word("--moe-layer-freq")
    if text is None:
        return layers
    if re.fullmatch("[1-9][0-9]{0,5}", text):
        return -(-layers // int(text))  # one layer of experts, then n - 1 dense ones
    return _ones(reader, "--moe-layer-freq", text, layers)


def _windows(reader: ArgumentReader, layers: int) -> tuple[int, int]:
    """Tokens of an attention window, and layers with a window."""
    text = reader.word("--window-size")
    if text is None:
        return 0, 0
    match = re.fullmatch(r"[(\[]?\s*([1-9][0-9]{0,8})\s*,\s*-?[0-9]{1,9}\s*[)\]]?", text)
    if match is None:
        reader.wrong("--window-size", f"found '{text[:60]}', wanted two numbers such as 128,0")
        return 0, 0
    skips = reader.word("--window-attn-skip-freq")
    if skips is None:
        return int(match[1]), layers
    if re.fullmatch("[1-9][0-9]{0,5}", skips):
        return int(match[1]), layers - layers // int(skips)  # n - 1 windows, then a layer without
    return int(match[1]), _ones(reader, "--window-attn-skip-freq", skips, layers)


def _ones(reader: ArgumentReader, argument: str, text: str, layers: int) -> int:
    """Number of layers that are 1 in a pattern such as ``([0]*1+[1]*60)``."""
    try:
        pattern = _pattern(ast.parse(text.strip(), mode="eval").body, layers)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        pattern = None
    if pattern is None or len(pattern) != layers:
        reader.wrong(argument, f"found '{text[:60]}', wanted a number, or a list of {layers} zeros and ones")
        return 0
    return sum(pattern)


def _pattern(node: ast.expr, most: int) -> list[int] | None:
    """Parse lists of zeros and ones, their sums and their multiples.

    None for other text, and for more than ``most`` items.
    """
    match node:
        case ast.List(elts=items):
            found = [item.value for item in items if isinstance(item, ast.Constant) and isinstance(item.value, int)]
            return found if len(found) == len(items) and set(found) <= {0, 1} else None
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            first, second = _pattern(left, most), _pattern(right, most)
            return None if first is None or second is None else first + second
        case ast.BinOp(left=left, op=ast.Mult(), right=ast.Constant(value=int() as times)):
            first = _pattern(left, most)
            return None if first is None or not 0 <= times * len(first) <= most else first * times
    return None


def _vocabulary(reader: ArgumentReader, assumed: dict[str, str]) -> int | None:
    """Size of the vocabulary; None if only a tokenizer file states it."""
    given = reader.whole("--padded-vocab-size") or reader.whole("--vocab-size")
    reader.whole("--make-vocab-size-divisible-by")
    tokenizer = reader.word("--tokenizer-type")
    if given is not None:
        return given
    if tokenizer is None and reader.ignored.keys() & _VOCABULARY_FILES:
        assumed["model.vocabulary"] = f"{_TOKENIZERS[_USUAL_TOKENIZER]:,}: {_USUAL_TEXT}"
        return _TOKENIZERS[_USUAL_TOKENIZER]
    words = _TOKENIZERS.get(tokenizer or "")
    if words is not None:
        assumed["model.vocabulary"] = f"{words:,}: the tokenizer's, {tokenizer}"
    return words


def _padded(reader: ArgumentReader, words: int | None, tensor: int) -> int:
    step = (reader.whole("--make-vocab-size-divisible-by", _DIVISIBLE_BY) or _DIVISIBLE_BY) * tensor
    return -(-(words or 0) // step) * step


def _of_the_catalogue(described: Model, words: int | None, padded: int) -> list[Model]:
    """Models of the catalogue with the same layers and vocabulary.

    The vocabulary counts where it is known, padded or not. Where it is not known, and several models differ in it,
    those that were made for as many tokens come alone.
    """
    sizes = {"name", "sequence", "vocabulary", "has_squared_relu"}
    alike = [
        known
        for known in (model(name) for name in MODELS)
        if known.model_dump(exclude=sizes) == described.model_dump(exclude=sizes)
        and (words is None or known.vocabulary in {words, padded})
    ]
    return [known for known in alike if known.sequence == described.sequence] or alike


def _width(config: dict[str, Any]) -> int:
    return max(int(config["hidden_size"]) // int(config["num_attention_heads"]), 1)


def model_arguments(model: Model) -> tuple[list[str], dict[str, str]]:
    """Write the sizes of a model as arguments.

    Returns
    -------
    the arguments, and what no argument can say, by field

    Examples
    --------
    >>> words, left_out = model_arguments(model("mixtral-8x7b"))
    >>> words[words.index("--num-experts") + 1], left_out
    ('8', {})
    """
    left_out = {}
    words = [
        *("--num-layers", str(model.layers)),
        *("--hidden-size", str(model.hidden)),
        *("--num-attention-heads", str(model.heads)),
        *("--vocab-size", str(model.vocabulary)),
        *("--max-position-embeddings", str(model.sequence)),
    ]
    if model.latent_attention is None:
        words += ["--kv-channels", str(model.head_dim)]
    if model.ffn:
        words += ["--ffn-hidden-size", str(model.ffn)]
    if model.key_value_heads != model.heads:
        words += ["--group-query-attention", "--num-query-groups", str(model.key_value_heads)]
    words += ["--swiglu"] if model.is_gated else ["--squared-relu"] if model.has_squared_relu else []
    words += [] if model.has_tied_embeddings else ["--untie-embeddings-and-output-weights"]
    drop = str(_DROPOUT) if model.has_dropout else "0.0"
    words += ["--attention-dropout", drop, "--hidden-dropout", drop]
    words += _expert_words(model)
    latent = model.latent_attention
    if latent is not None:
        words += ["--multi-latent-attention", *(["--q-lora-rank", str(latent.query_rank)] if latent.query_rank else [])]
        words += ["--kv-lora-rank", str(latent.key_value_rank), "--qk-head-dim", str(latent.no_position_dim)]
        words += ["--qk-pos-emb-head-dim", str(latent.rope_dim), "--v-head-dim", str(latent.value_dim)]
    words += ["--mtp-num-layers", str(model.prediction_layers)] if model.prediction_layers else []
    words += ["--mtp-use-repeated-layer"] if model.has_shared_predictions else []
    if model.window_layers:
        words += ["--window-size", f"{model.attention_window},0"]
        full = model.layers - model.window_layers
        if full:
            words += ["--window-attn-skip-freq", f"[1]*{model.window_layers}+[0]*{full}"]
    if model.state_space is not None:
        words += _hybrid_words(model)
    words += ["--qk-layernorm"] if model.has_query_key_norm else []
    if model.expert_hidden:
        left_out["expert_hidden"] = "Megatron-LM has no argument for experts of another width than the model's"
    if model.delta is not None:
        left_out["delta"] = "gated delta nets are not written as arguments: attention is written in their place"
    if model.has_gated_attention:
        left_out["has_gated_attention"] = "gates of attention are not written as arguments"
    return words, left_out


def _expert_words(model: Model) -> list[str]:
    if not model.experts:
        return []
    words = ["--num-experts", str(model.experts), "--moe-router-topk", str(model.experts_per_token)]
    words += ["--moe-ffn-hidden-size", str(model.expert_ffn)]
    if model.shared_ffn:
        words += ["--moe-shared-expert-intermediate-size", str(model.shared_ffn)]
    dense = model.layers - model.expert_layers
    if dense and model.state_space is None:
        words += ["--moe-layer-freq", f"[0]*{dense}+[1]*{model.expert_layers}"]
    return words


def _hybrid_words(model: Model) -> list[str]:
    space = model.state_space
    if space is None:
        return []
    letters = {("state-space", "none"): "M", ("none", "experts"): "E", ("attention", "none"): "*"}
    pattern = "".join(letters.get((kind.mixer, kind.mlp), "-") for kind in layer_kinds(model))
    words = [f"--hybrid-override-pattern={pattern}", "--mamba-num-heads", str(space.heads)]  # it may begin with -
    words += ["--mamba-head-dim", str(space.head_dim), "--mamba-state-dim", str(space.state)]
    return [*words, "--mamba-num-groups", str(space.groups)]
