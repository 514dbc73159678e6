"""A window of fixed size below the bandwidth-delay product of the longest path."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from weftwork.base.clock import SECOND_PS
from weftwork.base.units import RATE, SIZE, format_quantity
from weftwork.study.answer.round_trip import longest_trip_ps, short_duration, three_digits
from weftwork.study.answer.suspect import Suspect, changed
from weftwork.study.answer.suspicion import RunRecords, Suspicion
from weftwork.study.prepare import what_if

if TYPE_CHECKING:
    from collections.abc import Iterator


__all__ = ["SUSPICION"]


def _window(records: RunRecords) -> Iterator[Suspect]:
    """A window of fixed size below the bandwidth-delay product of the longest path."""
    prepared = records.prepared
    control = prepared.policies["congestion_control"]
    window_bytes = int(dict(control.values).get("window_bytes", 0) or 0)
    if not window_bytes:
        return
    trip_ps = longest_trip_ps(prepared, records.execution)
    ports = prepared.fabric.ports
    of_hosts = np.isin(ports.node, prepared.fabric.hosts)
    rate_bps = int(prepared.fabric.links["rate_bps"][ports.link[of_hosts]].max())
    product_bytes = three_digits(rate_bps * trip_ps / 8 / SECOND_PS)
    if window_bytes >= product_bytes:
        return
    parameters = dict(prepared.scenario.transport.congestion_control.parameters)
    key = next((key for key in ("window", "window_bytes") if key in parameters), "window")
    parameters.pop(key, None)
    choice = prepared.scenario.transport.congestion_control.model_copy(update={"parameters": parameters})
    yield Suspect(
        kind="setting",
        name="window",
        key=f"transport.congestion_control.{key}",
        text=(
            f"of {format_quantity(SIZE, window_bytes)} is less than a bandwidth-delay product:"
            f" {format_quantity(RATE, rate_bps)} x {short_duration(trip_ps)} = {format_quantity(SIZE, product_bytes)}"
        ),
        change=changed(what_if.with_transport, congestion_control=choice),
    )


SUSPICION: Final = Suspicion(
    rank=210,
    key="transport.congestion_control.window",
    needs=frozenset({"packets", "idle resources"}),
    suspects=_window,
)
