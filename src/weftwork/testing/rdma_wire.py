"""Conformance of a wire: what every connection has to do, whatever carries it.

Each `Exchange` is a listener and a connector that use `weftwork.rdma` alone. The caller says how both are opened and
run: two threads and a socket, a wire in memory, or programs on a simulated fabric.
Source: IBTA vol. 1, 9.7 (operations in order, once) and 10.6 (memory); RFC 5040, sections 5 and 7; librdmacm.
Leaves out: loss, which a wire hides or not; datagrams and windows, which connections do not have.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final

import numpy as np

from weftwork.base.errors import PeerError, UsageError
from weftwork.rdma.region import RemoteRange
from weftwork.rdma.verbs import AccessFlags, WcStatus
from weftwork.rdma.work import WorkError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from weftwork.rdma.connection import RdmaConnection
    from weftwork.rdma.rendezvous import RdmaConnector, RdmaListener

    OpenListener = Callable[[], RdmaListener]
    OpenConnector = Callable[..., RdmaConnector]

__all__ = ["EXCHANGES", "PORT", "Exchange"]

PORT: Final = 7471  # of every listener; that of rping (librdmacm, rping.c)
PATIENCE_S: Final = 60.0  # chosen: far more than any exchange takes
SIZES_BYTES: Final = (1, 3, 255, 256, 257, 4096, 4097, 70_001, 1 << 20)  # chosen: around path MTUs, and odd ones
_ALL: Final = AccessFlags.REMOTE_WRITE | AccessFlags.REMOTE_READ | AccessFlags.REMOTE_ATOMIC
_SMALL_BYTES: Final = 64


@dataclass(frozen=True, kw_only=True, slots=True)
class Exchange:
    """A listener and a connector that check each other.

    Parameters
    ----------
    name : of what it checks
    serve : of one end; AssertionError where something is wrong
    call : of the other end; None where nobody is to connect
    feature : that a wire may lack; the connector then checks that it is refused
    """

    name: str
    serve: Callable[[OpenListener], None] | None
    call: Callable[[OpenConnector], None]
    feature: str = ""


def _require(holds: bool, text: str) -> None:  # noqa: FBT001 - the condition itself
    if not holds:
        raise AssertionError(text)


def _bytes(count: int, seed: int = 1) -> NDArray[np.uint8]:
    return np.random.default_rng(seed).integers(0, 256, count, np.uint8)


def _offer(memory: NDArray[np.uint8], access: AccessFlags = _ALL) -> Callable[[OpenListener], None]:
    """A server that offers memory until the peer leaves."""

    def serve(open_listener: OpenListener) -> None:
        with open_listener() as listener:
            connection = listener.get_request().wait(PATIENCE_S)
            region = connection.reg_mr(memory, access)
            connection.accept(region.remote.encode()).wait(PATIENCE_S)
            connection.closed.wait(PATIENCE_S)

    return serve


def _table(connection: RdmaConnection) -> RemoteRange:
    return RemoteRange.decode(connection.private_data)


# Memory


_STORE: Final = np.zeros(max(SIZES_BYTES), np.uint8)


def _write_and_read(open_connector: OpenConnector) -> None:
    with open_connector() as connection:
        table = _table(connection)
        for size in SIZES_BYTES:
            mine, back = _bytes(size, size), np.zeros(size, np.uint8)
            connection.write(connection.reg_mr(mine), table).wait(PATIENCE_S)
            connection.read(connection.reg_mr(back), table).wait(PATIENCE_S)
            _require(np.array_equal(mine, back), f"{size} bytes came back changed")
        _nothing = connection.reg_mr(bytearray())
        connection.write(_nothing, table).wait(PATIENCE_S)
        connection.read(_nothing, table).wait(PATIENCE_S)


_PIPE: Final = np.zeros(1 << 16, np.uint8)


def _pipelined(open_connector: OpenConnector) -> None:
    with open_connector() as connection:
        table = _table(connection)
        mine, back = _bytes(len(_PIPE)), np.zeros_like(_PIPE)
        here, there = connection.reg_mr(mine), connection.reg_mr(back)
        step = 128
        works = [connection.write(here[at : at + step], table[at : at + step]) for at in range(0, len(mine), step)]
        ends: list[int] = []
        for number, work in enumerate(works):
            work.when_done(partial(ends.append, number))
        read = connection.read(there, table)
        read.wait(PATIENCE_S)  # it comes behind the writes, so that it sees all of them
        _require(np.array_equal(mine, back), "a READ behind WRITEs does not see them")
        _require(ends == list(range(len(works))), "requests ended out of order")


_COUNTERS: Final = np.zeros(2, np.uint64)


def _atomics(open_connector: OpenConnector) -> None:
    with open_connector() as connection:
        table = _table(connection)
        _require(connection.fetch_add(table[:8], 40).wait(PATIENCE_S) == 0, "the first value was not 0")
        works = [connection.fetch_add(table[:8], 1) for _ in range(8)]
        _require([work.wait(PATIENCE_S) for work in works] == list(range(40, 48)), "additions came out of order")
        _require(connection.cmp_swap(table[:8], 47, 5).wait(PATIENCE_S) == 48, "compare-and-swap lies")
        _require(connection.cmp_swap(table[:8], 48, 5).wait(PATIENCE_S) == 48, "compare-and-swap lies")
        _require(connection.fetch_add(table[:8], (1 << 64) - 5).wait(PATIENCE_S) == 5, "it was not swapped")
        _require(connection.fetch_add(table[:8], 0).wait(PATIENCE_S) == 0, "an addition does not wrap at 2^64")


_CANARY: Final = np.zeros(_SMALL_BYTES, np.uint8)


def _and_see(connection: RdmaConnection, table: RemoteRange) -> None:
    """Read behind a WRITE that the peer refuses.

    A stream ends a WRITE as soon as it has taken the bytes; a READ behind it shows what the peer has done.
    """
    connection.read(connection.reg_mr(bytearray(8)), table).wait(PATIENCE_S)


def _refused(work_of: Callable[[RdmaConnection, RemoteRange], object]) -> Callable[[OpenConnector], None]:
    """A connector whose request the peer may not execute."""

    def call(open_connector: OpenConnector) -> None:
        with open_connector() as connection:
            try:
                work_of(connection, _table(connection))
            except WorkError as error:
                _require(
                    error.wc.status in {WcStatus.REM_ACCESS_ERR, WcStatus.REM_INV_REQ_ERR, WcStatus.WR_FLUSH_ERR},
                    f"it ended with {error.wc.status.name}",
                )
            else:
                message = "the peer allowed what it may not"
                raise AssertionError(message)
        _require(not _CANARY.any(), "bytes were changed that may not be")

    return call


def _write_by_wrong_key(connection: RdmaConnection, table: RemoteRange) -> None:
    wrong = RemoteRange(table.addr, table.length, table.rkey ^ 1)
    connection.write(connection.reg_mr(_bytes(8)), wrong).wait(PATIENCE_S)
    _and_see(connection, table)


def _write_beyond(connection: RdmaConnection, table: RemoteRange) -> None:
    beyond = RemoteRange(table.addr + table.length - 4, 8, table.rkey)
    connection.write(connection.reg_mr(_bytes(8)), beyond).wait(PATIENCE_S)
    _and_see(connection, table)


def _read_what_may_be_written(connection: RdmaConnection, table: RemoteRange) -> None:
    connection.read(connection.reg_mr(bytearray(8)), table).wait(PATIENCE_S)


# Messages


def _serve_letters(open_listener: OpenListener) -> None:
    with open_listener() as listener:
        connection = listener.get_request().wait(PATIENCE_S)
        box = np.zeros((len(SIZES_BYTES), max(SIZES_BYTES)), np.uint8)
        region = connection.reg_mr(box)
        width = box.shape[1]
        letters = [connection.recv(region[i * width : (i + 1) * width]) for i in range(len(SIZES_BYTES))]
        connection.accept().wait(PATIENCE_S)
        for i, (size, letter) in enumerate(zip(SIZES_BYTES, letters, strict=True)):
            _require(letter.wait(PATIENCE_S).byte_len == size, "a letter has another length")
            _require(np.array_equal(box[i, :size], _bytes(size, size)), "a letter came changed or out of order")
            connection.send(connection.reg_mr(_bytes(size, size + 1))).wait(PATIENCE_S)
        connection.closed.wait(PATIENCE_S)


def _send_letters(open_connector: OpenConnector) -> None:
    with open_connector() as connection:
        answers = [np.zeros(size, np.uint8) for size in SIZES_BYTES]
        letters = [connection.recv(connection.reg_mr(answer)) for answer in answers]
        sent = [connection.send(connection.reg_mr(_bytes(size, size))) for size in SIZES_BYTES]
        for size, answer, letter in zip(SIZES_BYTES, answers, letters, strict=True):
            _require(letter.wait(PATIENCE_S).byte_len == size, "an answer has another length")
            _require(np.array_equal(answer, _bytes(size, size + 1)), "an answer came changed or out of order")
        for work in sent:
            work.wait(PATIENCE_S)


def _serve_immediate(open_listener: OpenListener) -> None:
    with open_listener() as listener:
        connection = listener.get_request().wait(PATIENCE_S)
        memory = np.zeros(_SMALL_BYTES, np.uint8)
        region = connection.reg_mr(memory, _ALL)
        letter = connection.recv(region)
        connection.accept(region.remote.encode()).wait(PATIENCE_S)
        _require(letter.wait(PATIENCE_S).imm_data == 0xBEEF, "the immediate was lost")
        _require(np.array_equal(memory[:8], _bytes(8)), "the bytes come behind their immediate")
        connection.closed.wait(PATIENCE_S)


def _send_with_immediate(open_connector: OpenConnector) -> None:
    with open_connector() as connection:
        connection.send(connection.reg_mr(_bytes(8)), 0xBEEF).wait(PATIENCE_S)


def _write_with_immediate(open_connector: OpenConnector) -> None:
    with open_connector() as connection:
        connection.write(connection.reg_mr(_bytes(8)), _table(connection), 0xBEEF).wait(PATIENCE_S)


# Connections


def _serve_twins(open_listener: OpenListener) -> None:
    with open_listener() as listener:
        memory = np.zeros((2, _SMALL_BYTES), np.uint8)
        connections = []
        for i in (0, 1):
            connection = listener.get_request().wait(PATIENCE_S)
            _require(connection.private_data.startswith(b"twin"), "private data of the request was lost")
            connection.accept(connection.reg_mr(memory[i], _ALL).remote.encode()).wait(PATIENCE_S)
            connections.append(connection)
        for connection in connections:
            connection.closed.wait(PATIENCE_S)
        _require(memory[0].tolist() == [1] * _SMALL_BYTES, "the bytes of one connection went to the other")
        _require(memory[1].tolist() == [2] * _SMALL_BYTES, "the bytes of one connection went to the other")


def _twins(open_connector: OpenConnector) -> None:
    with open_connector(b"twin") as first, open_connector(b"twin") as second:
        for value, connection in ((1, first), (2, second)):
            mine = connection.reg_mr(np.full(_SMALL_BYTES, value, np.uint8))
            connection.write(mine, _table(connection)).wait(PATIENCE_S)
        try:  # a key of one connection is worth nothing to another
            first.write(first.reg_mr(bytearray(8)), _table(second)).wait(PATIENCE_S)
            _and_see(first, _table(first))
        except WorkError:
            return
        message = "a key of another connection was taken"
        raise AssertionError(message)


def _serve_refusal(open_listener: OpenListener) -> None:
    with open_listener() as listener:
        listener.get_request().wait(PATIENCE_S).reject(b"no")


def _refusal(open_connector: OpenConnector) -> None:
    try:
        with open_connector():
            pass
    except PeerError as error:
        _require("refused" in str(error), f"the error does not say that the peer refused: {error}")
        return
    message = "a refused connection was established"
    raise AssertionError(message)


def _serve_end(open_listener: OpenListener) -> None:
    with open_listener() as listener:
        connection = listener.get_request().wait(PATIENCE_S)
        letter = connection.recv(connection.reg_mr(bytearray(8)))
        connection.accept().wait(PATIENCE_S)
        connection.closed.wait(PATIENCE_S)
        try:
            letter.wait(PATIENCE_S)
        except WorkError as error:
            _require(error.wc.status is WcStatus.WR_FLUSH_ERR, "a receive of a closed connection ended otherwise")
            return
        message = "a receive of a closed connection has a result"
        raise AssertionError(message)


def _end(open_connector: OpenConnector) -> None:
    with open_connector() as connection:
        connection.disconnect().wait(PATIENCE_S)
        try:
            connection.send(connection.reg_mr(bytearray(8))).wait(PATIENCE_S)
        except (WorkError, UsageError):
            return
        message = "a closed connection has sent"
        raise AssertionError(message)


_AWAITED: Final = np.zeros(1 << 16, np.uint8)


def _serve_awaited(open_listener: OpenListener) -> None:
    async def serve() -> None:
        async with open_listener() as listener:
            connection = await listener.get_request()
            await connection.accept(connection.reg_mr(_AWAITED, _ALL).remote.encode())
            await connection.closed

    asyncio.run(serve())


def _awaited(open_connector: OpenConnector) -> None:
    async def call() -> None:
        async with open_connector() as connection:
            mine, back = _bytes(len(_AWAITED)), np.zeros_like(_AWAITED)
            table = _table(connection)
            half = len(mine) // 2
            here = connection.reg_mr(mine)
            await asyncio.gather(*(_until(connection, here[at : at + half], table[at : at + half]) for at in (0, half)))
            await connection.read(connection.reg_mr(back), table)
            _require(np.array_equal(mine, back), "bytes came back changed")

    asyncio.run(call())


async def _until(connection: RdmaConnection, here: object, there: RemoteRange) -> None:
    await connection.write(here, there)  # type: ignore[arg-type]


EXCHANGES: Final = (
    Exchange(name="write and read", serve=_offer(_STORE), call=_write_and_read),
    Exchange(name="pipelined", serve=_offer(_PIPE), call=_pipelined),
    Exchange(name="atomics", serve=_offer(_COUNTERS.view(np.uint8)), call=_atomics),
    Exchange(name="letters", serve=_serve_letters, call=_send_letters),
    Exchange(
        name="send with immediate", serve=_serve_immediate, call=_send_with_immediate, feature="send with immediate"
    ),
    Exchange(
        name="write with immediate", serve=_serve_immediate, call=_write_with_immediate, feature="write with immediate"
    ),
    Exchange(name="wrong key", serve=_offer(_CANARY), call=_refused(_write_by_wrong_key)),
    Exchange(name="beyond the memory", serve=_offer(_CANARY), call=_refused(_write_beyond)),
    Exchange(
        name="read of memory for writing",
        serve=_offer(_CANARY, AccessFlags.REMOTE_WRITE),
        call=_refused(_read_what_may_be_written),
    ),
    Exchange(name="two connections", serve=_serve_twins, call=_twins),
    Exchange(name="refusal", serve=_serve_refusal, call=_refusal),
    Exchange(name="nobody listens", serve=None, call=_refusal),
    Exchange(name="end", serve=_serve_end, call=_end),
    Exchange(name="asyncio", serve=_serve_awaited, call=_awaited),
)
