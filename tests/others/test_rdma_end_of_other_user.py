"""The end of another user's process is heard, and a third user cannot pretend it.

The programs run in a network namespace of their own, with a server, a client and a squatter of three users.
"""

from __future__ import annotations

import json
import subprocess
from typing import Any

import pytest
from helpers.namespaces import LOAD, command_in_namespace, users_may_be_two

WHY_NOT = users_may_be_two()
pytestmark = pytest.mark.skipif(WHY_NOT is not None, reason=WHY_NOT or "")
PATIENCE_S = 60
SERVER, CLIENT, SQUATTER = 65_532, 65_533, 65_534
PROGRAM = """
import json, os, signal, socket, sys, threading
from weftwork import rdma

server, client, squatter, deed = *map(int, sys.argv[1:4]), sys.argv[4]
HERE, THERE, PORT = "127.0.0.1", "127.0.0.2", 7471


def become(user):
    os.setgroups([]), os.setgid(user), os.setuid(user)

def child_of(program):
    out, into = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            program(into)
        finally:
            os._exit(0)
    return pid, out


def ask(into):
    become(client)
    with rdma.connect(HERE, PORT, source=THERE) as connection:
        os.write(into, b"connected")
        connection.closed.wait(60)


def squat(into):
    become(squatter)
    end = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    end.bind(f"\\0weftwork-rdma/{THERE}/0/life")
    end.listen(10)
    os.write(into, b"squats")
    signal.pause()


@LOAD@
if deed == "squat":
    squatting, answer = child_of(squat)
    os.read(answer, 100)
release = os.pipe()
listening = os.pipe()


def serve(into):
    become(server)
    with rdma.listen(HERE, PORT) as listener:
        os.write(listening[1], b"x")
        with listener.get_request().wait(60) as connection:
            connection.accept().wait(60)
            os.read(release[0], 1)
            if deed == "kill":
                connection.closed.wait(60)
            connection.device.progress()
            ended = connection.device.port.counters["peer_processes_ended"]
            os.write(into, json.dumps([ended, connection.closed.is_done]).encode())


serving, answer = child_of(serve)
os.read(listening[0], 1)
asking, talk = child_of(ask)
assert os.read(talk, 9) == b"connected", "no connection"
if deed == "kill":
    os.kill(asking, signal.SIGKILL)
    os.waitpid(asking, 0)
else:
    os.kill(squatting, signal.SIGKILL)
    os.waitpid(squatting, 0)
os.write(release[1], b"x")
print(os.read(answer, 100).decode())
os.waitpid(serving, 0)
if deed != "kill":
    os.waitpid(asking, 0)
""".replace("@LOAD@", LOAD)


def run(deed: str) -> list[Any]:
    words = command_in_namespace(PROGRAM, str(SERVER), str(CLIENT), str(SQUATTER), deed)
    done = subprocess.run(words, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    assert done.returncode == 0, done.stderr
    answer: list[Any] = json.loads(done.stdout)
    return answer


def test_the_end_of_another_users_process_is_heard() -> None:
    assert run("kill") == [1, True]


def test_a_squatter_of_its_name_cannot_pretend_it() -> None:
    assert run("squat") == [0, False]
