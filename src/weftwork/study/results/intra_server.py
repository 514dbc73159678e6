"""Messages inside servers, by NVLink or PCIe.

It has their ideal times, and the use of the GPUs' ports.

Source: docs/models/packet-engine.md, section Inside a server.
Leaves out: what waited where inside a server, which the engine does not keep.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from weftwork.base.clock import NEVER_PS, SECOND_PS, serialisation_ps
from weftwork.spec.numbers import quantities
from weftwork.spec.result import Quantity

if TYPE_CHECKING:
    import pyarrow as pa
    from numpy.typing import NDArray

    from weftwork.engine.flow.flow_input import FlowInput
    from weftwork.engine.packet_input import PacketInput

__all__ = ["CARRIERS", "NVLINK", "PACKETS", "PCIE", "carriers", "inside_summary", "message_times_ps"]

CARRIERS: Final = ("packets", "nvlink", "pcie")
PACKETS, NVLINK, PCIE = range(len(CARRIERS))


def carriers(
    engine_input: PacketInput | FlowInput, source: NDArray[np.int64], destination: NDArray[np.int64]
) -> NDArray[np.int64]:
    """The carrier of each message: an index into `CARRIERS`.

    Parameters
    ----------
    engine_input : the run's
    source, destination : shape (messages,), ranks
    """
    node = engine_input.port_node[engine_input.rank_ports[:, 0]]
    domain = engine_input.rank_gpu["nvlink_domain"]
    is_near = domain[source] == domain[destination]
    inside = np.where(is_near & (domain[source] >= 0), NVLINK, PCIE)
    return np.where(node[source] == node[destination], inside, PACKETS).astype(np.int64)


def message_times_ps(
    engine_input: PacketInput | FlowInput,
    carrier: int,
    source: NDArray[np.int64],
    destination: NDArray[np.int64],
    size_bytes: NDArray[np.int64],
) -> NDArray[np.int64]:
    """Time of a message inside a server without other traffic.

    Its slices follow each other through the egress of the sender and the ingress of the receiver; the slower of the two
    sets the pace.

    Parameters
    ----------
    engine_input : the run's
    carrier : `NVLINK` or `PCIE`, the same for all
    source, destination : shape (messages,), ranks
    size_bytes : shape (messages,)
    """
    kind = CARRIERS[carrier]
    gpu = engine_input.rank_gpu
    figures = np.stack(
        [gpu[f"{kind}_rate_bps"], gpu[f"{kind}_latency_ps"].astype(np.int64), gpu["slice_bytes"].astype(np.int64)],
        axis=1,
    )
    # Sorting whole rows of a million messages takes longer than their simulation: GPUs and sizes are few, so numbers
    # of both are sorted instead.
    models, model_of = np.unique(figures, axis=0, return_inverse=True)
    sizes, size_of = np.unique(size_bytes, return_inverse=True)
    model_of, count = model_of.ravel(), len(models)
    case = (size_of.ravel() * count + model_of[source]) * count + model_of[destination]
    distinct, which = np.unique(case, return_inverse=True)
    times = []
    for place in distinct.tolist():
        rest, receiver = divmod(place, count)
        size, sender = divmod(rest, count)
        egress_bps, latency_ps, slice_bytes = models[sender].tolist()
        alone_ps = _alone_ps(egress_bps, models[receiver].tolist()[0], latency_ps, slice_bytes, int(sizes[size]))
        times.append(min(alone_ps, NEVER_PS))  # at 1 b/s more than int64 has
    found: NDArray[np.int64] = np.array(times, np.int64)[which.ravel()]
    return found


def _alone_ps(egress_bps: int, ingress_bps: int, latency_ps: int, slice_bytes: int, size_bytes: int) -> int:
    whole, rest = divmod(size_bytes, slice_bytes)
    last = rest if rest or not whole else slice_bytes
    before = whole if rest or not whole else whole - 1  # slices before the last one
    out_ps, in_ps = (serialisation_ps(slice_bytes, rate) for rate in (egress_bps, ingress_bps))
    last_out_ps, last_in_ps = (serialisation_ps(last, rate) for rate in (egress_bps, ingress_bps))
    starts_ps = before * out_ps + latency_ps  # the last slice reaches the ingress
    free_ps = latency_ps + (before - 1) * max(out_ps, in_ps) + in_ps if before else 0
    return max(max(starts_ps, free_ps) + last_in_ps, starts_ps + last_out_ps)


def inside_summary(engine_input: PacketInput | FlowInput, flows: pa.Table, duration_ps: int) -> dict[str, Quantity]:
    """Numbers on traffic by packet and by message.

    Empty if nothing was sent inside a server.

    Parameters
    ----------
    engine_input : the run's
    flows : table of the run
    duration_ps : of the run
    """
    carrier = flows["carrier"].to_numpy(zero_copy_only=False)
    delivered = flows["fct_ps"].is_valid().to_numpy()
    if (carrier == CARRIERS[PACKETS]).all():
        return {}
    found: dict[str, Quantity] = {}
    words = ("between servers, by packet", "inside servers by NVLink, by message", "inside servers by PCIe, by message")
    for name, text in zip(CARRIERS, words, strict=True):
        size = int(flows["size_bytes"].to_numpy()[delivered & (carrier == name)].sum())
        found |= quantities("{carrier}_bytes", size, carrier=name, where=text)
    for name in CARRIERS[1:]:
        own = flows.filter(delivered & (carrier == name))
        share = _busiest_share(engine_input, name, own, duration_ps)
        if share is not None:
            found |= quantities(f"busiest_{name}", share)
    return found


def _busiest_share(
    engine_input: PacketInput | FlowInput, carrier: str, flows: pa.Table, duration_ps: int
) -> float | None:
    """Largest share of the time, over ranks and directions.

    None without traffic.
    """
    if flows.num_rows == 0 or duration_ps <= 0:
        return None
    rate_bps = engine_input.rank_gpu[f"{carrier}_rate_bps"].astype(np.float64)
    load = np.zeros((2, len(rate_bps)))
    size = flows["size_bytes"].to_numpy()
    np.add.at(load[0], flows["source_rank"].to_numpy(), size)
    np.add.at(load[1], flows["destination_rank"].to_numpy(), size)
    share = load.max(axis=0) * 8 * SECOND_PS / duration_ps
    return float(np.divide(share, rate_bps, out=np.zeros(len(rate_bps)), where=rate_bps > 0).max())
