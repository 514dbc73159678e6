/// Scheduling of a NIC port: queue pairs have slots and take turns. One that may send as far as window, credits and
/// data are concerned is ready, or paced until its rate lets it go on; pauses of its traffic class are asked last.
/// Source: docs/models/packet-engine.md. Leaves out: what a packet carries (pipe), and what comes back (recovery).
#pragma once
#include <algorithm>

#include "packet/credits.hpp"
#include "packet/steps.hpp"

namespace weftwork {

inline NicPort& nic_of(State& s, PortId port) {
  return s.nics[s.nic_of_port[port]];
}

inline std::int64_t payload_bytes(const State& s, const Message& message, std::int64_t seq) {
  const std::int64_t mtu = s.in.transport.mtu_bytes;
  return seq + 1 == message.end ? message.size_bytes - (message.end - message.first - 1) * mtu : mtu;
}

inline bool credit_blocked(const State& s, const QueuePair& qp) {
  const Sender& sender = qp.sender;
  if (s.in.transport.end_to_end_credits == 0 || sender.nxt >= sender.end) return false;
  const Message& message = s.messages[sender.nxt_message];
  return sender.nxt == message.first && message.ordinal >= sender.credit_limit;
}

/// Whether a packet is lost and has not been sent again; always false without selective repeat.
inline bool has_lost(const State& s, const QueuePair& qp) {
  return s.in.transport.selective_repeat != 0 && qp.selective != nullptr && qp.selective->has_lost();
}

/// The message of packet `seq`, which is not acknowledged, of a queue pair that has lost something.
inline const Message& message_of(const State& s, const QueuePair& qp, std::int64_t seq) {
  MessageId& found = qp.selective->message;
  if (found.is_none() || s.messages[found].first > seq) found = qp.sender.una_message;
  while (s.messages[found].end <= seq) found = s.messages[found].next;
  return s.messages[found];
}

/// The message of the first lost packet, if there is one.
inline const Message& lost_message(const State& s, const QueuePair& qp) {
  return message_of(s, qp, qp.selective->first_lost());
}

/// The window of congestion control, or the transport's cap where that is less.
inline double window_bytes(const State& s, const QueuePair& qp) {
  return std::min(sender_state(qp).window_bytes, s.window_cap_bytes);
}

inline bool window_allows(const State& s, const QueuePair& qp, std::int64_t payload) {
  const std::int64_t inflight = inflight_bytes(qp.sender);
  const double window = window_bytes(s, qp);
  return static_cast<double>(inflight + payload) <= window || (inflight == 0 && window > 0);
}

/// Whether window, credits and data allow another packet that has not been sent; pacing and pauses are not asked.
inline bool can_send_next(const State& s, const QueuePair& qp) {
  const Sender& sender = qp.sender;
  if (sender.failed || sender.nxt >= sender.end) return false;
  const Message& message = s.messages[sender.nxt_message];
  return window_allows(s, qp, payload_bytes(s, message, sender.nxt)) && !credit_blocked(s, qp);
}

/// Whether the window allows the first lost packet, if there is one; credits do not count, since its message has begun.
inline bool can_send_lost(const State& s, const QueuePair& qp) {
  if (qp.sender.failed || !has_lost(s, qp)) return false;
  if (s.in.transport.resends_at_once != 0) return true;
  return window_allows(s, qp, payload_bytes(s, lost_message(s, qp), qp.selective->first_lost()));
}

/// The same for any packet.
inline bool can_send(const State& s, const QueuePair& qp) {
  return can_send_next(s, qp) || can_send_lost(s, qp);
}

inline void set_ready(NicPort& nic, Sender& sender) {
  nic.ready.set(sender.slot);
  if (sender.standing != Standing::kReady) nic.ready_count += 1;
  sender.standing = Standing::kReady;
}

inline void clear_ready(NicPort& nic, Sender& sender) {
  nic.ready.clear(sender.slot);
  if (sender.standing == Standing::kReady) nic.ready_count -= 1;
  sender.standing = Standing::kBlocked;
}

inline bool later_paced(const NicPort::Paced& a, const NicPort::Paced& b) {
  return a.at_ps != b.at_ps ? a.at_ps > b.at_ps : a.slot > b.slot;
}

/// One end of a connection takes a slot at a NIC port, and the state that belongs to it.
inline void count_nic_state(State& s, PortId port) {
  s.port_counters[port].nic_state_bytes += s.in.transport.connection_state_bytes;
}

/// Receivers at a NIC port keep so many packets more behind their gaps.
inline void count_early(State& s, PortId port, std::int64_t packets) {
  NicPort& nic = nic_of(s, port);
  nic.early_packets += packets;
  std::int64_t& most = s.port_counters[port].max_early_packets;
  most = std::max(most, nic.early_packets);
}

/// The next slot of a sender at a NIC port, for a queue pair.
inline SlotId add_slot(State& s, PortId port, QueuePairId queue_pair) {
  NicPort& nic = nic_of(s, port);
  const SlotId slot = nic.slots.next_id();
  nic.slots.push_back(queue_pair);
  nic.ready.resize(nic.slots.size());
  count_nic_state(s, port);
  return slot;
}

/// The next slot of a receiver at a NIC port, for a queue pair.
inline ReceiverSlotId add_receiver_slot(State& s, PortId port, QueuePairId queue_pair) {
  auto& receivers = nic_of(s, port).receivers;
  const ReceiverSlotId slot = receivers.next_id();
  receivers.push_back(queue_pair);
  count_nic_state(s, port);
  return slot;
}

/// Let a queue pair wait for its next departure.
inline void push_paced(const State& s, NicPort& nic, QueuePair& qp) {
  Sender& sender = qp.sender;
  sender.standing = Standing::kPaced;
  nic.paced.push_back({sender.next_send_at_ps, sender.slot});
  std::push_heap(nic.paced.begin(), nic.paced.end(), later_paced);
  if (s.in.congestion.moves_departures) [[unlikely]]
    qp.paced_entry_at_ps = sender.next_send_at_ps;
}

/// After anything that may let a blocked queue pair send: put it where the port will find it.
inline void reconsider(State& s, QueuePair& qp) {
  Sender& sender = qp.sender;
  if (sender.standing != Standing::kBlocked || !can_send(s, qp)) return;
  NicPort& nic = nic_of(s, qp.source_port);
  if (sender.next_send_at_ps <= s.ports[qp.source_port].free_at_ps) {
    set_ready(nic, sender);
    return;
  }
  push_paced(s, nic, qp);
}

inline QueuePair& queue_pair_at(State& s, const NicPort& nic, SlotId slot) {
  return s.queue_pairs[nic.slots[slot]];
}

/// Whether an entry of the paced, which has just left the heap at `at_ps`, lets its queue pair go on. One that counts
/// no more, since the departure has moved to an earlier instant, does not; nor does one that is too early.
[[gnu::noinline]] inline bool takes_departure(State& s, NicPort& nic, const NicPort::Paced& entry, Ps at_ps) {
  QueuePair& qp = queue_pair_at(s, nic, entry.slot);
  if (qp.paced_entry_at_ps != entry.at_ps) return false;
  qp.paced_entry_at_ps = kOff;
  if (qp.sender.next_send_at_ps <= at_ps) return true;
  push_paced(s, nic, qp);
  return false;
}

/// Time that `bytes` take at the rate that congestion control has set.
inline Ps gap_ps(const QueuePair& qp, std::int64_t bytes) {
  const double gap_ps = static_cast<double>(bytes) * 8e12 / sender_state(qp).rate_bps;
  return gap_ps < static_cast<double>(kNeverPs) ? static_cast<Ps>(gap_ps) : kNeverPs;
}

/// When the next packet may leave, after one of `line_bytes` at `at_ps`, where several may leave back to back.
[[gnu::noinline]] inline void pace_segment(QueuePair& qp, std::int64_t line_bytes, Ps at_ps) {
  Sender& sender = qp.sender;
  const std::int64_t segment_bytes = sender_state(qp).segment_bytes;
  if (sender.segment_sent_bytes == 0 || sender.segment_sent_bytes >= segment_bytes ||
      at_ps >= sender.segment_at_ps + gap_ps(qp, sender.segment_sent_bytes)) {
    sender.segment_at_ps = at_ps;
    sender.segment_sent_bytes = 0;
  }
  sender.segment_sent_bytes += line_bytes;
  sender.next_send_at_ps =
      sender.segment_sent_bytes < segment_bytes ? at_ps : sender.segment_at_ps + gap_ps(qp, sender.segment_sent_bytes);
}

/// The rate may have changed: move the departure that is set. `reconsider` follows.
[[gnu::noinline]] inline void move_departure(State& s, QueuePair& qp, Ps now_ps) {
  Sender& sender = qp.sender;
  if (sender.next_send_at_ps <= now_ps) return;
  sender.next_send_at_ps = std::max(now_ps, sender.segment_at_ps + gap_ps(qp, sender.segment_sent_bytes));
  NicPort& nic = nic_of(s, qp.source_port);
  if (sender.standing == Standing::kReady && sender.next_send_at_ps > s.ports[qp.source_port].free_at_ps) {
    clear_ready(nic, sender);
  } else if (sender.standing == Standing::kPaced && sender.next_send_at_ps < qp.paced_entry_at_ps) {
    if (nic.paced.size() > 2 * nic.slots.size()) {  // most of them count no more
      std::erase_if(nic.paced, [&](const NicPort::Paced& entry) {
        return queue_pair_at(s, nic, entry.slot).paced_entry_at_ps != entry.at_ps;
      });
      std::make_heap(nic.paced.begin(), nic.paced.end(), later_paced);
    }
    push_paced(s, nic, qp);
  }
}

/// Bytes on the line of packet `seq`.
inline std::int64_t frame_bytes(const State& s, const Message& message, std::int64_t seq) {
  const TransportRow& transport = s.in.transport;
  return payload_bytes(s, message, seq) + transport.data_overhead_bytes + transport.telemetry_bytes +
         (seq == message.first ? transport.first_extra_bytes : 0);
}

/// From when on neither a pause nor a want of credit holds back packet `seq` of a message.
inline Ps packet_open_from_ps(const State& s, PortId port, const Message& message, std::int64_t seq) {
  if (s.link_credits && !has_credit(s, port, message.klass, frame_bytes(s, message, seq))) return kNeverPs;
  return s.queue_controls[s.at(port, message.klass)].paused_until_ps;
}

/// The same for the first control packet that waits at a NIC port.
inline Ps control_open_from_ps(const State& s, PortId port) {
  const TrafficClass control = s.in.control_class;
  if (s.link_credits && !has_credit(s, port, control, s.queues[s.at(port, control)].departure->bytes)) return kNeverPs;
  return s.queue_controls[s.at(port, control)].paused_until_ps;
}

/// Whether a lost packet of a queue pair is sent, not the next one: unless window, pause or link hold it back.
inline bool sends_lost(const State& s, const QueuePair& qp, PortId port, Ps at_ps) {
  return can_send_lost(s, qp) && packet_open_from_ps(s, port, lost_message(s, qp), qp.selective->first_lost()) <= at_ps;
}

/// From when on neither a pause nor a want of credit on the link holds back a queue pair that may send as far as window
/// and end-to-end credits are concerned.
inline Ps open_from_ps(const State& s, const QueuePair& qp, PortId port) {
  const auto next = [&] { return packet_open_from_ps(s, port, s.messages[qp.sender.nxt_message], qp.sender.nxt); };
  if (!has_lost(s, qp)) [[likely]]
    return next();
  const Ps lost =
      can_send_lost(s, qp) ? packet_open_from_ps(s, port, lost_message(s, qp), qp.selective->first_lost()) : kNeverPs;
  return can_send_next(s, qp) ? std::min(lost, next()) : lost;
}

/// When the NIC port should next try to start something; never too late, perhaps too early.
inline Ps nic_due(State& s, PortId port) {
  const Port& out = s.ports[port];
  if (!out.up) return kNeverPs;
  if (out.frame_waits) return out.free_at_ps;
  NicPort& nic = nic_of(s, port);
  Ps due = kNeverPs;
  if (out.pending != 0) due = std::max(out.free_at_ps, control_open_from_ps(s, port));
  if (!nic.paced.empty()) due = std::min(due, std::max(out.free_at_ps, nic.paced.front().at_ps));
  if (nic.ready_count == 0) return due;
  if (out.paused == 0 && !s.link_credits) return std::min(due, out.free_at_ps);
  Ps open = kNeverPs;  // the first class that is not held any more; without a ready queue pair the try finds nothing
  nic.ready.any([&](SlotId slot) {
    const QueuePair& qp = queue_pair_at(s, nic, slot);
    if (qp.sender.nxt >= qp.sender.end && !has_lost(s, qp)) return false;
    open = std::min(open, open_from_ps(s, qp, port));
    return open <= out.free_at_ps;
  });
  return std::min(due, std::max(out.free_at_ps, open));
}

/// The first ready queue pair from `nic.turn` on that may send at `at_ps`, or null. Those that may not are put aside.
inline QueuePair* next_sender(State& s, NicPort& nic, PortId port, Ps at_ps) {
  if (nic.ready_count == 0) return nullptr;
  const bool may_be_held = s.ports[port].paused != 0 || s.link_credits;
  const SlotId turn = nic.turn < nic.slots.next_id() ? nic.turn : SlotId(0);
  QueuePair* found = nullptr;
  nic.ready.any_from(turn, [&](SlotId slot) {
    QueuePair& qp = queue_pair_at(s, nic, slot);
    if (!can_send(s, qp)) {
      clear_ready(nic, qp.sender);
      return false;
    }
    if (may_be_held && open_from_ps(s, qp, port) > at_ps) return false;
    found = &qp;
    return true;
  });
  return found;
}

}  // namespace weftwork
