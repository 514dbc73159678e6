"""The catalogue of models: records of `weftwork.spec.training.Model` by name, each figure with its source.

Left out although their configuration is public: DeepSeek-V4, whose compressed attention and hyper-connections are no
layer of that record.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from weftwork.base.catalogue import Catalogue
from weftwork.base.caveat import Caveat
from weftwork.spec.training import LatentAttention, Model, StateSpace

__all__ = ["MODELS", "model", "model_caveats"]

MODELS: Final = Catalogue("model", Path(__file__).with_name("models.toml"))

_STATE: Final = {
    "state_heads": "heads",
    "state_head_dim": "head_dim",
    "state_size": "state",
    "state_groups": "groups",
    "state_kernel": "kernel",
}


def model(name: str, *, path: str = "training.model") -> Model:
    """The record of a model.

    Parameters
    ----------
    name : of the catalogue
    path : of the key that holds the name, for the error

    Raises
    ------
    ConfigError : there is no such model; names the nearest

    Examples
    --------
    >>> model("llama-3-70b").layers, model("deepseek-v3").experts_per_token
    (80, 8)
    """
    row = MODELS.find(name, path=path)
    values = {key: figure.value for key, figure in row.figures.items()}
    latent = {key: values[key] for key in LatentAttention.model_fields if key in values}
    state = {field: values[key] for key, field in _STATE.items() if key in values}
    return Model(
        name=name,
        latent_attention=LatentAttention(**latent) if latent else None,
        state_space=StateSpace(**state) if state else None,
        **{key: value for key, value in values.items() if key in Model.model_fields},
    )


def model_caveats(name: str) -> dict[str, Caveat]:
    """What is unverified or chosen about the shapes of a model, by ``name.key``; empty for an unknown name."""
    row = MODELS.get(name)
    if row is None:
        return {}
    used = {*Model.model_fields, *LatentAttention.model_fields, *_STATE}
    return {key: text for key, text in row.caveats().items() if key.removeprefix(f"{name}.") in used}
