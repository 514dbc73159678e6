"""Verdicts on a run for which no suspect is to blame: its own size, its own load, or not known.

`docs/models/answer.md`, section Evidence, has the rules. Leaves out: suspects (`weftwork.study.answer.answer`), and the
evidence in words (`weftwork.report.verdict_words`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from weftwork.spec.answer import Culprit
from weftwork.spec.verdicts import verdict_text

if TYPE_CHECKING:
    from weftwork.spec.answer import CulpritKind, Evidence

__all__ = ["nothing_sent", "verdict_without_culprit"]


def nothing_sent() -> Culprit:
    """The verdict on a run without any message or computing."""
    return _verdict("none", "nothing", "no message was sent, so that nothing has a time")


def verdict_without_culprit(evidence: Evidence, *, has_untried: bool) -> Culprit:
    """The verdict on a run that ended, for which no suspect and no part of its time is to blame.

    Parameters
    ----------
    evidence : of the run
    has_untried : whether there are suspects without which the run was not simulated

    Returns
    -------
    ``none`` only if a resource was full of useful work, nothing was in trouble and no suspect is untried
    """
    if has_untried or not evidence.is_full:
        return _verdict("unknown", "not known", "no suspect explains the time")
    if evidence.is_troubled:
        return _verdict("load", "its own load", f"fills {evidence.resources[0].name}")
    return _verdict("none", "nothing", verdict_text("run.healthy"))


def _verdict(kind: CulpritKind, name: str, text: str) -> Culprit:
    cost = 0.0 if kind == "none" else None
    return Culprit(
        kind=kind, name=name, key=None, text=text, cost_s=cost, cost_share=cost, how="recorded", of="the run"
    )
