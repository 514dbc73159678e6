"""Fields of policy states that a run records.

Names of the scenario become places in the engine's records.

Leaves out: the state of a receiver, of a NIC and of a switch, which belong to no sending queue pair.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from weftwork.base.fix import ItemValue
from weftwork.base.nearest import nearest

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from weftwork.base.findings import Findings
    from weftwork.engine.packet import StateField
    from weftwork.policies.layout import Field, RecordLayout
    from weftwork.policies.load import LoadedPolicy

__all__ = ["recorded_state"]

OWNERS: Final = ("congestion_control", "path_selection")  # whose state a sending queue pair has
KEPT_ANYWAY: Final = ("rate_bps", "window_bytes")  # of the congestion control of every recorded flow
OTHER_SERIES: Final = "queue_bytes"  # of ports
_PATH: Final = "engine.record.state"
_NAME: Final = re.compile(r"(?:(?P<owner>\w+)\.)?(?P<field>\w+)(?:\[(?P<index>\d+)\])?")


class _NoFieldError(Exception):
    """A name that is not a field of a state.

    It has what was found, what is allowed, and the nearest right name.
    """

    def __init__(self, text: str, fix: str | None = None) -> None:
        super().__init__(text, fix)
        self.text = text
        self.fix = fix


def recorded_state(
    names: Sequence[str], policies: Mapping[str, LoadedPolicy], findings: Findings
) -> tuple[StateField, ...]:
    """Find the fields of a scenario in the states of its policies.

    Parameters
    ----------
    names : a field, or an element such as ``ring[3]``; with ``congestion_control.`` or ``path_selection.`` before it
        where both have a field of the name
    policies : by kind
    findings : take a mistake for each name that is no field

    Returns
    -------
    each field once, without those that are kept of every recorded flow
    """
    found: dict[str, StateField] = {}
    for place, name in enumerate(names):
        try:
            field = _resolved(name, policies)
        except _NoFieldError as wrong:
            findings.wrong(_PATH, wrong.text, wrong.fix and ItemValue(place, wrong.fix))
        else:
            if field is not None:
                found.setdefault(field.name, field)
    return tuple(found.values())


def _resolved(name: str, policies: Mapping[str, LoadedPolicy]) -> StateField | None:
    """The field of a name, or None if it is always recorded."""
    parts = _NAME.fullmatch(name)
    owners = [parts["owner"]] if parts is not None and parts["owner"] is not None else list(OWNERS)
    if parts is None or not set(owners) <= set(OWNERS):
        raise _unknown(name, policies)
    holders = [
        (owner, held) for owner in owners for held in policies[owner].state.fields if held.name == parts["field"]
    ]
    if not holders:
        raise _unknown(name, policies)
    if len(holders) > 1:
        wanted = " or ".join(f"{owner}.{name}" for owner, _ in holders)
        raise _NoFieldError(f"found '{name}', a field of both policies, wanted {wanted}", f"{holders[0][0]}.{name}")
    owner, field = holders[0]
    index = _index(name, field, parts["index"])
    if owner == "congestion_control" and field.name in KEPT_ANYWAY:
        return None
    return _placed(owner, field, index, policies)


def _index(name: str, field: Field, written: str | None) -> int | None:
    if field.size == 0:
        if written is not None:
            raise _NoFieldError(f"found '{name}', but the field is a number, not an array", field.name)
        return None
    last = field.size - 1
    if written is None:
        raise _NoFieldError(f"found '{name}', an array, wanted one of {field.name}[0] to {field.name}[{last}]")
    if int(written) > last:
        raise _NoFieldError(f"found '{name}', wanted {field.name}[0] to {field.name}[{last}]")
    return int(written)


def _placed(owner: str, field: Field, index: int | None, policies: Mapping[str, LoadedPolicy]) -> StateField:
    from weftwork.engine.packet import StateField

    layout: RecordLayout = policies[owner].state
    others = {held.name for kind in OWNERS if kind != owner for held in policies[kind].state.fields}
    is_shared = field.name in others or field.name == OTHER_SERIES
    element = field.name if index is None else f"{field.name}[{index}]"
    return StateField(
        name=f"{owner}.{element}" if is_shared else element,
        of_path=owner == "path_selection",
        place=layout.place(field.name) + (index or 0),
        is_float=field.type == "float",
    )


def _unknown(name: str, policies: Mapping[str, LoadedPolicy]) -> _NoFieldError:
    whose = "; ".join(f"of {policies[owner].name}: {', '.join(_names(policies[owner].state))}" for owner in OWNERS)
    every = [field.name for owner in OWNERS for field in policies[owner].state.fields]
    return _NoFieldError(f"found '{name}', wanted a field of a state, {whose}", nearest(name, every))


def _names(layout: RecordLayout) -> Iterator[str]:
    for field in layout.fields:
        yield f"{field.name}[0..{field.size - 1}]" if field.size else field.name
