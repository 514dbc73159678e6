/// Egress ports of the packets of each queue pair, and the bytes queued ahead of them. Every k-th data packet is
/// counted, retransmissions included. Not part of the model: nothing here is read back.
#pragma once
#include <algorithm>
#include <cstdint>
#include <vector>

#include "base/ids.hpp"
#include "packet/hosts.hpp"
#include "packet/packet.hpp"
#include "packet/recordings.hpp"
#include "packet/setup.hpp"

namespace weftwork {

/// A data packet of the sample goes into (or, at a host, leaves by) an egress port.
[[gnu::noinline]] inline void record_path(const Hosts& hosts, Recordings& recordings, const Packet& packet, PortId port,
                                          std::int64_t ahead_bytes) {
  if (recordings.paths.next_id() <= packet.queue_pair) recordings.paths.resize(hosts.queue_pairs.size());
  std::vector<PathUse>& uses = recordings.paths[packet.queue_pair];
  auto use = std::find_if(uses.begin(), uses.end(), [port](const PathUse& known) { return known.port == port.value; });
  if (use == uses.end()) use = uses.insert(use, {port.value, 0, 0});
  use->packets += 1;
  use->queue_bytes += ahead_bytes;
}

/// Whether a packet belongs to the sample; false at the cost of one comparison where nobody asks.
[[gnu::always_inline]] inline bool is_sampled(const Setup& setup, const Packet& packet) {
  return setup.path_sample != 0 && packet.kind == PacketKind::kData && packet.seq % setup.path_sample == 0;
}

}  // namespace weftwork
