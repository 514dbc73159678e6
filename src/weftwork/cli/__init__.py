"""Floor 6: the command line.

The commands are in `weftwork.cli.commands`, one file for each; errors become exit codes.

Exit codes: 0 done, 1 a run that did not finish or an error not the user's, 2 the user's mistake, 128 + the number of
the signal that stopped it: 130 after Ctrl-C, 143 after SIGTERM.
"""

import sys

__all__ = ["main"]


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
    from weftwork.base.stop import stoppable

    given = sys.argv[1:] if arguments is None else arguments
    sys.exit(stoppable(lambda: _exit_code(given), is_program=is_program))


def _end_silently() -> None:
    """Let Ctrl-C end the process without a traceback.

    This holds until `stoppable` handles Ctrl-C.
    """
    import _signal  # what `signal` is made of, without the ten milliseconds of importing that

    if _signal.getsignal(_signal.SIGINT) is _signal.default_int_handler:
        _signal.signal(_signal.SIGINT, _signal.SIG_DFL)


def _exit_code(arguments: list[str]) -> int:
    # imported here, where a signal is heard
    from weftwork.cli.commands import root_command
    from weftwork.cli.leave import exit_code

    as_json = "--json" in arguments
    return exit_code(lambda: root_command()(arguments, prog_name="weftwork", standalone_mode=False), as_json=as_json)
