"""Two users of one machine: whatever the second does between the steps of the first, the first sees no change.

The first has a server and a client, two processes; the second opens and leaves devices, asks for connections, is killed
with a connection half made, fills the doors and lives of the first, takes names and addresses, and forges packets. All
of it runs in a network namespace, the second as another user.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from typing import Any

import pytest
from helpers.namespaces import LOAD, command_in_namespace, users_may_be_two
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

WHY_NOT = users_may_be_two()
pytestmark = pytest.mark.skipif(WHY_NOT is not None, reason=WHY_NOT or "")
FIRST, SECOND = 65_533, 65_534
STEPS = 6
DEEDS = (
    *("open-and-leave", "open-and-stay", "ask-where-nobody-listens", "ask-the-server", "be-killed-while-asking"),
    *("fill-doors", "fill-lives", "take-names", "take-the-name-of-a-service"),
    *("take-and-fill-the-name-of-a-service", "fill-a-door"),
    *("take-addresses", "take-addresses-beside-an-own-device", "forge"),
)
PROGRAM = '''
import json, os, random, re, signal, socket, sys, threading
from contextlib import suppress
from weftwork import rdma
from weftwork.base.errors import PeerError, UsageError

first, second = int(sys.argv[1]), int(sys.argv[2])
HERE, THERE, PORT, NOBODY = "127.0.0.1", "127.0.0.2", 7471, 7499


class Link:
    """A process of a user, which is asked and answers in lines."""

    def __init__(self, user, program):
        self.is_over = False
        ask_out, ask_in = os.pipe()
        answer_out, answer_in = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            os.close(ask_in), os.close(answer_out)
            os.setgroups([]), os.setgid(user), os.setuid(user)
            self._in, self._out = os.fdopen(ask_out), os.fdopen(answer_in, "w")
            program(self)
            os._exit(0)
        os.close(ask_out), os.close(answer_in)
        self._in, self._out = os.fdopen(answer_out), os.fdopen(ask_in, "w")

    def tell(self, what):
        self._out.write(json.dumps(what) + "\\n")
        self._out.flush()

    def hear(self):
        line = self._in.readline()
        return json.loads(line) if line else None

    def ask(self, what):
        self.tell(what)
        return self.hear()

    def end(self):
        if not self.is_over:
            self.tell(None)
        self._out.close()
        self._in.close()
        os.waitpid(self.pid, 0)


def serve(link):
    log, buffers = [], [bytearray(1 << 16) for _ in range(2)]
    with rdma.listen(HERE, PORT) as listener:
        link.tell("listens")

        def run():
            while True:
                request = listener.get_request().wait(60)
                asked = bytes(request.private_data).rstrip(b"\\0")
                if asked == b"mine":
                    works = [request.recv(request.reg_mr(buffer)) for buffer in buffers]
                    request.accept(b"welcome").wait(60)
                    for work, buffer in zip(works, buffers):
                        data = bytes(buffer[:work.wait(60).byte_len])
                        log.append(data.decode() if len(data) < 32 else [len(data), sum(data)])
                    request.closed.wait(60)
                    log.append("closed")
                    return
                if asked == b"no":
                    log.append("refuses")
                request.reject(b"sorry")

        thread = threading.Thread(target=run)
        thread.start()
        link.hear()
        thread.join(60)
        link.tell(log)


def ask(link):
    device = rdma.RdmaDevice(THERE)
    with device:
        rendezvous = rdma.Rendezvous(device)
        connection = None
        link.tell("opens")
        while (step := link.hear()) is not None:
            try:
                if step == 0:
                    connection = rendezvous.connect(HERE, PORT, b"mine").wait(60)
                    told = bytes(connection.private_data).rstrip(b"\\0").decode()
                elif step == 1:
                    told = connection.send(connection.reg_mr(bytearray(b"small"))).wait(60).status.name
                elif step == 2:
                    told = str(rendezvous.connect(HERE, NOBODY).wait(60))
                elif step == 3:
                    data = bytearray(range(256)) * 250
                    told = connection.send(connection.reg_mr(data)).wait(60).status.name
                else:
                    told = str(connection.disconnect().wait(60))
            except (PeerError, UsageError) as error:
                told = f"{type(error).__name__}: {error}"
            link.tell(told)


def names():
    return sorted(set(re.findall("@(weftwork-rdma/[^ \\n]+)", open("/proc/net/unix").read())))


def disturb(link):
    kept = []
    luck = random.Random(7)
    while (deed := link.hear()) is not None:
        with suppress(UsageError, PeerError, OSError, TimeoutError):
            if deed in {"open-and-leave", "open-and-stay"}:
                device = rdma.RdmaDevice("127.0.0.3")
                kept.append(device) if deed == "open-and-stay" else device.close()
            elif deed in {"ask-where-nobody-listens", "ask-the-server"}:
                with rdma.RdmaDevice("127.0.0.4") as device:
                    port = PORT if deed == "ask-the-server" else NOBODY
                    rdma.Rendezvous(device).connect(HERE, port, b"evil").wait(0.1)
            elif deed == "be-killed-while-asking":
                child = os.fork()
                if child == 0:
                    with rdma.RdmaDevice("127.0.0.5") as device:
                        rdma.Rendezvous(device).connect(HERE, PORT, b"evil")
                        os.kill(os.getpid(), signal.SIGKILL)
                os.waitpid(child, 0)
            elif deed in {"fill-doors", "fill-lives"}:
                for name in names():
                    if name.endswith("/life") != (deed == "fill-lives"):
                        continue
                    for _ in range(100):
                        end = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
                        end.setblocking(False)
                        kept.append(end)
                        with suppress(OSError):
                            end.connect("\\0" + name)
                            end.send(b"j" * 30)
            elif deed == "fill-a-door":
                for _ in range(5000):  # more than its backlog
                    end = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET | socket.SOCK_NONBLOCK)
                    with end, suppress(OSError):
                        end.connect(f"\\0weftwork-rdma/{HERE}/listen/{PORT}")
            elif deed in {"take-names", "take-the-name-of-a-service", "take-and-fill-the-name-of-a-service"}:
                for address in (HERE, THERE):
                    slots = ("1", "2", "0/life", "1/life", f"listen/{PORT}")
                    for name in slots if deed == "take-names" else (f"listen/{NOBODY}",):
                        end = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
                        kept.append(end)
                        with suppress(OSError):
                            end.bind(f"\\0weftwork-rdma/{address}/{name}")
                            end.listen(0)
                            for _ in range(3 if deed.startswith("take-and-fill") else 0):
                                last = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET | socket.SOCK_NONBLOCK)
                                kept.append(last)
                                last.connect(f"\\0weftwork-rdma/{address}/{name}")
            elif deed in {"take-addresses", "take-addresses-beside-an-own-device"}:
                options = [0, socket.SO_REUSEADDR]
                if deed != "take-addresses":
                    kept.append(rdma.RdmaDevice("127.0.0.6"))
                    options = [socket.SO_REUSEPORT]
                for address in ("", HERE, THERE):
                    for option in options:
                        end = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
                        kept.append(end)
                        with suppress(OSError):
                            if option:
                                end.setsockopt(socket.SOL_SOCKET, option, 1)
                            end.bind((address, 4791))
            elif deed == "forge":
                sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
                for _ in range(50):
                    for address in (HERE, THERE):
                        sender.sendto(luck.randbytes(luck.randrange(4, 80)), (address, 4791))
        link.tell("done")

@LOAD@
for line in sys.stdin:
    deeds = json.loads(line)
    server, client, other = Link(first, serve), Link(first, ask), Link(second, disturb)
    told = [server.hear(), client.hear()]
    for step, row in enumerate(deeds):
        for deed in row:
            other.ask(deed)
        if step < 5:
            told.append(client.ask(step))
    told.append(server.ask("end"))
    server.is_over = True
    for link in (client, server, other):
        link.end()
    print(json.dumps(told), flush=True)
'''.replace("@LOAD@", LOAD)


class Machine:
    """The program in its namespace; it runs the first user's steps again and again."""

    def __init__(self) -> None:
        words = command_in_namespace(PROGRAM, str(FIRST), str(SECOND))
        self.process = subprocess.Popen(
            words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        self.alone = self.run([[] for _ in range(STEPS)])

    def run(self, deeds: list[list[str]]) -> list[Any]:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps(deeds) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            _, errors = self.process.communicate()
            pytest.fail(errors)
        told: list[Any] = json.loads(line)
        return told


@pytest.fixture(scope="module")
def machine() -> Iterator[Machine]:
    made = Machine()
    yield made
    made.process.communicate()
    assert made.process.returncode == 0


def test_alone_the_first_user_sees_bytes_completions_and_refusals(machine: Machine) -> None:
    *steps, log = machine.alone
    assert [str(step).split(":")[0] for step in steps] == [
        *("listens", "opens", "welcome", "SUCCESS", "PeerError", "SUCCESS", "None"),
    ]
    assert log == ["small", [64_000, 250 * sum(range(256))], "closed"]


@pytest.mark.parametrize("deed", DEEDS)
def test_one_deed_before_every_step_changes_nothing(machine: Machine, deed: str) -> None:
    assert machine.run([[deed] for _ in range(STEPS)]) == machine.alone


@given(deeds=st.lists(st.lists(st.sampled_from(DEEDS), max_size=3), min_size=STEPS, max_size=STEPS))
@settings(max_examples=10, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
def test_no_sequence_of_deeds_changes_what_the_first_user_sees(machine: Machine, deeds: list[list[str]]) -> None:
    assert machine.run(deeds) == machine.alone
