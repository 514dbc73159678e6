"""A suspect for the time of a run, and when a record of the run makes one.

Leaves out: who is suspected (`weftwork.study.answer.suspicion`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, get_args

from weftwork.spec.answer import CULPRIT_KINDS, NAMELESS, REACTIONS
from weftwork.spec.scenario.kind_reading import either

if TYPE_CHECKING:
    from collections.abc import Callable

    from weftwork.spec.answer import CulpritIds, CulpritKind
    from weftwork.study.prepare.prepared import Prepared

__all__ = ["BUSY", "COLLIDED", "HASTY", "STANDINGS", "Standing", "Suspect", "are_few", "changed"]

# wrong: in this run, such as a fault; built: or set for all runs; reaction: an answer to what others did. Where costs
# are near, what is wrong is to blame before what is built, and both before a reaction.
Standing = Literal["wrong", "built", "reaction"]
STANDINGS: Final[tuple[Standing, ...]] = get_args(Standing)

_FEW: Final = 0.1  # chosen: of the links or NICs of a tier; where more of them differ, the fabric is built like that
_LEAST_PEERS: Final = 4  # chosen: of three, two alike may be the odd ones

COLLIDED: Final = 1.2  # chosen: times the bytes of the mean of equal ports
HASTY: Final = 16  # of the timeout; chosen: what is left of it costs little beside the whole
BUSY: Final = 0.3  # chosen: of the time; what is used less held nobody up for long


@dataclass(frozen=True, kw_only=True, slots=True)
class Suspect:
    """A suspect, without which a run can be simulated again.

    Attributes
    ----------
    kind, name, key, text : as in `weftwork.spec.answer.Culprit`
    change : the run without it, from the run or from the run without another suspect; None where no engine can run it
    job : index of the job whose time it costs; None: of all
    case : of the table ``what_if``, where one can also buy the world without it; else empty
    bound_share : at most so much of what the run took; None: what computing leaves
    start_ps, end_ps : when it is at work; None: all the time
    lasts_ps : for how long it holds anybody up by itself, all its turns together; None: to the end
    standing : where it differs from that of its kind; None: that of its kind
    file : of a user's own that suspects it; None: a kind of the catalogue
    ids : where it is; None where that is not known

    Raises
    ------
    ValueError : a field is of another type, or has a value that does not exist
    """

    kind: CulpritKind
    name: str
    key: str | None
    text: str
    change: Callable[[Prepared], Prepared] | None
    job: int | None = None
    case: str = ""
    bound_share: float | None = None
    start_ps: int | None = None
    end_ps: int | None = None
    lasts_ps: int | None = None
    standing: Standing | None = None
    file: str | None = None
    ids: CulpritIds | None = None

    def __post_init__(self) -> None:
        """Refuse wrong fields, which a user's own file may have."""
        kinds = tuple(kind for kind in CULPRIT_KINDS if kind not in NAMELESS)
        if self.kind not in kinds:
            raise ValueError(f"the kind of a suspect is {self.kind!r}, wanted {either(kinds)}")
        texts: dict[str, object] = {
            "name": self.name,
            "text": self.text,
            "key": self.key if self.key is not None else "-",
        }
        for field, text in texts.items():
            if not isinstance(text, str) or not text:
                raise ValueError(f"{field} of a suspect is {text!r}, wanted a text")
        if self.change is not None and not callable(self.change):
            raise ValueError(f"change of suspect '{self.name}' is a {type(self.change).__name__}, wanted a function")
        if self.bound_share is not None and not isinstance(self.bound_share, (int, float)):
            raise ValueError(
                f"bound_share of suspect '{self.name}' is {self.bound_share!r}, wanted a share of the time"
            )

    @property
    def is_reaction(self) -> bool:
        """Whether it answers to what others did, as a congestion control or a timeout does."""
        return self.key in REACTIONS

    @property
    def label(self) -> str:
        """A label that distinguishes the suspect from all others."""
        return f"{self.kind} {self.name} {self.job}"


def changed(function: Callable[..., Prepared], *arguments: object, **keys: object) -> Callable[[Prepared], Prepared]:
    """Make a change of a prepared run from a function whose first parameter is the run.

    Parameters
    ----------
    function : such as those of `weftwork.study.prepare.what_if`
    arguments, keys : its other arguments
    """
    return lambda prepared: function(prepared, *arguments, **keys)


def are_few(odd: int, peers: int) -> bool:
    """Whether devices unlike their peers are so few that the fabric is not meant like that.

    At most a tenth of all, or a single one of four and more.

    Parameters
    ----------
    odd : devices that differ
    peers : all of them, the odd ones too
    """
    return 0 < odd <= max(_FEW * peers, 1 if peers >= _LEAST_PEERS else 0)
