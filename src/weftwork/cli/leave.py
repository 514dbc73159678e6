"""The end of the command line: an error and an exit code.

The error is on standard error, and as JSON if asked.

Leaves out: errors of Weftwork that nobody foresaw; they keep their traceback.
"""

from __future__ import annotations

import os
import sys
from io import TextIOWrapper
from typing import TYPE_CHECKING, Any, Final, TextIO

from weftwork.base.stop import state
from weftwork.cli.printable import printable

if TYPE_CHECKING:
    from collections.abc import Callable

    from weftwork.base.errors import Mistake, WeftworkError

__all__ = ["FAILED", "INTERRUPTED", "MISTAKE", "exit_code"]

FAILED: Final = 1  # no mistake of the user's, yet not done
MISTAKE: Final = 2
INTERRUPTED: Final = 130  # 128 + SIGINT, as shells count; `weftwork.base.stop` makes 143 of it after SIGTERM


def exit_code(command: Callable[[], object], *, as_json: bool, option_error: Any = ()) -> int:  # noqa: ANN401 - a class
    """Call a command, and convert its exceptions to words and a code.

    Parameters
    ----------
    command : returns its exit code, or None for 0
    as_json : whether an error also goes to standard output, as one JSON object
    option_error : what the parser of the options raises, a class of click; (): there is no parser
    """
    if sys.stdout is None:  # closed by the caller, as with '>&-'
        _say("standard output is closed: nothing was run")
        return FAILED
    _replace_what_cannot_be_shown(sys.stdout)
    try:
        code = _told(command, as_json=as_json, option_error=option_error)
        sys.stdout.flush()
    except BrokenPipeError:  # whoever read has seen enough
        _forget_output()
        return FAILED
    except OSError as error:
        _forget_output()
        _say(f"cannot write{_place(error)}: {error.strerror}")
        return FAILED
    return code


def _told(command: Callable[[], object], *, as_json: bool, option_error: Any) -> int:  # noqa: ANN401 - a class
    wrong: WeftworkError
    try:
        code = command()
    except _errors("CodeError", "ConfigError", "UsageError") as error:
        if state.heard is not None:  # what a library has made of the signal is no mistake of the user's
            return FAILED
        _say(printable(str(error)))
        code, text, wrong = MISTAKE, str(error), error
    except _errors("EngineError") as error:
        text = f"an error of Weftwork itself; please report it: {error}"
        _say(printable(text))
        code, wrong = FAILED, error
    except _errors("PeerError", "ProgramError") as error:
        _say(printable(str(error)))
        code, text, wrong = FAILED, str(error), error
    except MemoryError:  # what no estimate foresaw
        from weftwork.base.errors import WeftworkError
        from weftwork.base.memory import memory_limit

        text = f"memory ran out: the command took more than {memory_limit()}"
        _say(text)
        code, wrong = FAILED, WeftworkError(text)
    except option_error as error:
        from weftwork.base.errors import UsageError

        error.show()
        code, text, wrong = error.exit_code, error.format_message(), UsageError(error.format_message())
    else:
        return code if isinstance(code, int) else 0
    if as_json:
        import json

        from typer import echo

        echo(json.dumps({"error": _document(wrong, text)}, indent=2))
    return code


def _errors(*names: str) -> tuple[type[WeftworkError], ...]:
    """Classes of errors, imported when there is one."""
    from weftwork.base import errors

    return tuple(getattr(errors, name) for name in names)


def _say(text: str) -> None:
    from typer import echo

    echo(text, err=True)


def _document(error: WeftworkError, text: str) -> dict[str, Any]:
    from weftwork.base.errors import CodeError, ConfigError

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
    from weftwork.base.fix import document

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
