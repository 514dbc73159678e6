/// A packet arrives at a switch: it is routed, admitted, marked and put into a queue.
/// Source: docs/models/packet-engine.md, "Switches". Leaves out: what happens to it then (departures).
#pragma once
#include "packet/admission.hpp"
#include "packet/paths.hpp"
#include "packet/routing.hpp"

namespace weftwork {

/// A packet passes another switch.
inline void count_switch(Packet* packet) {
  std::uint8_t& passed = extension(packet).hops;
  if (passed != 0xFF) passed += 1;  // a TTL is a byte: RFC 791, section 3.1
}

/// A packet has arrived at a switch. The reader's position is the caller's business.
[[gnu::always_inline]] inline void arrive_at_switch(State& s, const SwitchView& view, LocalPort local,
                                                    TrafficClass klass, Packet* packet, Ps at_ps) {
  const PortId port = view.first + local;
  if (view.node.in_order_for != 0) [[unlikely]]
    drain_switch(s, view, at_ps);
  if (lost_on_link(s, port, *packet, at_ps)) {
    if (s.link_credits && !has(packet->flags, kLost))
      return_credit(s, view.node, s.at(port, klass), packet->bytes, at_ps);
    return;
  }
  packet->ingress = static_cast<std::uint16_t>(s.at(local, klass).value);
  const Egress egress = route(s, view, packet, klass, at_ps);
  const PortId target = egress.port;
  if (target.is_none()) [[unlikely]] {
    drop(s, port, s.count.drop_no_route, at_ps);
    if (s.link_credits) return_credit(s, view.node, s.at(port, klass), packet->bytes, at_ps);
    return;
  }
  Port& out = s.ports[target];
  if (!out.up) [[unlikely]] {
    drop(s, target, s.count.drop_link_down, at_ps);
    if (s.link_credits) return_credit(s, view.node, s.at(port, klass), packet->bytes, at_ps);
    return;
  }
  drain_port(s, view, target, at_ps);

  TrafficClass queued = egress.klass;
  if (s.link_credits) [[unlikely]] {
    Ingress& ingress = view.ingresses[s.at(local, klass)];
    occupy(view, ingress, packet->bytes);
    note_largest(ingress);
  } else if (!admits_at_once(view, view.ingresses[s.at(local, klass)], s.queues[s.at(target, queued)], packet->bytes,
                             contains(s.lossless, klass))) {
    queued = admit(s, view, local, klass, egress, packet, at_ps);
    if (queued.is_none()) return;
  }
  if (s.extended && counts_switches(*packet)) count_switch(packet);
  Queue& queue = s.queues[s.at(target, queued)];
  const std::int32_t bytes = packet->bytes;
  if (is_whole_data(*packet) && view.row.mark_at_dequeue == 0 &&
      draws_mark(s, view.row, *packet, target, queue.bytes)) {
    packet->flags = with(packet->flags, kMarked);
    s.port_counters[target].marks += 1;
    s.note(at_ps, EventKind::kMark, target.value, queued.value);
  }
  if (is_sampled(s, *packet)) [[unlikely]]
    record_path(s, *packet, target, s.queued_bytes(target));
  Packet* slot = queue.tail;
  queue.tail = s.pool.extend(slot);
  s.pool.copy(slot, packet);
  slot->at_ps = kNeverPs;
  queue.bytes += bytes;
  if (queue.bytes > queue.max_bytes) {
    queue.max_bytes = queue.bytes;
    refuse_above_limit(queue.bytes);
  }
  const auto mask = static_cast<std::uint16_t>(bit_of(queued));
  if ((out.pending & mask) != 0) return;  // the port is busy or paused, and knows when it goes on
  if (out.pending == 0 && !out.frame_waits) s.set_outbound(target, view.id, true);
  out.pending = static_cast<std::uint16_t>(out.pending | mask);
  if (s.link_credits) [[unlikely]]
    test_credit(s, view.row, target, queued);
  const Ps due = switch_due(s, out, target);
  set_due(s, view.node, target, due);
  if (due <= at_ps) start_switch_port(s, view, target, at_ps);
}

}  // namespace weftwork
