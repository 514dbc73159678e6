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
from helpers.rdma_devices import DeviceEnd

from weftwork import rdma
from weftwork.base.errors import UsageError
from weftwork.rdma.drivers.lives import ProcessLives
from weftwork.rdma.queue_pair import EventType
from weftwork.rdma.verbs import QpState, QpType, WcStatus, WrOpcode

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


BY_HAND = """
import sys
from weftwork import rdma
from weftwork.rdma.verbs import QpAttr, QpState, QpType
address, kind, peer = sys.argv[1], sys.argv[2], int(sys.argv[3])
device = rdma.RdmaDevice(address)
cq = device.create_cq(16)
qp = device.create_qp(device.alloc_pd(), QpType[kind], (cq, cq))
attr = QpAttr(remote_address=device.port.address, dest_qp_num=peer)
for state in (QpState.INIT, QpState.RTR, QpState.RTS):
    device.modify_qp(qp, state, attr)
print(qp.qp_num, flush=True)
sys.stdin.read()
"""


@pytest.mark.parametrize(("kind", "is_busy"), [("RC", True), ("RC", False), ("UC", False)])
def test_queue_pairs_that_were_joined_by_hand_hear_of_it(kind: str, *, is_busy: bool) -> None:
    end = DeviceEnd(ADDRESS, qp_type=QpType[kind])
    with end.device, program(BY_HAND, ADDRESS, kind, str(end.qp.qp_num)) as peer:
        end.to_rts(end.port.address, int(line_of(peer)), timeout=0)  # no clock runs
        end.post_recv(end.memory[:8])
        if is_busy:
            os.kill(peer.pid, signal.SIGSTOP)
            end.post(WrOpcode.RDMA_WRITE, end.memory[:8], end)
        peer.kill()
        statuses = [end.next().status for _ in range(1 + is_busy)]
        assert statuses == [WcStatus.RETRY_EXC_ERR] * is_busy + [WcStatus.WR_FLUSH_ERR]
        assert end.qp.state is QpState.ERR
        event = end.device.get_async_event()
        assert event is not None
        assert event.event_type is EventType.QP_FATAL
        assert end.device.port.counters["peer_processes_ended"] == 1


def test_a_fork_that_closes_its_copies_leaves_the_watch_to_its_parent() -> None:
    """The events are shared with the fork: what it took from them, the parent would never hear of."""
    with rdma.listen(ADDRESS, 0) as listener, program(CLIENT, ADDRESS, str(listener.port)) as client:
        connection = listener.get_request().wait(PATIENCE_S)
        connection.accept().wait(PATIENCE_S)
        assert line_of(client) == "connected"
        child = os.fork()
        if child == 0:  # `os.register_at_fork` has closed its copies
            os._exit(0)
        os.waitpid(child, 0)
        client.kill()
        connection.closed.wait(PATIENCE_S)
        assert listener.device.port.counters["peer_processes_ended"] == 1


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


@pytest.mark.parametrize(("others", "is_watched"), [((), True), ((7,), False), (None, False)])
def test_another_user_is_believed_where_nobody_else_receives(
    others: tuple[int, ...] | None, *, is_watched: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = f"\0weftwork-rdma-test/{os.getpid()}/foreign"
    here, there = ProcessLives(f"{name}/1"), ProcessLives(name)
    owner = os.getuid()
    monkeypatch.setattr(os, "getuid", lambda: owner + 1)  # as the process that watches
    here.watch(name, lambda: frozenset({owner, *others}) if others is not None else frozenset())
    there.close()
    assert here.ended() == ([name] if is_watched else [])
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
