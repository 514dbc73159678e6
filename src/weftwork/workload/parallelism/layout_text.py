"""A manual pipeline layout in the syntax of Megatron-LM.

For example ``Et*4|(t*4|)*14tmL``. ``E`` is the embedding, ``t`` a layer, ``m`` a module that predicts a further token,
``L`` the loss head; ``|`` ends a part of the pipeline. ``x*n`` repeats a letter or an end and ``(...)*n`` a group. Part
``c p + s`` is virtual stage c of stage s.
Source: NVIDIA/Megatron-LM, megatron/core/transformer/pipeline_parallel_layer_layout.py.
Leaves out: letters of its own for kinds of layers; the model says which layer is what.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from weftwork.base.errors import ConfigError, Mistake
from weftwork.base.grammar import plural

if TYPE_CHECKING:
    from weftwork.spec.training import Model

__all__ = ["layout_mistakes", "layout_parts"]

_KEY: Final = "training.layout"
_GROUP: Final = re.compile(r"\(([^()]*)\)(?:\*(\d+))?")
_REPEATED: Final = re.compile(r"([EtmL|])\*(\d+)")
_MOST: Final = 100_000  # letters; no model has as many layers
_WANTED: Final = "wanted letters E, t, m and L, | between parts, *n to repeat, such as Et*4|(t*4|)*14tmL"


def layout_parts(text: str) -> tuple[str, ...]:
    """Letters of each part.

    Parameters
    ----------
    text : the layout

    Raises
    ------
    ConfigError : it cannot be read

    Examples
    --------
    >>> layout_parts("Et*2|(t|)*2tmL")
    ('Ett', 't', 't', 'tmL')
    """
    found = re.sub(r"[\s,]", "", text)
    while _GROUP.search(found):
        found = _GROUP.sub(_repeat, found)
    found = _REPEATED.sub(_repeat, found)
    if not found or set(found) - set("EtmL|"):
        raise ConfigError("training", [Mistake(path=_KEY, text=f"found '{text}', {_WANTED}")])
    return tuple(found.split("|"))


def layout_mistakes(text: str, model: Model, parts: int) -> list[str]:
    """Mistakes of a layout for a model.

    Parameters
    ----------
    text : the layout, which can be read
    model : whose layers it lays out
    parts : stages times virtual stages

    Returns
    -------
    a sentence for each mistake
    """
    found = layout_parts(text)
    letters = "".join(found)
    mistakes = []
    if len(found) != parts:
        mistakes.append(f"found {plural(len(found), 'part')}, wanted {parts}: pipeline x virtual_stages")
    counts = {"t": (model.layers, "layers"), "m": (model.prediction_layers, "prediction layers")}
    for letter, (wanted, words) in counts.items():
        if letters.count(letter) != wanted:
            mistakes.append(f"found {letters.count(letter)} {words} ({letter}), wanted {wanted} of {model.name}")
    if letters.count("E") != 1 or not letters.startswith("E"):
        mistakes.append("wanted one embedding (E), in front")
    if letters.count("L") != 1 or not letters.endswith("L"):
        mistakes.append("wanted one loss head (L), at the end")
    if "m" in letters and "t" in letters[letters.index("m") :]:
        mistakes.append("found a prediction layer (m) in front of a layer (t), wanted those behind the last layer")
    return mistakes


def _repeat(match: re.Match[str]) -> str:
    times = int(match[2] or 1)
    if times * len(match[1]) > _MOST:
        raise ConfigError(
            "training", [Mistake(path=_KEY, text=f"found '*{times}', which repeats too often; {_WANTED}")]
        )
    return match[1] * times
