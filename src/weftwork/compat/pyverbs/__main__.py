"""Run a program that imports pyverbs: ``python -m weftwork.compat.pyverbs program.py``.

Source: own.
Leaves out: nothing.
"""

from __future__ import annotations

import runpy
import sys

from weftwork.compat.pyverbs.alias import install, path_entry

_USAGE = """usage: python -m weftwork.compat.pyverbs PROGRAM.py [ARGUMENTS]
       python -m weftwork.compat.pyverbs -m MODULE [ARGUMENTS]
       python -m weftwork.compat.pyverbs --path

Runs a program so that `import pyverbs` finds software NICs. --path prints a folder for PYTHONPATH that does the same.
WEFTWORK_PYVERBS_DEVICES=NAME=ADDRESS,... names the devices; by default there is weft0=127.0.0.1."""


def main(arguments: list[str]) -> int:
    """Run a program; returns 2 where none is named.

    Parameters
    ----------
    arguments : of the command line, without the name of this program
    """
    if arguments == ["--path"]:
        print(path_entry())  # noqa: T201 - the answer
        return 0
    is_module = arguments[:1] == ["-m"]
    wanted = arguments[1:] if is_module else arguments
    if not wanted or wanted[0].startswith("-"):
        print(_USAGE, file=sys.stderr)  # noqa: T201 - the answer
        return 2
    install()
    sys.path.insert(0, str(path_entry()))  # for processes that the program starts by multiprocessing
    sys.argv = wanted
    if is_module:
        runpy.run_module(wanted[0], run_name="__main__", alter_sys=True)
    else:
        runpy.run_path(wanted[0], run_name="__main__")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
