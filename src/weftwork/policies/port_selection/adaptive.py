"""Adaptive routing: each packet takes the least loaded port, ties at random.

The port has the lowest key, made of pause, queue and utilisation. The key holds what the hardware compares: whether the
port is paused, its queue and its utilisation, the latter two in four levels each that are refreshed now and then. So
ports with nearly the same queue are alike, and packets that come at once do not all run to one port.
Source: github.com/ultraethernet/uet-htsim, fat_tree_switch.cpp (adaptive_route, compare_pqb and others) and queue.cpp
(quantized_queuesize, quantized_utilization); for `spectrum` docs.nvidia.com/networking-ethernet-software, Cumulus
Linux, adaptive routing.
Leaves out: ECMP_ADAPTIVE, which replaces the worst choice of a hash, and flowlets (`ars`); in Spectrum, what switches
hear from their neighbours, and weights. A queue has no capacity of its own here: it is full at `full_ps`. Utilisation
counts bytes that had a choice, in eighths of its window, where uet-htsim has the link's busy time.
"""

from __future__ import annotations

from weftwork.policies.interface import OFF, Candidate, PortSelection, PortSignal, array, row

__all__ = ["PLUGIN", "Params", "Readings", "State", "key", "queue_level", "step", "utilisation_level"]

SLOTS = 8  # chosen: eighths of the window
LEVELS = 4  # quantized_queuesize, quantized_utilization


class Params:
    """Compared quantities, and their granularity."""

    by_pause: bool = row(
        default=False, source="uet-htsim, compare_pq and others; chosen: off, as q is", text="A paused port is worse."
    )
    by_queue: bool = row(
        default=True, source="uet-htsim, compare_queuesize, its default", text="Compare queues, after pauses."
    )
    by_utilisation: bool = row(
        default=False,
        source="uet-htsim, compare_qb and others; chosen: off, as q is",
        text="Compare utilisation, after queues.",
    )
    refresh_ps: int = row(
        default="100ns",
        minimum=0,
        source="uet-htsim, queue.cpp, _update_period",
        text="A level older than this is read again.",
    )
    full_ps: int = row(
        default="12us",
        minimum=1_000_000,
        source="chosen: a queue of one bandwidth-delay product at 12 us, as uet-htsim sizes queues that trim",
        text="Time to drain a full queue; queue levels are parts of it.",
    )
    queue_low: float = row(
        default=0.05, minimum=0, maximum=1, source="uet-htsim, quantized_queuesize", text="Queue from which level is 1."
    )
    queue_middle: float = row(
        default=0.1, minimum=0, maximum=1, source="uet-htsim, quantized_queuesize", text="Queue from which level is 2."
    )
    queue_high: float = row(
        default=0.2, minimum=0, maximum=1, source="uet-htsim, quantized_queuesize", text="Queue from which level is 3."
    )
    window_ps: int = row(
        default="30us",
        minimum=1_000_000,
        source="uet-htsim, queue.cpp, _window",
        text="Time over which utilisation is counted.",
    )
    used_low: float = row(
        default=0.01,
        minimum=0,
        maximum=2,
        source="uet-htsim, quantized_utilization: whole per cent above 0",
        text="Utilisation from which level is 1.",
    )
    used_middle: float = row(
        default=0.15,
        minimum=0,
        maximum=2,
        source="uet-htsim, quantized_utilization",
        text="Utilisation from which level is 2.",
    )
    used_high: float = row(
        default=0.5,
        minimum=0,
        maximum=2,
        source="uet-htsim, quantized_utilization",
        text="Utilisation from which level is 3.",
    )
    small_bytes: int = row(
        default=100,
        minimum=0,
        source="uet-htsim, fat_tree_switch.cpp",
        text="Packets smaller than this go by their hash.",
    )


class State:
    """No state."""


class Readings:
    """Last readings of a port, and its bytes within the window."""

    queue: int  # level
    queue_at_ps: int = OFF
    used: int  # level
    used_at_ps: int = OFF
    slot: int  # number of the newest slot since time 0
    given_bytes: list[int] = array(SLOTS)


def queue_level(params: Params, port: Readings, candidate: Candidate, now_ps: int) -> int:
    """Return the queue level, read again if it is old."""
    if port.queue_at_ps == OFF or now_ps - port.queue_at_ps > params.refresh_ps:
        full_bytes = float(candidate.rate_bps) * params.full_ps / 8e12
        share = candidate.queue_bytes / full_bytes
        port.queue = (
            int(share >= params.queue_low) + int(share >= params.queue_middle) + int(share >= params.queue_high)
        )
        port.queue_at_ps = now_ps
    return port.queue


def forget(params: Params, port: Readings, now_ps: int) -> int:
    """Empty slots older than the window, and return the newest place."""
    slot = now_ps * SLOTS // params.window_ps
    for _ in range(min(slot - port.slot, SLOTS)):
        port.slot += 1
        port.given_bytes[port.slot % SLOTS] = 0
    port.slot = max(port.slot, slot)  # more than a window has passed: every slot is empty
    return slot % SLOTS


def utilisation_level(params: Params, port: Readings, candidate: Candidate, now_ps: int) -> int:
    """Return the utilisation level, counted again if it is old."""
    if port.used_at_ps == OFF or now_ps - port.used_at_ps > params.refresh_ps:
        forget(params, port, now_ps)
        given_bytes = 0
        for i in range(SLOTS):
            given_bytes += port.given_bytes[i]
        share = given_bytes / (float(candidate.rate_bps) * params.window_ps / 8e12)
        port.used = int(share >= params.used_low) + int(share >= params.used_middle) + int(share >= params.used_high)
        port.used_at_ps = now_ps
    return port.used


def give(params: Params, port: Readings, size_bytes: int, now_ps: int) -> None:
    """Count the bytes given to a port."""
    slot = forget(params, port, now_ps)
    port.given_bytes[slot] += size_bytes


def key(params: Params, port: Readings, candidate: Candidate, now_ps: int) -> int:
    """Return the sort key: pause, then queue, then utilisation."""
    worth = candidate.paused if params.by_pause else 0
    worth = worth * LEVELS
    if params.by_queue:
        worth += queue_level(params, port, candidate, now_ps)
    worth = worth * LEVELS
    if params.by_utilisation:
        worth += utilisation_level(params, port, candidate, now_ps)
    return worth


def step(params: Params, state: State, ports: list[Readings], signal: PortSignal, candidates: list[Candidate]) -> None:
    """Choose one of the ports of the lowest key at random."""
    if signal.bytes < params.small_bytes:
        signal.choice = signal.hash % signal.candidates
    else:
        best = 2 * LEVELS * LEVELS
        ties = 0
        for i in range(signal.candidates):
            worth = key(params, ports[candidates[i].port], candidates[i], signal.now_ps)
            ties = ties + 1 if worth == best else (1 if worth < best else ties)
            best = min(best, worth)
        left = signal.draw % ties
        for i in range(signal.candidates):
            if key(params, ports[candidates[i].port], candidates[i], signal.now_ps) == best:
                if left == 0:
                    signal.choice = i
                left -= 1
    if params.by_utilisation:
        give(params, ports[candidates[signal.choice].port], signal.bytes, signal.now_ps)


PLUGIN = PortSelection(
    params=Params,
    state=State,
    step=step,
    port_state=Readings,
    reorders="always",
    spreads="evenly",
    needs=frozenset({"queue", "reorder-tolerance"}),
    variants={
        # The defaults above: the order q.
        "uet": {},
        "uet-pqb": {"by_pause": True, "by_utilisation": True},
        # Queues alone, read every microsecond, all RoCEv2 packets. Unverified: thresholds, which are not public, are
        # those above.
        "spectrum": {"refresh_ps": "1us", "small_bytes": 0},
        # Link utilisation threshold of 70 %, off by default since Cumulus Linux 5.6.
        "spectrum-utilisation": {
            "refresh_ps": "1us",
            "small_bytes": 0,
            "by_utilisation": True,
            "used_low": 0.7,
            "used_middle": 0.7,
            "used_high": 0.7,
        },
    },
    source="uet-htsim, htsim/sim/datacenter/fat_tree_switch.cpp, ADAPTIVE_ROUTING",
)
