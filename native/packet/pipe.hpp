/// Output of a NIC port: flow-control frames, then control packets, then one queue pair's data packet. Queue pairs take
/// turns. A packet is filled where it waits for its arrival: in the stream of its port and traffic class.
/// Source: IBTA vol. 1, chapter 9.7 (reliable connections), as docs/models/packet-engine.md states it.
#pragma once
#include <algorithm>

#include "packet/hashing.hpp"
#include "packet/host_processor.hpp"
#include "packet/line.hpp"
#include "packet/paths.hpp"
#include "packet/scheduling.hpp"

namespace weftwork {

/// What port selection finds in a packet that begins, and a number of the packet's kind.
inline void set_wide(Packet* packet, std::int64_t number) {
  Wide& part = wide(packet);
  part.word = 0;
  part.request_bytes = number;
  part.via = AttachmentId::none();
  part.path_load = 0;
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
  if (s.wide) set_wide(slot, 0);
  queue.bytes += static_cast<std::int32_t>(bytes);
  s.ports[port].pending = 1;
  return slot;
}

/// Ask the receiver for credit.
[[gnu::noinline]] inline void send_request(State& s, QueuePair& qp) {
  SenderState& state = sender_state(qp);
  state.send_request = 0;
  s.count.requests_sent += 1;
  const QueuePairId id = nic_of(s, qp.source_port).slots[qp.sender.slot];
  Packet* request = queue_control(s, qp.source_port, id, PacketKind::kRequest, true, qp.sender.nxt, qp.requests++,
                                  s.in.transport.credit_bytes);
  if (s.wide) wide(request).request_bytes = state.request_bytes;
}

/// Call the sender's step with `s.signal`, which is filled, and do what it asks for.
inline void tell_sender(State& s, QueuePair& qp, Kind kind, Ps now_ps) {
  call_sender(s, qp, now_ps);
  if (s.in.congestion.moves_departures && kind != Kind::kSend) [[unlikely]]
    move_departure(s, qp, now_ps);
  if (sender_state(qp).send_request != 0) [[unlikely]]
    send_request(s, qp);
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
  call_path(s, qp, at_ps);
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
  const bool overtakes = queue.departure != queue.tail;  // control packets of its class, which need more credit
  Packet* slot = overtakes ? s.pool.make_room(queue.departure, queue.tail) : queue.tail;
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
  if (s.keeps_entropies) qp.sent_entropies.put(seq, sender.una, sender.entropy);
  if (s.extended) {
    Extension& ext = extension(slot);
    ext = {};
    ext.sent_at_ps = at_ps;
    ext.entropy = sender.entropy;
    ext.origin_port = port;
    ext.payload_bytes = static_cast<std::uint32_t>(payload);
  }
  s.count.data_sent += 1;
  if (seq < sender.high) s.count.retransmissions += 1;
  if (again) [[unlikely]] {
    qp.selective->resend(sender.una, sender.nxt);
    sender.away_bytes -= payload;
  } else {
    sender.nxt += 1;
    sender.nxt_bytes += payload;
    if (last) sender.nxt_message = message.next;
    sender.high = std::max(sender.high, sender.nxt);
  }
  const bool asks = again || last || (seq + 1) % transport.ack_every == 0 || [&] {
    const std::int64_t inflight = inflight_bytes(sender);  // not zero, so the window alone decides
    return static_cast<double>(inflight + payload_bytes(s, message, sender.nxt)) > window_bytes(s, qp);
  }();
  slot->flags = static_cast<PacketFlags>(kForward | (asks ? kAckRequest : 0) | (first ? kFirst : 0));
  if (!overtakes) [[likely]]
    queue.tail = s.pool.extend(slot);
  queue.departure = overtakes ? s.pool.next(slot) : queue.tail;
  if (is_sampled(s, *slot)) [[unlikely]]
    record_path(s, *slot, port, 0);
  if (sender.deadline_at_ps == kOff) set_deadline(s, qp, at_ps + timeout_ps(s, qp));
  if (wants(s.in.congestion.signals, Kind::kSend)) {
    Signal& signal = sender_signal(s, qp, Kind::kSend, at_ps);
    signal.bytes = payload;
    signal.seq = seq;
    signal.entropy = sender.entropy;
    tell_sender(s, qp, Kind::kSend, at_ps);
  }
  if (s.wide) set_wide(slot, sender_state(qp).request_bytes);
  const std::int64_t line_bytes = slot->bytes + transport.interframe_bytes;
  if (s.in.keeps_segments) [[unlikely]]
    pace_segment(qp, line_bytes, at_ps);
  else
    sender.next_send_at_ps = at_ps + gap_ps(qp, line_bytes);
  if (!s.captured.empty()) [[unlikely]]
    capture_packet(s, port, message.klass, slot, at_ps);
  transmit(s, out, slot, at_ps);
  if (s.has_host_processor) [[unlikely]]
    out.free_at_ps = std::max(out.free_at_ps, at_ps + host_cost_ps(transport, payload));
  if (s.link_credits) take_credit(s, port, message.klass, slot->bytes);
  nic.turn = sender.slot + 1;
  if (sender.next_send_at_ps <= out.free_at_ps && can_send(s, qp)) return;  // stays ready
  clear_ready(nic, sender);
  reconsider(s, qp);
}

/// Try to start something on an idle NIC port.
inline void start_nic_port(State& s, PortId port, Ps at_ps) {
  Port& out = s.ports[port];
  NicPort& nic = nic_of(s, port);
  while (!nic.paced.empty() && nic.paced.front().at_ps <= at_ps) {
    std::pop_heap(nic.paced.begin(), nic.paced.end(), later_paced);
    const NicPort::Paced entry = nic.paced.back();
    nic.paced.pop_back();
    if (s.in.congestion.moves_departures && !takes_departure(s, nic, entry, at_ps)) [[unlikely]]
      continue;
    Sender& sender = queue_pair_at(s, nic, entry.slot).sender;
    sender.standing = Standing::kBlocked;
    set_ready(nic, sender);
  }
  const TrafficClass control = s.in.control_class;
  if (out.frame_waits) {
    start_frame(s, port, at_ps);
  } else if (out.pending != 0 && control_open_from_ps(s, port) <= at_ps) {
    Queue& queue = s.queues[s.at(port, control)];
    Packet* packet = queue.departure;
    queue.bytes -= packet->bytes;
    queue.departure = s.pool.next(packet);
    if (queue.departure == queue.tail) out.pending = 0;
    if (!s.captured.empty()) [[unlikely]]
      capture_packet(s, port, control, packet, at_ps);
    transmit(s, out, packet, at_ps);
    if (s.link_credits) take_credit(s, port, control, packet->bytes);
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

}  // namespace weftwork
