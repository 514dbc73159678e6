"""Devices and their peers: the usual one, and in what another differs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from weftwork.base.units import DURATION, RATE, SIZE, format_quantity

if TYPE_CHECKING:
    from collections.abc import Set as AbstractSet
    from typing import Any, TypeVar

    from numpy.typing import NDArray

    from weftwork.spec.device import Nic, Server, Switch

    _Device = TypeVar("_Device", Nic, Server, Switch)

__all__ = ["names_like", "unlike_peers", "usual_value", "with_usual"]

_UNITS: Final = {"_ps": DURATION, "_bps": RATE, "_bytes": SIZE}
_SPELLED: Final = {"nvlink": "NVLink", "pcie": "PCIe", "nvls": "NVLS", "gpus": "GPUs", "nic": "NIC"}
_MOST_FIELDS: Final = 2  # of a device, that a line still holds


def usual_value(values: NDArray[Any]) -> Any:  # noqa: ANN401 - a number of the array's type
    """The most frequent value."""
    found, count = np.unique(values, return_counts=True)
    usual = found[int(count.argmax())]
    return usual.item()


def names_like(names: list[str]) -> str:
    """The first of several names, and how many are like it."""
    return names[0] if len(names) == 1 else f"{names[0]} and {len(names) - 1:,} like it"


def with_usual(devices: tuple[_Device, ...], left: AbstractSet[int], usual: _Device) -> tuple[_Device, ...]:
    """Devices of a fabric with the usual one in place of those that nothing is any more.

    Latencies of collectives are those of the slowest device of a fabric.
    """
    return tuple(device if place in left else usual for place, device in enumerate(devices))


def unlike_peers(odd: _Device, usual: _Device) -> str:
    """In what a device differs from its peers."""
    named, peers = (device.model_dump(exclude={"name"}) for device in (odd, usual))
    differ = [key for key, value in peers.items() if named[key] != value]
    said = [
        f"{_field(key, named[key])} where its peers have {_value(key, peers[key])}" for key in differ[:_MOST_FIELDS]
    ]
    more = f" and {len(differ) - _MOST_FIELDS} more" if len(differ) > _MOST_FIELDS else ""
    return f"has {', '.join(said)}{more}" if said else f"is '{odd.name}' where its peers are '{usual.name}'"


def _field(key: str, value: Any) -> str:  # noqa: ANN401 - of a device
    ending = next((ending for ending in _UNITS if key.endswith(ending)), "")
    words = [_SPELLED.get(word, word) for word in key.removesuffix(ending).split("_")]
    return f"{' '.join(words)} {_value(key, value)}"


def _value(key: str, value: Any) -> str:  # noqa: ANN401 - of a device
    unit = next((unit for ending, unit in _UNITS.items() if key.endswith(ending)), None)
    return str(value) if unit is None or not isinstance(value, int) else format_quantity(unit, value)
