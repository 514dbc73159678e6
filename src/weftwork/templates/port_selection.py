"""Best of three: each packet leaves by the shortest of three queues.

They are those of two random ports and of the port used last. Weftwork calls `step` at each switch for each packet that
could leave by more than one port. The step writes ``signal.choice``, the index of a candidate.
docs/models/writing-a-policy.md lists what a step may use.

    weftwork run port_selection.yaml    simulates 16 hosts that send over four spines
    weftwork test port_selection.py     checks the rules that every port selection keeps

Source: Ghorbani et al., DRILL, SIGCOMM 2017, doi:10.1145/3098822.3098839, section 3.
Leaves out: weights for links of different rates. The receiver must tolerate reordering.
"""

from __future__ import annotations

from weftwork.policies.interface import Candidate, PortSelection, PortSignal, row


class Params:
    """Parameters that a scenario may set.

    For example ``port_selection: {file: ./port_selection.py, samples: 3}``.
    """

    samples: int = row(
        default=2, minimum=1, maximum=8, source="DRILL, section 3.1: two suffice", text="Ports drawn for each packet."
    )


class State:
    """State of one switch: the port of the previous packet."""

    last: int


def drain_s(candidate: Candidate) -> float:
    """Drain time of a queue in seconds, times 8: bytes / rate."""
    return float(candidate.queue_bytes) / float(candidate.rate_bps)


def step(params: Params, state: State, signal: PortSignal, candidates: list[Candidate]) -> None:
    """Choose the fastest-draining port among random ports and the last port.

    A tie goes to the first drawn.
    """
    rest = signal.draw  # 62 random bits that belong to this packet at this switch
    signal.choice = rest % signal.candidates
    for _ in range(params.samples - 1):
        rest = rest // signal.candidates
        drawn = rest % signal.candidates
        if drain_s(candidates[drawn]) < drain_s(candidates[signal.choice]):
            signal.choice = drawn
    last = state.last % signal.candidates  # there may be fewer now: ports that are down are no candidates
    if drain_s(candidates[last]) < drain_s(candidates[signal.choice]):
        signal.choice = last
    state.last = signal.choice


PLUGIN = PortSelection(
    params=Params,
    state=State,
    step=step,
    reorders="always",  # packets of one flow overtake each other
    spreads="evenly",  # what the flow engine takes it for, where no packet is simulated
    needs=frozenset({"queue", "reorder-tolerance"}),  # without "queue" all queue_bytes are 0
    interface=1,  # version of what a step sees and writes: docs/models/policy-interface.md
    source="doi:10.1145/3098822.3098839, section 3",
)
