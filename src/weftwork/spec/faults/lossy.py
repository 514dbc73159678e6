"""Makes a link lose each packet with a probability, in each direction."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from weftwork.base.fix import OtherKey
from weftwork.spec.device import Record
from weftwork.spec.fault_kind import Change, FaultKind
from weftwork.spec.scenario.kinds import Number
from weftwork.spec.scenario.rows import row

if TYPE_CHECKING:
    from weftwork.spec.fault_changes import PlaceName
    from weftwork.spec.scenario.choice import KeyFindings

__all__ = ["FAULT", "Keys"]


class Keys(Record):
    """The loss of the link."""

    loss: float | None = row(
        "loss",
        Number(low=0, high=1, unit="probability"),
        absent="missing if the event is lossy",
        text="Probability that a packet vanishes on the link, in each direction.",
        source="chosen: none",
    )


def _check(keys: Keys, _: PlaceName, findings: KeyFindings) -> None:
    if keys.loss is None and findings.is_sound("loss"):
        findings.wrong("loss", "missing, wanted the probability that a packet vanishes, such as 0.001")


def _check_flows(keys: Keys, findings: KeyFindings) -> None:
    """Refuse a loss with which no flow has a mean time."""
    if findings.is_sound("loss") and keys.loss is not None and keys.loss >= 1:
        text = "found a link that loses all packets, so that no flow ever ends; wanted less than 1, or event: down"
        findings.wrong("loss", text, OtherKey("event", "down"))


def _words(keys: Keys) -> str:
    return f"loses {100 * (keys.loss or 0):g} % of its packets"


def _begins(keys: Keys) -> tuple[Change, ...]:
    return (Change(name="lossy", loss=keys.loss or 0.0),)


FAULT: Final = FaultKind(
    source="docs/models/faults.md; docs/models/flow-losses.md",
    keys=Keys,
    order=4,
    places=("link",),
    words=_words,
    begins=_begins,
    check=_check,
    check_fidelity={"flow": _check_flows},
)
