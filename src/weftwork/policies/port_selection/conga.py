"""CONGA: a new flowlet takes the least congested path between leaves.

Leaves tell each other how congested the paths between them are. Each port meters its rate by a register to which sent
bytes are added and that decays by alpha every T_dre (DRE). A packet's word carries the first leaf's uplink (LBTag), the
largest metric of the links on the way (CE), and one pair of both for the other direction (FB_LBTag, FB_Metric), so that
any packet back brings news.
Source: Alizadeh et al., SIGCOMM 2014, doi:10.1145/2619239.2626316, sections 3.2 to 3.5;
github.com/conweave-project/conweave-ns3, conga-routing.cc and scratch/network-load-balance.cc, for the defaults.
Leaves out: choices above the leaves of a fabric of three tiers, where the hash chooses and CE is still the largest;
own metrics for leaves 64 apart, and for uplinks 64 ports apart; the flow table's age bit, by which the hardware
ends flowlets after one to two gaps. conweave-ns3 lets only data go by CONGA and carry metrics; here ACKs do too, as in
the paper. Metrics end at the highest level, as in the paper's three bits.
"""

from __future__ import annotations

from weftwork.policies.interface import OFF, Candidate, PortSelection, PortSignal, array, row

__all__ = ["PLUGIN", "Meter", "Params", "State", "arrived", "feedback_for", "least", "metric", "step", "uplink"]

FLOWLETS = 1_024  # chosen: flows that share an entry share its pauses and its port
LEAVES = 64  # chosen: the tables of a switch then take 200 kB
TAGS = 64  # local ports of a leaf
PATHS = LEAVES * TAGS
LEVELS = 8  # 2^Q with Q = 3, section 3.2
TAG_AT = LEVELS  # places in the word: CE, LBTag, FB_Metric, FB_LBTag + 1 (0: no feedback)
METRIC_AT = TAG_AT * TAGS
FEEDBACK_AT = METRIC_AT * LEVELS
MOST_DECAYS = 200  # chosen: (7/8)^200 is below a billionth


class Params:
    """Metering of links, end of flowlets, and feedback between leaves."""

    dre_ps: int = row(
        default="50us", minimum=1_000, source="conweave-ns3, conga_dreTime", text="T_dre: time between two decays."
    )
    alpha: float = row(
        default=0.2,
        minimum=0.01,
        maximum=0.9,
        source="conweave-ns3, conga_alpha",
        text="Part of a link's register that decays; a link is full at C T_dre / alpha.",
    )
    gap_ps: int = row(
        default="100us",
        minimum=0,
        source="conweave-ns3, conga_flowletTimeout",
        text="Pause of a flow after which its next packet starts a new flowlet.",
    )
    age_ps: int = row(
        default="500us",
        minimum=1_000,
        source="conweave-ns3, conga_agingTime",
        text="Age at which the metric of a path counts as 0, and is no longer told.",
    )
    sampled: int = row(
        default=4,
        minimum=0,
        maximum=TAGS,
        source="conweave-ns3, conga-routing.cc, GetBestPath",
        text="Neighbouring uplinks, from a random first one, that a new flowlet compares; 0: all, as in the paper.",
    )
    by_turns: bool = row(
        default=False,
        source="conweave-ns3, conga-routing.cc: uniformly at random",
        text="Whether a leaf sends new metrics alternately; else it draws among all valid metrics.",
    )


class State:
    """Flowlets, and metrics by remote leaf and uplink."""

    last_at_ps: list[int] = array(FLOWLETS, OFF)
    place: list[int] = array(FLOWLETS)  # among the candidates
    port: list[int] = array(FLOWLETS)
    to_leaf: list[int] = array(PATHS)  # of this leaf's uplinks, as the other leaf has told
    to_leaf_at_ps: list[int] = array(PATHS, OFF)
    from_leaf: list[int] = array(PATHS)  # of the other leaf's uplinks, as packets have told
    from_leaf_at_ps: list[int] = array(PATHS, OFF)
    is_fresh: list[int] = array(PATHS)  # not told to that leaf yet
    turn: list[int] = array(LEAVES)


class Meter:
    """The meter of a link."""

    sent_bytes: float  # X of the DRE
    decayed_at_ps: int = OFF


def metric(params: Params, port: Meter, rate_bps: int, now_ps: int) -> int:
    """Return the utilisation of a link, in `LEVELS` levels.

    It is X / (C tau) with tau = T_dre / alpha.
    """
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
    """Store at the last leaf the metrics that a packet carries.

    One is that of the packet's path, the other that of a path of this leaf.
    """
    leaf = signal.from_edge % LEAVES
    told = leaf * TAGS + signal.word // TAG_AT % TAGS
    state.from_leaf[told] = signal.word % LEVELS
    state.from_leaf_at_ps[told] = signal.now_ps
    state.is_fresh[told] = 1
    feedback = signal.word // FEEDBACK_AT
    if feedback > 0:
        path = leaf * TAGS + (feedback - 1) % TAGS
        state.to_leaf[path] = signal.word // METRIC_AT % LEVELS
        state.to_leaf_at_ps[path] = signal.now_ps


def is_young(params: Params, at_ps: int, now_ps: int) -> bool:
    """Whether a metric of that instant is still valid."""
    return at_ps != OFF and now_ps - at_ps <= params.age_ps


def told_tag(params: Params, state: State, leaf: int, signal: PortSignal) -> int:
    """Return the uplink whose metric the other leaf gets next, or -1."""
    first = leaf * TAGS
    if params.by_turns:
        for i in range(TAGS):
            tag = (state.turn[leaf] + i) % TAGS
            if state.is_fresh[first + tag] == 1:
                state.turn[leaf] = (tag + 1) % TAGS
                return tag
        return -1
    known = 0
    for tag in range(TAGS):
        known += int(is_young(params, state.from_leaf_at_ps[first + tag], signal.now_ps))
    if known == 0:
        return -1
    left = (signal.draw >> 40) % known
    for tag in range(TAGS):
        if is_young(params, state.from_leaf_at_ps[first + tag], signal.now_ps):
            if left == 0:
                return tag
            left -= 1
    return -1


def feedback_for(params: Params, state: State, leaf: int, signal: PortSignal) -> int:
    """Return the feedback for another leaf, as part of a packet's word."""
    tag = told_tag(params, state, leaf, signal)
    if tag < 0:
        return 0
    state.is_fresh[leaf * TAGS + tag] = 0
    return (tag + 1) * FEEDBACK_AT + state.from_leaf[leaf * TAGS + tag] * METRIC_AT


def worst(params: Params, state: State, ports: list[Meter], signal: PortSignal, candidate: Candidate) -> int:
    """Return the larger of an uplink's local and remote metric.

    The remote metric is the one reported of its path.
    """
    path = signal.to_edge % LEAVES * TAGS + candidate.port % TAGS
    found = metric(params, ports[candidate.port], candidate.rate_bps, signal.now_ps)
    if is_young(params, state.to_leaf_at_ps[path], signal.now_ps):
        found = max(found, state.to_leaf[path])
    return found


def least(params: Params, state: State, ports: list[Meter], signal: PortSignal, candidates: list[Candidate]) -> int:
    """Return a random uplink among those with the least `worst`.

    Only the compared uplinks count.
    """
    compared = signal.candidates if params.sampled == 0 else min(params.sampled, signal.candidates)
    first = signal.draw % (signal.candidates - compared + 1)
    lowest = LEVELS
    ties = 0
    for i in range(first, first + compared):
        found = worst(params, state, ports, signal, candidates[i])
        ties = ties + 1 if found == lowest else (1 if found < lowest else ties)
        lowest = min(lowest, found)
    left = (signal.draw >> 20) % ties
    choice = 0
    for i in range(first, first + compared):
        if worst(params, state, ports, signal, candidates[i]) == lowest:
            if left == 0:
                choice = i
            left -= 1
    return choice


def uplink(params: Params, state: State, ports: list[Meter], signal: PortSignal, candidates: list[Candidate]) -> int:
    """Stay on the flowlet's uplink while it is up, or choose another."""
    entry = signal.hash % FLOWLETS
    place = state.place[entry]
    is_new = state.last_at_ps[entry] == OFF or signal.now_ps - state.last_at_ps[entry] > params.gap_ps
    if is_new or place >= signal.candidates or candidates[place].port != state.port[entry]:
        place = least(params, state, ports, signal, candidates)
        state.place[entry] = place
        state.port[entry] = candidates[place].port
    state.last_at_ps[entry] = signal.now_ps
    return place


def step(params: Params, state: State, ports: list[Meter], signal: PortSignal, candidates: list[Candidate]) -> None:
    """Choose at the first leaf, meter everywhere, and listen at the last leaf."""
    signal.choice = 0
    if signal.delivered == 1:
        if signal.from_edge != signal.to_edge:
            arrived(state, signal)
        return
    if signal.edge == signal.from_edge:
        signal.choice = uplink(params, state, ports, signal, candidates)
        tag = candidates[signal.choice].port % TAGS
        signal.word = feedback_for(params, state, signal.to_edge % LEAVES, signal) + tag * TAG_AT
    else:
        signal.choice = signal.hash % signal.candidates  # a spine has one way, or parallel cables
    port = candidates[signal.choice].port
    level = metric(params, ports[port], candidates[signal.choice].rate_bps, signal.now_ps)
    signal.word += max(level - signal.word % LEVELS, 0)  # CE is the largest on the way
    ports[port].sent_bytes += signal.bytes


PLUGIN = PortSelection(
    params=Params,
    state=State,
    step=step,
    port_state=Meter,
    always=True,
    at_delivery=True,
    reorders="on-move",
    variants={
        # The defaults above.
        "conweave-ns3": {},
        # Section 3.6 has Q = 3, tau = 160 us and gaps of 500 us, an age of 10 ms. Unverified: from memory, and how tau
        # divides into T_dre / alpha.
        "paper": {
            "dre_ps": "20us",
            "alpha": 0.125,
            "gap_ps": "500us",
            "age_ps": "10ms",
            "sampled": 0,
            "by_turns": True,
        },
    },
    source="doi:10.1145/2619239.2626316",
)
