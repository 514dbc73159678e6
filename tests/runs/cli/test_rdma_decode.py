"""``weftwork rdma decode``: words, JSON, limits, and files that are no captures."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from helpers.captures import answer, nak, write, write_capture
from helpers.encapsulated_frames import PAUSE, ethernet, in_udp

from weftwork.cli import main
from weftwork.wire.pcap import CapturedPacket
from weftwork.wire.pcapng import encode_pcapng

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
    assert lines[:4] == [
        f"{file}: 8 packets in 7.0 us (8 RoCEv2)",
        "1 flow, 1 message",
        "frames       8 of Ethernet (link type 1): 8 read",
        f"to blame     1 NAK with PSN sequence error, 3 packets sent again in {FLOW}: {WHY} (first: packet 4)",
    ]
    # of the kinds of trouble, those that there are
    assert lines[5].split() == ["flow", "packets", "messages", "bytes", "again", "NAKs"]
    assert lines[6].removeprefix(FLOW).split() == ["6", "1", "1,536", "3", "1"]
    rows = [line.split() for line in lines[9:]]
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


def test_a_clean_capture_says_what_was_checked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = said(capsys, str(write_capture(tmp_path / "clean.pcapng", PACKETS)))
    verdict = (
        "every ICRC holds (4 packets), 4 PSNs are in order, no answers were captured, and no PFC frame was captured."
    )
    assert f"\nNothing stands out: {verdict}\n" in out
    assert code == 0


def test_a_capture_that_is_cut_claims_no_icrc(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "snap.pcapng"
    packets = [CapturedPacket(at, data[:96], len(data)) for at, data in enumerate(PACKETS)]
    file.write_bytes(b"".join(encode_pcapng([*packets, CapturedPacket(9, PACKETS[3], len(PACKETS[3]))])))
    code, out, _ = said(capsys, str(file))
    lines = out.splitlines()
    advice = "(tcpdump -s 0 keeps whole packets; first: frame 1)"
    assert code == 0
    assert lines[2:5] == [
        "frames       5 of Ethernet (link type 1): 1 read, 4 cut",
        f"cut          4 RoCEv2 packets after 96 of 314 to 330 bytes, behind their headers {advice}",
        "not checked  ICRC of 4 of 5 packets: 4 cut",
    ]
    file.write_bytes(b"".join(encode_pcapng(packets)))
    _, out, _ = said(capsys, str(file))
    verdict = "no ICRC was checked (4 packets), 4 PSNs are in order"
    assert f"\nNothing stands out in what was checked: {verdict}" in out
    file.write_bytes(b"".join(encode_pcapng([*packets[:3], CapturedPacket(9, PACKETS[3], len(PACKETS[3]))])))
    _, out, _ = said(capsys, str(file))
    assert "Nothing stands out in what was checked: every ICRC that was checked holds (1 of 4 packets), " in out


def _mixed(tmp_path: Path) -> Path:
    """Frames of three link types, none of RDMA but a pause."""
    data = [(1, arp := ethernet(0x0806, bytes(46))), (1, arp), (105, bytes(40)), (197, bytes(60)), (1, PAUSE)]
    file = tmp_path / "foreign.pcapng"
    file.write_bytes(b"".join(encode_pcapng(CapturedPacket(0, bytes_, len(bytes_), link) for link, bytes_ in data)))
    return file


def test_a_capture_without_rdma_is_no_verdict(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = said(capsys, str(_mixed(tmp_path)), "--limit", "0")
    erf = "ERF type 0 (legacy), which does not say what it holds"
    why = "its queue is full, and it stops whoever sends to it"
    assert code == 1
    assert out.splitlines()[2:] == [
        "frames       3 of Ethernet (link type 1): 1 read, 2 passed over",
        "frames       1 of IEEE 802.11 (link type 105): 1 passed over",
        "frames       1 of ERF (link type 197): 1 passed over",
        "passed over  2 frames of Ethernet (link type 1): ARP (first: frame 1)",
        "passed over  1 frame of IEEE 802.11 (link type 105): a link type that is not read (first: frame 3)",
        f"passed over  1 frame of ERF (link type 197): {erf} (first: frame 4)",
        f"to blame     1 PFC pause, 1 of them from 02:00:00:00:00:01: {why} (first: packet 5)",
        "No packet of RDMA was read in 5 frames, so nothing is known of any.",
        "5 other packets: see --limit",
    ]
    code, out, _ = said(capsys, str(_mixed(tmp_path)), "--json")
    coverage = json.loads(out)["coverage"]
    assert code == 1
    assert coverage["link_types"][1] == {
        "link_type": 105, "name": "IEEE 802.11 (link type 105)", "frames": 1, "read": 0, "cut": 0, "passed_over": 1,
    }  # fmt: skip
    assert coverage["passed_over"][0] == {
        "link_type": 1, "what": "other", "reason": "ARP", "frames": 2, "first_frame": 1, "example": "",
    }  # fmt: skip
    assert (coverage["rdma_packets"], coverage["rdma_read"], coverage["pfc_frames"]) == (0, 0, 1)


def test_a_capture_of_no_frames_is_no_verdict(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = said(capsys, str(write_capture(tmp_path / "empty.pcapng", [])))
    assert code == 1
    assert "frames       the file has none\n" in out
    assert "Nothing stands out" not in out


def test_of_a_file_that_breaks_off_the_first_frames_are_explained(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = write_capture(tmp_path / "killed.pcapng", PACKETS)
    file.write_bytes(file.read_bytes()[:-10])
    code, out, _ = said(capsys, str(file))
    assert code == 2
    assert out.splitlines()[2].startswith("breaks off   at byte ")
    assert out.splitlines()[2].endswith("; the 3 frames in front of it are explained, and no other")
    code, out, _ = said(capsys, str(file), "--json")
    assert code == 2
    assert json.loads(out)["coverage"]["breaks_off"].startswith("at byte ")


def test_tunnels_are_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    inner = in_udp(4789, b"\x08" + bytes(7) + PACKETS[0])
    code, out, _ = said(capsys, str(write_capture(tmp_path / "vxlan.pcapng", [ethernet(0x0800, inner)] * 2)))
    assert code == 0
    assert "\nin tunnels   2 frames of RDMA in VXLAN\n" in out
    assert FLOW in out


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "capture  at byte 0: found an empty file, wanted pcapng or pcap"),
        (b"schema: 3\n" + bytes(10), "pcapng  at byte 0: found 73636865, wanted a capture: pcapng or pcap"),
        (b"\x1f\x8b\x08\0" + bytes(30), "found a file of gzip, wanted pcapng or pcap; unpack it with gunzip"),
        (b"snoop\0\0\0" + bytes(30), "found a capture of snoop, wanted pcapng or pcap; editcap -F pcapng IN OUT"),
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
