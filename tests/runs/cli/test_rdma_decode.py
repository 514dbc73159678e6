"""``weftwork rdma decode``: words, JSON, limits, and files that are no captures."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from helpers.captures import answer, nak, write, write_capture

from weftwork.cli import main

PACKETS = write("a", 100, 4)
FLOW = "10.0.0.1 -> 10.0.0.2 QP 0x22"
WHY = "packets are lost or overtake each other"
LOST = [PACKETS[0], *PACKETS[2:], nak("b", 101), *PACKETS[1:], answer("b", 103)]


def said(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as left:
        main(["rdma", "decode", *words])
    out, err = capsys.readouterr()
    return left.value.code if isinstance(left.value.code, int) else 0, out, err


def test_the_culprit_comes_first_then_flows_then_packets(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = write_capture(tmp_path / "lost.pcapng", LOST)
    code, out, err = said(capsys, str(file))
    lines = [line.rstrip() for line in out.splitlines()]
    assert (code, err) == (0, "")
    assert lines[:3] == [
        f"{file}: 8 packets in 7.0 us (8 RoCEv2)",
        "1 flow, 1 message",
        f"to blame  1 NAK with PSN sequence error, 3 packets sent again in {FLOW}: {WHY} (first: packet 4)",
    ]
    # of the kinds of trouble, those that there are
    assert lines[4].split() == ["flow", "packets", "messages", "bytes", "again", "NAKs"]
    assert lines[5].removeprefix(FLOW).split() == ["6", "1", "1,536", "3", "1"]
    rows = [line.split() for line in lines[8:]]
    assert [row[0] for row in rows if row[0].isdigit()] == list("12345678")
    assert rows[1][:6] == ["2", "1.000", "10.0.0.1", "10.0.0.2", "0x22", "0x66"]


def test_rows_can_be_limited_to_those_that_stand_out(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = write_capture(tmp_path / "lost.pcapng", LOST)
    _, out, _ = said(capsys, str(file), "--limit", "2")
    assert "6 other packets: see --limit" in out
    _, out, _ = said(capsys, str(file), "--noted", "--json")
    assert [row["number"] for row in json.loads(out)["table"]] == [2, 4, 5, 6, 7]
    _, out, _ = said(capsys, str(file), "--limit", "0", "--json")
    assert json.loads(out)["table"] == []


def test_json_has_every_number(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = said(capsys, str(write_capture(tmp_path / "lost.pcapng", LOST)), "--json")
    found = json.loads(out)
    assert (found["packets"], found["duration_ns"], found["packets_by_kind"]) == (8, 7_000, {"RoCEv2": 8})
    assert found["culprit"] == found["findings"][0]
    assert found["culprit"]["kind"] == "lost"
    (flow,) = found["flows"]
    assert {key: flow[key] for key in ("destination_qp", "sent_again", "naks", "acks")} == {
        "destination_qp": 0x22, "sent_again": 3, "naks": {"PSN sequence error": 1}, "acks": 1,
    }  # fmt: skip
    assert found["table"][1]["notes"] == ["1 PSN missing in front of it"]


def test_a_clean_capture_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = said(capsys, str(write_capture(tmp_path / "clean.pcapng", PACKETS)))
    assert "Nothing stands out: every ICRC holds" in out


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "capture  at byte 0: found an empty file, wanted pcapng or pcap"),
        (b"schema: 3\n" + bytes(10), "pcapng  at byte 0: found 73636865, wanted a capture: pcapng or pcap"),
        (None, "pcapng  at byte 84: found a block of "),
    ],
)
def test_a_broken_file_is_refused_with_the_byte(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], content: bytes | None, message: str
) -> None:
    file = write_capture(tmp_path / "broken.pcapng", PACKETS)
    file.write_bytes(file.read_bytes()[:200] if content is None else content)
    code, out, err = said(capsys, str(file))
    assert (code, out) == (2, "")
    assert message in err
    assert "broken.pcapng: 1 mistake" in err


def test_a_file_that_is_not_there_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("none.pcapng", "."):
        code, out, err = said(capsys, str(tmp_path / name), "--json")
        assert code == 2
        assert "cannot be read: " in err
        assert json.loads(out)["error"]["kind"] == "ConfigError"
