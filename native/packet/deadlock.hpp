/// A deadlock of flow control: no packet can ever move again, since every one waits for the end of a pause, or for
/// credit, that its own move would have to lead to. Source: docs/models/packet-engine.md, "Deadlock".
#pragma once
#include <vector>

#include "packet/instants.hpp"

namespace weftwork {

/// Whether the head of a class needs more credit than it has.
inline bool wants_credit(const State& s, PortId port, TrafficClass klass) {
  const NodeId node = s.in.port_node[port];
  if (!is_host(s, node)) return contains(s.ports[port].paused, klass);
  const Queue& queue = s.queues[s.at(port, klass)];
  return queue.departure != queue.tail && !has_credit(s, port, klass, queue.departure->bytes);
}

/// Whether a class may never leave a port: it is paused beyond `at_ps`, and the far end still asks for it.
inline bool is_held(const State& s, PortId port, TrafficClass klass, Ps at_ps) {
  if (s.link_credits) return wants_credit(s, port, klass);
  const PortId peer = s.peer_of(port);
  return !peer.is_none() && s.queue_controls[s.at(port, klass)].paused_until_ps > at_ps &&
         s.ingresses[s.at(peer, klass)].paused;
}

/// Whether some node has anything to do but to refresh pauses and to try in vain.
inline bool has_other_work(const State& s) {
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
  for (const NodeId node : s.agendas.ids())
    if (s.agendas[node].any(moves)) return true;
  return false;
}

/// Whether a packet, or a frame that gives credit back, is under way towards a port.
inline bool has_inbound(const State& s, PortId port) {
  const PortId peer = s.peer_of(port);
  if (s.link_credits && !s.frames_inbound[port].empty()) return true;
  for (const TrafficClass klass : s.classes()) {
    const Packet* end = s.queues[s.at(peer, klass)].departure;
    for (Packet* packet = s.inbound[s.at(port, klass)]; packet != end; packet = s.pool.next(packet))
      if (packet->at_ps != kFlushedPs) return true;
  }
  return false;
}

/// Whether packets wait at a port that may leave it some day, or a frame that gives credit back.
inline bool has_something_to_send(const State& s, PortId port, Ps at_ps) {
  const Port& out = s.ports[port];
  if (!out.up) return false;  // no instant is left that would bring it back
  if (s.link_credits && out.frame_waits) return true;
  if (is_host(s, s.in.port_node[port])) return out.pending != 0 && !is_held(s, port, s.in.control_class, at_ps);
  for (std::uint32_t rest = out.pending; rest != 0; rest &= rest - 1)
    if (!is_held(s, port, lowest(rest), at_ps)) return true;
  return false;
}

/// Whether the link has credit for a packet of a queue pair, from the first that is not acknowledged to the next one.
inline bool has_credit_for_any(const State& s, const QueuePair& qp) {
  const Sender& sender = qp.sender;
  for (MessageId id = sender.una_message; !id.is_none() && s.messages[id].first <= sender.nxt;
       id = s.messages[id].next) {
    const Message& message = s.messages[id];
    const std::int64_t end = std::min(message.end, sender.nxt + 1);
    for (std::int64_t seq = std::max(message.first, sender.una); seq < end; ++seq)
      if (has_credit(s, qp.source_port, message.klass, frame_bytes(s, message, seq))) return true;
  }
  return false;
}

/// Whether a queue pair may send some day: now, after a timeout, or to ask for credits.
inline bool may_send(const State& s, const QueuePair& qp, Ps at_ps) {
  const Sender& sender = qp.sender;
  const PortId port = qp.source_port;
  if (sender.failed || sender.una == sender.end || !s.ports[port].up) return false;
  if (s.link_credits) {
    const bool may_ask = sender.una == sender.nxt && credit_blocked(s, qp) &&
                         has_credit(s, port, s.in.control_class, s.in.transport.ack_bytes);
    return may_ask || has_credit_for_any(s, qp);
  }
  for (MessageId id = sender.una_message; !id.is_none() && s.messages[id].first <= sender.nxt; id = s.messages[id].next)
    if (s.messages[id].end > sender.una && !is_held(s, port, s.messages[id].klass, at_ps)) return true;
  return sender.una == sender.nxt && credit_blocked(s, qp) && !is_held(s, port, s.in.control_class, at_ps);
}

/// Whether a receiver's step has set a timer: what it sends then may be news.
inline bool has_receiver_timer(const QueuePair& qp) {
  if (qp.receiver_record == nullptr) return false;
  const auto& at_ps = receiver_state(qp).timer_at_ps;
  return std::any_of(std::begin(at_ps), std::end(at_ps), [](Ps timer) { return timer != kOff; });
}

/// The queue in which the first held packet that came in by (port, class) waits to leave its switch, or none.
inline QueueId next_held(const State& s, PortId ingress, TrafficClass klass) {
  const NodeId node = s.in.port_node[ingress];
  const LocalQueueId came_by = s.at(s.local_port(ingress), klass);
  for (const PortId port : s.ports_of(node))
    for (const TrafficClass other : s.classes()) {
      const Queue& queue = s.queues[s.at(port, other)];
      for (Packet* packet = queue.departure; packet != queue.tail; packet = s.pool.next(packet))
        if (LocalQueueId(packet->ingress) == came_by) return s.at(port, other);
    }
  return QueueId::none();
}

/// The cycle that a held queue leads to, from its lowest port on; empty if it leads to none.
inline std::vector<DeadlockRow> cycle_from(const State& s, QueueId held) {
  std::vector<QueueId> path;
  auto begin = path.end();
  for (; begin == path.end(); begin = std::find(path.begin(), path.end(), held)) {
    path.push_back(held);
    held = next_held(s, s.peer_of(s.port_of(held)), s.class_of(held));
    if (held.is_none()) return {};
  }
  path.erase(path.begin(), begin);
  std::rotate(path.begin(), std::min_element(path.begin(), path.end()), path.end());
  std::vector<DeadlockRow> rows;
  for (const QueueId each : path) {
    const PortId port = s.port_of(each);
    const TrafficClass klass = s.class_of(each);
    const Ingress& ingress = s.ingresses[s.at(s.peer_of(port), klass)];
    rows.push_back({port.value, klass.value, s.queues[each].bytes, ingress.used + ingress.headroom_used});
  }
  return rows;
}

/// The cycle of a deadlock that holds just before `at_ps`, when no packet has arrived for a whole watch; else nothing.
inline std::vector<DeadlockRow> find_deadlock(const State& s, Ps at_ps) {
  if (s.next_instant < s.in.instants.size() || has_other_work(s)) return {};
  for (const QueuePairId id : s.queue_pairs.ids()) {
    const QueuePair& qp = s.queue_pairs[id];
    if (may_send(s, qp, at_ps) || has_receiver_timer(qp)) return {};
  }
  PortId held;
  for (const PortId port : s.ports.ids()) {
    if (s.peer_of(port).is_none()) continue;
    if (has_inbound(s, port) || has_something_to_send(s, port, at_ps)) return {};
    if (held.is_none() && s.ports[port].up && s.ports[port].pending != 0 && !is_host(s, s.in.port_node[port]))
      held = port;
  }
  if (held.is_none()) return {};
  return cycle_from(s, s.at(held, lowest(s.ports[held].pending)));
}

}  // namespace weftwork
