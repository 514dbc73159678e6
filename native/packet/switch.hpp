/// A switch: shared buffer, pauses, marks, scheduling. Departures are lazy: a port is brought up to date only where
/// somebody looks at it. That stays exact because the checks of the shared buffer are one-sided: counters
/// over-estimate, and only if a check would fire is the whole switch brought up to date and checked again. While an
/// ingress is paused every departure may resume it, so then the switch is kept up to date in order of time and port.
/// Source of the dynamic threshold: Choudhury and Hahne, IEEE/ACM ToN 6(2), 1998, doi:10.1109/90.664262.
#pragma once
#include <bit>

#include "packet/flow_control.hpp"
#include "packet/hashing.hpp"
#include "packet/line.hpp"
#include "packet/loss.hpp"
#include "packet/paths.hpp"
#include "packet/step_calls.hpp"

namespace weftwork {

struct SwitchView {
  SwitchNode& node;
  const SwitchRow& row;
  IdSpan<LocalQueueId, Ingress> ingresses;
  IdSpan<LocalQueueId, Packet*> inbound;  // next packet on the wire towards the port
  PortId first;                           // id of its first port
  NodeId id;
  std::uint32_t weighted;  // classes that share a port by weight
  bool marks_or_stamps;    // when a packet departs
};

inline SwitchView switch_view(State& s, NodeId node) {
  SwitchNode& record = s.switches[s.switch_of_node[node]];
  const SwitchRow& row = s.in.switches[record.device];
  const PortId first = s.first_port(node);
  const QueueId first_queue = s.at(first, TrafficClass(0));
  const std::size_t queues = s.ports_of(node).size() << s.class_shift;
  return {record,
          row,
          IdSpan<LocalQueueId, Ingress>({&s.ingresses[first_queue], queues}),
          IdSpan<LocalQueueId, Packet*>({&s.inbound[first_queue], queues}),
          first,
          node,
          record.weighted,
          row.mark_at_dequeue != 0 || (s.in.has_telemetry && row.telemetry != 0)};
}

/// When the port can start something next.
[[gnu::always_inline]] inline Ps switch_due(const State& s, const Port& out, PortId port) {
  if (out.pending != 0 && (out.pending & out.paused) == 0) [[likely]]
    return out.free_at_ps;  // a dead port has nothing waiting
  if (out.frame_waits) return out.free_at_ps;
  Ps due = kNeverPs;
  for (std::uint32_t rest = out.pending; rest != 0; rest &= rest - 1) {
    const QueueControl& queue = s.queue_controls[s.at(port, lowest(rest))];
    due = std::min(due, std::max(out.free_at_ps, queue.paused_until_ps));
  }
  return due;
}

/// Note when a port of a switch can start something next.
[[gnu::always_inline]] inline void set_due(State& s, SwitchNode& node, PortId port, Ps due_ps) {
  s.due_at_ps[port] = due_ps;
  node.next_due_at_ps = std::min(node.next_due_at_ps, due_ps);
}

/// Which class the port serves at `at_ps`; at least one is ready.
inline TrafficClass choose_class(State& s, const SwitchRow& row, PortId port, Ps at_ps) {
  Port& out = s.ports[port];
  std::uint32_t ready = out.pending;
  if ((out.pending & out.paused) != 0) {
    for (std::uint32_t rest = out.pending & out.paused; rest != 0; rest &= rest - 1) {
      const TrafficClass klass = lowest(rest);
      if (s.queue_controls[s.at(port, klass)].paused_until_ps > at_ps) ready &= ~bit_of(klass);
    }
  }
  if ((ready & (ready - 1)) == 0) return lowest(ready);
  const auto weight = [&](TrafficClass klass) { return row.weight[klass.index()]; };
  for (TrafficClass klass(s.class_count - 1); !klass.is_none(); klass = klass - 1)  // strict ones, the highest first
    if (contains(ready, klass) && weight(klass) == 0) return klass;
  for (;;) {
    const TrafficClass klass(out.current);
    if (weight(klass) != 0 && contains(ready, klass)) {
      QueueControl& queue = s.queue_controls[s.at(port, klass)];
      const std::int64_t bytes = s.queues[s.at(port, klass)].departure->bytes;
      if (queue.deficit >= bytes) {
        queue.deficit -= bytes;
        return klass;
      }
    }
    TrafficClass next = klass;
    do {
      next = next + 1 == TrafficClass(s.class_count) ? TrafficClass(0) : next + 1;
    } while (weight(next) == 0);
    out.current = static_cast<std::uint16_t>(next.value);
    if (contains(ready, next)) s.queue_controls[s.at(port, next)].deficit += weight(next) * 1024;
  }
}

inline std::int64_t above(std::int64_t value, std::int64_t limit) {
  return value > limit ? value - limit : 0;
}

/// Give back what a packet of (ingress, class) holds.
inline void release(const SwitchView& view, Ingress& ingress, std::int32_t bytes) {
  if (ingress.headroom_used > 0) {
    const std::int32_t taken = std::min(ingress.headroom_used, bytes);
    ingress.headroom_used -= taken;
    bytes -= taken;
  }
  const std::int64_t reserve = view.row.reserve_bytes;
  const std::int64_t before = above(ingress.used, reserve);
  ingress.used -= bytes;
  view.node.shared_used -= before - above(ingress.used, reserve);
}

/// From now on what the ingress holds in its headroom counts as used.
inline void fold_headroom(const SwitchView& view, Ingress& ingress) {
  const std::int64_t reserve = view.row.reserve_bytes;
  const std::int64_t before = above(ingress.used, reserve);
  ingress.used += ingress.headroom_used;
  ingress.headroom_used = 0;
  view.node.shared_used += above(ingress.used, reserve) - before;
}

inline std::int64_t free_bytes(const SwitchNode& node) {
  return node.shared_bytes > node.shared_used ? node.shared_bytes - node.shared_used : 0;
}

inline std::int64_t share(double factor, std::int64_t bytes) {
  return static_cast<std::int64_t>(factor * static_cast<double>(bytes));
}

/// Send a flow-control frame from a port of a switch: at once if the port is idle.
inline void send_frame(State& s, SwitchNode& node, PortId port, TrafficClass klass, std::int64_t quanta, Ps at_ps) {
  queue_frame(s, port, klass, quanta);
  const Port& out = s.ports[port];
  if (out.free_at_ps <= at_ps) start_frame(s, port, at_ps);
  set_due(s, node, port, switch_due(s, out, port));
}

/// Resume every paused ingress that may resume; called after each departure while any is paused.
inline void test_resume(State& s, const SwitchView& view, Ps at_ps) {
  SwitchNode& node = view.node;
  std::size_t kept = 0;
  const std::int64_t threshold = share(view.row.alpha, free_bytes(node)) - view.row.xon_offset_bytes;
  for (std::size_t i = 0; i < node.paused.size(); ++i) {
    const QueueId place = node.paused[i];
    Ingress& ingress = s.ingresses[place];
    const bool low = ingress.used + ingress.headroom_used <= view.row.reserve_bytes;
    if (!low && (ingress.headroom_used != 0 || ingress.used - view.row.reserve_bytes > threshold)) {
      node.paused[kept++] = place;
      continue;
    }
    fold_headroom(view, ingress);
    ingress.paused = false;
    ingress.refresh_at_ps = kOff;
    send_frame(s, view.node, s.port_of(place), s.class_of(place), 0, at_ps);
  }
  s.paused_ingresses -= static_cast<std::int64_t>(node.paused.size() - kept);
  node.paused.resize(kept);
  node.paused_ingresses = static_cast<std::int32_t>(kept);
}

inline bool draws_mark(const State& s, const SwitchRow& row, const Packet& packet, PortId port,
                       std::int64_t queue_bytes) {
  const std::int64_t kmin_bytes = s.in.port_kmin_bytes[port];
  const std::int64_t kmax_bytes = s.in.port_kmax_bytes[port];
  if (queue_bytes <= kmin_bytes) return false;
  if (queue_bytes >= kmax_bytes) return true;
  const std::uint64_t flow = s.queue_pairs[packet.queue_pair].flow;
  const std::uint64_t bits = draw(s.in.seed, Stream::kEcnMark, flow, identity(packet), port.index());
  const double probability =
      row.pmax * static_cast<double>(queue_bytes - kmin_bytes) / static_cast<double>(kmax_bytes - kmin_bytes);
  return uniform(bits) < probability;
}

inline void stamp_telemetry(State& s, PortId port, Packet* packet, std::int64_t bytes_sent, Ps at_ps) {
  Extension& ext = extension(packet);
  if (ext.hops >= kHops) return;
  hops(packet, s.wide)[ext.hops++] = Hop::of(at_ps, s.queued_bytes(port), bytes_sent, s.rate_bps[port]);
}

/// Start what the port has to send at `at_ps`; something is ready and the port is idle.
inline void start_switch_port(State& s, const SwitchView& view, PortId port, Ps at_ps) {
  Port& out = s.ports[port];
  if (out.frame_waits) [[unlikely]] {
    start_frame(s, port, at_ps);
  } else {
    const TrafficClass klass = choose_class(s, view.row, port, at_ps);
    Queue& queue = s.queues[s.at(port, klass)];
    Packet* packet = queue.departure;
    const std::int32_t bytes = packet->bytes;
    queue.bytes -= bytes;
    queue.departure = s.pool.next(packet);
    __builtin_prefetch(queue.departure);
    if (queue.departure == queue.tail) {
      out.pending = static_cast<std::uint16_t>(out.pending & ~bit_of(klass));
      if (contains(view.weighted, klass)) s.queue_controls[s.at(port, klass)].deficit = 0;
    }
    release(view, view.ingresses[s.at(LocalPort(packet->ingress), klass)], bytes);
    if (packet->kind == PacketKind::kData && view.marks_or_stamps) [[unlikely]] {
      if (view.row.mark_at_dequeue != 0 && draws_mark(s, view.row, *packet, port, queue.bytes)) {
        packet->flags = with(packet->flags, kMarked);
        s.port_counters[port].marks += 1;
        s.note(at_ps, EventKind::kMark, port.value, klass.value);
      }
      if (s.in.has_telemetry && view.row.telemetry != 0) stamp_telemetry(s, port, packet, out.bytes, at_ps);
    }
    transmit(s, out, packet, at_ps);
    if (view.node.paused_ingresses != 0) [[unlikely]]
      test_resume(s, view, at_ps);
  }
  if (out.pending == 0 && !out.frame_waits) s.set_outbound(port, view.id, false);
  set_due(s, view.node, port, switch_due(s, out, port));
}

inline void drain_port(State& s, const SwitchView& view, PortId port, Ps at_ps) {
  while (s.due_at_ps[port] <= at_ps) start_switch_port(s, view, port, s.due_at_ps[port]);
}

/// Bring a whole switch up to date: in order of time and port while an ingress is paused, else port by port.
inline void drain_switch(State& s, const SwitchView& view, Ps at_ps) {
  const PortId begin = view.first;
  const PortId end = s.end_port(view.id);
  while (view.node.paused_ingresses != 0) {
    if (view.node.next_due_at_ps > at_ps) return;
    Ps best = kNeverPs;
    PortId chosen;
    for (const PortId port : id_range(begin, end)) {
      const Ps due = s.due_at_ps[port];
      chosen = due < best ? port : chosen;
      best = due < best ? due : best;
    }
    view.node.next_due_at_ps = best;
    if (best > at_ps) return;
    start_switch_port(s, view, chosen, best);
  }
  const std::size_t first_word = s.mask_base[view.id];
  const std::size_t words = s.mask_base[view.id + 1] - first_word;
  for (std::size_t word = 0; word < words; ++word)
    for (std::uint64_t rest = s.outbound_mask[first_word + word]; rest != 0; rest &= rest - 1)
      drain_port(s, view, begin + LocalPort(lowest_place(word, rest)), at_ps);
}

/// Queues and ingresses count in 32 bits.
inline void refuse_above_limit(std::int32_t bytes) {
  constexpr std::int32_t kMostBytes = 1 << 30;
  if (bytes > kMostBytes) [[unlikely]]
    throw LimitError("a queue of a switch holds more than 1 GiB; take a smaller buffer, or flow control");
}

enum class Admission : std::uint8_t { kShared, kHeadroom, kBufferFull, kEgressThreshold, kHeadroomFull };

struct Verdict {
  Admission admission;
  bool pause;
};

/// What would happen to `bytes` from an ingress towards a queue, without changing anything.
inline Verdict judge(const SwitchView& view, const Ingress& ingress, std::int64_t headroom, const Queue& queue,
                     std::int64_t bytes, bool lossless) {
  const SwitchRow& row = view.row;
  if (lossless && ingress.paused)
    return {ingress.headroom_used + bytes <= headroom ? Admission::kHeadroom : Admission::kHeadroomFull, false};
  const std::int64_t growth = above(ingress.used + bytes, row.reserve_bytes) - above(ingress.used, row.reserve_bytes);
  const std::int64_t shared_used = view.node.shared_used + growth;
  const bool full = shared_used > view.node.shared_bytes;
  if (!lossless) {
    const std::int64_t over = queue.bytes + bytes - row.reserve_bytes;
    if (over > 0 && over > share(row.egress_alpha, free_bytes(view.node))) return {Admission::kEgressThreshold, false};
    return {full ? Admission::kBufferFull : Admission::kShared, false};
  }
  if (full)
    return ingress.headroom_used + bytes <= headroom ? Verdict{Admission::kHeadroom, true}
                                                     : Verdict{Admission::kBufferFull, false};
  const std::int64_t over = ingress.used + bytes - row.reserve_bytes;
  const bool pause =
      (over > 0 && over > share(row.alpha, view.node.shared_bytes - shared_used)) || ingress.headroom_used > 0;
  return {Admission::kShared, pause};
}

/// From now on packets follow this table; also called when a link or a rate has changed.
inline void use_routes(State& s, RouteTableId table) {
  s.route_table = table;
  s.routes = Routes(s.in.routes[table], s.in.node_kind.size());
  s.candidates.resize(s.routes.candidates().size());
  for (const CandidateId candidate : s.candidates.ids()) {
    const PortId port = s.routes.port(candidate);
    s.candidates[candidate] = {0, s.rate_bps[port], s.routes.weight(candidate), s.local_port(port).value, 0, 0, 1};
  }
}

/// Ask port selection; the group has several candidates.
inline PortId choose_port(State& s, const SwitchView& view, CandidateId first, std::int32_t count, Packet* packet,
                          TrafficClass klass, Ps at_ps) {
  const PortPolicy& policy = s.in.port;
  const HashFunction& function = s.hash_functions[view.node.device];
  const std::uint32_t hash = switch_hash(s, function, packet);
  if (policy.plain_ecmp)
    return s.routes.port(first + static_cast<std::int32_t>(hash % static_cast<std::uint32_t>(count)));
  const std::uint64_t flow = s.queue_pairs[packet->queue_pair].flow;
  const std::uint64_t place = view.id.index();
  PortSignal& signal = s.port_signal;
  signal.now_ps = at_ps;
  signal.hash = static_cast<std::int64_t>(hash);
  signal.draw = static_cast<std::int64_t>(draw(s.in.seed, Stream::kPortChoice, flow, identity(*packet), place) >> 2);
  signal.bytes = packet->bytes;
  signal.candidates = count;
  signal.is_data = packet->kind == PacketKind::kData ? 1 : 0;
  signal.destination = s.in.destination_number[packet->destination_port];
  signal.stride = s.in.port_stride[s.routes.port(first)];
  signal.choice = 0;
  Candidate* candidates = &s.candidates[first];
  if (policy.queue)
    for (const CandidateId candidate : id_range(first, first + count)) {
      const PortId port = s.routes.port(candidate);
      drain_port(s, view, port, at_ps);
      s.candidates[candidate].queue_bytes = s.queues[s.at(port, klass)].bytes;
    }
  auto* record = reinterpret_cast<std::uint8_t*>(view.node.port_policy.data());
  count_call(
      s, "port_selection", false,
      {{record, policy.state.size()}, {}, bytes_of(&signal), bytes_of(candidates, static_cast<std::size_t>(count))});
  const std::int32_t status =
      policy.step(const_cast<std::uint8_t*>(policy.params.data()), record, nullptr, &signal, candidates);
  if (status != 0 || signal.choice < 0 || signal.choice >= count) [[unlikely]]
    stop_with(s, "port_selection", false, {});
  return s.routes.port(first + static_cast<std::int32_t>(signal.choice));
}

/// The egress port of a packet, or none.
[[gnu::always_inline]] inline PortId route(State& s, const SwitchView& view, Packet* packet, TrafficClass klass,
                                           Ps at_ps) {
  const PortId destination = packet->destination_port;
  const GroupId group = s.routes.group(view.id, s.in.attachment[destination]);
  if (group == Routes::kAttached) return s.in.port_peer[destination];
  if (group.is_none()) return PortId::none();
  const CandidateId first = s.routes.first(group);
  const std::int32_t count = s.routes.first(group + 1) - first;
  if (count == 1) return s.routes.port(first);
  return choose_port(s, view, first, count, packet, klass, at_ps);
}

inline void pause_ingress(State& s, const SwitchView& view, PortId port, TrafficClass klass, Ps at_ps) {
  const QueueId place = s.at(port, klass);
  s.ingresses[place].paused = true;
  auto& paused = view.node.paused;
  paused.insert(std::lower_bound(paused.begin(), paused.end(), place), place);
  view.node.paused_ingresses += 1;
  s.paused_ingresses += 1;
  schedule_refresh(s, view.id, port, klass, view.row.pause_quanta, at_ps);
  send_frame(s, view.node, port, klass, view.row.pause_quanta, at_ps);
}

/// Admit a packet the slow way: bring the switch up to date, decide, count what is dropped. True if it is admitted.
[[gnu::noinline]] inline bool admit(State& s, const SwitchView& view, PortId port, PortId target, TrafficClass klass,
                                    std::int64_t bytes, bool lossless, Ps at_ps) {
  drain_switch(s, view, at_ps);
  Ingress& ingress = s.ingresses[s.at(port, klass)];
  const Queue& queue = s.queues[s.at(target, klass)];
  const std::int64_t headroom = s.in.port_headroom_bytes[port];
  const Verdict verdict = judge(view, ingress, headroom, queue, bytes, lossless);
  switch (verdict.admission) {
    case Admission::kShared: {
      const std::int64_t before = above(ingress.used, view.row.reserve_bytes);
      ingress.used += static_cast<std::int32_t>(bytes);
      view.node.shared_used += above(ingress.used, view.row.reserve_bytes) - before;
      break;
    }
    case Admission::kHeadroom:
      ingress.headroom_used += static_cast<std::int32_t>(bytes);
      break;
    case Admission::kBufferFull:
      drop(s, port, s.count.drop_buffer_full, at_ps);
      return false;
    case Admission::kEgressThreshold:
      drop(s, target, s.count.drop_egress_threshold, at_ps);
      return false;
    case Admission::kHeadroomFull:
      drop(s, port, s.count.drop_headroom_full, at_ps);
      return false;
  }
  ingress.max_bytes = std::max(ingress.max_bytes, ingress.used + ingress.headroom_used);
  refuse_above_limit(ingress.max_bytes);
  if (verdict.pause) pause_ingress(s, view, port, klass, at_ps);
  return true;
}

/// Admit a packet if no check of the buffer fires even on counters that over-estimate; false: ask `admit`.
[[gnu::always_inline]] inline bool admits_at_once(const SwitchView& view, Ingress& ingress, const Queue& queue,
                                                  std::int64_t bytes, bool lossless) {
  const SwitchRow& row = view.row;
  const std::int64_t used = ingress.used + bytes;
  const std::int64_t over = above(used, row.reserve_bytes);
  const std::int64_t shared_used = view.node.shared_used + over - above(ingress.used, row.reserve_bytes);
  const std::int64_t left = view.node.shared_bytes - shared_used;
  if (left < 0 || used + ingress.headroom_used > ingress.max_bytes) return false;
  if (lossless) {
    if (ingress.paused || ingress.headroom_used != 0 || (over > 0 && over > share(row.alpha, left))) return false;
  } else if (queue.bytes + bytes > row.reserve_bytes) {
    return false;
  }
  ingress.used = static_cast<std::int32_t>(used);
  view.node.shared_used = shared_used;
  return true;
}

/// A packet has arrived at a switch. The reader's position is the caller's business.
[[gnu::always_inline]] inline void arrive_at_switch(State& s, const SwitchView& view, LocalPort local,
                                                    TrafficClass klass, Packet* packet, Ps at_ps) {
  const PortId port = view.first + local;
  if (lost_on_link(s, port, *packet, at_ps)) return;
  if (view.node.paused_ingresses != 0) [[unlikely]]
    drain_switch(s, view, at_ps);
  packet->ingress = static_cast<std::uint16_t>(local.value);
  const PortId target = route(s, view, packet, klass, at_ps);
  if (target.is_none()) [[unlikely]] {
    drop(s, port, s.count.drop_no_route, at_ps);
    return;
  }
  Port& out = s.ports[target];
  if (!out.up) [[unlikely]] {
    drop(s, target, s.count.drop_link_down, at_ps);
    return;
  }
  drain_port(s, view, target, at_ps);

  const bool lossless = contains(s.lossless, klass);
  Queue& queue = s.queues[s.at(target, klass)];
  const std::int32_t bytes = packet->bytes;
  if (!admits_at_once(view, view.ingresses[s.at(local, klass)], queue, bytes, lossless) &&
      !admit(s, view, port, target, klass, bytes, lossless, at_ps))
    return;
  if (packet->kind == PacketKind::kData && view.row.mark_at_dequeue == 0 &&
      draws_mark(s, view.row, *packet, target, queue.bytes)) {
    packet->flags = with(packet->flags, kMarked);
    s.port_counters[target].marks += 1;
    s.note(at_ps, EventKind::kMark, target.value, klass.value);
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
  const auto mask = static_cast<std::uint16_t>(bit_of(klass));
  if ((out.pending & mask) != 0) return;  // the port is busy or paused, and knows when it goes on
  if (out.pending == 0 && !out.frame_waits) s.set_outbound(target, view.id, true);
  out.pending = static_cast<std::uint16_t>(out.pending | mask);
  const Ps due = switch_due(s, out, target);
  set_due(s, view.node, target, due);
  if (due <= at_ps) start_switch_port(s, view, target, at_ps);
}

}  // namespace weftwork
