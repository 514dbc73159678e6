/// What the engine is given: the arrays of weftwork.engine.packet_input.PacketInput, borrowed, field by field in the
/// same order. The owner (Python) keeps them alive as long as the engine.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "base/clock.hpp"
#include "base/job.hpp"
#include "base/wiring.hpp"
#include "packet/detours.hpp"
#include "packet/ids.hpp"
#include "packet/policy.hpp"

namespace weftwork {

struct TransportRow {
  std::int64_t mtu_bytes, data_overhead_bytes, first_extra_bytes, telemetry_bytes, ack_bytes, cnp_bytes, credit_bytes,
      pause_frame_bytes, interframe_bytes, go_back_n, reorder_tolerant, reorder_window_packets, ack_every,
      retransmission_timeout_ps, retry_limit, end_to_end_credits, selective_repeat, reorder_threshold_packets,
      resends_at_once, telemetry_hop_bytes, echo_bytes, trim_bytes, timeout_low_ps, timeout_low_packets, link_credits,
      credit_quantum_bytes, in_any_order, matches_any, inflight_cap_bytes, connection_state_bytes, host_packet_ps,
      host_byte_ps, replies_follow;
};

/// One number of the state of a queue pair's policies that is recorded.
struct StateField {
  bool of_path = false;   // of the path selection's state, else of the congestion control's at the sender
  std::size_t place = 0;  // in the record, in numbers of eight bytes
  bool is_float = false;  // else an int64
};

/// Ports whose frames are captured; none: nothing.
struct CaptureRequest {
  std::vector<PortId> ports;
  std::int64_t row_limit = 0;  // of each port
};

/// What is recorded over time: the state of chosen ports and queue pairs every `every_ps` (0: nothing), events, a
/// timeline of all ports, and the path of every `path_sample`-th data packet.
struct SeriesRequest {
  Ps every_ps = 0;
  bool all_flows = false;
  std::int64_t row_limit = 0;      // of recorded samples; beyond it every second instant is dropped
  std::int64_t event_limit = 0;    // of recorded events
  std::int64_t timeline_bins = 0;  // the most that are kept; 0: no timeline
  std::uint32_t path_sample = 0;   // 0: none
  std::vector<PortId> ports;
  std::vector<std::uint64_t> flows;  // flow identities
  std::vector<StateField> state;     // more of these flows
};

struct Input {
  std::uint64_t seed = 0;
  Ps until_ps = kNeverPs;
  IdSpan<NodeId, const std::int8_t> node_kind;
  IdSpan<NodeId, const DeviceId> node_device;
  IdSpan<NodeId, const std::int64_t> port_base;  // first port of each node; one more at the end
  IdSpan<PortId, const NodeId> port_node;
  IdSpan<PortId, const PortId> port_peer;  // none without a link
  IdSpan<PortId, const std::int64_t> port_rate_bps, port_delay_ps;
  IdSpan<PortId, const double> port_loss, port_corruption;
  IdSpan<PortId, const std::int64_t> port_headroom_bytes, port_kmin_bytes, port_kmax_bytes;
  IdSpan<PortId, const std::int64_t> port_credit_bytes;  // room of each lane whose ingress is the port
  IdSpan<NodeId, const std::int64_t> shared_bytes;
  IdSpan<NodeId, const std::int64_t> node_tier, node_group;
  IdSpan<PortId, const AttachmentId> attachment;
  IdSpan<PortId, const std::int64_t> destination_number, port_stride;
  IdSpan<PortId, const std::int64_t> port_kind;  // of link, as `channels` tells them apart; -1: to a host
  ChannelRule channels;
  Detours detours;
  IdSpan<DeviceId, const SwitchRow> switches;
  IdSpan<DeviceId, const NicRow> nics;
  IdSpan<TrafficClass, const std::int64_t> class_priority, class_lossless;
  TrafficClass control_class{0};
  TrafficClass trim_class{0};         // of packets that were cut
  std::int32_t virtual_channels = 1;  // of each priority: classes that follow each other
  IdVector<RouteTableId, RouteTable> routes;
  std::span<const PinRow> pins;
  std::span<const InstantRow> instants;
  std::span<const OpRow> ops;
  std::span<const StreamRow> streams;
  std::span<const std::int64_t> tables;
  std::span<const DigitRow> digits;
  IdSpan<RankId, const ProgramId> rank_program;
  std::span<const PortId> rank_ports;  // by rank, then column
  IdSpan<RankId, const GpuRow> rank_gpu;
  std::int64_t tokens = 0;
  bool has_receives = false;
  bool has_path_load = false;  // a policy wants to know the load of the busiest port on a path
  bool has_telemetry = false;  // a policy wants to know what switches write into packets
  bool echoes_time = false;    // of the packet that an ACK answers
  bool echoes_entropy = false;
  bool extended = false;              // a policy reads what only an extended packet carries
  bool wide = false;                  // a policy reads or writes what only a wide packet carries
  bool keeps_segments = false;        // a control sends several packets back to back, or moves departures
  Ps fabric_base_rtt_ps = 0;          // of the farthest two NIC ports
  Ps watch_ps = kSecondPs;            // between two looks for a deadlock
  std::int64_t stop_before_call = 0;  // of a step: the run stops there with its records; 0: nowhere
  TransportRow transport{};
  CongestionPolicy congestion;
  PathPolicy path;
  PortPolicy port;
  SeriesRequest series;
  CaptureRequest capture;

  [[nodiscard]] JobTables job_tables() const { return {tables, digits, rank_program.size()}; }
  [[nodiscard]] std::size_t columns() const {
    return rank_program.empty() ? 1 : rank_ports.size() / rank_program.size();
  }
  /// A NIC port of a rank; the first column has the one that it usually uses.
  [[nodiscard]] PortId rank_port(RankId rank, ColumnId column = ColumnId(0)) const {
    return rank_ports[rank.index() * columns() + column.index()];
  }
};

}  // namespace weftwork
