"""Listening and connecting as programs write it: any free port, names of hosts, and a time for the answer."""

from __future__ import annotations

import pytest

from weftwork import rdma
from weftwork.base.errors import PeerError, UsageError
from weftwork.rdma.cm_host import timeout_ps
from weftwork.rdma.drivers.host_names import numeric_address

WIRES = pytest.mark.parametrize("wire", ["rocev2", "iwarp"])


@WIRES
def test_a_listener_takes_any_free_port_and_says_which(wire: str) -> None:
    with rdma.listen("127.0.0.1", 0, wire=wire) as listener, rdma.RdmaDevice("127.0.0.2", wire=wire) as device:
        assert 0xC000 <= listener.port <= 0xFFFF
        work = rdma.Rendezvous(device).connect("127.0.0.1", listener.port, b"hello")
        request = listener.get_request().wait(10)
        assert request.private_data.startswith(b"hello")
        request.accept().wait(10)
        assert work.wait(10).remote_address == "127.0.0.1"


def test_a_port_that_another_process_has_is_not_kept_here() -> None:
    with rdma.RdmaDevice() as one, rdma.RdmaDevice() as other:
        rdma.Rendezvous(one).listen(7_702)
        rendezvous = rdma.Rendezvous(other)
        for _ in range(2):
            with pytest.raises(UsageError, match="another process listens"):
                rendezvous.listen(7_702)


@WIRES
def test_a_name_stands_for_its_address(wire: str) -> None:
    with rdma.listen("localhost", 0, wire=wire) as listener, rdma.RdmaDevice("127.0.0.1", wire=wire) as device:
        work = rdma.Rendezvous(device).connect("localhost", listener.port)
        listener.get_request().wait(10).accept().wait(10)
        assert work.wait(10).remote_address == "127.0.0.1"


def test_an_unknown_name_is_refused_with_what_is_wanted() -> None:
    with pytest.raises(UsageError, match="found 'no such host', wanted an IP address or the name of a host"):
        rdma.connect("no such host", 1)
    for address in ("192.0.2.7", "fd00::7", "fe80::1%lo"):
        assert numeric_address(address) == address


@pytest.mark.parametrize("timeout_s", [0.0, -1.0, float("inf"), float("nan")])
def test_a_time_that_is_none_is_refused(timeout_s: float) -> None:
    with rdma.RdmaDevice() as device, pytest.raises(UsageError, match="timeout_s: found"):
        rdma.Rendezvous(device).connect("127.0.0.1", 9, timeout_s=timeout_s)


def test_the_time_for_an_answer_and_the_retries_are_those_that_were_asked_for() -> None:
    with rdma.RdmaDevice() as device:
        rendezvous = rdma.Rendezvous(device)
        for timeout_s, retries, tries in ((0.5, None, 15), (2.0, 3, 4), (None, 4, 5), (None, None, 16)):
            rendezvous.connect("127.0.0.77", 9, timeout_s=timeout_s, retries=retries)
            made = list(rendezvous._connections)[-1]
            assert made._retries + 1 == tries
            wanted_ps = tries * timeout_ps(16) if timeout_s is None else timeout_s * 1e12
            within = 0.07 if retries is None else 0.35
            assert timeout_ps(made._response_timeout) * tries == pytest.approx(wanted_ps, rel=within)


def test_who_does_not_answer_in_time_is_given_up() -> None:
    """Nobody has the address 127.0.0.77, so nothing answers."""
    with pytest.raises(PeerError, match="does not answer"), rdma.connect("127.0.0.77", 9, timeout_s=0.1, retries=1):
        pass
