"""Another user of the machine, who knows every number of a connection, puts nothing into it and learns nothing.

The programs run in a network namespace of their own: the victim as one user, the attacker as another, or as the same
user to show that the forged packets are good ones.
"""

from __future__ import annotations

import json
import subprocess
from typing import Any

import pytest
from helpers.namespaces import LOAD, command_in_namespace, users_may_be_two

WHY_NOT = users_may_be_two()
pytestmark = pytest.mark.skipif(WHY_NOT is not None, reason=WHY_NOT or "")
PATIENCE_S = 120
VICTIM, ATTACKER = 65_533, 65_534  # nobody's and nogroup's neighbours: no files are theirs
PROGRAM = '''
import errno, json, os, socket, sys, threading
from ipaddress import IPv4Address
from weftwork import rdma
from weftwork.wire.extended import Aeth, AethKind
from weftwork.wire.ib import Bth, cnp_bth, CNP_BODY
from weftwork.wire.opcodes import Opcode
from weftwork.wire.rocev2 import rocev2_packet
from weftwork.wire.transport import transport_packet

kind, uid, victim, wire = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
HERE, ELSEWHERE, PORT = "127.0.0.1", "127.0.0.9", 7471


def become(user):
    os.setgroups([])
    os.setgid(user)
    os.setuid(user)


def out_datagrams():
    rows = [line.split() for line in open("/proc/net/snmp") if line.startswith("Udp:")]
    return int(rows[1][rows[0].index("OutDatagrams")])


def serve(to_parent, from_parent):
    become(victim)
    buffers = [bytearray(32) for _ in range(3)]
    ready = threading.Event()
    kept = {}

    def listen():
        with rdma.listen(HERE, PORT, wire=wire) as listener:
            ready.set()
            with listener.get_request().wait() as connection:
                works = [connection.recv(connection.reg_mr(buffer)) for buffer in buffers]
                kept.update(server=connection, got=[])
                connection.accept().wait()
                for work, buffer in zip(works[:2], buffers):
                    kept["got"].append(bytes(buffer[:work.wait(60).byte_len]).decode())
                connection.closed.wait(60)

    thread = threading.Thread(target=listen, daemon=True)
    thread.start()
    if not ready.wait(60):
        raise SystemExit("the listener did not come up")
    with rdma.connect(HERE, PORT, wire=wire) as connection:
        connection.send(connection.reg_mr(bytearray(b"the first"))).wait(60)
        server, client = kept["server"].qp, connection.qp
        facts = {
            "qp": server.qp_num, "psn": server._rc.expected_psn, "peer_port": client.source_port,
            "client_qp": client.qp_num, "una": client.requester.una, "server_port": server.source_port,
        }
        os.write(to_parent, (json.dumps(facts) + "\\n").encode())
        os.read(from_parent, 1)
        with_error = ""
        try:
            connection.send(connection.reg_mr(bytearray(b"the second"))).wait(60)
        except rdma.WorkError as error:
            with_error = str(error)
        thread_counters = [dict(server.counters), dict(client.counters)]
    thread.join(60)
    told = {"got": kept["got"], "error": with_error, "counters": thread_counters}
    os.write(to_parent, (json.dumps(told) + "\\n").encode())


def forged(facts):
    """Packets that say they come from the peer, in an order in which the first good one is enough."""
    source = IPv4Address(HERE)

    def packet(number, psn, opcode, payload, port):
        made = transport_packet(Bth(opcode, number, psn % (1 << 24), ack_request=True), (), payload)
        whole = rocev2_packet(source=source, destination=source, source_port=port, bth=made.bth, body=made.body())
        return whole.encode()[28:]

    for psn in (facts["psn"] - 1, facts["psn"] + 1, facts["psn"] + (1 << 23)):
        yield lambda port, psn=psn: packet(facts["qp"], psn, Opcode.SEND_ONLY, b"probe", port)
    yield lambda port: packet(facts["qp"], facts["psn"], Opcode.SEND_ONLY, b"forged", port)


def attack(facts):
    become(uid)
    sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    sender.setsockopt(socket.IPPROTO_IP, 10, 2)  # IP_MTU_DISCOVER: identification 0
    sender.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    sender.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, kind == "reuse")
    ancillary = []
    where = {"own port": (HERE, 0), "any address": ("", facts["peer_port"])}.get(kind, (ELSEWHERE, facts["peer_port"]))
    if kind != "own port":  # IP_PKTINFO: any address of this machine as the source
        ancillary = [(socket.IPPROTO_IP, 8, bytes(4) + socket.inet_aton(HERE) + bytes(4))]
    try:
        sender.bind(where)
    except OSError as error:
        return {"refused": errno.errorcode[error.errno], "sent": 0}
    port = sender.getsockname()[1]
    sent = 0
    for make in forged(facts):
        sender.sendmsg([make(port)], ancillary, 0, (HERE, 4791))
        sent += 1
    return {"refused": "", "sent": sent}

@LOAD@
from_victim, to_parent = os.pipe()
from_parent, to_victim = os.pipe()
if os.fork() == 0:
    serve(to_parent, from_parent)
    os._exit(0)
os.close(to_parent)
lines = os.fdopen(from_victim)
facts = json.loads(lines.readline())
before = out_datagrams()
reader, writer = os.pipe()
if os.fork() == 0:
    os.write(writer, json.dumps(attack(facts)).encode())
    os._exit(0)
done = json.loads(os.read(reader, 1 << 16))
answers = 0
for _ in range(200):  # an answer is sent at once or never; the victim is asleep, and a loop of reads gives it time
    answers = out_datagrams() - before - done["sent"]
    if answers:
        break
    os.sched_yield()
os.write(to_victim, b"x")
print(json.dumps({**json.loads(lines.readline()), **done, "answers": answers}))
'''.replace("@LOAD@", LOAD)


def attacked(kind: str, user: int, wire: str = "rocev2-udp") -> dict[str, Any]:
    words = command_in_namespace(PROGRAM, kind, str(user), str(VICTIM), wire)
    done = subprocess.run(words, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


WIRES = pytest.mark.parametrize("wire", ["rocev2", "rocev2-udp"])


@WIRES
def test_packets_from_another_port_are_passed_over_in_silence(wire: str) -> None:
    found = attacked("own port", ATTACKER, wire)
    assert (found["got"], found["error"]) == (["the first", "the second"], "")
    assert (found["sent"], found["answers"], found["counters"][0]["stranger"]) == (4, 0, 4)


@WIRES
@pytest.mark.parametrize("kind", ["another address", "reuse", "any address"])
def test_the_port_of_the_peer_is_not_to_be_had(kind: str, wire: str) -> None:
    found = attacked(kind, ATTACKER, wire)
    assert (found["got"], found["error"]) == (["the first", "the second"], "")
    assert (found["refused"], found["answers"]) == ("EADDRINUSE", 0)
    assert "stranger" not in found["counters"][0]


def test_the_same_user_has_the_port_and_what_is_forged_is_good() -> None:
    """What remains, and why the tests above mean something: as the victim's user, the same packets are taken."""
    found = attacked("another address", VICTIM)
    assert found["got"] == ["the first", "forged"]
    assert found["answers"] > 0
