/// A fabric as both engines are given it: rows of weftwork.engine.packet_input for switches, NICs and next hops.
#pragma once
#include <cstdint>
#include <span>

namespace weftwork {

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
  std::int64_t xon_offset_bytes, pause_quanta;
  double pmax;
  std::int64_t mark_at_dequeue, hash_algorithm, hash_seed, hash_offset, hash_fields, telemetry;
  std::int64_t weight[8];
};

struct NicRow {  // NIC_DTYPE
  std::int64_t pcie_rate_bps, pcie_latency_ps, receive_buffer_bytes, xoff_bytes, xon_bytes, pause_quanta;
};

struct PinRow {                                        // PIN_DTYPE
  std::int64_t source, destination, channel, entropy;  // channel -1: every one that has no row of its own
};

struct RouteTable {  // group_of is row by node, column by attachment
  std::span<const std::int32_t> group_of;
  std::span<const std::int64_t> group_ptr;
  std::span<const std::int32_t> group_ports;
  std::span<const std::int32_t> group_weights;
  std::span<const std::int32_t> second_of;  // as group_of: ports that are on no shortest path; empty where nobody asks
  std::span<const std::int16_t> distance;   // hops over switches, as group_of; empty where nobody asks
  std::span<const std::int32_t> layer_group;  // group_of of each layer, one after the other; empty without layers
  std::span<const std::int32_t> layer_of;     // by attachment of origin, of destination, and way; -1: shortest paths
  std::int64_t pinned_ways = 0;               // the first of a pair's ways, chosen by entropies below this number
  std::int64_t ways = 0;                      // of each pair of attachments
};

}  // namespace weftwork
