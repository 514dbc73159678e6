/// Egress ports of the packets of each queue pair, and the bytes queued ahead of them. Every k-th data packet is
/// counted, retransmissions included. Not part of the model: nothing here is read back.
#pragma once
#include <algorithm>
#include <vector>

#include "packet/state.hpp"

namespace weftwork {

/// A data packet of the sample goes into (or, at a host, leaves by) an egress port.
[[gnu::noinline]] inline void record_path(State& s, const Packet& packet, PortId port, std::int64_t ahead_bytes) {
  if (s.paths.next_id() <= packet.queue_pair) s.paths.resize(s.queue_pairs.size());
  std::vector<PathUse>& uses = s.paths[packet.queue_pair];
  auto use = std::find_if(uses.begin(), uses.end(), [port](const PathUse& known) { return known.port == port.value; });
  if (use == uses.end()) use = uses.insert(use, {port.value, 0, 0});
  use->packets += 1;
  use->queue_bytes += ahead_bytes;
}

/// Whether a packet belongs to the sample; false at the cost of one comparison where nobody asks.
[[gnu::always_inline]] inline bool is_sampled(const State& s, const Packet& packet) {
  return s.path_sample != 0 && packet.kind == PacketKind::kData && packet.seq % s.path_sample == 0;
}

}  // namespace weftwork
