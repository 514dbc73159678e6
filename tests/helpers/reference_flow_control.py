"""An incast on a switch with a small buffer, for the plain engine."""

from collections.abc import Sequence

from helpers.tiny import Message, packet_input_of, sends, star

from weftwork.engine.instants import Fault
from weftwork.engine.outcome import Outcome
from weftwork.engine.reference.simulation import Simulation
from weftwork.spec.device import Switch


def incast(
    switch: Switch, *, senders: int = 4, size_bytes: int = 200_000, faults: Sequence[Fault] = ()
) -> tuple[Simulation, Outcome]:
    messages = [Message(source=s, destination=senders, size_bytes=size_bytes) for s in range(senders)]
    fabric = star(senders + 1, switch=switch)
    simulation = Simulation(packet_input_of(fabric, sends(senders + 1, messages), faults=faults))
    simulation.run()
    return simulation, simulation.outcome()


def small(**changes: object) -> Switch:
    base = {"forwarding_latency_ps": 0, "buffer_bytes": 5 * 2 * 4096 + 5 * 130_000 + 100_000, "headroom_bytes": 130_000}
    return Switch.model_validate({**base, **changes})
