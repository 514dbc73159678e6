/// One node in one window: gather what arrives, put it in order, handle it together with the node's own agenda.
/// Source: docs/models/packet-engine.md, "Time, nodes, order"; conservative windows of one lookahead.
#pragma once
#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "base/clock.hpp"
#include "base/ids.hpp"
#include "base/invariant.hpp"
#include "base/limit_error.hpp"
#include "packet/agenda.hpp"
#include "packet/buffer.hpp"
#include "packet/credits.hpp"
#include "packet/departures.hpp"
#include "packet/fabric.hpp"
#include "packet/flow_control.hpp"
#include "packet/ids.hpp"
#include "packet/instants.hpp"
#include "packet/packet.hpp"
#include "packet/pipe.hpp"
#include "packet/port_records.hpp"
#include "packet/programs.hpp"
#include "packet/queue_pair_records.hpp"
#include "packet/receiver.hpp"
#include "packet/recordings.hpp"
#include "packet/recovery.hpp"
#include "packet/schedule.hpp"
#include "packet/scheduling.hpp"
#include "packet/server.hpp"
#include "packet/setup.hpp"
#include "packet/state.hpp"
#include "packet/step_calls.hpp"
#include "packet/steps.hpp"
#include "packet/switch.hpp"
#include "packet/timers.hpp"
#include "rows/policies.hpp"

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
inline void sort_keys(Schedule& schedule, std::size_t count, Ps window_ps) {
  std::uint64_t* keys = schedule.keys.data();
  if (count <= 32) {
    insertion_sort(keys, count);
    return;
  }
  const std::size_t buckets = std::min<std::size_t>(2048, std::bit_ceil(count));
  const int excess =
      static_cast<int>(std::bit_width(static_cast<std::uint64_t>(window_ps - 1))) - std::countr_zero(buckets);
  const unsigned shift = ArrivalKey::kTimeShift + static_cast<unsigned>(std::max(0, excess));
  std::uint32_t* histogram = schedule.histogram.data();
  std::fill_n(histogram, buckets + 1, 0U);
  for (std::size_t i = 0; i < count; ++i) histogram[(keys[i] >> shift) + 1] += 1;
  for (std::size_t i = 0; i < buckets; ++i) histogram[i + 1] += histogram[i];
  schedule.scratch.resize(schedule.keys.size());
  std::uint64_t* sorted = schedule.scratch.data();
  for (std::size_t i = 0; i < count; ++i) sorted[histogram[keys[i] >> shift]++] = keys[i];
  insertion_sort(sorted, count);
  schedule.keys.swap(schedule.scratch);
}

struct Gathered {
  std::size_t count, packets;
};

/// Collect into `schedule.keys` what arrives at `node` before `end_ps`.
[[gnu::always_inline]] inline Gathered gather(const Setup& setup, const Fabric& fabric, Schedule& schedule, NodeId node,
                                              Ps start_ps, Ps end_ps) {
  std::size_t count = 0;
  std::size_t frame_count = 0;
  Ps early = 0;  // negative once something comes before the window
  std::uint64_t* keys = schedule.keys.data();
  std::size_t room = schedule.keys.size();
  const PacketPlaces places = fabric.pool.places();
  const auto put = [&](std::uint64_t key) {
    if (count == room) [[unlikely]] {
      schedule.keys.resize(2 * room);
      keys = schedule.keys.data();
      room *= 2;
    }
    keys[count++] = key;
  };
  const PortId first = setup.first_port(node);
  const std::size_t word_begin = schedule.mask_base[node];
  const std::size_t word_end = schedule.mask_base[node + 1];
  for (std::size_t word = word_begin; word < word_end;
       ++word) {  // the streams lie far apart: fetch them all, then read
    for (std::uint64_t rest = schedule.inbound_mask[word]; rest != 0; rest &= rest - 1) {
      const LocalPort local(lowest_place(word - word_begin, rest));
      Packet* const* inbound = &fabric.inbound[setup.at(first + local, TrafficClass(0))];
      for (const TrafficClass klass : setup.classes()) __builtin_prefetch(inbound[klass.index()]);
    }
  }
  for (std::size_t word = word_begin; word < word_end; ++word) {
    for (std::uint64_t rest = schedule.inbound_mask[word]; rest != 0; rest &= rest - 1) {
      const LocalPort local(lowest_place(word - word_begin, rest));
      const PortId port = first + local;
      bool more = false;
      Packet* const* inbound = &fabric.inbound[setup.at(port, TrafficClass(0))];
      for (const TrafficClass klass : setup.classes()) {
        Packet* packet = inbound[klass.index()];
        for (; packet->at_ps < end_ps; packet = places.next(packet)) {
          if (packet->at_ps == kFlushedPs) [[unlikely]]
            continue;
          early |= packet->at_ps - start_ps;
          put(ArrivalKey::packet(packet->at_ps - start_ps, local, klass));
        }
        more |= packet->at_ps != kNeverPs;
      }
      if ((schedule.frame_mask[word] & rest & (~rest + 1)) != 0) [[unlikely]] {
        auto& frames = fabric.frames_inbound[port];
        for (std::size_t i = frames.head; i < frames.items.size() && frames.items[i].at_ps < end_ps; ++i) {
          early |= frames.items[i].at_ps - start_ps;
          put(ArrivalKey::frame(frames.items[i].at_ps - start_ps, local));
          ++frame_count;
        }
        const bool frames_left = !frames.empty() && frames.items.back().at_ps >= end_ps;
        if (!frames_left) schedule.frame_mask[word] &= ~(rest & (~rest + 1));
        more |= frames_left;
      }
      if (!more) schedule.inbound_mask[word] &= ~(rest & (~rest + 1));
    }
  }
  must_hold(early >= 0, Invariant::packet_arrives_at_its_instant, "window_at_ps node arrivals", start_ps, node, count);
  return {count, count - frame_count};
}

/// Count the packets among the sorted keys, and note when the last of them arrives.
inline void count_arrivals(const Schedule& schedule, Recordings& recordings, std::size_t count, std::size_t packets,
                           Ps start_ps) {
  recordings.count.packet_hops += static_cast<std::int64_t>(packets);
  for (std::size_t i = count; packets > 0 && i-- > 0;) {
    if (!ArrivalKey::is_packet(schedule.keys[i])) continue;
    recordings.count.end_ps =
        std::max(recordings.count.end_ps, start_ps + ArrivalKey::since_start_ps(schedule.keys[i]));
    return;
  }
}

/// An agenda entry of a pause: repeat it if it still stands.
inline void refresh_pause(State& s, NodeId node, const AgendaEntry& entry) {
  const PortId port = s.setup.first_port(node) + entry.port();
  const TrafficClass klass(entry.rest());
  const Ingress& ingress = s.fabric.ingresses[s.setup.at(port, klass)];
  const bool host = is_host(s.setup, node);
  drain_node(s, node, entry.at_ps);
  if (!ingress.paused || ingress.refresh_at_ps != entry.at_ps) return;
  must_hold(s.fabric.ports[port].up, Invariant::line_carries_one_frame_at_a_time, "at_ps port class", entry.at_ps, port,
            klass);
  must_hold(!host || nic_of(s.hosts, port).pauses, Invariant::pause_only_where_lossless, "at_ps port class",
            entry.at_ps, port, klass);
  const std::int64_t quanta =
      host ? nic_row(s.setup, port).pause_quanta : switch_view(s.setup, s.fabric, node).row.pause_quanta;
  schedule_refresh(s.setup, s.fabric, s.schedule, node, port, klass, quanta, entry.at_ps);
  if (!host) {
    send_frame(s.setup, s.fabric, s.schedule, s.recordings, switch_view(s.setup, s.fabric, node).node, port, klass,
               quanta, entry.at_ps);
    return;
  }
  queue_frame(s.setup, s.fabric, s.schedule, port, klass, quanta);
  kick_nic(s, port, entry.at_ps);
}

inline void fire_sender_timer(State& s, NodeId node, PortId port, const AgendaEntry& entry) {
  const QueuePairId id = nic_of(s.hosts, port).slots[SlotId(entry.rest() / kSenderTimers)];
  if (id == kMovedAway) return;
  QueuePair& qp = s.hosts.queue_pairs[id];
  must_hold(qp.source_port == port && qp.sender.slot == SlotId(entry.rest() / kSenderTimers),
            Invariant::slot_has_its_queue_pair, "at_ps port queue_pair slot", entry.at_ps, port, id, qp.sender.slot);
  const bool of_path = entry.rest() % kSenderTimers >= kTimers;
  const std::uint64_t timer = entry.rest() % kTimers;
  Ps& entry_at_ps = of_path ? qp.path_timer_entry_at_ps[timer] : qp.sender.timer_entry_at_ps[timer];
  Ps& timer_at_ps = of_path ? path_state(qp).timer_at_ps[timer] : sender_state(qp).timer_at_ps[timer];
  drain_nic(s, port, entry.at_ps);
  if (!take_timer(s.schedule, node, entry_at_ps, timer_at_ps, entry)) return;
  must_hold(timer_at_ps != kOff && timer_at_ps <= entry.at_ps, Invariant::timer_fires_when_it_is_set,
            "at_ps ends_at_ps port timer", entry.at_ps, timer_at_ps, port, timer);
  must_hold(!qp.sender.failed, Invariant::timer_fires_when_it_is_set, "at_ps ends_at_ps queue_pair timer", entry.at_ps,
            timer_at_ps, id, timer);
  timer_at_ps = kOff;
  auto& timers = of_path ? path_state(qp).timer_at_ps : sender_state(qp).timer_at_ps;
  const bool too_often = fires_too_often(of_path ? qp.path_firings : qp.sender_firings, entry.at_ps);
  const unsigned due = due_timers(timers, entry.at_ps);
  Signal& signal = sender_signal(s.setup, s.fabric, s.calls, qp, Kind::kTimer, entry.at_ps);
  signal.timer = static_cast<std::int64_t>(timer);
  if (of_path)
    call_path(s.setup, s.schedule, s.calls, qp, entry.at_ps);
  else
    tell_sender(s, qp, Kind::kTimer, entry.at_ps);
  if (too_often && (due_timers(timers, entry.at_ps) & ~due) != 0) [[unlikely]]
    stop_with(s.calls, of_path ? "path_selection" : "congestion_control", false, {}, {}, true);
  reconsider(s.setup, s.fabric, s.hosts, s.job, qp);
  kick_nic(s, port, entry.at_ps);
}

inline void fire_receiver_timer(State& s, NodeId node, PortId port, const AgendaEntry& entry) {
  const QueuePairId id = nic_of(s.hosts, port).receivers[ReceiverSlotId(entry.rest() / kTimers)];
  if (id == kMovedAway) return;
  QueuePair& qp = s.hosts.queue_pairs[id];
  must_hold(qp.destination_port == port && qp.receiver.slot == ReceiverSlotId(entry.rest() / kTimers),
            Invariant::slot_has_its_queue_pair, "at_ps port queue_pair slot", entry.at_ps, port, id, qp.receiver.slot);
  must_hold(qp.receiver_record != nullptr, Invariant::timer_fires_when_it_is_set, "at_ps port queue_pair", entry.at_ps,
            port, id);
  const std::uint64_t timer = entry.rest() % kTimers;
  ReceiverState& state = receiver_state(qp);
  drain_nic(s, port, entry.at_ps);
  if (!take_timer(s.schedule, node, qp.receiver.timer_entry_at_ps[timer], state.timer_at_ps[timer], entry)) return;
  must_hold(state.timer_at_ps[timer] != kOff && state.timer_at_ps[timer] <= entry.at_ps,
            Invariant::timer_fires_when_it_is_set, "at_ps ends_at_ps port timer", entry.at_ps, state.timer_at_ps[timer],
            port, timer);
  state.timer_at_ps[timer] = kOff;
  const bool too_often = fires_too_often(qp.receiver.firings, entry.at_ps);
  const unsigned due = due_timers(state.timer_at_ps, entry.at_ps);
  receiver_signal(s.setup, s.fabric, s.calls, qp, Kind::kTimer, entry.at_ps).timer = static_cast<std::int64_t>(timer);
  const bool acknowledges = tell_receiver(s, qp, id, entry.at_ps);
  if (too_often && (due_timers(state.timer_at_ps, entry.at_ps) & ~due) != 0) [[unlikely]]
    stop_with(s.calls, "congestion_control", true, {}, {}, true);
  if (acknowledges) send_reply(s, qp, id, PacketKind::kAck, nullptr, 0, entry.at_ps);
  kick_nic(s, port, entry.at_ps);
}

inline void fire_retransmission(State& s, NodeId node, PortId port, const AgendaEntry& entry) {
  const NicPort& nic = nic_of(s.hosts, port);
  const QueuePairId id = nic.slots[SlotId(entry.rest())];
  if (id == kMovedAway) return;
  Sender& sender = s.hosts.queue_pairs[id].sender;
  must_hold(s.hosts.queue_pairs[id].source_port == port && sender.slot == SlotId(entry.rest()),
            Invariant::slot_has_its_queue_pair, "at_ps port queue_pair slot", entry.at_ps, port, id, sender.slot);
  drain_nic(s, port, entry.at_ps);
  if (!take_timer(s.schedule, node, sender.deadline_entry_at_ps, sender.deadline_at_ps, entry)) return;
  must_hold(sender.deadline_at_ps >= 0 && sender.deadline_at_ps <= entry.at_ps, Invariant::timer_fires_when_it_is_set,
            "at_ps ends_at_ps port queue_pair", entry.at_ps, sender.deadline_at_ps, port, id);
  must_hold(!sender.failed, Invariant::timer_fires_when_it_is_set, "at_ps ends_at_ps queue_pair retries", entry.at_ps,
            sender.deadline_at_ps, id, sender.retries);
  handle_timeout(s, id, entry.at_ps);
  kick_nic(s, port, entry.at_ps);
}

/// Handle the next entry of a node's agenda.
inline void run_agenda(State& s, NodeId node) {
  constexpr std::int64_t kMostEntries = 50'000'000;  // chosen: a window of a microsecond never holds as many in earnest
  if (++s.schedule.agenda_entries > kMostEntries) [[unlikely]]
    throw LimitError(
        "a policy's timers fire more than 50 million times in one window of time; set them to later instants");
  const AgendaEntry entry = s.schedule.agendas[node].pop();
  const auto port = [&] { return s.setup.first_port(node) + entry.port(); };
  switch (entry.kind()) {
    case AgendaKind::kJob:
      must_hold(s.job.streams[entry.stream()].queued, Invariant::stream_step_in_order, "at_ps node stream", entry.at_ps,
                node, entry.stream());
      s.job.streams[entry.stream()].queued = false;
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
      raise_token(s.setup, s.schedule, s.job, entry.rank(), entry.token(), entry.at_ps);
      return;
    case AgendaKind::kEgress:
      free_egress(s.setup, s.schedule, s.job, entry.rank(), entry.link(), entry.at_ps);
      return;
  }
}

/// A packet has arrived at a host by a link that gives credit: once it is handled its bytes are given back, unless it
/// is in the host interface, which it has yet to leave.
[[gnu::noinline]] inline void arrive_with_credit(State& s, NodeId node, PortId port, TrafficClass klass, Packet* packet,
                                                 Ps at_ps) {
  packet->ingress = static_cast<std::uint16_t>(s.setup.at(s.setup.local_port(port), klass).value);
  const QueueId lane = s.setup.at(port, klass);
  const std::int32_t before = s.fabric.ingresses[lane].used;
  const std::int32_t bytes = packet->bytes;
  const bool was_sent_before = has(packet->flags, kLost);
  arrive_at_host(s, node, port, packet, at_ps);
  if (was_sent_before || s.fabric.ingresses[lane].used != before) return;
  if (owe_credit(s.setup, s.fabric, s.schedule, lane, bytes)) kick_nic(s, port, at_ps);
}

/// The first packet on the wire towards (port, class); what was dropped before it departed is passed over.
inline Packet* next_inbound(Fabric& fabric, Packet*& position) {
  while (position->at_ps == kFlushedPs) [[unlikely]]
    position = fabric.pool.consume(position);
  return position;
}

/// Let a host go on up to an arrival or the end of a window: departures until `last_ps`, agenda before `before_ps`, in
/// order. A step at a departure may set a timer that comes before the next departure, so neither may run ahead of the
/// other.
inline void run_host(State& s, NodeId node, Ps last_ps, Ps before_ps) {
  const PortId first = s.setup.first_port(node);
  const PortId end = s.setup.end_port(node);
  const Agenda& agenda = s.schedule.agendas[node];
  for (;;) {
    PortId port = first;
    for (const PortId other : id_range(first + 1, end))
      if (s.schedule.due_at_ps[other] < s.schedule.due_at_ps[port]) port = other;
    const Ps due = s.schedule.due_at_ps[port];
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
  const auto [count, packets] = gather(s.setup, s.fabric, s.schedule, node, start_ps, end_ps);
  sort_keys(s.schedule, count, end_ps - start_ps);
  count_arrivals(s.schedule, s.recordings, count, packets, start_ps);
  const PortId first = s.setup.first_port(node);
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint64_t key = s.schedule.keys[i];
    const Ps at_ps = start_ps + ArrivalKey::since_start_ps(key);
    const PortId port = first + ArrivalKey::local(key);
    run_host(s, node, at_ps, at_ps);
    if (ArrivalKey::is_packet(key)) {
      Packet*& position = s.fabric.inbound[s.setup.at(port, ArrivalKey::klass(key))];
      Packet* packet = next_inbound(s.fabric, position);
      must_hold(packet->at_ps == at_ps, Invariant::packet_arrives_at_its_instant, "at_ps arrives_at_ps port queue_pair",
                at_ps, packet->at_ps, port, packet->queue_pair);
      if (s.setup.link_credits) [[unlikely]]
        arrive_with_credit(s, node, port, ArrivalKey::klass(key), packet, at_ps);
      else
        arrive_at_host(s, node, port, packet, at_ps);
      position = s.fabric.pool.consume(packet);
    } else {
      auto& frames = s.fabric.frames_inbound[port];
      const ControlFrame frame = frames.front();
      must_hold(frame.at_ps == at_ps, Invariant::packet_arrives_at_its_instant, "at_ps arrives_at_ps port", at_ps,
                frame.at_ps, port);
      frames.pop();
      obey_frame(s.setup, s.fabric, s.recordings, port, frame, at_ps);
      kick_nic(s, port, at_ps);
    }
  }
  run_host(s, node, end_ps - 1, end_ps);
  s.schedule.agenda_entries = 0;
  Ps next_ps = s.schedule.agendas[node].next_ps();
  for (const PortId port : s.setup.ports_of(node)) next_ps = std::min(next_ps, s.schedule.due_at_ps[port]);
  s.schedule.wake_node(node, std::max(next_ps, end_ps));
}

/// Handle everything of one switch in [start, end).
inline void switch_window(State& s, NodeId node, Ps start_ps, Ps end_ps) {
  const auto [count, packets] = gather(s.setup, s.fabric, s.schedule, node, start_ps, end_ps);
  sort_keys(s.schedule, count, end_ps - start_ps);
  count_arrivals(s.schedule, s.recordings, count, packets, start_ps);
  const SwitchView view = switch_view(s.setup, s.fabric, node);
  const PortId first = view.first;
  const Agenda& agenda = s.schedule.agendas[node];
  const std::uint64_t* const keys = s.schedule.keys.data();  // nothing is put there before the window ends
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint64_t key = keys[i];
    const Ps at_ps = start_ps + ArrivalKey::since_start_ps(key);
    while (agenda.next_ps() < at_ps) [[unlikely]]
      run_agenda(s, node);
    const LocalPort local = ArrivalKey::local(key);
    if (ArrivalKey::is_packet(key)) [[likely]] {
      const TrafficClass klass = ArrivalKey::klass(key);
      Packet*& position = view.inbound[s.setup.at(local, klass)];
      Packet* packet = next_inbound(s.fabric, position);
      must_hold(packet->at_ps == at_ps, Invariant::packet_arrives_at_its_instant, "at_ps arrives_at_ps node queue_pair",
                at_ps, packet->at_ps, node, packet->queue_pair);
      arrive_at_switch(s, view, local, klass, packet, at_ps);
      position = s.fabric.pool.consume(packet);
    } else {
      const PortId port = first + local;
      auto& frames = s.fabric.frames_inbound[port];
      const ControlFrame frame = frames.front();
      must_hold(frame.at_ps == at_ps, Invariant::packet_arrives_at_its_instant, "at_ps arrives_at_ps port", at_ps,
                frame.at_ps, port);
      frames.pop();
      if (view.node.in_order_for != 0) drain_switch(s, view, at_ps);
      drain_port(s, view, port, at_ps);
      obey_frame(s.setup, s.fabric, s.recordings, port, frame, at_ps);
      if (s.setup.link_credits) test_credit(s.setup, s.fabric, view.row, port, frame.klass);
      set_due(s.schedule, view.node, port, std::max(at_ps, switch_due(s.setup, s.fabric, s.fabric.ports[port], port)));
      drain_port(s, view, port, at_ps);
    }
  }
  while (agenda.next_ps() < end_ps) [[unlikely]]
    run_agenda(s, node);
  drain_switch(s, view, end_ps - 1);
  Ps next_ps = agenda.next_ps();
  const std::size_t word_begin = s.schedule.mask_base[node];
  const std::size_t word_end = s.schedule.mask_base[node + 1];
  for (std::size_t word = word_begin; word < word_end; ++word)
    for (std::uint64_t rest = s.schedule.outbound_mask[word]; rest != 0; rest &= rest - 1) {
      const LocalPort local(lowest_place(word - word_begin, rest));
      next_ps = std::min(next_ps, s.schedule.due_at_ps[first + local]);
    }
  s.schedule.wake_node(node, std::max(next_ps, end_ps));
}

}  // namespace weftwork
