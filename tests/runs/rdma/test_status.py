"""Status of devices: what it holds, who gets it, and what is said of a process that does not answer."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from weftwork import rdma
from weftwork.rdma.drivers.loopback import LoopbackWire
from weftwork.rdma.status import STATUS_NAME, device_status
from weftwork.rdma.status_query import StatusAnswer, ask_all
from weftwork.rdma.verbs import AccessFlags

HERE = "127.{}.{}.83".format(*divmod(os.getpid() % 60_000, 250))
THERE = HERE.removesuffix("83") + "84"
PORT = 7475
PATIENCE_S = 60.0


def own(patience_s: float = PATIENCE_S) -> list[StatusAnswer]:
    """Answers of this process."""
    return ask_all(patience_s, os.getpid())[0]


def door() -> str:
    """Name of the socket at which the one device of this process answers."""
    lines = Path("/proc/net/unix").read_text(encoding="utf-8").splitlines()
    (name,) = {line.split()[-1][1:] for line in lines if f"@{STATUS_NAME}{os.getpid()}/" in line}
    return name


def test_objects_and_counters_of_a_device_are_told() -> None:
    device = rdma.RdmaDevice(port=LoopbackWire().open("10.0.0.1"))
    pd, cq = device.alloc_pd(), device.create_cq(8)
    memory = device.reg_mr(pd, bytearray(4096), AccessFlags.LOCAL_WRITE | AccessFlags.REMOTE_READ)
    device.alloc_mw(pd, 1)
    qp = device.create_qp(pd, rdma.QpType.RC, (cq, cq))
    device.modify_qp(qp, rdma.QpState.INIT)
    device.post_recv(qp, rdma.RecvWr(wr_id=1))
    qp.counters["rnr_nak_retry_err"] += 2
    device.nic.counters["malformed"] += 1
    rdma.Rendezvous(device).listen(PORT)
    found = device_status(device)
    assert found["address"] == "10.0.0.1"
    assert found["queue_pairs"] == [
        {
            "number": qp.qp_num,
            "type": "RC",
            "state": "INIT",
            "peer": None,
            "peer_queue_pair": None,
            "path_mtu": 1024,
            "sends": 0,
            "receives": 1,
            "counters": {"rnr_nak_retry_err": 2},
        }
    ]
    (region,) = found["regions"]
    assert (region["address"], region["bytes"]) == (memory.addr, 4096)
    assert region["rights"] == ["local_write", "remote_read"]
    assert (found["windows"], found["listens"], found["counters"]["device"]) == (1, [PORT], {"malformed": 1})
    device.close()


def test_no_key_is_told() -> None:
    device = rdma.RdmaDevice(port=LoopbackWire().open("10.0.0.1"))
    pd = device.alloc_pd()
    memory = device.reg_mr(pd, bytearray(64), AccessFlags.LOCAL_WRITE | AccessFlags.REMOTE_WRITE)
    window = device.alloc_mw(pd, 1)
    text = json.dumps(device_status(device))
    assert "key" not in text
    numbers = {value for region in json.loads(text)["regions"] for value in region.values() if type(value) is int}
    assert numbers.isdisjoint({memory.lkey, memory.rkey, window.rkey})
    device.close()


def test_the_thread_of_a_device_answers_for_both_ends_of_a_connection() -> None:
    with rdma.listen(HERE, PORT) as listener, rdma.RdmaDevice(THERE) as device:
        work = rdma.Rendezvous(device).connect(HERE, PORT)
        accepted = listener.get_request().wait(PATIENCE_S)
        accepted.accept().wait(PATIENCE_S)
        connection = work.wait(PATIENCE_S)
        answers = own()
        assert [(answer.pid, answer.why_not) for answer in answers] == [(os.getpid(), "")] * 2
        assert "python" in answers[0].program
        server, client = (answer.status for answer in answers)
        assert server is not None
        assert client is not None
        assert (server["address"], server["listens"], client["address"], client["listens"]) == (HERE, [PORT], THERE, [])
        (qp,) = client["queue_pairs"]
        assert (qp["state"], qp["peer"], qp["peer_queue_pair"]) == ("RTS", HERE, accepted.qp.qp_num)
        assert [(link["peer"], link["asked_here"], link["state"]) for link in client["connections"]] == [
            (HERE, True, "established")
        ]
        assert [(link["queue_pair"], link["port"]) for link in server["connections"]] == [(accepted.qp.qp_num, PORT)]
        connection.close()
    assert own() == []


def test_the_loop_of_asyncio_answers_too() -> None:
    async def talk() -> list[StatusAnswer]:
        async with rdma.listen(HERE, PORT):
            return await asyncio.to_thread(own)

    (answer,) = asyncio.run(asyncio.wait_for(talk(), PATIENCE_S))
    assert answer.status is not None
    assert answer.status["listens"] == [PORT]


def test_whoever_waits_answers_without_a_thread() -> None:
    device = rdma.RdmaDevice(HERE)
    found: list[Any] = []
    helper = asyncio.new_event_loop()
    work = helper.run_in_executor(None, lambda: found.append(own()))
    while not found:
        device.wait(lambda: bool(found), 0.01)
    helper.run_until_complete(work)
    helper.run_until_complete(helper.shutdown_default_executor())
    helper.close()
    assert [answer.status is not None for answer in found[0]] == [True]
    device.close()


def test_a_device_that_nobody_attends_does_not_answer_and_this_is_told() -> None:
    device = rdma.RdmaDevice(HERE)
    (answer,) = own(0.01)
    assert (answer.pid, answer.status) == (os.getpid(), None)
    assert answer.why_not.startswith("no answer within 0.01 s: it is busy with its own code, or stopped")
    device.close()


def test_many_readers_that_wait_are_told_too() -> None:
    device = rdma.RdmaDevice(HERE)
    name = door()
    waiting: list[socket.socket] = []

    def ask_more() -> None:
        while True:
            waiting.append(socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET | socket.SOCK_NONBLOCK))
            waiting[-1].connect("\0" + name)

    with pytest.raises(BlockingIOError):
        ask_more()
    (answer,) = own(0.01)
    assert answer.why_not == "too many readers wait for its answer"
    for asker in waiting:
        asker.close()
    device.close()


STRANGER = """
import os, socket, sys
from weftwork.rdma.status_query import ask_all
os.setuid(65534)
asker = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
asker.connect("\\0" + sys.argv[1])
print(len(asker.recv(1)))
answers, strangers = ask_all(60.0, int(sys.argv[2]))
print(answers, strangers > 0)
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="becoming another user takes root")
def test_another_user_gets_nothing() -> None:
    with rdma.RdmaDevice(HERE):
        found = subprocess.run(
            [sys.executable, "-c", STRANGER, door(), str(os.getpid())], capture_output=True, text=True, check=False
        )
    assert (found.stdout.split("\n")[:2], found.returncode) == (["0", "[] True"], 0), found.stderr


def test_a_device_that_is_forgotten_leaves_no_door() -> None:
    device = rdma.RdmaDevice(port=LoopbackWire().open("10.0.0.1"))
    assert len(own(0.01)) == 1
    device.close()
    assert own(0.01) == []
