"""Commands that need no parser of options, whose import takes longer than they do: ``--help`` and ``list``.

The help is kept as text, since its texts and options are declared to the parser; ``python -m weftwork.cli.plain``
writes it anew.
Leaves out: what the parser must read, or lay out for a narrower terminal: it does all else, with its own words.
"""

from __future__ import annotations

import sys

TYPE_CHECKING = False  # as `typing` has it, whose import takes longer than this file's
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

__all__ = ["HELP_COLUMNS", "HELP_FILE", "parsed_help", "plain_command"]

HELP_FILE = f"{__file__.rpartition('/')[0]}/help.txt"
HELP_COLUMNS = 80  # the parser writes no longer lines on a wider terminal

_LIST = "list"  # this and the options are spelled as `weftwork.cli.commands_reference` declares them
_JSON, _SOURCES = "--json", "--sources"


def plain_command(arguments: Sequence[str]) -> Callable[[], None] | None:
    """The command that some arguments mean, or None where the parser must read them.

    Parameters
    ----------
    arguments : of the process
    """
    if list(arguments) == ["--help"]:
        from shutil import get_terminal_size

        return _write_help if get_terminal_size().columns >= HELP_COLUMNS else None
    given = arguments[1:]
    kinds = [word for word in given if word not in (_JSON, _SOURCES)]
    if list(arguments[:1]) != [_LIST] or len(kinds) > 1 or any(word.startswith("-") for word in kinds):
        return None

    def write_list() -> None:
        from weftwork.cli.list import list_kind

        list_kind(kinds[0] if kinds else None, as_json=_JSON in given, with_sources=_SOURCES in given)

    return write_list


def _write_help() -> None:
    with open(HELP_FILE, encoding="utf-8") as file:  # noqa: PTH123 - pathlib takes as long to import as all the rest
        sys.stdout.write(file.read())


def parsed_help() -> str:
    """The help as the parser writes it on a terminal of `HELP_COLUMNS` or more."""
    from weftwork.cli.commands import root_command

    context = root_command().make_context("weftwork", [], terminal_width=HELP_COLUMNS - 2, resilient_parsing=True)
    return f"{context.get_help()}\n"


if __name__ == "__main__":
    from pathlib import Path

    Path(HELP_FILE).write_text(parsed_help(), encoding="utf-8")
