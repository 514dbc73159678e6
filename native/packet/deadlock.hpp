/// A deadlock of flow control: no packet can ever move again, since every one waits for the end of a pause, or for
/// credit, that its own move would have to lead to. Source: docs/models/packet-engine.md, "Deadlock".
#pragma once
#include <algorithm>
#include <cstdint>
#include <vector>

#include "base/clock.hpp"
#include "base/ids.hpp"
#include "base/invariant.hpp"
#include "packet/agenda.hpp"
#include "packet/credits.hpp"
#include "packet/fabric.hpp"
#include "packet/ids.hpp"
#include "packet/instants.hpp"
#include "packet/job_records.hpp"
#include "packet/job_state.hpp"
#include "packet/packet.hpp"
#include "packet/port_records.hpp"
#include "packet/queue_pair_records.hpp"
#include "packet/schedule.hpp"
#include "packet/scheduling.hpp"
#include "packet/setup.hpp"
#include "packet/state.hpp"
#include "packet/steps.hpp"
#include "rows/waits.hpp"

namespace weftwork {

/// Whether the head of a class needs more credit than it has.
inline bool wants_credit(const Setup& setup, const Fabric& fabric, PortId port, TrafficClass klass) {
  const NodeId node = setup.in.port_node[port];
  if (!is_host(setup, node)) return contains(fabric.ports[port].paused, klass);
  const Queue& queue = fabric.queues[setup.at(port, klass)];
  return queue.departure != queue.tail && !has_credit(setup, fabric, port, klass, queue.departure->bytes);
}

/// Whether a class may never leave a port: it is paused beyond `at_ps`, and the far end still asks for it.
inline bool is_held(const Setup& setup, const Fabric& fabric, PortId port, TrafficClass klass, Ps at_ps) {
  if (setup.link_credits) return wants_credit(setup, fabric, port, klass);
  const PortId peer = setup.peer_of(port);
  return !peer.is_none() && fabric.queue_controls[setup.at(port, klass)].paused_until_ps > at_ps &&
         fabric.ingresses[setup.at(peer, klass)].paused;
}

/// Whether some node has anything to do but to refresh pauses and to try in vain.
inline bool has_other_work(const Schedule& schedule) {
  const auto moves = [](const AgendaEntry& entry) {
    switch (entry.kind()) {
      case AgendaKind::kRetransmission:
      case AgendaKind::kSenderTimer:
      case AgendaKind::kReceiverTimer:
      case AgendaKind::kPauseRefresh:
        return false;
      default:
        return true;
    }
  };
  for (const NodeId node : schedule.agendas.ids())
    if (schedule.agendas[node].any(moves)) return true;
  return false;
}

/// Whether a packet, or a frame that gives credit back, is under way towards a port.
inline bool has_inbound(const Setup& setup, const Fabric& fabric, PortId port) {
  const PortId peer = setup.peer_of(port);
  if (setup.link_credits && !fabric.frames_inbound[port].empty()) return true;
  for (const TrafficClass klass : setup.classes()) {
    const Packet* end = fabric.queues[setup.at(peer, klass)].departure;
    for (Packet* packet = fabric.inbound[setup.at(port, klass)]; packet != end; packet = fabric.pool.next(packet))
      if (packet->at_ps != kFlushedPs) return true;
  }
  return false;
}

/// Whether packets wait at a port that may leave it some day, or a frame that gives credit back.
inline bool has_something_to_send(const Setup& setup, const Fabric& fabric, PortId port, Ps at_ps) {
  const Port& out = fabric.ports[port];
  if (!out.up) return false;  // no instant is left that would bring it back
  if (setup.link_credits && out.frame_waits) return true;
  if (is_host(setup, setup.in.port_node[port]))
    return out.pending != 0 && !is_held(setup, fabric, port, setup.in.control_class, at_ps);
  for (std::uint32_t rest = out.pending; rest != 0; rest &= rest - 1)
    if (!is_held(setup, fabric, port, lowest(rest), at_ps)) return true;
  return false;
}

/// Whether the link has credit for a packet of a queue pair, from the first that is not acknowledged to the next one.
inline bool has_credit_for_any(const Setup& setup, const Fabric& fabric, const JobState& job, const QueuePair& qp) {
  const Sender& sender = qp.sender;
  for (MessageId id = sender.una_message; !id.is_none() && job.messages[id].first <= sender.nxt;
       id = job.messages[id].next) {
    const Message& message = job.messages[id];
    const std::int64_t end = std::min(message.end, sender.nxt + 1);
    for (std::int64_t seq = std::max(message.first, sender.una); seq < end; ++seq)
      if (has_credit(setup, fabric, qp.source_port, message.klass, frame_bytes(setup, message, seq))) return true;
  }
  return false;
}

/// Whether a queue pair may send some day: now, after a timeout, or to ask for credits.
inline bool may_send(const Setup& setup, const Fabric& fabric, const JobState& job, const QueuePair& qp, Ps at_ps) {
  const Sender& sender = qp.sender;
  const PortId port = qp.source_port;
  if (sender.failed || sender.una == sender.end || !fabric.ports[port].up) return false;
  if (setup.link_credits) {
    const bool may_ask = sender.una == sender.nxt && credit_blocked(setup, job, qp) &&
                         has_credit(setup, fabric, port, setup.in.control_class, setup.in.transport.ack_bytes);
    return may_ask || has_credit_for_any(setup, fabric, job, qp);
  }
  for (MessageId id = sender.una_message; !id.is_none() && job.messages[id].first <= sender.nxt;
       id = job.messages[id].next)
    if (job.messages[id].end > sender.una && !is_held(setup, fabric, port, job.messages[id].klass, at_ps)) return true;
  return sender.una == sender.nxt && credit_blocked(setup, job, qp) &&
         !is_held(setup, fabric, port, setup.in.control_class, at_ps);
}

/// Whether a receiver's step has set a timer: what it sends then may be news.
inline bool has_receiver_timer(const QueuePair& qp) {
  if (qp.receiver_record == nullptr) return false;
  const auto& at_ps = receiver_state(qp).timer_at_ps;
  return std::any_of(std::begin(at_ps), std::end(at_ps), [](Ps timer) { return timer != kOff; });
}

/// The queue in which the first held packet that came in by (port, class) waits to leave its switch, or none.
inline QueueId next_held(const Setup& setup, const Fabric& fabric, PortId ingress, TrafficClass klass) {
  const NodeId node = setup.in.port_node[ingress];
  const LocalQueueId came_by = setup.at(setup.local_port(ingress), klass);
  for (const PortId port : setup.ports_of(node))
    for (const TrafficClass other : setup.classes()) {
      const Queue& queue = fabric.queues[setup.at(port, other)];
      for (Packet* packet = queue.departure; packet != queue.tail; packet = fabric.pool.next(packet))
        if (LocalQueueId(packet->ingress) == came_by) return setup.at(port, other);
    }
  return QueueId::none();
}

/// The cycle that a held queue leads to, from its lowest port on; empty if it leads to none.
inline std::vector<DeadlockRow> cycle_from(const Setup& setup, const Fabric& fabric, QueueId held) {
  std::vector<QueueId> path;
  auto begin = path.end();
  for (; begin == path.end(); begin = std::find(path.begin(), path.end(), held)) {
    path.push_back(held);
    held = next_held(setup, fabric, setup.peer_of(setup.port_of(held)), setup.class_of(held));
    if (held.is_none()) return {};
  }
  path.erase(path.begin(), begin);
  std::rotate(path.begin(), std::min_element(path.begin(), path.end()), path.end());
  std::vector<DeadlockRow> rows;
  for (const QueueId each : path) {
    const PortId port = setup.port_of(each);
    const TrafficClass klass = setup.class_of(each);
    const Ingress& ingress = fabric.ingresses[setup.at(setup.peer_of(port), klass)];
    must_hold(fabric.queues[each].bytes > 0, Invariant::queue_holds_what_it_counts, "port class queue_bytes", port,
              klass, fabric.queues[each].bytes);
    must_hold(setup.link_credits || contains(setup.lossless, klass) || is_host(setup, setup.in.port_node[port]),
              Invariant::pause_only_where_lossless, "port class held_bytes", port, klass, ingress.used);
    rows.push_back({.port = port.value,
                    .traffic_class = klass.value,
                    .waiting_bytes = fabric.queues[each].bytes,
                    .held_bytes = ingress.used + ingress.headroom_used});
  }
  return rows;
}

/// The cycle of a deadlock that holds just before `at_ps`, when no packet has arrived for a whole watch; else nothing.
inline std::vector<DeadlockRow> find_deadlock(const State& s, Ps at_ps) {
  if (s.schedule.next_instant < s.setup.in.instants.size() || has_other_work(s.schedule)) return {};
  for (const QueuePairId id : s.hosts.queue_pairs.ids()) {
    const QueuePair& qp = s.hosts.queue_pairs[id];
    if (may_send(s.setup, s.fabric, s.job, qp, at_ps) || has_receiver_timer(qp)) return {};
  }
  PortId held;
  for (const PortId port : s.fabric.ports.ids()) {
    if (s.setup.peer_of(port).is_none()) continue;
    if (has_inbound(s.setup, s.fabric, port) || has_something_to_send(s.setup, s.fabric, port, at_ps)) return {};
    if (held.is_none() && s.fabric.ports[port].up && s.fabric.ports[port].pending != 0 &&
        !is_host(s.setup, s.setup.in.port_node[port]))
      held = port;
  }
  if (held.is_none()) return {};
  return cycle_from(s.setup, s.fabric, s.setup.at(held, lowest(s.fabric.ports[held].pending)));
}

}  // namespace weftwork
