/// Scheduling of a NIC port: queue pairs have slots and take turns. One that may send as far as window, credits and
/// data are concerned is ready, or paced until its rate lets it go on; pauses of its traffic class are asked last.
/// Source: docs/models/packet-engine.md. Leaves out: what a packet carries (pipe), and what comes back (recovery).
#pragma once
#include <algorithm>
#include <cstdint>

#include "base/clock.hpp"
#include "base/ids.hpp"
#include "base/invariant.hpp"
#include "packet/credits.hpp"
#include "packet/fabric.hpp"
#include "packet/hosts.hpp"
#include "packet/ids.hpp"
#include "packet/job_records.hpp"
#include "packet/job_state.hpp"
#include "packet/port_records.hpp"
#include "packet/queue_pair_records.hpp"
#include "packet/recordings.hpp"
#include "packet/setup.hpp"
#include "packet/steps.hpp"
#include "rows/transport.hpp"

namespace weftwork {

inline NicPort& nic_of(Hosts& hosts, PortId port) {
  return hosts.nics[hosts.nic_of_port[port]];
}

inline std::int64_t payload_bytes(const Setup& setup, const Message& message, std::int64_t seq) {
  const std::int64_t mtu = setup.in.transport.mtu_bytes;
  return seq + 1 == message.end ? message.size_bytes - (message.end - message.first - 1) * mtu : mtu;
}

inline bool credit_blocked(const Setup& setup, const JobState& job, const QueuePair& qp) {
  const Sender& sender = qp.sender;
  if (setup.in.transport.end_to_end_credits == 0 || sender.nxt >= sender.end) return false;
  const Message& message = job.messages[sender.nxt_message];
  return sender.nxt == message.first && message.ordinal >= sender.credit_limit;
}

/// Whether a packet is lost and has not been sent again; always false without selective repeat.
inline bool has_lost(const Setup& setup, const QueuePair& qp) {
  return setup.in.transport.selective_repeat != 0 && qp.selective != nullptr && qp.selective->has_lost();
}

/// The message of packet `seq`, which is not acknowledged, of a queue pair that has lost something.
inline const Message& message_of(const JobState& job, const QueuePair& qp, std::int64_t seq) {
  MessageId& found = qp.selective->message;
  if (found.is_none() || job.messages[found].first > seq) found = qp.sender.una_message;
  while (job.messages[found].end <= seq) found = job.messages[found].next;
  return job.messages[found];
}

/// The message of the first lost packet, if there is one.
inline const Message& lost_message(const JobState& job, const QueuePair& qp) {
  return message_of(job, qp, qp.selective->first_lost());
}

/// The window of congestion control, or the transport's cap where that is less.
inline double window_bytes(const Setup& setup, const QueuePair& qp) {
  return std::min(sender_state(qp).window_bytes, setup.window_cap_bytes);
}

inline bool window_allows(const Setup& setup, const QueuePair& qp, std::int64_t payload) {
  const std::int64_t inflight = inflight_bytes(qp.sender);
  const double window = window_bytes(setup, qp);
  return static_cast<double>(inflight + payload) <= window || (inflight == 0 && window > 0);
}

/// Whether window, credits and data allow another packet that has not been sent; pacing and pauses are not asked.
inline bool can_send_next(const Setup& setup, const JobState& job, const QueuePair& qp) {
  const Sender& sender = qp.sender;
  if (sender.failed || sender.nxt >= sender.end) return false;
  const Message& message = job.messages[sender.nxt_message];
  return window_allows(setup, qp, payload_bytes(setup, message, sender.nxt)) && !credit_blocked(setup, job, qp);
}

/// Whether the window allows the first lost packet, if there is one; credits do not count, since its message has begun.
inline bool can_send_lost(const Setup& setup, const JobState& job, const QueuePair& qp) {
  if (qp.sender.failed || !has_lost(setup, qp)) return false;
  if (setup.in.transport.resends_at_once != 0) return true;
  return window_allows(setup, qp, payload_bytes(setup, lost_message(job, qp), qp.selective->first_lost()));
}

/// The same for any packet.
inline bool can_send(const Setup& setup, const JobState& job, const QueuePair& qp) {
  return can_send_next(setup, job, qp) || can_send_lost(setup, job, qp);
}

inline void set_ready(NicPort& nic, Sender& sender) {
  nic.ready.set(sender.slot);
  if (sender.standing != Standing::kReady) nic.ready_count += 1;
  sender.standing = Standing::kReady;
}

inline void clear_ready(NicPort& nic, Sender& sender) {
  nic.ready.clear(sender.slot);
  if (sender.standing == Standing::kReady) {
    must_hold(nic.ready_count > 0, Invariant::slot_has_its_queue_pair, "slot slots", sender.slot, nic.slots.size());
    nic.ready_count -= 1;
  }
  sender.standing = Standing::kBlocked;
}

inline bool later_paced(const NicPort::Paced& a, const NicPort::Paced& b) {
  return a.at_ps != b.at_ps ? a.at_ps > b.at_ps : a.slot > b.slot;
}

/// One end of a connection takes a slot at a NIC port, and the state that belongs to it.
inline void count_nic_state(const Setup& setup, Recordings& recordings, PortId port) {
  recordings.port_counters[port].nic_state_bytes += setup.in.transport.connection_state_bytes;
}

/// Receivers at a NIC port keep so many packets more behind their gaps.
inline void count_early(Hosts& hosts, Recordings& recordings, PortId port, std::int64_t packets) {
  NicPort& nic = nic_of(hosts, port);
  nic.early_packets += packets;
  must_hold(nic.early_packets >= 0, Invariant::early_packets_within_the_window, "port kept", port, nic.early_packets);
  std::int64_t& most = recordings.port_counters[port].max_early_packets;
  most = std::max(most, nic.early_packets);
}

/// The next slot of a sender at a NIC port, for a queue pair.
inline SlotId add_slot(const Setup& setup, Hosts& hosts, Recordings& recordings, PortId port, QueuePairId queue_pair) {
  NicPort& nic = nic_of(hosts, port);
  const SlotId slot = nic.slots.next_id();
  nic.slots.push_back(queue_pair);
  nic.ready.resize(nic.slots.size());
  count_nic_state(setup, recordings, port);
  return slot;
}

/// The next slot of a receiver at a NIC port, for a queue pair.
inline ReceiverSlotId add_receiver_slot(const Setup& setup, Hosts& hosts, Recordings& recordings, PortId port,
                                        QueuePairId queue_pair) {
  auto& receivers = nic_of(hosts, port).receivers;
  const ReceiverSlotId slot = receivers.next_id();
  receivers.push_back(queue_pair);
  count_nic_state(setup, recordings, port);
  return slot;
}

/// Let a queue pair wait for its next departure.
inline void push_paced(const Setup& setup, NicPort& nic, QueuePair& qp) {
  Sender& sender = qp.sender;
  must_hold(sender.standing != Standing::kReady, Invariant::slot_has_its_queue_pair, "port slot next_send_at_ps",
            qp.source_port, sender.slot, sender.next_send_at_ps);
  sender.standing = Standing::kPaced;
  nic.paced.push_back({sender.next_send_at_ps, sender.slot});
  std::push_heap(nic.paced.begin(), nic.paced.end(), later_paced);
  if (setup.in.congestion.moves_departures) [[unlikely]]
    qp.paced_entry_at_ps = sender.next_send_at_ps;
}

/// After anything that may let a blocked queue pair send: put it where the port will find it.
inline void reconsider(const Setup& setup, const Fabric& fabric, Hosts& hosts, const JobState& job, QueuePair& qp) {
  Sender& sender = qp.sender;
  if (sender.standing != Standing::kBlocked || !can_send(setup, job, qp)) return;
  NicPort& nic = nic_of(hosts, qp.source_port);
  if (sender.next_send_at_ps <= fabric.ports[qp.source_port].free_at_ps) {
    set_ready(nic, sender);
    return;
  }
  push_paced(setup, nic, qp);
}

inline QueuePair& queue_pair_at(Hosts& hosts, const NicPort& nic, SlotId slot) {
  must_hold(nic.slots[slot] != kMovedAway, Invariant::slot_has_its_queue_pair, "slot slots", slot, nic.slots.size());
  return hosts.queue_pairs[nic.slots[slot]];
}

/// Whether an entry of the paced, which has just left the heap at `at_ps`, lets its queue pair go on. One that counts
/// no more, since the departure has moved to an earlier instant, does not; nor does one that is too early.
[[gnu::noinline]] inline bool takes_departure(const Setup& setup, Hosts& hosts, NicPort& nic,
                                              const NicPort::Paced& entry, Ps at_ps) {
  QueuePair& qp = queue_pair_at(hosts, nic, entry.slot);
  if (qp.paced_entry_at_ps != entry.at_ps) return false;
  must_hold(qp.sender.standing == Standing::kPaced && entry.at_ps <= at_ps, Invariant::timer_fires_when_it_is_set,
            "at_ps entry_at_ps port slot", at_ps, entry.at_ps, qp.source_port, entry.slot);
  qp.paced_entry_at_ps = kOff;
  if (qp.sender.next_send_at_ps <= at_ps) return true;
  push_paced(setup, nic, qp);
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
[[gnu::noinline]] inline void move_departure(const Setup& setup, const Fabric& fabric, Hosts& hosts, QueuePair& qp,
                                             Ps now_ps) {
  Sender& sender = qp.sender;
  if (sender.next_send_at_ps <= now_ps) return;
  sender.next_send_at_ps = std::max(now_ps, sender.segment_at_ps + gap_ps(qp, sender.segment_sent_bytes));
  NicPort& nic = nic_of(hosts, qp.source_port);
  if (sender.standing == Standing::kReady && sender.next_send_at_ps > fabric.ports[qp.source_port].free_at_ps) {
    clear_ready(nic, sender);
  } else if (sender.standing == Standing::kPaced && sender.next_send_at_ps < qp.paced_entry_at_ps) {
    if (nic.paced.size() > 2 * nic.slots.size()) {  // most of them count no more
      std::erase_if(nic.paced, [&](const NicPort::Paced& entry) {
        return queue_pair_at(hosts, nic, entry.slot).paced_entry_at_ps != entry.at_ps;
      });
      std::make_heap(nic.paced.begin(), nic.paced.end(), later_paced);
    }
    push_paced(setup, nic, qp);
  }
}

/// Bytes on the line of packet `seq`.
inline std::int64_t frame_bytes(const Setup& setup, const Message& message, std::int64_t seq) {
  const TransportRow& transport = setup.in.transport;
  return payload_bytes(setup, message, seq) + transport.data_overhead_bytes + transport.telemetry_bytes +
         (seq == message.first ? transport.first_extra_bytes : 0);
}

/// From when on neither a pause nor a want of credit holds back packet `seq` of a message.
inline Ps packet_open_from_ps(const Setup& setup, const Fabric& fabric, PortId port, const Message& message,
                              std::int64_t seq) {
  if (setup.link_credits && !has_credit(setup, fabric, port, message.klass, frame_bytes(setup, message, seq)))
    return kNeverPs;
  return fabric.queue_controls[setup.at(port, message.klass)].paused_until_ps;
}

/// The same for the first control packet that waits at a NIC port.
inline Ps control_open_from_ps(const Setup& setup, const Fabric& fabric, PortId port) {
  const TrafficClass control = setup.in.control_class;
  if (setup.link_credits &&
      !has_credit(setup, fabric, port, control, fabric.queues[setup.at(port, control)].departure->bytes))
    return kNeverPs;
  return fabric.queue_controls[setup.at(port, control)].paused_until_ps;
}

/// Whether a lost packet of a queue pair is sent, not the next one: unless window, pause or link hold it back.
inline bool sends_lost(const Setup& setup, const Fabric& fabric, const JobState& job, const QueuePair& qp, PortId port,
                       Ps at_ps) {
  return can_send_lost(setup, job, qp) &&
         packet_open_from_ps(setup, fabric, port, lost_message(job, qp), qp.selective->first_lost()) <= at_ps;
}

/// From when on neither a pause nor a want of credit on the link holds back a queue pair that may send as far as window
/// and end-to-end credits are concerned.
inline Ps open_from_ps(const Setup& setup, const Fabric& fabric, const JobState& job, const QueuePair& qp,
                       PortId port) {
  const auto next = [&] {
    return packet_open_from_ps(setup, fabric, port, job.messages[qp.sender.nxt_message], qp.sender.nxt);
  };
  if (!has_lost(setup, qp)) [[likely]]
    return next();
  const Ps lost = can_send_lost(setup, job, qp)
                      ? packet_open_from_ps(setup, fabric, port, lost_message(job, qp), qp.selective->first_lost())
                      : kNeverPs;
  return can_send_next(setup, job, qp) ? std::min(lost, next()) : lost;
}

/// When the NIC port should next try to start something; never too late, perhaps too early.
inline Ps nic_due(const Setup& setup, const Fabric& fabric, Hosts& hosts, const JobState& job, PortId port) {
  const Port& out = fabric.ports[port];
  if (!out.up) return kNeverPs;
  if (out.frame_waits) return out.free_at_ps;
  NicPort& nic = nic_of(hosts, port);
  Ps due = kNeverPs;
  if (out.pending != 0) due = std::max(out.free_at_ps, control_open_from_ps(setup, fabric, port));
  if (!nic.paced.empty()) due = std::min(due, std::max(out.free_at_ps, nic.paced.front().at_ps));
  if (nic.ready_count == 0) return due;
  if (out.paused == 0 && !setup.link_credits) return std::min(due, out.free_at_ps);
  Ps open = kNeverPs;  // the first class that is not held any more; without a ready queue pair the try finds nothing
  nic.ready.any([&](SlotId slot) {
    const QueuePair& qp = queue_pair_at(hosts, nic, slot);
    if (qp.sender.nxt >= qp.sender.end && !has_lost(setup, qp)) return false;
    open = std::min(open, open_from_ps(setup, fabric, job, qp, port));
    return open <= out.free_at_ps;
  });
  return std::min(due, std::max(out.free_at_ps, open));
}

/// The first ready queue pair from `nic.turn` on that may send at `at_ps`, or null. Those that may not are put aside.
inline QueuePair* next_sender(const Setup& setup, const Fabric& fabric, Hosts& hosts, const JobState& job, NicPort& nic,
                              PortId port, Ps at_ps) {
  if (nic.ready_count == 0) return nullptr;
  const bool may_be_held = fabric.ports[port].paused != 0 || setup.link_credits;
  const SlotId turn = nic.turn < nic.slots.next_id() ? nic.turn : SlotId(0);
  QueuePair* found = nullptr;
  nic.ready.any_from(turn, [&](SlotId slot) {
    QueuePair& qp = queue_pair_at(hosts, nic, slot);
    if (!can_send(setup, job, qp)) {
      clear_ready(nic, qp.sender);
      return false;
    }
    if (may_be_held && open_from_ps(setup, fabric, job, qp, port) > at_ps) return false;
    found = &qp;
    return true;
  });
  return found;
}

}  // namespace weftwork
