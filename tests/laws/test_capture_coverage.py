"""Laws of what `rdma decode` says of any mix of frames: counts add up, and no verdict claims what was not checked."""

from __future__ import annotations

import contextlib
import io
import json
import re
import tempfile
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from struct import pack
from typing import Any, NamedTuple

from helpers.captures import write
from helpers.cases import case_count
from helpers.encapsulated_frames import FRAME, IPV4, ethernet, frame_of, gre, in_ipv4, in_udp, label
from hypothesis import example, given, settings
from hypothesis import strategies as st

from weftwork.base.errors import ConfigError
from weftwork.cli.rdma_decode import decode
from weftwork.wire.encapsulations import LAYERS
from weftwork.wire.ethernet import ETHERTYPE_IPV4
from weftwork.wire.layers import Carrier
from weftwork.wire.pcap import CapturedPacket
from weftwork.wire.pcapng import encode_pcapng


class Made(NamedTuple):
    """A frame, and what is known of it from how it was made."""

    packet: CapturedPacket
    is_rdma: bool
    is_whole: bool = True
    is_damaged: bool = False


def _foreign(data: bytes, link_type: int = 1) -> Made:
    return Made(CapturedPacket(0, data, len(data), link_type), is_rdma=False)


RDMA = [
    Made(frame_of(row.selector, row.number), is_rdma=row.carrier is not Carrier.PFC)
    for row in LAYERS
    if row.read is not None or row.carrier is not None
]
FOREIGN = [
    _foreign(ethernet(0x0806, bytes(46))),
    _foreign(ethernet(0x88CC, bytes(60))),
    _foreign(ethernet(0x0026, bytes(46))),
    _foreign(ethernet(0x1234, bytes(90))),
    _foreign(ethernet(ETHERTYPE_IPV4, in_ipv4(6, bytes(20)))),
    _foreign(ethernet(ETHERTYPE_IPV4, in_udp(53, bytes(40)))),
    _foreign(ethernet(ETHERTYPE_IPV4, gre(0x880B, bytes(30), 0x3001))),
    _foreign(ethernet(0x8847, label(bytes(40)))),
    *(_foreign(data, link_type) for data in (FRAME, IPV4) for link_type in (9, 105, 147, 250, 65_535)),
]


@st.composite
def frames(draw: st.DrawFn) -> Made:
    """Draw a frame: of any row or foreign, whole, cut by the capture or by a mirror, or damaged."""
    made = draw(st.sampled_from(RDMA) | st.sampled_from(FOREIGN) | st.just(Made(RDMA[0].packet, is_rdma=True)))
    packet, how = made.packet, draw(st.sampled_from(["whole"] * 4 + ["cut", "mirrored", "damaged"]))
    if how == "whole":
        return made
    at = draw(st.integers(0, len(packet.data) - 1))
    if how == "damaged":
        data = bytearray(packet.data)
        data[at] ^= draw(st.integers(1, 255))
        return made._replace(packet=packet._replace(data=bytes(data)), is_damaged=True)
    kept = packet._replace(data=packet.data[:at])
    kept = kept if how == "cut" else kept._replace(original_bytes=at)
    return made._replace(packet=kept, is_whole=False)


def in_order(mix: Iterable[Made]) -> list[Made]:
    """Frames with the next PSN in place of plain ones, so that some captures have no findings."""
    plain, psn, result = RDMA[0].packet, 100, []
    for made in mix:
        if made.packet is plain:
            (data,) = write("a", psn, 1)
            made, psn = made._replace(packet=CapturedPacket(0, data, len(data))), psn + 1  # noqa: PLW2901
        result.append(made)
    return result


def pcap(packets: Iterable[CapturedPacket], link_type: int, order: str, magic: int) -> bytes:
    records = b"".join(
        pack(order + "IIII", 1, 2, len(packet.data), packet.original_bytes) + bytes(packet.data) for packet in packets
    )
    return pack(order + "IHHiIII", magic, 2, 4, 0, 0, 65_535, link_type) + records


def decoded(file: bytes, *, as_json: bool) -> tuple[int, str]:
    """Exit code and output."""
    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()) as out:
        path = Path(folder) / "capture"
        path.write_bytes(file)
        code = decode(path, limit=3, is_noted=False, as_json=as_json)
    return code, out.getvalue()


def check(file: bytes, mix: list[Made] | None) -> None:
    """The laws of a file; ``mix`` is what it holds, where that is known."""
    code, text = decoded(file, as_json=True)
    document: dict[str, Any] = json.loads(text)
    coverage = document["coverage"]
    fates = [(row["read"], row["cut"], row["passed_over"]) for row in coverage["link_types"]]
    assert [sum(row) for row in fates] == [row["frames"] for row in coverage["link_types"]]
    assert sum(map(sum, fates)) == document["frames"]
    assert coverage["read"] == sum(row[0] for row in fates)
    assert sum(group["frames"] for group in coverage["cut"]) == sum(row[1] for row in fates)
    assert sum(group["frames"] for group in coverage["passed_over"]) == sum(row[2] for row in fates)
    assert all(group["reason"] for group in [*coverage["cut"], *coverage["passed_over"]])
    icrc, unchecked = coverage["icrc"], sum(coverage["icrc"]["not_checked"].values())
    assert icrc["right"] + icrc["wrong"] + unchecked == coverage["rdma_packets"]
    assert coverage["rdma_packets"] == document["packets"] - sum(
        document["packets_by_kind"].get(kind, 0) for kind in ("PFC", "other")
    )
    assert code == (2 if coverage["breaks_off"] else 0 if coverage["rdma_read"] else 1)
    _check_words(decoded(file, as_json=False)[1], coverage, unchecked)
    if mix is not None:
        assert document["frames"] == len(mix)
        _check_mix(coverage, mix)


def _check_words(text: str, coverage: dict[str, Any], unchecked: int) -> None:
    icrc = coverage["icrc"]
    assert ("every ICRC holds" in text) <= (icrc["right"] > 0 and not icrc["wrong"] and not unchecked)
    if claimed := re.search(r"every ICRC that was checked holds \(([\d,]+) of ([\d,]+) packet", text):
        assert [int(number) for number in claimed.groups()] == [icrc["right"], coverage["rdma_packets"]]
        assert icrc["right"] > 0 == icrc["wrong"] < unchecked
    assert (f"ICRC of {unchecked} of {coverage['rdma_packets']} packet" in text) == (unchecked > 0)
    assert ("No packet of RDMA was read" in text) == (coverage["rdma_read"] == 0)
    assert ("Nothing stands out" in text) <= (coverage["rdma_read"] > 0)
    lines = text.splitlines()
    last_fact = max(at for at, line in enumerate(lines) if line.startswith(("frames ", "cut ", "passed over ")))
    verdicts = [at for at, line in enumerate(lines) if line.startswith(("to blame", "Nothing", "No packet of RDMA"))]
    assert verdicts
    assert min(verdicts) > last_fact


def _check_mix(coverage: dict[str, Any], mix: list[Made]) -> None:
    by_link = {row["link_type"]: row["frames"] for row in coverage["link_types"]}
    assert by_link == Counter(made.packet.link_type for made in mix)
    undamaged = not any(made.is_damaged for made in mix)
    if undamaged:
        assert coverage["icrc"]["wrong"] == 0
        assert coverage["read"] >= sum(made.is_whole for made in mix if made in RDMA)
        assert coverage["read"] + sum(group["frames"] for group in coverage["cut"]) <= len(mix) - sum(
            made in FOREIGN for made in mix
        )
        if not any(made.is_rdma for made in mix):
            assert coverage["rdma_read"] == 0


@settings(max_examples=case_count(plain=60, deep=1_000))
@example(mix=[], keep=1.0)
@example(mix=[RDMA[0]._replace(packet=RDMA[0].packet._replace(data=FRAME[:96]), is_whole=False)] * 3, keep=1.0)
@given(mix=st.lists(frames(), max_size=12), keep=st.just(1.0) | st.floats(0, 1))
def test_counts_add_up_and_verdicts_claim_what_was_checked(mix: list[Made], keep: float) -> None:
    mix = in_order(mix)
    file = b"".join(encode_pcapng(made.packet for made in mix))
    kept = file[: round(keep * len(file))]
    if len(kept) == len(file):
        check(file, mix)
        return
    with contextlib.suppress(ConfigError):  # nothing was read before the break
        check(kept, None)


@settings(max_examples=case_count(plain=40, deep=400))
@given(
    mix=st.lists(frames(), max_size=8),
    link_type=st.sampled_from(sorted({made.packet.link_type for made in RDMA + FOREIGN})) | st.integers(0, 0xFFFF),
    order=st.sampled_from("<>"),
    magic=st.sampled_from([0xA1B2C3D4, 0xA1B23C4D]),
)
def test_the_older_format_obeys_the_same_laws(mix: list[Made], link_type: int, order: str, magic: int) -> None:
    """A file of pcap has one link type, whatever its frames are."""
    packets = [made.packet._replace(link_type=link_type) for made in mix]
    check(pcap(packets, link_type, order, magic), None)
