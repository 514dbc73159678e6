"""Who has a port or a name, as the kernel lists it; and what an error says about a port with two users."""

from __future__ import annotations

import os
import socket

import pytest

from weftwork.rdma.device import RdmaDevice
from weftwork.rdma.drivers import steering
from weftwork.rdma.drivers.netlink import listening_users
from weftwork.rdma.drivers.port_users import users_of_port

HERE = "127.{}.{}.78".format(*divmod(os.getpid() % 60_000, 250))
needs_ipv6 = pytest.mark.skipif(not socket.has_ipv6, reason="this Python has no IPv6")


def packed(address: str) -> bytes:
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    return socket.inet_pton(family, address)


@pytest.mark.parametrize(
    ("bound", "asked"),
    [
        (HERE, HERE),
        pytest.param("::1", "::1", marks=needs_ipv6),
        pytest.param(f"::ffff:{HERE}", HERE, marks=needs_ipv6),  # receives what comes for the IPv4 address
    ],
)
def test_a_socket_on_an_address_counts_there_alone(bound: str, asked: str) -> None:
    with socket.socket(socket.AF_INET6 if ":" in bound else socket.AF_INET, socket.SOCK_DGRAM) as end:
        try:
            end.bind((bound, 0))
        except OSError:
            pytest.skip(f"this machine has no {bound}")
        port = end.getsockname()[1]
        assert users_of_port(packed(asked), port) == {os.getuid()}
        assert users_of_port(packed("127.254.1.1"), port) == frozenset()
    assert users_of_port(packed(asked), port) == frozenset()


def test_a_socket_on_all_addresses_is_not_counted() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as end:
        end.bind(("", 0))
        assert users_of_port(packed(HERE), end.getsockname()[1]) == frozenset()


def test_who_listens_at_a_name() -> None:
    name = f"\0weftwork-rdma-test/{os.getpid()}/listens"
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as end:
        end.bind(name)
        assert listening_users(name) == frozenset()
        end.listen(1)
        try:
            assert listening_users(name) == {os.getuid()}
        except OSError as error:
            pytest.skip(f"unix_diag: {error}")
        assert listening_users(name + "x") == frozenset()


def test_an_error_about_a_silent_peer_names_who_else_has_a_port(monkeypatch: pytest.MonkeyPatch) -> None:
    mine = os.getuid()
    here, there, far = HERE, HERE.replace(".78", ".79"), "192.0.2.1"
    users = {packed(here): {mine}, packed(there): {mine + 1}}
    monkeypatch.setattr(steering, "users_of_port", lambda address: frozenset(users.get(address, ())))
    now_s = [1000.0]
    monkeypatch.setattr("time.monotonic", lambda: now_s[0])
    device = RdmaDevice(here)
    try:
        assert isinstance(device.port, steering.SharedUdpPort)
        for address in (there, far):
            device.port._door_of(packed(address), 0)
        assert device.port_error(is_silent=True) == ""
        users[packed(here)] |= {mine + 7, mine + 8}
        users[packed(there)] |= {mine + 9}
        now_s[0] += 2
        text = ". ".join(
            f"UDP port 4791 of {address} is also open in programs of user {others}, who may get its packets"
            for address, others in ((here, f"{mine + 7} and {mine + 8}"), (there, f"{mine + 1} and {mine + 9}"))
        )
        assert device.port_error(is_silent=True) == text
        device.port.last_error = "no way"
        assert device.port_error(is_silent=True) == f"no way. {text}"
        assert device.port_error(is_silent=False) == "no way"
    finally:
        device.close()
