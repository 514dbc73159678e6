"""CONGA: leaves tell each other how congested the paths between them are, and a new flowlet takes the best path.

Source: Alizadeh et al., SIGCOMM 2014, doi:10.1145/2619239.2626316, sections 3.2 to 3.5; conweave-ns3 (conga) for the
defaults. Each port estimates its rate by a register to which sent bytes are added and that decays by alpha every
T_dre (DRE). A packet's word carries the first leaf's uplink (LBTag), the largest metric of the links on the way (CE),
and one pair of both for the other direction (FB_LBTag, FB_Metric).
Leaves out: fabrics of more than two tiers, more than 64 leaves or ports of a leaf, and the flow table's age bit.
"""

from __future__ import annotations

from weftwork.policies.interface import OFF, Candidate, PortSelection, PortSignal, array, row

FLOWLETS = 512
LEAVES = 64
TAGS = 64  # local ports of a leaf
PATHS = LEAVES * TAGS
LEVELS = 8  # 2^Q with Q = 3, section 3.2
TAG_AT = LEVELS  # places in the word: CE, LBTag, FB_Metric, FB_LBTag + 1 (0: no feedback)
METRIC_AT = TAG_AT * TAGS
FEEDBACK_AT = METRIC_AT * LEVELS
MOST_DECAYS = 64  # chosen: 0.8^64 is below a millionth


class Params:
    dre_ps: int = row(default="50us", minimum=1, source="conweave-ns3", text="T_dre: time between two decays.")
    alpha: float = row(default=0.2, minimum=0.01, maximum=0.9, source="conweave-ns3", text="Part that decays.")
    gap_ps: int = row(default="100us", minimum=0, source="conweave-ns3", text="Pause that ends a flowlet.")
    age_ps: int = row(default="500us", minimum=1, source="conweave-ns3", text="Age at which a path's metric is 0.")


class State:
    last_at_ps: list[int] = array(FLOWLETS, OFF)
    port: list[int] = array(FLOWLETS)
    to_leaf: list[int] = array(PATHS)  # metric by leaf and own uplink, as the other leaf has told
    to_leaf_at_ps: list[int] = array(PATHS, OFF)
    from_leaf: list[int] = array(PATHS)  # metric by leaf and its uplink, as packets have told
    is_fresh: list[int] = array(PATHS)  # not told to that leaf yet
    turn: list[int] = array(LEAVES)


class Port:
    sent_bytes: float  # X of the DRE
    decayed_at_ps: int = OFF


def metric(params: Params, port: Port, rate_bps: int, now_ps: int) -> int:
    """Utilisation of a link, X / (C tau) with tau = T_dre / alpha, in `LEVELS` levels."""
    if port.decayed_at_ps == OFF:
        port.decayed_at_ps = now_ps
    due = (now_ps - port.decayed_at_ps) // params.dre_ps
    port.decayed_at_ps += due * params.dre_ps
    if due > MOST_DECAYS:
        port.sent_bytes = 0.0
    for _ in range(min(due, MOST_DECAYS)):
        port.sent_bytes = port.sent_bytes * (1.0 - params.alpha)
    full_bytes = float(rate_bps) * float(params.dre_ps) / (8e12 * params.alpha)
    return int(min(LEVELS * port.sent_bytes / full_bytes, LEVELS - 1.0))


def arrived(state: State, signal: PortSignal) -> None:
    """Keep at the last leaf what a packet tells: how its own path was, and how one of this leaf's is."""
    leaf = signal.from_edge % LEAVES
    told = leaf * TAGS + signal.word // TAG_AT % TAGS
    state.from_leaf[told] = signal.word % LEVELS
    state.is_fresh[told] = 1
    feedback = signal.word // FEEDBACK_AT
    if feedback > 0:
        path = leaf * TAGS + (feedback - 1) % TAGS
        state.to_leaf[path] = signal.word // METRIC_AT % LEVELS
        state.to_leaf_at_ps[path] = signal.now_ps


def feedback_for(state: State, leaf: int) -> int:
    """Give the next path from a leaf of which it was not told yet, in turn, as part of a word."""
    for i in range(TAGS):
        tag = (state.turn[leaf] + i) % TAGS
        path = leaf * TAGS + tag
        if state.is_fresh[path] == 1:
            state.is_fresh[path] = 0
            state.turn[leaf] = (tag + 1) % TAGS
            return (tag + 1) * FEEDBACK_AT + state.from_leaf[path] * METRIC_AT
    return 0


def least(params: Params, state: State, ports: list[Port], signal: PortSignal, candidates: list[Candidate]) -> int:
    """Give the uplink with the least of max(own metric, metric told); ties go to the first after a random start."""
    choice = 0
    best = LEVELS
    for i in range(signal.candidates):
        j = (i + signal.draw) % signal.candidates
        port = candidates[j].port
        path = signal.to_edge % LEAVES * TAGS + port % TAGS
        worst = metric(params, ports[port], candidates[j].rate_bps, signal.now_ps)
        if state.to_leaf_at_ps[path] != OFF and signal.now_ps - state.to_leaf_at_ps[path] < params.age_ps:
            worst = max(worst, state.to_leaf[path])
        if worst < best:
            best = worst
            choice = j
    return choice


def uplink(params: Params, state: State, ports: list[Port], signal: PortSignal, candidates: list[Candidate]) -> int:
    """Stay on the flowlet's uplink, or choose one."""
    entry = signal.queue_pair_hash % FLOWLETS
    choice = -1
    if state.last_at_ps[entry] != OFF and signal.now_ps - state.last_at_ps[entry] <= params.gap_ps:
        for i in range(signal.candidates):
            if candidates[i].port == state.port[entry]:
                choice = i
    if choice < 0:
        choice = least(params, state, ports, signal, candidates)
    state.last_at_ps[entry] = signal.now_ps
    state.port[entry] = candidates[choice].port
    return choice


def step(params: Params, state: State, ports: list[Port], signal: PortSignal, candidates: list[Candidate]) -> None:
    signal.choice = 0
    if signal.delivered == 1:
        if signal.from_edge != signal.to_edge:
            arrived(state, signal)
        return
    if signal.edge == signal.from_edge:
        signal.choice = uplink(params, state, ports, signal, candidates)
        tag = candidates[signal.choice].port % TAGS
        signal.word = feedback_for(state, signal.to_edge % LEAVES) + tag * TAG_AT
    else:
        signal.choice = signal.queue_pair_hash % signal.candidates  # a spine has one way, or parallel cables
    port = candidates[signal.choice].port
    level = metric(params, ports[port], candidates[signal.choice].rate_bps, signal.now_ps)
    signal.word += max(level - signal.word % LEVELS, 0)  # CE is the largest on the way
    ports[port].sent_bytes += signal.bytes


PLUGIN = PortSelection(
    params=Params,
    state=State,
    step=step,
    port_state=Port,
    always=True,
    at_delivery=True,
    reorders="on-move",
    source="doi:10.1145/2619239.2626316",
)
