"""Paths by hash that put far more than the mean on one of several equal ports."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from weftwork.engine.flow.flow_input import FlowInput, Mode
from weftwork.spec.answer import CulpritIds
from weftwork.spec.routings import ROUTINGS
from weftwork.spec.scenario.policies import PRESETS, PolicyChoice
from weftwork.study.answer.suspect import BUSY, COLLIDED, Suspect
from weftwork.study.answer.suspicion import RunRecords, Suspicion
from weftwork.study.prepare import what_if
from weftwork.study.results.link_use import siblings_use

if TYPE_CHECKING:
    from collections.abc import Iterator

    from weftwork.study.prepare.prepared import Prepared

__all__ = ["SUSPICION"]


def _hashes(records: RunRecords) -> Iterator[Suspect]:
    prepared = records.prepared
    if not _is_hashed(prepared):
        return
    uneven, port, its_use = siblings_use(prepared, records.execution, records.use)
    if uneven > COLLIDED and its_use > BUSY:
        ports, names = prepared.fabric.ports, prepared.fabric.node_names
        name = f"{names[int(ports.node[port])]}->{names[int(ports.node[ports.peer[port]])]}"
        yield Suspect(
            kind="policy",
            name=prepared.policies["port_selection"].name,
            key="transport.load_balancing",
            text=f"put {uneven:.3g} times the mean load of equal ports on {name}: hashes collide",
            change=_sprayed,
            ids=CulpritIds(ports=(port,)),
        )


def _is_hashed(prepared: Prepared) -> bool:
    if isinstance(prepared.engine_input, FlowInput):
        return prepared.engine_input.mode in {Mode.HASHED, Mode.WEIGHTED}
    chosen = (prepared.policies["path_selection"], prepared.policies["port_selection"])
    by_hash = getattr(chosen[1].plugin, "spreads", None) in {"hash", "weighted-hash"}
    return by_hash and not any(getattr(one.plugin, "reorders", "never") == "always" for one in chosen)


def _sprayed(prepared: Prepared) -> Prepared:
    routing = ROUTINGS[prepared.scenario.fabric.routing]
    by_entropy = routing.paths == "several"  # which leaves switches nothing to choose
    path, port = (PolicyChoice(name=name) for name in PRESETS["spray" if by_entropy else "switch-spray"])
    return what_if.with_transport(prepared, path_selection=path, port_selection=port, reorder_tolerant=True)


SUSPICION: Final = Suspicion(
    rank=170,
    key="transport.load_balancing",
    suspects=_hashes,
)
