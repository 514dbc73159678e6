"""The text of a calibration file, which `weftwork.spec.calibration` reads.

Leaves out: how constants are found.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from weftwork.spec.calibration import CONSTANTS, VERSION

__all__ = ["calibration_text"]

_DIGITS = 6  # significant ones; nobody fits more


def calibration_text(
    *,
    values: Mapping[str, float],
    fitted_on: Mapping[str, Any],
    intervals: Mapping[str, tuple[float, float]] | None = None,
    draws: Sequence[Mapping[str, float]] = (),
    quality: Mapping[str, float] | None = None,
    refused: Mapping[str, str] | None = None,
    written: Mapping[str, str] | None = None,
    head: Sequence[str] = (),
) -> str:
    """Write constants as TOML.

    Parameters
    ----------
    values, intervals, draws : by name
    fitted_on : ``file`` and ``rows``, and what else is known of them
    quality : mean absolute errors, as shares
    refused : constants that were not fitted, with reasons
    written : by what, and when
    head : comments above all
    """
    lines = [*(f"# {one}".rstrip() for one in head), f"version = {VERSION}"]
    lines += _table("written", written or {})
    lines += _table("fitted_on", fitted_on)
    lines += _table("quality", quality or {})
    for name, value in values.items():
        known = CONSTANTS[name]
        low, high = (intervals or {}).get(name, (value, value))
        lines += ["", f"[constants.{name}]  # {known.text}", f"value = {_number(value)}"]
        if intervals:
            lines += [f"low = {_number(low)}  # 5 % of the bootstrap", f"high = {_number(high)}  # 95 %"]
    lines += _table("refused", refused or {})
    if draws:
        lines += ["", "[draws]  # joint values of resamples of the rows; a run makes its interval from them"]
        lines += [f"{name} = [{', '.join(_number(draw[name]) for draw in draws)}]" for name in values]
    return "\n".join(lines) + "\n"


def _table(name: str, entries: Mapping[str, Any]) -> list[str]:
    return ["", f"[{name}]", *(f"{key} = {_value(value)}" for key, value in entries.items())] if entries else []


def _value(value: Any) -> str:  # noqa: ANN401 - text or a number
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).replace(
            "\x7f", "\\u007f"
        )  # JSON's strings are TOML's basic strings
    return str(value) if isinstance(value, int) else _number(value)


def _number(value: float) -> str:
    """A number with few digits, as TOML writes it.

    A number that is not whole has a decimal point.
    """
    text = f"{value:.{_DIGITS}g}"
    return text if "." in text or "e" in text else f"{text}.0"
