"""NCCL's protocols: efficiency and latencies with sources, as keys of `Call`.

NCCL has figures for ring, tree, NVLS, NVLSTree (here `hierarchical` with NVLS inside) and PAT (here
`halving-doubling`); other algorithms take those of the ring, and the caveats say so.
Source: NVIDIA/nccl, src/graph/tuning.cc.
Leaves out: limits of a channel's bandwidth, by which NCCL chooses among its methods (`tuner`).
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from weftwork.base.catalogue import Catalogue
from weftwork.base.caveat import Caveat, caveats_by_subject
from weftwork.base.errors import ConfigError, Mistake

__all__ = ["PROTOCOLS", "ProtocolFigures", "software"]

PROTOCOLS: Final = Catalogue("protocol", Path(__file__).with_name("protocols.toml"))
_OWN_FIGURES: Final = {"ring": "ring", "tree": "tree", "nvls": "nvls", "nvls-tree": "nvls_tree", "pat": "pat"}


@dataclass(frozen=True, kw_only=True, slots=True)
class ProtocolFigures:
    """Effect of a protocol on a call: fields of `Call`, and uncertainties.

    ``round_bytes`` is of a channel of NCCL with its buffers as they come.
    """

    protocol_efficiency: float
    base_latency_ps: int
    local_step_latency_ps: int
    step_latency_ps: int
    round_bytes: int
    caveats: dict[str, Caveat]


def software(protocol: str, algorithm: str) -> ProtocolFigures:
    """Efficiency and latencies of an NCCL protocol with an algorithm.

    Parameters
    ----------
    protocol : ``simple``, ``ll`` or ``ll128``
    algorithm : name in the catalogue of algorithms, or ``nvls-tree`` or ``pat``

    Raises
    ------
    ConfigError : no such protocol, or NCCL does not have it with this algorithm
    """
    row = PROTOCOLS.find(protocol, path="collective.protocol")
    whose = _OWN_FIGURES.get(algorithm, "ring")
    names = [f"{whose}_{name}" for name in ("base_latency_ps", "local_step_latency_ps", "step_latency_ps")]
    if names[0] not in row.figures:
        text = f"found '{protocol}', wanted simple: NCCL has no other protocol with {algorithm}"
        raise ConfigError("collective", [Mistake(path="collective.protocol", text=text, fix="simple")])
    used = {name: row.figures[name] for name in ("efficiency", *names)}
    caveats = [caveat for figure in used.values() if (caveat := figure.caveat(protocol)) is not None]
    if algorithm not in _OWN_FIGURES:
        text = f"latencies of the ring, since NCCL has none for {algorithm}"
        caveats.append(Caveat(subject=f"{protocol}.{algorithm}", kind="chosen", text=text))
    launch_ps, local_step_ps, step_ps = (int(row.value(name)) for name in names)
    return ProtocolFigures(
        protocol_efficiency=float(row.value("efficiency")),
        base_latency_ps=launch_ps,
        local_step_latency_ps=local_step_ps,
        step_latency_ps=step_ps,
        round_bytes=int(row.value("round_bytes")),
        caveats=caveats_by_subject(caveats),
    )
