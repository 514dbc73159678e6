"""``--set KEY=VALUE``: keys of a scenario from the command line."""

from __future__ import annotations

from typing import TYPE_CHECKING

from weftwork.base.errors import ConfigError, Mistake

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["overrides"]


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
