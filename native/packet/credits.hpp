/// Credits between links: a packet leaves only where the far end has room for it, and the room is given back in frames.
/// Source: docs/models/packet-engine.md, "Credits between links"; lanes as InfiniBand has them (IBTA vol. 1, 7.9).
/// Leaves out: how much room a lane has, which is decided before the run.
#pragma once
#include "packet/flow_control.hpp"

namespace weftwork {

/// Whether a frame of so many bytes may leave by a port in a class.
inline bool has_credit(const State& s, PortId port, TrafficClass klass, std::int64_t frame_bytes) {
  return s.credit_lanes[s.at(port, klass)].credit_bytes >= frame_bytes;
}

inline void take_credit(State& s, PortId port, TrafficClass klass, std::int64_t frame_bytes) {
  s.credit_lanes[s.at(port, klass)].credit_bytes -= frame_bytes;
}

/// What the first packet of a class needs at a port of a switch: it gets longer where the switch writes into it.
inline std::int64_t needed_credit_bytes(const State& s, const SwitchRow& row, const Packet& packet) {
  const bool is_stamped = s.in.has_telemetry && row.telemetry != 0 && is_whole_data(packet);
  return packet.bytes + (is_stamped ? s.in.transport.telemetry_hop_bytes : 0);
}

/// After the head of a class or its credit has changed at a port of a switch: note whether it has to wait.
inline void test_credit(State& s, const SwitchRow& row, PortId port, TrafficClass klass) {
  Port& out = s.ports[port];
  const auto mask = static_cast<std::uint16_t>(bit_of(klass));
  const bool waits = contains(out.pending, klass) &&
                     !has_credit(s, port, klass, needed_credit_bytes(s, row, *s.queues[s.at(port, klass)].departure));
  out.paused = static_cast<std::uint16_t>(waits ? out.paused | mask : out.paused & ~mask);
}

/// From when on a class of a switch's port may leave, as far as is known.
inline Ps opens_with_credit_ps(const Port& out, TrafficClass klass) {
  return contains(out.paused, klass) ? kNeverPs : 0;
}

/// The lane by which a packet came into a node.
inline QueueId lane_of(const State& s, NodeId node, const Packet& packet) {
  return s.at(s.first_port(node), TrafficClass(0)) + packet.ingress;
}

/// Room of a lane is free again. Returns whether a frame that tells it waits now; the port's owner starts it.
inline bool owe_credit(State& s, QueueId lane, std::int64_t bytes) {
  const PortId port = s.port_of(lane);
  if (!s.ports[port].up) return false;
  std::int64_t& owed_bytes = s.credit_lanes[lane].owed_bytes;
  owed_bytes += bytes;
  if (owed_bytes < s.in.transport.credit_quantum_bytes) return false;
  queue_frame(s, port, s.class_of(lane), owed_bytes);
  owed_bytes = 0;
  return true;
}

/// A port begins, or comes up: it may fill what is free behind its far end, and owes nothing.
inline void renew_credits(State& s, PortId port) {
  const PortId peer = s.peer_of(port);
  if (peer.is_none()) return;
  for (const TrafficClass klass : s.classes())
    s.credit_lanes[s.at(port, klass)] = {s.in.port_credit_bytes[peer] - s.ingresses[s.at(peer, klass)].used, 0};
}

}  // namespace weftwork
