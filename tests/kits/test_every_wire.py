"""Every wire passes the same exchanges: sockets, wires in memory, and a simulated fabric in virtual time."""

from __future__ import annotations

import itertools
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Final, Protocol

import pytest
from helpers.rdma_devices import NEEDS_PACKET_SOCKETS
from helpers.tiny import packet_input_of, sends, star

from weftwork import rdma
from weftwork.base.errors import UsageError
from weftwork.rdma.drivers.infiniband import InfinibandWire
from weftwork.rdma.drivers.loopback import LoopbackWire
from weftwork.rdma.drivers.port import DatagramPort
from weftwork.rdma.wires import WIRES
from weftwork.testing.rdma_wire import EXCHANGES, PATIENCE_S, PORT, Exchange
from weftwork.testing.simulated_programs.run import HostedProgram, SimulatedPrograms

pytestmark = pytest.mark.timeout(300)
# Addresses of this process alone, since tests run side by side.
_HOSTS: Final = "127.{}.{}.{{}}".format(*divmod(os.getpid() % 60_000, 250))
HERE: Final = _HOSTS.format(101)
NEEDS: Final = {"rocev1": NEEDS_PACKET_SOCKETS, "rocev2-raw": NEEDS_PACKET_SOCKETS}
HAS_AN_ADDRESS_FOR_ITSELF: Final = frozenset({"rocev2-raw"})  # so that two processes do not share one
# Features that a wire does not have, by its name. RFC 7306 has immediate data behind a WRITE alone.
LACKS: Final[dict[str, frozenset[str]]] = {"iwarp": frozenset({"send with immediate"})}

Runner = Callable[[Exchange], None]


def by_sockets(wire: str, exchange: Exchange) -> None:
    """Listener and connector in two threads, each with a device of its own at this machine's address."""
    listening = threading.Event()

    def open_listener() -> rdma.RdmaListener:
        listener = rdma.listen(HERE, PORT, wire=wire)
        listening.set()
        return listener

    sources = (_HOSTS.format(number) for number in itertools.count(102))

    def open_connector(private_data: bytes = b"") -> rdma.RdmaConnector:
        is_alone = wire in HAS_AN_ADDRESS_FOR_ITSELF and exchange.serve is not None
        source = next(sources) if is_alone else HERE
        return rdma.connect(HERE, PORT, private_data, source=source, wire=wire)

    in_threads(exchange, open_listener, open_connector, listening)


class OpensPorts(Protocol):
    """A wire in memory."""

    def open(self, address: str) -> DatagramPort:
        """Open a port."""


def in_memory(make_wire: Callable[[], OpensPorts], network: str, exchange: Exchange) -> None:
    """Both ends on ports of one wire in memory."""
    wire = make_wire()
    listening = threading.Event()
    devices = [rdma.RdmaDevice(port=wire.open(f"{network}1"))]

    def open_listener() -> rdma.RdmaListener:
        listener = rdma.RdmaListener(devices[0], PORT)
        listening.set()
        return listener

    def open_connector(private_data: bytes = b"") -> rdma.RdmaConnector:
        devices.append(rdma.RdmaDevice(port=wire.open(f"{network}{len(devices) + 1}")))
        return rdma.RdmaConnector(devices[-1], f"{network}1", PORT, private_data)

    try:
        if exchange.serve is None:
            devices[0].__enter__()  # it is there, and does not listen
            rdma.Rendezvous(devices[0])
        in_threads(exchange, open_listener, open_connector, listening)
    finally:
        for device in devices:
            device.close()


def in_threads(
    exchange: Exchange,
    open_listener: Callable[[], rdma.RdmaListener],
    open_connector: Callable[..., rdma.RdmaConnector],
    listening: threading.Event,
) -> None:
    """Run the listener in a thread, and the connector here; what goes wrong in either is raised."""
    if exchange.serve is None:
        exchange.call(open_connector)
        return
    wrong: list[BaseException] = []

    def serve() -> None:
        assert exchange.serve is not None
        try:
            exchange.serve(open_listener)
        except BaseException as error:  # noqa: BLE001 - of a thread, to be raised in the test
            wrong.append(error)
            listening.set()

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    assert listening.wait(PATIENCE_S)
    try:
        if not wrong:
            exchange.call(open_connector)
    finally:
        thread.join(PATIENCE_S)  # so that its port is free for the next exchange
    assert not thread.is_alive(), "the listener did not come to its end"
    if wrong:
        raise wrong[0]


def in_simulation(exchange: Exchange) -> None:
    """Both ends as programs on a star of two hosts, in virtual time."""
    wrong: list[BaseException] = []

    def noted(function: Callable[[], object]) -> Callable[[], None]:
        def run() -> None:
            try:
                function()
            except BaseException as error:
                wrong.append(error)
                raise

        return run

    call = noted(partial(exchange.call, partial(rdma.connect, HERE, PORT)))
    programs = [HostedProgram(host=1, file=call)]
    if exchange.serve is not None:
        serve = noted(partial(exchange.serve, partial(rdma.listen, HERE, PORT)))
        programs.insert(0, HostedProgram(host=0, file=serve))
    made = SimulatedPrograms(packet_input_of(star(2), sends(2, [])), programs)
    made.run(_Silent())
    if wrong:
        raise wrong[0]


class _Silent:
    """A file that takes everything."""

    def write(self, _text: str) -> int:
        return 0

    def flush(self) -> None:
        return


RUNNERS: Final[dict[str, Runner]] = {
    **{name: partial(by_sockets, name) for name in WIRES},
    "memory": partial(in_memory, LoopbackWire, "10.0.0."),
    "infiniband": partial(in_memory, InfinibandWire, "fe80::"),
    "infiniband-grh": partial(in_memory, partial(InfinibandWire, has_grh=True), "fe80::"),
    "simulation": in_simulation,
}


@contextmanager
def refused_where(is_lacking: bool) -> Iterator[None]:  # noqa: FBT001 - the condition itself
    """A feature that a wire lacks is refused in words."""
    if is_lacking:
        with pytest.raises(UsageError, match="wire"):
            yield
    else:
        yield


@pytest.mark.parametrize("exchange", EXCHANGES, ids=lambda exchange: exchange.name.replace(" ", "-"))
@pytest.mark.parametrize("wire", [pytest.param(wire, marks=NEEDS.get(wire, ())) for wire in RUNNERS])
def test_a_wire_does_what_every_wire_does(wire: str, exchange: Exchange) -> None:
    with refused_where(exchange.feature in LACKS.get(wire, frozenset())):
        RUNNERS[wire](exchange)
