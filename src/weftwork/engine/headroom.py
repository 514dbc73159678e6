"""Headroom of a lossless ingress.

It is room for bytes that still arrive after the switch has asked for a pause.
Source: IEEE 802.1Qbb-2011, annex O, which adds up the same parts; here they are the delays of this model, where a
packet's place is taken when it is whole. Leaves out: the response time of a MAC (two pause quanta in annex O), since a
pause works here at the instant at which it arrives, and cells (a packet takes its exact size).
"""

from __future__ import annotations

from weftwork.base.clock import SECOND_PS
from weftwork.policies.interface import HOPS
from weftwork.spec.transport import Transport

__all__ = ["full_frame_bytes", "headroom_bytes", "refresh_wait_bytes"]


def full_frame_bytes(transport: Transport) -> int:
    """Largest packet of a transport on the line, with headers and gap.

    It has a full payload and all headers.
    """
    telemetry = transport.telemetry_bytes + HOPS * transport.telemetry_hop_bytes
    data = transport.mtu_bytes + transport.data_overhead_bytes + transport.first_extra_bytes + telemetry
    ack = transport.ack_bytes + transport.echo_bytes + telemetry
    return max(data, ack, transport.cnp_bytes, transport.credit_bytes) + transport.interframe_bytes


def refresh_wait_bytes(transport: Transport) -> int:
    """Most bytes that a port sends before its pause frame is out.

    These are parts 2 and 3 of `headroom_bytes`.
    """
    pause_frame = transport.pause_frame_bytes + transport.interframe_bytes
    classes = len(transport.lossless_priorities) * transport.virtual_channels
    return full_frame_bytes(transport) + 2 * classes * pause_frame


def headroom_bytes(*, rate_bps: int, round_trip_ps: int, transport: Transport) -> int:
    """Most bytes of one priority that arrive after Xoff, per port.

    The parts, in order of time:

    1. the packet that crosses the threshold where the shared memory is already full: one full frame;
    2. the pause frame waits for the packet that the port is sending: one full frame;
    3. it waits for other flow-control frames of the port, a resume and a pause of each lossless priority, and is itself
       sent;
    4. it travels to the sender and what the sender sent last travels back: both delays at the link's rate;
    5. the sender has just begun another packet: one full frame.

    Parameters
    ----------
    rate_bps : of the link
    round_trip_ps : delays of both directions, each with the fixed latency of its far end
    transport : its sizes and lossless priorities

    Returns
    -------
    bytes; nothing is dropped for want of headroom as long as a pause is refreshed before it expires, that is, while
    half a pause time is longer than parts 2 and 3

    Examples
    --------
    >>> headroom_bytes(rate_bps=400_000_000_000, round_trip_ps=2_000_000, transport=Transport())
    112750
    """
    in_flight = -(-rate_bps * round_trip_ps // (8 * SECOND_PS))
    return in_flight + 2 * full_frame_bytes(transport) + refresh_wait_bytes(transport)
