"""Round trips of packets on an empty fabric, for the words of suspects.

Leaves out: round trips that a run measured.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from weftwork.base.units import DURATION, format_quantity
from weftwork.study.results.ideal import ideal_times_ps, nic_ports
from weftwork.study.results.intra_server import PACKETS, carriers

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from weftwork.study.prepare.prepared import Prepared
    from weftwork.study.run.execute import Execution

__all__ = ["longest_trip_ps", "round_trip_ps", "short_duration", "three_digits"]


def round_trip_ps(prepared: Prepared, source: int, destination: int, channel: int) -> int:
    """Least round trip of a full packet and its acknowledgement between two ranks, on an empty fabric.

    Parameters
    ----------
    prepared : the run, on packets
    source, destination, channel : of a message between servers
    """
    message = np.zeros(1, [(name, np.int64) for name in ("source", "destination", "channel")])
    message["source"], message["destination"], message["channel"] = source, destination, channel
    ends = nic_ports(prepared.engine_input, message)
    sizes = np.array([prepared.transport.mtu_bytes]), np.array([0])
    there, back = (int(ideal_times_ps(prepared.engine_input, *ends, size)[0]) for size in sizes)
    return max(0, there) + max(0, back)


def longest_trip_ps(prepared: Prepared, execution: Execution) -> int:
    """Return the round trip of the message with the longest; 0 without a message between servers."""
    trips = [
        round_trip_ps(prepared, *message)
        for message in _between_servers(prepared, execution)[:64][["source", "destination", "channel"]].tolist()
    ]
    return max(trips, default=0)


def _between_servers(prepared: Prepared, execution: Execution) -> NDArray[np.void]:
    messages = execution.outcome.messages
    engine_input = prepared.engine_input
    kept: NDArray[np.void] = messages[carriers(engine_input, messages["source"], messages["destination"]) == PACKETS]
    return kept


def short_duration(duration_ps: float) -> str:
    """A time as text with three digits.

    Examples
    --------
    >>> short_duration(12_345_678)
    '12.3us'
    """
    return format_quantity(DURATION, three_digits(duration_ps))


def three_digits(value: float) -> int:
    """Round a number to its first three digits."""
    return int(float(f"{value:.3g}"))
