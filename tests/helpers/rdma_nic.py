"""Opcodes on the wire and statuses of completions of a pair of software NICs."""

from __future__ import annotations

from helpers.rdma_pair import Pair

from weftwork.rdma.verbs import (
    WcStatus,
    WrOpcode,
)

W = WrOpcode


OK = WcStatus.SUCCESS


def opcodes(pair: Pair) -> list[int]:
    return [datagram.parts[0][0] for datagram in pair.sent]


def statuses(pair: Pair, end: int) -> list[WcStatus]:
    return [wc.status for wc in pair.poll(end)]
