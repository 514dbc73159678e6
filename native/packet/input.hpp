/// What the engine is given: the arrays of weftwork.engine.plan.Plan, borrowed, field by field in the same order.
/// The owner (Python) keeps them alive as long as the engine.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "base/clock.hpp"
#include "base/job.hpp"
#include "base/wiring.hpp"
#include "packet/policy.hpp"

namespace weftwork {

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
  std::int64_t row_limit = 0;      // of recorded samples; beyond it every second instant is dropped
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
  std::span<const std::int64_t> destination_number, port_stride;
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

  [[nodiscard]] JobTables job_tables() const { return {tables, digits, rank_class.size()}; }
  [[nodiscard]] std::size_t columns() const { return rank_class.empty() ? 1 : rank_ports.size() / rank_class.size(); }
  /// A NIC port of a rank; the first column has the one that it usually uses.
  [[nodiscard]] std::int32_t rank_port(std::int64_t rank, std::size_t column = 0) const {
    return rank_ports[static_cast<std::size_t>(rank) * columns() + column];
  }
};

}  // namespace weftwork
