/// Recordings of a run: samples over time, requested events and paths, and counters. Not part of the model: nothing
/// that a packet meets depends on it.
#pragma once
#include <cstdint>
#include <vector>

#include "base/clock.hpp"
#include "packet/policy.hpp"

namespace weftwork {

struct SeriesRow {
  Ps at_ps;
  std::int64_t kind, index;
  double value;
};

/// What a queue pair has sent by one egress port, as far as it was counted.
struct PathUse {
  std::int64_t port, packets, queue_bytes;
};

/// Something that a person would look for in time; recorded only where asked for, up to a limit.
enum class EventKind : std::int64_t { kPause, kResume, kMark, kDrop, kTimeout, kGoBack };

struct EventRow {
  Ps at_ps;
  std::int64_t kind;
  std::int64_t place;   // port; kTimeout, kGoBack: queue pair
  std::int64_t detail;  // kPause, kResume: class; kDrop: reason, in the order of Counters
};

/// A frame that started at a captured port. What its kind does not have is 0, and `refused` -1.
struct CaptureRow {
  Ps at_ps;
  std::int64_t port, kind;  // kind: of the packet, or of the frame: kCapturedPause, kCapturedCredit
  std::int64_t traffic_class, source, destination, channel, seq, attempt;
  std::int64_t origin, target;  // NIC ports of this packet
  std::int64_t size_bytes, payload_bytes, entropy, hops, marked, asks_ack, cut, msn, credit_code;
  std::int64_t amount;   // CREDIT, REQUEST and credit between links: bytes; pause: quanta
  std::int64_t refused;  // NAK: number of the packet that caused it
  // DATA, ACK and NAK under telemetry: what switches have written, in the order of the path
  std::int64_t hop_count = 0;
  std::int64_t hop_queue_bytes[kHops] = {}, hop_tx_bytes[kHops] = {}, hop_rate_bps[kHops] = {};
  std::int64_t hop_at_ps[kHops] = {}, hop_port[kHops] = {};
};
inline constexpr std::int64_t kCapturedPause = 7;  // behind the kinds of packets
inline constexpr std::int64_t kCapturedCredit = 8;

/// What starts at one port: its first rows, and how many more there were.
struct CapturedPort {
  std::int64_t port;
  std::vector<CaptureRow> rows;
  std::int64_t left_out = 0;
};

struct Counters {
  std::int64_t packet_hops = 0, data_sent = 0, retransmissions = 0, acks_sent = 0, naks_sent = 0, cnps_sent = 0,
               credits_sent = 0, probes_sent = 0, timeouts = 0, queue_pair_errors = 0, out_of_order_discards = 0,
               duplicates = 0, drop_no_route = 0, drop_link_down = 0, drop_link_loss = 0, drop_corrupted = 0,
               drop_buffer_full = 0, drop_egress_threshold = 0, drop_headroom_full = 0, drop_receive_buffer = 0,
               requests_sent = 0, trims = 0, end_ps = 0;
};

}  // namespace weftwork
