/// Packets that do not arrive: dead links, random loss, wrong checksums; and the count of every drop.
#pragma once
#include <cstdint>

#include "base/clock.hpp"
#include "base/ids.hpp"
#include "base/random.hpp"
#include "packet/fabric.hpp"
#include "packet/hosts.hpp"
#include "packet/packet.hpp"
#include "packet/recordings.hpp"
#include "packet/setup.hpp"
#include "rows/outcome.hpp"

namespace weftwork {

inline void drop(Recordings& recordings, PortId port, std::int64_t& reason, Ps at_ps) {
  reason += 1;
  recordings.port_counters[port].drops += 1;
  recordings.note(at_ps, EventKind::kDrop, port.value, &reason - &recordings.count.drop_no_route);
}

/// Lost on its last link? Counts it if so.
inline bool lost_on_link(const Setup& setup, const Fabric& fabric, const Hosts& hosts, Recordings& recordings,
                         PortId port, const Packet& packet, Ps at_ps) {
  if (has(packet.flags, kLost)) [[unlikely]] {
    drop(recordings, port, recordings.count.drop_link_down, at_ps);
    return true;
  }
  if (!setup.loses) [[likely]]
    return false;
  const PortId sender = setup.peer_of(port);
  const double loss = fabric.loss[sender];
  const double corruption = setup.in.port_corruption[sender];
  const std::uint64_t flow = hosts.queue_pairs[packet.queue_pair].flow;
  const std::uint64_t id = identity(packet);
  if (loss > 0 && uniform(draw(setup.in.seed, Stream::kLinkLoss, flow, id, sender.index())) < loss) {
    drop(recordings, port, recordings.count.drop_link_loss, at_ps);
    return true;
  }
  if (corruption > 0 && uniform(draw(setup.in.seed, Stream::kLinkCorruption, flow, id, sender.index())) < corruption) {
    drop(recordings, port, recordings.count.drop_corrupted, at_ps);
    return true;
  }
  return false;
}

}  // namespace weftwork
