"""Ports between the switches of a fabric."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from weftwork.spec.fabric import HOST

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from weftwork.spec.fabric import Fabric

__all__ = ["ports_between_switches"]


def ports_between_switches(fabric: Fabric) -> NDArray[np.int64]:
    """Numbers of the ports that join two switches."""
    ports, is_switch = fabric.ports, fabric.node_kind != HOST
    return np.flatnonzero(is_switch[ports.node] & is_switch[ports.node[ports.peer]])
