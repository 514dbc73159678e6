/// Recordings of a run: samples over time, requested events and paths, and counters. Not part of the model: nothing
/// that a packet meets depends on it.
/// Invariant: rows stand in the order of time; what no room was left for is counted.
#pragma once
#include <cstdint>
#include <utility>
#include <vector>

#include "base/clock.hpp"
#include "base/ids.hpp"
#include "packet/input.hpp"
#include "packet/port_records.hpp"
#include "rows/outcome.hpp"
#include "rows/waits.hpp"

namespace weftwork {

/// What a queue pair has sent by one egress port, as far as it was counted.
struct PathUse {
  std::int64_t port, packets, queue_bytes;
};

/// What starts at one port: its first rows, and how many more there were.
struct CapturedPort {
  std::int64_t port;
  std::vector<CaptureRow> rows;
  std::int64_t left_out = 0;
};

struct Recordings {
  std::int64_t event_limit;
  Counters count;
  IdVector<PortId, PortCounters> port_counters;
  std::vector<EventRow> events;
  std::int64_t events_left_out = 0;
  std::vector<CapturedPort> captured;                 // empty where nobody asks
  IdVector<QueuePairId, std::vector<PathUse>> paths;  // only of those that have sent a packet of the sample
  std::vector<SeriesRow> series;
  Ps next_sample_at_ps = kNeverPs;
  Ps sample_every_ps = 0;
  std::int64_t hops_at_last_watch = -1;  // `count.packet_hops`, when a deadlock was looked for last
  std::vector<DeadlockRow> deadlock;     // the cycle that ended the run; empty: none

  explicit Recordings(const Input& input) : event_limit(input.series.event_limit) {}

  /// Record an event if there is room; `event_limit` is 0 where nobody asks.
  void note(Ps at_ps, EventKind kind, std::int64_t place, std::int64_t detail) {
    if (event_limit == 0) [[likely]]
      return;
    if (std::cmp_less(events.size(), event_limit))
      events.push_back({.at_ps = at_ps, .kind = static_cast<std::int64_t>(kind), .place = place, .detail = detail});
    else
      events_left_out += 1;
  }
};

}  // namespace weftwork
