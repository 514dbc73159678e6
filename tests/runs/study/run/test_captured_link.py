"""``weftwork run --capture``: frames of a link whose headers say what was simulated, as a file that explains itself."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from weftwork.base.errors import ConfigError
from weftwork.cli import main
from weftwork.engine import packet
from weftwork.engine.outcome import Outcome
from weftwork.engine.packet_input import PacketInput
from weftwork.engine.rows.outcome import CAPTURE_KINDS
from weftwork.rdma.capture import CaptureExplainer
from weftwork.rdma.findings import find_trouble
from weftwork.store.runs import Run
from weftwork.study.prepare.prepare import prepare, read_scenario
from weftwork.study.record.road import execute
from weftwork.study.record.run import run_scenario
from weftwork.study.run.captured_frames import CapturedFrames
from weftwork.study.run.captured_link import DEFAULT_PACKETS, MOST_PACKETS, CapturedLink, capture_request
from weftwork.wire.dissection import Carrier, Dissection, dissect
from weftwork.wire.ethernet import FCS_BYTES
from weftwork.wire.hpcc_int import IntPath
from weftwork.wire.ip import ECN_CE, Ipv4Header
from weftwork.wire.opcodes import Opcode
from weftwork.wire.pcap import CapturedPacket
from weftwork.wire.pcapng import read_capture
from weftwork.wire.rocev2_frames import FORMAT

DATAGRAMS = Path(__file__).parents[3] / "transports" / "datagrams.py"
SCENARIO = """schema: 3
name: captured
fabric: {topology: leaf-spine, leaves: 2, spines: 2, hosts_per_leaf: 4, link_rate: 100Gbps}
traffic: {pattern: incast, senders: 4, size: 400KB}
"""
LOSSY = {"faults": "[{at: 0s, link: host1-leaf0, event: lossy, loss: 0.02}]"}
PAUSED = {"transport.congestion_control": "none", "fabric.switch.buffer": "300KB"}
TRIMMED = {"transport.trimming": "true", "transport.recovery": "selective-repeat", "transport.flow_control": "none",
           "transport.congestion_control": "eqds", "fabric.switch.buffer": "200KB", "traffic.senders": "7"}  # fmt: skip
TELEMETRY = {"transport.congestion_control": "hpcc", "fabric.switch.telemetry": "true"}
UP, DOWN, LINK = "host1->leaf0", "leaf0->host1", "host1-leaf0"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    written = tmp_path / "captured.yaml"
    written.write_text(SCENARIO, encoding="utf-8")
    return written


def captured(
    file: Path, overrides: dict[str, str], link: str = LINK
) -> tuple[Outcome, list[CapturedPacket], list[str]]:
    """What the engine captured, the frames made of it, and what has no wire form."""
    prepared = prepare(read_scenario(file, overrides))
    outcome = execute(prepared, what_if="none", capture=capture_request(prepared, CapturedLink(name=link))).outcome
    assert isinstance(prepared.engine_input, PacketInput)
    frames = CapturedFrames(prepared.engine_input, outcome, prepared.fabric, FORMAT)
    return outcome, list(frames), frames.without_wire_form()


def ran(file: Path, overrides: dict[str, str], link: str = LINK, **arguments: Any) -> tuple[Run, list[CapturedPacket]]:
    run = run_scenario(
        file, out=file.parent / "out", overrides=overrides, what_if="none", capture=CapturedLink(name=link), **arguments
    )
    return run, list(read_capture((run.path / run.provenance["capture"]["file"]).read_bytes()))


def explained(packets: list[CapturedPacket]) -> CaptureExplainer:
    seen = CaptureExplainer()
    for one in packets:
        seen.explain(one)
    return seen


def of_kind(outcome: Outcome, packets: list[CapturedPacket], kind: str) -> list[tuple[dict[str, int], Dissection]]:
    names = outcome.captured.dtype.names or ()
    rows = [dict(zip(names, row, strict=True)) for row in outcome.captured.tolist()]
    pairs = zip(rows, packets, strict=True)
    return [(row, dissect(one)) for row, one in pairs if CAPTURE_KINDS[row["kind"]] == kind]


def test_a_clean_run_has_nothing_to_find(file: Path) -> None:
    run, packets = ran(file, {"traffic.size": "100KB"})
    seen = explained(packets)
    assert find_trouble(seen) == []
    assert [(flow.messages, flow.payload_bytes) for flow in seen.flows.by_key.values() if flow.messages] == [
        (1, 100_000)
    ]
    assert run.provenance["capture"]["packets"] == len(packets)
    assert run.provenance["capture"]["left_out"] == 0


@pytest.mark.parametrize("link", [LINK, "host0-leaf0"])
@pytest.mark.parametrize("overrides", [LOSSY, PAUSED], ids=["lossy", "paused"])
def test_every_frame_is_as_long_as_it_was_simulated_and_tells_the_same(
    file: Path, overrides: dict[str, str], link: str
) -> None:
    outcome, packets, _ = captured(file, overrides, link)
    rows = outcome.captured
    assert [len(one.data) + FCS_BYTES for one in packets] == rows["size_bytes"].tolist()
    assert [one.time_ns for one in packets] == (rows["at_ps"] // 1_000).tolist()
    found = [dissect(one) for one in packets]
    assert not any(one.problem or one.has_wrong_icrc for one in found)
    data = of_kind(outcome, packets, "DATA")
    for row, one in data:
        assert one.transport is not None
        assert isinstance(one.ip, Ipv4Header)
        assert one.udp is not None
        assert (one.transport.bth.psn, one.transport.bth.ack_request) == (row["seq"], bool(row["asks_ack"]))
        assert (one.ip.ttl, one.ip.ecn == ECN_CE) == (64 - row["hops"], bool(row["marked"]))
        assert one.udp.source_port == row["entropy"]
        assert len(one.transport.payload) == row["payload_bytes"]
        wanted = Opcode.WRITE_FIRST if row["seq"] == 0 else Opcode.WRITE_LAST if row["seq"] == 97 else None
        assert one.transport.bth.opcode == (wanted or Opcode.WRITE_MIDDLE)
    assert len(data) > 90
    for row, one in of_kind(outcome, packets, "ACK"):
        assert one.transport is not None
        assert one.transport.bth.psn == (row["seq"] - 1) % (1 << 24)


def test_a_lossy_run_shows_the_packets_that_its_summary_counts(file: Path) -> None:
    run, packets = ran(file, LOSSY)
    (flow,) = [flow for flow in explained(packets).flows.by_key.values() if flow.messages]
    assert flow.sent_again == run.value("retransmissions") > 0
    assert sum(flow.naks.values()) == run.value("naks_sent") > 0


def test_pauses_are_pfc_frames_of_the_port_that_sends_them(file: Path) -> None:
    outcome, packets, _ = captured(file, PAUSED)
    pauses = of_kind(outcome, packets, "PAUSE")
    assert pauses
    for row, one in pauses:
        assert one.kind is Carrier.PFC
        assert one.pause is not None
        assert one.ethernet is not None
        assert one.pause.quanta[3] == row["amount"]
        assert one.ethernet.source == bytes([2, 0]) + row["port"].to_bytes(4, "big")


def test_the_ttl_of_an_answer_counts_the_switches_to_its_origin(file: Path) -> None:
    """ACKs of host0, on the other leaf than host4: one switch passed at leaf0, two at the spine, three at leaf1."""
    for link, passed in (("host0->leaf0", 0), ("leaf1->host4", 3)):
        outcome, packets, notes = captured(file, {}, link)
        acks = of_kind(outcome, packets, "ACK")
        assert {one.ip.ttl for _, one in acks if isinstance(one.ip, Ipv4Header)} == {64 - passed}
        assert any("shortest path" in note for note in notes) == (passed > 0)


def test_the_ce_mark_and_the_dscp_are_there(file: Path) -> None:
    outcome, packets, _ = captured(file, {}, "leaf0->host0")
    marked = sum(one.ip is not None and one.ip.ecn == ECN_CE for one in map(dissect, packets))
    assert marked == outcome.captured["marked"].sum() > 0
    priorities = {one.ip.dscp // 8 for one in map(dissect, packets) if one.ip is not None}
    assert priorities == {3}
    assert {one.interface for one in packets} == {"leaf0->host0"}


def test_what_rocev2_cannot_say_is_a_comment_or_left_out_and_named(file: Path) -> None:
    outcome, packets, notes = captured(file, TRIMMED, "host0-leaf0")
    rows = outcome.captured
    cut = [one for one in packets if one.comment.startswith("cut to its headers")]
    assert len(cut) == ((rows["kind"] == 0) & (rows["cut"] == 1)).sum() > 0
    assert all(one.original_bytes > len(one.data) for one in cut)
    credits_given = [one for one in packets if one.comment.startswith("CREDIT: ")]
    assert len(credits_given) == (rows["kind"] == CAPTURE_KINDS.index("CREDIT")).sum() > 0
    assert {bytes(one.data)[42] for one in credits_given} == {0xC0}  # behind Ethernet, IPv4 and UDP
    assert any(one.comment.startswith("NAK of PSN") for one in packets)
    words = ("transmission numbers", "CREDIT, PROBE or REQUEST", "cut by switches", "NAKs name")
    assert [word for word in words if not any(word in note for note in notes)] == []
    _, _, of_timestamps = captured(file, {"transport.congestion_control": "swift"})
    assert [word for word in ("fields of policies", "echoes") if not any(word in n for n in of_timestamps)] == []


def test_telemetry_lies_behind_the_ip_packet(file: Path) -> None:
    outcome, packets, notes = captured(file, TELEMETRY, "leaf1-spine0")
    assert [len(one.data) + FCS_BYTES for one in packets] == outcome.captured["size_bytes"].tolist()
    hops = set()
    for row, one in zip(outcome.captured, packets, strict=True):
        found = dissect(one)
        assert found.ip is not None
        block, rest = IntPath.decode(bytes(one.data)[14 + found.ip.size_bytes + found.ip.payload_bytes :])
        count = int(row["hop_count"])
        assert (len(block.hops), len(rest)) == (count, 0)
        assert [hop.rate_bps for hop in block.hops] == [100 * 10**9] * count
        assert [hop.time_ns for hop in block.hops] == (row["hop_at_ps"][:count] // 1_000).tolist()
        assert [hop.queue_units for hop in block.hops] == (row["hop_queue_bytes"][:count] // 80).tolist()
        assert [hop.sent_units for hop in block.hops] == (row["hop_tx_bytes"][:count] // 128).tolist()
        hops.add(count)
    assert hops == {1, 3}  # data leaves leaf1; ACKs echo a whole path
    assert any("telemetry" in note for note in notes)


def test_credit_between_links_is_counted_and_left_out(file: Path) -> None:
    outcome, packets, notes = captured(file, {"transport.flow_control": "credits"}, "host0-leaf0")
    credit = int((outcome.captured["kind"] == CAPTURE_KINDS.index("LINK CREDIT")).sum())
    assert credit > 0
    assert len(packets) == len(outcome.captured) - credit
    assert f"{credit:,} frames of credit between links: left out" in notes


def test_the_reference_engine_writes_the_same_file(file: Path) -> None:
    files = []
    for fidelity in ("packet", "reference"):
        run = run_scenario(
            file,
            out=file.parent / fidelity,
            overrides={"engine.fidelity": fidelity, **LOSSY},
            what_if="none",
            capture=CapturedLink(name=LINK),
        )
        files.append((run.path / run.provenance["capture"]["file"]).read_bytes())
    assert files[0] == files[1]


def test_a_port_is_one_direction_of_its_link_and_a_limit_keeps_the_earliest(file: Path) -> None:
    both, up, down = (captured(file, {}, link)[0].captured for link in (LINK, UP, DOWN))
    assert len(up)
    assert len(down)
    apart = np.concatenate([up, down])
    assert np.array_equal(both, apart[np.lexsort((apart["port"], apart["at_ps"]))])
    run = run_scenario(
        file, out=file.parent / "few", what_if="none", capture=CapturedLink(name=LINK, packets=7), seeds=2
    )
    said = [seed.provenance["capture"] for seed in run.seeds]
    assert [one["packets"] for one in said] == [7, 7]
    assert said[0]["left_out"] == len(both) - 7
    first = (run.seeds[0].path / said[0]["file"]).read_bytes()
    assert [one.time_ns for one in read_capture(first)] == (both["at_ps"][:7] // 1_000).tolist()


def test_a_capture_changes_nothing_of_the_run(file: Path) -> None:
    prepared = prepare(read_scenario(file, LOSSY))
    assert isinstance(prepared.engine_input, PacketInput)
    outcome, _, _ = captured(file, LOSSY)
    assert outcome.digest() == packet.run(prepared.engine_input).digest()
    assert np.all(np.diff(outcome.captured["at_ps"]) >= 0)


@pytest.mark.parametrize(
    ("arguments", "found"),
    [
        (["--capture", "leaf0-host1"], "wanted a link such as host0-leaf0 or a port such as host0->leaf0;"),
        (["--capture", "leaf0-host1"], "did you mean 'host1-leaf0'?"),
        (["--capture", "leaf0->hots1"], "did you mean 'leaf0->host1'?"),
        (["--capture", LINK, "--set", "engine.fidelity=flow"], "flows have no packets to capture"),
        (["--capture", LINK, "--capture-packets", "0"], f"found 0, wanted 1 to {MOST_PACKETS:,}"),
        (["--capture-packets", "5"], "found a limit and no link to capture"),
    ],
)  # fmt: skip
def test_what_cannot_be_captured_is_refused(
    file: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], found: str
) -> None:
    with pytest.raises(SystemExit) as left:
        main(["run", str(file), "-o", str(file.parent / "refused"), *arguments])
    assert left.value.code == 2
    assert found in capsys.readouterr().err
    assert not (file.parent / "refused").exists()


def test_a_transport_without_a_wire_format_is_refused(file: Path) -> None:
    prepared = prepare(read_scenario(file, {"transport.protocol": str(DATAGRAMS)}))
    wanted = "transport 'datagrams' has no wire format here; captures are of rocev2"
    with pytest.raises(ConfigError, match=wanted):
        capture_request(prepared, CapturedLink(name=LINK))


def test_the_terminal_says_how_much_was_captured(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = file.parent / "told"
    with pytest.raises(SystemExit) as left:
        main(["run", str(file), "-o", str(out), "--capture", UP, "--capture-packets", "9", "--what-if", "none"])
    said = capsys.readouterr().out
    assert left.value.code == 0
    assert f"capture: 9 packets of {UP} in {out / 'capture-host1-to-leaf0.pcapng'}; 89 later ones left out" in said
    assert "without a wire form in RoCEv2: transmission numbers" in said
    assert DEFAULT_PACKETS == 10_000  # as the help of the option says
