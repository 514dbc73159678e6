"""Ctrl-C and SIGTERM: end a program within a second.

Nothing half-written stays behind. A signal raises `Stopped`, a KeyboardInterrupt, in the main thread. Where something
is worth keeping, the first signal is a wish instead, which the work looks at. C code keeps Python from raising, so a
thread watches too: what has not ended by itself in time is ended, after the unfinished files are removed
(docs/decisions/0022). Imports little, so that a program can be stopped while it loads the rest.
Leaves out: C code that holds the interpreter's lock, which keeps the thread waiting; SIGHUP and SIGQUIT, which end a
process as ever; threads other than the main one, where Python delivers no signals.
"""

from __future__ import annotations

import atexit
import os
import select
import signal
import sys
import threading
import time
from contextlib import contextmanager, suppress
from importlib.machinery import ExtensionFileLoader

TYPE_CHECKING = False  # as `typing` has it, whose import takes longer than this file's
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path
    from types import FrameType
    from typing import NoReturn

__all__ = ["ONE_PRESS_S", "SIGNALS", "Stopped", "leave", "state", "stoppable", "unfinished"]

SIGNALS = (signal.SIGINT, signal.SIGTERM)
GRACE_S = 0.6  # chosen: the rest of a second is for a loaded machine
AGAIN_S = 0.02  # chosen: little beside GRACE_S
ONE_PRESS_S = 0.1  # chosen: timeout(1) of GNU coreutils sends its signal twice, to the process and to its group
_STILL_WRITING = b"weftwork: stopped; what was done is being written. Ctrl-C again ends at once and keeps nothing\n"


class Stopped(KeyboardInterrupt):
    """A signal has asked the program to end.

    Parameters
    ----------
    number : of the signal
    """

    def __init__(self, number: int) -> None:
        self.number = number
        super().__init__(signal.Signals(number).name)


class _State:
    """The stop state of this process.

    Signals belong to a process, so there is one state.
    """

    def __init__(self) -> None:
        self.heard: int | None = None  # number of the first signal
        self.is_raised = False  # `Stopped` is on its way, or was caught
        self.is_put_off = False  # the signal came while nothing could be raised, and is to be sent again
        self.is_keeping = False  # the first signal is a wish: the work ends by itself, and keeps what it has
        self.files: dict[Path, None] = {}  # unfinished files and folders

    def begin(self) -> None:
        """Forget signals of an earlier program in this process."""
        self.heard, self.is_raised, self.is_put_off, self.is_keeping = None, False, False, False

    def signal(self) -> int | None:
        """Number of the received signal, if any."""
        return self.heard


state = _State()


@contextmanager
def unfinished(path: Path) -> Iterator[Path]:
    """Remove a file or folder if the body fails, or is stopped.

    Parameters
    ----------
    path : a temporary name; where the body has renamed it nothing is removed
    """
    state.files[path] = None
    try:
        yield path
    except BaseException:
        _remove(path)
        raise
    finally:
        state.files.pop(path, None)


def stoppable(command: Callable[[], int], *, is_program: bool) -> int:
    """Call a command that a signal can end within a second.

    Returns its exit code: 128 + the signal's number after a signal.

    Parameters
    ----------
    command : returns its exit code
    is_program : whether the process ends with it; then it ends here where a signal came, without taking apart in peace
        what it has built, and signals that come later end it silently
    """
    if threading.current_thread() is not threading.main_thread():
        return command()
    state.begin()
    before = {number: signal.getsignal(number) for number in SIGNALS}
    # a signal that is ignored stays so, as nohup wants it
    ours = [number for number, old in before.items() if old in (signal.SIG_DFL, signal.default_int_handler)]
    unraisable = sys.unraisablehook
    sys.unraisablehook = lambda raised: None if raised.exc_type is Stopped else unraisable(raised)
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    woken = signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    watch = threading.Thread(target=_watch, args=(reader,), daemon=True, name="weftwork-stop")
    watch.start()
    try:
        try:
            for number in ours:
                signal.signal(number, _raise)
            code = command()
            state.is_raised = True  # it is over: nothing is raised any more
        except Stopped:
            code = 128
        except Exception:  # what a library has made of the signal: DuckDB a RuntimeError
            if state.signal() is None:
                raise
            code = 128
        if (heard := state.signal()) is not None:
            code = 128 + heard
            _tell(heard)
            if is_program:
                atexit._run_exitfuncs()  # noqa: SLF001 - as multiprocessing ends its processes; what Python takes apart
                leave(code)  # after that costs time and helps nobody
    finally:
        for number, old in before.items():
            signal.signal(number, signal.SIG_DFL if is_program and number in ours else old)
        sys.unraisablehook = unraisable
        signal.set_wakeup_fd(woken)
        os.close(writer)
        watch.join()
        os.close(reader)
    return code


def leave(code: int) -> NoReturn:
    """End the process now: remove unfinished files and end its children.

    Nothing more is written.

    Parameters
    ----------
    code : exit code
    """
    for path in tuple(state.files):
        _remove(path)
    if "multiprocessing" in sys.modules:
        from multiprocessing import active_children

        for child in active_children():
            child.kill()
    os._exit(code)


def _tell(number: int) -> None:
    """Flush the output, and report the signal on standard error."""
    for stream, text in ((sys.stdout, ""), (sys.stderr, f"stopped by {signal.Signals(number).name}\n")):
        with suppress(OSError, ValueError):  # whoever read has gone, as Ctrl-C ends all of a pipe; or it is closed
            if stream is not None:
                stream.write(text)
                stream.flush()


def _raise(number: int, frame: FrameType | None) -> None:
    """Handle a signal: raise once.

    A second signal does not disturb the clean-up that the first signal began.
    """
    if state.heard is None:
        state.heard = number
    if state.is_raised:
        return
    if _is_in_loading(frame):
        state.is_put_off = True
        return
    state.is_raised = True
    raise Stopped(number)


def _is_in_loading(frame: FrameType | None) -> bool:
    """Whether a native library is loading, so that Python must not raise.

    DuckDB's ends the process by an abort where it does (nanobind, ``enum_create``).
    """
    loading = (ExtensionFileLoader.create_module.__code__, ExtensionFileLoader.exec_module.__code__)
    while frame is not None:
        if frame.f_code in loading:
            return True
        frame = frame.f_back
    return False


def _watch(reader: int) -> None:
    """End a process that does not stop in time after a signal.

    A signal that was put off is sent again.

    Parameters
    ----------
    reader : gives a byte for each signal, and its end when the program is over
    """
    first = _next(reader, None)
    if first is None:
        return
    began_s = time.monotonic()
    is_again = is_ours = False
    while (left_s := began_s + GRACE_S - time.monotonic()) > 0:
        number = _next(reader, min(left_s, AGAIN_S))
        if number is None:
            return
        is_again |= number != 0 and not is_ours and time.monotonic() - began_s > ONE_PRESS_S
        is_ours = state.is_put_off
        if is_ours:
            state.is_put_off = False
            signal.pthread_kill(threading.main_thread().ident or 0, first)
    if state.is_keeping and not is_again:
        _say(_STILL_WRITING)
        if _next(reader, None) is None or _next(reader, GRACE_S) is None:
            return
    _say(f"stopped by {signal.Signals(first).name}\n".encode())
    leave(128 + first)


def _say(text: bytes) -> None:
    """Write to standard error past its buffer, which the main thread may hold."""
    with suppress(OSError):  # closed by the caller
        os.write(2, text)


def _next(reader: int, wait_s: float | None) -> int | None:
    """Wait for the next of `SIGNALS`: 0 after the timeout, None at the end."""
    while select.select([reader], [], [], wait_s)[0]:
        told = os.read(reader, 1)
        if not told:
            return None
        if told[0] in SIGNALS:
            return told[0]
    return 0


def _remove(path: Path) -> None:
    """Remove a file or folder that others may still rename or write."""
    import shutil

    for _ in range(3):
        with suppress(OSError):  # it has its final name, or cannot be removed, and what ended the body is told
            if path.is_dir():
                shutil.rmtree(path, ignore_errors=True)
            else:
                path.unlink()
                return
