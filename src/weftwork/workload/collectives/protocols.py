"""Protocols of NCCL with their efficiency and latencies, each figure with its source, as keys of a `Call`.

NCCL has figures for ring, tree and NVLS; other algorithms take those of the ring, and the facts say so.
Source: NVIDIA/nccl, src/graph/tuning.cc.
Leaves out: limits of a channel's bandwidth (perChMaxRingLL128Bws and others), which are of a GPU and not of a protocol.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from weftwork.base.catalogue import Catalogue
from weftwork.base.errors import ConfigError, Mistake

__all__ = ["PROTOCOLS", "ProtocolFigures", "software"]

PROTOCOLS: Final = Catalogue("protocol", Path(__file__).with_name("protocols.toml"))
_OWN_FIGURES: Final = ("ring", "tree", "nvls")


@dataclass(frozen=True, kw_only=True, slots=True)
class ProtocolFigures:
    """What a protocol makes of a call: fields of `Call` by their names, and in ``facts`` what is uncertain of them."""

    protocol_efficiency: float
    base_latency_ps: int
    local_step_latency_ps: int
    step_latency_ps: int
    facts: dict[str, str]


def software(protocol: str, algorithm: str) -> ProtocolFigures:
    """Efficiency and latencies of a protocol of NCCL with an algorithm.

    Parameters
    ----------
    protocol : ``simple``, ``ll`` or ``ll128``
    algorithm : name in the catalogue of algorithms

    Raises
    ------
    ConfigError : no such protocol, or NCCL does not have it with this algorithm
    """
    row = PROTOCOLS.find(protocol, path="collective.protocol")
    whose = algorithm if algorithm in _OWN_FIGURES else "ring"
    names = [f"{whose}_{name}" for name in ("base_latency_ps", "local_step_latency_ps", "step_latency_ps")]
    if names[0] not in row.figures:
        text = f"found '{protocol}', wanted simple: NCCL has no other protocol with {algorithm}"
        raise ConfigError("collective", [Mistake(path="collective.protocol", text=text, fix="simple")])
    used = {name: row.figures[name] for name in ("efficiency", *names)}
    facts = {f"{protocol}.{name}": figure.fact for name, figure in used.items() if figure.mark != "verified"}
    if whose != algorithm:
        facts[f"{protocol}.{algorithm}"] = f"latencies of the ring, since NCCL has none for {algorithm}"
    launch_ps, local_step_ps, step_ps = (int(row.value(name)) for name in names)
    return ProtocolFigures(
        protocol_efficiency=float(row.value("efficiency")),
        base_latency_ps=launch_ps,
        local_step_latency_ps=local_step_ps,
        step_latency_ps=step_ps,
        facts=facts,
    )
