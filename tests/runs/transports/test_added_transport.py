"""A transport of another family is one file of the folder: listed, run at every fidelity, captured, and compared."""

from __future__ import annotations

import json
import os
import shutil
import struct
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import weftwork
from weftwork.wire.ip import Ipv4Header, internet_checksum
from weftwork.wire.pcapng import read_capture

TCP = Path(__file__).parents[2] / "transports" / "tcp.py"
SCENARIO = """schema: 3
name: two transports
fabric: {topology: leaf-spine, leaves: 2, spines: 2, hosts_per_leaf: 2, link_rate: 100Gbps, switch: {buffer: 500KB}}
transport: {protocol: tcp}
traffic: {pattern: incast, senders: 3, size: 400KB}
"""
PROGRAM = """
import contextlib, io, json
from weftwork.cli import main

def said(*words):
    with contextlib.redirect_stdout(io.StringIO()) as out:
        try:
            main(list(words))
        except SystemExit as leaving:
            assert not leaving.code, words
    return out.getvalue()

quick = ("--what-if", "none")
print(json.dumps({
    "list": said("list", "transport"),
    "explain": said("explain", "transport.protocol"),
    "packet": said("run", "two.yaml", "-o", "packet", "--capture", "host0-leaf0", *quick),
    "flow": said("run", "two.yaml", "-o", "flow", "--set", "engine.fidelity=flow", *quick),
    "reference": said("run", "two.yaml", "-o", "reference", "--set", "engine.fidelity=reference", *quick),
    "sweep": said("sweep", "two.yaml", "-o", "sweep", "-j", "1", "--set", "transport.protocol=rocev2,tcp"),
}))
"""


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    """What a copy of Weftwork says in whose folder of transports there is one more file."""
    folder = tmp_path_factory.mktemp("added")
    copy = folder / "src" / "weftwork"
    shutil.copytree(weftwork.__path__[0], copy, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(TCP, copy / "transports")
    (folder / "two.yaml").write_text(SCENARIO, encoding="utf-8")
    environment = {**os.environ, "PYTHONPATH": str(folder / "src")}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=False, cwd=folder, env=environment
    )
    assert done.returncode == 0, done.stderr
    return folder, json.loads(done.stdout)


def provenance(folder: Path, run: str) -> dict[str, Any]:
    stored: dict[str, Any] = json.loads((folder / run / "provenance.json").read_text(encoding="utf-8"))
    return stored


def test_it_is_listed_and_offered(told: tuple[Path, dict[str, Any]]) -> None:
    assert "\ntcp " in told[1]["list"]
    assert "rocev2" in told[1]["list"]
    assert "tcp" in told[1]["explain"]


def test_it_runs_at_every_fidelity_with_its_own_defaults(told: tuple[Path, dict[str, Any]]) -> None:
    folder, said = told
    for fidelity in ("packet", "flow", "reference"):
        assert "transport  tcp, cubic" in said[fidelity]
    assert provenance(folder, "packet")["digest"] == provenance(folder, "reference")["digest"]


def test_both_transports_are_compared_by_a_sweep(told: tuple[Path, dict[str, Any]]) -> None:
    rows = [line for line in told[1]["sweep"].splitlines() if "us" in line and line.split()[0] in ("rocev2", "tcp")]
    assert sorted(line.split()[0] for line in rows) == ["rocev2", "tcp"]


def segments(folder: Path) -> list[tuple[Ipv4Header, tuple[int, ...], int]]:
    """IP header, numbers of the TCP header, and payload of each captured frame."""
    found = []
    for packet in read_capture((folder / "packet" / "capture-host0-leaf0.pcapng").read_bytes()):
        ip, segment = Ipv4Header.decode(memoryview(packet.data)[14:])
        assert ip.protocol == 6
        pseudo = struct.pack(">4s4sBBH", ip.source.packed, ip.destination.packed, 0, 6, len(segment))
        assert internet_checksum(pseudo + bytes(segment)) == 0
        numbers = struct.unpack_from(">HHIIBB", segment)
        found.append((ip, numbers, len(segment) - 4 * (numbers[4] >> 4)))
    return found


def test_its_captured_packets_have_its_headers(told: tuple[Path, dict[str, Any]]) -> None:
    folder, said = told
    about = provenance(folder, "packet")["capture"]
    seen = segments(folder)
    assert about["wire_format"] == "TCP"
    assert about["packets"] == len(seen) > 100
    assert "without a wire form in TCP: transmission numbers of DATA" in said["packet"]
    senders = {ip.source for ip, _, payload_bytes in seen if payload_bytes}
    assert len(senders) == 3
    for sender in senders:
        data = [(numbers[2], payload) for ip, numbers, payload in seen if ip.source == sender and payload]
        assert {seq for seq, _ in data} == {1 + 4096 * packet for packet in range(-(-400_000 // 4096))}
        acked = [numbers[3] for ip, numbers, payload in seen if ip.destination == sender and not payload]
        assert acked == sorted(acked)
        assert acked[-1] == 400_001
