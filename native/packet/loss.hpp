/// Packets that do not arrive: dead links, random loss, wrong checksums; and the count of every drop.
#pragma once
#include "base/random.hpp"
#include "packet/state.hpp"

namespace weftwork {

inline void drop(State& s, PortId port, std::int64_t& reason, Ps at_ps) {
  reason += 1;
  s.port_counters[port].drops += 1;
  s.note(at_ps, EventKind::kDrop, port.value, &reason - &s.count.drop_no_route);
}

/// Lost on its last link? Counts it if so.
inline bool lost_on_link(State& s, PortId port, const Packet& packet, Ps at_ps) {
  if (has(packet.flags, kLost)) [[unlikely]] {
    drop(s, port, s.count.drop_link_down, at_ps);
    return true;
  }
  if (!s.loses) [[likely]]
    return false;
  const PortId sender = s.peer_of(port);
  const double loss = s.loss[sender];
  const double corruption = s.in.port_corruption[sender];
  const std::uint64_t flow = s.queue_pairs[packet.queue_pair].flow;
  const std::uint64_t id = identity(packet);
  if (loss > 0 && uniform(draw(s.in.seed, Stream::kLinkLoss, flow, id, sender.index())) < loss) {
    drop(s, port, s.count.drop_link_loss, at_ps);
    return true;
  }
  if (corruption > 0 && uniform(draw(s.in.seed, Stream::kLinkCorruption, flow, id, sender.index())) < corruption) {
    drop(s, port, s.count.drop_corrupted, at_ps);
    return true;
  }
  return false;
}

}  // namespace weftwork
