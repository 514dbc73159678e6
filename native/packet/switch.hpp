/// A switch: shared buffer, pauses, marks, scheduling. Departures are lazy: a port is brought up to date only where
/// somebody looks at it. That stays exact because the checks of the shared buffer are one-sided: counters
/// over-estimate, and only if a check would fire is the whole switch brought up to date and checked again. While an
/// ingress is paused every departure may resume it, so then the switch is kept up to date in order of time and port.
/// Source of the dynamic threshold: Choudhury and Hahne, IEEE/ACM ToN 6(2), 1998, doi:10.1109/90.664262.
#pragma once
#include <bit>

#include "packet/flow_control.hpp"
#include "packet/hashing.hpp"
#include "packet/loss.hpp"
#include "packet/paths.hpp"

namespace weftwork {

struct SwitchView {
  SwitchNode& node;
  const SwitchRow& row;
  Ingress* ingresses;  // by port of this switch and class
  Packet** inbound;    // likewise: next packet on the wire towards the port
  std::int32_t first;  // id of its first port
  std::int32_t id;
  std::uint32_t weighted;  // classes that share a port by weight
  bool marks_or_stamps;    // when a packet departs
};

inline SwitchView switch_view(State& s, std::int32_t node) {
  SwitchNode& record = s.switches[static_cast<std::size_t>(s.switch_of_node[static_cast<std::size_t>(node)])];
  const SwitchRow& row = s.in.switches[static_cast<std::size_t>(record.device)];
  const std::int32_t first = s.first_port(node);
  return {record,
          row,
          &s.ingresses[s.at(first, 0)],
          &s.inbound[s.at(first, 0)],
          first,
          node,
          record.weighted,
          row.mark_at_dequeue != 0 || (s.in.congestion.telemetry && row.telemetry != 0)};
}

/// When the port can start something next.
[[gnu::always_inline]] inline Ps switch_due(const State& s, const Port& out, std::int32_t port) {
  if (out.pending != 0 && (out.pending & out.paused) == 0) [[likely]]
    return out.free_at_ps;  // a dead port has nothing waiting
  if (out.frame_waits) return out.free_at_ps;
  Ps due = kNeverPs;
  for (std::uint32_t rest = out.pending; rest != 0; rest &= rest - 1) {
    const QueueControl& queue = s.queue_controls[s.at(port, std::countr_zero(rest))];
    due = std::min(due, std::max(out.free_at_ps, queue.paused_until_ps));
  }
  return due;
}

/// Note when a port of a switch can start something next.
[[gnu::always_inline]] inline void set_due(State& s, SwitchNode& node, std::int32_t port, Ps due_ps) {
  s.due_at_ps[static_cast<std::size_t>(port)] = due_ps;
  node.next_due_at_ps = std::min(node.next_due_at_ps, due_ps);
}

/// Which class the port serves at `at_ps`; at least one is ready.
inline std::int32_t choose_class(State& s, const SwitchRow& row, std::int32_t port, Ps at_ps) {
  Port& out = s.ports[static_cast<std::size_t>(port)];
  std::uint32_t ready = out.pending;
  if ((out.pending & out.paused) != 0) {
    for (std::uint32_t rest = out.pending & out.paused; rest != 0; rest &= rest - 1) {
      const int klass = std::countr_zero(rest);
      if (s.queue_controls[s.at(port, klass)].paused_until_ps > at_ps) ready &= ~(1U << static_cast<unsigned>(klass));
    }
  }
  if ((ready & (ready - 1)) == 0) return std::countr_zero(ready);
  for (std::int32_t klass = s.classes - 1; klass >= 0; --klass)  // strict classes, the highest priority first
    if ((ready >> static_cast<unsigned>(klass) & 1U) != 0 && row.weight[klass] == 0) return klass;
  for (;;) {
    const std::int32_t klass = out.current;
    if (row.weight[klass] != 0 && (ready >> static_cast<unsigned>(klass) & 1U) != 0) {
      QueueControl& queue = s.queue_controls[s.at(port, klass)];
      const std::int64_t bytes = s.queues[s.at(port, klass)].departure->bytes;
      if (queue.deficit >= bytes) {
        queue.deficit -= bytes;
        return klass;
      }
    }
    std::int32_t next = klass;
    do {
      next = next + 1 == s.classes ? 0 : next + 1;
    } while (row.weight[next] == 0);
    out.current = static_cast<std::uint16_t>(next);
    if ((ready >> static_cast<unsigned>(next) & 1U) != 0)
      s.queue_controls[s.at(port, next)].deficit += row.weight[next] * 1024;
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
inline void send_frame(State& s, SwitchNode& node, std::int32_t port, std::int32_t klass, std::int64_t quanta,
                       Ps at_ps) {
  queue_frame(s, port, klass, quanta);
  const Port& out = s.ports[static_cast<std::size_t>(port)];
  if (out.free_at_ps <= at_ps) start_frame(s, port, at_ps);
  set_due(s, node, port, switch_due(s, out, port));
}

/// Resume every paused ingress that may resume; called after each departure while any is paused.
inline void test_resume(State& s, const SwitchView& view, Ps at_ps) {
  SwitchNode& node = view.node;
  std::size_t kept = 0;
  const std::int64_t threshold = share(view.row.alpha, free_bytes(node)) - view.row.xon_offset_bytes;
  for (std::size_t i = 0; i < node.paused.size(); ++i) {
    const std::int32_t index = node.paused[i];
    Ingress& ingress = s.ingresses[static_cast<std::size_t>(index)];
    const bool low = ingress.used + ingress.headroom_used <= view.row.reserve_bytes;
    if (!low && (ingress.headroom_used != 0 || ingress.used - view.row.reserve_bytes > threshold)) {
      node.paused[kept++] = index;
      continue;
    }
    fold_headroom(view, ingress);
    ingress.paused = false;
    ingress.refresh_at_ps = kOff;
    const std::int32_t port = index >> s.class_shift;
    const std::int32_t klass = index - (port << s.class_shift);
    send_frame(s, view.node, port, klass, 0, at_ps);
  }
  node.paused.resize(kept);
  node.paused_ingresses = static_cast<std::int32_t>(kept);
}

inline bool draws_mark(const State& s, const SwitchRow& row, const Packet& packet, std::int32_t port,
                       std::int64_t queue_bytes) {
  if (queue_bytes <= row.kmin_bytes) return false;
  if (queue_bytes >= row.kmax_bytes) return true;
  const std::uint64_t flow = s.queue_pairs[static_cast<std::size_t>(packet.queue_pair)].flow;
  const std::uint64_t bits =
      draw(s.in.seed, Stream::kEcnMark, flow, identity(packet), static_cast<std::uint64_t>(port));
  const double probability = row.pmax * static_cast<double>(queue_bytes - row.kmin_bytes) /
                             static_cast<double>(row.kmax_bytes - row.kmin_bytes);
  return uniform(bits) < probability;
}

inline void stamp_telemetry(State& s, std::int32_t port, Packet* packet, std::int64_t bytes_sent, Ps at_ps) {
  Extension& ext = extension(packet);
  if (ext.hops >= kHops) return;
  hops(packet)[ext.hops++] =
      Hop::of(at_ps, s.queued_bytes(port), bytes_sent, s.rate_bps[static_cast<std::size_t>(port)]);
}

/// Start what the port has to send at `at_ps`; something is ready and the port is idle.
inline void start_switch_port(State& s, const SwitchView& view, std::int32_t port, Ps at_ps) {
  Port& out = s.ports[static_cast<std::size_t>(port)];
  if (out.frame_waits) [[unlikely]] {
    start_frame(s, port, at_ps);
  } else {
    const std::int32_t klass = choose_class(s, view.row, port, at_ps);
    Queue& queue = s.queues[s.at(port, klass)];
    Packet* packet = queue.departure;
    const std::int32_t bytes = packet->bytes;
    queue.bytes -= bytes;
    queue.departure = s.pool.next(packet);
    __builtin_prefetch(queue.departure);
    if (queue.departure == queue.tail) {
      out.pending = static_cast<std::uint16_t>(out.pending & ~(1U << static_cast<unsigned>(klass)));
      if ((view.weighted >> static_cast<unsigned>(klass) & 1U) != 0) s.queue_controls[s.at(port, klass)].deficit = 0;
    }
    release(view, view.ingresses[(packet->ingress << s.class_shift) + klass], bytes);
    if (packet->kind == PacketKind::kData && view.marks_or_stamps) [[unlikely]] {
      if (view.row.mark_at_dequeue != 0 && draws_mark(s, view.row, *packet, port, queue.bytes)) {
        packet->flags = with(packet->flags, kMarked);
        s.port_counters[static_cast<std::size_t>(port)].marks += 1;
        s.note(at_ps, EventKind::kMark, port, klass);
      }
      if (s.in.congestion.telemetry && view.row.telemetry != 0) stamp_telemetry(s, port, packet, out.bytes, at_ps);
    }
    out.frames += 1;
    out.bytes += bytes;
    out.free_at_ps = at_ps + s.serialisation(out, bytes);
    packet->at_ps = out.free_at_ps + out.delay_ps;
    s.announce(out, packet->at_ps);
    if (view.node.paused_ingresses != 0) [[unlikely]]
      test_resume(s, view, at_ps);
  }
  if (out.pending == 0 && !out.frame_waits) s.set_outbound(port, view.id, false);
  set_due(s, view.node, port, switch_due(s, out, port));
}

inline void drain_port(State& s, const SwitchView& view, std::int32_t port, Ps at_ps) {
  while (s.due_at_ps[static_cast<std::size_t>(port)] <= at_ps)
    start_switch_port(s, view, port, s.due_at_ps[static_cast<std::size_t>(port)]);
}

/// Bring a whole switch up to date: in order of time and port while an ingress is paused, else port by port.
inline void drain_switch(State& s, const SwitchView& view, Ps at_ps) {
  const std::int32_t begin = view.first;
  const std::int32_t end = s.end_port(view.id);
  while (view.node.paused_ingresses != 0) {
    if (view.node.next_due_at_ps > at_ps) return;
    Ps best = kNeverPs;
    std::int32_t chosen = -1;
    for (std::int32_t port = begin; port < end; ++port) {
      const Ps due = s.due_at_ps[static_cast<std::size_t>(port)];
      chosen = due < best ? port : chosen;
      best = due < best ? due : best;
    }
    view.node.next_due_at_ps = best;
    if (best > at_ps) return;
    start_switch_port(s, view, chosen, best);
  }
  const std::size_t first_word = s.mask_base[static_cast<std::size_t>(view.id)];
  const std::size_t words = s.mask_base[static_cast<std::size_t>(view.id) + 1] - first_word;
  for (std::size_t word = 0; word < words; ++word)
    for (std::uint64_t rest = s.outbound_mask[first_word + word]; rest != 0; rest &= rest - 1)
      drain_port(s, view, begin + static_cast<std::int32_t>(word * 64) + std::countr_zero(rest), at_ps);
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
inline void use_routes(State& s, const RouteTable& table) {
  s.routes = &table;
  s.attachments = table.group_of.size() / s.in.node_kind.size();
  s.candidates.resize(table.group_ports.size());
  for (std::size_t i = 0; i < s.candidates.size(); ++i) {
    const auto port = static_cast<std::size_t>(table.group_ports[i]);
    s.candidates[i] = {0, s.rate_bps[port], s.ports[port].up ? 1 : 0, table.group_weights[i]};
  }
}

/// Ask port selection; the group has several candidates.
inline std::int32_t choose_port(State& s, const SwitchView& view, std::int64_t first, std::int64_t count,
                                Packet* packet, std::int32_t klass, Ps at_ps) {
  const PortPolicy& policy = s.in.port;
  const auto* group = &s.routes->group_ports[static_cast<std::size_t>(first)];
  const HashFunction& function = s.hash_functions[static_cast<std::size_t>(view.node.device)];
  const std::uint32_t hash = switch_hash(s, function, packet);
  if (policy.plain_ecmp) return group[hash % static_cast<std::uint32_t>(count)];
  const std::uint64_t flow = s.queue_pairs[static_cast<std::size_t>(packet->queue_pair)].flow;
  const auto place = static_cast<std::uint64_t>(view.id);
  PortSignal& signal = s.port_signal;
  signal = {at_ps,
            static_cast<std::int64_t>(hash),
            static_cast<std::int64_t>(draw(s.in.seed, Stream::kPortChoice, flow, identity(*packet), place) >> 2),
            packet->bytes,
            count,
            packet->kind == PacketKind::kData ? 1 : 0,
            s.in.destination_number[static_cast<std::size_t>(packet->destination_port)],
            s.in.port_stride[static_cast<std::size_t>(group[0])],
            0};
  Candidate* candidates = &s.candidates[static_cast<std::size_t>(first)];
  if (policy.queue)
    for (std::int64_t i = 0; i < count; ++i) {
      drain_port(s, view, group[i], at_ps);
      candidates[i].queue_bytes = s.queues[s.at(group[i], klass)].bytes;
    }
  auto* record = reinterpret_cast<std::uint8_t*>(view.node.port_policy.data());
  if (!policy.state.empty()) s.state_copy.assign(record, record + policy.state.size());
  const std::int32_t status = policy.step(const_cast<std::uint8_t*>(policy.params.data()), record, &signal, candidates);
  if (status != 0 || signal.choice < 0 || signal.choice >= count) [[unlikely]] {
    signal.choice = 0;
    const auto* bytes = reinterpret_cast<const std::uint8_t*>(&signal);
    const auto* row = reinterpret_cast<const std::uint8_t*>(candidates);
    throw PolicyStop({"port",
                      policy.state.empty() ? policy.state : s.state_copy,
                      {},
                      {bytes, bytes + sizeof(signal)},
                      {row, row + static_cast<std::size_t>(count) * sizeof(Candidate)}});
  }
  return group[signal.choice];
}

/// The egress port of a packet, or -1.
[[gnu::always_inline]] inline std::int32_t route(State& s, const SwitchView& view, Packet* packet, std::int32_t klass,
                                                 Ps at_ps) {
  const auto destination = static_cast<std::size_t>(packet->destination_port);
  const auto attachment = static_cast<std::size_t>(s.in.attachment[destination]);
  const std::int32_t group = s.routes->group_of[static_cast<std::size_t>(view.id) * s.attachments + attachment];
  if (group == -2) return s.in.port_peer[destination];
  if (group < 0) return -1;
  const std::int64_t first = s.routes->group_ptr[static_cast<std::size_t>(group)];
  const std::int64_t count = s.routes->group_ptr[static_cast<std::size_t>(group) + 1] - first;
  if (count == 1) return s.routes->group_ports[static_cast<std::size_t>(first)];
  return choose_port(s, view, first, count, packet, klass, at_ps);
}

inline void pause_ingress(State& s, const SwitchView& view, std::int32_t port, std::int32_t klass, Ps at_ps) {
  const auto index = static_cast<std::int32_t>(s.at(port, klass));
  s.ingresses[static_cast<std::size_t>(index)].paused = true;
  auto& paused = view.node.paused;
  paused.insert(std::lower_bound(paused.begin(), paused.end(), index), index);
  view.node.paused_ingresses += 1;
  schedule_refresh(s, view.id, port, klass, view.row.pause_quanta, at_ps);
  send_frame(s, view.node, port, klass, view.row.pause_quanta, at_ps);
}

/// Admit a packet the slow way: bring the switch up to date, decide, count what is dropped. True if it is admitted.
[[gnu::noinline]] inline bool admit(State& s, const SwitchView& view, std::int32_t port, std::int32_t target,
                                    std::int32_t klass, std::int64_t bytes, bool lossless, Ps at_ps) {
  drain_switch(s, view, at_ps);
  Ingress& ingress = s.ingresses[s.at(port, klass)];
  const Queue& queue = s.queues[s.at(target, klass)];
  const std::int64_t headroom = s.in.port_headroom_bytes[static_cast<std::size_t>(port)];
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
[[gnu::always_inline]] inline void arrive_at_switch(State& s, const SwitchView& view, std::int32_t local,
                                                    std::int32_t klass, Packet* packet, Ps at_ps) {
  const std::int32_t port = view.first + local;
  if (lost_on_link(s, port, *packet, at_ps)) return;
  if (view.node.paused_ingresses != 0) [[unlikely]]
    drain_switch(s, view, at_ps);
  packet->ingress = static_cast<std::uint16_t>(local);
  const std::int32_t target = route(s, view, packet, klass, at_ps);
  if (target < 0) [[unlikely]] {
    drop(s, port, s.count.drop_no_route, at_ps);
    return;
  }
  Port& out = s.ports[static_cast<std::size_t>(target)];
  if (!out.up) [[unlikely]] {
    drop(s, target, s.count.drop_link_down, at_ps);
    return;
  }
  drain_port(s, view, target, at_ps);

  const bool lossless = (s.lossless >> static_cast<unsigned>(klass) & 1U) != 0;
  Queue& queue = s.queues[s.at(target, klass)];
  const std::int32_t bytes = packet->bytes;
  if (!admits_at_once(view, view.ingresses[(local << s.class_shift) + klass], queue, bytes, lossless) &&
      !admit(s, view, port, target, klass, bytes, lossless, at_ps))
    return;
  if (packet->kind == PacketKind::kData && view.row.mark_at_dequeue == 0 &&
      draws_mark(s, view.row, *packet, target, queue.bytes)) {
    packet->flags = with(packet->flags, kMarked);
    s.port_counters[static_cast<std::size_t>(target)].marks += 1;
    s.note(at_ps, EventKind::kMark, target, klass);
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
  const auto mask = static_cast<std::uint16_t>(1U << static_cast<unsigned>(klass));
  if ((out.pending & mask) != 0) return;  // the port is busy or paused, and knows when it goes on
  if (out.pending == 0 && !out.frame_waits) s.set_outbound(target, view.id, true);
  out.pending = static_cast<std::uint16_t>(out.pending | mask);
  const Ps due = switch_due(s, out, target);
  set_due(s, view.node, target, due);
  if (due <= at_ps) start_switch_port(s, view, target, at_ps);
}

}  // namespace weftwork
