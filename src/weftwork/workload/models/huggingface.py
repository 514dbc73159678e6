"""Read a model from a ``config.json`` of Hugging Face Transformers.

Transformers keeps the file beside the weights. Every mistake of a file is told at once. Architectures that are not
listed are refused: a shape that is only half understood gives numbers that nobody can trust.
Source: huggingface/transformers, src/transformers/models/*/configuration_*.py, for the keys and their defaults.
Leaves out: parts for images and sound, quantisation of stored weights, and the order of layers of different kinds.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from weftwork.base.errors import ConfigError, Mistake
from weftwork.base.file_forms import refuse_folder, refuse_foreign
from weftwork.base.grammar import plural
from weftwork.base.nearest import nearest
from weftwork.base.plain_file import read_plain
from weftwork.spec.training import DeltaNet, LatentAttention, Model, StateSpace
from weftwork.workload.models.catalogue import model as catalogue_model
from weftwork.workload.models.text_part import ALIASES, FOREIGN, TextPart, text_part

__all__ = ["ARCHITECTURES", "PREDICTION_PATTERN", "model_from_config", "model_of", "read_config"]

# What a module of multi-token prediction of a hybrid holds: NVIDIA-NeMo/Megatron-Bridge, models/nemotronh.
PREDICTION_PATTERN: Final = "*E"
_MOST_BYTES: Final = 2**20  # chosen: a configuration has a few kilobytes
_MOST: Final = 2**40  # chosen: no shape is larger
_LONGEST_NAME: Final = 60  # chosen: a title still fits a line
_MOST_LAYERS: Final = 100_000  # chosen: as above
# Lists of the kinds of layers: configuration_utils.py, and what models had before it
_LAYER_LISTS: Final = ("layer_types", "layers_block_type")
_FULL: Final = "full_attention"
_CONTEXTS: Final = ("initial_context_length", "max_position_embeddings", "n_positions")  # names of one number
# Letters of a layer of a hybrid: models/nemotron_h/configuration_nemotron_h.py, layers_block_type
_BLOCKS: Final = {"mamba": "M", "moe": "E", "attention": "*", "mlp": "-"}
# What files of Gemma 3 leave out: huggingface/transformers, src/transformers/models/gemma3/configuration_gemma3.py.
_GEMMA3: Final = {
    "vocab_size": 262_208, "num_attention_heads": 8, "num_key_value_heads": 4, "head_dim": 256,
    "max_position_embeddings": 131_072, "sliding_window": 4_096,
}  # fmt: skip


def model_of(choice: str, *, path: str = "training.model") -> Model:
    """The model that a scenario names: a catalogue model, or a ``config.json``.

    Parameters
    ----------
    choice : name or file, as the scenario has it resolved
    path : of the key that holds it, for the error

    Raises
    ------
    ConfigError : there is no such model or file, or the file has mistakes
    """
    return read_config(Path(choice)) if choice.endswith(".json") else catalogue_model(choice, path=path)


def read_config(file: Path) -> Model:
    """Read a ``config.json``.

    The model bears the name that the file gives it (``_name_or_path``, of a path its last part), else that of its
    folder, or of the file where that says more, with its architecture.

    Raises
    ------
    ConfigError : the file cannot be read, is no JSON object, or lacks or contradicts what its architecture needs
    """
    refuse_folder(file, "model")
    try:
        raw = read_plain(file, _MOST_BYTES + 1)
        refuse_foreign(str(file), raw, "model")
        tree = json.loads(raw.decode("utf-8-sig")) if len(raw) <= _MOST_BYTES else None
    except OSError as error:
        raise _refused(file, f"cannot be read: {error.strerror or 'not a path'}") from error
    except (ValueError, RecursionError) as error:
        raise _refused(file, "is no JSON text in UTF-8, wanted the config.json of a model") from error
    if not isinstance(tree, dict):
        raise _refused(file, "is no JSON object of less than 1 MiB, wanted the config.json of a model")
    place = file.absolute().parent.name if file.stem == "config" else file.stem
    return model_from_config(tree, name=_own_name(tree, place or "model"), source=str(file))


def _own_name(tree: Mapping[str, Any], place: str) -> str:
    """Name of a model in its file; ``place`` is the file's path."""
    own = tree.get("_name_or_path")
    last = own.replace("\\", "/").rstrip("/").rpartition("/")[2].strip() if isinstance(own, str) else ""
    if last.strip(".") and last.isprintable() and len(last) <= _LONGEST_NAME:
        return last
    named = tree.get("architectures")
    kind = named[0] if isinstance(named, list) and named else tree.get("model_type")
    is_word = isinstance(kind, str) and kind.isprintable() and 0 < len(kind) <= _LONGEST_NAME
    return f"{place} ({kind})" if is_word else place


def model_from_config(tree: Mapping[str, Any], *, name: str, source: str = "config.json") -> Model:
    """The model of a configuration.

    Parameters
    ----------
    tree : the JSON object
    name : of the model
    source : what errors call the file

    Raises
    ------
    ConfigError : with every mistake

    Examples
    --------
    >>> shape = {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 256}
    >>> model_from_config({"model_type": "llama", "vocab_size": 1000, **shape}, name="tiny").head_dim
    16
    """
    part = text_part(tree)
    kind = part.tree.get("model_type")
    known = ALIASES.get(kind, kind) if isinstance(kind, str) else None
    if known is None or known not in ARCHITECTURES:
        raise ConfigError(source, [_unknown_kind(part, kind)])
    keys = _Keys(tree=part.tree)
    values = ARCHITECTURES[known](keys)
    if keys.mistakes:
        raise ConfigError(source, [replace(one, path=part.path(one.path)) for one in keys.mistakes])
    has_more = bool(part.place) or isinstance(tree.get("vision_config"), dict)
    return Model(name=f"{name}, its text part alone" if has_more else name, **values)


def _unknown_kind(part: TextPart, kind: object) -> Mistake:
    """Mistake about an architecture that is not known."""
    path = part.path("model_type")
    if not isinstance(kind, str) or not kind.isprintable():
        text = f"missing, or no text, wanted an architecture that Weftwork knows: {', '.join(ARCHITECTURES)}"
        return Mistake(path=path, text=text)
    if kind in FOREIGN:
        text = f"found '{kind}', a model with features that Weftwork does not know: {FOREIGN[kind]}"
        return Mistake(path=path, text=text)
    text = f"found '{kind[:_LONGEST_NAME]}', wanted an architecture that Weftwork knows: {', '.join(ARCHITECTURES)}"
    return Mistake(path=path, text=text, fix=nearest(kind, [*ARCHITECTURES, *ALIASES]))


@dataclass(kw_only=True)
class _Keys:
    """Reader of a configuration, key by key.

    Mistakes are kept and reading goes on.
    """

    tree: Mapping[str, Any]
    mistakes: list[Mistake] = field(default_factory=list)

    def whole(self, *names: str, default: int | None = None, low: int = 1, high: int = _MOST) -> int:
        """A whole number under the first present name.

        Null counts as absent.
        """
        name = next((one for one in names if self.tree.get(one) is not None), names[0])
        value = self.tree.get(name)
        if value is None and default is not None:
            return default
        if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
            found = "missing" if value is None else f"found {json.dumps(value)[:40]}"
            text = f"{found}, wanted a whole number from {low} to {high:,}"
            self.mistakes.append(Mistake(path=name, text=text))
            return max(low, 1)
        return value

    def flag(self, name: str, *, default: bool) -> bool:
        """True or false."""
        value = self.tree.get(name, default)
        if not isinstance(value, bool):
            self.mistakes.append(Mistake(path=name, text=f"found {json.dumps(value)[:40]}, wanted true or false"))
            return default
        return value

    def texts(self, name: str) -> list[str]:
        """A list of words; empty if absent."""
        value = self.tree.get(name) or []
        if not isinstance(value, list) or not all(isinstance(word, str) for word in value):
            self.mistakes.append(Mistake(path=name, text="is no list of words"))
            return []
        return value

    def share(self, name: str) -> float:
        """A probability; 0 if absent."""
        value = self.tree.get(name) or 0.0
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
            self.mistakes.append(
                Mistake(path=name, text=f"found {json.dumps(value)[:40]}, wanted a number from 0 to 1")
            )
            return 0.0
        return float(value)

    def sequence(self) -> int:
        """Tokens of the original context, before it was stretched.

        The configuration may state the original context.
        """
        scaling = self.tree.get("rope_scaling") or self.tree.get("rope_parameters")
        stretched = scaling.get("original_max_position_embeddings") if isinstance(scaling, dict) else None
        if isinstance(stretched, int) and not isinstance(stretched, bool) and 0 < stretched <= _MOST:
            return stretched
        return self.whole(*_CONTEXTS, default=2048)

    @property
    def has_stated_sequence(self) -> bool:
        """Whether the configuration says for how many tokens the model was made."""
        scaling = self.tree.get("rope_scaling") or self.tree.get("rope_parameters")
        stretched = scaling.get("original_max_position_embeddings") if isinstance(scaling, dict) else None
        return stretched is not None or any(self.tree.get(name) is not None for name in _CONTEXTS)


def _body(keys: _Keys, *, is_gated: bool, is_tied: bool) -> dict[str, Any]:
    """Common keys of all architectures, under the usual names."""
    hidden = keys.whole("hidden_size", "n_embd")
    heads = keys.whole("num_attention_heads", "n_head")
    is_sound = not keys.mistakes
    key_value_heads = keys.whole("num_key_value_heads", default=heads)
    head_dim = keys.whole("head_dim", default=max(hidden // heads, 1))
    if is_sound and keys.tree.get("head_dim") is None and hidden % heads:
        text = f"found {heads}, wanted a divisor of the hidden size {hidden:,}, or head_dim beside it"
        keys.mistakes.append(Mistake(path="num_attention_heads", text=text))
    if is_sound and heads % key_value_heads:
        text = f"found {key_value_heads}, wanted a divisor of the {plural(heads, 'head')}"
        keys.mistakes.append(Mistake(path="num_key_value_heads", text=text))
    return {
        "layers": keys.whole("num_hidden_layers", "n_layer", high=_MOST_LAYERS),
        "hidden": hidden,
        "heads": heads,
        "key_value_heads": key_value_heads,
        "head_dim": head_dim,
        "vocabulary": keys.whole("vocab_size"),
        "sequence": keys.sequence(),
        "has_stated_sequence": keys.has_stated_sequence,
        "is_gated": is_gated,
        "has_tied_embeddings": keys.flag("tie_word_embeddings", default=is_tied),
        "has_dropout": any(keys.share(name) > 0 for name in ("resid_pdrop", "hidden_dropout", "attention_dropout")),
    }


def _llama(keys: _Keys) -> dict[str, Any]:
    return {**_body(keys, is_gated=True, is_tied=False), "ffn": keys.whole("intermediate_size")}


def _gpt2(keys: _Keys) -> dict[str, Any]:
    body = _body(keys, is_gated=False, is_tied=True)
    return {**body, "ffn": keys.whole("n_inner", "intermediate_size", default=4 * body["hidden"])}


def _plain_mlp(keys: _Keys) -> dict[str, Any]:
    """Attention and an MLP of two matrices in every layer."""
    return {**_body(keys, is_gated=False, is_tied=False), "ffn": keys.whole("intermediate_size")}


def _nemotron(keys: _Keys) -> dict[str, Any]:
    return {**_plain_mlp(keys), "has_squared_relu": _squares(keys, "hidden_act")}


def _squares(keys: _Keys, name: str) -> bool:
    """Whether the activation under a name is the squared ReLU, as in all models of Nemotron's authors."""
    activation = keys.tree.get(name)
    return activation is None or activation == "relu2"


def _mistral(keys: _Keys) -> dict[str, Any]:
    body = _llama(keys)
    return {**body, **_all_windows(keys, body["layers"])}


def _all_windows(keys: _Keys, layers: int) -> dict[str, Any]:
    window = keys.whole("sliding_window", default=0, low=0)
    return {"attention_window": window, "window_layers": layers if window else 0}


def _phi3(keys: _Keys) -> dict[str, Any]:
    """As Mistral, with merged matrices of the same parameters.

    One matrix has query, key and value, one has gate and up.
    """
    body = _mistral(keys)
    stretched = keys.whole("original_max_position_embeddings", default=body["sequence"])
    return {**body, "sequence": min(body["sequence"], stretched)}


def _gemma3(keys: _Keys) -> dict[str, Any]:
    """Windows in all layers except each sixth.

    ``query_pre_attn_scalar`` scales scores and changes no shape.
    """
    filled = {key: value for key, value in keys.tree.items() if value is not None}
    keys.tree = {**_GEMMA3, **filled}
    body = {**_body(keys, is_gated=True, is_tied=True), "ffn": keys.whole("intermediate_size")}
    kinds = _layer_types(keys, body["layers"])
    pattern = keys.whole("sliding_window_pattern", "_sliding_window_pattern", default=6)
    windows = kinds.count("sliding_attention") if kinds else body["layers"] - body["layers"] // pattern
    window = keys.whole("sliding_window")
    return {**body, "attention_window": window if windows else 0, "window_layers": windows}


def _layer_types(keys: _Keys, layers: int) -> list[str]:
    """Kinds of layers, if the file lists them."""
    name = next((name for name in _LAYER_LISTS if keys.tree.get(name)), _LAYER_LISTS[0])
    kinds = keys.texts(name)
    if kinds and len(kinds) != layers:
        text = f"names {plural(len(kinds), 'layer')}, wanted {layers}, as num_hidden_layers says"
        keys.mistakes.append(Mistake(path=name, text=text))
    return [_FULL if kind == "attention" else kind for kind in kinds]


def _mixtral(keys: _Keys) -> dict[str, Any]:
    body = _body(keys, is_gated=True, is_tied=False)
    experts = _experts(keys, ("num_local_experts",), ("intermediate_size",))
    return {**body, "ffn": 0, **experts, "expert_layers": body["layers"], **_all_windows(keys, body["layers"])}


def _grok(keys: _Keys) -> dict[str, Any]:
    """Experts in every layer.

    Published files bound scores of attention and scale embeddings, which changes no shape.
    """
    body = _body(keys, is_gated=True, is_tied=True)
    experts = _experts(keys, ("num_experts", "num_local_experts"), ("moe_intermediate_size", "intermediate_size"))
    return {**body, "ffn": 0, **experts, "expert_layers": body["layers"]}


def _experts(keys: _Keys, number: tuple[str, ...], width: tuple[str, ...]) -> dict[str, Any]:
    experts = keys.whole(*number)
    each = keys.whole("num_experts_per_tok", "experts_per_token")
    if each > experts:
        text = f"found {each}, wanted at most the {plural(experts, 'expert')}"
        keys.mistakes.append(Mistake(path="num_experts_per_tok", text=text))
    return {"experts": experts, "experts_per_token": each, "expert_ffn": keys.whole(*width)}


def _qwen(keys: _Keys) -> dict[str, Any]:
    body = _llama(keys)
    if not keys.flag("use_sliding_window", default=False):
        return body
    window = keys.whole("sliding_window")
    full = min(keys.whole("max_window_layers", default=0, low=0), body["layers"])
    return {**body, "attention_window": window, "window_layers": body["layers"] - full}


def _qwen_experts(keys: _Keys) -> dict[str, Any]:
    body = _body(keys, is_gated=True, is_tied=False)
    layers, step = body["layers"], keys.whole("decoder_sparse_step", default=1)
    dense = keys.tree.get("mlp_only_layers") or []
    if not isinstance(dense, list) or not all(isinstance(layer, int) for layer in dense):
        keys.mistakes.append(Mistake(path="mlp_only_layers", text="is no list of whole numbers"))
        dense = []
    mixtures = sum((layer + 1) % step == 0 and layer not in dense for layer in range(layers))
    return {
        **body,
        "ffn": keys.whole("intermediate_size") if mixtures < layers else 0,
        **_experts(keys, ("num_experts",), ("moe_intermediate_size",)),
        "shared_ffn": keys.whole("shared_expert_intermediate_size", default=0, low=0),
        "expert_layers": mixtures,
        "has_spread_experts": step > 1 and 0 < mixtures < layers,
    }


def _qwen3(keys: _Keys) -> dict[str, Any]:
    return {**_qwen(keys), "has_query_key_norm": True}  # arXiv:2505.09388, section 2


def _qwen3_experts(keys: _Keys) -> dict[str, Any]:
    return {**_qwen_experts(keys), "has_query_key_norm": True}


def _qwen_delta(keys: _Keys) -> dict[str, Any]:
    found = _qwen3_experts(keys)
    interval, layers = keys.whole("full_attention_interval", default=4), found["layers"]
    kinds = _layer_types(keys, layers)
    return {
        **found,
        "delta": DeltaNet(
            key_heads=keys.whole("linear_num_key_heads", default=16),
            value_heads=keys.whole("linear_num_value_heads", default=32),
            key_dim=keys.whole("linear_key_head_dim", default=128),
            value_dim=keys.whole("linear_value_head_dim", default=128),
            kernel=keys.whole("linear_conv_kernel_dim", default=4),
        ),
        "delta_layers": kinds.count("linear_attention") if kinds else layers - layers // interval,
        "has_gated_attention": keys.flag("attn_output_gate", default=True),
        "prediction_layers": keys.whole("mtp_num_hidden_layers", default=0, low=0),
    }


def _deepseek(keys: _Keys) -> dict[str, Any]:
    body = _body(keys, is_gated=True, is_tied=False)
    latent = {
        "query_rank": keys.whole("q_lora_rank", default=0, low=0),
        "key_value_rank": keys.whole("kv_lora_rank"),
        "no_position_dim": keys.whole("qk_nope_head_dim"),
        "rope_dim": keys.whole("qk_rope_head_dim", low=0),
        "value_dim": keys.whole("v_head_dim"),
    }
    experts = _experts(keys, ("n_routed_experts",), ("moe_intermediate_size",))
    dense = min(keys.whole("first_k_dense_replace", default=0, low=0), body["layers"])
    return {
        **body,
        "head_dim": latent["value_dim"],
        "ffn": keys.whole("intermediate_size") if dense else 0,
        **experts,
        "shared_ffn": keys.whole("n_shared_experts", default=0, low=0) * experts["expert_ffn"],
        "expert_layers": body["layers"] - dense,
        "latent_attention": LatentAttention(**latent),
        "prediction_layers": keys.whole("num_nextn_predict_layers", default=0, low=0),
    }


def _glm4_experts(keys: _Keys) -> dict[str, Any]:
    """GLM-4.5 to 4.7: the first layers dense, shared experts, modules that predict further tokens.

    Source: huggingface/transformers, src/transformers/models/glm4_moe/configuration_glm4_moe.py.
    """
    body = _body(keys, is_gated=True, is_tied=False)
    experts = _experts(keys, ("n_routed_experts",), ("moe_intermediate_size",))
    dense = min(keys.whole("first_k_dense_replace", default=1, low=0), body["layers"])
    return {
        **body,
        "ffn": keys.whole("intermediate_size") if dense else 0,
        **experts,
        "shared_ffn": keys.whole("n_shared_experts", default=0, low=0) * experts["expert_ffn"],
        "expert_layers": body["layers"] - dense,
        "has_query_key_norm": keys.flag("use_qk_norm", default=False),
        "prediction_layers": keys.whole("num_nextn_predict_layers", default=0, low=0),
    }


def _llama4(keys: _Keys) -> dict[str, Any]:
    """Llama 4: mixtures with one shared expert, each layer or each second, and attention in chunks of a sequence.

    Layers without rotary embeddings attend to the whole sequence, the others to their chunk.
    Source: huggingface/transformers, src/transformers/models/llama4/configuration_llama4.py.
    """
    body = _body(keys, is_gated=True, is_tied=False)
    layers = body["layers"]
    experts = _experts(keys, ("num_local_experts",), ("intermediate_size",))
    step = keys.whole("interleave_moe_layer_step", default=1)
    listed = keys.tree.get("moe_layers")
    mixtures = len(listed) if isinstance(listed, list) and listed else layers // step
    ropes = keys.tree.get("no_rope_layers")
    interval = keys.whole("no_rope_layer_interval", default=4)
    if isinstance(ropes, list) and len(ropes) == layers:  # 1: has rotary embeddings, and so chunks
        chunked = sum(bool(has_rotary) for has_rotary in ropes)
    else:
        chunked = layers - layers // interval
    chunk = keys.whole("attention_chunk_size", default=8192)
    return {
        **body,
        "ffn": keys.whole("intermediate_size_mlp", "intermediate_size") if mixtures < layers else 0,
        **experts,
        "shared_ffn": experts["expert_ffn"],
        "expert_layers": min(mixtures, layers),
        "has_spread_experts": 0 < mixtures < layers,
        "has_query_key_norm": keys.flag("use_qk_norm", default=True),
        "attention_window": chunk if chunked else 0,
        "window_layers": chunked,
        "has_chunked_windows": chunked > 0,
    }


def _gpt_oss(keys: _Keys) -> dict[str, Any]:
    body = _body(keys, is_gated=True, is_tied=False)
    kinds = _layer_types(keys, body["layers"])
    windows = kinds.count("sliding_attention") if kinds else body["layers"] // 2
    return {
        **body,
        "ffn": 0,
        **_experts(keys, ("num_local_experts", "num_experts"), ("intermediate_size",)),
        "expert_layers": body["layers"],
        "attention_window": keys.whole("sliding_window", default=128),
        "window_layers": windows,
    }


def _hybrid(keys: _Keys) -> dict[str, Any]:
    body = _body(keys, is_gated=False, is_tied=False)
    pattern = keys.tree.get("hybrid_override_pattern")
    if pattern is None and keys.tree.get("layers_block_type"):
        pattern = _pattern_of_blocks(keys, body["layers"])
    elif not isinstance(pattern, str) or set(pattern) - set("ME*-") or len(pattern) != body["layers"]:
        text = f"wanted a letter of M, E, * and - for each of the {plural(body['layers'], 'layer')}"
        keys.mistakes.append(Mistake(path="hybrid_override_pattern", text=text))
        pattern = ""
    spaces = {
        "heads": keys.whole("mamba_num_heads"),
        "head_dim": keys.whole("mamba_head_dim"),
        "state": keys.whole("ssm_state_size"),
        "groups": keys.whole("n_groups"),
        "kernel": keys.whole("conv_kernel", default=4),
    }
    found = {
        **body,
        "has_squared_relu": _squares(keys, "mlp_hidden_act"),
        "ffn": keys.whole("intermediate_size") if "-" in pattern else 0,
        "prediction_layers": keys.whole("num_nextn_predict_layers", default=0, low=0),
        "state_space": StateSpace(**spaces),
        "state_space_layers": pattern.count("M"),
        "attention_layers": pattern.count("*"),
    }
    if "E" not in pattern:
        return found
    predictions = keys.whole("num_nextn_predict_layers", default=0, low=0)
    blocks = keys.tree.get("mtp_layers_block_type")
    words = blocks if isinstance(blocks, list) else []
    usual = "".join(_BLOCKS.get(word, "?") if isinstance(word, str) else "?" for word in words) or PREDICTION_PATTERN
    inside = keys.tree.get("mtp_hybrid_override_pattern", usual)
    if predictions and inside != PREDICTION_PATTERN:
        text = (
            f"found {inside!r}, wanted {PREDICTION_PATTERN!r}: a module of attention and experts, the only known kind"
        )
        keys.mistakes.append(Mistake(path="mtp_hybrid_override_pattern", text=text))
    found |= {
        "prediction_layers": predictions,
        "has_shared_predictions": keys.flag("mtp_use_repeated_layer", default=False),
    }
    return {
        **found,
        **_experts(keys, ("n_routed_experts",), ("moe_intermediate_size",)),
        "shared_ffn": keys.whole("moe_shared_expert_intermediate_size", default=0, low=0),
        "expert_hidden": keys.whole("moe_latent_size", default=0, low=0),
        "expert_layers": pattern.count("E"),
    }


def _pattern_of_blocks(keys: _Keys, layers: int) -> str:
    """Letters of a hybrid's layers, from their names."""
    words = keys.texts("layers_block_type")
    wrong = next((word for word in words if word not in _BLOCKS), None)
    if wrong is not None:
        text = f"found '{wrong[:_LONGEST_NAME]}', wanted {', '.join(_BLOCKS)}"
        keys.mistakes.append(Mistake(path="layers_block_type", text=text, fix=nearest(wrong, _BLOCKS)))
    elif words and len(words) != layers:
        text = f"names {plural(len(words), 'layer')}, wanted {layers}, as num_hidden_layers says"
        keys.mistakes.append(Mistake(path="layers_block_type", text=text))
    return "".join(_BLOCKS.get(word, "") for word in words)


def _refused(file: Path, text: str) -> ConfigError:
    return ConfigError(str(file), [Mistake(path="file", text=text)])


ARCHITECTURES: Final[Mapping[str, Callable[[_Keys], dict[str, Any]]]] = {
    "llama": _llama,
    "mistral": _mistral,
    "mixtral": _mixtral,
    "phi3": _phi3,
    "gemma3_text": _gemma3,
    "qwen2": _qwen,
    "qwen3": _qwen3,
    "qwen2_moe": _qwen_experts,
    "qwen3_moe": _qwen3_experts,
    "qwen3_next": _qwen_delta,
    "qwen3_5_moe_text": _qwen_delta,
    "deepseek_v2": _deepseek,
    "deepseek_v3": _deepseek,
    "glm4_moe": _glm4_experts,
    "llama4_text": _llama4,
    "gpt_oss": _gpt_oss,
    "gpt2": _gpt2,
    "gpt_neox": _plain_mlp,
    "nemotron": _nemotron,
    "nemotron_h": _hybrid,
    "grok-1": _grok,
}
