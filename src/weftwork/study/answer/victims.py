"""The root of the pauses that slowed a flow most, as a culprit.

Leaves out: who is a victim, which the table ``victims`` has (`weftwork.study.results.victims`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from weftwork.base.clock import SECOND_PS
from weftwork.spec.answer import Culprit
from weftwork.study.answer.ids import ids_of_links, ids_of_nodes

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pyarrow as pa

    from weftwork.study.prepare.prepared import Prepared

__all__ = ["worst_victim"]


def worst_victim(prepared: Prepared, tables: Mapping[str, pa.Table]) -> Culprit | None:
    """The root of the pauses that slowed a flow most; None without a victim.

    The flow lost the largest share of its time.

    Parameters
    ----------
    prepared : what was run
    tables : of the run
    """
    if not tables["victims"].num_rows:
        return None
    (victim,) = tables["victims"].slice(0, 1).to_pylist()
    (flow,) = tables["flows"].slice(victim["flow"], 1).to_pylist()
    fabric = prepared.fabric
    ports, names = fabric.ports, fabric.node_names
    root, paused = victim["root_port"], victim["paused_port"]
    end, pausing = int(ports.node[ports.peer[root]]), int(ports.node[ports.peer[paused]])
    is_host = bool(victim["is_root_paused"])
    if is_host:
        text = f"takes packets too slowly and pauses {names[int(ports.node[root])]}"
    else:
        text = f"was full, so that {names[pausing]} paused {names[int(ports.node[paused])]}->{names[pausing]}"
    took_ps, alone_ps = float(flow["fct_ps"]), flow["ideal_fct_ps"]
    return Culprit(
        kind="nic" if is_host else "link",
        name=names[end] if is_host else fabric.link_names[int(ports.link[root])],
        key=None,
        text=text,
        cost_s=(took_ps - alone_ps) / SECOND_PS,
        cost_share=1 - alone_ps / took_ps,
        how="recorded",
        ids=ids_of_nodes(fabric, [end]) if is_host else ids_of_links(fabric, [int(ports.link[root])]),
        of=f"the flow {flow['source']}->{flow['destination']}, a victim of the pauses",
    )
