"""`weftwork rdma simulate`: its answer, its capture and its refusals."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from helpers.command import Command, command_of
from helpers.tshark import NEEDS_TSHARK, fields

from weftwork.rdma.capture import CaptureExplainer
from weftwork.wire.dissection import dissect
from weftwork.wire.pcapng import read_capture

FABRIC = """
schema: 3
fabric: {topology: leaf-spine, leaves: 2, spines: 2, hosts_per_leaf: 2, link_rate: 100Gbps}
transport: {congestion_control: CONTROL}
"""
SERVER = """
import numpy as np
from weftwork import rdma
table = np.zeros(2 << 20, np.uint8)
with rdma.listen("127.0.0.1", 7471) as listener:
    connections = []
    for at in (0, 1 << 20):
        connection = listener.get_request().wait()
        region = connection.reg_mr(table, rdma.AccessFlags.REMOTE_WRITE)
        connection.accept(region.remote[at : at + (1 << 20)].encode()).wait()
        connections.append(connection)
    for connection in connections:
        connection.closed.wait()
print("whole:", bool(table.all()))
"""
CLIENT = """
import sys
import numpy as np
from weftwork import rdma
with rdma.connect("127.0.0.1", 7471) as connection:
    mine = connection.reg_mr(np.full(1 << 20, int(sys.argv[1]), np.uint8))
    connection.write(mine, rdma.RemoteRange.decode(connection.private_data)).wait()
"""
PYVERBS = """
import socket, sys, time
from pathlib import Path
import pyverbs.enums as e
from pyverbs.addr import AHAttr, GID, GlobalRoute
from pyverbs.cq import CQ
from pyverbs.device import Context, get_device_list
from pyverbs.mr import MR
from pyverbs.pd import PD
from pyverbs.qp import QP, QPAttr, QPCap, QPInitAttr
from pyverbs.wr import SGE, RecvWR, SendWR

is_server = sys.argv[1] == "server"
if is_server:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        Path("port").write_text(str(listening.getsockname()[1]))
        talk, _ = listening.accept()
else:
    talk = socket.create_connection(("127.0.0.1", int(Path("port").read_text())))
context = Context(name=get_device_list()[0].name.decode())
pd, cq = PD(context), CQ(context, 16)
mr = MR(pd, 4096, e.IBV_ACCESS_LOCAL_WRITE)
qp = QP(pd, QPInitAttr(qp_type=e.IBV_QPT_RC, scq=cq, rcq=cq, cap=QPCap(16, 16, 1, 1)))
talk.sendall(f"{qp.qp_num},{context.query_gid(1, 0).gid}".encode().ljust(64))
number, gid = talk.recv(64).decode().strip().split(",")
attr = QPAttr(port_num=1)
attr.path_mtu, attr.dest_qp_num, attr.timeout, attr.retry_cnt, attr.rnr_retry = e.IBV_MTU_4096, int(number), 14, 7, 7
attr.max_rd_atomic = attr.max_dest_rd_atomic = 1
attr.ah_attr = AHAttr(gr=GlobalRoute(dgid=GID(gid), sgid_index=0), is_global=1, port_num=1)
qp.to_rts(attr)
sge = SGE(mr.buf, 4096, mr.lkey)
qp.post_recv(RecvWR(num_sge=1, sg=[sge]))
talk.sendall(b"r")
talk.recv(1)
talk.close()

def end():
    while not (found := cq.poll(1))[0]:
        pass
    assert found[1][0].status == 0

start = time.perf_counter()
if not is_server:
    qp.post_send(SendWR(opcode=e.IBV_WR_SEND, num_sge=1, sg=[sge]))
    end()
end()
if is_server:
    qp.post_send(SendWR(opcode=e.IBV_WR_SEND, num_sge=1, sg=[sge]))
    end()
else:
    print("round trip us", (time.perf_counter() - start) * 1e6)
"""
PROGRAMS = ("0:server.py", "1:client.py 1", "2:client.py 2")


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Command:
    monkeypatch.chdir(tmp_path)
    for name, text in (
        *(("dcqcn.yaml", FABRIC.replace("CONTROL", "dcqcn")), ("none.yaml", FABRIC.replace("CONTROL", "none"))),
        *(("server.py", SERVER), ("client.py", CLIENT)),
    ):
        (tmp_path / name).write_text(text, encoding="utf-8")
    return command_of(capsys, "rdma", "simulate")


def test_the_answer_names_the_port_that_held_the_programs_up(run: Command) -> None:
    answer = run("dcqcn.yaml", *PROGRAMS)
    assert answer.code == 0, answer.err
    assert "[host 0, server.py] whole: True" in answer.out
    assert "Port leaf0->host0 held them up" in answer.out
    assert "10.0.0.2" in answer.out


def test_the_document_has_every_port_and_counter(run: Command) -> None:
    answer = run("dcqcn.yaml", *PROGRAMS, "--json")
    document = json.loads(answer.out)
    assert "whole: True" in answer.err, "what programs print is not part of the document"
    assert document["culprit"] == "leaf0->host0"
    assert [program["exit_code"] for program in document["programs"]] == [0, 0, 0]
    culprit = next(port for port in document["ports"] if port["name"] == "leaf0->host0")
    assert culprit["sent_bytes"] > 2 << 20
    assert document["marks"] == sum(port["marks"] for port in document["ports"]) > 0
    notified = sum(host["counters"].get("rp_cnp_handled", 0) for host in document["hosts"])
    assert 0 < notified <= document["marks"]


def test_the_congestion_control_of_the_scenario_counts(run: Command) -> None:
    with_control, without = (json.loads(run(name, *PROGRAMS, "--json").out) for name in ("dcqcn.yaml", "none.yaml"))
    assert any(host["counters"].get("np_cnp_sent") for host in with_control["hosts"])
    assert not any(host["counters"].get("np_cnp_sent") for host in without["hosts"])


def test_the_rate_of_links_counts(run: Command) -> None:
    slow = json.loads(run("none.yaml", *PROGRAMS, "--set", "fabric.link_rate=10Gbps", "--json").out)
    fast = json.loads(run("none.yaml", *PROGRAMS, "--json").out)
    assert slow["end_ps"] == pytest.approx(10 * fast["end_ps"], rel=0.15)


def test_the_capture_holds_every_packet_of_the_host(run: Command, tmp_path: Path) -> None:
    document = json.loads(run("none.yaml", *PROGRAMS, "--json", "--capture", "c.pcapng", "--capture-host", "1").out)
    packets = list(read_capture((tmp_path / "c.pcapng").read_bytes()))
    host = next(host for host in document["hosts"] if host["host"] == 1)
    assert len(packets) == host["sent"] + host["received"]
    assert not any(dissect(packet).problem or dissect(packet).has_wrong_icrc for packet in packets)
    seen = CaptureExplainer()
    assert not [row for packet in packets for row in seen.explain(packet) if row.notes]


@NEEDS_TSHARK
def test_tshark_reads_the_capture(run: Command, tmp_path: Path) -> None:
    assert run("none.yaml", *PROGRAMS, "--capture", "c.pcapng").code == 0
    rows = fields(tmp_path / "c.pcapng", "infiniband.bth.opcode")
    assert {int(opcode) for (opcode,) in rows} >= {
        6,
        7,
        8,
        17,
        100,
    }  # WRITE, ACK and datagrams


def test_every_mistake_of_the_command_line_is_named(run: Command) -> None:
    answer = run("dcqcn.yaml", "server.py", "1:nothing.py", "--address", "localhost=0")
    assert answer.code == 2
    assert "found 'server.py', wanted HOST:FILE" in answer.err
    assert "found no file nothing.py" in answer.err
    outside = run("dcqcn.yaml", "4:server.py", "--address", "192.0.2.1=7", "--capture-host", "9")
    assert outside.code == 2
    assert outside.err.count("the fabric has 4 hosts") == 3


def test_flows_cannot_carry_programs(run: Command) -> None:
    answer = run("none.yaml", *PROGRAMS, "--set", "engine.fidelity=flow")
    assert answer.code == 2
    assert "wanted packet" in answer.err


def test_a_program_that_fails_fails_the_command(run: Command) -> None:
    answer = run("none.yaml", "1:client.py 1")
    assert answer.code == 1
    assert "nobody listens on this port" in answer.out
    assert "host 1, client.py ended with an error" in answer.out


def test_a_program_of_pyverbs_runs_unchanged(run: Command, tmp_path: Path) -> None:
    (tmp_path / "verbs.py").write_text(PYVERBS, encoding="utf-8")
    near, far = (run("none.yaml", "0:verbs.py server", f"{host}:verbs.py client") for host in (1, 3))
    assert near.code == far.code == 0, near.out + far.out
    near_us, far_us = (float(answer.out.split("round trip us ")[1].split()[0]) for answer in (near, far))
    assert 1 < near_us < far_us < 20, "the way over a spine is longer than that over a leaf"
