"""A policy that fails in the middle of a run ends it with the user's file and line: every kind, both engines."""

from pathlib import Path

import pytest

import weftwork
from weftwork.cli import main

ROOT = Path(__file__).parents[3]
SCENARIO = """
schema: 3
fabric: {topology: leaf-spine, hosts: 4, radix: 4, link_rate: 100Gbps}
transport: {reorder_tolerant: true, force: true}
traffic: {pattern: permutation, size: 64KiB}
"""
ACK = "elif signal.kind == Kind.ACK:"
CASES = {  # key of the scenario, file, the line of its step after which to put, what to put, what is told
    "sender": ("congestion_control", "examples/my_cc.py", ACK,
               "        state.cut_seq = 1 // (signal.seq // 1_000_000)", "ZeroDivisionError"),
    "number": ("congestion_control", "examples/my_cc.py", "state.window_bytes = min(",
               "            state.window_bytes = 1e300 * signal.line_rate_bps * 0.0", "window_bytes became nan"),
    "receiver": ("congestion_control", "tests/policies/talkative.py", "def receive(",
                 "    state.credit_bytes = 1 // (signal.seq // 1_000_000)", "ZeroDivisionError"),
    "path": ("path_selection", "tests/policies/restless.py", "state.entropy = (",
             "        state.entropy = 65_536 * signal.bytes", "wanted 0 to 65535"),
    "port": ("port_selection", "src/weftwork/policies/port_selection/letflow.py", "entry = signal.hash",
             "    state.port[entry] = 1 // (candidates[0].minimal - 1)", "ZeroDivisionError"),
}  # fmt: skip


def broken(folder: Path, file: str, after: str, put: str) -> tuple[Path, int]:
    """A copy of a policy with one more line, and the number of that line."""
    lines = (ROOT / file).read_text(encoding="utf-8").splitlines()
    place = next(number for number, text in enumerate(lines, 1) if after in text)
    path = folder / "mine.py"
    path.write_text("\n".join([*lines[:place], put, *lines[place:]]) + "\n", encoding="utf-8")
    return path, place + 1


@pytest.mark.sanitize
@pytest.mark.parametrize("fidelity", ["packet", "reference"])
@pytest.mark.parametrize("case", CASES)
def test_a_step_that_fails_names_its_line(case: str, fidelity: str, tmp_path: Path) -> None:
    key, file, after, put, told = CASES[case]
    path, line = broken(tmp_path, file, after, put)
    (tmp_path / "s.yaml").write_text(SCENARIO, encoding="utf-8")
    with pytest.raises(weftwork.PolicyError) as caught:
        weftwork.run(
            tmp_path / "s.yaml",
            out=tmp_path / "run",
            overrides={f"transport.{key}": str(path), "engine.fidelity": fidelity},
        )
    assert (caught.value.file, caught.value.line) == (str(path), line)
    assert told in caught.value.text
    assert not (tmp_path / "run").exists()


def test_the_command_line_tells_it_in_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, line = broken(tmp_path, *CASES["sender"][1:4])
    (tmp_path / "s.yaml").write_text(SCENARIO, encoding="utf-8")
    with pytest.raises(SystemExit) as caught:
        main(["run", str(tmp_path / "s.yaml"), "--set", f"transport.congestion_control={path}"])
    assert caught.value.code == 2
    told = capsys.readouterr()
    assert told.err == f"{path}, line {line}: ZeroDivisionError: integer division or modulo by zero\n"
    assert not told.out
