"""The text part of a configuration, and the names that other models give to a known architecture.

A model that also takes images or sound keeps the sizes of its language model in a part of its own. That part is a
whole model for the training of text; the encoders are left out, and the name of the model says so.
Source: huggingface/transformers, src/transformers/models/*/configuration_*.py; OpenGVLab/InternVL,
configuration_internvl_chat.py, for ``llm_config``; deepseek-ai/DeepSeek-VL2, for ``language_config``;
moonshotai/Kimi-K2-Instruct, config.json: an architecture of DeepseekV3ForCausalLM.
Leaves out: what an architecture means (`weftwork.workload.models.huggingface`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final

__all__ = ["ALIASES", "FOREIGN", "TextPart", "text_part"]

# Model types whose shapes and keys are those of another one.
ALIASES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "kimi_k2": "deepseek_v3",
        "qwen2_vl": "qwen2",
        "qwen2_vl_text": "qwen2",
        "qwen2_5_vl": "qwen2",
        "qwen2_5_vl_text": "qwen2",
        "qwen3_vl_text": "qwen3",
        "qwen3_vl_moe_text": "qwen3_moe",
        "ministral": "mistral",
    }
)
# Model types with layers that are no layer of `weftwork.spec.training.Model`, and what they have.
FOREIGN: Final[Mapping[str, str]] = MappingProxyType(
    {
        "deepseek_v32": "sparse attention, whose indexer chooses the tokens that a token attends to",
        "glm_moe_dsa": "sparse attention, whose indexer chooses the tokens that a token attends to",
        "mllama": "attention to images inside the language model",
        "mllama_text_model": "attention to images inside the language model",
        "jamba": "state spaces of Mamba-1",
        "bamba": "state spaces and attention with other keys",
        "zamba2": "layers that share their weights",
        "falcon_h1": "state spaces and attention side by side in a layer",
        "minimax": "lightning attention",
        "rwkv": "no attention, and no state space of Mamba-2",
        "t5": "an encoder beside its decoder",
        "whisper": "an encoder beside its decoder",
        "bert": "an encoder, which does not predict the next token",
    }
)
_PARTS: Final = ("text_config", "llm_config", "language_config", "thinker_config")
# Keys of the whole that count for its text part where the part does not have them.
_OF_THE_WHOLE: Final = ("tie_word_embeddings", "vocab_size")
# What a text part without a name of its own is: configuration_llava.py.
_USUAL: Final = {"llava": "llama", "llava_next": "llama", "vipllava": "llama", "video_llava": "llama"}
_DEEPEST: Final = 3  # chosen: Qwen2.5-Omni has its sizes two parts down


@dataclass(frozen=True, kw_only=True, slots=True)
class TextPart:
    """Configuration of a language model.

    Attributes
    ----------
    tree : its keys
    place : dotted name of the part, empty where the whole file is one
    """

    tree: Mapping[str, Any]
    place: str = ""

    def path(self, key: str) -> str:
        """Dotted name of a key in the file."""
        return f"{self.place}.{key}" if self.place else key


def text_part(tree: Mapping[str, Any]) -> TextPart:
    """The part of a configuration that describes a language model.

    Examples
    --------
    >>> whole = {"model_type": "qwen3_vl", "text_config": {"model_type": "qwen3_vl_text"}, "vision_config": {}}
    >>> text_part(whole).place, text_part({"model_type": "llama"}).place
    ('text_config', '')
    """
    part = TextPart(tree=tree)
    for _ in range(_DEEPEST):
        name = next((name for name in _PARTS if isinstance(part.tree.get(name), Mapping)), None)
        if name is None:
            return part
        inner = dict(part.tree[name])
        for key in _OF_THE_WHOLE:
            if inner.get(key) is None and part.tree.get(key) is not None:
                inner[key] = part.tree[key]
        kind = part.tree.get("model_type")
        if inner.get("model_type") is None and isinstance(kind, str) and kind in _USUAL:
            inner["model_type"] = _USUAL[kind]
        part = TextPart(tree=inner, place=part.path(name))
    return part
