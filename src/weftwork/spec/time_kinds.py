"""Kinds of time of a GPU that trains: what the time of a rank goes to, and what people call each kind.

Results, the answer, pages and charts read this list; a new kind is one row. Its place is its place in figures, and
gives its colour.
Leaves out: how time is told apart (`weftwork.study.results.training_time`).
"""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, Literal

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["COMMUNICATION", "COMPUTATION", "IDLE", "TIME_KINDS", "TimeGroup", "TimeKind"]

TimeGroup = Literal["computing", "communication", "idle", "other"]


@dataclass(frozen=True, kw_only=True, slots=True)
class TimeKind:
    """A kind of time.

    Attributes
    ----------
    name : as tables have it
    group : ``computing``; ``communication`` between ranks, which counts as far as computing does not hide it; ``idle``;
        or something else
    text : what the time went to, in a sentence
    words : the same in a table
    short : the same in the legend of a figure
    colours : in a figure, on a light and on a dark page
    """

    name: str
    group: TimeGroup
    text: str
    words: str
    short: str
    colours: tuple[str, str]

    @property
    def number(self) -> str:
        """Beginning of the names of its numbers in a summary; ``_ps`` and ``_share`` follow."""
        if self.name == "bubble":
            return self.name
        return f"{'exposed' if self.group == 'communication' else 'spent'}_{self.name}"


def _kind(
    name: str, group: TimeGroup, text: str, colours: tuple[str, str], *, words: str = "", short: str = ""
) -> TimeKind:
    return TimeKind(
        name=name, group=group, text=text, words=words or text, short=short or words or text, colours=colours
    )


def _parallel(name: str, colours: tuple[str, str], *, short: str = "") -> TimeKind:
    return TimeKind(
        name=name,
        group="communication",
        text=f"{name} parallel communication that computing did not hide",
        words=f"{name}, exposed",
        short=f"{short or f'{name} parallel'}, exposed",
        colours=colours,
    )


# Colours: computing is cool, exposed communication warm, waiting grey. Okabe and Ito where they reach; the others
# (gradients of weights, recomputation, optimizer, data, offloaded activations, checkpoint, loading) are chosen between.
_KINDS: Final = (
    _kind("forward", "computing", "forward passes", ("#0072b2", "#2b8fd6"), short="forward"),
    _kind("backward", "computing", "backward passes", ("#56b4e9", "#7cc7f2"), short="backward"),
    _kind("weights", "computing", "gradients of weights behind their backward passes", ("#2f8f9d", "#4fb3bf"),
          words="gradients of weights"),
    _kind("recompute", "computing", "recomputation", ("#7a6fc4", "#9d92e0")),
    _kind("optimizer", "computing", "the optimizer", ("#009e73", "#19b58a"), short="optimizer"),
    _kind("launch", "computing", "waiting for the CPU", ("#8fa3b5", "#7890a5"), words="waiting for CPU",
          short="waiting for the CPU"),
    _parallel("tensor", ("#e69f00", "#e69f00")),
    _parallel("context", ("#f0e442", "#f0e442")),
    _parallel("expert", ("#d55e00", "#e0701c")),
    _parallel("pipeline", ("#cc79a7", "#d68fb7"), short="pipeline sends"),
    _parallel("data", ("#a3194b", "#cf3f74")),
    _kind("offload", "other", "transfers of offloaded activations that computing did not hide", ("#7a4b1e", "#b8824a"),
          words="offloaded activations", short="offloaded activations, exposed"),
    _kind("bubble", "idle", "the bubble of the pipeline", ("#e1e5ea", "#2a323d"), words="the bubble", short="bubble"),
    _kind("skew", "idle", "waiting for other ranks", ("#bcc4cd", "#4a5563"), words="waiting for ranks",
          short="waiting for other ranks"),
    _kind("checkpoint", "other", "checkpoints", ("#8a6a3a", "#a88850"), short="checkpoint"),
    _kind("loading", "other", "loading data", ("#b9a36b", "#c9b47c")),
    _kind("other", "other", "other things", ("#6d7681", "#8b95a1"), short="other"),
)  # fmt: skip
TIME_KINDS: Final[Mapping[str, TimeKind]] = MappingProxyType({kind.name: kind for kind in _KINDS})


def _of(group: TimeGroup) -> tuple[str, ...]:
    return tuple(kind.name for kind in _KINDS if kind.group == group)


COMPUTATION: Final = (*_of("computing"), "compute")  # passes of flows that no stage names are ``compute``
COMMUNICATION: Final = _of("communication")
IDLE: Final = _of("idle")
