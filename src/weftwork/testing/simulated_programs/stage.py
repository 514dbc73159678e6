"""Threads of programs that take turns, and virtual time that passes while all of them wait.

One thread runs at a time. It runs until it waits: for a device, for another thread, for a socket or for an instant.
When every thread waits, the simulated fabric runs to the next event that one of them waits for. Whatever a thread
computes takes no virtual time. The order of the turns follows from the programs alone, so a run repeats.
Source: own.
Leaves out: what makes a thread wait here instead of in the system, see `substitutes`.
"""

from __future__ import annotations

import select
import threading
from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Protocol

from weftwork.base.clock import NEVER_PS
from weftwork.base.errors import ProgramError

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Passage", "Strand", "TurnStage"]

PS_PER_S: Final = 1_000_000_000_000
_SHORTEST_POLL_PS: Final = 1_000_000  # chosen: 1 us, below a way through one switch and back
_LONGEST_POLL_PS: Final = 1_000_000_000  # chosen: 1 ms; a program that polls for seconds takes thousands of turns
_LONGEST_SPIN_PS: Final = 10_000_000  # chosen: 10 us, by which a loop that reads the clock may miss its instant
_MOST_READINGS: Final = 1000  # chosen: of the clock in one turn; a loop that waits for an instant so has to see it pass


class Passage(Protocol):
    """Whatever lets virtual time pass: the simulated fabric."""

    @property
    def now_ps(self) -> int:
        """The present instant."""

    def run(self, has_come: Callable[[], bool], limit_ps: int) -> bool:
        """Run until something has come or to an instant.

        False where nothing came, and the limit is reached or nothing is left to happen.
        """


@dataclass(eq=False)
class Strand:
    """A thread of a program.

    Parameters
    ----------
    name : of the thread
    program : whatever the thread belongs to
    is_main : the first thread of its program
    is_daemon : nobody waits for its end

    Attributes
    ----------
    turn : released when its turn comes
    until : ends its wait; None where only a call or an instant does
    deadline_ps : ends its wait without success
    waits_for : in words, for whoever reads that nothing goes on
    descriptor : of the socket that it waits for, or None
    nic : whose events end its wait, though the condition does not hold; None of other waits
    came : the wait ended by its condition
    poll_ps, spin_ps : time that the next poll without a result takes, and the next look at the clock in a loop
    readings : of the clock in this turn
    is_done : its thread has ended
    is_told_to_end : its thread has to end at its next turn
    """

    name: str
    program: Any
    is_main: bool = False
    is_daemon: bool = False
    turn: Any = field(default_factory=threading.Lock)
    until: Callable[[], bool] | None = None
    deadline_ps: int = NEVER_PS
    waits_for: str = ""
    descriptor: int | None = None
    nic: object = None
    came: bool = False
    poll_ps: int = _SHORTEST_POLL_PS
    spin_ps: int = _SHORTEST_POLL_PS
    readings: int = 0
    is_done: bool = False
    is_told_to_end: bool = False


class TurnStage:
    """Gives turns to threads, and lets time pass.

    Parameters
    ----------
    passage : virtual time
    on_turn : called with the strand whose turn it is
    where : the place of a thread, by its identity, for messages
    on_progress : called now and then while time passes

    Attributes
    ----------
    touched : NICs at which something happened since the waits were looked at
    """

    def __init__(
        self,
        passage: Passage,
        on_turn: Callable[[Strand], None] = lambda _: None,
        where: Callable[[int], str] = lambda _: "",
        on_progress: Callable[[int], None] = lambda _: None,
    ) -> None:
        self._passage: Final = passage
        self._on_turn: Final = on_turn
        self._where: Final = where
        self._on_progress: Final = on_progress
        self._director: Final = threading.get_ident()
        self._strands: Final[dict[int, Strand]] = {}  # by thread
        self._ready: Final[deque[Strand]] = deque()
        self._waiting: Final[dict[Strand, None]] = {}  # in the order in which they began to wait
        self._baton: Final = _real_lock()
        self._baton.acquire()
        self.touched: Final[dict[object, None]] = {}

    @property
    def now_ps(self) -> int:
        """The present virtual instant."""
        return self._passage.now_ps

    def is_here(self) -> bool:
        """Whether this thread lives in virtual time."""
        thread = threading.get_ident()
        return thread in self._strands or thread == self._director

    def strand(self) -> Strand | None:
        """The strand of this thread, or None."""
        return self._strands.get(threading.get_ident())

    # Called by the director

    def add(self, strand: Strand) -> None:
        """Add a strand that has not begun; its thread calls `begin` first."""
        strand.turn = _real_lock()
        strand.turn.acquire()
        self._ready.append(strand)

    def run(self) -> None:
        """Give turns until every thread has ended that is no daemon.

        Raises
        ------
        ProgramError : every thread waits, and nothing is left to happen
        """
        while True:
            while self._ready:
                self._give_turn(self._ready.popleft())
                self._look()
            if not any(not strand.is_daemon for strand in self._waiting):
                return
            self._pass_time()

    def end(self) -> None:
        """End the threads that are left."""
        while self._waiting or self._ready:
            strand = self._ready.popleft() if self._ready else next(iter(self._waiting))
            self._waiting.pop(strand, None)
            strand.is_told_to_end = True
            self._give_turn(strand)

    def _give_turn(self, strand: Strand) -> None:
        strand.readings = 0
        self._on_turn(strand)
        strand.turn.release()
        self._baton.acquire()

    def _look(self) -> None:
        """Find the waits that have ended."""
        for strand in list(self._waiting):
            is_touched = strand.nic is not None and strand.nic in self.touched
            if strand.until is not None and strand.until():
                self._wake(strand, came=True)
            elif is_touched or strand.deadline_ps <= self.now_ps:
                self._wake(strand, came=False)
        self.touched.clear()

    def _wake(self, strand: Strand, *, came: bool) -> None:
        if strand in self._waiting:
            del self._waiting[strand]
            strand.came = came
            self._ready.append(strand)

    def _pass_time(self) -> None:
        limit_ps = min((strand.deadline_ps for strand in self._waiting), default=NEVER_PS)
        self._on_progress(self.now_ps)
        has_come = self._passage.run(lambda: bool(self.touched), limit_ps)
        self._look()
        if self._ready or has_come or limit_ps < NEVER_PS:
            return
        descriptors = [strand.descriptor for strand in self._waiting if strand.descriptor is not None]
        if not descriptors:
            raise ProgramError(self._why())
        select.select(descriptors, (), ())  # somebody outside the simulation has to speak now
        self._look()

    def _why(self) -> str:
        threads = {strand: thread for thread, strand in self._strands.items()}
        waits = "".join(
            f"\n  {strand.name}{self._where(threads[strand])} waits for {strand.waits_for}" for strand in self._waiting
        )
        return f"At {self.now_ps / PS_PER_S:.9f} s every thread waits, and no packet or timer is left:{waits}"

    # Called by strands

    def begin(self, strand: Strand) -> None:
        """Wait in a new thread for its first turn."""
        strand.turn.acquire()
        self._strands[threading.get_ident()] = strand
        if strand.is_told_to_end:
            raise SystemExit

    def finish(self) -> None:
        """End the strand of this thread."""
        strand = self._strands.pop(threading.get_ident())
        strand.is_done = True
        self._baton.release()

    def wait(
        self,
        until: Callable[[], bool] | None,
        timeout_s: float | None = None,
        *,
        waits_for: str,
        descriptor: int | None = None,
    ) -> bool:
        """Wait in this thread.

        Parameters
        ----------
        until : ends the wait; None where `wake` or the timeout does
        timeout_s : virtual seconds, or None
        waits_for : in words
        descriptor : of the socket that the condition asks

        Returns
        -------
        False where the time was over before
        """
        strand = self._current()
        strand.spin_ps = _SHORTEST_POLL_PS
        if until is not None and until():
            return True
        if timeout_s is not None and timeout_s <= 0:
            timeout_s = 0.0
        strand.deadline_ps = NEVER_PS if timeout_s is None else self.now_ps + round(timeout_s * PS_PER_S)
        strand.until, strand.waits_for, strand.descriptor, strand.nic = until, waits_for, descriptor, None
        return self._leave(strand)

    def poll(self, nic: object, until: Callable[[], bool]) -> None:
        """Let a little time pass, since a poll of a NIC has found nothing.

        The time ends early when something happens at the NIC. It doubles from poll to poll as long as nothing does.
        """
        strand = self._current()
        if until():
            strand.poll_ps = _SHORTEST_POLL_PS
            return
        strand.deadline_ps = self.now_ps + strand.poll_ps
        strand.until, strand.waits_for, strand.descriptor, strand.nic = until, "a poll", None, nic
        before_ps = self.now_ps
        came = self._leave(strand)
        is_early = self.now_ps < before_ps + strand.poll_ps
        strand.poll_ps = _SHORTEST_POLL_PS if came or is_early else min(2 * strand.poll_ps, _LONGEST_POLL_PS)

    def wake(self, strand: Strand) -> None:
        """End the wait of another strand; its turn comes later."""
        self._wake(strand, came=True)

    def read_clock(self) -> int:
        """The present instant, for a program that asks for the time."""
        strand = self.strand()
        if strand is not None:
            strand.readings += 1
            if strand.readings > _MOST_READINGS:
                spin_ps = strand.spin_ps
                self.wait(None, spin_ps / PS_PER_S, waits_for="an instant")
                strand.spin_ps = min(2 * spin_ps, _LONGEST_SPIN_PS)
        return self.now_ps

    def _current(self) -> Strand:
        strand = self.strand()
        if strand is None:
            raise ProgramError("a function that the device calls waits; wait in a thread of the program instead")
        return strand

    def _leave(self, strand: Strand) -> bool:
        """Give the turn away, and take it back when the wait has ended."""
        if strand.is_told_to_end:
            raise SystemExit
        strand.came = False
        self._waiting[strand] = None
        self._baton.release()
        strand.turn.acquire()
        if strand.is_told_to_end:
            raise SystemExit
        return strand.came


_real_lock: Final = threading.Lock  # before anything is put in its place
