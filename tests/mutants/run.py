"""Put plausible mistakes into a copy of the repository, one at a time, and print which of them the tests notice.

`python tests/mutants/run.py` tries all entries of the lists beside it (`entries.py`); `.ci/run mutants` does the same.
Each entry is tried with the tests that it names, with golden output switched off (`--ignore-golden`), since an author
would write that anew; a mistake that they let pass is tried with the whole plain suite before it counts as a survivor.
The working tree is never touched. Mistakes in the core are built one after the other in the first copy, without much
optimisation; copies work side by side. Exit code: 0, 1 where fewer than 95 % are noticed, 2 where nothing could be
tried.
Needs: git's working tree, the extras `test` and `dev`, a C++20 compiler.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path

if __package__ in {None, ""}:
    sys.path.insert(0, str(Path(__file__).parents[1]))

from mutants.entries import LISTS, ROOT, Mutant, list_mistakes, read_mutants

WANTED_SHARE = 0.95  # chosen: what the step was asked for
TEST_LIMIT_S = 120  # chosen: a test of the plain suite takes seconds; what takes so long hangs
NAMED_LIMIT_S = 900.0  # chosen: the named tests of an entry take seconds, a minute at most
PLAIN_LIMIT_S = 1_800.0  # chosen: six times the ceiling of the plain suite
BUILD_LIMIT_S = 900.0  # chosen: a whole build takes a minute or two
# It fails by design where an entry is applied: it holds the lists to the code.
OWN_TEST = "tests/unit/test_mutants.py"
PYTEST = (
    "-q", "--tb=no", "-rfE", "--ignore-golden", "-p", "no:cacheprovider", f"--ignore={OWN_TEST}",
    f"--timeout={TEST_LIMIT_S}",
)  # fmt: skip
_TOLD = re.compile(r"^(?:FAILED|ERROR) (.+?)(?: - .*)?$", re.MULTILINE)
_HUNG = re.compile(r"^Timeout \(", re.MULTILINE)  # tests/helpers/time_limit.py
_NOTHING_RAN = 5  # pytest's exit code where no test was chosen


@dataclass(frozen=True, kw_only=True, slots=True)
class Verdict:
    """What came of one entry.

    Parameters
    ----------
    mutant : the entry
    noticed_by : test, or what else told of it; None: it survives
    time_s : of building and testing
    fault : why the entry could not be tried, which counts as not noticed; empty where it was
    """

    mutant: Mutant
    noticed_by: str | None
    time_s: float
    fault: str = ""

    @property
    def words(self) -> str:
        """What came of it, in a line."""
        return self.noticed_by or ("IS NO ENTRY" if self.fault else "SURVIVES")


@dataclass(frozen=True, kw_only=True, slots=True)
class Ran:
    """A process that has ended: its exit code, None where it was ended after its limit, and what it said."""

    code: int | None
    text: str


class CannotTryError(Exception):
    """Nothing that the step says would be true: the list, the copy or the tests are wrong without any mistake."""


@dataclass(frozen=True, kw_only=True)
class Copy:
    """A copy of the tree in which entries are tried. One thread uses it at a time."""

    root: Path
    build: Path
    cache: Path  # compiled policies of the tree without a mistake

    @property
    def module_folder(self) -> Path:
        """Where the native module belongs."""
        return self.root / "src/weftwork/engine"

    def compile_core(self) -> str | None:
        """Build what changed and take the module; what the compiler says where it refuses."""
        done = _run(["cmake", "--build", str(self.build)], self.root, os.environ.copy(), BUILD_LIMIT_S)
        if done.code != 0:
            return done.text
        (module,) = (self.build / "native").glob("_native*.so")
        target = self.module_folder / module.name
        target.unlink(missing_ok=True)  # a process that still has the old file open keeps it
        shutil.copy2(module, target)
        return None

    def pytest(self, *arguments: str, limit_s: float) -> Ran:
        """Run tests on this copy, with compiled policies of their own."""
        with tempfile.TemporaryDirectory(dir=self.root.parent) as own:
            cache = Path(own) / "policies"
            shutil.copytree(self.cache, cache)
            where = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
            where |= {
                "PYTHONPATH": str(self.root / "src"),
                "PYTHONDONTWRITEBYTECODE": "1",
                "CI": "1",  # hypothesis repeats itself
                "WEFTWORK_CACHE_DIR": str(cache),
                "TMPDIR": own,
            }
            return _run([sys.executable, "-m", "pytest", *PYTEST, *arguments], self.root, where, limit_s)


_RUNNING: set[subprocess.Popen[bytes]] = set()  # in sessions of their own, which a Ctrl-C does not reach


def _run(command: Sequence[str], folder: Path, where: dict[str, str], limit_s: float) -> Ran:
    """Run a command; end it with all that it has started where it takes longer than its limit."""
    with subprocess.Popen(
        command, cwd=folder, env=where, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        start_new_session=True,
    ) as process:  # fmt: skip
        _RUNNING.add(process)
        try:
            out, _ = process.communicate(timeout=limit_s)
            code: int | None = process.returncode
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            out, _ = process.communicate()
            code = None
        finally:
            _RUNNING.discard(process)
        return Ran(code=code, text=out.decode(errors="replace"))


def _end_all() -> None:
    """End every command that runs, with all that it has started."""
    for process in tuple(_RUNNING):
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)


def copied_tree(root: Path) -> Path:
    """Copy what git knows and the working tree has.

    Raises
    ------
    CannotTryError : git does not know the tree
    """
    listed = _run(["git", "ls-files", "-z", "-c", "-o", "--exclude-standard"], ROOT, os.environ.copy(), BUILD_LIMIT_S)
    if listed.code != 0:
        raise CannotTryError(f"git does not know the files of {ROOT}:\n{listed.text}")
    for name in filter(None, listed.text.split("\0")):
        source, target = ROOT / name, root / name
        if source.is_file():  # a file that was removed and not yet committed is left out
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, target)
    return root


def first_copy(folder: Path, change: Callable[[Path], None] | None = None) -> Copy:
    """Copy the tree and build the core with little optimisation.

    Parameters
    ----------
    folder : of the copy and its build
    change : of the copy, before the core is built

    Raises
    ------
    CannotTryError : git does not know the tree, or the core does not build
    """
    root = copied_tree(folder / "copy-0")
    if change is not None:
        change(root)
    _compile_quickly(root / "native/CMakeLists.txt")
    copy = Copy(root=root, build=folder / "build", cache=folder / "policies")
    copy.cache.mkdir()
    command = ["cmake", "-S", str(root), "-B", str(copy.build), "-G", "Ninja", f"-DPython_EXECUTABLE={sys.executable}"]
    done = _run(command, root, os.environ.copy(), BUILD_LIMIT_S)
    refused = done.text if done.code else copy.compile_core()
    if refused is not None:
        raise CannotTryError(f"the core does not build:\n{refused}")
    return copy


def _compile_quickly(lists: Path) -> None:
    """Compiling takes most of the time of a mistake in the core; its tests are small."""
    text = lists.read_text(encoding="utf-8")
    if text.count("PRIVATE -O3)") != 1:
        raise CannotTryError(f"{lists.name} of the core no longer says 'PRIVATE -O3)' once; see {Path(__file__).name}")
    lists.write_text(text.replace("PRIVATE -O3)", "PRIVATE -O1)"), encoding="utf-8")


def check_baseline(copy: Copy, mutants: Iterable[Mutant], jobs: int) -> float:
    """Run the tests that entries name where no mistake is applied; returns their seconds.

    Raises
    ------
    CannotTryError : one of them fails, so that it would notice everything
    """
    began_s = time.monotonic()
    tests = sorted({test for mutant in mutants for test in mutant.tests})
    with tempfile.TemporaryDirectory(dir=copy.root.parent) as own:
        where = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
        where |= {"PYTHONPATH": str(copy.root / "src"), "CI": "1", "WEFTWORK_CACHE_DIR": str(copy.cache)}
        where["TMPDIR"] = own
        command = [sys.executable, "-m", "pytest", *PYTEST, "-n", str(jobs), *_without_those_inside(tests)]
        done = _run(command, copy.root, where, PLAIN_LIMIT_S)
    if done.code != 0:
        raise CannotTryError(f"the tests fail without any mistake:\n{done.text[-4_000:]}")
    return time.monotonic() - began_s


def _without_those_inside(tests: list[str]) -> list[str]:
    """Leave out tests of a file that is named whole, and files of such a folder: pytest would run them twice."""
    whole = set(tests)

    def is_inside(test: str) -> bool:
        path, *parts = test.split("::")
        above = {str(folder) for folder in Path(path).parents} | ({path} if parts else set())
        return bool(above & whole)

    return [test for test in tests if not is_inside(test)]


@contextmanager
def applied(mutant: Mutant, copy: Copy) -> Iterator[str | None]:
    """Put a mistake into a copy, and take it back; inside, what the compiler says where it refuses the mistake.

    The module of the core is then still the one with the mistake: the next build makes it anew.
    """
    files = {copy.root / change.file: change for change in mutant.changes}
    before = {file: (file.read_text(encoding="utf-8"), file.stat()) for file in files}
    for file, change in files.items():
        file.write_text(before[file][0].replace(change.old, change.new), encoding="utf-8")
    try:
        yield copy.compile_core() if mutant.is_native else None
    finally:
        for file, (text, about) in before.items():
            file.write_text(text, encoding="utf-8")
            if file.suffix == ".py":  # the compiled file beside it fits again; a build looks at the time instead
                os.utime(file, ns=(about.st_atime_ns, about.st_mtime_ns))


def try_mutant(mutant: Mutant, copy: Copy) -> Verdict:
    """Try an entry with the tests that it names."""
    began_s = time.monotonic()
    noticed_by, fault = None, ""
    with applied(mutant, copy) as refused:
        if refused is not None:
            fault = f"it does not compile, so that it is no mistake:\n{refused[-4_000:]}"
        else:
            ran = copy.pytest("-x", "-n", "0", "-m", "", *mutant.tests, limit_s=NAMED_LIMIT_S)
            if ran.code == _NOTHING_RAN:
                fault = "the plain suite has none of the tests that it names"
            else:
                noticed_by = told_by(ran)
                if noticed_by is not None and mutant.invariant is not None and mutant.invariant not in ran.text:
                    fault = f"{noticed_by} has noticed it, and not by {mutant.invariant}:\n{ran.text[-4_000:]}"
                    noticed_by = None
    return Verdict(mutant=mutant, noticed_by=noticed_by, time_s=time.monotonic() - began_s, fault=fault)


def try_widely(mutant: Mutant, copy: Copy, jobs: int) -> Verdict:
    """Try an entry that its own tests let pass with the whole plain suite."""
    began_s = time.monotonic()
    with applied(mutant, copy):
        noticed_by = told_by(copy.pytest("-x", "-n", str(jobs), limit_s=PLAIN_LIMIT_S))
    refused = copy.compile_core() if mutant.is_native else None
    fault = "" if refused is None else refused[-4_000:]
    if noticed_by is not None and "::" in noticed_by:  # one that always fails has noticed nothing
        again = copy.pytest("-n", "0", noticed_by, limit_s=NAMED_LIMIT_S)
        if again.code != 0:
            noticed_by, fault = None, f"{noticed_by} fails without the mistake, too:\n{again.text[-4_000:]}"
    return Verdict(mutant=mutant, noticed_by=noticed_by, time_s=time.monotonic() - began_s, fault=fault)


def told_by(ran: Ran) -> str | None:
    """What noticed a mistake, from the end of pytest; None where all tests passed."""
    if ran.code is None or (ran.code and _HUNG.search(ran.text)):
        return "a hang"
    if ran.code == 0:
        return None
    if ran.code < 0:
        return f"a crash ({signal.Signals(-ran.code).name})"
    told = _TOLD.search(ran.text)
    if told is not None:
        return told[1]
    last = [line for line in ran.text.splitlines() if line.strip()]
    return f"pytest itself: {last[-1].strip() if last else f'exit code {ran.code}'}"


def try_all(mutants: Sequence[Mutant], copies: Sequence[Copy]) -> list[Verdict]:
    """Try entries side by side: the first copy those of the core, one after the other, all copies the others."""
    native = deque(mutant for mutant in mutants if mutant.is_native)
    others = deque(mutant for mutant in mutants if not mutant.is_native)
    found: list[Verdict] = []
    guard = threading.Lock()

    def work(copy: Copy) -> None:
        own = native if copy is copies[0] else deque[Mutant]()
        is_built_anew = False
        while True:
            with guard:
                if own:
                    mutant = own.popleft()
                elif others:
                    mutant = others.popleft()
                else:
                    return
            if is_built_anew and not mutant.is_native:  # the last mistake of the core is still in the module
                copy.compile_core()
            is_built_anew = mutant.is_native
            verdict = try_mutant(mutant, copy)
            with guard:
                found.append(verdict)
                _tell(verdict, len(found), len(mutants))

    with ThreadPoolExecutor(len(copies)) as pool:
        at_work = [pool.submit(work, copy) for copy in copies]
        try:
            for done in at_work:
                done.result()
        except BaseException:  # Ctrl-C, or an error: nobody takes another entry
            with guard:
                native.clear()
                others.clear()
            _end_all()
            raise
    return found


def files_of(mutant: Mutant) -> str:
    """The files that an entry changes, for people."""
    return ", ".join(change.file for change in mutant.changes)


def _tell(verdict: Verdict, number: int, of: int) -> None:
    by = verdict.noticed_by or ("IS NO ENTRY" if verdict.fault else "not noticed by its own tests")
    print(f"[{number:>3}/{of}] {verdict.time_s:5.0f} s  {verdict.mutant.label}: {by}", flush=True)


def report(verdicts: Sequence[Verdict]) -> bool:
    """Print what noticed each entry and the totals; whether enough were noticed."""
    place = {name: index for index, name in enumerate(LISTS)}
    ordered = sorted(verdicts, key=lambda one: (place[one.mutant.list_name], one.mutant.name))
    width = max(len(one.mutant.label) for one in ordered)
    print()
    for one in ordered:
        print(f"{one.mutant.label:<{width}}  {one.time_s:5.0f} s  {one.words}")
    tried = Counter(one.mutant.list_name for one in ordered)
    noticed = Counter(one.mutant.list_name for one in ordered if one.noticed_by is not None)
    print()
    for name in LISTS:
        if tried[name]:
            print(f"{name:<12} {noticed[name]:>3} of {tried[name]:>3}")
    share = noticed.total() / tried.total()
    print(f"{'all':<12} {noticed.total():>3} of {tried.total():>3}: {share:.1%} noticed, wanted {WANTED_SHARE:.0%}")
    for one in ordered:
        if one.noticed_by is None:
            print(f"\n{one.mutant.label} {one.words}: {one.mutant.mistake}\n  {files_of(one.mutant)}")
            print(f"  {one.fault}" if one.fault else f"  named: {', '.join(one.mutant.tests)}")
    return share >= WANTED_SHARE


def run(mutants: Sequence[Mutant], jobs: int, *, is_wide: bool) -> bool:
    """Try entries and report; whether enough were noticed."""
    began_s = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="weftwork-mutants-") as made:
        folder = Path(made)
        print(f"{len(mutants)} mistakes; building a copy", flush=True)
        copy = first_copy(folder)
        print(f"core built after {time.monotonic() - began_s:.0f} s; the named tests without a mistake", flush=True)
        print(f"they pass in {check_baseline(copy, mutants, jobs):.0f} s", flush=True)
        copies = [copy]
        for number in range(1, jobs):
            root = folder / f"copy-{number}"
            shutil.copytree(copy.root, root)
            copies.append(replace(copy, root=root))
        verdicts = try_all(mutants, copies)
        passed = [one.mutant for one in verdicts if one.noticed_by is None and not one.fault]
        if is_wide and passed:
            print(f"{len(passed)} were let pass; the whole plain suite, one after the other", flush=True)
            refused = copy.compile_core()
            if refused is not None:
                raise CannotTryError(f"the core does not build any more:\n{refused}")
            wider = {mutant.name: try_widely(mutant, copy, jobs) for mutant in passed}
            verdicts = [wider.get(one.mutant.name, one) for one in verdicts]
        is_enough = report(verdicts)
        print(f"{time.monotonic() - began_s:.0f} s")
        return is_enough


def main(arguments: Sequence[str] | None = None) -> int:
    """Read the options and do what they say; returns the exit code."""
    parser = argparse.ArgumentParser(description="Which plausible mistakes do the tests notice?")
    parser.add_argument("--only", metavar="PATTERN", default="", help="a regular expression found in LIST/NAME")
    parser.add_argument("--list", action="store_true", dest="is_listed", help="print the mistakes and stop")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="copies side by side; one a core")
    parser.add_argument("--named-only", action="store_true", help="leave out the plain suite for what is let pass")
    options = parser.parse_args(arguments)
    mutants = read_mutants()
    wrong = list_mistakes(mutants)
    if wrong:
        print("\n".join(["the lists are wrong, nothing was tried:", *(f"  {text}" for text in wrong)]), file=sys.stderr)
        return 2
    chosen = [mutant for mutant in mutants if re.search(options.only, mutant.label)]
    if not chosen:
        print(f"no mistake has {options.only!r} in LIST/NAME; --list shows all", file=sys.stderr)
        return 2
    if options.is_listed:
        for mutant in chosen:
            print(f"{mutant.label}: {mutant.mistake} ({files_of(mutant)})")
        return 0
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # it ends what it has started, and removes the copies
    try:
        return 0 if run(chosen, max(1, options.jobs), is_wide=not options.named_only) else 1
    except CannotTryError as error:
        print(error, file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        _end_all()
        return 130  # 128 + SIGINT, as shells count


if __name__ == "__main__":
    sys.exit(main())
