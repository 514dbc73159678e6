/// What the engine is given: the arrays of weft.engine.plan.Plan, borrowed, field by field in the same order.
/// The owner (Python) keeps them alive as long as the engine.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "base/clock.hpp"
#include "packet/policy.hpp"

namespace weft {

enum class OpCode : std::int64_t { kStop, kCompute, kAt, kSend, kReceive, kWait, kSignal, kAwait, kMark, kLoop, kEnd };
enum class PeerRule : std::int64_t { kShift, kXor, kTable, kRank };

struct OpRow {  // OP_DTYPE
  std::int64_t code, value, target, rule, stride, size, members, shift, step, table, total_bytes, parts, part_offset,
      first_digit, digits, span, span_stride, copies, channel, data_class, nic, peer_rail, after_ps;
};

struct DigitRow {  // DIGIT_DTYPE
  std::int64_t rule, stride, size, members, shift, step, weight;
};

struct GpuRow {  // GPU_DTYPE
  std::int64_t domain, nvlink_rate_bps, nvlink_latency_ps, pcie_rate_bps, pcie_latency_ps, chunk_bytes;
};

struct StreamRow {  // STREAM_DTYPE
  std::int64_t rank_class, first_op;
};

enum class InstantCode : std::int64_t { kLinkDown, kLinkUp, kRate, kRoutes, kLoss, kHostRate, kFailover };

struct InstantRow {  // INSTANT_DTYPE
  std::int64_t at_ps, code, port, value;
};

enum class HashAlgorithm : std::int64_t { kCrc32, kCrc32c, kCrc16Ccitt, kXor, kMix };

enum HashField : std::int64_t {
  kSrcIp = 1,
  kDstIp = 2,
  kProtocol = 4,
  kSrcPort = 8,
  kDstPort = 16,
  kInPort = 32,
  kDestinationQp = 64
};

struct SwitchRow {  // SWITCH_DTYPE
  std::int64_t reserve_bytes;
  double alpha, egress_alpha;
  std::int64_t xon_offset_bytes, pause_quanta, kmin_bytes, kmax_bytes;
  double pmax;
  std::int64_t mark_at_dequeue, hash_algorithm, hash_seed, hash_offset, hash_fields, telemetry;
  std::int64_t weight[8];
};

struct NicRow {  // NIC_DTYPE
  std::int64_t pcie_rate_bps, pcie_latency_ps, receive_buffer_bytes, xoff_bytes, xon_bytes, pause_quanta;
};

struct RouteTable {  // group_of is row by node, column by attachment
  std::span<const std::int32_t> group_of;
  std::span<const std::int64_t> group_ptr;
  std::span<const std::int32_t> group_ports;
  std::span<const std::int32_t> group_weights;
};

struct TransportRow {
  std::int64_t mtu_bytes, data_overhead_bytes, first_extra_bytes, telemetry_bytes, ack_bytes, cnp_bytes, credit_bytes,
      pause_frame_bytes, interframe_bytes, go_back_n, reorder_tolerant, reorder_window_packets, ack_every,
      retransmission_timeout_ps, retry_limit, end_to_end_credits, selective_repeat, reorder_threshold_packets;
};

/// What is recorded over time: the state of chosen ports and queue pairs every `every_ps` (0: nothing), events, a
/// timeline of all ports, and the way of every `path_sample`-th data packet.
struct SeriesRequest {
  Ps every_ps = 0;
  bool all_flows = false;
  std::int64_t event_limit = 0;    // of recorded events
  std::int64_t timeline_bins = 0;  // the most that are kept; 0: no timeline
  std::uint32_t path_sample = 0;   // 0: none
  std::vector<std::int32_t> ports;
  std::vector<std::uint64_t> flows;  // flow identities
};

struct Input {
  std::uint64_t seed = 0;
  Ps until_ps = kNeverPs;
  std::span<const std::int8_t> node_kind;
  std::span<const std::int32_t> node_device;
  std::span<const std::int64_t> port_base;
  std::span<const std::int32_t> port_node, port_peer;
  std::span<const std::int64_t> port_rate_bps, port_delay_ps;
  std::span<const double> port_loss, port_corruption;
  std::span<const std::int64_t> port_headroom_bytes, shared_bytes;
  std::span<const std::int32_t> attachment;
  std::span<const SwitchRow> switches;
  std::span<const NicRow> nics;
  std::span<const std::int64_t> class_priority, class_lossless;
  std::int64_t control_class = 0;
  std::vector<RouteTable> routes;
  std::span<const InstantRow> instants;
  std::span<const OpRow> ops;
  std::span<const StreamRow> streams;
  std::span<const std::int64_t> tables;
  std::span<const DigitRow> digits;
  std::span<const std::int32_t> rank_class, rank_ports;  // rank_ports: by rank, then column
  std::span<const GpuRow> rank_gpu;
  std::int64_t tokens = 0;
  bool has_receives = false;
  TransportRow transport{};
  CongestionPolicy congestion;
  PathPolicy path;
  PortPolicy port;
  SeriesRequest series;

  [[nodiscard]] std::size_t columns() const { return rank_class.empty() ? 1 : rank_ports.size() / rank_class.size(); }
  /// A NIC port of a rank; the first column has the one that it usually uses.
  [[nodiscard]] std::int32_t rank_port(std::int64_t rank, std::size_t column = 0) const {
    return rank_ports[static_cast<std::size_t>(rank) * columns() + column];
  }
};

}  // namespace weft
