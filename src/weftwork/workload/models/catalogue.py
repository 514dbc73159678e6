"""The catalogue of models by name, each figure with its source.

The records are `weftwork.spec.training.Model`. Models of published recipes that have layers which are none of that
record are in a catalogue of their own, `ABSENT`, with what they have.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Final

from weftwork.base.catalogue import Catalogue
from weftwork.base.caveat import Caveat
from weftwork.base.errors import ConfigError, Mistake
from weftwork.spec.training import DeltaNet, LatentAttention, Model, StateSpace

__all__ = ["ABSENT", "MODELS", "AbsentModel", "AbsentModels", "model", "model_caveats"]


@dataclass(frozen=True, kw_only=True, slots=True)
class AbsentModel:
    """A well-known model that Weftwork does not have.

    Attributes
    ----------
    name, title : of the model
    missing : what it has that is no layer of `weftwork.spec.training.Model`
    source : where that can be seen
    nearest : the model of the catalogue that is all the rest of it, if any
    """

    name: str
    title: str
    missing: str
    source: str
    nearest: str | None = None


class AbsentModels(Mapping[str, AbsentModel]):
    """Absent models by name, read from ``path`` at first use."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @cached_property
    def _rows(self) -> Mapping[str, AbsentModel]:
        tables = tomllib.loads(self.path.read_text(encoding="utf-8"))
        return {name: AbsentModel(name=name, **table) for name, table in tables.items()}

    def __getitem__(self, name: str) -> AbsentModel:
        return self._rows[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._rows)

    def __len__(self) -> int:
        return len(self._rows)


MODELS: Final = Catalogue("model", Path(__file__).with_name("models.toml"))
ABSENT: Final = AbsentModels(Path(__file__).with_name("absent.toml"))

_STATE: Final = {
    "state_heads": "heads",
    "state_head_dim": "head_dim",
    "state_size": "state",
    "state_groups": "groups",
    "state_kernel": "kernel",
}
_DELTA: Final = {
    "delta_key_heads": "key_heads",
    "delta_value_heads": "value_heads",
    "delta_key_dim": "key_dim",
    "delta_value_dim": "value_dim",
    "delta_kernel": "kernel",
}


def model(name: str, *, path: str = "training.model") -> Model:
    """The record of a model.

    Parameters
    ----------
    name : of the catalogue
    path : of the key that holds the name, for the error

    Raises
    ------
    ConfigError : there is no such model; names the nearest, and of one that is known to be absent what it has

    Examples
    --------
    >>> model("llama-3-70b").layers, model("deepseek-v3").experts_per_token
    (80, 8)
    """
    absent = ABSENT.get(name)
    if absent is not None:
        text = f"found '{name}', a model with features that Weftwork does not know: {absent.missing}"
        raise ConfigError(path, [Mistake(path=path, text=text, fix=absent.nearest)])
    row = MODELS.find(name, path=path)
    values = {key: figure.value for key, figure in row.figures.items()}
    latent = {key: values[key] for key in LatentAttention.model_fields if key in values}
    state = {field: values[key] for key, field in _STATE.items() if key in values}
    delta = {field: values[key] for key, field in _DELTA.items() if key in values}
    return Model(
        name=name,
        latent_attention=LatentAttention(**latent) if latent else None,
        state_space=StateSpace(**state) if state else None,
        delta=DeltaNet(**delta) if delta else None,
        **{key: value for key, value in values.items() if key in Model.model_fields},
    )


def model_caveats(name: str) -> dict[str, Caveat]:
    """Caveats of a model's shapes, by ``name.key``.

    They are unverified or chosen figures; empty for an unknown name.
    """
    row = MODELS.get(name)
    if row is None:
        return {}
    used = {*Model.model_fields, *LatentAttention.model_fields, *_STATE, *_DELTA}
    return {key: text for key, text in row.caveats().items() if key.removeprefix(f"{name}.") in used}
