/// Credits between links: a packet leaves only where the far end has room for it, and the room is given back in frames.
/// Source: docs/models/packet-engine.md, "Credits between links"; lanes as InfiniBand has them (IBTA vol. 1, 7.9).
/// Leaves out: how much room a lane has, which is decided before the run.
#pragma once
#include <cstdint>

#include "base/clock.hpp"
#include "base/ids.hpp"
#include "base/invariant.hpp"
#include "packet/fabric.hpp"
#include "packet/flow_control.hpp"
#include "packet/ids.hpp"
#include "packet/packet.hpp"
#include "packet/port_records.hpp"
#include "packet/schedule.hpp"
#include "packet/setup.hpp"
#include "rows/fabric.hpp"

namespace weftwork {

/// Whether a frame of so many bytes may leave by a port in a class.
inline bool has_credit(const Setup& setup, const Fabric& fabric, PortId port, TrafficClass klass,
                       std::int64_t frame_bytes) {
  return fabric.credit_lanes[setup.at(port, klass)].credit_bytes >= frame_bytes;
}

inline void take_credit(const Setup& setup, Fabric& fabric, PortId port, TrafficClass klass, std::int64_t frame_bytes) {
  std::int64_t& credit_bytes = fabric.credit_lanes[setup.at(port, klass)].credit_bytes;
  credit_bytes -= frame_bytes;
  must_hold(credit_bytes >= 0, Invariant::credits_never_negative, "port class credit_bytes frame_bytes", port, klass,
            credit_bytes, frame_bytes);
}

/// What the first packet of a class needs at a port of a switch: it gets longer where the switch writes into it.
inline std::int64_t needed_credit_bytes(const Setup& setup, const SwitchRow& row, const Packet& packet) {
  const bool is_stamped = setup.in.has_telemetry && row.telemetry != 0 && is_whole_data(packet);
  return packet.bytes + (is_stamped ? setup.in.transport.telemetry_hop_bytes : 0);
}

/// After the head of a class or its credit has changed at a port of a switch: note whether it has to wait.
inline void test_credit(const Setup& setup, Fabric& fabric, const SwitchRow& row, PortId port, TrafficClass klass) {
  Port& out = fabric.ports[port];
  const auto mask = static_cast<std::uint16_t>(bit_of(klass));
  const bool waits = contains(out.pending, klass) &&
                     !has_credit(setup, fabric, port, klass,
                                 needed_credit_bytes(setup, row, *fabric.queues[setup.at(port, klass)].departure));
  out.paused = static_cast<std::uint16_t>(waits ? out.paused | mask : out.paused & ~mask);
}

/// From when on a class of a switch's port may leave, as far as is known.
inline Ps opens_with_credit_ps(const Port& out, TrafficClass klass) {
  return contains(out.paused, klass) ? kNeverPs : 0;
}

/// The lane by which a packet came into a node.
inline QueueId lane_of(const Setup& setup, NodeId node, const Packet& packet) {
  return setup.at(setup.first_port(node), TrafficClass(0)) + packet.ingress;
}

/// Room of a lane is free again. Returns whether a frame that tells it waits now; the port's owner starts it.
inline bool owe_credit(const Setup& setup, Fabric& fabric, Schedule& schedule, QueueId lane, std::int64_t bytes) {
  const PortId port = setup.port_of(lane);
  if (!fabric.ports[port].up) return false;
  std::int64_t& owed_bytes = fabric.credit_lanes[lane].owed_bytes;
  owed_bytes += bytes;
  must_hold(bytes > 0 && owed_bytes <= setup.in.port_credit_bytes[port], Invariant::credits_never_negative,
            "port class owed_bytes room_bytes", port, setup.class_of(lane), owed_bytes,
            setup.in.port_credit_bytes[port]);
  if (owed_bytes < setup.in.transport.credit_quantum_bytes) return false;
  must_hold(fabric.ingresses[lane].used + owed_bytes <= setup.in.port_credit_bytes[port],
            Invariant::credits_never_negative, "port class held_bytes owed_bytes room_bytes", port,
            setup.class_of(lane), fabric.ingresses[lane].used, owed_bytes, setup.in.port_credit_bytes[port]);
  queue_frame(setup, fabric, schedule, port, setup.class_of(lane), owed_bytes);
  owed_bytes = 0;
  return true;
}

/// A port begins, or comes up: it may fill what is free behind its far end, and owes nothing.
inline void renew_credits(const Setup& setup, Fabric& fabric, PortId port) {
  const PortId peer = setup.peer_of(port);
  if (peer.is_none()) return;
  for (const TrafficClass klass : setup.classes())
    fabric.credit_lanes[setup.at(port, klass)] = {
        setup.in.port_credit_bytes[peer] - fabric.ingresses[setup.at(peer, klass)].used, 0};
}

}  // namespace weftwork
