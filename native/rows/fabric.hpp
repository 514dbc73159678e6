// Written by `python -m weftwork.engine.rows` from its declarations; change those.
// clang-format off
/// A fabric as both engines take it, and its changes over time.
#pragma once
#include <cstdint>
#include <span>

namespace weftwork {

/// Hash functions of switches.
enum class HashAlgorithm : std::int64_t {
  kCrc32 = 0,
  kCrc32c = 1,
  kCrc16Ccitt = 2,
  kXor = 3,
  kMix = 4,
};

/// Bits of the headers that a switch hashes.
enum HashField : std::int64_t {
  kSrcIp = 1,
  kDstIp = 2,
  kProtocol = 4,
  kSrcPort = 8,
  kDstPort = 16,
  kInPort = 32,
  kDestinationQp = 64,
};

/// Settings that switches of one kind share.
struct SwitchRow {
  /// of the buffer, for each port and priority in use [byte]
  std::int64_t reserve_bytes;
  /// Xoff above alpha x free shared bytes
  double alpha;
  /// lossy queues drop above egress_alpha x free shared bytes
  double egress_alpha;
  /// of Xon below the threshold [byte]
  std::int64_t xon_offset_bytes;
  /// of a pause [512 bit times]
  std::int64_t pause_quanta;
  /// largest probability of a mark below Kmax
  double pmax;
  /// 1: packets are marked as they leave, not as they come
  std::int64_t mark_at_dequeue;
  /// by which flows are spread
  std::int64_t hash_algorithm;
  /// of the hash
  std::int64_t hash_seed;
  /// by which the digest is shifted to the right
  std::int64_t hash_offset;
  /// bits of the headers that are hashed
  std::int64_t hash_fields;
  /// 1: writes queue, bytes, rate and time into packets
  std::int64_t telemetry;
  /// of deficit round robin by class index; 0: strict
  std::int64_t weight[8];
};

/// Settings that NICs of one kind share.
struct NicRow {
  /// of the host interface; 0: the host is never the bottleneck [bit/s]
  std::int64_t pcie_rate_bps;
  /// of the host interface [ps]
  std::int64_t pcie_latency_ps;
  /// between the port and the host [byte]
  std::int64_t receive_buffer_bytes;
  /// in the receive buffer [byte]
  std::int64_t xoff_bytes;
  /// in the receive buffer [byte]
  std::int64_t xon_bytes;
  /// of a pause [512 bit times]
  std::int64_t pause_quanta;
};

/// A queue pair whose own entropy is given.
struct PinRow {
  /// rank
  std::int64_t source;
  /// rank
  std::int64_t destination;
  /// -1: every one that has no row
  std::int64_t channel;
  /// of the queue pair
  std::int64_t entropy;
};

/// Codes of instants.
enum class InstantCode : std::int64_t {
  kLinkDown = 0,
  kLinkUp = 1,
  kRate = 2,
  kRoutes = 3,
  kLoss = 4,
  kHostRate = 5,
  kFailover = 6,
};

/// A change of a link, of a host interface or of routes.
struct InstantRow {
  /// when it happens [ps]
  std::int64_t at_ps;
  /// of the change
  std::int64_t code;
  /// the lower port id of the link; HOST_RATE: the NIC_ROW port
  std::int64_t port;
  /// RATE, HOST_RATE: rate_bps; ROUTES: index of a route table; LOSS: probability in parts of 10^9
  std::int64_t value;
};

}  // namespace weftwork
