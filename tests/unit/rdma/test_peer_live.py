"""The scripted peer on UDP sockets, with Weftwork's own NIC at the other end."""

from __future__ import annotations

import threading

import pytest

from weftwork.base.errors import UsageError
from weftwork.rdma.peer.end import EndReport
from weftwork.rdma.peer.judge import Result, judge
from weftwork.rdma.peer.live import connect, listen
from weftwork.rdma.peer.reading import find_script, read_script
from weftwork.rdma.peer.script import PeerScript
from weftwork.rdma.peer.scripted import PeerReport

PATIENCE_S = 60.0
PEER, END = "127.0.0.91", "127.0.0.92"


def patient(name: str) -> PeerScript:
    """A shipped scenario with a timeout of 17 s, which a busy machine does not reach."""
    script = read_script(find_script(name))
    return script.model_copy(update={"end": script.end.model_copy(update={"timeout": 22})})


def both(script: PeerScript) -> tuple[PeerReport, EndReport]:
    """Run a script between a thread and this one."""
    ready, seen = threading.Event(), []
    peer = threading.Thread(target=lambda: seen.append(listen(script, PEER, 7471, PATIENCE_S, ready=ready.set)))
    peer.start()
    assert ready.wait(PATIENCE_S)
    report = connect(script, PEER, 7471, PATIENCE_S, source=END)
    peer.join(PATIENCE_S)
    return seen[0], report


@pytest.mark.parametrize(
    "name", ["lost-middle", "nak-access", "rnr-then-ready", "duplicate-atomic", "wrong-key", "lost-read-middle"]
)
def test_the_same_reaction_on_sockets(name: str) -> None:
    script = patient(name)
    judgements = judge(script, *both(script), is_live=True)
    assert [one for one in judgements if one.result is not Result.MET] == []


def test_a_rate_is_left_open_on_sockets() -> None:
    script = read_script(find_script("cnp-flood"))
    report = PeerReport(
        is_connected=True,
        is_over=True,
        packets=(),
        statuses=(),
        memory="written",
        value=0,
        applied=(64,),
        timeout_ps=1,
    )
    judgements = judge(script, report, None, is_live=True)
    assert [one.result for one in judgements] == [Result.OPEN] * 3


def test_a_socket_cannot_pretend_to_be_a_stranger() -> None:
    with pytest.raises(UsageError, match="sends from another address"):
        listen(read_script(find_script("wrong-source")), PEER, 7471, PATIENCE_S)


def test_nobody_comes_in_time() -> None:
    script = read_script(find_script("lost-middle"))
    report = listen(script, PEER, 7471, 0.01)
    assert not report.is_connected
    assert judge(script, report, None)[0].found == "nobody connected, or the connection was not completed"
