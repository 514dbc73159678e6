/// One node in one window: gather what arrives, put it in order, handle it together with the node's own agenda.
/// Source: docs/models/packet-engine.md, "Time, nodes, order"; conservative windows of one lookahead.
#pragma once
#include "packet/instants.hpp"

namespace weftwork {

/// A key orders arrivals of one window: time since its start (32 bits), packet or flow-control frame, local port,
/// class.
struct ArrivalKey {
  static constexpr unsigned kTimeShift = 32;
  static constexpr std::uint64_t kPacket = std::uint64_t{1} << 31;

  static std::uint64_t packet(Ps since_start, LocalPort local, TrafficClass klass) {
    return static_cast<std::uint64_t>(since_start) << kTimeShift | kPacket | local.index() << 3 | klass.index();
  }
  static std::uint64_t frame(Ps since_start, LocalPort local) {
    return static_cast<std::uint64_t>(since_start) << kTimeShift | local.index() << 3;
  }
  static bool is_packet(std::uint64_t key) { return (key & kPacket) != 0; }
  static Ps since_start_ps(std::uint64_t key) { return static_cast<Ps>(key >> kTimeShift); }
  static LocalPort local(std::uint64_t key) { return LocalPort((key & (kPacket - 1)) >> 3); }
  static TrafficClass klass(std::uint64_t key) { return TrafficClass(key & 7); }
};

inline void insertion_sort(std::uint64_t* keys, std::size_t count) {
  for (std::size_t i = 1; i < count; ++i) {
    const std::uint64_t key = keys[i];
    std::size_t j = i;
    for (; j > 0 && keys[j - 1] > key; --j) keys[j] = keys[j - 1];
    keys[j] = key;
  }
}

/// Sort keys whose time part is below `window_ps`: by buckets of equal time, then within them. Leaves the result in
/// `keys`.
inline void sort_keys(State& s, std::size_t count, Ps window_ps) {
  std::uint64_t* keys = s.keys.data();
  if (count <= 32) {
    insertion_sort(keys, count);
    return;
  }
  const std::size_t buckets = std::min<std::size_t>(2048, std::bit_ceil(count));
  const int excess =
      static_cast<int>(std::bit_width(static_cast<std::uint64_t>(window_ps - 1))) - std::countr_zero(buckets);
  const unsigned shift = ArrivalKey::kTimeShift + static_cast<unsigned>(std::max(0, excess));
  std::uint32_t* histogram = s.histogram.data();
  std::fill_n(histogram, buckets + 1, 0U);
  for (std::size_t i = 0; i < count; ++i) histogram[(keys[i] >> shift) + 1] += 1;
  for (std::size_t i = 0; i < buckets; ++i) histogram[i + 1] += histogram[i];
  s.scratch.resize(s.keys.size());
  std::uint64_t* sorted = s.scratch.data();
  for (std::size_t i = 0; i < count; ++i) sorted[histogram[keys[i] >> shift]++] = keys[i];
  insertion_sort(sorted, count);
  s.keys.swap(s.scratch);
}

struct Gathered {
  std::size_t count, packets;
};

/// Collect into `s.keys` what arrives at `node` before `end_ps`.
inline Gathered gather(State& s, NodeId node, Ps start_ps, Ps end_ps) {
  std::size_t count = 0;
  std::size_t frame_count = 0;
  std::uint64_t* keys = s.keys.data();
  std::size_t room = s.keys.size();
  const auto put = [&](std::uint64_t key) {
    if (count == room) [[unlikely]] {
      s.keys.resize(2 * room);
      keys = s.keys.data();
      room *= 2;
    }
    keys[count++] = key;
  };
  const PortId first = s.first_port(node);
  const std::size_t word_begin = s.mask_base[node];
  const std::size_t word_end = s.mask_base[node + 1];
  for (std::size_t word = word_begin; word < word_end;
       ++word) {  // the streams lie far apart: fetch them all, then read
    for (std::uint64_t rest = s.inbound_mask[word]; rest != 0; rest &= rest - 1) {
      const LocalPort local(lowest_place(word - word_begin, rest));
      Packet* const* inbound = &s.inbound[s.at(first + local, TrafficClass(0))];
      for (const TrafficClass klass : s.classes()) __builtin_prefetch(inbound[klass.index()]);
    }
  }
  for (std::size_t word = word_begin; word < word_end; ++word) {
    for (std::uint64_t rest = s.inbound_mask[word]; rest != 0; rest &= rest - 1) {
      const LocalPort local(lowest_place(word - word_begin, rest));
      const PortId port = first + local;
      bool more = false;
      Packet* const* inbound = &s.inbound[s.at(port, TrafficClass(0))];
      for (const TrafficClass klass : s.classes()) {
        Packet* packet = inbound[klass.index()];
        for (; packet->at_ps < end_ps; packet = s.pool.next(packet)) {
          if (packet->at_ps == kFlushedPs) [[unlikely]]
            continue;
          put(ArrivalKey::packet(packet->at_ps - start_ps, local, klass));
        }
        more |= packet->at_ps != kNeverPs;
      }
      if ((s.frame_mask[word] & rest & (~rest + 1)) != 0) [[unlikely]] {
        auto& frames = s.frames_inbound[port];
        for (std::size_t i = frames.head; i < frames.items.size() && frames.items[i].at_ps < end_ps; ++i) {
          put(ArrivalKey::frame(frames.items[i].at_ps - start_ps, local));
          ++frame_count;
        }
        const bool frames_left = !frames.empty() && frames.items.back().at_ps >= end_ps;
        if (!frames_left) s.frame_mask[word] &= ~(rest & (~rest + 1));
        more |= frames_left;
      }
      if (!more) s.inbound_mask[word] &= ~(rest & (~rest + 1));
    }
  }
  return {count, count - frame_count};
}

/// Count the packets among the sorted keys, and note when the last of them arrives.
inline void count_arrivals(State& s, std::size_t count, std::size_t packets, Ps start_ps) {
  s.count.packet_hops += static_cast<std::int64_t>(packets);
  for (std::size_t i = count; packets > 0 && i-- > 0;) {
    if (!ArrivalKey::is_packet(s.keys[i])) continue;
    s.count.end_ps = std::max(s.count.end_ps, start_ps + ArrivalKey::since_start_ps(s.keys[i]));
    return;
  }
}

/// An agenda entry of a pause: repeat it if it still stands.
inline void refresh_pause(State& s, NodeId node, const AgendaEntry& entry) {
  const PortId port = s.first_port(node) + entry.port();
  const TrafficClass klass(entry.rest());
  const Ingress& ingress = s.ingresses[s.at(port, klass)];
  const bool host = is_host(s, node);
  drain_node(s, node, entry.at_ps);
  if (!ingress.paused || ingress.refresh_at_ps != entry.at_ps) return;
  const std::int64_t quanta = host ? nic_row(s, port).pause_quanta : switch_view(s, node).row.pause_quanta;
  schedule_refresh(s, node, port, klass, quanta, entry.at_ps);
  if (!host) {
    send_frame(s, switch_view(s, node).node, port, klass, quanta, entry.at_ps);
    return;
  }
  queue_frame(s, port, klass, quanta);
  kick_nic(s, port, entry.at_ps);
}

inline void fire_sender_timer(State& s, NodeId node, PortId port, const AgendaEntry& entry) {
  const QueuePairId id = nic_of(s, port).slots[SlotId(entry.rest() / kSenderTimers)];
  if (id == kMovedAway) return;
  QueuePair& qp = s.queue_pairs[id];
  const bool of_path = entry.rest() % kSenderTimers >= kTimers;
  const std::uint64_t timer = entry.rest() % kTimers;
  Ps& entry_at_ps = of_path ? qp.path_timer_entry_at_ps[timer] : qp.sender.timer_entry_at_ps[timer];
  Ps& timer_at_ps = of_path ? path_state(qp).timer_at_ps[timer] : sender_state(qp).timer_at_ps[timer];
  drain_nic(s, port, entry.at_ps);
  if (!take_timer(s, node, entry_at_ps, timer_at_ps, entry)) return;
  timer_at_ps = kOff;
  auto& timers = of_path ? path_state(qp).timer_at_ps : sender_state(qp).timer_at_ps;
  const bool too_often = fires_too_often(of_path ? qp.path_firings : qp.sender_firings, entry.at_ps);
  const unsigned due = due_timers(timers, entry.at_ps);
  Signal& signal = sender_signal(s, qp, Kind::kTimer, entry.at_ps);
  signal.timer = static_cast<std::int64_t>(timer);
  if (of_path)
    call_path(s, qp, entry.at_ps);
  else
    tell_sender(s, qp, Kind::kTimer, entry.at_ps);
  if (too_often && (due_timers(timers, entry.at_ps) & ~due) != 0) [[unlikely]]
    stop_with(s, of_path ? "path_selection" : "congestion_control", false, {}, {}, true);
  reconsider(s, qp);
  kick_nic(s, port, entry.at_ps);
}

inline void fire_receiver_timer(State& s, NodeId node, PortId port, const AgendaEntry& entry) {
  const QueuePairId id = nic_of(s, port).receivers[ReceiverSlotId(entry.rest() / kTimers)];
  if (id == kMovedAway) return;
  QueuePair& qp = s.queue_pairs[id];
  const std::uint64_t timer = entry.rest() % kTimers;
  ReceiverState& state = receiver_state(qp);
  drain_nic(s, port, entry.at_ps);
  if (!take_timer(s, node, qp.receiver.timer_entry_at_ps[timer], state.timer_at_ps[timer], entry)) return;
  state.timer_at_ps[timer] = kOff;
  const bool too_often = fires_too_often(qp.receiver.firings, entry.at_ps);
  const unsigned due = due_timers(state.timer_at_ps, entry.at_ps);
  receiver_signal(s, qp, Kind::kTimer, entry.at_ps).timer = static_cast<std::int64_t>(timer);
  const bool acknowledges = tell_receiver(s, qp, id, entry.at_ps);
  if (too_often && (due_timers(state.timer_at_ps, entry.at_ps) & ~due) != 0) [[unlikely]]
    stop_with(s, "congestion_control", true, {}, {}, true);
  if (acknowledges) send_reply(s, qp, id, PacketKind::kAck, nullptr, 0, entry.at_ps);
  kick_nic(s, port, entry.at_ps);
}

inline void fire_retransmission(State& s, NodeId node, PortId port, const AgendaEntry& entry) {
  const NicPort& nic = nic_of(s, port);
  const QueuePairId id = nic.slots[SlotId(entry.rest())];
  if (id == kMovedAway) return;
  Sender& sender = s.queue_pairs[id].sender;
  drain_nic(s, port, entry.at_ps);
  if (!take_timer(s, node, sender.deadline_entry_at_ps, sender.deadline_at_ps, entry)) return;
  handle_timeout(s, id, entry.at_ps);
  kick_nic(s, port, entry.at_ps);
}

/// Handle the next entry of a node's agenda.
inline void run_agenda(State& s, NodeId node) {
  constexpr std::int64_t kMostEntries = 50'000'000;  // chosen: a window of a microsecond never holds as many in earnest
  if (++s.agenda_entries > kMostEntries) [[unlikely]]
    throw LimitError(
        "a policy's timers fire more than 50 million times in one window of time; set them to later instants");
  const AgendaEntry entry = s.agendas[node].pop();
  const auto port = [&] { return s.first_port(node) + entry.port(); };
  switch (entry.kind()) {
    case AgendaKind::kJob:
      s.streams[entry.stream()].queued = false;
      run_stream(s, entry.stream(), entry.at_ps);  // whatever port it sends by: `run_host` has brought all up to here
      return;
    case AgendaKind::kHostInterface:
      drain_nic(s, port(), entry.at_ps);
      leave_host_interface(s, node, port(), entry.at_ps);
      kick_nic(s, port(), entry.at_ps);
      return;
    case AgendaKind::kRetransmission:
      fire_retransmission(s, node, port(), entry);
      return;
    case AgendaKind::kSenderTimer:
      fire_sender_timer(s, node, port(), entry);
      return;
    case AgendaKind::kReceiverTimer:
      fire_receiver_timer(s, node, port(), entry);
      return;
    case AgendaKind::kPauseRefresh:
      refresh_pause(s, node, entry);
      return;
    case AgendaKind::kDelivery:
      deliver_inside(s, entry.rank(), entry.at_ps);
      return;
    case AgendaKind::kNotify:
      raise_token(s, entry.rank(), entry.token(), entry.at_ps);
      return;
    case AgendaKind::kEgress:
      free_egress(s, entry.rank(), entry.link(), entry.at_ps);
      return;
  }
}

/// A packet has arrived at a host by a link that gives credit: once it is handled its bytes are given back, unless it
/// is in the host interface, which it has yet to leave.
[[gnu::noinline]] inline void arrive_with_credit(State& s, NodeId node, PortId port, TrafficClass klass, Packet* packet,
                                                 Ps at_ps) {
  packet->ingress = static_cast<std::uint16_t>(s.at(s.local_port(port), klass).value);
  const QueueId lane = s.at(port, klass);
  const std::int32_t before = s.ingresses[lane].used;
  const std::int32_t bytes = packet->bytes;
  const bool was_sent_before = has(packet->flags, kLost);
  arrive_at_host(s, node, port, packet, at_ps);
  if (was_sent_before || s.ingresses[lane].used != before) return;
  if (owe_credit(s, lane, bytes)) kick_nic(s, port, at_ps);
}

/// The first packet on the wire towards (port, class); what was dropped before it departed is passed over.
inline Packet* next_inbound(State& s, Packet*& position) {
  while (position->at_ps == kFlushedPs) [[unlikely]]
    position = s.pool.consume(position);
  return position;
}

/// Let a host go on up to an arrival or the end of a window: departures until `last_ps`, agenda before `before_ps`, in
/// order. A step at a departure may set a timer that comes before the next departure, so neither may run ahead of the
/// other.
inline void run_host(State& s, NodeId node, Ps last_ps, Ps before_ps) {
  const PortId first = s.first_port(node);
  const PortId end = s.end_port(node);
  const Agenda& agenda = s.agendas[node];
  for (;;) {
    PortId port = first;
    for (const PortId other : id_range(first + 1, end))
      if (s.due_at_ps[other] < s.due_at_ps[port]) port = other;
    const Ps due = s.due_at_ps[port];
    const Ps agenda_ps = agenda.next_ps();
    if (agenda_ps < due && agenda_ps < before_ps)
      run_agenda(s, node);
    else if (due <= last_ps)
      start_nic_port(s, port, due);
    else
      return;
  }
}

/// Handle everything of one host in [start, end).
inline void host_window(State& s, NodeId node, Ps start_ps, Ps end_ps) {
  const auto [count, packets] = gather(s, node, start_ps, end_ps);
  sort_keys(s, count, end_ps - start_ps);
  count_arrivals(s, count, packets, start_ps);
  const PortId first = s.first_port(node);
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint64_t key = s.keys[i];
    const Ps at_ps = start_ps + ArrivalKey::since_start_ps(key);
    const PortId port = first + ArrivalKey::local(key);
    run_host(s, node, at_ps, at_ps);
    if (ArrivalKey::is_packet(key)) {
      Packet*& position = s.inbound[s.at(port, ArrivalKey::klass(key))];
      Packet* packet = next_inbound(s, position);
      if (s.link_credits) [[unlikely]]
        arrive_with_credit(s, node, port, ArrivalKey::klass(key), packet, at_ps);
      else
        arrive_at_host(s, node, port, packet, at_ps);
      position = s.pool.consume(packet);
    } else {
      auto& frames = s.frames_inbound[port];
      const ControlFrame frame = frames.front();
      frames.pop();
      obey_frame(s, port, frame, at_ps);
      kick_nic(s, port, at_ps);
    }
  }
  run_host(s, node, end_ps - 1, end_ps);
  s.agenda_entries = 0;
  Ps next_ps = s.agendas[node].next_ps();
  for (const PortId port : s.ports_of(node)) next_ps = std::min(next_ps, s.due_at_ps[port]);
  s.wake_node(node, std::max(next_ps, end_ps));
}

/// Handle everything of one switch in [start, end).
inline void switch_window(State& s, NodeId node, Ps start_ps, Ps end_ps) {
  const auto [count, packets] = gather(s, node, start_ps, end_ps);
  sort_keys(s, count, end_ps - start_ps);
  count_arrivals(s, count, packets, start_ps);
  SwitchView view = switch_view(s, node);
  const PortId first = s.first_port(node);
  const Agenda& agenda = s.agendas[node];
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint64_t key = s.keys[i];
    const Ps at_ps = start_ps + ArrivalKey::since_start_ps(key);
    while (agenda.next_ps() < at_ps) [[unlikely]]
      run_agenda(s, node);
    const LocalPort local = ArrivalKey::local(key);
    if (ArrivalKey::is_packet(key)) [[likely]] {
      const TrafficClass klass = ArrivalKey::klass(key);
      Packet*& position = view.inbound[s.at(local, klass)];
      Packet* packet = next_inbound(s, position);
      arrive_at_switch(s, view, local, klass, packet, at_ps);
      position = s.pool.consume(packet);
    } else {
      const PortId port = first + local;
      auto& frames = s.frames_inbound[port];
      const ControlFrame frame = frames.front();
      frames.pop();
      if (view.node.in_order_for != 0) drain_switch(s, view, at_ps);
      drain_port(s, view, port, at_ps);
      obey_frame(s, port, frame, at_ps);
      if (s.link_credits) test_credit(s, view.row, port, frame.klass);
      set_due(s, view.node, port, std::max(at_ps, switch_due(s, s.ports[port], port)));
      drain_port(s, view, port, at_ps);
    }
  }
  while (agenda.next_ps() < end_ps) [[unlikely]]
    run_agenda(s, node);
  drain_switch(s, view, end_ps - 1);
  Ps next_ps = agenda.next_ps();
  const std::size_t word_begin = s.mask_base[node];
  const std::size_t word_end = s.mask_base[node + 1];
  for (std::size_t word = word_begin; word < word_end; ++word)
    for (std::uint64_t rest = s.outbound_mask[word]; rest != 0; rest &= rest - 1) {
      const LocalPort local(lowest_place(word - word_begin, rest));
      next_ps = std::min(next_ps, s.due_at_ps[first + local]);
    }
  s.wake_node(node, std::max(next_ps, end_ps));
}

}  // namespace weftwork
