"""One mistake per run of the checks: are the tests still awake? `.ci/run canary` plants it in a copy of the tree.

The commit draws the mistake from the lists beside this file. The run is red where the tests that the entry names stay
green. Drawn are mistakes in Python alone: a mistake in the core costs a build, and `.ci/run mutants` tries these.
Usage: python tests/mutants/canary.py [--only PATTERN]
"""

from __future__ import annotations

import argparse
import importlib.util
import re
import shutil
import subprocess
import sys
import tempfile
import time
import zlib
from collections.abc import Sequence
from pathlib import Path

if __package__ in {None, ""}:
    sys.path.insert(0, str(Path(__file__).parents[1]))

from mutants.entries import ROOT, Mutant, list_mistakes, read_mutants
from mutants.run import NAMED_LIMIT_S, CannotTryError, Copy, copied_tree, files_of, try_mutant


def drawn(mutants: Sequence[Mutant], commit: str) -> Mutant:
    """The mistake of a commit: the same for the same commit, any other for the next."""
    candidates = [mutant for mutant in mutants if not mutant.is_native]
    return candidates[zlib.crc32(commit.encode()) % len(candidates)]


def copy_with_core(folder: Path) -> Copy:
    """A copy of the tree with the compiled core that is installed.

    Raises
    ------
    CannotTryError : git does not know the tree, or no core is installed
    """
    root = copied_tree(folder / "copy")
    core = importlib.util.find_spec("weftwork.engine._native")
    if core is None or core.origin is None:
        raise CannotTryError("weftwork is not installed here: `pip install '.[test]'` first")
    copy = Copy(root=root, build=folder / "build", cache=folder / "policies")
    copy.cache.mkdir()
    shutil.copy2(core.origin, copy.module_folder)
    return copy


def check_tests_pass(mutant: Mutant, copy: Copy) -> None:
    """Run the named tests where the mistake is not planted yet: tests that fail anyway would notice everything.

    Raises
    ------
    CannotTryError : one of them fails, or there are none
    """
    ran = copy.pytest("-x", "-n", "0", "-m", "", *mutant.tests, limit_s=NAMED_LIMIT_S)
    if ran.code != 0:
        raise CannotTryError(f"the tests {', '.join(mutant.tests)} fail without any mistake:\n{ran.text[-4_000:]}")


def main() -> int:
    """0: the tests noticed the mistake; 1: they did not; 2: nothing could be tried."""
    parser = argparse.ArgumentParser(description="Do the tests notice one planted mistake?")
    parser.add_argument(
        "--only", metavar="PATTERN", default="", help="draw among the mistakes with PATTERN in LIST/NAME"
    )
    options = parser.parse_args()
    began_s = time.monotonic()
    listed = read_mutants()
    mutants = [mutant for mutant in listed if re.search(options.only, mutant.label)]
    wrong = list_mistakes(listed)
    if wrong or not any(not mutant.is_native for mutant in mutants):
        print("\n".join(["nothing was tried:", *(wrong or [f"no mistake in Python has {options.only!r}"])]))
        return 2
    head = subprocess.run(["git", "-C", ROOT, "rev-parse", "HEAD"], capture_output=True, text=True, check=False)
    mutant = drawn(mutants, head.stdout.strip())
    print(f"planted: {mutant.label}: {mutant.mistake} ({files_of(mutant)})", flush=True)
    try:
        with tempfile.TemporaryDirectory(prefix="weftwork-canary-") as folder:
            copy = copy_with_core(Path(folder))
            check_tests_pass(mutant, copy)
            verdict = try_mutant(mutant, copy)
    except CannotTryError as error:
        print(error)
        return 2
    print(f"{verdict.words} ({time.monotonic() - began_s:.0f} s)")
    if verdict.noticed_by is None:
        print(f"the tests {', '.join(mutant.tests)} did not notice it\n{verdict.fault}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
