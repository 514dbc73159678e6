/// The receiving side of a NIC: host interface, expected packet, early packets, NAKs, coalesced ACKs, CNPs and credits.
/// Source: IBTA vol. 1, chapter 9.7, as docs/models/packet-engine.md states it.
#pragma once
#include <algorithm>
#include <cstdint>
#include <memory>
#include <utility>

#include "base/clock.hpp"
#include "base/ids.hpp"
#include "base/invariant.hpp"
#include "packet/agenda.hpp"
#include "packet/credits.hpp"
#include "packet/fabric.hpp"
#include "packet/flow_control.hpp"
#include "packet/hashing.hpp"
#include "packet/host_processor.hpp"
#include "packet/hosts.hpp"
#include "packet/ids.hpp"
#include "packet/job.hpp"
#include "packet/job_records.hpp"
#include "packet/job_state.hpp"
#include "packet/loss.hpp"
#include "packet/open_messages.hpp"
#include "packet/packet.hpp"
#include "packet/pipe.hpp"
#include "packet/policy_calls.hpp"
#include "packet/port_records.hpp"
#include "packet/queue_pair_records.hpp"
#include "packet/recordings.hpp"
#include "packet/recovery.hpp"
#include "packet/schedule.hpp"
#include "packet/scheduling.hpp"
#include "packet/setup.hpp"
#include "packet/state.hpp"
#include "packet/steps.hpp"
#include "rows/fabric.hpp"
#include "rows/policies.hpp"
#include "rows/transport.hpp"

namespace weftwork {

inline const NicRow& nic_row(const Setup& setup, PortId port) {
  return setup.in.nics[setup.in.node_device[setup.in.port_node[port]]];
}

inline std::uint8_t current_credits(const Setup& setup, const JobState& job, const QueuePair& qp) {
  std::int64_t claimed = qp.receiver.delivered;
  if (setup.in.has_receives) {
    const auto box = job.mailboxes.find(qp.flow);
    claimed = box == job.mailboxes.end() ? 0 : box->second.completed;
  }
  return credit_code(setup.in.transport.end_to_end_credits - qp.receiver.delivered + claimed);
}

/// Frame of an ACK or NAK that echoes `cause`, or nothing.
inline std::int64_t answer_bytes(const Setup& setup, const Packet* cause) {
  const TransportRow& transport = setup.in.transport;
  if (cause == nullptr) return transport.ack_bytes;
  const std::int64_t bytes = transport.ack_bytes + transport.echo_bytes;
  if (!setup.in.has_telemetry) return bytes;
  return bytes + transport.telemetry_bytes +
         transport.telemetry_hop_bytes * static_cast<std::int64_t>(recorded_hops(cause));
}

/// Send what the receiver has to say; `cause` is the data packet that it echoes, or null.
inline void send_reply(State& s, QueuePair& qp, QueuePairId id, PacketKind kind, Packet* cause, Ps host_delay_ps,
                       Ps now_ps) {
  Receiver& receiver = qp.receiver;
  const TransportRow& transport = s.setup.in.transport;
  const bool answers = kind == PacketKind::kAck || kind == PacketKind::kNak;
  must_hold(receiver.delivered <= qp.messages, Invariant::message_delivered_once, "at_ps queue_pair delivered posted",
            now_ps, id, receiver.delivered, qp.messages);
  Packet* reply = queue_control(s.setup, s.fabric, s.routing, s.hosts, qp.destination_port, id, kind, false,
                                receiver.expected, receiver.control_packets++,
                                kind == PacketKind::kCnp ? transport.cnp_bytes
                                : answers                ? answer_bytes(s.setup, cause)
                                                         : transport.credit_bytes);
  if (answers) {
    (kind == PacketKind::kAck ? s.recordings.count.acks_sent : s.recordings.count.naks_sent) += 1;
    if (receiver.marked) reply->flags = with(reply->flags, kMarked);
    receiver.marked = false;
    if (s.setup.extended) {
      Extension& ext = extension(reply);
      if (cause != nullptr) {
        reply->flags = with(reply->flags, kHasEcho);
        ext.sent_at_ps = extension(cause).sent_at_ps;
        ext.host_delay_ps = host_delay_ps;
        ext.entropy = extension(cause).entropy;
        if (transport.replies_follow != 0) reply->hash = carried_hash(s.routing, qp, false, ext.entropy);
        ext.hops = extension(cause).hops;
        if (kind == PacketKind::kNak) ext.refused = cause->seq;
        if (has(cause->flags, kCut)) reply->flags = with(reply->flags, kCut);
        if (has(cause->flags, kLastHop)) reply->flags = with(reply->flags, kLastHop);
        if (s.setup.in.has_telemetry)
          copy_hops(hops(reply, s.setup.wide), hops(cause, s.setup.wide), recorded_hops(cause));
      }
      if (s.setup.wide) wide(reply).marked_bytes = qp.marked_bytes;
      if (s.setup.wide && cause != nullptr) wide(reply).path_load = wide(cause).path_load;
      ext.msn = static_cast<std::uint32_t>(receiver.delivered);
      if (transport.end_to_end_credits > 0) {
        ext.credit_code = current_credits(s.setup, s.job, qp);
        receiver.last_credit_code = ext.credit_code;
      }
    }
  } else if (kind == PacketKind::kCnp) {
    s.recordings.count.cnps_sent += 1;
  } else {
    s.recordings.count.credits_sent += 1;
    if (s.setup.extended) extension(reply).credit_bytes = receiver_state(qp).credit_bytes;
  }
  kick_nic(s, qp.destination_port, now_ps);
}

/// Do what the receiver's step has asked for; true if it wants an ACK.
inline bool obey_receiver_step(State& s, QueuePair& qp, QueuePairId id, Ps now_ps) {
  ReceiverState& state = receiver_state(qp);
  if (state.send_cnp != 0) {
    state.send_cnp = 0;
    send_reply(s, qp, id, PacketKind::kCnp, nullptr, 0, now_ps);
  }
  if (state.credit_bytes > qp.credited_bytes || state.send_credit != 0) {
    state.send_credit = 0;
    qp.credited_bytes = state.credit_bytes;
    send_reply(s, qp, id, PacketKind::kCredit, nullptr, 0, now_ps);
  }
  const bool acknowledge_now = state.send_ack != 0;
  state.send_ack = 0;
  return acknowledge_now;
}

inline Signal& receiver_signal(const Setup& setup, const Fabric& fabric, PolicyCalls& calls, const QueuePair& qp,
                               Kind kind, Ps now_ps) {
  Signal& signal = empty_signal(calls);
  signal.kind = static_cast<std::int64_t>(kind);
  signal.now_ps = now_ps;
  signal.line_rate_bps = fabric.rate_bps[qp.destination_port];
  signal.base_rtt_ps = qp.sender.base_rtt_ps;
  signal.mtu_bytes = setup.in.transport.mtu_bytes;
  return signal;
}

/// Packet `seq` has arrived for the first time: its message is delivered if it is whole now, whatever came before it.
[[gnu::noinline]] inline void deliver_whole(const Setup& setup, Schedule& schedule, JobState& job, QueuePair& qp,
                                            QueuePairId id, std::int64_t seq, Ps now_ps) {
  Receiver& receiver = qp.receiver;
  if (qp.open_messages == nullptr) qp.open_messages = std::make_unique<OpenMessages>();
  OpenMessages& open = *qp.open_messages;
  while (open.end() <= seq) {
    const Message& message = job.messages[receiver.message];
    open.add(receiver.message, message.end);
    receiver.message = message.next;
  }
  must_hold(seq < open.end(), Invariant::only_sent_packets_arrive, "at_ps queue_pair seq end", now_ps, id, seq,
            open.end());
  const MessageId whole = open.arrive(seq);
  if (whole.is_none()) return;
  receiver.delivered += 1;
  deliver(setup, schedule, job, qp.flow, id, job.messages[whole], now_ps);
}

/// Let the expected number go on over `seq` and over what has arrived early, and deliver what is whole; true if one of
/// those that had arrived early asked for an ACK.
inline bool accept(State& s, QueuePair& qp, QueuePairId id, Ps now_ps) {
  Receiver& receiver = qp.receiver;
  receiver.expected += 1;
  bool asked = false;
  while (receiver.kept_count > 0 && receiver.kept[receiver.expected]) {
    receiver.kept[receiver.expected] = false;
    if (receiver.kept_asks[receiver.expected]) asked = true;
    receiver.kept_count -= 1;
    must_hold(receiver.kept_count >= 0, Invariant::early_packets_within_the_window, "at_ps queue_pair expected kept",
              now_ps, id, receiver.expected, receiver.kept_count);
    count_early(s.hosts, s.recordings, qp.destination_port, -1);
    receiver.expected += 1;
  }
  receiver.nak_sent = false;
  if (s.setup.in.transport.in_any_order != 0) [[unlikely]]
    return asked;
  while (!receiver.message.is_none()) {
    Message& message = s.job.messages[receiver.message];
    if (receiver.expected < message.end) break;
    must_hold(receiver.delivered == message.ordinal, Invariant::message_delivered_once,
              "at_ps queue_pair message delivered ordinal", now_ps, id, receiver.message, receiver.delivered,
              message.ordinal);
    receiver.delivered += 1;
    deliver(s.setup, s.schedule, s.job, qp.flow, id, message, now_ps);
    receiver.message = message.next;
  }
  return asked;
}

/// Whether a packet beyond a gap has arrived before.
inline bool keeps(const Setup& setup, QueuePair& qp, std::int64_t seq) {
  Receiver& receiver = qp.receiver;
  return receiver.kept_count > 0 && seq - receiver.expected < setup.in.transport.reorder_window_packets &&
         receiver.kept[seq];
}

/// kAcceptedAndOwed: over the gap that it has closed lies a packet that asked for an ACK.
enum class Fate : std::uint8_t { kAccepted, kAcceptedAndOwed, kKept, kKeptAndTold, kDuplicate, kDiscarded, kRefused };

inline Fate place(State& s, QueuePair& qp, QueuePairId id, std::int64_t seq, bool asks, Ps now_ps) {
  Receiver& receiver = qp.receiver;
  const TransportRow& transport = s.setup.in.transport;
  if (seq == receiver.expected) {
    return accept(s, qp, id, now_ps) ? Fate::kAcceptedAndOwed : Fate::kAccepted;
  }
  if (seq < receiver.expected) {
    s.recordings.count.duplicates += 1;
    return Fate::kDuplicate;
  }
  must_hold(seq < qp.sender.high, Invariant::only_sent_packets_arrive, "at_ps queue_pair seq high", now_ps, id, seq,
            qp.sender.high);
  const bool keeps_early = transport.reorder_tolerant != 0 || transport.selective_repeat != 0;
  if (keeps_early && seq - receiver.expected < transport.reorder_window_packets) {
    if (receiver.kept.empty()) {
      receiver.kept.resize(transport.reorder_window_packets);
      receiver.kept_asks.resize(transport.reorder_window_packets);
    }
    if (receiver.kept[seq]) {
      if (asks) receiver.kept_asks[seq] = true;
      s.recordings.count.duplicates += 1;
      return Fate::kDuplicate;
    }
    receiver.kept[seq] = true;
    receiver.kept_asks[seq] = asks;
    receiver.kept_count += 1;
    must_hold(seq - receiver.expected < transport.reorder_window_packets &&
                  receiver.kept_count < transport.reorder_window_packets,
              Invariant::early_packets_within_the_window, "at_ps queue_pair seq expected kept", now_ps, id, seq,
              receiver.expected, receiver.kept_count);
    count_early(s.hosts, s.recordings, qp.destination_port, 1);
    return transport.selective_repeat != 0 ? Fate::kKeptAndTold : Fate::kKept;
  }
  s.recordings.count.out_of_order_discards += 1;
  if (keeps_early || transport.go_back_n == 0 || receiver.nak_sent) return Fate::kDiscarded;
  receiver.nak_sent = true;
  return Fate::kRefused;
}

/// Call the receiver's step with `signal`, which is filled, and do what it asks for; true if it wants an ACK.
inline bool tell_receiver(State& s, QueuePair& qp, QueuePairId id, Ps now_ps) {
  call_receiver(s.setup, s.schedule, s.calls, qp, nic_of(s.hosts, qp.destination_port), now_ps);
  return obey_receiver_step(s, qp, id, now_ps);
}

/// With the first packet that is handled a receiver has a slot, and the record of its step.
inline void open_receiver(const Setup& setup, Hosts& hosts, PolicyCalls& calls, Recordings& recordings, QueuePair& qp,
                          QueuePairId id) {
  if (!qp.receiver.slot.is_none()) return;
  must_hold(!hosts.nic_of_port[qp.destination_port].is_none(), Invariant::slot_has_its_queue_pair, "queue_pair port",
            id, qp.destination_port);
  must_hold(qp.receiver.expected == 0 && qp.receiver.kept_count == 0, Invariant::only_sent_packets_arrive,
            "queue_pair port expected kept", id, qp.destination_port, qp.receiver.expected, qp.receiver.kept_count);
  // Not where the packet came in, if the queue pair has moved meanwhile.
  qp.receiver.slot = add_receiver_slot(setup, hosts, recordings, qp.destination_port, id);
  if (setup.in.congestion.receive != nullptr)
    qp.receiver_record = new_record(calls, setup.in.congestion.receiver_state);
}

/// What the receiver's step sees of a packet that comes from its sender.
inline Signal& packet_signal(const Setup& setup, const Fabric& fabric, PolicyCalls& calls, const QueuePair& qp,
                             Kind kind, Packet* packet, Ps now_ps) {
  Signal& signal = receiver_signal(setup, fabric, calls, qp, kind, now_ps);
  signal.seq = packet->seq;
  if (setup.extended) signal.hops = extension(packet).hops;
  if (setup.wide) signal.request_bytes = wide(packet).request_bytes;
  return signal;
}

/// A packet that was cut has come in: its sender is told to send it again.
inline void handle_cut(State& s, Packet* packet, Ps now_ps) {
  const QueuePairId id = packet->queue_pair;
  QueuePair& qp = s.hosts.queue_pairs[id];
  const Receiver& receiver = qp.receiver;
  must_hold(std::cmp_less(packet->seq, qp.sender.high), Invariant::only_sent_packets_arrive,
            "at_ps queue_pair seq high", now_ps, id, packet->seq, qp.sender.high);
  must_hold(std::cmp_equal(packet->bytes, s.setup.in.transport.trim_bytes), Invariant::frame_fits_its_record,
            "at_ps queue_pair seq bytes", now_ps, id, packet->seq, packet->bytes);
  open_receiver(s.setup, s.hosts, s.calls, s.recordings, qp, id);
  bool acknowledge_now = false;
  if (s.setup.in.congestion.receive != nullptr) {
    Signal& signal = packet_signal(s.setup, s.fabric, s.calls, qp, Kind::kTrim, packet, now_ps);
    signal.bytes = extension(packet).payload_bytes;
    signal.entropy = extension(packet).entropy;
    signal.last_hop = has(packet->flags, kLastHop) ? 1 : 0;
    acknowledge_now = tell_receiver(s, qp, id, now_ps);
  }
  const bool is_duplicate = std::cmp_less(packet->seq, receiver.expected) || keeps(s.setup, qp, packet->seq);
  if (is_duplicate) s.recordings.count.duplicates += 1;
  send_reply(s, qp, id, is_duplicate ? PacketKind::kAck : PacketKind::kNak, packet, 0, now_ps);
  if (acknowledge_now) send_reply(s, qp, id, PacketKind::kAck, nullptr, 0, now_ps);
}

/// The sender has asked for credit.
inline void handle_request(State& s, Packet* packet, Ps now_ps) {
  const QueuePairId id = packet->queue_pair;
  QueuePair& qp = s.hosts.queue_pairs[id];
  open_receiver(s.setup, s.hosts, s.calls, s.recordings, qp, id);
  if (s.setup.in.congestion.receive == nullptr) return;
  packet_signal(s.setup, s.fabric, s.calls, qp, Kind::kRequest, packet, now_ps);
  if (tell_receiver(s, qp, id, now_ps)) send_reply(s, qp, id, PacketKind::kAck, nullptr, 0, now_ps);
}

/// Payload of a data packet that was not cut.
inline std::int64_t payload_of(const Setup& setup, Packet* packet) {
  const TransportRow& transport = setup.in.transport;
  if (setup.extended) return extension(packet).payload_bytes;
  return packet->bytes - transport.data_overhead_bytes - transport.telemetry_bytes -
         (has(packet->flags, kFirst) ? transport.first_extra_bytes : 0);
}

/// The receiver handles a data packet that came in at `arrived_ps` and has passed the host interface.
inline void handle_data(State& s, Packet* packet, Ps arrived_ps, Ps now_ps) {
  const QueuePairId id = packet->queue_pair;
  QueuePair& qp = s.hosts.queue_pairs[id];
  Receiver& receiver = qp.receiver;
  open_receiver(s.setup, s.hosts, s.calls, s.recordings, qp, id);
  const bool marked = has(packet->flags, kMarked);
  const Ps host_delay_ps = now_ps - arrived_ps;
  bool acknowledge_now = false;
  const TransportRow& transport = s.setup.in.transport;
  const std::int64_t payload = payload_of(s.setup, packet);
  must_hold(host_delay_ps >= 0, Invariant::time_never_runs_back, "at_ps arrived_at_ps queue_pair seq", now_ps,
            arrived_ps, id, packet->seq);
  must_hold(static_cast<std::uint64_t>(payload) <= static_cast<std::uint64_t>(transport.mtu_bytes),  // nor below 0
            Invariant::frame_fits_its_record, "at_ps queue_pair seq payload_bytes", now_ps, id, packet->seq, payload);
  if (s.setup.in.congestion.receive != nullptr && (marked || s.setup.in.congestion.receive_all)) {
    Signal& signal = packet_signal(s.setup, s.fabric, s.calls, qp, Kind::kData, packet, now_ps);
    signal.bytes = payload;
    signal.ecn = marked ? 1 : 0;
    signal.entropy = s.setup.extended ? extension(packet).entropy : qp.own_entropy;
    signal.host_delay_ps = host_delay_ps;
    acknowledge_now = tell_receiver(s, qp, id, now_ps);
  }
  receiver.marked |= marked;
  const bool asks_ack = has(packet->flags, kAckRequest);
  const Fate fate = place(s, qp, id, packet->seq, asks_ack, now_ps);
  const bool told = fate == Fate::kRefused || fate == Fate::kKeptAndTold;
  if (fate != Fate::kDuplicate && fate != Fate::kDiscarded && fate != Fate::kRefused) {
    if (transport.in_any_order != 0) [[unlikely]]
      deliver_whole(s.setup, s.schedule, s.job, qp, id, packet->seq, now_ps);
    s.job.delivered_bytes += payload;
    if (marked) qp.marked_bytes += payload;
  }
  const bool asks = (asks_ack && !told && fate != Fate::kDiscarded) || fate == Fate::kAcceptedAndOwed;
  if (told) send_reply(s, qp, id, PacketKind::kNak, packet, host_delay_ps, now_ps);
  if (asks || fate == Fate::kDuplicate || acknowledge_now)
    send_reply(s, qp, id, PacketKind::kAck, packet, host_delay_ps, now_ps);
}

/// Ask the switch to pause or resume all lossless classes.
inline void nic_flow_control(State& s, NodeId node, PortId port, bool pause, Ps now_ps) {
  const std::int64_t quanta = pause ? nic_row(s.setup, port).pause_quanta : 0;
  must_hold(nic_of(s.hosts, port).pauses != pause, Invariant::pause_is_counted_once, "at_ps port pauses", now_ps, port,
            pause);
  nic_of(s.hosts, port).pauses = pause;
  for (const TrafficClass klass : s.setup.classes()) {
    if (s.setup.in.class_lossless[klass] == 0) continue;
    must_hold(!s.setup.link_credits, Invariant::pause_only_where_lossless, "at_ps port class", now_ps, port, klass);
    Ingress& ingress = s.fabric.ingresses[s.setup.at(port, klass)];
    must_hold(ingress.paused != pause, Invariant::pause_is_counted_once, "at_ps port class pauses", now_ps, port, klass,
              pause);
    ingress.paused = pause;
    ingress.refresh_at_ps = kOff;
    queue_frame(s.setup, s.fabric, s.schedule, port, klass, quanta);
    if (pause) schedule_refresh(s.setup, s.fabric, s.schedule, node, port, klass, quanta, now_ps);
  }
  kick_nic(s, port, now_ps);
}

/// A packet has left the host interface: give back its credit.
inline void return_host_credit(State& s, NodeId node, PortId port, const Packet& packet, Ps now_ps) {
  const QueueId lane = lane_of(s.setup, node, packet);
  s.fabric.ingresses[lane].used -= packet.bytes;
  must_hold(s.fabric.ingresses[lane].used >= 0, Invariant::queue_within_its_buffer, "at_ps port held_bytes", now_ps,
            port, s.fabric.ingresses[lane].used);
  if (owe_credit(s.setup, s.fabric, s.schedule, lane, packet.bytes)) kick_nic(s, port, now_ps);
}

/// The oldest packet in the receive buffer has reached the host.
inline void leave_host_interface(State& s, NodeId node, PortId port, Ps now_ps) {
  NicPort& nic = nic_of(s.hosts, port);
  Packet* packet = nic.interface_head;
  must_hold(packet != nic.interface_tail, Invariant::reader_stays_behind_the_writer, "at_ps port", now_ps, port);
  nic.receive_used_bytes -= packet->bytes;
  must_hold(nic.receive_used_bytes >= 0 &&
                (nic.receive_used_bytes == 0) == (s.fabric.pool.next(packet) == nic.interface_tail),
            Invariant::receive_buffer_never_overflows, "at_ps port held_bytes", now_ps, port, nic.receive_used_bytes);
  if (nic.pauses && nic.receive_used_bytes <= nic_row(s.setup, port).xon_bytes)
    nic_flow_control(s, node, port, false, now_ps);
  if (s.setup.link_credits) return_host_credit(s, node, port, *packet, now_ps);
  handle_data(s, packet, packet->at_ps, now_ps);
  nic.interface_head = s.fabric.pool.consume(packet);
}

/// Pass the device's host interface, or, where it has none, its host's processor alone, which has room for everything.
inline void enter_host_interface(State& s, NodeId node, PortId port, Packet* packet, Ps now_ps) {
  NicPort& nic = nic_of(s.hosts, port);
  const NicRow& row = nic_row(s.setup, port);
  if (nic.has_host_interface && nic.receive_used_bytes + packet->bytes > row.receive_buffer_bytes) {
    drop(s.recordings, port, s.recordings.count.drop_receive_buffer, now_ps);
    return;
  }
  nic.receive_used_bytes += packet->bytes;
  must_hold(!nic.has_host_interface || nic.receive_used_bytes <= row.receive_buffer_bytes,
            Invariant::receive_buffer_never_overflows, "at_ps port held_bytes room_bytes", now_ps, port,
            nic.receive_used_bytes, row.receive_buffer_bytes);
  nic.pcie_free_at_ps = std::max(now_ps, nic.pcie_free_at_ps) +
                        (nic.pcie_rate_bps > 0 ? serialisation_ps(packet->bytes, nic.pcie_rate_bps) : 0);
  if (s.setup.has_host_processor) [[unlikely]]
    nic.pcie_free_at_ps += host_cost_ps(s.setup.in.transport, payload_of(s.setup, packet));
  const Ps complete_ps = nic.pcie_free_at_ps + row.pcie_latency_ps;
  must_hold(complete_ps >= now_ps, Invariant::time_never_runs_back, "at_ps complete_at_ps port", now_ps, complete_ps,
            port);
  if (nic.interface_tail == nullptr) nic.interface_head = nic.interface_tail = s.fabric.pool.open();
  Packet* slot = nic.interface_tail;
  nic.interface_tail = s.fabric.pool.extend(slot);
  s.fabric.pool.copy(slot, packet);
  slot->at_ps = now_ps;
  if (s.setup.link_credits) s.fabric.ingresses[lane_of(s.setup, node, *packet)].used += packet->bytes;
  s.schedule.agendas[node].push(complete_ps, port_key(AgendaKind::kHostInterface, s.setup.local_port(port), 0));
  if (s.setup.lossless != 0 && nic.has_host_interface && !nic.pauses && nic.receive_used_bytes > row.xoff_bytes)
    nic_flow_control(s, node, port, true, now_ps);
}

/// A packet has arrived at a host.
inline void arrive_at_host(State& s, NodeId node, PortId port, Packet* packet, Ps now_ps) {
  if (lost_on_link(s.setup, s.fabric, s.hosts, s.recordings, port, *packet, now_ps)) return;
  if (packet->destination_port != port) [[unlikely]] {
    drop(s.recordings, port, s.recordings.count.drop_no_route, now_ps);
    return;
  }
  QueuePair& qp = s.hosts.queue_pairs[packet->queue_pair];
  must_hold(packet->queue_pair < s.hosts.queue_pairs.next_id(), Invariant::slot_has_its_queue_pair,
            "at_ps port queue_pair", now_ps, port, packet->queue_pair);
  switch (packet->kind) {
    case PacketKind::kData:
      if (has(packet->flags, kCut)) [[unlikely]]
        handle_cut(s, packet, now_ps);
      else if (nic_of(s.hosts, port).has_host_interface || s.setup.has_host_processor)
        enter_host_interface(s, node, port, packet, now_ps);
      else
        handle_data(s, packet, now_ps, now_ps);
      return;
    case PacketKind::kAck:
    case PacketKind::kNak:
      handle_ack(s, qp, packet, now_ps);
      break;
    case PacketKind::kCnp:
      handle_cnp(s, qp, now_ps);
      break;
    case PacketKind::kCredit:
      handle_credit(s, qp, packet, now_ps);
      break;
    case PacketKind::kProbe:
      send_reply(s, qp, packet->queue_pair, PacketKind::kAck, nullptr, 0, now_ps);
      return;
    case PacketKind::kRequest:
      handle_request(s, packet, now_ps);
      return;
  }
  kick_nic(s, qp.source_port, now_ps);
}

}  // namespace weftwork
