"""Both ends of a measurement: they agree on a plan, measure size after size, and exchange their figures.

The client sends its plan. The server refuses it with a reason, or both describe their queue pairs. For each size, the
client announces the run, the server says that it is ready, both work, and each sends its figures.
Source: linux-rdma/perftest, src/write_bw.c and its siblings.
Leaves out: words for people, see `table`.
"""

from __future__ import annotations

import resource
import secrets
import time
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Final

from weftwork.base.errors import PeerError, UsageError
from weftwork.rdma.perf.figures import BandwidthFigures, LatencyFigures, bandwidth_figures, latency_figures
from weftwork.rdma.perf.lanes import PerfLanes
from weftwork.rdma.perf.letters import Letters
from weftwork.rdma.perf.operation import PerfVerb
from weftwork.rdma.perf.ping_pong import PingPong
from weftwork.rdma.perf.plan import PerfPlan, disagreements, mistakes_of
from weftwork.rdma.perf.streams import MessageStream
from weftwork.rdma.verbs import QpType

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from weftwork.rdma.connection import RdmaConnection

__all__ = ["MAGIC", "PerfClient", "PerfRow", "PerfServer"]

MAGIC: Final = b"weftwork-perf/1"  # private data of the client: who asks, and the version of the letters
_TOKEN_BYTES: Final = 8  # chosen: nobody guesses 64 bits while a client connects
_PRIVATE_BYTES: Final = 56  # IBTA vol. 1, 12.6.5, less the header of the IP service


@dataclass(frozen=True, kw_only=True, slots=True)
class PerfRow:
    """Figures of one size.

    Parameters
    ----------
    figures : bandwidth (of both directions together) or latency
    cpu_share, peer_cpu_share : CPU time of each process per second of the measurement
    sent, received : messages of one direction, where the service may lose some; otherwise equal
    """

    figures: BandwidthFigures | LatencyFigures
    cpu_share: float
    peer_cpu_share: float
    sent: int
    received: int


def _mark(token: str, number: int) -> bytes:
    """Private data of the connection of a queue pair."""
    return MAGIC + f":{token}:{number}".encode()


class _Effort:
    """CPU time of this process since the start, per second."""

    def __init__(self) -> None:
        self._begin_s: Final = time.monotonic()
        self._begin_cpu_s: Final = _cpu_s()

    def share(self) -> float:
        """CPU time per second so far."""
        return (_cpu_s() - self._begin_cpu_s) / max(time.monotonic() - self._begin_s, 1e-9)


def _cpu_s() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


class PerfClient:
    """The end that asks.

    Parameters
    ----------
    connection : established with ``MAGIC`` as its private data
    plan : of the measurement
    another : makes another connection to the server with this private data

    Raises
    ------
    PeerError : the server refuses the plan, with its reason

    Attributes
    ----------
    lanes : queue pairs of this end
    """

    def __init__(self, connection: RdmaConnection, plan: PerfPlan, another: Callable[[bytes], RdmaConnection]) -> None:
        self._letters: Final = Letters(connection)
        self._plan: Final = plan
        token = secrets.token_hex(_TOKEN_BYTES)
        self._letters.send({"plan": plan.encode(), "token": token})
        joined = []
        if plan.rdma_cm:
            self._letters.expect("welcome")
            joined = [another(_mark(token, number)) for number in range(plan.qps)]
        described = self._letters.expect("ends")
        self.lanes: Final = PerfLanes(connection, plan, joined)
        self._letters.send({"ends": self.lanes.describe()})
        self.lanes.join(described)
        self._letters.expect("joined")

    def measure(self, size_bytes: int, tell: Callable[[int], None]) -> PerfRow:
        """Measure one size.

        Parameters
        ----------
        size_bytes : of each message
        tell : is given the number of completed messages
        """
        plan, letters = self._plan, self._letters
        if plan.latency:
            ping_pong = PingPong(self.lanes, size_bytes)
            self._announce(size_bytes)
            effort = _Effort()
            samples = ping_pong.ask(tell)
            share = effort.share()
            letters.send({"done": {"received": 0}})
            peer = letters.expect("done")
            found = latency_figures(size_bytes, samples, halves=plan.halves)
            return PerfRow(
                figures=found,
                cpu_share=share,
                peer_cpu_share=float(peer["cpu_share"]),
                sent=len(samples),
                received=len(samples),
            )
        stream = MessageStream(self.lanes, size_bytes, receives=plan.bidirectional)
        self._announce(size_bytes)
        own, share = _streamed(stream, plan, size_bytes, letters, tell)
        peer = letters.expect("done")
        figures = own
        if plan.bidirectional:
            figures = own.plus(_decoded(peer["figures"]))
        return PerfRow(
            figures=figures,
            cpu_share=share,
            peer_cpu_share=float(peer["cpu_share"]),
            sent=own.messages,
            received=int(peer["received"]) if plan.verb is PerfVerb.SEND else own.messages,
        )

    def _announce(self, size_bytes: int) -> None:
        self._letters.send({"run": size_bytes})
        self._letters.expect("ready")

    def close(self) -> None:
        """End the measurement; the connection stays."""
        self._letters.send({"end": True})
        self.lanes.close()


class PerfServer:
    """The end that is asked.

    Parameters
    ----------
    connection : a request, not yet accepted
    wanted : keys of `PerfPlan` that were given to the server
    next_request : waits for the next request of any client

    Raises
    ------
    PeerError : the client is no such client, or its plan does not fit; the client is told the reason

    Attributes
    ----------
    plan, lanes : of the client, and queue pairs of this end
    """

    def __init__(
        self, connection: RdmaConnection, wanted: Mapping[str, Any], next_request: Callable[[], RdmaConnection]
    ) -> None:
        if connection.private_data[:_PRIVATE_BYTES].rstrip(b"\0") != MAGIC:
            connection.reject(MAGIC)
            raise PeerError(
                f"{connection.remote_address} asked for a connection without the mark of this version; it was refused"
            )
        self._letters: Final = Letters(connection)
        connection.accept(MAGIC).wait()
        letter = self._letters.receive()
        self.plan: Final = PerfPlan.decode(letter.get("plan"))
        wrong = [f"{mistake.path}: {mistake.text}" for mistake in mistakes_of(self.plan)]
        wrong = wrong or disagreements(wanted, self.plan)
        if wrong:
            self._refuse(f"the server refused the plan: {'; '.join(wrong)}")
        joined: list[RdmaConnection] = []
        if self.plan.rdma_cm:
            self._letters.send({"welcome": True})
            joined = self._join(str(letter.get("token")), next_request)
        try:
            self.lanes: Final = PerfLanes(connection, self.plan, joined)
        except UsageError as error:
            self._refuse(f"the server could not make its queue pairs: {error}")
        self._letters.send({"ends": self.lanes.describe()})
        self.lanes.join(self._letters.expect("ends"))
        self._letters.send({"joined": True})

    def _join(self, token: str, next_request: Callable[[], RdmaConnection]) -> list[RdmaConnection]:
        """Accept the connections of the client's queue pairs, and refuse those of others meanwhile."""
        joined: list[RdmaConnection] = []
        while len(joined) < self.plan.qps:
            request = next_request()
            if request.private_data.rstrip(b"\0") == _mark(token, len(joined)):
                request.accept().wait()
                joined.append(request)
            else:
                request.reject(MAGIC)
        return joined

    def _refuse(self, reason: str) -> None:
        self._letters.send({"refused": reason})
        raise PeerError(reason)

    def serve(self) -> None:
        """Take part in every run, until the client ends."""
        letters, plan = self._letters, self.plan
        while "run" in (letter := letters.receive()):
            size_bytes = letter["run"]
            if size_bytes not in plan.sizes:
                raise PeerError(f"the client asked for a run of {size_bytes} bytes, which is not in its plan")
            effort = _Effort()
            if plan.latency:
                ping_pong = PingPong(self.lanes, size_bytes)
                letters.send({"ready": True})
                ping_pong.answer(lambda: letters.has_arrived)
                letters.expect("done")
                letters.send({"done": {"cpu_share": effort.share(), "received": 0}})
                continue
            stream = MessageStream(self.lanes, size_bytes, receives=True)
            letters.send({"ready": True})
            if plan.bidirectional:
                _streamed(stream, plan, size_bytes, letters, lambda _: None)
                letters.expect("done")
                continue
            _take_rest(stream, plan, letters)
            letters.send({"done": {"cpu_share": effort.share(), "received": stream.received}})
            letters.expect("done")
        self.lanes.close()


def _streamed(
    stream: MessageStream, plan: PerfPlan, size_bytes: int, letters: Letters, tell: Callable[[int], None]
) -> tuple[BandwidthFigures, float]:
    """Send everything, and tell the peer when it is done.

    Returns
    -------
    figures of this direction, and the CPU share of this process
    """
    effort = _Effort()
    stream.send_all(tell)
    share = effort.share()
    figures = bandwidth_figures(size_bytes, stream.posts, stream.completions, with_peak=not plan.duration_s)
    letters.send({"sent": figures.messages})
    if plan.bidirectional:
        _take_rest(stream, plan, letters)
    letters.send({"done": {"cpu_share": share, "received": stream.received, "figures": asdict(figures)}})
    return figures, share


def _take_rest(stream: MessageStream, plan: PerfPlan, letters: Letters) -> None:
    """Take what the peer sends, until it has said how many messages that is.

    On some wires a SEND is complete before it has arrived: a reliable service brings the rest.
    """
    stream.take_until(lambda: letters.has_arrived)
    sent = int(letters.expect("sent"))
    if plan.verb is PerfVerb.SEND and plan.qp_type is QpType.RC:
        stream.take_until(lambda: stream.received >= sent)


def _decoded(letter: object) -> BandwidthFigures:
    try:
        return BandwidthFigures(**letter)  # type: ignore[arg-type]
    except TypeError as error:
        raise PeerError("the peer sent figures in another way; use one version at both ends") from error
