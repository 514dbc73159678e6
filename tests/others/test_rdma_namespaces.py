"""The software NIC over a wire between two network namespaces: what its packets look like there."""

from __future__ import annotations

import json
import shutil
import subprocess

import pytest
from helpers.namespaces import Wire, may_be_made

WHY_NOT = may_be_made()
pytestmark = pytest.mark.skipif(WHY_NOT is not None, reason=WHY_NOT or "")
PATIENCE_S = 60

SERVER = """
import sys
import numpy as np
from weftwork import rdma
from weftwork.rdma.verbs import AccessFlags
may = AccessFlags.REMOTE_WRITE | AccessFlags.REMOTE_READ | AccessFlags.REMOTE_ATOMIC
address, offload, raw, wire = sys.argv[1], sys.argv[2] == "offload", sys.argv[3] == "raw", sys.argv[4]
device = rdma.RdmaDevice(address, wire=wire, offload=offload, checks_identification=raw)
with rdma.RdmaListener(device, 7471) as listener:
    print("ready", flush=True)
    with listener.get_request().wait() as connection:
        connection.accept(connection.reg_mr(np.zeros(1 << 20, np.uint8), may).remote.encode()).wait()
        connection.closed.wait()
    print(dict(device.nic.counters), flush=True)
"""
CLIENT = """
import json, sys
import numpy as np
from weftwork import rdma
address, peer, offload, wire = sys.argv[1], sys.argv[2], sys.argv[3] == "offload", sys.argv[4]
with rdma.RdmaConnector(rdma.RdmaDevice(address, wire=wire, offload=offload), peer, 7471) as connection:
    remote = rdma.RemoteRange.decode(connection.private_data)
    sent = np.random.default_rng(1).integers(0, 256, 1 << 20, np.uint8)
    back = np.zeros_like(sent)
    connection.write(connection.reg_mr(sent), remote).wait()
    connection.read(connection.reg_mr(back), remote).wait()
    added = connection.fetch_add(remote[:8], 1).wait()
    print(json.dumps({
        "same": bool((sent == back).all()),
        "added": added == int.from_bytes(bytes(sent[:8]), sys.byteorder),
        "path_mtu": connection.qp.attr.path_mtu,
        "counters": dict(connection.device.nic.counters),
        "refused": connection.device.port.counters["send_refused"],
    }))
"""
# Sees all frames of one end, as tcpdump does, until it is told to stop.
WATCHER = """
import json, select, socket, sys
from weftwork.wire.fields import MalformedPacket
from weftwork.wire.icrc import check_icrc
is_rocev1 = sys.argv[1] == "rocev1"
watch = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(3))
watch.setsockopt(socket.SOL_SOCKET, 33, 64 << 20)
watch.bind(("wire", 3))
print("ready", flush=True)
seen = {"packets": 0, "wrong": 0, "longest": 0, "identifications": 0}
numbers = set()
while True:
    ready, _, _ = select.select([watch, sys.stdin], [], [])
    if watch in ready:
        frame, (_, ethertype, *_) = watch.recvfrom(1 << 16)
        is_ipv4 = frame[0] >> 4 == 4
        if is_rocev1:
            if ethertype != 0x8915:
                continue
        elif (is_ipv4 and (frame[9] != 17 or frame[22:24] != b"\\x12\\xb7")) or (not is_ipv4 and frame[6] != 17):
            continue
        seen["packets"] += 1
        seen["longest"] = max(seen["longest"], len(frame))
        if is_ipv4:
            numbers.add(int.from_bytes(frame[4:6], "big"))
        try:
            check_icrc(frame)
        except MalformedPacket:
            seen["wrong"] += 1
    elif sys.stdin in ready:
        break
seen["identifications"] = sorted(numbers)
print(json.dumps(seen), flush=True)
"""


def talk(wire: Wire, *, offload: bool, raw: bool = False, over: str = "rocev2") -> tuple[dict, dict]:
    """Run a client against a server; returns what the client and what a watcher of the wire say."""
    here, there = (address.partition("/")[0] for address in wire.addresses)
    mode = "offload" if offload else "single"
    ends: list[subprocess.Popen[str]] = []
    try:
        watcher = wire.python(0, WATCHER, over)
        server = wire.python(1, SERVER, there, mode, "raw" if raw else "udp", over)
        ends += [watcher, server]
        for end in ends:
            assert end.stdout is not None
            assert end.stdout.readline() == "ready\n"
        client = wire.python(0, CLIENT, here, there, mode, over)
        ends.append(client)
        told, _ = client.communicate(timeout=PATIENCE_S)
        assert client.returncode == 0, told
        counters, _ = server.communicate(timeout=PATIENCE_S)
        assert counters == "{}\n"
        seen, _ = watcher.communicate("stop\n", timeout=PATIENCE_S)
        return json.loads(told), json.loads(seen)
    finally:
        for end in ends:
            end.kill()
            end.wait()


@pytest.mark.parametrize(("mtu", "path_mtu"), [(1500, 1024), (9000, 4096)])
def test_every_packet_on_the_wire_is_right(mtu: int, path_mtu: int) -> None:
    with Wire(mtu, ("10.213.1.1/24", "10.213.1.2/24")) as wire:
        told, seen = talk(wire, offload=False)
    assert told == {"same": True, "added": True, "path_mtu": path_mtu, "counters": {}, "refused": 0}
    assert seen["packets"] > 2 * (1 << 20) / path_mtu
    assert (seen["wrong"], seen["identifications"]) == (0, [0])
    assert seen["longest"] <= mtu


@pytest.mark.skipif(shutil.which("ethtool") is None, reason="takes the program ethtool (Debian: ethtool)")
def test_trains_that_the_system_cuts_are_right_packet_by_packet() -> None:
    with Wire(1500, ("10.213.2.1/24", "10.213.2.2/24")) as wire:
        for end in (0, 1):
            wire.run(end, "ethtool", "-K", "wire", "tx-udp-segmentation", "off")
        told, seen = talk(wire, offload=True)
    assert told["same"]
    assert told["counters"] == {}
    assert seen["wrong"] == 0
    assert seen["longest"] <= 1500
    assert seen["identifications"][:16] == list(range(16))


def test_trains_pass_a_wire_that_does_not_cut_them() -> None:
    with Wire(9000, ("10.213.3.1/24", "10.213.3.2/24")) as wire:
        told, seen = talk(wire, offload=True)
    assert told == {"same": True, "added": True, "path_mtu": 4096, "counters": {}, "refused": 0}
    assert seen["longest"] > 9000


def test_ipv6() -> None:
    with Wire(1500, ("fd00:213::1/64", "fd00:213::2/64")) as wire:
        told, seen = talk(wire, offload=False)
    assert told["same"]
    assert told["counters"] == {}
    assert seen["wrong"] == 0


def test_a_raw_port_checks_all_of_it() -> None:
    with Wire(1500, ("10.213.4.1/24", "10.213.4.2/24")) as wire:
        told, seen = talk(wire, offload=False, raw=True)
    assert told["same"]
    assert seen["wrong"] == 0


@pytest.mark.parametrize(
    ("addresses", "mtu", "path_mtu"),
    [
        (("10.213.5.1/24", "10.213.5.2/24"), 1500, 1024),
        (("fd00:215::1/64", "fd00:215::2/64"), 9000, 4096),
    ],
    ids=["ipv4", "ipv6"],
)
def test_rocev1_between_two_machines(addresses: tuple[str, str], mtu: int, path_mtu: int) -> None:
    with Wire(mtu, addresses) as wire:
        told, seen = talk(wire, offload=True, over="rocev1")
    told.pop("refused")  # first messages, where the system takes its time to find the neighbour; they are sent again
    assert told == {"same": True, "added": True, "path_mtu": path_mtu, "counters": {}}
    assert seen["packets"] > 2 * (1 << 20) / path_mtu
    assert seen["wrong"] == 0
    assert seen["longest"] <= mtu
