"""The range of times of a run on flows whose links lose packets.

A loss is its mean cost there. What was drawn in a run of packets may be less, or much more where a timeout is long.
Leaves out: runs of packets, whose seeds tell their range (`weftwork.study.results.seeds`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from weftwork.base.caveat import Caveat, caveats_by_subject
from weftwork.base.units import DURATION, format_quantity
from weftwork.policies.interface import Kind
from weftwork.study.results.measure import taken_ps

if TYPE_CHECKING:
    from weftwork.policies.interface import CongestionControl
    from weftwork.study.prepare.prepared import Prepared
    from weftwork.study.run.execute import Execution

__all__ = ["loss_caveats", "loss_range_ps"]


def loss_range_ps(prepared: Prepared, execution: Execution) -> tuple[int, int] | None:
    """The shortest time, and the time that one run in 1,000 exceeds; None where flows lose nothing, or did not end.

    Of several jobs, the slowest counts.

    Parameters
    ----------
    prepared : what was run
    execution : of it
    """
    if execution.loss_bounds is None:
        return None
    taken = [taken_ps(prepared, each) for each in (execution, *execution.loss_bounds)]
    ended = [max(each) for each in taken if each is not None]
    return (min(ended), max(ended)) if len(ended) == len(taken) else None


def loss_caveats(prepared: Prepared, execution: Execution) -> dict[str, Caveat]:
    """What a run on flows assumes of losses; empty where nothing is lost.

    Parameters
    ----------
    prepared : what was run
    execution : of it
    """
    bounds = loss_range_ps(prepared, execution)
    if bounds is None:
        return {}
    low, high = (format_quantity(DURATION, _rounded(bound)) for bound in bounds)
    text = (
        f"losses are their expected cost; of 1,000 runs with drawn losses, 999 take between {low} and {high}"
        if low != high
        else "losses are their expected cost, which is nothing here"
    )
    found = [Caveat(subject="engine.losses", kind="assumed", text=text)]
    control = prepared.policies["congestion_control"]
    if low != high and Kind.NAK in cast("CongestionControl", control.plugin).signals:
        text = f"flows leave out that '{control.name}' may slow down after a loss; take engine.fidelity: packet for it"
        found.append(Caveat(subject="transport.congestion_control", kind="assumed", text=text))
    return caveats_by_subject(found)


def _rounded(time_ps: int) -> int:
    """A time with three digits."""
    return int(float(f"{time_ps:.3g}"))
