"""The runs in which a key has an effect, as a part of the key's row.

A key that flows do not read says in its own row what they do instead; a key that means nothing unless a run has
something else names it. A run says so of each key that its user has set (`weftwork.study.prepare.ignored_keys`).
Leaves out: keys that mean nothing beside another key of their section (``only`` and ``unless`` of
`weftwork.spec.scenario.rows.KeyRow`), which reading refuses.
Source: docs/models/flow-engine.md, what the flow engine leaves out.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

__all__ = [
    "ALWAYS",
    "NO_ACKS",
    "NO_LOSS",
    "NO_ORDER",
    "NO_PRIORITIES",
    "NO_QUEUES",
    "Effect",
    "Need",
]

# what flows do instead of reading a key
NO_QUEUES: Final = "share links and fill no queues"
NO_LOSS: Final = "lose nothing and send nothing again"
NO_ACKS: Final = "send no acknowledgements"
NO_ORDER: Final = "have no packets that could overtake each other"
NO_PRIORITIES: Final = "share links alike, whatever their priority"

# what a run must have, or a key changes nothing: pauses of packets (``pfc``); buffers that ports share, which credits
# do not need; a queue pair whose packets leave with more than one entropy; a host that takes packets at a rate; a fault
# of the scenario; a job that sends activations to its hosts
Need = Literal["entropies", "host interface", "pauses", "shared buffers", "faults", "offloaded layers"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Effect:
    """The runs in which a key has an effect; by default in all.

    Parameters
    ----------
    flows : what flows do instead of reading the key, as words behind "flows"; empty: they read it
    lossy_flows : the same where links lose packets; None: as ``flows``
    reordered_flows : the same where packets of a connection take several paths, and the key lets its receiver cope;
        None: as ``flows``
    needs : what a run must have, or the key changes nothing; of several that are missing the last one is told. Those of
        packets (pauses, shared buffers, entropies, a host interface) are told of packets alone
    """

    flows: str = ""
    lossy_flows: str | None = None
    reordered_flows: str | None = None
    needs: tuple[Need, ...] = ()

    def instead(self, *, loses: bool, reorders: bool) -> str:
        """Return what flows do instead of reading the key; empty where they read it.

        Parameters
        ----------
        loses : whether a link loses packets
        reorders : whether packets of a connection take several paths

        Examples
        --------
        >>> Effect(flows=NO_LOSS, lossy_flows="").instead(loses=True, reorders=False)
        ''
        """
        words = self.flows if self.lossy_flows is None or not loses else self.lossy_flows
        return words if self.reordered_flows is None or not reorders else self.reordered_flows


ALWAYS: Final = Effect()
