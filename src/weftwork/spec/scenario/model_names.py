"""Names of models as their authors and repositories write them, and the name of the catalogue that is meant.

``meta-llama/Llama-3.1-8B-Instruct`` has the shapes of ``llama-3-8b``: what a name says beside family and size, such as
the kind of fine-tuning, changes no shape.
Source: names of repositories of Hugging Face; Grattafiori et al., arXiv:2407.21783, table 3: Llama 3.1 has the shapes
of Llama 3.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from weftwork.base.nearest import nearest

__all__ = ["meant_model", "nearest_model"]

_BEFORE: Final = re.compile(r"^(meta-|nvidia-|openai-|deepseek-ai-)(?=[a-z])")
_BEHIND: Final = re.compile(
    r"[-_.](instruct|chat|base|hf|it|thinking|nextn|0[0-9]{3}|[0-9]{4}|v[0-9]\.[0-9]|fp8|fp4|bf16|nvfp4|gguf|awq|gptq)$"
)
_GENERATION: Final = re.compile(r"^(llama-?3)\.[0-3](?=-)")  # 3.1 and 3.3 have the shapes of 3
_LONGEST: Final = 200  # chosen: no name of a repository is longer


def nearest_model(text: str, known: Iterable[str]) -> str | None:
    """The model that a name means, or the nearest name; None if none is near.

    Examples
    --------
    >>> nearest_model("Lama-3-8b", ["llama-3-8b", "kimi-k2"])
    'llama-3-8b'
    """
    names = list(known)
    meant = meant_model(text, names)
    return meant if meant is not None else nearest(_plain(text), names)


def meant_model(text: str, known: Iterable[str]) -> str | None:
    """The model that a name means; None if it means none of them.

    Examples
    --------
    >>> known = ["llama-3-8b", "llama-3-70b", "kimi-k2", "deepseek-v3", "mixtral-8x7b"]
    >>> names = ("meta-llama/Llama-3.1-70B-Instruct", "Llama3-8B", "Kimi-K2-Instruct-0905", "Llama-3.2-3B")
    >>> [meant_model(name, known) for name in names]
    ['llama-3-70b', 'llama-3-8b', 'kimi-k2', None]
    """
    return {_squeezed(name): name for name in known}.get(_squeezed(_plain(text)))


def _plain(text: str) -> str:
    """Family and size of a model, without its author and what was done with its weights."""
    plain = text[-_LONGEST:].rstrip("/").rpartition("/")[2].lower().replace("_", "-").replace(" ", "-")
    plain = _BEFORE.sub("", plain)
    while (shorter := _BEHIND.sub("", plain)) != plain:
        plain = shorter
    return _GENERATION.sub(r"\1", plain)


def _squeezed(name: str) -> str:
    return re.sub(r"[^a-z0-9.]", "", name)
