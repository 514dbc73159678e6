"""Check the types of a plug-in's fields.

A policy file is written by hand, and Python itself checks none of them.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any, Final, get_args

from weftwork.policies.interface import (
    INTERFACE,
    MOST_CLASSES,
    CongestionControl,
    Kind,
    Need,
    PathSelection,
    PathSpread,
    PortSelection,
    PortSpread,
    Reorders,
    ReplyEntropy,
)

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["wrong_field"]


def _is_class(value: object) -> bool:
    return isinstance(value, type)


def _is_class_or_none(value: object) -> bool:
    return value is None or isinstance(value, type)


def _is_set_of(value: object, holds: Callable[[object], bool]) -> bool:
    return isinstance(value, (set, frozenset)) and all(holds(item) for item in value)


def _is_need(value: object) -> bool:
    return isinstance(value, str) and value in get_args(Need)


def _are_variants(value: object) -> bool:
    return isinstance(value, dict) and all(isinstance(k, str) and isinstance(v, dict) for k, v in value.items())


_FIELDS: Final[dict[str, tuple[Callable[[Any], bool], str]]] = {
    "params": (_is_class, "a class"),
    "state": (_is_class, "a class"),
    "step": (callable, "a function"),
    "source": (lambda value: isinstance(value, str), "text"),
    "signals": (lambda value: _is_set_of(value, lambda item: isinstance(item, Kind)), "a frozenset of Kind"),
    "receiver_state": (_is_class_or_none, "a class or None"),
    "receive": (lambda value: value is None or callable(value), "a function or None"),
    "receiver_signals": (lambda value: value in ("data", "ecn"), "'data' or 'ecn'"),
    "shared_state": (_is_class_or_none, "a class or None"),
    "needs": (lambda value: _is_set_of(value, _is_need), f"a frozenset of {', '.join(get_args(Need))}"),
    "variants": (_are_variants, "a dict of dicts by name"),
    "per": (lambda value: value in ("packet", "message"), "'packet' or 'message'"),
    "reply_entropy": (lambda value: value in get_args(ReplyEntropy), "'own' or 'echoed'"),
    "reorders": (lambda value: value in get_args(Reorders), "'never', 'on-move' or 'always'"),
    "moves_departures": (lambda value: isinstance(value, bool), "True or False"),
    "is_loss_based": (lambda value: isinstance(value, bool), "True or False"),
    "port_state": (_is_class_or_none, "a class or None"),
    "always": (lambda value: isinstance(value, bool), "True or False"),
    "waits_for_routes": (lambda value: isinstance(value, bool), "True or False"),
    "layer_by_word": (lambda value: isinstance(value, bool), "True or False"),
    "at_delivery": (lambda value: isinstance(value, bool), "True or False"),
    "virtual_channels": (
        lambda value: type(value) is int and 1 <= value <= MOST_CLASSES,
        f"an int from 1 to {MOST_CLASSES}",
    ),
    "interface": (
        lambda value: type(value) is int and value == INTERFACE,
        f"{INTERFACE}, the version that this Weftwork has; docs/models/policy-interface.md describes the versions",
    ),
}
_SPREADS: Final[dict[type, tuple[str, ...]]] = {
    PathSelection: get_args(PathSpread),
    PortSelection: get_args(PortSpread),
}


def wrong_field(plugin: CongestionControl | PathSelection | PortSelection) -> str | None:
    """Describe the first field with a wrong type, or return None."""
    names = [field.name for field in dataclasses.fields(plugin) if field.name not in ("interface", "spreads")]
    for name in ("interface", *names):  # the version first: another one may have other words
        is_right, wanted = _FIELDS[name]
        value = getattr(plugin, name)
        if not is_right(value):
            shown = ascii(value)
            return f"PLUGIN's {name} is {shown if len(shown) <= 40 else shown[:37] + '...'}, wanted {wanted}"
    if isinstance(plugin, CongestionControl):
        return None
    return _wrong_spread(plugin) or _wrong_need(plugin)


def _wrong_spread(plugin: PathSelection | PortSelection) -> str | None:
    """A word of ``spread`` that is unknown or contradicts the packet order."""
    known = _SPREADS[type(plugin)]
    if plugin.spreads is None:
        return None
    if plugin.spreads not in known:
        return f"PLUGIN's spreads is {plugin.spreads!a}, wanted {', '.join(map(repr, known))} or None"
    if (plugin.reorders == "always") != (plugin.spreads == "evenly"):
        return (
            f"PLUGIN's spreads is {plugin.spreads!r} and its reorders {plugin.reorders!r}; packets that are spread"
            " evenly always overtake each other, and others do not"
        )
    return None


def _wrong_need(plugin: PathSelection | PortSelection) -> str | None:
    """A need that no engine can meet.

    Packets tell senders of switches, and not switches of each other.
    """
    for need in ("telemetry", "path-load"):
        if isinstance(plugin, PortSelection) and need in plugin.needs:
            return (
                f"PLUGIN's needs hold '{need}', which a switch writes into packets and a NIC reads; a port selection"
                " sees its own candidates: wanted 'queue'"
            )
    return None
