/// A packet at a switch that does not find room at once: the switch is brought up to date, then the packet is admitted,
/// cut to its headers or dropped, and its ingress perhaps paused.
#pragma once
#include <utility>

#include "packet/departures.hpp"
#include "packet/loss.hpp"
#include "packet/routing.hpp"

namespace weftwork {

inline void pause_ingress(State& s, const SwitchView& view, PortId port, TrafficClass klass, Ps at_ps) {
  const QueueId place = s.at(port, klass);
  s.ingresses[place].paused = true;
  auto& paused = view.node.paused;
  paused.insert(std::lower_bound(paused.begin(), paused.end(), place), place);
  view.node.in_order_for += 1;
  s.paused_ingresses += 1;
  schedule_refresh(s, view.id, port, klass, view.row.pause_quanta, at_ps);
  send_frame(s, view.node, port, klass, view.row.pause_quanta, at_ps);
}

/// What would happen to a packet of `local` and `klass` in the queue of `egress`; the switch is up to date.
inline Verdict judge_packet(const State& s, const SwitchView& view, LocalPort local, TrafficClass klass, Egress egress,
                            const Packet& packet) {
  return judge(view, view.ingresses[s.at(local, klass)], s.in.port_headroom_bytes[view.first + local],
               s.queues[s.at(egress.port, egress.klass)], packet.bytes, contains(s.lossless, klass));
}

/// Cut a data packet to its headers, which ask for room in a class of their own.
inline void cut(State& s, const SwitchView& view, LocalPort local, PortId target, Packet* packet) {
  s.count.trims += 1;
  s.port_counters[target].trims += 1;
  packet->bytes = static_cast<std::uint16_t>(s.in.transport.trim_bytes);
  packet->ingress = static_cast<std::uint16_t>(s.at(local, s.in.trim_class).value);
  packet->flags = with(packet->flags, kCut);
  if (s.in.attachment[packet->destination_port] == view.node.edge) packet->flags = with(packet->flags, kLastHop);
}

/// Admit a packet the slow way: bring the switch up to date, decide, count what is cut or dropped. The class of its
/// queue, or none if it is dropped.
[[gnu::noinline]] inline TrafficClass admit(State& s, const SwitchView& view, LocalPort local, TrafficClass klass,
                                            Egress egress, Packet* packet, Ps at_ps) {
  drain_switch(s, view, at_ps);
  const PortId port = view.first + local;
  Verdict verdict = judge_packet(s, view, local, klass, egress, *packet);
  const std::int64_t trim_bytes = s.in.transport.trim_bytes;
  if (is_refused(verdict) && !contains(s.lossless, klass) && is_whole_data(*packet) && trim_bytes > 0 &&
      std::cmp_greater(packet->bytes, trim_bytes)) {
    cut(s, view, local, egress.port, packet);
    klass = egress.klass = s.in.trim_class;
    verdict = judge_packet(s, view, local, klass, egress, *packet);
  }
  Ingress& ingress = view.ingresses[s.at(local, klass)];
  const std::int32_t bytes = packet->bytes;
  switch (verdict.admission) {
    case Admission::kShared:
      occupy(view, ingress, bytes);
      break;
    case Admission::kHeadroom:
      ingress.headroom_used += bytes;
      break;
    case Admission::kBufferFull:
      drop(s, port, s.count.drop_buffer_full, at_ps);
      return TrafficClass::none();
    case Admission::kEgressThreshold:
      drop(s, egress.port, s.count.drop_egress_threshold, at_ps);
      return TrafficClass::none();
    case Admission::kHeadroomFull:
      drop(s, port, s.count.drop_headroom_full, at_ps);
      return TrafficClass::none();
  }
  note_largest(ingress);
  if (verdict.pause) pause_ingress(s, view, port, klass, at_ps);
  return egress.klass;
}

}  // namespace weftwork
