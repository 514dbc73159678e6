// Written by `python -m weftwork.engine.rows` from its declarations; change those.
// clang-format off
/// A transport as each engine takes it.
#pragma once
#include <cstdint>
#include <span>

namespace weftwork {

/// A transport as the packet engine takes it.
struct TransportRow {
  /// payload of a full packet [byte]
  std::int64_t mtu_bytes = 0;
  /// headers of a data packet [byte]
  std::int64_t data_overhead_bytes = 0;
  /// further headers of a message's first packet [byte]
  std::int64_t first_extra_bytes = 0;
  /// of a packet that carries in-band telemetry, beside its hops [byte]
  std::int64_t telemetry_bytes = 0;
  /// frame of an ACK or NAK [byte]
  std::int64_t ack_bytes = 0;
  /// frame of a CNP [byte]
  std::int64_t cnp_bytes = 0;
  /// frame of a CREDIT or REQUEST [byte]
  std::int64_t credit_bytes = 0;
  /// frame of flow control [byte]
  std::int64_t pause_frame_bytes = 0;
  /// preamble and gap of each frame [byte]
  std::int64_t interframe_bytes = 0;
  /// 1: a NAK makes the sender go back
  std::int64_t go_back_n = 0;
  /// 1: the receiver keeps packets that come early
  std::int64_t reorder_tolerant = 0;
  /// that a receiver keeps behind a gap [packet]
  std::int64_t reorder_window_packets = 0;
  /// packets of an acknowledgement
  std::int64_t ack_every = 0;
  /// of a queue pair [ps]
  std::int64_t retransmission_timeout_ps = 0;
  /// timeouts in a row before the queue pair fails
  std::int64_t retry_limit = 0;
  /// of a receiver; 0: not used
  std::int64_t end_to_end_credits = 0;
  /// 1: only lost packets are sent again
  std::int64_t selective_repeat = 0;
  /// selective repeat: a packet overtaken by more is lost [packet]
  std::int64_t reorder_threshold_packets = 0;
  /// selective repeat, 1: a lost packet does not wait for the window
  std::int64_t resends_at_once = 0;
  /// that each switch adds [byte]
  std::int64_t telemetry_hop_bytes = 0;
  /// of all echoes in an ACK or NAK [byte]
  std::int64_t echo_bytes = 0;
  /// frame of a packet that was cut; 0: it is dropped [byte]
  std::int64_t trim_bytes = 0;
  /// timeout with few packets outstanding; 0: the same as with many [ps]
  std::int64_t timeout_low_ps = 0;
  /// at most so many are few [packet]
  std::int64_t timeout_low_packets = 0;
  /// 1: links give credit, and nobody pauses
  std::int64_t link_credits = 0;
  /// that a link returns at a time [byte]
  std::int64_t credit_quantum_bytes = 0;
  /// 1: messages of a connection are delivered in any order
  std::int64_t in_any_order = 0;
  /// 1: a receive takes whichever message comes first
  std::int64_t matches_any = 0;
  /// payload of one connection; 0: no cap [byte]
  std::int64_t inflight_cap_bytes = 0;
  /// that one end of a connection takes at its NIC_ROW [byte]
  std::int64_t connection_state_bytes = 0;
  /// of the host's processor for each data packet, at both ends [ps]
  std::int64_t host_packet_ps = 0;
  /// the same for 1,000 bytes of payload [ps]
  std::int64_t host_byte_ps = 0;
  /// 1: ACKs and NAKs take the entropy of the packet that they answer
  std::int64_t replies_follow = 0;
};

}  // namespace weftwork

namespace weftwork::flow {

/// Sizes of a packet on the wire; telemetry counts as overhead.
struct WireSizesRow {
  /// payload of a full packet [byte]
  std::int64_t mtu_bytes = 0;
  /// headers of a data packet [byte]
  std::int64_t overhead_bytes = 0;
  /// further headers of a message's first packet [byte]
  std::int64_t first_extra_bytes = 0;
  /// preamble and gap of each frame [byte]
  std::int64_t gap_bytes = 0;
  /// frame of an ACK [byte]
  std::int64_t ack_bytes = 0;
  /// packets of an acknowledgement
  std::int64_t ack_every = 0;
};

/// Recovery of a transport, and how much more losses cost the slowest of flows side by side than one of them.
struct LossRules {
  /// of a retransmission [ps]
  double timeout_ps;
  /// 1: what was sent in a round trip behind a lost packet is sent again
  std::int64_t goes_back;
  /// 1: only a timeout tells of a loss
  std::int64_t waits_always;
  /// 1: a gap is told once: a packet lost again, or a lost NAK, waits for a timeout
  std::int64_t waits_at_gaps;
  /// behind a gap, so that losses among them are repaired by one timeout [packet]
  double kept_packets;
  /// times the mean number of losses
  double repeats;
  /// times the mean number of timeouts inside messages
  double waits;
  /// times the mean number of timeouts behind the last packet of a message
  double end_waits;
  /// the same of a collective as one operation
  double call_waits;
};

}  // namespace weftwork::flow
