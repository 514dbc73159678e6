"""A transport as engines see it: all settings resolved to numbers.

These are sizes on the wire, recovery, priorities and flow control. `weftwork.transports` fills this record from a
scenario; the sizes come from `weftwork.wire`.
Leaves out: which of these a scenario may set, see `weftwork.spec.scenario.transport`.
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from weftwork.spec.device import Record

__all__ = ["ReplyEntropy", "Transport"]

ReplyEntropy = Literal["own", "echoed"]  # of an ACK or NAK: its queue pair's, or that of the packet which it answers


class Transport(Record):
    """Resolved settings of a transport.

    Sizes of frames include the frame check sequence, not the preamble; every frame pays ``interframe_bytes``.
    """

    name: str = "rocev2"
    mtu_bytes: int = Field(default=4096, gt=0, le=16384)  # payload of a full packet
    data_overhead_bytes: int = Field(default=62, ge=0)
    first_extra_bytes: int = Field(default=16, ge=0)
    telemetry_bytes: int = Field(default=0, ge=0)  # of a packet that carries in-band telemetry, beside its hops
    telemetry_hop_bytes: int = Field(default=0, ge=0)  # that each switch adds
    timestamp_bytes: int = Field(default=4, ge=0)  # chosen: as TCP's TSval, RFC 7323; where RTTs are asked for
    entropy_echo_bytes: int = Field(default=2, ge=0)  # a UDP source port, in an ACK; where it is asked for
    path_load_bytes: int = Field(
        default=1, ge=0
    )  # the code of a load, in a packet and in its ACK; where it is asked for
    request_overhead_bytes: int = Field(default=4, ge=0)  # chosen: 32 bits; where receivers are told of requests
    echo_bytes: int = Field(default=0, ge=0)  # of all echoes in an ACK or NAK, resolved for a run
    trim_bytes: int = Field(default=0, ge=0)  # frame of a packet that was cut for want of room; 0: it is dropped
    trim_priority: int | None = Field(default=None, ge=0, le=7)  # of what was cut; None: the control priority
    ack_bytes: int = Field(default=66, gt=0)
    cnp_bytes: int = Field(default=78, gt=0)
    credit_bytes: int = Field(default=66, gt=0)
    pause_frame_bytes: int = Field(default=64, gt=0)
    interframe_bytes: int = Field(default=20, ge=0)
    link_credits: bool = False  # links give credit, and nobody pauses
    credit_quantum_bytes: int = Field(default=8192, gt=0)  # chosen: two full packets; returned at a time
    data_priority: int = Field(default=3, ge=0, le=7)
    control_priority: int = Field(default=6, ge=0, le=7)
    lossless_priorities: tuple[int, ...] = (3,)  # empty: no flow control
    virtual_channels: int = Field(default=1, gt=0, le=8)  # of each priority, resolved for a run
    recovery: Literal["go-back-n", "timeout", "selective-repeat"] = "go-back-n"
    reorder_threshold_packets: int = Field(default=0, ge=0, le=1 << 20)  # selective repeat: overtaken by more is lost
    resend: Literal["by-window", "at-once"] = "by-window"  # selective repeat: when a packet known to be lost may leave
    ordering: Literal["connection", "message", "none"] = "connection"  # in which messages are delivered
    reply_entropy: ReplyEntropy | None = None  # of ACKs and NAKs; None: as the path selection says, resolved for a run
    inflight_cap_bytes: int = Field(default=0, ge=0)  # payload of one connection; 0: no cap
    connection_state_bytes: int = Field(default=0, ge=0)  # that one end of a connection takes at its NIC
    host_packet_ps: int = Field(default=0, ge=0)  # of the host's processor for each data packet, at both ends
    host_byte_ps: int = Field(default=0, ge=0)  # the same for 1,000 bytes of payload
    reorder_tolerant: bool = False
    reorder_window_packets: int = Field(default=1024, gt=0, le=1 << 20)
    ack_every: int = Field(default=1, gt=0)
    retransmission_timeout_ps: int = Field(default=67_108_864_000, gt=0)  # 4.096 us x 2^14, IBTA vol. 1, 9.7.6.1.3
    timeout_low_ps: int = Field(default=0, ge=0)  # with few packets outstanding; 0: the same as with many
    timeout_low_packets: int = Field(default=0, ge=0)  # at most so many are few
    retry_limit: int = Field(default=7, ge=0)
    end_to_end_credits: int = Field(default=0, ge=0)  # 0: not used

    def contradictions(self) -> list[str]:
        """Describe contradictions between fields, one sentence each."""
        found: list[str] = []
        if self.link_credits and self.lossless_priorities:
            given = f"link_credits is True and lossless_priorities is {self.lossless_priorities}"
            found.append(f"{given}: links give credit or pause, not both; wanted lossless_priorities=()")
        if self.link_credits and self.trim_bytes:
            text = (
                "link_credits is True and trim_bytes is above 0: under credits each packet finds room, and none is cut"
            )
            found.append(text)
        if self.trim_bytes and self.recovery != "selective-repeat":
            text = "only selective-repeat sends cut packets again"
            found.append(f"trim_bytes is above 0 and recovery is {self.recovery!r}: {text}")
        if self.ordering != "connection" and not (self.reorder_tolerant or self.recovery == "selective-repeat"):
            text = "the receiver keeps no early packets; wanted reorder_tolerant=True or selective-repeat"
            found.append(f"ordering is {self.ordering!r}, but {text}")
        return found

    def host_cost_ps(self, payload_bytes: int) -> int:
        """Host processor time per data packet.

        See docs/models/packet-engine.md, The host's processor.
        """
        return self.host_packet_ps + payload_bytes * self.host_byte_ps // 1_000

    @property
    def payload_share(self) -> float:
        """Share of a link that full-size data packets leave for payload.

        Headers and the gap between frames are taken off.
        """
        frame_bytes = self.mtu_bytes + self.data_overhead_bytes + self.telemetry_bytes + self.interframe_bytes
        return self.mtu_bytes / frame_bytes
