"""What two NICs say to each other, captured: every operation is there, every ICRC is right, and it is explained."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from helpers.captures import write_capture
from helpers.rdma_captures import (
    CONVERSATIONS,
    frames_of,
)

from weftwork.cli import main
from weftwork.wire.dissection import dissect
from weftwork.wire.pcapng import read_capture

FRAMES = {conversation.__name__: frames_of(conversation) for conversation in CONVERSATIONS}


EVERY_FRAME = [frame for frames in FRAMES.values() for frame in frames]


@pytest.mark.parametrize("name", FRAMES)
def test_every_icrc_is_right(name: str, tmp_path: Path) -> None:
    packets = list(read_capture(write_capture(tmp_path / "nic.pcapng", FRAMES[name]).read_bytes()))
    assert len(packets) == len(FRAMES[name])
    for packet in packets:
        found = dissect(packet)
        assert (found.problem, found.has_wrong_icrc) == ("", False)
        assert found.icrc_found is not None


def test_the_command_explains_them_all(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = write_capture(tmp_path / "nic.pcapng", EVERY_FRAME)
    with pytest.raises(SystemExit) as left:
        main(["rdma", "decode", str(file), "--json"])
    assert left.value.code in {0, None}
    found = json.loads(capsys.readouterr().out)
    assert found["packets"] == len(EVERY_FRAME)
    assert found["packets_by_kind"] == {"RoCEv2": len(EVERY_FRAME)}
    assert not any("ICRC" in note for row in found["table"] for note in row["notes"])
