/// Departures of a switch: scheduling of classes, marks and telemetry, ends of pauses. Departures are lazy: a port is
/// brought up to date only where somebody looks at it. That stays exact because the checks of the shared buffer are
/// one-sided: counters over-estimate, and only if a check would fire is the whole switch brought up to date and checked
/// again. While an ingress is paused every departure may resume it, and with credits between links each returns some,
/// so then the switch is kept up to date in order of time and port.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "base/clock.hpp"
#include "base/ids.hpp"
#include "base/invariant.hpp"
#include "base/limit_error.hpp"
#include "base/random.hpp"
#include "packet/buffer.hpp"
#include "packet/capture.hpp"
#include "packet/credits.hpp"
#include "packet/fabric.hpp"
#include "packet/flow_control.hpp"
#include "packet/hosts.hpp"
#include "packet/ids.hpp"
#include "packet/line.hpp"
#include "packet/packet.hpp"
#include "packet/path_load.hpp"
#include "packet/port_records.hpp"
#include "packet/recordings.hpp"
#include "packet/schedule.hpp"
#include "packet/setup.hpp"
#include "packet/state.hpp"
#include "rows/fabric.hpp"
#include "rows/outcome.hpp"
#include "rows/policies.hpp"

namespace weftwork {

/// When the port can start something next.
[[gnu::always_inline]] inline Ps switch_due(const Setup& setup, const Fabric& fabric, const Port& out, PortId port) {
  if (out.pending != 0 && (out.pending & out.paused) == 0) [[likely]]
    return out.free_at_ps;  // a dead port has nothing waiting
  if (out.frame_waits) return out.free_at_ps;
  Ps due = kNeverPs;
  for (std::uint32_t rest = out.pending; rest != 0; rest &= rest - 1) {
    const TrafficClass klass = lowest(rest);
    due = std::min(due, std::max(out.free_at_ps, setup.link_credits
                                                     ? opens_with_credit_ps(out, klass)
                                                     : fabric.queue_controls[setup.at(port, klass)].paused_until_ps));
  }
  return due;
}

/// Note when a port of a switch can start something next.
[[gnu::always_inline]] inline void set_due(Schedule& schedule, SwitchNode& node, PortId port, Ps due_ps) {
  schedule.due_at_ps[port] = due_ps;
  node.next_due_at_ps = std::min(node.next_due_at_ps, due_ps);
}

/// Which class the port serves at `at_ps`, where several wait or some are paused; at least one is ready.
[[gnu::noinline]] inline TrafficClass choose_among(const Setup& setup, Fabric& fabric, const SwitchRow& row,
                                                   PortId port, Ps at_ps) {
  Port& out = fabric.ports[port];
  std::uint32_t ready = out.pending;
  for (std::uint32_t rest = out.pending & out.paused; rest != 0; rest &= rest - 1) {
    const TrafficClass klass = lowest(rest);
    if (setup.link_credits || fabric.queue_controls[setup.at(port, klass)].paused_until_ps > at_ps)
      ready &= ~bit_of(klass);
  }
  must_hold(ready != 0, Invariant::queue_holds_what_it_counts, "at_ps port pending paused", at_ps, port, out.pending,
            out.paused);
  if ((ready & (ready - 1)) == 0) return lowest(ready);
  const auto weight = [&](TrafficClass klass) { return row.weight[klass.index()]; };
  // Strict ones, the highest first.
  for (TrafficClass klass(setup.class_count - 1); !klass.is_none(); klass = klass - 1)
    if (contains(ready, klass) && weight(klass) == 0) return klass;
  for (;;) {
    const TrafficClass klass(out.current);
    if (weight(klass) != 0 && contains(ready, klass)) {
      QueueControl& queue = fabric.queue_controls[setup.at(port, klass)];
      const std::int64_t bytes = fabric.queues[setup.at(port, klass)].departure->bytes;
      if (queue.deficit >= bytes) {
        queue.deficit -= bytes;
        return klass;
      }
    }
    TrafficClass next = klass;
    do {
      next = next + 1 == TrafficClass(setup.class_count) ? TrafficClass(0) : next + 1;
    } while (weight(next) == 0);
    out.current = static_cast<std::uint16_t>(next.value);
    if (contains(ready, next)) fabric.queue_controls[setup.at(port, next)].deficit += weight(next) * 1024;
  }
}

/// The same where it is most often clear.
[[gnu::always_inline]] inline TrafficClass choose_class(const Setup& setup, Fabric& fabric, const SwitchRow& row,
                                                        PortId port, Ps at_ps) {
  const std::uint32_t pending = fabric.ports[port].pending;
  const bool is_alone = pending != 0 && (pending & (pending - 1)) == 0 && (pending & fabric.ports[port].paused) == 0;
  return is_alone ? lowest(pending) : choose_among(setup, fabric, row, port, at_ps);
}

/// A flow-control frame waits at a port of a switch: it leaves at once if the port is idle.
inline void start_idle_port(const Setup& setup, Fabric& fabric, Schedule& schedule, Recordings& recordings,
                            SwitchNode& node, PortId port, Ps at_ps) {
  const Port& out = fabric.ports[port];
  if (out.free_at_ps <= at_ps) start_frame(setup, fabric, schedule, recordings, port, at_ps);
  set_due(schedule, node, port, switch_due(setup, fabric, out, port));
}

/// Send a flow-control frame from a port of a switch.
inline void send_frame(const Setup& setup, Fabric& fabric, Schedule& schedule, Recordings& recordings, SwitchNode& node,
                       PortId port, TrafficClass klass, std::int64_t quanta, Ps at_ps) {
  queue_frame(setup, fabric, schedule, port, klass, quanta);
  start_idle_port(setup, fabric, schedule, recordings, node, port, at_ps);
}

/// Give back the credit of a packet that has come into a switch by a lane and is gone.
inline void return_credit(const Setup& setup, Fabric& fabric, Schedule& schedule, Recordings& recordings,
                          SwitchNode& node, QueueId lane, std::int64_t bytes, Ps at_ps) {
  if (owe_credit(setup, fabric, schedule, lane, bytes))
    start_idle_port(setup, fabric, schedule, recordings, node, setup.port_of(lane), at_ps);
}

/// Resume every paused ingress that may resume; called after each departure while any is paused.
inline void test_resume(const Setup& setup, Fabric& fabric, Schedule& schedule, Recordings& recordings,
                        const SwitchView& view, Ps at_ps) {
  SwitchNode& node = view.node;
  std::size_t kept = 0;
  const std::int64_t threshold = share(view.row.alpha, free_bytes(node)) - view.row.xon_offset_bytes;
  for (std::size_t i = 0; i < node.paused.size(); ++i) {
    const QueueId place = node.paused[i];
    Ingress& ingress = fabric.ingresses[place];
    must_hold(ingress.paused, Invariant::pause_is_counted_once, "at_ps node port class", at_ps, view.id,
              setup.port_of(place), setup.class_of(place));
    const bool low = ingress.used + ingress.headroom_used <= view.row.reserve_bytes;
    if (!low && (ingress.headroom_used != 0 || ingress.used - view.row.reserve_bytes > threshold)) {
      node.paused[kept++] = place;
      continue;
    }
    must_hold(ingress.refresh_at_ps >= at_ps, Invariant::time_never_runs_back, "at_ps refresh_at_ps port class", at_ps,
              ingress.refresh_at_ps, setup.port_of(place), setup.class_of(place));
    fold_headroom(view, ingress);
    ingress.paused = false;
    ingress.refresh_at_ps = kOff;
    send_frame(setup, fabric, schedule, recordings, view.node, setup.port_of(place), setup.class_of(place), 0, at_ps);
  }
  fabric.paused_ingresses -= static_cast<std::int64_t>(node.paused.size() - kept);
  must_hold(std::cmp_greater_equal(fabric.paused_ingresses, kept), Invariant::pause_is_counted_once,
            "at_ps node listed counted", at_ps, view.id, kept, fabric.paused_ingresses);
  node.paused.resize(kept);
  node.in_order_for = static_cast<std::int32_t>(kept);
}

inline bool draws_mark(const Setup& setup, const Hosts& hosts, const SwitchRow& row, const Packet& packet, PortId port,
                       std::int64_t queue_bytes) {
  const std::int64_t kmin_bytes = setup.in.port_kmin_bytes[port];
  const std::int64_t kmax_bytes = setup.in.port_kmax_bytes[port];
  if (queue_bytes <= kmin_bytes) return false;
  if (queue_bytes >= kmax_bytes) return true;
  const std::uint64_t flow = hosts.queue_pairs[packet.queue_pair].flow;
  const std::uint64_t bits = draw(setup.in.seed, Stream::kEcnMark, flow, identity(packet), port.index());
  const double probability =
      row.pmax * static_cast<double>(queue_bytes - kmin_bytes) / static_cast<double>(kmax_bytes - kmin_bytes);
  return uniform(bits) < probability;
}

/// Write what the packet leaves behind at `port` into it, which makes it longer from here on.
inline void stamp_telemetry(const Setup& setup, const Fabric& fabric, PortId port, Packet* packet,
                            std::int64_t bytes_sent, Ps at_ps) {
  const std::size_t place = extension(packet).hops - std::size_t{1};  // it has counted this switch
  must_hold(extension(packet).hops > 0, Invariant::packets_conserved, "at_ps port queue_pair seq", at_ps, port,
            packet->queue_pair, packet->seq);
  if (place >= kHops) [[unlikely]]
    throw LimitError(
        "a packet has come to a ninth switch with in-band telemetry, and has room for what eight write, since a port"
        " selection, or routes that changed meanwhile, have sent it another way than a shortest one; take a port"
        " selection that makes fewer detours, or a congestion control and a path selection without telemetry");
  hops(packet, setup.wide)[place] =
      Hop::of(at_ps, queued_bytes(setup, fabric, port), bytes_sent, fabric.rates.of(port), port);
  packet->bytes = static_cast<std::uint16_t>(packet->bytes + setup.in.transport.telemetry_hop_bytes);
}

/// Measure the load of `port`, and write it into the packet if no port before had a larger one.
inline void write_load(const Setup& setup, Fabric& fabric, const Hosts& hosts, PortId port, Packet* packet,
                       std::int64_t bytes_sent, Ps at_ps) {
  PortLoad& load = fabric.loads[port];
  load.measure(at_ps, queued_bytes(setup, fabric, port), bytes_sent, fabric.rate_bps[port],
               std::max<Ps>(setup.in.fabric_base_rtt_ps, 1));
  const double units = units_of(load.load);
  std::uint8_t& largest = wide(packet).path_load;
  if (units <= kCodedLoads[largest]) return;  // its code is not larger, however it is rounded
  const std::uint64_t flow = hosts.queue_pairs[packet->queue_pair].flow;
  const std::uint64_t bits = draw(setup.in.seed, Stream::kPathLoad, flow, identity(*packet), port.index());
  largest = std::max(largest, code_of(units, bits));
}

/// Start what the port has to send at `at_ps`; something is ready and the port is idle.
inline void start_switch_port(State& s, const SwitchView& view, PortId port, Ps at_ps) {
  Port& out = s.fabric.ports[port];
  if (out.frame_waits) [[unlikely]] {
    start_frame(s.setup, s.fabric, s.schedule, s.recordings, port, at_ps);
  } else {
    const TrafficClass klass = choose_class(s.setup, s.fabric, view.row, port, at_ps);
    Queue& queue = s.fabric.queues[s.setup.at(port, klass)];
    Packet* packet = queue.departure;
    const std::int32_t bytes = packet->bytes;
    queue.bytes -= bytes;
    queue.departure = s.fabric.pool.next(packet);
    __builtin_prefetch(queue.departure);
    if (queue.departure == queue.tail) {
      must_hold(queue.bytes == 0, Invariant::queue_holds_what_it_counts, "at_ps port class queue_bytes", at_ps, port,
                klass, queue.bytes);
      out.pending = static_cast<std::uint16_t>(out.pending & ~bit_of(klass));
      if (contains(view.weighted, klass)) s.fabric.queue_controls[s.setup.at(port, klass)].deficit = 0;
    }
    release(view, view.ingresses[LocalQueueId(packet->ingress)], bytes);
    if (view.watches_departures && is_whole_data(*packet)) [[unlikely]] {
      if (view.row.mark_at_dequeue != 0 && draws_mark(s.setup, s.hosts, view.row, *packet, port, queue.bytes)) {
        packet->flags = with(packet->flags, kMarked);
        s.recordings.port_counters[port].marks += 1;
        s.recordings.note(at_ps, EventKind::kMark, port.value, klass.value);
      }
      if (s.setup.in.has_telemetry && view.row.telemetry != 0)
        stamp_telemetry(s.setup, s.fabric, port, packet, out.bytes, at_ps);
      if (s.setup.in.has_path_load && view.row.telemetry != 0)
        write_load(s.setup, s.fabric, s.hosts, port, packet, out.bytes, at_ps);
    }
    if (view.watches_departures && !s.recordings.captured.empty()) [[unlikely]]
      capture_packet(s.setup, s.fabric, s.hosts, s.recordings, port, klass, packet, at_ps);
    transmit(s.fabric, s.schedule, out, packet, at_ps);
    if (view.node.in_order_for != 0) [[unlikely]] {
      if (s.setup.link_credits) {
        take_credit(s.setup, s.fabric, port, klass, packet->bytes);
        test_credit(s.setup, s.fabric, view.row, port, klass);
        return_credit(s.setup, s.fabric, s.schedule, s.recordings, view.node, lane_of(s.setup, view.id, *packet), bytes,
                      at_ps);
      } else {
        test_resume(s.setup, s.fabric, s.schedule, s.recordings, view, at_ps);
      }
    }
  }
  if (out.pending == 0 && !out.frame_waits) s.schedule.set_outbound(LocalPort(port - view.first), view.id, false);
  set_due(s.schedule, view.node, port, switch_due(s.setup, s.fabric, out, port));
}

inline void drain_port(State& s, const SwitchView& view, PortId port, Ps at_ps) {
  while (s.schedule.due_at_ps[port] <= at_ps) start_switch_port(s, view, port, s.schedule.due_at_ps[port]);
}

/// Bring a whole switch up to date: in order of time and port where departures have effects, else port by port.
inline void drain_switch(State& s, const SwitchView& view, Ps at_ps) {
  const PortId begin = view.first;
  const PortId end = s.setup.end_port(view.id);
  while (view.node.in_order_for != 0) {
    if (view.node.next_due_at_ps > at_ps) return;
    Ps best = kNeverPs;
    PortId chosen;
    for (const PortId port : id_range(begin, end)) {
      const Ps due = s.schedule.due_at_ps[port];
      chosen = due < best ? port : chosen;
      best = due < best ? due : best;
    }
    view.node.next_due_at_ps = best;
    if (best > at_ps) return;
    start_switch_port(s, view, chosen, best);
  }
  const std::size_t first_word = s.schedule.mask_base[view.id];
  const std::size_t words = s.schedule.mask_base[view.id + 1] - first_word;
  for (std::size_t word = 0; word < words; ++word)
    for (std::uint64_t rest = s.schedule.outbound_mask[first_word + word]; rest != 0; rest &= rest - 1)
      drain_port(s, view, begin + LocalPort(lowest_place(word, rest)), at_ps);
}

}  // namespace weftwork
