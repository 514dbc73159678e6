"""The NIC behind each encapsulation: its packets against the codecs, its datagrams, and its connections."""

from __future__ import annotations

from pathlib import Path

import pytest
from helpers.rdma_captures import packets_of, reliable
from helpers.rdma_encapsulations import ENCAPSULATIONS

from weftwork.cli import main
from weftwork.rdma.encapsulation import Encapsulation
from weftwork.wire.pcapng import encode_pcapng

EACH = pytest.mark.parametrize("encapsulation", ENCAPSULATIONS.values(), ids=ENCAPSULATIONS)


@EACH
def test_decode_explains_a_capture(
    encapsulation: Encapsulation, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    packets = packets_of(reliable, encapsulation)
    file = tmp_path / "nic.pcapng"
    file.write_bytes(b"".join(encode_pcapng(packets)))
    with pytest.raises(SystemExit) as left:
        main(["rdma", "decode", str(file)])
    assert left.value.code in {0, None}
    printed = capsys.readouterr().out
    assert f"({len(packets)} {encapsulation.name})" in printed
    assert "Nothing stands out: every ICRC holds" in printed
