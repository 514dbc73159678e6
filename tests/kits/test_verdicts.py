"""No command reassures over input that it did not read: each verdict of `weftwork.spec.verdicts` against bad inputs.

Each verdict has three inputs: an empty one, a foreign one, and one of which a half cannot be read. The command must not
print the verdict for them, or it must print what it looked at beside it. A new verdict without its inputs turns this
red.
"""

from __future__ import annotations

import re
import shutil
import struct
from collections.abc import Callable
from pathlib import Path

import pytest
from helpers.gallery import Gallery

from weftwork.cli import main
from weftwork.spec.verdicts import VERDICTS

FOREIGN = b"\x89PNG\r\n\x1a\n" + bytes(range(256))
SCENARIO = b"""schema: 3
fabric: {topology: leaf-spine, leaves: 2, spines: 1, hosts_per_leaf: 1}
traffic: {pattern: permutation, size: 1KB}
"""
CUT = SCENARIO[:60] + b"\xff\xfe\x00" + SCENARIO[60:]  # a half that no YAML reader takes
CUT_POLICY = b'"""A policy."""\n\nfrom weftwork.policies.interface import Congest'
INPUTS = {"empty": b"", "foreign": FOREIGN, "half": CUT}

Arguments = Callable[[Path, str, Gallery], list[str]]


def of_scenario(command: str, *more: str) -> Arguments:
    """A command that takes a scenario."""

    def arguments(folder: Path, kind: str, _: Gallery) -> list[str]:
        file = folder / "scenario.yaml"
        file.write_bytes(INPUTS[kind])
        return [command, str(file), *more, "-o", str(folder / "out")]

    return arguments


def of_fabric(folder: Path, kind: str, _: Gallery) -> list[str]:
    file = folder / "fabric.yaml"
    file.write_bytes(INPUTS[kind])
    return ["topology", str(file), "--without", "leaf0-spine0"]


def of_policy(folder: Path, kind: str, _: Gallery) -> list[str]:
    file = folder / "policy.py"
    file.write_bytes({**INPUTS, "half": CUT_POLICY}[kind])
    return ["test", str(file)]


def of_capture(folder: Path, kind: str, _: Gallery) -> list[str]:
    """A capture without a frame, a foreign file, or a capture that breaks off inside its second frame of TCP."""
    file = folder / "capture.pcap"
    head = struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65_535, 1)
    frame = struct.pack("<IIII", 0, 0, 60, 60) + bytes(12) + b"\x08\x00" + b"\x45" + bytes(45)
    file.write_bytes({"empty": head, "foreign": FOREIGN, "half": head + frame + frame[:30]}[kind])
    return ["rdma", "decode", str(file)]


def of_control(folder: Path, kind: str, _: Gallery) -> list[str]:
    _, file = of_policy(folder, kind, _)
    return ["cross", "--control", file, "--workload", "all-reduce", "-o", str(folder / "out")]


def of_two_runs(folder: Path, kind: str, gallery: Gallery) -> list[str]:
    """A sound run against a folder that is empty, foreign, or has lost the second half of its numbers."""
    sound, other = folder / "sound", folder / "other"
    shutil.copytree(gallery("lone").path, sound)
    if kind == "half":
        shutil.copytree(sound, other)
        text = (other / "summary.json").read_text(encoding="utf-8")
        (other / "summary.json").write_text(text[: len(text) // 2], encoding="utf-8")
    else:
        other.mkdir()
        if kind == "foreign":
            (other / "picture.png").write_bytes(FOREIGN)
    return ["compare", str(sound), str(other)]


def of_runs(*command: str) -> Arguments:
    """A list of runs in a folder that is empty, foreign, or has one damaged run."""

    def arguments(folder: Path, kind: str, gallery: Gallery) -> list[str]:
        runs = folder / "runs"
        runs.mkdir()
        if kind == "foreign":
            (runs / "picture.png").write_bytes(FOREIGN)
        if kind == "half":
            shutil.copytree(gallery("lone").path, runs / "damaged")
            text = (runs / "damaged" / "summary.json").read_text(encoding="utf-8")
            (runs / "damaged" / "summary.json").write_text(text[: len(text) // 2], encoding="utf-8")
        return [*command, str(runs)]

    return arguments


CASES: dict[str, Arguments] = {
    "run.healthy": of_scenario("run"),
    "run.no-losses": of_scenario("run", "--set", "engine.seed=2"),
    "run.no-marks": of_scenario("run", "--what-if", "none"),
    "run.no-network-traffic": of_scenario("run", "--set", "engine.fidelity=flow"),
    "compare.equal": of_two_runs,
    "decode.clean": of_capture,
    "runs.none": of_runs("runs", "list"),
    "runs.nothing-to-delete": of_runs("runs", "prune", "--keep", "5"),
    "topology.all-joined": of_fabric,
    "tune.none-better": of_scenario("tune", "--parameter", "transport.congestion_control.*", "--trials", "2"),
    "cross.base-is-best": of_control,
    "sweep.all-equal": of_scenario("sweep", "--set", "engine.seed=1,2"),
    "test.all-passed": of_policy,
}
COUNTED = {  # verdicts that may be printed for such input, since they count what they looked at
    ("runs.none", "empty"): "0 entries, none of them a folder of a run",
    ("runs.none", "foreign"): "1 entry, none of them a folder of a run",
    ("runs.nothing-to-delete", "empty"): "0 entries, none of them a folder of a run",
    ("runs.nothing-to-delete", "foreign"): "1 entry, none of them a folder of a run",
    ("runs.nothing-to-delete", "half"): "1 folder of runs is kept",
}


def test_every_verdict_has_its_inputs() -> None:
    assert set(CASES) == set(VERDICTS)


@pytest.mark.parametrize("kind", INPUTS)
@pytest.mark.parametrize("name", CASES)
def test_no_verdict_reassures_over_input_that_was_not_read(
    name: str, kind: str, tmp_path: Path, gallery: Gallery, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as left:
        main(CASES[name](tmp_path, kind, gallery))
    out, err = capsys.readouterr()
    words = re.split(r"\{\w+\}", VERDICTS[name].sentence)
    is_printed = all(part in out + err for part in words if part.strip())
    if scope := COUNTED.get((name, kind)):
        assert is_printed
        assert scope in " ".join(out.split())
        assert left.value.code in (0, None)
    elif name == "runs.none" and kind == "half":
        assert not is_printed
        assert "damaged" in out
    else:
        assert not is_printed
        assert left.value.code == (1 if (name, kind) == ("decode.clean", "empty") else 2)  # 1: no RDMA in a sound file
        assert "Traceback" not in err
        assert str(tmp_path) in out + err  # which input it was
