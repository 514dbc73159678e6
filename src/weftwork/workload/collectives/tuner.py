"""NCCL's choice of method by size.

Its tuner estimates each method, or the tuner of a network's plugin decides. NCCL expects latency + bytes / bandwidth of
every method and takes the least. It can be wrong, and the curves of nccl-tests show it: an all-gather on AWS p5 dips
where the tuner leaves LL128 for Simple too early. So the choice is NCCL's, and what the method then takes is
`closed_form`'s. On EFA the plugin aws-ofi-nccl overrides it for all-reduces of three servers or more (regions.toml).
Source: NVIDIA/nccl, src/graph/tuning.cc, ncclTopoTuneModel and ncclTopoGetAlgoTime; aws/aws-ofi-nccl, src/tuner.
Leaves out: CollNet, since no network here reduces; trees inside one server; the search for channels, of which there is
one for each GPU of a domain between domains and 12 inside one, with 0.96 of the NIC's rate (48 of 50 GB/s, 24 of 25).
NCCL's limits are constants of a generation of GPUs. On links that no server of the generation has, those of LL128 and
trees grow with the links: constants would make NCCL leave LL128 for a slower Simple because NVLink is faster. Those of
LL stay: they come from its small buffers.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from itertools import pairwise
from math import log2
from pathlib import Path
from typing import Final

from weftwork.base.catalogue import Catalogue, Row
from weftwork.base.clock import SECOND_PS
from weftwork.base.errors import ConfigError, Mistake, UsageError
from weftwork.hardware.catalogue import SERVERS, node
from weftwork.workload.collectives.closed_form import Alone, GroupShape, Method, alone, methods
from weftwork.workload.collectives.figures import CollectiveFigures
from weftwork.workload.collectives.method import BandwidthView, LatencyView, MethodCall, TunerRegion
from weftwork.workload.collectives.method_bytes import TIMES_AROUND
from weftwork.workload.collectives.method_catalogue import methods_in_order, timed_method
from weftwork.workload.collectives.protocols import software

__all__ = ["REGIONS", "TUNER", "chosen", "chosen_method", "estimate_ps"]

TUNER: Final = Catalogue("limits of NCCL's tuner", Path(__file__).with_name("tuner.toml"))
REGIONS: Final = Catalogue("regions of a tuner", Path(__file__).with_name("regions.toml"))
SEARCH_SHARE: Final = 0.96  # NCCL, src/graph/search.cc, speeds between servers: 48 of 50 GB/s, 24 of 25
CHANNELS_INSIDE: Final = 12  # chosen: 12 x 20 GB/s of an A100, 12 x 30 of an H100, from memory of its logs


def chosen(
    operation: str,
    group: GroupShape,
    size_bytes: float,
    figures: CollectiveFigures,
    *,
    network_efficiency: float = 1.0,
    latency_scale: float = 1.0,
) -> Alone:
    """The method that NCCL takes at a size, and the method's time alone.

    Parameters
    ----------
    operation, group, size_bytes, figures, network_efficiency, latency_scale : as for `alone`

    Raises
    ------
    ConfigError : there is no closed form of the operation
    """
    method = chosen_method(operation, group, size_bytes, figures)
    return alone(
        operation, method, group, size_bytes, figures, network_efficiency=network_efficiency,
        latency_scale=latency_scale,
    )  # fmt: skip


def chosen_method(
    operation: str, group: GroupShape, size_bytes: float, figures: CollectiveFigures, *, protocol: str | None = None
) -> Method:
    """The method that NCCL takes at a size.

    Of equal methods it is the first of `methods`.

    Parameters
    ----------
    operation, group, size_bytes, figures : as for `alone`
    protocol : to which NCCL is held, as by NCCL_PROTO; None for none

    Raises
    ------
    ConfigError : NCCL does the operation by no method of that protocol
    """
    ways = [way for way in methods(operation, group, figures) if protocol in {None, way.protocol}]
    if not ways:
        text = f"found '{protocol}', wanted simple: NCCL has no other protocol for {operation}"
        raise ConfigError("collective", [Mistake(path="collective.protocol", text=text, fix="simple")])
    if len(ways) == 1:
        return ways[0]
    named = _of_region(operation, group, size_bytes, figures)
    if named in ways:
        return named
    return min(ways, key=lambda way: estimate_ps(operation, way, group, size_bytes, figures))


def estimate_ps(
    operation: str, method: Method, group: GroupShape, size_bytes: float, figures: CollectiveFigures
) -> float:
    """Time that NCCL's tuner expects of a method: latency + bytes / bandwidth.

    Parameters
    ----------
    operation, group, size_bytes, figures : as for `alone`
    method : one of `methods` of an all-reduce, all-gather or reduce-scatter
    """
    return _latency_ps(operation, method, group, size_bytes, figures) + size_bytes * 8 * SECOND_PS / _bandwidth_bps(
        operation, method, group, size_bytes, figures
    )


def _of_region(operation: str, group: GroupShape, size_bytes: float, figures: CollectiveFigures) -> Method | None:
    """The choice of AWS's tuner plugin; None if it leaves it to NCCL."""
    if figures.network != "efa-v2" or operation != "all-reduce" or group.per_domain != 8 or group.domains < 3:
        return None
    rows = sorted(REGIONS.values(), key=lambda row: int(row.value("gpus")))
    if group.members > int(rows[-1].value("gpus")):
        return None

    def has_size(region: TunerRegion) -> bool:
        if not region.key:
            return True
        if region.has_line:
            return size_bytes <= _on_line(rows, region.key, group.members)
        return group.members == int(rows[-1].value("gpus")) and size_bytes <= int(rows[-1].value(region.key))

    known = {
        region.key: (region, Method(algorithm=name, protocol=region.protocol, inner=timed.inner))
        for name, timed in methods_in_order()
        for region in timed.regions
    }
    ordered = [known[key] for key in (*rows[-1].figures, "") if key in known]
    return next((method for region, method in ordered if has_size(region)), None)


def _on_line(rows: list[Row], key: str, members: int) -> float:
    """A bound between two rows, interpolated in logarithms.

    The logarithms are those of GPUs and bytes. Below the first row it is the first row's bound.
    """
    for low, high in pairwise(rows):
        first, last = int(low.value("gpus")), int(high.value("gpus"))
        if members <= last:
            place = max(0.0, (log2(members) - log2(first)) / (log2(last) - log2(first)))
            return float(low.value(key) ** (1 - place) * high.value(key) ** place)
    return float(rows[-1].value(key))


def _bandwidth_bps(
    operation: str, method: Method, group: GroupShape, size_bytes: float, figures: CollectiveFigures
) -> float:
    """Buffer bytes per time that NCCL expects, without latencies."""
    row = TUNER.get(figures.name, TUNER["h100"])
    ring_bps = _ring_bps(group, figures)
    nvlink_bps, network_bps = _rates_bps(str(row.value("server")))
    usual = replace(figures, nvlink_rate_bps=nvlink_bps, network_rate_bps=network_bps)
    view = BandwidthView(
        call=MethodCall(method=method, operation=operation, group=group, size_bytes=size_bytes, figures=figures),
        row=row,
        scale=1 if group.domains == 1 else 2 if group.domains == 2 else 4,
        channels=CHANNELS_INSIDE if group.domains == 1 else group.per_domain,
        ring_bps=ring_bps,
        around=group.members / (TIMES_AROUND[operation] * (group.members - 1)),
        growth=max(1.0, ring_bps / _ring_bps(group, usual)),
    )
    expects = timed_method(method.algorithm).bandwidth_bps
    if expects is None:
        raise UsageError(f"NCCL's tuner expects nothing of {method.algorithm}")
    return expects(view)


@cache
def _rates_bps(name: str) -> tuple[int, int]:
    """Rates of NVLink and of a GPU's NICs in a catalogue server."""
    server, port_bps = node(name).server, int(SERVERS[name].value("nic_port_rate_bps"))
    return server.nvlink_rate_bps, port_bps * server.nic_ports // server.gpus


def _ring_bps(group: GroupShape, figures: CollectiveFigures) -> float:
    """Rate of all rings together.

    It is that of NVLink in one domain, else of the NICs of a domain, or of its NVLink if that is slower.
    """
    if group.domains == 1:
        return float(figures.nvlink_rate_bps)
    nics_bps = SEARCH_SHARE * figures.network_rate_bps * group.per_domain
    if group.per_domain == 1:
        return nics_bps
    return min(nics_bps, figures.nvlink_rate_bps * group.per_domain / (group.per_domain - 1))


def _latency_ps(
    operation: str, method: Method, group: GroupShape, size_bytes: float, figures: CollectiveFigures
) -> float:
    own = software(method.protocol, method.algorithm)
    is_simple = method.protocol == "simple"
    across_ps: float = own.step_latency_ps + figures.nic_latency_ps + (figures.nic_latency_ps if is_simple else 0)
    view = LatencyView(
        call=MethodCall(method=method, operation=operation, group=group, size_bytes=size_bytes, figures=figures),
        own=own,
        levels=(group.domains - 1).bit_length(),
        inside_ps=own.local_step_latency_ps,
        across_ps=across_ps,
    )
    expects = timed_method(method.algorithm).latency_ps
    if expects is None:
        raise UsageError(f"NCCL's tuner expects nothing of {method.algorithm}")
    return expects(view)
