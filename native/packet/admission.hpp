/// A packet at a switch that does not find room at once: the switch is brought up to date, then the packet is admitted,
/// cut to its headers or dropped, and its ingress perhaps paused.
#pragma once
#include <algorithm>
#include <cstdint>
#include <utility>

#include "base/clock.hpp"
#include "base/ids.hpp"
#include "base/invariant.hpp"
#include "packet/buffer.hpp"
#include "packet/departures.hpp"
#include "packet/fabric.hpp"
#include "packet/flow_control.hpp"
#include "packet/ids.hpp"
#include "packet/loss.hpp"
#include "packet/packet.hpp"
#include "packet/port_records.hpp"
#include "packet/port_selection.hpp"
#include "packet/recordings.hpp"
#include "packet/routing.hpp"
#include "packet/schedule.hpp"
#include "packet/setup.hpp"
#include "packet/state.hpp"

namespace weftwork {

inline void pause_ingress(const Setup& setup, Fabric& fabric, Schedule& schedule, Recordings& recordings,
                          const SwitchView& view, PortId port, TrafficClass klass, Ps at_ps) {
  const QueueId place = setup.at(port, klass);
  must_hold(contains(setup.lossless, klass), Invariant::pause_only_where_lossless, "at_ps port class", at_ps, port,
            klass);
  must_hold(!fabric.ingresses[place].paused, Invariant::pause_is_counted_once, "at_ps port class", at_ps, port, klass);
  must_hold(fabric.ports[port].up, Invariant::line_carries_one_frame_at_a_time, "at_ps port class", at_ps, port, klass);
  fabric.ingresses[place].paused = true;
  auto& paused = view.node.paused;
  paused.insert(std::lower_bound(paused.begin(), paused.end(), place), place);
  view.node.in_order_for += 1;
  fabric.paused_ingresses += 1;
  must_hold(std::cmp_equal(view.node.in_order_for, paused.size()) && fabric.paused_ingresses >= view.node.in_order_for,
            Invariant::pause_is_counted_once, "at_ps port class listed counted", at_ps, port, klass, paused.size(),
            fabric.paused_ingresses);
  schedule_refresh(setup, fabric, schedule, view.id, port, klass, view.row.pause_quanta, at_ps);
  send_frame(setup, fabric, schedule, recordings, view.node, port, klass, view.row.pause_quanta, at_ps);
}

/// What would happen to a packet of `local` and `klass` in the queue of `egress`; the switch is up to date.
inline Verdict judge_packet(const Setup& setup, const Fabric& fabric, const SwitchView& view, LocalPort local,
                            TrafficClass klass, Egress egress, const Packet& packet) {
  return judge(view, view.ingresses[setup.at(local, klass)], setup.in.port_headroom_bytes[view.first + local],
               fabric.queues[setup.at(egress.port, egress.klass)], packet.bytes, contains(setup.lossless, klass));
}

/// Cut a data packet to its headers, which ask for room in a class of their own.
inline void cut(const Setup& setup, Recordings& recordings, const SwitchView& view, LocalPort local, PortId target,
                Packet* packet) {
  must_hold(setup.in.transport.trim_bytes > 0 && std::cmp_less(setup.in.transport.trim_bytes, packet->bytes),
            Invariant::frame_fits_its_record, "port queue_pair seq bytes", target, packet->queue_pair, packet->seq,
            packet->bytes);
  recordings.count.trims += 1;
  recordings.port_counters[target].trims += 1;
  packet->bytes = static_cast<std::uint16_t>(setup.in.transport.trim_bytes);
  packet->ingress = static_cast<std::uint16_t>(setup.at(local, setup.in.trim_class).value);
  packet->flags = with(packet->flags, kCut);
  if (setup.in.attachment[packet->destination_port] == view.node.edge) packet->flags = with(packet->flags, kLastHop);
}

/// Admit a packet the slow way: bring the switch up to date, decide, count what is cut or dropped. The class of its
/// queue, or none if it is dropped.
[[gnu::noinline]] inline TrafficClass admit(State& s, const SwitchView& view, LocalPort local, TrafficClass klass,
                                            Egress egress, Packet* packet, Ps at_ps) {
  drain_switch(s, view, at_ps);
  const PortId port = view.first + local;
  Verdict verdict = judge_packet(s.setup, s.fabric, view, local, klass, egress, *packet);
  const std::int64_t trim_bytes = s.setup.in.transport.trim_bytes;
  if (is_refused(verdict) && !contains(s.setup.lossless, klass) && is_whole_data(*packet) && trim_bytes > 0 &&
      std::cmp_greater(packet->bytes, trim_bytes)) {
    cut(s.setup, s.recordings, view, local, egress.port, packet);
    klass = egress.klass = s.setup.in.trim_class;
    verdict = judge_packet(s.setup, s.fabric, view, local, klass, egress, *packet);
  }
  Ingress& ingress = view.ingresses[s.setup.at(local, klass)];
  const std::int32_t bytes = packet->bytes;
  switch (verdict.admission) {
    case Admission::kShared:
      occupy(view, ingress, bytes);
      must_hold(view.node.shared_used <= view.node.shared_bytes || ingress.used <= view.row.reserve_bytes,
                Invariant::queue_within_its_buffer, "at_ps node shared_bytes room_bytes", at_ps, view.id,
                view.node.shared_used, view.node.shared_bytes);
      break;
    case Admission::kHeadroom:
      ingress.headroom_used += bytes;
      must_hold(contains(s.setup.lossless, klass) && ingress.headroom_used <= s.setup.in.port_headroom_bytes[port],
                Invariant::queue_within_its_buffer, "at_ps port class headroom_bytes room_bytes", at_ps, port, klass,
                ingress.headroom_used, s.setup.in.port_headroom_bytes[port]);
      break;
    case Admission::kBufferFull:
      drop(s.recordings, port, s.recordings.count.drop_buffer_full, at_ps);
      return TrafficClass::none();
    case Admission::kEgressThreshold:
      drop(s.recordings, egress.port, s.recordings.count.drop_egress_threshold, at_ps);
      return TrafficClass::none();
    case Admission::kHeadroomFull:
      drop(s.recordings, port, s.recordings.count.drop_headroom_full, at_ps);
      return TrafficClass::none();
  }
  note_largest(ingress);
  if (verdict.pause) pause_ingress(s.setup, s.fabric, s.schedule, s.recordings, view, port, klass, at_ps);
  return egress.klass;
}

}  // namespace weftwork
