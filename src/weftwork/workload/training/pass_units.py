"""Units of a pass in order, with the transfers of offloaded activations that begin and end around them.

Leaves out: which layers are offloaded (`weftwork.workload.parallelism.offloading`), and what a transfer takes
(`weftwork.workload.training.stage`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from weftwork.workload.parallelism.layout import Unit
    from weftwork.workload.parallelism.offloading import Transfer

__all__ = ["PassUnit", "pass_units"]


@dataclass(frozen=True, slots=True)
class PassUnit:
    """A unit of a pass, with what happens to offloaded activations around it.

    ``begins`` is the layer whose transfer begins there, after the end of the transfer before where ``ends`` is set:
    behind the unit in a forward pass, in front of it in a backward pass.
    """

    unit: Unit
    ends: bool = False
    begins: Unit | None = None


def pass_units(units: Sequence[Unit], moved: Sequence[Transfer], *, is_forward: bool) -> list[PassUnit]:
    """Units of a pass in its order.

    Parameters
    ----------
    units : of a virtual stage, in the order of the model
    moved : transfers of its activations; none in a pass that moves none
    is_forward : else the last unit comes first
    """
    begins = {one.behind if is_forward else one.last: one.unit for one in moved}
    ends = {one.last if is_forward else one.behind for one in moved}
    places = [PassUnit(unit=unit, ends=place in ends, begins=begins.get(place)) for place, unit in enumerate(units)]
    return places if is_forward else places[::-1]
