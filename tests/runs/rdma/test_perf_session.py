"""Both ends of perf in this process, over real sockets: every operation and service, and refusals."""

from __future__ import annotations

import os
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from helpers.rdma_door import opened_door

from weftwork.base.errors import PeerError, UsageError
from weftwork.rdma.perf.figures import BandwidthFigures, LatencyFigures
from weftwork.rdma.perf.meeting import Door, host_address, meet
from weftwork.rdma.perf.operation import PerfVerb
from weftwork.rdma.perf.own_server import own_server
from weftwork.rdma.perf.plan import make_plan
from weftwork.rdma.perf.session import MAGIC, PerfClient, PerfServer
from weftwork.rdma.verbs import QpState

if TYPE_CHECKING:
    from collections.abc import Iterator

    from weftwork.rdma.connection import RdmaConnection
    from weftwork.rdma.perf.session import PerfRow

# An address of this process alone, since tests run side by side and processes share a port.
HERE = "127.{}.{}.81".format(*divmod(os.getpid() % 60_000, 250))
PORT = 18_515
PATIENCE_S = 60.0


@contextmanager
def server(wanted: dict[str, Any], found: list[Any]) -> Iterator[None]:
    """A server in a thread; ``found`` gets it, or its error."""

    def serve(connection: RdmaConnection, door: Door) -> None:
        end = PerfServer(connection, wanted, door.next_request)
        found.append(end)
        end.serve()
        connection.closed.wait()

    with opened_door(HERE, PORT, serve, found):
        yield


def measure(verb: str, given: dict[str, Any], wanted: dict[str, Any] | None = None) -> list[PerfRow]:
    plan = make_plan(PerfVerb(verb), given)
    with (
        server(wanted or {}, []),
        meet(HERE, PORT, MAGIC, remedy="", source=HERE, wire="rocev2") as (connection, another),
    ):
        client = PerfClient(connection, plan, another)
        told: list[int] = []
        rows = [client.measure(size, told.append) for size in plan.sizes]
        assert len(told) >= len(rows)
        client.close()
    return rows


@pytest.mark.parametrize(
    ("verb", "given"),
    [
        ("write", {}),
        ("write", {"connection": "UC"}),
        ("write", {"bidirectional": True, "qps": 3, "tx_depth": 7}),
        ("write", {"inline_bytes": 1024}),
        ("read", {"outstanding": 2}),
        ("read", {"bidirectional": True}),
        ("send", {"rx_depth": 4}),
        ("send", {"connection": "UC", "rx_depth": 64}),
        ("send", {"connection": "UD", "rx_depth": 64}),
        ("send", {"bidirectional": True, "qps": 2, "cq_moderation": 5}),
        ("write", {"rdma_cm": True, "qps": 2}),
        ("read", {"rdma_cm": True}),
        ("send", {"rdma_cm": True, "qps": 3, "bidirectional": True}),
    ],
)
def test_bandwidth_of_every_operation_and_service(verb: str, given: dict[str, Any]) -> None:
    sizes = (1, 1000, 4096)
    rows = measure(verb, {"sizes": sizes, "iterations": 23, **given})
    assert [row.figures.size_bytes for row in rows] == list(sizes)
    for row in rows:
        figures = row.figures
        assert isinstance(figures, BandwidthFigures)
        sent = 23 * given.get("qps", 1)
        assert row.sent == row.received == sent
        assert figures.messages == sent * (2 if given.get("bidirectional") else 1)
        assert figures.peak_bytes_per_s is not None
        assert figures.peak_bytes_per_s >= 0.999 * figures.average_bytes_per_s / (
            2 if given.get("bidirectional") else 1
        )
        assert figures.average_bytes_per_s == pytest.approx(figures.messages_per_s * figures.size_bytes)
        assert row.cpu_share > 0
        assert row.peer_cpu_share > 0


@pytest.mark.parametrize(
    ("verb", "given"),
    [
        *(("write", {}), ("write", {"connection": "UC", "inline_bytes": 64}), ("send", {}), ("read", {})),
        *(("send", {"connection": "UC"}), ("send", {"connection": "UD"})),
        *(("write", {"rdma_cm": True}), ("send", {"rdma_cm": True}), ("read", {"rdma_cm": True})),
    ],
)
def test_latency_of_every_operation_and_service(verb: str, given: dict[str, Any]) -> None:
    rows = measure(verb, {"latency": True, "sizes": (1, 300), "iterations": 300, **given})
    for row in rows:
        figures = row.figures
        assert isinstance(figures, LatencyFigures)
        assert figures.messages == 300  # the mark in the last byte has wrapped
        assert 0 < figures.min_us <= figures.typical_us <= figures.p99_us <= figures.p99_9_us <= figures.max_us
        assert figures.min_us <= figures.average_us <= figures.max_us


@pytest.mark.parametrize("atomic", ["fetch-add", "cmp-swap"])
@pytest.mark.parametrize("latency", [True, False])
def test_atomics_change_the_memory_of_the_server(atomic: str, latency: bool) -> None:  # noqa: FBT001 - a parameter
    plan = make_plan(PerfVerb.ATOMIC, {"latency": latency, "iterations": 40, "atomic": atomic})
    found: list[Any] = []
    with server({}, found), meet(HERE, PORT, MAGIC, remedy="", source=HERE, wire="rocev2") as (connection, another):
        client = PerfClient(connection, plan, another)
        client.measure(8, lambda _: None)
        value = int(found[0].lanes.incoming[:8].view(np.uint64)[0])
        client.close()
    assert value == (40 if atomic == "fetch-add" else 0)  # compare with 1 fails, and changes nothing


def test_a_duration_ends_the_measurement() -> None:
    (row,) = measure("write", {"sizes": (64,), "duration_s": 0.05, "bidirectional": True})
    assert isinstance(row.figures, BandwidthFigures)
    assert row.figures.duration_s >= 0.05
    assert row.figures.peak_bytes_per_s is None
    (row,) = measure("send", {"sizes": (64,), "duration_s": 0.05, "latency": True})
    assert row.figures.messages >= 1


def test_the_path_mtu_is_the_smaller_one_and_queue_pairs_have_it() -> None:
    plan = make_plan(PerfVerb.WRITE, {"iterations": 5, "path_mtu": 512})
    found: list[Any] = []
    with server({}, found), meet(HERE, PORT, MAGIC, remedy="", source=HERE, wire="rocev2") as (connection, another):
        client = PerfClient(connection, plan, another)
        client.measure(65_536, lambda _: None)
        qps = [lane.qp for end in (client, found[0]) for lane in end.lanes.lanes]
        assert [(qp.attr.path_mtu, qp.state) for qp in qps] == [(512, QpState.RTS)] * 2
        client.close()
    assert [qp.state for qp in qps] == [QpState.RESET] * 2


def test_a_plan_that_the_server_was_not_given_is_refused_with_both_values() -> None:
    found: list[Any] = []
    text = (
        "the server refused the plan: VERB: the server wants read, the client write; "
        "--qps: the server wants 2, the client 1"
    )
    with (
        server({"verb": PerfVerb.READ, "qps": 2}, found),
        meet(HERE, PORT, MAGIC, remedy="", source=HERE, wire="rocev2") as (connection, another),
        pytest.raises(PeerError) as refused,
    ):
        PerfClient(connection, make_plan(PerfVerb.WRITE, {}), another)
    assert str(refused.value) == text
    assert str(found[0]) == text


def test_a_client_without_the_mark_is_refused() -> None:
    found: list[Any] = []
    with (
        server({}, found),
        pytest.raises(PeerError, match=r"CONSUMER_DEFINED.*\. start it again"),
        meet(HERE, PORT, b"somebody", remedy="start it again", source=HERE, wire="rocev2"),
    ):
        pass
    assert "without the mark" in str(found[0])


def test_nobody_listens_and_the_remedy_is_told() -> None:
    with (
        pytest.raises(PeerError, match=rf"no connection to {HERE} port 9: .*nobody listens on this port\. do this"),
        meet(HERE, 9, MAGIC, remedy="do this", source=HERE, wire="rocev2"),
    ):
        pass


def test_a_taken_port_is_refused_or_the_next_one_is_taken() -> None:
    with Door(HERE, PORT, wire="rocev2"):
        with pytest.raises(UsageError, match="another process listens"):
            Door(HERE, PORT, wire="rocev2")
        with Door(HERE, PORT, wire="rocev2", takes_other=True) as other:
            assert other.port == PORT + 1


def test_a_server_process_of_its_own_serves_one_client_and_ends() -> None:
    plan = make_plan(PerfVerb.SEND, {"iterations": 10, "sizes": (100,)})
    with (
        own_server(HERE, PORT, "rocev2") as port,
        meet(HERE, port, MAGIC, remedy="", source=HERE, wire="rocev2") as (connection, another),
    ):
        client = PerfClient(connection, plan, another)
        assert client.measure(100, lambda _: None).received == 10
        client.close()
    with pytest.raises(UsageError, match="wanted one of this machine"), own_server("192.0.2.1", PORT, "rocev2"):
        pass


def test_a_host_is_an_address_or_a_name() -> None:
    assert host_address("192.0.2.7") == "192.0.2.7"
    assert host_address("localhost") in {"127.0.0.1", "::1"}


@pytest.mark.parametrize("given", [{"bidirectional": True, "sizes": (3000,)}, {"latency": True}])
def test_the_connection_manager_joins_queue_pairs_over_iwarp(given: dict[str, Any]) -> None:
    plan = make_plan(PerfVerb.SEND, {"iterations": 40, "rdma_cm": True, **given})
    with (
        own_server(HERE, PORT, "iwarp") as port,
        meet(HERE, port, MAGIC, remedy="", source=HERE, wire="iwarp") as (connection, another),
    ):
        client = PerfClient(connection, plan, another)
        row = client.measure(plan.sizes[0], lambda _: None)
        assert (row.sent, row.received) == (40, 40)
        client.close()
