"""The end of the command line: an error and an exit code.

The error is on standard error, and as JSON if asked.

Leaves out: errors of Weftwork that nobody foresaw; they keep their traceback.
"""

from __future__ import annotations

import json
import os
import sys
from io import TextIOWrapper
from typing import TYPE_CHECKING, Any, Final, TextIO

import typer

from weftwork.base.errors import (
    CodeError,
    ConfigError,
    EngineError,
    PeerError,
    ProgramError,
    UsageError,
    WeftworkError,
)
from weftwork.base.fix import document
from weftwork.base.memory import memory_limit
from weftwork.base.stop import state
from weftwork.cli.printable import printable

if TYPE_CHECKING:
    from collections.abc import Callable

    from weftwork.base.errors import Mistake

__all__ = ["FAILED", "INTERRUPTED", "MISTAKE", "exit_code"]

FAILED: Final = 1  # no mistake of the user's, yet not done
MISTAKE: Final = 2
INTERRUPTED: Final = 130  # 128 + SIGINT, as shells count; `weftwork.base.stop` makes 143 of it after SIGTERM
# What the parser of the options raises. Typer gives it no name of its own, and not every version has click's.
_OPTION_ERROR: Final[Any] = next(kind for kind in typer.BadParameter.__mro__ if kind.__name__ == "ClickException")


def exit_code(command: Callable[[], object], *, as_json: bool) -> int:
    """Call a command, and convert its exceptions to words and a code.

    Parameters
    ----------
    command : returns its exit code, or None for 0
    as_json : whether an error also goes to standard output, as one JSON object
    """
    if sys.stdout is None:  # closed by the caller, as with '>&-'
        typer.echo("standard output is closed: nothing was run", err=True)
        return FAILED
    _replace_what_cannot_be_shown(sys.stdout)
    try:
        code = _told(command, as_json=as_json)
        sys.stdout.flush()
    except BrokenPipeError:  # whoever read has seen enough
        _forget_output()
        return FAILED
    except OSError as error:
        _forget_output()
        typer.echo(f"cannot write{_place(error)}: {error.strerror}", err=True)
        return FAILED
    return code


def _told(command: Callable[[], object], *, as_json: bool) -> int:
    wrong: WeftworkError
    try:
        code = command()
    except (CodeError, ConfigError, UsageError) as error:
        if state.heard is not None:  # what a library has made of the signal is no mistake of the user's
            return FAILED
        typer.echo(printable(str(error)), err=True)
        code, text, wrong = MISTAKE, str(error), error
    except EngineError as error:
        text = f"an error of Weftwork itself; please report it: {error}"
        typer.echo(printable(text), err=True)
        code, wrong = FAILED, error
    except (PeerError, ProgramError) as error:
        typer.echo(printable(str(error)), err=True)
        code, text, wrong = FAILED, str(error), error
    except MemoryError:  # what no estimate foresaw
        text = f"memory ran out: the command took more than {memory_limit()}"
        typer.echo(text, err=True)
        code, wrong = FAILED, WeftworkError(text)
    except _OPTION_ERROR as error:
        error.show()
        code, text, wrong = error.exit_code, error.format_message(), UsageError(error.format_message())
    else:
        return code if isinstance(code, int) else 0
    if as_json:
        typer.echo(json.dumps({"error": _document(wrong, text)}, indent=2))
    return code


def _document(error: WeftworkError, text: str) -> dict[str, Any]:
    source, mistakes = None, []
    if isinstance(error, ConfigError):
        source = error.source
        mistakes = [_mistake(m) for m in error.mistakes]
    elif isinstance(error, CodeError):
        source = error.file
        mistakes = [{"path": error.file, "line": error.line, "text": error.text, "fix": None, "changes": []}]
        mistakes += [_mistake(m) for m in error.mistakes]
    return {"kind": type(error).__name__, "source": source, "text": text, "mistakes": mistakes}


def _mistake(mistake: Mistake) -> dict[str, Any]:
    fix = None if mistake.fix is None else str(mistake.fix)
    changes = document(mistake.fix, mistake.path)
    return {"path": mistake.path, "line": mistake.line, "text": mistake.text, "fix": fix, "changes": changes}


def _place(error: OSError) -> str:
    return f" {error.filename}" if error.filename else ""


def _replace_what_cannot_be_shown(stream: TextIO) -> None:
    """Show a question mark for a letter that a terminal does not have.

    Standard error writes its number anyway.
    """
    if isinstance(stream, TextIOWrapper):
        is_bytes_of_a_name = stream.errors == "surrogateescape" and stream.encoding.lower() in {"utf-8", "utf8"}
        if not is_bytes_of_a_name:
            stream.reconfigure(errors="replace")


def _forget_output() -> None:
    """Discard the rest of the output buffer.

    The interpreter would otherwise fail on it at its end.
    """
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)
