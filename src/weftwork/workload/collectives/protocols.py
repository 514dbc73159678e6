"""NCCL's protocols: efficiency and latencies with sources, as keys of `Call`.

NCCL has figures for its methods, whose files name them; other algorithms take those of the ring, and the caveats say
so.
Source: NVIDIA/nccl, src/graph/tuning.cc.
Leaves out: limits of a channel's bandwidth, by which NCCL chooses among its methods (`tuner`).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

from weftwork.base.catalogue import Catalogue
from weftwork.base.caveat import Caveat, caveats_by_subject
from weftwork.base.errors import ConfigError, Mistake
from weftwork.base.folder import is_path
from weftwork.spec.scenario.choices import ALGORITHMS
from weftwork.workload.collectives.method_catalogue import method_of

__all__ = ["PROTOCOLS", "ProtocolFigures", "software"]

_BASE: Final = "_base_latency_ps"
_USUAL: Final = "ring"  # chosen: whose figures of protocols.toml a method has that NCCL has none for
PROTOCOLS: Final = Catalogue("protocol", Path(__file__).with_name("protocols.toml"))


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
    algorithm : name in the catalogue of algorithms or of methods, or the file of a user's own

    Raises
    ------
    ConfigError : no such protocol, or NCCL does not have it with this algorithm
    CodeError : the user's file is wrong, or names figures that there are not; with file and line
    """
    if is_path(algorithm):
        offer = ALGORITHMS.load(algorithm)
        figures = offer.method.figures if offer.method is not None else ""
        known = [name.removesuffix(_BASE) for name in PROTOCOLS["simple"].figures if name.endswith(_BASE)]
        if figures and figures not in known:
            text = f"its method has the figures of '{figures}', wanted {', '.join(known)}, or none"
            raise ALGORITHMS.wrong(algorithm, text)
        return _figures(protocol, offer.name, figures)
    return _of_catalogue(protocol, algorithm)


@cache
def _of_catalogue(protocol: str, algorithm: str) -> ProtocolFigures:
    timed = method_of(algorithm)
    return _figures(protocol, algorithm, timed.figures if timed is not None else "")


def _figures(protocol: str, algorithm: str, own_figures: str) -> ProtocolFigures:
    """Figures of a protocol: an algorithm's own, or those of the ring with a caveat."""
    row = PROTOCOLS.find(protocol, path="collective.protocol")
    whose = own_figures or _USUAL
    names = [f"{whose}_{name}" for name in ("base_latency_ps", "local_step_latency_ps", "step_latency_ps")]
    if names[0] not in row.figures:
        text = f"found '{protocol}', wanted simple: NCCL has no other protocol with {algorithm}"
        raise ConfigError("collective", [Mistake(path="collective.protocol", text=text, fix="simple")])
    used = {name: row.figures[name] for name in ("efficiency", *names)}
    caveats = [caveat for figure in used.values() if (caveat := figure.caveat(protocol)) is not None]
    if not own_figures:
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
