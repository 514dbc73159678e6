"""What both ends of a script know of it: bytes, sizes, and the workload in words.

The bytes of both memories follow a rule that a program in any language can follow, so that each end can check what it
received.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Final

from weftwork.base.grammar import plural
from weftwork.base.units import SIZE, format_quantity
from weftwork.rdma.verbs import ATOMIC_BYTES

if TYPE_CHECKING:
    from weftwork.rdma.peer.script import PeerScript

__all__ = ["bytes_of", "end_counts", "peer_bytes", "request_bytes", "with_added", "workload_text"]

_PERIOD: Final = 251  # chosen: a prime below 256
# Memory that the end sends, that the peer offers and sends, and around what the end offers.
_STARTS: Final = {"end": 1, "peer": 2, "data": 3, "canary": 4}


def bytes_of(what: str, size_bytes: int, *, has_counter: bool = False) -> bytes:
    """Bytes that a memory holds at the start: byte i is (7 i + c) mod 251.

    A packet that lands in a wrong place is seen, since no path MTU is a multiple of 251.

    Parameters
    ----------
    what : name of the memory, which decides c
    size_bytes : of it
    has_counter : its first 8 bytes are 0, for atomics

    Examples
    --------
    >>> list(bytes_of("end", 4))
    [1, 8, 15, 22]
    """
    period = bytes((7 * place + _STARTS[what]) % _PERIOD for place in range(_PERIOD))
    found = (period * (size_bytes // _PERIOD + 1))[:size_bytes]
    return bytes(ATOMIC_BYTES) + found[ATOMIC_BYTES:] if has_counter else found


def with_added(memory: bytes, value: int) -> bytes:
    """A memory whose first 8 bytes have been added to."""
    total = (int.from_bytes(memory[:ATOMIC_BYTES], sys.byteorder) + value) % (1 << 64)
    return total.to_bytes(ATOMIC_BYTES, sys.byteorder) + memory[ATOMIC_BYTES:]


def request_bytes(script: PeerScript) -> int:
    """Size of one request of the end."""
    return ATOMIC_BYTES if script.end.does == "fetch-add" else script.end.size_bytes


def peer_bytes(script: PeerScript) -> int:
    """Size of the peer's memory that the end works on."""
    return max(request_bytes(script) * (1 if script.end.does == "fetch-add" else script.end.times), 4 * ATOMIC_BYTES)


def end_counts(script: PeerScript) -> bool:
    """Whether the offered memory starts with a counter, for atomics of the peer."""
    return any(step.do == "fetch-add" for step in script.peer)


def workload_text(script: PeerScript) -> str:
    """The part of the other end in words, for a person who drives another stack."""
    end = script.end
    size = format_quantity(SIZE, request_bytes(script))
    requests = {
        "write": f"WRITE of {size} to the memory whose address, rkey and length the private data of the REP holds",
        "read": f"READ of {size} from the memory whose address, rkey and length the private data of the REP holds",
        "send": f"SEND of {size}",
        "fetch-add": "FETCH ADD of 1 to the memory whose address and rkey the private data of the REP holds",
    }
    found = [
        f"connect with path MTU {end.path_mtu}, timeout {end.timeout}, retry count {end.retry_count}"
        + (f" and {plural(end.reads_at_once, 'responder resource')}" if end.reads_at_once else "")
    ]
    if end.offers_bytes is not None:
        rights = " and ".join(f"remote {right}" for right in end.rights)
        found.append(
            f"offer {format_quantity(SIZE, end.offers_bytes)} of memory with {rights}: address (8 bytes), length"
            " (8 bytes) and rkey (4 bytes) in the private data of the REQ, in network order; behind them the same of"
            " memory of another protection domain"
        )
    if end.receives:
        found.append(f"post {plural(end.receives, 'receive')} of {format_quantity(SIZE, end.receive_bytes)}")
    if end.congestion_control is not None:
        found.append(f"use {end.congestion_control.upper()} for congestion control")
    if end.does != "nothing":
        found.append(f"post {end.times} x {requests[end.does]}, then disconnect")
    else:
        found.append("wait until the peer disconnects")
    return "; ".join(found)
