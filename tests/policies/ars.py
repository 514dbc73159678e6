"""ARS: a new flowlet leaves by the port with the best quality, of what it has sent of late and what waits there.

Source: opencomputeproject/SAI, inc/saiarsprofile.h (adaptive routing and switching): every 16 us a port's past load
(bytes sent) and future load (bytes queued) go into averages with exponent 2, weighted 16 to 16, divided by the speed
(1 for 10 Gb/s) and put into 8 bands; ties are broken at random. Flowlets end after 256 us; 512 of them have a state.
Leaves out: moves of active flows, longer paths at a price, and the option that takes a smaller load at once.
"""

from __future__ import annotations

from weftwork.policies.interface import OFF, Candidate, PortSelection, PortSignal, array, row

FLOWLETS = 512
BANDS = 8
MOST_SAMPLES = 32  # chosen: after as many without traffic nothing is left of an average
SPEED_BPS = 1e10  # saiarsprofile.h: speed 1


class Params:
    idle_ps: int = row(
        default="256us", minimum=0, source="saiarsprofile.h, idle time", text="Pause that ends a flowlet."
    )
    sample_ps: int = row(
        default="16us", minimum=1, source="saiarsprofile.h", text="Time between two samples of a port."
    )
    past_weight: float = row(default=16, minimum=0, source="saiarsprofile.h", text="Weight of bytes sent.")
    future_weight: float = row(default=16, minimum=0, source="saiarsprofile.h", text="Weight of bytes queued.")
    full_bytes: int = row(
        default=20_000,
        minimum=1,
        source="chosen: what 10 Gb/s send in 16 us",
        text="Load of a port of 10 Gb/s from which on it is in the last band.",
    )


class State:
    last_at_ps: list[int] = array(FLOWLETS, OFF)
    port: list[int] = array(FLOWLETS)


class Port:
    sent_bytes: int
    past: float
    future: float
    sampled_at_ps: int = OFF


def sample(params: Params, port: Port, candidate: Candidate, now_ps: int) -> None:
    """Bring the averages of a port up to now: the first sample has what was sent, later ones nothing."""
    if port.sampled_at_ps == OFF:
        port.sampled_at_ps = now_ps
    due = (now_ps - port.sampled_at_ps) // params.sample_ps
    port.sampled_at_ps += due * params.sample_ps
    for _ in range(min(due, MOST_SAMPLES)):
        port.past += (port.sent_bytes - port.past) / 4.0  # exponent 2
        port.future += (candidate.queue_bytes - port.future) / 4.0
        port.sent_bytes = 0


def band(params: Params, port: Port, candidate: Candidate) -> int:
    """Quality of a port: 0 is the best."""
    weights = params.past_weight + params.future_weight
    load = (params.past_weight * port.past + params.future_weight * port.future) / max(weights, 1e-9)
    scaled = load * SPEED_BPS / candidate.rate_bps
    return min(int(BANDS * scaled / params.full_bytes), BANDS - 1)


def step(params: Params, state: State, ports: list[Port], signal: PortSignal, candidates: list[Candidate]) -> None:
    for i in range(signal.candidates):
        sample(params, ports[candidates[i].port], candidates[i], signal.now_ps)
    entry = signal.queue_pair_hash % FLOWLETS
    is_new = state.last_at_ps[entry] == OFF or signal.now_ps - state.last_at_ps[entry] > params.idle_ps
    choice = -1
    if not is_new:
        for i in range(signal.candidates):
            if candidates[i].port == state.port[entry]:
                choice = i
    if choice < 0:
        choice = 0
        best = BANDS
        for i in range(signal.candidates):
            j = (i + signal.draw) % signal.candidates
            quality = band(params, ports[candidates[j].port], candidates[j])
            if quality < best:
                best = quality
                choice = j
    state.last_at_ps[entry] = signal.now_ps
    state.port[entry] = candidates[choice].port
    ports[candidates[choice].port].sent_bytes += signal.bytes
    signal.choice = choice


PLUGIN = PortSelection(
    params=Params,
    state=State,
    step=step,
    port_state=Port,
    always=True,
    reorders="on-move",
    needs=frozenset({"queue"}),
    source="opencomputeproject/SAI, inc/saiarsprofile.h",
)
