"""The keys of the section ``sweep``, with documentation and JSON Schema.

Each key has a row of documentation and a piece of the schema. `weftwork sweep` alone reads the section, and judges what
is in it (`weftwork.study.sweep.definition`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from weftwork.base.errors import ConfigError, Mistake
from weftwork.base.nearest import nearest

__all__ = ["SWEEP_KEYS", "SWEEP_ROWS", "SWEEP_SCHEMA", "sweep_explanation", "sweep_facts"]


@dataclass(frozen=True, kw_only=True, slots=True)
class SweepKey:
    """A key of the section.

    It has its meaning, its allowed values, its default, and the same as JSON Schema.
    """

    text: str
    allowed: str
    default: str
    schema: Mapping[str, Any]


_VALUES: Final = {"type": "array", "minItems": 1}
_WHOLE: Final = {"type": "integer", "minimum": 1}
_NAME: Final = {"type": "string", "minLength": 1}
_BY_KEY: Final = {"type": "object", "minProperties": 1}
_DRAWN: Final = {
    "anyOf": [
        _VALUES,
        {
            "type": "object",
            "properties": {"low": {"type": "number"}, "high": {"type": "number"}, "scale": {"enum": ["linear", "log"]}},
            "required": ["low", "high"],
            "additionalProperties": False,
        },
    ]
}

SWEEP_TEXT: Final = (
    "Keys that `weftwork sweep` varies over many runs of this file; every other command refuses the section."
)
SWEEP_ROWS: Final[Mapping[str, SweepKey]] = {
    "grid": SweepKey(
        text="Every combination of the values of some keys.",
        allowed="KEY: [VALUE, ...] for each key; --set KEY=VALUE,VALUE replaces or adds one",
        default="none",
        schema={**_BY_KEY, "additionalProperties": {**_VALUES, "uniqueItems": True}},
    ),
    "zip": SweepKey(
        text="Keys that change together: the first value of each, then the second.",
        allowed="KEY: [VALUE, ...] for each key, lists of one length",
        default="none",
        schema={**_BY_KEY, "additionalProperties": _VALUES},
    ),
    "list": SweepKey(
        text="Points written out.",
        allowed="a list of {KEY: VALUE, ...}, all with the same keys",
        default="none",
        schema={"type": "array", "minItems": 1, "items": _BY_KEY},
    ),
    "random": SweepKey(
        text="Points drawn at random; each draw follows from the seed and the key alone.",
        allowed="samples, seed (by default 1), keys: for each {low, high, scale: linear or log} or a list of choices",
        default="none",
        schema={
            "type": "object",
            "properties": {
                "samples": _WHOLE,
                "seed": {"type": "integer", "minimum": 0},
                "keys": {**_BY_KEY, "additionalProperties": _DRAWN},
            },
            "required": ["samples", "keys"],
            "additionalProperties": False,
        },
    ),
    "seeds": SweepKey(
        text="Runs of each point, with consecutive seeds; --seeds goes before it.",
        allowed="a whole number from 1",
        default="1",
        schema=_WHOLE,
    ),
    "by": SweepKey(
        text="Number of the summary that decides; --by goes before it.",
        allowed="a number that the runs have, such as fct_p99_ps",
        default="the first of iteration_ps, collective_duration_ps and completion_ps that the runs have",
        schema=_NAME,
    ),
    "within": SweepKey(
        text="A key with a winner for each of its values, such as a model; --within overrides it.",
        allowed="a key that the sweep varies, such as training.model",
        default="none: one winner",
        schema=_NAME,
    ),
}
SWEEP_KEYS: Final = tuple(SWEEP_ROWS)
SWEEP_SCHEMA: Final[Mapping[str, Any]] = {
    "description": SWEEP_TEXT,
    "anyOf": [
        {
            "type": "object",
            "properties": {key: {"description": one.text, **one.schema} for key, one in SWEEP_ROWS.items()},
            "additionalProperties": False,
        },
        {"type": "null"},
    ],
}


def sweep_facts(path: str) -> dict[str, Any]:
    """Return the facts about the section or one key.

    `weftwork explain --json` prints them.

    Raises
    ------
    ConfigError : there is no such key; it names the nearest
    """
    key = path.removeprefix("sweep").removeprefix(".")
    if key and key not in SWEEP_ROWS:
        near = nearest(key, SWEEP_KEYS)
        text = f"no such key of the section; wanted {', '.join(SWEEP_KEYS)}"
        raise ConfigError("weftwork explain", [Mistake(path=path, text=text, fix=near and f"sweep.{near}")])
    one = SWEEP_ROWS.get(key)
    return {
        "key": path,
        "text": SWEEP_TEXT if one is None else one.text,
        "unit": None,
        "default": "none" if one is None else one.default,
        "allowed": "a mapping" if one is None else one.allowed,
        "only_with": "weftwork sweep",
        "source": None,
        "keys": [] if key else [f"sweep.{name}" for name in SWEEP_KEYS],
    }


def sweep_explanation(path: str) -> str:
    """Explain the section, or one key, in a few lines.

    Raises
    ------
    ConfigError : there is no such key
    """
    told = sweep_facts(path)
    lines = [path, f"  {told['text']}"]
    if not told["keys"]:
        return "\n".join([*lines, *(f"  {label:<9} {told[label]}" for label in ("default", "allowed"))])
    width = max(map(len, told["keys"]))
    return "\n".join([*lines, *(f"  {inner:<{width}}  {sweep_facts(inner)['text']}" for inner in told["keys"])])
