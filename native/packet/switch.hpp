/// A packet arrives at a switch: it is routed, admitted, marked and put into a queue.
/// Source: docs/models/packet-engine.md, "Switches". Leaves out: what happens to it then (departures).
#pragma once
#include <cstdint>

#include "base/clock.hpp"
#include "base/ids.hpp"
#include "base/invariant.hpp"
#include "packet/admission.hpp"
#include "packet/buffer.hpp"
#include "packet/credits.hpp"
#include "packet/departures.hpp"
#include "packet/fabric.hpp"
#include "packet/ids.hpp"
#include "packet/loss.hpp"
#include "packet/packet.hpp"
#include "packet/paths.hpp"
#include "packet/port_records.hpp"
#include "packet/port_selection.hpp"
#include "packet/routing.hpp"
#include "packet/state.hpp"
#include "rows/outcome.hpp"

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
  if (lost_on_link(s.setup, s.fabric, s.hosts, s.recordings, port, *packet, at_ps)) {
    if (s.setup.link_credits && !has(packet->flags, kLost))
      return_credit(s.setup, s.fabric, s.schedule, s.recordings, view.node, s.setup.at(port, klass), packet->bytes,
                    at_ps);
    return;
  }
  const LocalQueueId place = s.setup.at(local, klass);
  packet->ingress = static_cast<std::uint16_t>(place.value);
  const Egress egress = route(s, view, packet, klass, at_ps);
  const PortId target = egress.port;
  if (target.is_none()) [[unlikely]] {
    drop(s.recordings, port, s.recordings.count.drop_no_route, at_ps);
    if (s.setup.link_credits)
      return_credit(s.setup, s.fabric, s.schedule, s.recordings, view.node, s.setup.at(port, klass), packet->bytes,
                    at_ps);
    return;
  }
  const QueueId egress_queue = s.setup.at(target, egress.klass);
  must_hold(static_cast<std::uint32_t>(egress_queue - view.first_queue) < view.ingresses.size(),
            Invariant::route_leads_out_of_its_switch, "at_ps node port class", at_ps, view.id, target, egress.klass);
  Port& out = s.fabric.ports[target];
  if (!out.up) [[unlikely]] {
    drop(s.recordings, target, s.recordings.count.drop_link_down, at_ps);
    if (s.setup.link_credits)
      return_credit(s.setup, s.fabric, s.schedule, s.recordings, view.node, s.setup.at(port, klass), packet->bytes,
                    at_ps);
    return;
  }
  drain_port(s, view, target, at_ps);

  TrafficClass queued = egress.klass;
  if (s.setup.link_credits) [[unlikely]] {
    Ingress& ingress = view.ingresses[place];
    occupy(view, ingress, packet->bytes);
    must_hold(ingress.used <= s.setup.in.port_credit_bytes[port], Invariant::queue_within_its_buffer,
              "at_ps port class held_bytes room_bytes", at_ps, port, klass, ingress.used,
              s.setup.in.port_credit_bytes[port]);
    note_largest(ingress);
  } else if (!admits_at_once(view, view.ingresses[place], s.fabric.queues[egress_queue], packet->bytes,
                             contains(s.setup.lossless, klass))) {
    queued = admit(s, view, local, klass, egress, packet, at_ps);
    if (queued.is_none()) return;
  }
  if (s.setup.extended && counts_switches(*packet)) count_switch(packet);
  Queue& queue = s.fabric.queues[s.setup.at(target, queued)];
  const std::int32_t bytes = packet->bytes;
  if (is_whole_data(*packet) && view.row.mark_at_dequeue == 0 &&
      draws_mark(s.setup, s.hosts, view.row, *packet, target, queue.bytes)) {
    packet->flags = with(packet->flags, kMarked);
    s.recordings.port_counters[target].marks += 1;
    s.recordings.note(at_ps, EventKind::kMark, target.value, queued.value);
  }
  if (is_sampled(s.setup, *packet)) [[unlikely]]
    record_path(s.hosts, s.recordings, *packet, target, queued_bytes(s.setup, s.fabric, target));
  Packet* slot = queue.tail;
  queue.tail = s.fabric.pool.extend(slot);
  s.fabric.pool.copy(slot, packet);
  slot->at_ps = kNeverPs;
  queue.bytes += bytes;
  if (queue.bytes > queue.max_bytes) {
    queue.max_bytes = queue.bytes;
    refuse_above_limit(queue.bytes);
  }
  const auto mask = static_cast<std::uint16_t>(bit_of(queued));
  if ((out.pending & mask) != 0) return;  // the port is busy or paused, and knows when it goes on
  if (out.pending == 0 && !out.frame_waits) s.schedule.set_outbound(LocalPort(target - view.first), view.id, true);
  out.pending = static_cast<std::uint16_t>(out.pending | mask);
  if (s.setup.link_credits) [[unlikely]]
    test_credit(s.setup, s.fabric, view.row, target, queued);
  const Ps due = switch_due(s.setup, s.fabric, out, target);
  set_due(s.schedule, view.node, target, due);
  if (due <= at_ps) start_switch_port(s, view, target, at_ps);
}

}  // namespace weftwork
