"""ARS: a new flowlet leaves by the port of the best quality.

Quality depends on the bytes that the port has sent of late and on its queue. Adaptive routing and switching, as SAI
describes what switch chips ship (dynamic load balancing): from time to time a port's past load (bytes sent) and future
load (bytes queued) go into moving averages, and their weighted sum, divided by the port's speed, falls into one of 8
bands. Ties of the best band are broken at random.
Source: github.com/opencomputeproject/SAI, inc/saiars.h and inc/saiarsprofile.h; sonic-net/SONiC, ARS design.
Leaves out: modes by packet (`adaptive`, `spray`), by random flowlets (`letflow`) and fixed; moves of active flows,
which Juniper adds; alternate, longer paths at a cost. Loads are sampled when a packet comes: of samples that are due at
once the first has what was sent since the last, the others nothing, and all have the queue of that instant.
"""

from __future__ import annotations

from weftwork.policies.interface import OFF, Candidate, PortSelection, PortSignal, array, row

__all__ = ["PLUGIN", "Loads", "Params", "State", "band", "sample", "step"]

FLOWLETS = 512  # saiars.h, SAI_ARS_ATTR_MAX_FLOWS: default
BANDS = 8  # unverified: saiarsprofile.h has thresholds of bands 0 to 7; how many a chip has is read only
MOST_SAMPLES = 64  # chosen: after as many without traffic little is left of an average
SPEED_BPS = 1e10  # unverified: a load scaling factor of 1 is 10 Gb/s, and 40 is 400 Gb/s


class Params:
    """End of flowlets, and weights of loads."""

    idle_ps: int = row(
        default="256us",
        minimum=2_000_000,
        maximum=2_047_000_000,
        source="saiars.h, SAI_ARS_ATTR_IDLE_TIME; limits: ARS design of SONiC",
        text="Pause of a flow after which its next packet starts a new flowlet.",
    )
    sample_ps: int = row(
        default="16us",
        minimum=1_000,
        source="saiarsprofile.h, SAI_ARS_PROFILE_ATTR_SAMPLING_INTERVAL",
        text="Time between two samples of a port.",
    )
    exponent: int = row(
        default=2,
        minimum=0,
        maximum=15,
        source="saiarsprofile.h, SAI_ARS_PROFILE_ATTR_PORT_LOAD_EXPONENT",
        text="A sample moves an average by a part of 1 / 2^exponent of their difference.",
    )
    past_weight: float = row(
        default=16,
        minimum=0,
        maximum=255,
        source="saiarsprofile.h, ATTR_PORT_LOAD_PAST_WEIGHT; unverified: that it weighs past against future",
        text="Weight of the bytes sent; 0 leaves them out.",
    )
    future_weight: float = row(
        default=16,
        minimum=0,
        maximum=255,
        source="saiarsprofile.h, ATTR_PORT_LOAD_FUTURE_WEIGHT; unverified: as past_weight",
        text="Weight of the bytes queued; 0 leaves them out.",
    )
    takes_lower: bool = row(
        default=False,
        source="saiarsprofile.h, SAI_ARS_PROFILE_ATTR_PORT_LOAD_CURRENT",
        text="Whether a sample below an average replaces it.",
    )
    full_bytes: int = row(
        default=20_000,
        minimum=1,
        source="chosen: what 10 Gb/s send in 16 us; SAI's thresholds are 0, for the vendor to set",
        text="Load of a port of 10 Gb/s from which on it is in the worst band; it grows with the port's rate.",
    )


class State:
    """A flowlet by the hash of its packets."""

    last_at_ps: list[int] = array(FLOWLETS, OFF)
    place: list[int] = array(FLOWLETS)  # among the candidates
    port: list[int] = array(FLOWLETS)


class Loads:
    """Averages of a port's loads."""

    sent_bytes: int  # since the last sample
    past: float
    future: float
    sampled_at_ps: int = OFF


def moved(params: Params, average: float, load: float) -> float:
    """Return an average after a sample."""
    if params.takes_lower and load < average:
        return load
    part = 1.0
    for _ in range(params.exponent):
        part = part / 2.0
    return average + (load - average) * part


def sample(params: Params, port: Loads, candidate: Candidate, now_ps: int) -> None:
    """Bring the averages of a port up to date."""
    if port.sampled_at_ps == OFF:
        port.sampled_at_ps = now_ps
    due = (now_ps - port.sampled_at_ps) // params.sample_ps
    port.sampled_at_ps += due * params.sample_ps
    for _ in range(min(due, MOST_SAMPLES)):
        port.past = moved(params, port.past, float(port.sent_bytes))
        port.future = moved(params, port.future, float(candidate.queue_bytes))
        port.sent_bytes = 0


def band(params: Params, port: Loads, candidate: Candidate) -> int:
    """Return the quality of a port: 0 is the best band."""
    weights = params.past_weight + params.future_weight
    load = (params.past_weight * port.past + params.future_weight * port.future) / max(weights, 1e-9)
    scaled = load * SPEED_BPS / candidate.rate_bps
    return int(min(BANDS * scaled / params.full_bytes, BANDS - 1.0))


def best(params: Params, ports: list[Loads], signal: PortSignal, candidates: list[Candidate]) -> int:
    """Return a random candidate of the best band."""
    lowest = BANDS
    ties = 0
    for i in range(signal.candidates):
        quality = band(params, ports[candidates[i].port], candidates[i])
        ties = ties + 1 if quality == lowest else (1 if quality < lowest else ties)
        lowest = min(lowest, quality)
    left = signal.draw % ties
    choice = 0
    for i in range(signal.candidates):
        if band(params, ports[candidates[i].port], candidates[i]) == lowest:
            if left == 0:
                choice = i
            left -= 1
    return choice


def step(params: Params, state: State, ports: list[Loads], signal: PortSignal, candidates: list[Candidate]) -> None:
    """Stay on the flowlet's port while it is up.

    A new flowlet takes the best port.
    """
    for i in range(signal.candidates):
        sample(params, ports[candidates[i].port], candidates[i], signal.now_ps)
    entry = signal.hash % FLOWLETS
    place = state.place[entry]
    is_new = state.last_at_ps[entry] == OFF or signal.now_ps - state.last_at_ps[entry] > params.idle_ps
    if is_new or place >= signal.candidates or candidates[place].port != state.port[entry]:
        place = best(params, ports, signal, candidates)
        state.place[entry] = place
        state.port[entry] = candidates[place].port
    state.last_at_ps[entry] = signal.now_ps
    ports[candidates[place].port].sent_bytes += signal.bytes
    signal.choice = place


PLUGIN = PortSelection(
    params=Params,
    state=State,
    step=step,
    port_state=Loads,
    always=True,
    reorders="on-move",
    needs=frozenset({"queue"}),
    variants={
        # The defaults above.
        "sai": {},
        # Half of a round trip of some 20 us, as the ARS design of SONiC advises; 256 us end hardly any flowlet.
        "half-rtt": {"idle_ps": "10us"},
    },
    source="opencomputeproject/SAI, inc/saiars.h and inc/saiarsprofile.h",
)
