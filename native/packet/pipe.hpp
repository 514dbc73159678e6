/// Output of a NIC port: flow-control frames, then control packets, then one queue pair's data packet. Queue pairs take
/// turns. A packet is filled where it waits for its arrival: in the stream of its port and traffic class.
/// Source: IBTA vol. 1, chapter 9.7 (reliable connections), as docs/models/packet-engine.md states it.
#pragma once
#include <algorithm>
#include <cstdint>

#include "base/clock.hpp"
#include "base/ids.hpp"
#include "base/invariant.hpp"
#include "base/random.hpp"
#include "packet/capture.hpp"
#include "packet/credits.hpp"
#include "packet/fabric.hpp"
#include "packet/flow_control.hpp"
#include "packet/hashing.hpp"
#include "packet/host_processor.hpp"
#include "packet/hosts.hpp"
#include "packet/ids.hpp"
#include "packet/job_records.hpp"
#include "packet/line.hpp"
#include "packet/packet.hpp"
#include "packet/paths.hpp"
#include "packet/port_records.hpp"
#include "packet/queue_pair_records.hpp"
#include "packet/routing_tables.hpp"
#include "packet/scheduling.hpp"
#include "packet/setup.hpp"
#include "packet/state.hpp"
#include "packet/steps.hpp"
#include "packet/timers.hpp"
#include "rows/policies.hpp"
#include "rows/transport.hpp"

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
inline Packet* queue_control(const Setup& setup, Fabric& fabric, const RoutingTables& routing, const Hosts& hosts,
                             PortId port, QueuePairId queue_pair, PacketKind kind, bool forward, std::int64_t seq,
                             std::uint16_t attempt, std::int64_t bytes) {
  const QueuePair& qp = hosts.queue_pairs[queue_pair];
  Queue& queue = fabric.queues[setup.at(port, setup.in.control_class)];
  Packet* slot = queue.tail;
  must_hold(static_cast<std::uint64_t>(bytes - 1) < UINT16_MAX, Invariant::frame_fits_its_record,
            "port queue_pair kind bytes", port, queue_pair, kind, bytes);
  queue.tail = fabric.pool.extend(slot);
  *slot = {kNeverPs,
           queue_pair,
           static_cast<std::uint32_t>(seq),
           forward ? carried_hash(routing, qp, true, qp.own_entropy) : qp.reverse_hash,
           forward ? qp.destination_port : qp.source_port,
           static_cast<std::uint16_t>(bytes),
           0,
           attempt,
           kind,
           static_cast<PacketFlags>(forward ? kForward : 0)};
  if (setup.extended) {
    extension(slot) = {};
    extension(slot).origin_port = port;
  }
  if (setup.wide) set_wide(slot, 0);
  queue.bytes += static_cast<std::int32_t>(bytes);
  must_hold(queue.bytes >= bytes, Invariant::queue_holds_what_it_counts, "port queue_pair queue_bytes", port,
            queue_pair, queue.bytes);
  fabric.ports[port].pending = 1;
  return slot;
}

/// Ask the receiver for credit.
[[gnu::noinline]] inline void send_request(State& s, QueuePair& qp) {
  SenderState& state = sender_state(qp);
  state.send_request = 0;
  s.recordings.count.requests_sent += 1;
  const QueuePairId id = nic_of(s.hosts, qp.source_port).slots[qp.sender.slot];
  must_hold(id != kMovedAway, Invariant::slot_has_its_queue_pair, "port slot", qp.source_port, qp.sender.slot);
  Packet* request = queue_control(s.setup, s.fabric, s.routing, s.hosts, qp.source_port, id, PacketKind::kRequest, true,
                                  qp.sender.nxt, qp.requests++, s.setup.in.transport.credit_bytes);
  if (s.setup.wide) wide(request).request_bytes = state.request_bytes;
}

/// Call the sender's step with `calls.signal`, which is filled, and do what it asks for.
inline void tell_sender(State& s, QueuePair& qp, Kind kind, Ps now_ps) {
  call_sender(s.setup, s.schedule, s.calls, qp, now_ps);
  if (s.setup.in.congestion.moves_departures && kind != Kind::kSend) [[unlikely]]
    move_departure(s.setup, s.fabric, s.hosts, qp, now_ps);
  if (sender_state(qp).send_request != 0) [[unlikely]]
    send_request(s, qp);
}

inline void select_path(State& s, QueuePair& qp, std::int64_t seq, std::int64_t payload, std::uint64_t packet_id,
                        Ps at_ps) {
  Sender& sender = qp.sender;
  Signal& signal = sender_signal(s.setup, s.fabric, s.calls, qp, Kind::kSend, at_ps);
  signal.seq = seq;
  signal.bytes = payload;
  signal.entropy = qp.own_entropy;
  signal.draw = static_cast<std::int64_t>(
      draw(s.setup.in.seed, Stream::kPathChoice, qp.flow, packet_id, qp.source_port.index()) >> 2);
  call_path(s.setup, s.schedule, s.calls, qp, at_ps);
  const auto entropy = static_cast<std::uint16_t>(path_state(qp).entropy);
  if (entropy == sender.entropy) return;
  sender.entropy = entropy;
  sender.hash = carried_hash(s.routing, qp, true, entropy);
}

/// Send the next data packet of a queue pair, or the first one that is lost.
inline void send_data(State& s, NicPort& nic, PortId port, QueuePair& qp, Ps at_ps) {
  Port& out = s.fabric.ports[port];
  const TransportRow& transport = s.setup.in.transport;
  Sender& sender = qp.sender;
  const bool again =
      s.setup.in.transport.selective_repeat != 0 && sends_lost(s.setup, s.fabric, s.job, qp, port, at_ps);
  const Message& message = again ? lost_message(s.job, qp) : s.job.messages[sender.nxt_message];
  const std::int64_t seq = again ? qp.selective->first_lost() : sender.nxt;
  if (again) sender.attempt = static_cast<std::uint16_t>(sender.attempt + 1);
  const std::int64_t payload = payload_bytes(s.setup, message, seq);
  must_hold(seq >= sender.una && static_cast<std::uint64_t>(seq - message.first) <
                                     static_cast<std::uint64_t>(message.end - message.first),

            Invariant::packet_numbers_in_order, "at_ps port slot seq una end", at_ps, port, sender.slot, seq,
            sender.una, sender.end);
  const std::int64_t inflight_before = inflight_bytes(sender);
  const double window = window_bytes(s.setup, qp);
  must_hold(again || inflight_before == 0 || static_cast<double>(inflight_before + payload) <= window,
            Invariant::packet_sent_within_the_window, "at_ps port slot seq inflight_bytes payload_bytes", at_ps, port,
            sender.slot, seq, inflight_before, payload);
  const bool first = seq == message.first;
  const bool last = seq + 1 == message.end;
  Queue& queue = s.fabric.queues[s.setup.at(port, message.klass)];
  const bool overtakes = queue.departure != queue.tail;  // control packets of its class, which need more credit
  Packet* slot = overtakes ? s.fabric.pool.make_room(queue.departure, queue.tail) : queue.tail;
  slot->queue_pair = nic.slots[sender.slot];
  slot->seq = static_cast<std::uint32_t>(seq);
  slot->destination_port = qp.destination_port;
  slot->bytes = static_cast<std::uint16_t>(payload + transport.data_overhead_bytes + transport.telemetry_bytes +
                                           (first ? transport.first_extra_bytes : 0));
  slot->ingress = 0;
  slot->attempt = sender.attempt;
  slot->kind = PacketKind::kData;
  if (s.setup.in.path.step != nullptr && (first || !s.setup.in.path.per_message))
    select_path(s, qp, seq, payload, identity(*slot), at_ps);
  slot->hash = sender.hash;
  if (s.setup.keeps_entropies) qp.sent_entropies.put(seq, sender.una, sender.entropy);
  if (s.setup.extended) {
    Extension& ext = extension(slot);
    ext = {};
    ext.sent_at_ps = at_ps;
    ext.entropy = sender.entropy;
    ext.origin_port = port;
    ext.payload_bytes = static_cast<std::uint32_t>(payload);
  }
  s.recordings.count.data_sent += 1;
  if (seq < sender.high) s.recordings.count.retransmissions += 1;
  if (again) [[unlikely]] {
    qp.selective->resend(sender.una, sender.nxt);
    sender.away_bytes -= payload;
    must_hold(seq < sender.nxt && sender.away_bytes >= 0, Invariant::in_flight_bytes_are_sent_minus_acknowledged,
              "at_ps port slot seq away_bytes", at_ps, port, sender.slot, seq, sender.away_bytes);
  } else {
    sender.nxt += 1;
    sender.nxt_bytes += payload;
    if (last) sender.nxt_message = message.next;
    sender.high = std::max(sender.high, sender.nxt);
  }
  const bool asks = again || last || (seq + 1) % transport.ack_every == 0 || [&] {
    const std::int64_t inflight = inflight_bytes(sender);  // not zero, so the window alone decides
    return static_cast<double>(inflight + payload_bytes(s.setup, message, sender.nxt)) > window;
  }();
  slot->flags = static_cast<PacketFlags>(kForward | (asks ? kAckRequest : 0) | (first ? kFirst : 0));
  if (!overtakes) [[likely]]
    queue.tail = s.fabric.pool.extend(slot);
  queue.departure = overtakes ? s.fabric.pool.next(slot) : queue.tail;
  if (is_sampled(s.setup, *slot)) [[unlikely]]
    record_path(s.hosts, s.recordings, *slot, port, 0);
  if (sender.deadline_at_ps == kOff) set_deadline(s.setup, s.schedule, qp, at_ps + timeout_ps(s.setup, qp));
  if (wants(s.setup.in.congestion.signals, Kind::kSend)) {
    Signal& signal = sender_signal(s.setup, s.fabric, s.calls, qp, Kind::kSend, at_ps);
    signal.bytes = payload;
    signal.seq = seq;
    signal.entropy = sender.entropy;
    tell_sender(s, qp, Kind::kSend, at_ps);
  }
  if (s.setup.wide) set_wide(slot, sender_state(qp).request_bytes);
  const std::int64_t line_bytes = slot->bytes + transport.interframe_bytes;
  if (s.setup.in.keeps_segments) [[unlikely]]
    pace_segment(qp, line_bytes, at_ps);
  else
    sender.next_send_at_ps = at_ps + gap_ps(qp, line_bytes);
  if (!s.recordings.captured.empty()) [[unlikely]]
    capture_packet(s.setup, s.fabric, s.hosts, s.recordings, port, message.klass, slot, at_ps);
  transmit(s.fabric, s.schedule, out, slot, at_ps);
  if (s.setup.has_host_processor) [[unlikely]]
    out.free_at_ps = std::max(out.free_at_ps, at_ps + host_cost_ps(transport, payload));
  if (s.setup.link_credits) take_credit(s.setup, s.fabric, port, message.klass, slot->bytes);
  nic.turn = sender.slot + 1;
  if (sender.next_send_at_ps <= out.free_at_ps && can_send(s.setup, s.job, qp)) return;  // stays ready
  clear_ready(nic, sender);
  reconsider(s.setup, s.fabric, s.hosts, s.job, qp);
}

/// Try to start something on an idle NIC port.
inline void start_nic_port(State& s, PortId port, Ps at_ps) {
  Port& out = s.fabric.ports[port];
  NicPort& nic = nic_of(s.hosts, port);
  while (!nic.paced.empty() && nic.paced.front().at_ps <= at_ps) {
    std::pop_heap(nic.paced.begin(), nic.paced.end(), later_paced);
    const NicPort::Paced entry = nic.paced.back();
    nic.paced.pop_back();
    if (s.setup.in.congestion.moves_departures && !takes_departure(s.setup, s.hosts, nic, entry, at_ps)) [[unlikely]]
      continue;
    Sender& sender = queue_pair_at(s.hosts, nic, entry.slot).sender;
    sender.standing = Standing::kBlocked;
    set_ready(nic, sender);
  }
  const TrafficClass control = s.setup.in.control_class;
  if (out.frame_waits) {
    start_frame(s.setup, s.fabric, s.schedule, s.recordings, port, at_ps);
  } else if (out.pending != 0 && control_open_from_ps(s.setup, s.fabric, port) <= at_ps) {
    Queue& queue = s.fabric.queues[s.setup.at(port, control)];
    Packet* packet = queue.departure;
    queue.bytes -= packet->bytes;
    queue.departure = s.fabric.pool.next(packet);
    if (queue.departure == queue.tail) {
      must_hold(queue.bytes == 0, Invariant::queue_holds_what_it_counts, "at_ps port queue_bytes", at_ps, port,
                queue.bytes);
      out.pending = 0;
    }
    if (!s.recordings.captured.empty()) [[unlikely]]
      capture_packet(s.setup, s.fabric, s.hosts, s.recordings, port, control, packet, at_ps);
    transmit(s.fabric, s.schedule, out, packet, at_ps);
    if (s.setup.link_credits) take_credit(s.setup, s.fabric, port, control, packet->bytes);
  } else if (QueuePair* qp = next_sender(s.setup, s.fabric, s.hosts, s.job, nic, port, at_ps); qp != nullptr) {
    send_data(s, nic, port, *qp, at_ps);
  }
  s.schedule.due_at_ps[port] = nic_due(s.setup, s.fabric, s.hosts, s.job, port);
}

/// Everything that leaves the NIC port up to and at `at_ps`.
inline void drain_nic(State& s, PortId port, Ps at_ps) {
  while (s.schedule.due_at_ps[port] <= at_ps) start_nic_port(s, port, s.schedule.due_at_ps[port]);
}

/// The end of an event at `at_ps`: an idle port that can send, does.
inline void kick_nic(State& s, PortId port, Ps at_ps) {
  s.schedule.due_at_ps[port] = std::max(at_ps, nic_due(s.setup, s.fabric, s.hosts, s.job, port));
  drain_nic(s, port, at_ps);
}

}  // namespace weftwork
