"""Floor 7: the command line.

The commands are in `weftwork.cli.commands`, one file for each; errors become exit codes.

Exit codes: 0 done, 1 a run that did not finish or an error not the user's, 2 the user's mistake, 128 + the number of
the signal that stopped it: 130 after Ctrl-C, 143 after SIGTERM.
"""

import gc
import os
import sys

__all__ = ["main", "program"]

# Objects after which Python looks for cycles among the new ones. chosen: with Python's own 700 a run spends a tenth of
# its time on looking at programs and at what it imports, which stay, and with 50,000 a fifteenth; it needs 2 % more
# memory with this.
_NEW_OBJECTS = 500_000

# Settings of libraries for this process, where the user has not set them. chosen: the threads that OpenBLAS starts with
# NumPy spin while they wait for products of matrices, of which there are few and small; and Pydantic looks through all
# installed packages for plugins.
_SETTINGS = {"OPENBLAS_NUM_THREADS": "1", "PYDANTIC_DISABLE_PLUGINS": "__all__"}


def main(arguments: list[str] | None = None) -> None:
    """Run the command line and leave with its exit code.

    Mistakes of the user are reported without a traceback.

    Parameters
    ----------
    arguments : those of the process by default, which then ends with the command
    """
    is_program = arguments is None
    if is_program:
        _end_silently()
        for name, value in _SETTINGS.items():
            os.environ.setdefault(name, value)
        gc.set_threshold(_NEW_OBJECTS, *gc.get_threshold()[1:])
    from weftwork.base.stop import stoppable

    given = sys.argv[1:] if arguments is None else arguments
    code = stoppable(lambda: _exit_code(given), is_program=is_program)
    sys.exit(code)


def program() -> None:
    """Run the command line as a process of its own, which ends with it.

    The process ends without taking apart what it has built, which is a tenth of a run's time: what others have asked
    for at its end happens, and the output arrives. Where a thread still works, or somebody measures the program and
    reports after it, Python ends it as ever.
    """
    try:
        main()
    except SystemExit as end:
        if isinstance(end.code, int):
            _leave(end.code)
        raise


def _leave(code: int) -> None:
    """End the process now, unless somebody has more to do in it."""
    import atexit
    import threading

    is_at_work = any(not thread.daemon for thread in threading.enumerate() if thread is not threading.current_thread())
    if is_at_work or sys.getprofile() is not None or sys.gettrace() is not None:
        return
    atexit._run_exitfuncs()  # noqa: SLF001 - as multiprocessing ends its processes
    try:
        for stream in (sys.stdout, sys.stderr):
            if stream is not None and not stream.closed:
                stream.flush()
    except OSError:  # whoever read has gone: Python says so as ever
        return
    os._exit(code)


def _end_silently() -> None:
    """Let Ctrl-C end the process without a traceback.

    This holds until `stoppable` handles Ctrl-C.
    """
    import _signal  # what `signal` is made of, without the ten milliseconds of importing that

    if _signal.getsignal(_signal.SIGINT) is _signal.default_int_handler:
        _signal.signal(_signal.SIGINT, _signal.SIG_DFL)


def _exit_code(arguments: list[str]) -> int:
    # imported here, where a signal is heard
    from weftwork.cli.leave import exit_code
    from weftwork.cli.plain import plain_command

    as_json = "--json" in arguments
    plain = plain_command(arguments)
    if plain is not None:
        return exit_code(plain, as_json=as_json)
    from weftwork.cli.commands import OPTION_ERROR, root_command

    return exit_code(
        lambda: root_command()(arguments, prog_name="weftwork", standalone_mode=False),
        as_json=as_json,
        option_error=OPTION_ERROR,
    )
