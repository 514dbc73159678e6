"""rdma-core's own Python tests against the shim `weftwork.compat.pyverbs`: how many pass, and why others do not.

Fetches the source package of pyverbs from PyPI, compares its tests with recorded checksums, and runs them unchanged on
software NICs. A skip is not a pass. All helps are printed. Exit code 1 where a test fails that is not in ``KNOWN``,
where one of them passes, or where a checksum differs.
Usage: python tests/steps/pyverbs_suite.py [--sdist FILE] [--json] [--only WORD]
"""
# ruff: noqa: N802, ARG001, ARG002 - the names and the arguments are those of unittest, signal and importlib

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import signal
import subprocess
import sys
import tarfile
import tempfile
import unittest
from pathlib import Path
from typing import Any, Final, NoReturn

VERSION: Final = "59.0"
# sha256 of pyverbs-59.0.tar.gz as PyPI has it, and of the names and contents of its folder rdma-core/tests.
SDIST_SHA256: Final = "b30d56bb620b3d3b4301876f9a04c964be1c76cc6553a451e1465f1c6ac9f20e"
TESTS_SHA256: Final = "a2e31963da31637a1474b8e531e1e2b717ad0810e73aa11c735ea19b01785f10"
PREFIX: Final = f"pyverbs-{VERSION}/rdma-core/tests/"
DEVICE: Final = "weft0"
TEST_S: Final = 60  # chosen: the tests themselves wait 10 s for a completion and 15 s for a process
ALL_S: Final = 1500
README: Final = Path(__file__).parents[2] / "README.md"

HELPS: Final = (
    "a command `rdma` on PATH, which says that the interface of weft0 is lo",
    "empty modules pyverbs.providers.*: every name in them is an empty class, whose attributes are 0",
)
# Modules whose tests count, and those that run beside them.
ASKED: Final = (
    *("pd", "addr", "cq", "cq_events", "cqex", "device", "qp", "qpex", "mr", "srq", "atomic", "rdmacm"),
    *("relaxed_ordering", "parent_domain"),
)
BESIDE: Final = ("fork", "odp")
# What a software NIC cannot be asked, by the name of the test or of its class.
NOT_ASKED: Final = {
    "extended reliable connections": r"xrc",
    "raw Ethernet packets": r"create_raw_qp(_ex)?_(no|with)_attr|query_raw_qp",
    "memory on the device": r"\.(DMTest|SharedDMTest|DeviceMemory\w*)\.",
    "memory of a GPU (dma-buf)": r"\.DmaBuf\w*\.",
    "2 MiB huge pages of the machine": r"huge",
}
# Tests that do not pass, with the reason.
KNOWN: Final = {
    "test_device.DeviceTest.test_get_pkey_index": "reads /sys/class/infiniband, which the kernel makes for its drivers",
}


def main() -> int:
    """Fetch, check, run and tell."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sdist", type=Path, help="source package already downloaded, instead of pip download")
    parser.add_argument("--json", action="store_true", help="print the outcome as JSON")
    parser.add_argument("--only", metavar="WORD", help="run the tests alone whose names hold this word")
    parser.add_argument("--child", type=Path, nargs=2, help=argparse.SUPPRESS)
    wanted = parser.parse_args()
    if wanted.child:
        return run_here(wanted.child[0], wanted.child[1], wanted.only or "")
    with tempfile.TemporaryDirectory(prefix="weftwork-pyverbs-") as folder:
        scratch = Path(folder)
        sdist = wanted.sdist or fetch(scratch)
        tests = unpack(sdist, scratch)
        report = {
            "sdist": sdist.name,
            "sdist_sha256": hashlib.sha256(sdist.read_bytes()).hexdigest(),
            "tests_sha256": checksum(tests),
            "helps": list(HELPS),
            **run(tests, scratch, wanted.only or ""),
        }
    report["names_in_shim"] = names_in_shim(report)
    mistakes = judge(report, is_whole=not wanted.only)
    report["mistakes"] = mistakes
    print(json.dumps(report, indent=2) if wanted.json else as_text(report))
    return 1 if mistakes else 0


def fetch(scratch: Path) -> Path:
    """Download the source package by pip."""
    environment = {name: value for name, value in os.environ.items() if name != "PIP_CONSTRAINT"}
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--no-binary", "pyverbs"]
    subprocess.run([*command, "--dest", str(scratch), f"pyverbs=={VERSION}"], check=True, env=environment)
    return scratch / f"pyverbs-{VERSION}.tar.gz"


def unpack(sdist: Path, scratch: Path) -> Path:
    """Take the folder of tests out of the source package."""
    with tarfile.open(sdist) as archive:
        members = [member for member in archive.getmembers() if member.name.startswith(PREFIX)]
        archive.extractall(scratch, members, filter="data")
    return scratch / PREFIX


def checksum(tests: Path) -> str:
    """Sum over names and contents of all files of the tests."""
    found = hashlib.sha256()
    for path in sorted(path for path in tests.rglob("*") if path.is_file()):
        found.update(f"{path.relative_to(tests)} {hashlib.sha256(path.read_bytes()).hexdigest()}\n".encode())
    return found.hexdigest()


def run(tests: Path, scratch: Path, only: str) -> dict[str, Any]:
    """Run the tests in a process of their own, with the shim first on the path."""
    from weftwork.compat.pyverbs.alias import path_entry

    commands = scratch / "commands"
    commands.mkdir()
    rdma = commands / "rdma"
    rdma.write_text(f"#!/bin/sh\necho '{json.dumps([{'ifname': DEVICE, 'port': 1, 'netdev': 'lo'}])}'\n")
    rdma.chmod(0o755)
    outcome = scratch / "outcome.json"
    environment = dict(os.environ)
    environment["PATH"] = f"{commands}:{os.environ['PATH']}"
    environment["PYTHONPATH"] = ":".join(map(str, (path_entry(), *filter(None, sys.path))))
    environment["PYTHONDONTWRITEBYTECODE"] = "1"  # nothing is added to the folder of the tests
    environment.pop("WEFTWORK_PYVERBS_DEVICES", None)
    command = [sys.executable, str(Path(__file__).resolve()), "--child", str(tests), str(outcome), "--only", only]
    ran = subprocess.run(
        command, env=environment, cwd=scratch, capture_output=True, text=True, timeout=ALL_S, check=False
    )
    if not outcome.exists():
        sys.exit(f"the tests did not run:\n{ran.stdout}{ran.stderr}")
    results: dict[str, Any] = json.loads(outcome.read_text())
    return results


def names_in_shim(report: dict[str, Any]) -> list[str]:
    """Names of tests that occur in the sources of the shim."""
    from weftwork.compat.pyverbs.alias import path_entry

    text = "".join(path.read_text() for path in path_entry().parent.rglob("*.py"))
    tests = {name.rsplit(".", 1)[1] for name in (*report["tests"], *report["beside"], *report["not_asked"])}
    return sorted(name for name in tests if name in text)


def counted(report: dict[str, Any]) -> str:
    """How many of the tests passed."""
    passed = sum(result["status"] == "passed" for result in report["tests"].values())
    return f"{passed} of {len(report['tests'])}"


def judge(report: dict[str, Any], *, is_whole: bool) -> list[str]:
    """What is not as it should be."""
    mistakes = []
    for name, expected in (("sdist_sha256", SDIST_SHA256), ("tests_sha256", TESTS_SHA256)):
        if report[name] != expected:
            mistakes.append(f"{name}: found {report[name]}, wanted {expected}")
    failed = {name for name, result in report["tests"].items() if result["status"] != "passed"}
    mistakes += [f"{name}: does not pass" for name in sorted(failed - set(KNOWN))]
    if is_whole:
        if counted(report) not in README.read_text(encoding="utf-8"):
            mistakes.append(f"README.md does not say that {counted(report)} pass")
        mistakes += [f"{name}: passes, though KNOWN says that it does not" for name in sorted(set(KNOWN) - failed)]
    mistakes += [f"the shim names {name}" for name in report["names_in_shim"]]
    return mistakes


def as_text(report: dict[str, Any]) -> str:
    """The outcome in words."""
    tests, beside = report["tests"], report["beside"]
    state = "unchanged" if report["tests_sha256"] == TESTS_SHA256 else "CHANGED"
    passed_beside = sum(result["status"] == "passed" for result in beside.values())
    lines = [
        f"tests of {report['sdist']}, sha256 {report['sdist_sha256']}",
        f"folder rdma-core/tests, sha256 {report['tests_sha256']}: {state}",
        "helps:",
        *(f"  - {text}" for text in report["helps"]),
        "",
        f"{counted(report)} passed",
    ]
    for name, result in tests.items():
        if result["status"] != "passed":
            lines.append(f"  {name}: {result['status']}: {KNOWN.get(name, result['reason'])}")
    lines.append(f"beside them, on-demand paging and forking: {passed_beside} of {len(beside)} passed")
    for name, result in beside.items():
        if result["status"] != "passed":
            lines.append(f"  {name}: {result['status']}: {result['reason']}")
    counts: dict[str, int] = {}
    for reason in report["not_asked"].values():
        counts[reason] = counts.get(reason, 0) + 1
    lines.append("not asked, since a software NIC lacks it: " + ", ".join(f"{n} for {r}" for r, n in counts.items()))
    lines += [f"wrong: {text}" for text in report["mistakes"]]
    return "\n".join(lines)


# In the process of the tests


class Outcome(unittest.TestResult):
    """What became of each test; a test that hangs is interrupted."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: dict[str, dict[str, str]] = {}

    def startTest(self, test: unittest.TestCase) -> None:
        super().startTest(test)
        self.seen[name_of(test)] = {"status": "passed", "reason": ""}
        signal.alarm(TEST_S)

    def stopTest(self, test: unittest.TestCase) -> None:
        signal.alarm(0)
        super().stopTest(test)

    def _note(self, test: unittest.TestCase, status: str, reason: str) -> None:
        self.seen[name_of(test)] = {"status": status, "reason": reason}

    def addError(self, test: unittest.TestCase, err: Any) -> None:
        super().addError(test, err)
        self._note(test, "error", f"{err[0].__name__}: {err[1]}")

    def addFailure(self, test: unittest.TestCase, err: Any) -> None:
        super().addFailure(test, err)
        self._note(test, "failed", f"{err[0].__name__}: {err[1]}")

    def addSkip(self, test: unittest.TestCase, reason: str) -> None:
        super().addSkip(test, reason)
        self._note(test, "skipped", reason)


def name_of(test: unittest.TestCase) -> str:
    """Module, class and method of a test."""
    return test.id().removeprefix("tests.")


def reason_not_asked(name: str) -> str | None:
    """What a test needs that a software NIC cannot have, or None."""
    for reason, pattern in NOT_ASKED.items():
        if re.search(pattern, name):
            return reason
    return None


def run_here(tests: Path, outcome: Path, only: str) -> int:
    """Run the tests in this process and write what became of them."""
    from importlib import import_module

    offer_empty_providers()
    sys.path[:0] = [str(tests), str(tests.parent)]  # as the program of the tests itself does
    sys.argv = [sys.argv[0]]
    import_module("args_parser").parser.parse_args()

    def hang(number: int, frame: object) -> NoReturn:
        raise TimeoutError(f"no end within {TEST_S} s")

    signal.signal(signal.SIGALRM, hang)
    results: dict[str, dict[str, Any]] = {"tests": {}, "beside": {}, "not_asked": {}}
    found = Outcome()
    for group, modules in (("tests", ASKED), ("beside", BESIDE)):
        for module in modules:
            loaded = unittest.defaultTestLoader.loadTestsFromModule(import_module(f"tests.test_{module}"))
            for test in flat(loaded):
                name = name_of(test)
                reason = reason_not_asked(name)
                if reason is not None:
                    results["not_asked"][name] = reason
                elif only in name:
                    test.run(found)
                    results[group][name] = found.seen[name]
    outcome.write_text(json.dumps(results))
    for _, text in (*found.errors, *found.failures):
        print(text)
    return 0


def flat(suite: Any) -> list[unittest.TestCase]:
    """All tests of a suite."""
    if isinstance(suite, unittest.TestCase):
        return [suite]
    return [test for part in suite for test in flat(part)]


def offer_empty_providers() -> None:
    """Let ``pyverbs.providers.X`` be an empty module of empty classes."""
    from importlib.abc import Loader, MetaPathFinder
    from importlib.machinery import ModuleSpec
    from types import ModuleType

    class Nothing(type):
        def __getattr__(cls, name: str) -> int:
            if name.startswith("__"):
                raise AttributeError(name)
            return 0

    class Empty(ModuleType):
        def __getattr__(self, name: str) -> type:
            if name.startswith("__"):
                raise AttributeError(name)
            made = Nothing(name, (), {})
            setattr(self, name, made)
            return made

    class Loads(Loader):
        def create_module(self, spec: ModuleSpec) -> ModuleType:
            return Empty(spec.name)

        def exec_module(self, module: ModuleType) -> None:
            pass

    class Finds(MetaPathFinder):
        def find_spec(self, name: str, path: object, target: object = None) -> ModuleSpec | None:
            is_provider = name == "pyverbs.providers" or name.startswith("pyverbs.providers.")
            return ModuleSpec(name, Loads(), is_package=True) if is_provider else None

    sys.meta_path.insert(0, Finds())


if __name__ == "__main__":
    sys.exit(main())
