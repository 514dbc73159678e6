"""Layers whose activations wait in the memory of the host, and the units that hide their transfers.

Of the layers of a part of the pipeline (a stage, or a virtual stage) the first ones are offloaded. A part has as many
windows as offloaded layers, of layers as equal in number as can be. The activations of the first layer leave once it is
computed, those of each other layer at the end of the window before, and a window ends when they have left. In the
backward pass the windows are run through from behind: the activations of a layer return in its window.
Source: NVIDIA/TransformerEngine, transformer_engine/pytorch/cpu_offload.py, AsyncDoubleBufferGroupOffloadHandler:
layer_window_map, synchronize_on_group_commit_forward and on_group_commit_backward.
chosen: with several parts on a GPU, each has its share of the offloaded layers, and windows of its own. Megatron-LM
offloads on a single stage alone, where part and model are the same, and without recomputation
(NVIDIA/Megatron-LM, megatron/core/transformer/transformer_config.py).
Leaves out: transfers that hide behind passes of other micro batches; single tensors that a program offloads
(fine-grained activation offloading of Megatron-LM); weights and Adam's state in the memory of the host.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from weftwork.workload.parallelism.layout import Unit

__all__ = ["Transfer", "offloaded_counts", "stage_transfers", "transfers"]


@dataclass(frozen=True, slots=True)
class Transfer:
    """Transfer of the activations of one layer, forward to the host and backward to the GPU.

    Attributes
    ----------
    unit : the layer
    behind : place of the unit, in its part of the pipeline, whose forward pass ends before the transfer begins
    last : place of the last unit that computes beside it; the transfer has ended when the forward pass goes on
    """

    unit: Unit
    behind: int
    last: int

    @property
    def beside(self) -> slice:
        """Places of the units that compute beside the transfer."""
        return slice(self.behind + 1, self.last + 1)


def offloaded_counts(layers: Sequence[int], wanted: int) -> tuple[int, ...]:
    """Offloaded layers of each part of the pipeline on a GPU.

    The last layer of a part is never offloaded, because its backward pass follows at once.

    Parameters
    ----------
    layers : of each part
    wanted : of the GPU

    Examples
    --------
    >>> offloaded_counts([5, 5, 1], 4)
    (2, 2, 0)
    """
    most = [max(0, count - 1) for count in layers]
    total = min(wanted, sum(most))
    if not total:
        return (0,) * len(layers)
    bounds = [total * sum(most[:place]) // sum(most) for place in range(len(most) + 1)]
    return tuple(after - before for before, after in pairwise(bounds))


def transfers(units: Sequence[Unit], count: int) -> tuple[Transfer, ...]:
    """Transfers of a part of the pipeline, in the order of its forward pass.

    Parameters
    ----------
    units : of the part, in order
    count : layers that are offloaded, fewer than the part has

    Examples
    --------
    >>> from weftwork.workload.models.size import LayerKind
    >>> layers = [Unit(part="layer", layer=LayerKind(mixer="attention", mlp="dense"))] * 5
    >>> [(one.behind, one.last) for one in transfers(layers, 2)]
    [(0, 2), (2, 4)]
    """
    places = [place for place, unit in enumerate(units) if unit.layer is not None]
    if not count:
        return ()
    each, more = divmod(len(places), count)
    lasts = [each * (number + 1) - 1 + min(number + 1, more) for number in range(count)]
    behind = [0, *lasts[:-1]]
    return tuple(
        Transfer(unit=units[places[number]], behind=places[behind[number]], last=places[lasts[number]])
        for number in range(count)
    )


def stage_transfers(parts: Sequence[Sequence[Unit]], wanted: int) -> tuple[tuple[Transfer, ...], ...]:
    """Transfers of each part of the pipeline that a GPU holds.

    Parameters
    ----------
    parts : units of each
    wanted : offloaded layers of the GPU
    """
    counts = offloaded_counts([sum(unit.layer is not None for unit in units) for units in parts], wanted)
    return tuple(transfers(units, count) for units, count in zip(parts, counts, strict=True))
