"""The end of a peer's process is heard on one machine, at both ends and on both sides of a connection."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from weftwork import rdma
from weftwork.base.errors import UsageError
from weftwork.rdma.drivers.lives import ProcessLives

ADDRESS = "127.{}.{}.77".format(*divmod(os.getpid() % 60_000, 250))
PATIENCE_S = 60.0
CLIENT = """
import sys
from weftwork import rdma
with rdma.connect(sys.argv[1], int(sys.argv[2])) as connection:
    print("connected", flush=True)
    sys.stdin.read()
"""
SERVER = """
import sys
from weftwork import rdma
with rdma.listen(sys.argv[1], 0) as listener:
    print(listener.port, flush=True)
    with listener.get_request().wait() as connection:
        connection.accept().wait()
        sys.stdin.read()
"""


@contextmanager
def program(text: str, *words: str) -> Iterator[subprocess.Popen[str]]:
    with subprocess.Popen(
        [sys.executable, "-c", text, *words], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def line_of(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def test_a_server_hears_that_the_process_of_its_client_was_killed() -> None:
    """Neither end has anything to send, and no clock of the connection runs: nothing else would tell."""
    with rdma.listen(ADDRESS, 0) as listener, program(CLIENT, ADDRESS, str(listener.port)) as client:
        connection = listener.get_request().wait(PATIENCE_S)
        receive = connection.recv(connection.reg_mr(bytearray(8)))
        connection.accept().wait(PATIENCE_S)
        assert line_of(client) == "connected"
        assert not connection.closed.is_done
        client.send_signal(signal.SIGKILL)
        connection.closed.wait(PATIENCE_S)
        with pytest.raises(rdma.WorkError, match=r"WR_FLUSH_ERR.*the process of 127\.0\.0\.1 with slot \d+ has ended"):
            receive.wait(PATIENCE_S)
        assert listener.device.port.counters["peer_processes_ended"] == 1
        connection.close()


def test_a_client_hears_that_the_process_of_its_server_was_killed() -> None:
    with program(SERVER, ADDRESS) as server, rdma.RdmaDevice(ADDRESS) as device:
        connection = rdma.Rendezvous(device).connect(ADDRESS, int(line_of(server))).wait(PATIENCE_S)
        server.send_signal(signal.SIGKILL)
        connection.closed.wait(PATIENCE_S)
        connection.close()


def test_a_process_that_closes_is_told_by_its_message_and_not_by_its_end() -> None:
    with rdma.listen(ADDRESS, 0) as listener, program(CLIENT, ADDRESS, str(listener.port)) as client:
        connection = listener.get_request().wait(PATIENCE_S)
        connection.accept().wait(PATIENCE_S)
        assert line_of(client) == "connected"
        client.communicate()
        connection.closed.wait(PATIENCE_S)
        connection.close()
        assert listener.device.port.counters["peer_processes_ended"] == 0


def readable(lives: ProcessLives) -> bool:
    return bool(select.select([lives], [], [], 0)[0])


def test_lives_are_watched_while_somebody_wants_it() -> None:
    names = [f"\0weftwork-rdma-test/{os.getpid()}/{number}" for number in range(3)]
    here, there, third = (ProcessLives(name) for name in names)
    here.watch(names[1])
    here.watch(names[1])
    here.watch(names[2])
    here.watch("\0weftwork-rdma-test/nobody")
    here.leave(names[1])
    assert (readable(here), here.ended()) == (False, [])
    there.close()
    assert (readable(here), here.ended()) == (True, [names[1]])
    assert (readable(here), here.ended()) == (False, [])
    here.leave(names[1])
    here.leave(names[2])
    third.close()
    assert here.ended() == []
    here.close()


def test_a_name_that_somebody_else_has_stops_nobody() -> None:
    name = f"\0weftwork-rdma-test/{os.getpid()}/taken"
    first, second = ProcessLives(name), ProcessLives(name)
    second.close()
    first.close()


def test_a_device_whose_life_has_a_squatter_works(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ProcessLives, "watch", lambda *_: None)
    with rdma.listen(ADDRESS, 0) as listener, rdma.RdmaDevice(ADDRESS) as device:
        work = rdma.Rendezvous(device).connect(ADDRESS, listener.port)
        listener.get_request().wait(PATIENCE_S).accept().wait(PATIENCE_S)
        work.wait(PATIENCE_S).disconnect().wait(PATIENCE_S)
    with pytest.raises(UsageError):
        listener.get_request()
