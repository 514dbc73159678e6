"""``weftwork rdma compare-tcp``: a quick measurement, a file of an earlier one, and files that are none."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pydantic import TypeAdapter

from weftwork.cli import main
from weftwork.report.tcp_words import ANSWER_LABELS
from weftwork.spec.tcp_comparison import WORKLOADS, TcpComparison

MEASURED = Path(__file__).parents[3] / "examples" / "rdma_and_tcp" / "measured.json"


def said(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as left:
        main(["rdma", "compare-tcp", *words])
    out, err = capsys.readouterr()
    return left.value.code if isinstance(left.value.code, int) else 0, out, err


def document() -> dict[str, Any]:
    return dict(json.loads(MEASURED.read_text(encoding="utf-8")))


def test_a_quick_measurement_prints_json_that_can_be_read_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "page.html"
    code, out, err = said(capsys, "--quick", "--json", "-o", str(page))
    assert (code, err) == (0, "")
    found = json.loads(out)
    assert list(found) == [
        "said", "machine", "is_quick", "rounds", "elapsed_s", "transfers", "remote", "registration", "cited",
    ]  # fmt: skip
    assert list(found["said"]) == list(ANSWER_LABELS)
    assert {(one["workload"], one["way"]) for one in found["transfers"]} == {
        (workload, way) for workload, ways in WORKLOADS.items() for way in ways
    }
    assert [(one["way"], one["requests"]) for one in found["remote"]] == [
        ("tcp", 100), ("send", 100), ("read", 0), ("write", 0), (None, 0),
    ]  # fmt: skip
    assert set(found["cited"]) == {"hardware", "facts"}
    assert "weftwork rdma compare-tcp --quick -o" in page.read_text(encoding="utf-8")
    kept = tmp_path / "kept.json"
    kept.write_text(out, encoding="utf-8")
    assert TypeAdapter(TcpComparison).validate_json(out).is_quick
    again = said(capsys, "--from", str(kept), "--json")
    assert (again[0], json.loads(again[1])) == (0, found)


def test_a_name_that_ends_in_svg_gets_the_picture(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    picture = tmp_path / "goodput.svg"
    code, out, _ = said(capsys, "--from", str(MEASURED), "-o", str(picture))
    assert code == 0
    assert picture.read_text(encoding="utf-8").startswith("<svg")
    assert out.splitlines()[-1] == f"written: {picture}"


def test_a_file_that_is_not_there_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = said(capsys, "--from", str(tmp_path / "none.json"))
    assert code == 2
    assert "cannot be read: No such file or directory" in err


@pytest.mark.parametrize("text", ["", "[]", "{", '{"machine": 3}'])
def test_a_file_that_is_no_measurement_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str
) -> None:
    file = tmp_path / "other.json"
    file.write_text(text, encoding="utf-8")
    code, _, err = said(capsys, "--from", str(file))
    assert code == 2
    assert "wanted what --json prints" in err


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("transfers", [], "found no 'ping-pong', wanted every workload"),
        ("remote", [], "found no operations by 'tcp', wanted tcp and read"),
        ("registration", [], "found no buffer, wanted one at least"),
    ],
)
def test_a_measurement_without_a_part_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], key: str, value: object, message: str
) -> None:
    file = tmp_path / "part.json"
    file.write_text(json.dumps({**document(), key: value}), encoding="utf-8")
    code, _, err = said(capsys, "--from", str(file))
    assert code == 2
    assert message in err


def test_a_figure_that_is_not_positive_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = document()
    found["registration"][1]["copy_ns"] = 0
    found["transfers"][0]["goodput_bps"] = -1
    file = tmp_path / "zero.json"
    file.write_text(json.dumps(found), encoding="utf-8")
    code, _, err = said(capsys, "--from", str(file))
    assert code == 2
    assert "2 mistakes" in err
    assert "registration.1.copy_ns" in err
    assert "transfers.0.goodput_bps" in err
