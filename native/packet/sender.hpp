/// The sending side of a NIC: queue pairs in round robin, pacing, windows, credits, go-back-N or selective repeat, and
/// the retransmission timer. Source: IBTA vol. 1, chapter 9.7 (reliable connections), as docs/models/packet-engine.md
/// states it.
#pragma once
#include <algorithm>
#include <bit>

#include "packet/flow_control.hpp"
#include "packet/hashing.hpp"
#include "packet/job.hpp"
#include "packet/paths.hpp"
#include "packet/steps.hpp"

namespace weftwork {

/// Credits that an AETH can tell, by code (IBTA vol. 1, table 45).
inline constexpr std::array<std::int64_t, 31> kCredits = {
    0,   1,   2,   3,   4,    6,    8,    12,   16,   24,   32,   48,    64,    96,    128,  192,
    256, 384, 512, 768, 1024, 1536, 2048, 3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768};

inline std::uint8_t credit_code(std::int64_t credits) {
  const auto* above_it = std::upper_bound(kCredits.begin(), kCredits.end(), credits);
  return static_cast<std::uint8_t>(above_it - kCredits.begin() - 1);
}

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

/// The message of the first lost packet, if there is one.
inline const Message& lost_message(const State& s, const QueuePair& qp) {
  MessageId& found = qp.selective->message;
  if (found.is_none()) found = qp.sender.una_message;
  while (s.messages[found].end <= qp.selective->first_lost()) found = s.messages[found].next;
  return s.messages[found];
}

/// Whether window, credits and data allow another packet that has not been sent; pacing and pauses are not asked.
inline bool can_send_next(const State& s, const QueuePair& qp) {
  const Sender& sender = qp.sender;
  if (sender.failed || sender.nxt >= sender.end) return false;
  const Message& message = s.messages[sender.nxt_message];
  const std::int64_t inflight = sender.nxt_bytes - sender.una_bytes;
  const double window = sender_state(qp).window_bytes;
  const bool fits = static_cast<double>(inflight + payload_bytes(s, message, sender.nxt)) <= window;
  return (fits || (inflight == 0 && window > 0)) && !credit_blocked(s, qp);
}

/// The same for any packet, lost ones too.
inline bool can_send(const State& s, const QueuePair& qp) {
  return can_send_next(s, qp) || (has_lost(s, qp) && !qp.sender.failed);
}

inline TrafficClass class_to_send(const State& s, const QueuePair& qp) {
  return s.messages[qp.sender.nxt_message].klass;
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

/// The next slot of a NIC port, for a queue pair.
inline SlotId add_slot(NicPort& nic, QueuePairId queue_pair) {
  const SlotId slot = nic.slots.next_id();
  nic.slots.push_back(queue_pair);
  nic.ready.resize(nic.slots.size());
  return slot;
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
  sender.standing = Standing::kPaced;
  nic.paced.push_back({sender.next_send_at_ps, sender.slot});
  std::push_heap(nic.paced.begin(), nic.paced.end(), later_paced);
}

inline QueuePair& queue_pair_at(State& s, const NicPort& nic, SlotId slot) {
  return s.queue_pairs[nic.slots[slot]];
}

inline bool class_paused(const State& s, PortId port, TrafficClass klass, Ps at_ps) {
  return s.queue_controls[s.at(port, klass)].paused_until_ps > at_ps;
}

/// Whether the lost packet of a queue pair that has one is sent, not the next one: unless its class is paused.
inline bool sends_lost(const State& s, const QueuePair& qp, PortId port, Ps at_ps) {
  return has_lost(s, qp) && !class_paused(s, port, lost_message(s, qp).klass, at_ps);
}

/// From when on no pause holds back a queue pair that may send as far as window and credits are concerned.
inline Ps open_from_ps(const State& s, const QueuePair& qp, PortId port) {
  const auto open = [&](TrafficClass klass) { return s.queue_controls[s.at(port, klass)].paused_until_ps; };
  if (!has_lost(s, qp)) [[likely]]
    return open(class_to_send(s, qp));
  const Ps lost = open(lost_message(s, qp).klass);
  return can_send_next(s, qp) ? std::min(lost, open(class_to_send(s, qp))) : lost;
}

/// When the NIC port should next try to start something; never too late, perhaps too early.
inline Ps nic_due(State& s, PortId port) {
  const Port& out = s.ports[port];
  if (!out.up) return kNeverPs;
  if (out.frame_waits) return out.free_at_ps;
  NicPort& nic = nic_of(s, port);
  Ps due = kNeverPs;
  if (out.pending != 0)
    due = std::max(out.free_at_ps, s.queue_controls[s.at(port, s.in.control_class)].paused_until_ps);
  if (!nic.paced.empty()) due = std::min(due, std::max(out.free_at_ps, nic.paced.front().at_ps));
  if (nic.ready_count == 0) return due;
  if (out.paused == 0) return std::min(due, out.free_at_ps);
  Ps open = kNeverPs;  // the first class that is not paused any more; without a ready queue pair the try finds nothing
  nic.ready.any([&](SlotId slot) {
    const QueuePair& qp = queue_pair_at(s, nic, slot);
    if (qp.sender.nxt >= qp.sender.end && !has_lost(s, qp)) return false;
    open = std::min(open, open_from_ps(s, qp, port));
    return open <= out.free_at_ps;
  });
  return std::min(due, std::max(out.free_at_ps, open));
}

/// Hand a filled packet at `slot` to the wire.
inline void launch(State& s, Port& out, Packet* slot, Ps at_ps) {
  out.frames += 1;
  out.bytes += slot->bytes;
  out.free_at_ps = at_ps + s.serialisation(out, slot->bytes);
  slot->at_ps = out.free_at_ps + out.delay_ps;
  s.announce(out, slot->at_ps);
}

inline void set_deadline(State& s, QueuePair& qp, Ps deadline_ps) {
  Sender& sender = qp.sender;
  sender.deadline_at_ps = deadline_ps;
  if (deadline_ps == kOff) return;
  arm(s.agendas[s.in.port_node[qp.source_port]], sender.deadline_entry_at_ps, deadline_ps,
      port_key(AgendaKind::kRetransmission, s.local_port(qp.source_port), sender.slot.index()));
}

inline void select_path(State& s, QueuePair& qp, std::int64_t seq, std::int64_t payload, std::uint64_t packet_id,
                        Ps at_ps) {
  Sender& sender = qp.sender;
  Signal& signal = sender_signal(s, qp, Kind::kSend, at_ps);
  signal.seq = seq;
  signal.bytes = payload;
  signal.entropy = qp.own_entropy;
  signal.draw =
      static_cast<std::int64_t>(draw(s.in.seed, Stream::kPathChoice, qp.flow, packet_id, qp.source_port.index()) >> 2);
  call_path(s, qp);
  const auto entropy = static_cast<std::uint16_t>(path_state(qp).entropy);
  if (entropy == sender.entropy) return;
  sender.entropy = entropy;
  sender.hash = carried_hash(s, qp, true, entropy);
}

/// Send the next data packet of a queue pair, or the first one that is lost.
inline void send_data(State& s, NicPort& nic, PortId port, QueuePair& qp, Ps at_ps) {
  Port& out = s.ports[port];
  const TransportRow& transport = s.in.transport;
  Sender& sender = qp.sender;
  const bool again = s.in.transport.selective_repeat != 0 && sends_lost(s, qp, port, at_ps);
  const Message& message = again ? lost_message(s, qp) : s.messages[sender.nxt_message];
  const std::int64_t seq = again ? qp.selective->first_lost() : sender.nxt;
  if (again) sender.attempt = static_cast<std::uint16_t>(sender.attempt + 1);
  const std::int64_t payload = payload_bytes(s, message, seq);
  const bool first = seq == message.first;
  const bool last = seq + 1 == message.end;
  Queue& queue = s.queues[s.at(port, message.klass)];
  Packet* slot = queue.tail;
  slot->queue_pair = nic.slots[sender.slot];
  slot->seq = static_cast<std::uint32_t>(seq);
  slot->destination_port = qp.destination_port;
  slot->bytes = static_cast<std::uint16_t>(payload + transport.data_overhead_bytes + transport.telemetry_bytes +
                                           (first ? transport.first_extra_bytes : 0));
  slot->ingress = 0;
  slot->attempt = sender.attempt;
  slot->kind = PacketKind::kData;
  if (s.in.path.step != nullptr && (first || !s.in.path.per_message))
    select_path(s, qp, seq, payload, identity(*slot), at_ps);
  slot->hash = sender.hash;
  if (s.extended) {
    Extension& ext = extension(slot);
    ext = {};
    ext.sent_at_ps = at_ps;
    ext.entropy = sender.entropy;
    ext.origin_port = port;
  }
  s.count.data_sent += 1;
  if (seq < sender.high) s.count.retransmissions += 1;
  if (again) [[unlikely]] {
    qp.selective->take();
  } else {
    sender.nxt += 1;
    sender.nxt_bytes += payload;
    if (last) sender.nxt_message = message.next;
    sender.high = std::max(sender.high, sender.nxt);
  }
  const bool asks = again || last || (seq + 1) % transport.ack_every == 0 || [&] {
    const std::int64_t inflight = sender.nxt_bytes - sender.una_bytes;  // not zero, so the window alone decides
    return static_cast<double>(inflight + payload_bytes(s, message, sender.nxt)) > sender_state(qp).window_bytes;
  }();
  slot->flags = static_cast<PacketFlags>(kForward | (asks ? kAckRequest : 0) | (first ? kFirst : 0));
  queue.tail = s.pool.extend(slot);
  queue.departure = queue.tail;
  if (is_sampled(s, *slot)) [[unlikely]]
    record_path(s, *slot, port, 0);
  if (sender.deadline_at_ps == kOff) set_deadline(s, qp, at_ps + transport.retransmission_timeout_ps);
  if (wants(s.in.congestion.signals, Kind::kSend)) {
    Signal& signal = sender_signal(s, qp, Kind::kSend, at_ps);
    signal.bytes = payload;
    signal.seq = seq;
    signal.entropy = sender.entropy;
    call_sender(s, qp, at_ps);
  }
  const std::int64_t line_bytes = slot->bytes + transport.interframe_bytes;
  const double gap_ps = static_cast<double>(line_bytes) * 8e12 / sender_state(qp).rate_bps;
  sender.next_send_at_ps = at_ps + (gap_ps < static_cast<double>(kNeverPs) ? static_cast<Ps>(gap_ps) : kNeverPs);
  launch(s, out, slot, at_ps);
  nic.turn = sender.slot + 1;
  if (sender.next_send_at_ps <= out.free_at_ps && can_send(s, qp)) return;  // stays ready
  clear_ready(nic, sender);
  reconsider(s, qp);
}

/// The first ready queue pair from `nic.turn` on that may send at `at_ps`, or null. Those that may not are put aside.
inline QueuePair* next_sender(State& s, NicPort& nic, PortId port, Ps at_ps) {
  if (nic.ready_count == 0) return nullptr;
  const bool pauses = s.ports[port].paused != 0;
  const SlotId turn = nic.turn < nic.slots.next_id() ? nic.turn : SlotId(0);
  QueuePair* found = nullptr;
  nic.ready.any_from(turn, [&](SlotId slot) {
    QueuePair& qp = queue_pair_at(s, nic, slot);
    if (!can_send(s, qp)) {
      clear_ready(nic, qp.sender);
      return false;
    }
    if (pauses && open_from_ps(s, qp, port) > at_ps) return false;
    found = &qp;
    return true;
  });
  return found;
}

/// Try to start something on an idle NIC port.
inline void start_nic_port(State& s, PortId port, Ps at_ps) {
  Port& out = s.ports[port];
  NicPort& nic = nic_of(s, port);
  while (!nic.paced.empty() && nic.paced.front().at_ps <= at_ps) {
    Sender& sender = queue_pair_at(s, nic, nic.paced.front().slot).sender;
    std::pop_heap(nic.paced.begin(), nic.paced.end(), later_paced);
    nic.paced.pop_back();
    sender.standing = Standing::kBlocked;
    set_ready(nic, sender);
  }
  const TrafficClass control = s.in.control_class;
  if (out.frame_waits) {
    start_frame(s, port, at_ps);
  } else if (out.pending != 0 && !class_paused(s, port, control, at_ps)) {
    Queue& queue = s.queues[s.at(port, control)];
    Packet* packet = queue.departure;
    queue.bytes -= packet->bytes;
    queue.departure = s.pool.next(packet);
    if (queue.departure == queue.tail) out.pending = 0;
    launch(s, out, packet, at_ps);
  } else if (QueuePair* qp = next_sender(s, nic, port, at_ps); qp != nullptr) {
    send_data(s, nic, port, *qp, at_ps);
  }
  s.due_at_ps[port] = nic_due(s, port);
}

/// Everything that leaves the NIC port up to and at `at_ps`.
inline void drain_nic(State& s, PortId port, Ps at_ps) {
  while (s.due_at_ps[port] <= at_ps) start_nic_port(s, port, s.due_at_ps[port]);
}

/// The end of an event at `at_ps`: an idle port that can send, does.
inline void kick_nic(State& s, PortId port, Ps at_ps) {
  s.due_at_ps[port] = std::max(at_ps, nic_due(s, port));
  drain_nic(s, port, at_ps);
}

/// Queue a control packet at a NIC port and return it for the rest to be filled in.
inline Packet* queue_control(State& s, PortId port, QueuePairId queue_pair, PacketKind kind, bool forward,
                             std::int64_t seq, std::uint16_t attempt, std::int64_t bytes) {
  const QueuePair& qp = s.queue_pairs[queue_pair];
  Queue& queue = s.queues[s.at(port, s.in.control_class)];
  Packet* slot = queue.tail;
  queue.tail = s.pool.extend(slot);
  *slot = {kNeverPs,
           queue_pair,
           static_cast<std::uint32_t>(seq),
           forward ? carried_hash(s, qp, true, qp.own_entropy) : qp.reverse_hash,
           forward ? qp.destination_port : qp.source_port,
           static_cast<std::uint16_t>(bytes),
           0,
           attempt,
           kind,
           static_cast<PacketFlags>(forward ? kForward : 0)};
  if (s.extended) {
    extension(slot) = {};
    extension(slot).origin_port = port;
  }
  queue.bytes += static_cast<std::int32_t>(bytes);
  s.ports[port].pending = 1;
  return slot;
}

/// The payload and the messages between `una` and `expected` are acknowledged.
inline std::int64_t acknowledge(State& s, QueuePair& qp, std::int64_t expected, Ps now_ps) {
  Sender& sender = qp.sender;
  const std::int64_t una = sender.una;
  std::int64_t bytes = 0;
  while (sender.una < expected) {
    Message& message = s.messages[sender.una_message];
    const std::int64_t upto = std::min(expected, message.end);
    bytes += upto == message.end ? message.size_bytes - (sender.una - message.first) * s.in.transport.mtu_bytes
                                 : (upto - sender.una) * s.in.transport.mtu_bytes;
    sender.una = upto;
    if (upto < message.end) break;
    message.acked_at_ps = now_ps;
    s.open_work -= 1;
    sender.una_message = message.next;
    complete_posted(s, message.stream, now_ps);
  }
  sender.una_bytes += bytes;
  if (s.in.transport.selective_repeat != 0 && qp.selective != nullptr) qp.selective->acknowledge(una, expected);
  if (sender.nxt < expected) {
    sender.nxt = expected;
    sender.nxt_bytes = sender.una_bytes;
    sender.nxt_message = sender.una_message;
  }
  sender.retries = 0;
  set_deadline(s, qp, sender.una == sender.nxt ? kOff : now_ps + s.in.transport.retransmission_timeout_ps);
  return bytes;
}

inline Selective& selective_of(const State& s, QueuePair& qp) {
  if (qp.selective == nullptr)
    qp.selective = std::make_unique<Selective>(qp.sender.una, s.in.transport.reorder_window_packets);
  return *qp.selective;
}

/// Resend from the first packet that is not acknowledged; under selective repeat without those that the receiver keeps.
inline void go_back(State& s, QueuePair& qp) {
  Sender& sender = qp.sender;
  if (s.in.transport.selective_repeat != 0) {
    selective_of(s, qp).lose_all(sender.una, sender.nxt);
    sender.deadline_at_ps = kOff;
    return;
  }
  sender.nxt = sender.una;
  sender.nxt_bytes = sender.una_bytes;
  sender.nxt_message = sender.una_message;
  sender.attempt = static_cast<std::uint16_t>(sender.attempt + 1);
  sender.deadline_at_ps = kOff;
  if (sender.standing == Standing::kReady) clear_ready(nic_of(s, qp.source_port), sender);
}

inline void fill_echo(const State& s, Signal& signal, Packet* packet, Ps now_ps) {
  signal.ecn = has(packet->flags, kMarked) ? 1 : 0;
  signal.seq = packet->seq;
  if (!s.extended || !has(packet->flags, kHasEcho)) return;
  const Extension& ext = extension(packet);
  signal.rtt_ps = now_ps - ext.sent_at_ps;
  signal.host_delay_ps = ext.host_delay_ps;
  signal.fabric_delay_ps = signal.rtt_ps - ext.host_delay_ps;
  signal.entropy = ext.entropy;
  if (!s.in.congestion.telemetry) return;
  signal.hops = ext.hops;
  for (std::size_t i = 0; i < ext.hops; ++i) {
    const Hop& hop = hops(packet)[i];
    signal.hop_queue_bytes[i] = hop.queue_bytes();
    signal.hop_tx_bytes[i] = hop.tx_bytes();
    signal.hop_rate_bps[i] = hop.rate_bps();
    signal.hop_at_ps[i] = hop.at_ps;
  }
}

/// Tell path selection and congestion control, as far as they want to know.
inline void tell(State& s, QueuePair& qp, Kind kind, Packet* packet, std::int64_t bytes, Ps now_ps) {
  const auto fill = [&] {
    Signal& signal = sender_signal(s, qp, kind, now_ps);
    signal.bytes = bytes;
    if (kind == Kind::kAck) fill_echo(s, signal, packet, now_ps);
    if (kind == Kind::kNak) signal.seq = packet->seq;
  };
  if (s.in.path.step != nullptr && wants(s.in.path.signals, kind)) {
    fill();
    call_path(s, qp);
  }
  if (wants(s.in.congestion.signals, kind)) {
    fill();
    call_sender(s, qp, now_ps);
  }
}

/// With nothing outstanding the timer runs only while credits hold the queue pair back, so that a lost credit is asked
/// for again.
inline void guard_credits(State& s, QueuePair& qp, Ps now_ps) {
  Sender& sender = qp.sender;
  if (sender.una != sender.nxt) return;
  if (sender.failed || !credit_blocked(s, qp))
    sender.deadline_at_ps = kOff;
  else if (sender.deadline_at_ps == kOff)
    set_deadline(s, qp, now_ps + s.in.transport.retransmission_timeout_ps);
}

inline void handle_ack(State& s, QueuePair& qp, Packet* packet, Ps now_ps) {
  Sender& sender = qp.sender;
  const bool nak = packet->kind == PacketKind::kNak;
  const bool selects = nak && s.in.transport.selective_repeat != 0;
  if (sender.failed) return;
  if (std::cmp_less(packet->seq, sender.una)) {
    if (!selects) return;
    packet->seq = static_cast<std::uint32_t>(sender.una);  // old, but what the receiver keeps is news all the same
  }
  const std::int64_t expected = packet->seq;
  const bool had_lost = selects && has_lost(s, qp);
  if (s.in.transport.end_to_end_credits > 0) {
    const Extension& ext = extension(packet);
    sender.credit_limit = std::max(sender.credit_limit, ext.msn + kCredits[ext.credit_code]);
  }
  const bool news = expected > sender.una;
  const std::int64_t bytes = news ? acknowledge(s, qp, expected, now_ps) : 0;
  if (selects) {
    const std::int64_t kept = extension(packet).refused;
    if (kept >= sender.una) selective_of(s, qp).keep(kept, kept - s.in.transport.reorder_threshold_packets);
  }
  if (news || !nak || selects) tell(s, qp, Kind::kAck, packet, bytes, now_ps);
  if (selects) {
    if (!had_lost && has_lost(s, qp)) tell(s, qp, Kind::kNak, packet, 0, now_ps);
  } else if (nak && expected == sender.una && sender.nxt > sender.una) {
    go_back(s, qp);
    s.note(now_ps, EventKind::kGoBack, packet->queue_pair.value, 0);
    tell(s, qp, Kind::kNak, packet, 0, now_ps);
  }
  if (sender.una == sender.end) stop_timers(qp);
  guard_credits(s, qp, now_ps);
  reconsider(s, qp);
}

/// A CNP or a grant of credit.
inline void handle_notice(State& s, QueuePair& qp, Kind kind, std::int64_t bytes, Ps now_ps) {
  const Sender& sender = qp.sender;
  if (sender.failed || (kind == Kind::kCnp && sender.una == sender.end)) return;
  if (wants(s.in.congestion.signals, kind)) {
    Signal& signal = sender_signal(s, qp, kind, now_ps);
    signal.bytes = bytes;
    call_sender(s, qp, now_ps);
  }
  reconsider(s, qp);
}

/// The retransmission timer has fired for good.
inline void handle_timeout(State& s, QueuePairId id, Ps now_ps) {
  QueuePair& qp = s.queue_pairs[id];
  Sender& sender = qp.sender;
  sender.deadline_at_ps = kOff;
  if (sender.una < sender.nxt) {
    s.count.timeouts += 1;
    s.note(now_ps, EventKind::kTimeout, id.value, 0);
    sender.retries += 1;
    if (sender.retries > s.in.transport.retry_limit) {
      s.count.queue_pair_errors += 1;
      sender.failed = true;
      stop_timers(qp);
      if (sender.standing == Standing::kReady) clear_ready(nic_of(s, qp.source_port), sender);
      return;
    }
    go_back(s, qp);
    tell(s, qp, Kind::kTimeout, nullptr, 0, now_ps);
  } else if (credit_blocked(s, qp)) {
    s.count.probes_sent += 1;
    queue_control(s, qp.source_port, id, PacketKind::kProbe, true, sender.una,
                  static_cast<std::uint16_t>(sender.probes++), s.in.transport.ack_bytes);
    set_deadline(s, qp, now_ps + s.in.transport.retransmission_timeout_ps);
  }
  guard_credits(s, qp, now_ps);
  reconsider(s, qp);
}

}  // namespace weftwork
