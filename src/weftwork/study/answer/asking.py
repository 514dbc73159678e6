"""Ask beside a finished run: who may be to blame, and what the run takes in other worlds.

Leaves out: who is suspected of what (`weftwork.study.answer.suspects`), which worlds there are
(`weftwork.study.answer.worlds`), and what comes of them (`weftwork.study.answer.answer`).
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from functools import partial
from typing import TYPE_CHECKING

from weftwork.base.errors import ConfigError
from weftwork.study.answer.suspects import suspects
from weftwork.study.answer.worlds import Extent, World, chosen
from weftwork.study.run.ending import is_done
from weftwork.study.run.execute import Execution, execute

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from weftwork.study.answer.suspect import Suspect
    from weftwork.study.answer.suspicion import Suspicion
    from weftwork.study.prepare.prepared import Prepared
    from weftwork.study.run.execute import Progress

__all__ = ["AskedExecution", "with_worlds"]


@dataclass(frozen=True, kw_only=True, slots=True)
class AskedExecution(Execution):
    """The output of an engine, with what was asked beside it.

    Attributes
    ----------
    suspects : who may be to blame for what the run took, the likeliest first; empty where it did not end
    worlds : other worlds, what was prepared for each, and what came of it; empty where none was asked for, or where
        the run did not end
    refused : other worlds that cannot be, each with the reason
    left_worlds : other worlds that somebody's stop left out; the run itself had ended before
    """

    suspects: tuple[Suspect, ...] = ()
    worlds: tuple[tuple[World, Prepared, Execution], ...] = ()
    refused: tuple[tuple[World, str], ...] = ()
    left_worlds: int = 0


def with_worlds(
    prepared: Prepared,
    execution: Execution,
    on_progress: Callable[[Progress], None] | None = None,
    *,
    what_if: Extent = "auto",
    suspicions: Mapping[str, Suspicion] | None = None,
) -> AskedExecution:
    """Ask for the suspects of a run, and run the worlds without them.

    Parameters
    ----------
    prepared : what was run
    execution : of it
    on_progress : as `weftwork.study.run.execute.execute` calls it, for each world
    what_if : which other worlds are simulated: ``auto``: those that cost less than the run itself; ``all``; ``none``
    suspicions : kinds of suspects of a user's own, of `weftwork.study.answer.suspects.own_suspicions`; None: none

    Raises
    ------
    CodeError : a file of a user's own is wrong
    """
    asked = AskedExecution(**{field.name: getattr(execution, field.name) for field in fields(Execution)})
    if not is_done(prepared, execution):
        return asked
    asked = replace(asked, suspects=tuple(suspects(prepared, execution, suspicions)))
    if what_if == "none" or execution.interrupted:
        return asked
    others: list[tuple[World, Prepared, Execution]] = []
    refused: list[tuple[World, str]] = []
    wanted = chosen(prepared, asked.suspects, what_if)
    for number, world in enumerate(wanted, 1):
        hears = None if on_progress is None else partial(_in_world, on_progress, f"what-if {number} of {len(wanted)}")
        try:
            other = replace(world.make(), series=None, is_for_its_time=True)
            ran = execute(other, hears, has_loss_bounds=False)
        except ConfigError as wrong:  # such as a memory that does not hold the headroom of other links
            refused.append((world, "; ".join(mistake.text for mistake in wrong.mistakes)))
            continue
        if ran.interrupted:
            left = len(wanted) - number + 1
            return replace(asked, worlds=tuple(others), refused=tuple(refused), left_worlds=left)
        others.append((world, other, ran))
    return replace(asked, worlds=tuple(others), refused=tuple(refused))


def _in_world(on_progress: Callable[[Progress], None], world: str, now: Progress) -> None:
    on_progress(replace(now, world=world))
