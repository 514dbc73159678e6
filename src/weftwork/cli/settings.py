"""Values of options: ``--set KEY=VALUE``, keys of a scenario from the command line, shares and times."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from weftwork.base.clock import SECOND_PS
from weftwork.base.errors import ConfigError, Mistake
from weftwork.base.units import DURATION, UnitError, parse_quantity

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["overrides", "parse_seconds", "parse_share"]

_SHARE: Final = re.compile(r"(?P<number>[0-9]+(?:\.[0-9]*)?|\.[0-9]+)\s*(?P<percent>%?)")


def overrides(settings: Sequence[str] | None) -> dict[str, str]:
    """Split the texts of ``--set``; of a repeated key the last value counts.

    Raises
    ------
    ConfigError : a text without a key or without ``=``

    Examples
    --------
    >>> overrides(["transport.congestion_control=dcqcn", "engine.seed=2"])
    {'transport.congestion_control': 'dcqcn', 'engine.seed': '2'}
    """
    parts = [text.partition("=") for text in settings or ()]
    mistakes = [
        Mistake(path="--set", text=f"found '{key}{equals}{value}', wanted KEY=VALUE such as engine.seed=2")
        for key, equals, value in parts
        if not equals or not key.strip()
    ]
    if mistakes:
        raise ConfigError("command line", mistakes)
    return {key.strip(): value for key, _, value in parts}


def parse_share(text: str, option: str) -> float:
    """Read a share from 0 to below 1, as a number or in percent.

    Raises
    ------
    ConfigError : it is none

    Examples
    --------
    >>> parse_share("10%", "--headroom"), parse_share("0.05", "--headroom"), parse_share("0", "--headroom")
    (0.1, 0.05, 0.0)
    """
    match = _SHARE.fullmatch(text.strip())
    share = None if match is None else float(match["number"]) / (100 if match["percent"] else 1)
    if share is None or not 0 <= share < 1:
        is_percent = match is not None and not match["percent"] and 1 <= float(match["number"]) < 100
        wanted = "wanted a share from 0 to below 1, such as 0.05 or 5%"
        fix = f"{text.strip()}%" if is_percent else None
        raise ConfigError("command line", [Mistake(path=option, text=f"found '{text}', {wanted}", fix=fix)])
    return share


def parse_seconds(text: str, option: str) -> float:
    """Read a wall time above zero, as seconds.

    Raises
    ------
    ConfigError : it is none

    Examples
    --------
    >>> parse_seconds("60s", "--within")
    60.0
    """
    try:
        time_ps = parse_quantity(DURATION, text)
    except UnitError as error:
        raise ConfigError("command line", [Mistake(path=option, text=error.text, fix=error.fix)]) from error
    if time_ps <= 0:
        raise ConfigError("command line", [Mistake(path=option, text=f"found '{text}', wanted a time above 0")])
    return time_ps / SECOND_PS
