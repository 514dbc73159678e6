"""tshark finds the same packet of RDMA behind each link type and encapsulation that our table reads."""

from __future__ import annotations

import subprocess
from pathlib import Path

from helpers.encapsulated_frames import PSN, frame_of
from helpers.tshark import NEEDS_TSHARK, TSHARK

from weftwork.wire.encapsulations import LAYERS
from weftwork.wire.layers import Carrier, Selector
from weftwork.wire.pcapng import encode_pcapng

pytestmark = NEEDS_TSHARK
# rows that tshark 4.0 does not read, each with its reason
NOT_OF_TSHARK = {
    (Selector.LINK_TYPE, 247): "tshark 4.0 does not know this link type",
    (Selector.ETHERTYPE, 0x9200): "tshark takes tags of 0x8100, 0x88a8 and 0x9100",
    (Selector.ETHERTYPE, 0x9300): "tshark takes tags of 0x8100, 0x88a8 and 0x9100",
}


def test_tshark_reads_the_same_packet(tmp_path: Path) -> None:
    rows = [row for row in LAYERS if row.read is not None or row.carrier not in {None, Carrier.PFC}]
    file = tmp_path / "all.pcapng"
    file.write_bytes(b"".join(encode_pcapng(frame_of(row.selector, row.number) for row in rows)))
    command = [str(TSHARK), "-n", "-r", str(file), "-d", "udp.port==4791,infiniband", "-d", "udp.port==8472,vxlan"]
    command += ["--disable-protocol", "rpcordma", "-T", "fields", "-E", "separator=|", "-E", "occurrence=l"]
    command += ["-e", "infiniband.bth.psn", "-e", "_ws.malformed"]
    answer = subprocess.run(command, capture_output=True, text=True, check=True)
    values = dict(zip([(row.selector, row.number) for row in rows], answer.stdout.splitlines(), strict=True))
    unread = {key for key, value in values.items() if value != f"{PSN}|"}
    assert unread == set(NOT_OF_TSHARK)
