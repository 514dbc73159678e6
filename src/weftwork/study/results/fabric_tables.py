"""Tables about the fabric, which a page draws.

They are ports over time, paths of queue pairs, and nodes by tier.

Leaves out: what is recorded, which `weftwork.study.prepare.recording` chooses.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from weftwork.spec.fabric import HOST
from weftwork.topology.picture import tier_words

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from weftwork.engine.outcome import Outcome
    from weftwork.spec.fabric import Fabric
    from weftwork.spec.transport import Transport

__all__ = ["node_rows", "path_rows", "timeline_rows", "wire_bytes"]


def wire_bytes(transport: Transport, size_bytes: NDArray[np.int64]) -> NDArray[np.int64]:
    """Bytes of messages on a link; shape (messages,).

    Headers and gaps are included, and each packet counts once.
    """
    packets = np.maximum(-(-size_bytes // transport.mtu_bytes), 1)
    each = transport.data_overhead_bytes + transport.telemetry_bytes + transport.interframe_bytes
    return np.asarray(size_bytes + packets * each + transport.first_extra_bytes)


def timeline_rows(outcome: Outcome) -> dict[str, Any]:
    """Columns of the table ``timeline``, with begins added to the engine's ends."""
    rows, bin_ps = outcome.timeline, max(outcome.timeline_bin_ps, 1)
    columns = {name: rows[name] for name in rows.dtype.names or ()}
    # The last bin ends where the run does; all others have one length.
    return {"start_ps": (rows["at_ps"] - 1) // bin_ps * bin_ps, **columns}


def path_rows(outcome: Outcome) -> dict[str, Any]:
    """Columns of the table ``paths``."""
    rows = outcome.paths
    columns = {name: rows[name] for name in ("queue_pair", "port", "packets")}
    return columns | {"mean_queue_bytes": rows["queue_bytes"] / rows["packets"]}


def node_rows(fabric: Fabric) -> dict[str, Any]:
    """Columns of the table ``nodes``."""
    words = tier_words(fabric)
    return {
        "node": np.arange(len(fabric.node_names)),
        "name": list(fabric.node_names),
        "kind": ["host" if kind == HOST else "switch" for kind in fabric.node_kind.tolist()],
        "role": [words[tier][0] for tier in fabric.node_tier.tolist()],
        "tier": fabric.node_tier.astype(np.int64),
    }
