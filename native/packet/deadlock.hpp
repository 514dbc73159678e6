/// A deadlock of priority flow control: no packet can ever move again, since every one waits for a pause that its own
/// move would have to end. Source: docs/models/packet-engine.md, "Deadlock".
#pragma once
#include <vector>

#include "packet/instants.hpp"

namespace weftwork {

/// Whether a class may never leave a port: it is paused beyond `at_ps`, and the far end still asks for it.
inline bool is_held(const State& s, PortId port, TrafficClass klass, Ps at_ps) {
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

/// Whether a packet is under way towards a port.
inline bool has_packet_inbound(const State& s, PortId port) {
  const PortId peer = s.peer_of(port);
  for (const TrafficClass klass : s.classes()) {
    const Packet* end = s.queues[s.at(peer, klass)].departure;
    for (Packet* packet = s.inbound[s.at(port, klass)]; packet != end; packet = s.pool.next(packet))
      if (packet->at_ps != kFlushedPs) return true;
  }
  return false;
}

/// Whether packets wait at a port that may leave it some day.
inline bool has_packet_to_send(const State& s, PortId port, Ps at_ps) {
  const Port& out = s.ports[port];
  if (!out.up) return false;  // no instant is left that would bring it back
  for (std::uint32_t rest = out.pending; rest != 0; rest &= rest - 1)
    if (!is_held(s, port, lowest(rest), at_ps)) return true;
  return false;
}

/// Whether a queue pair may send some day: now, after a timeout, or to ask for credits.
inline bool may_send(const State& s, const QueuePair& qp, Ps at_ps) {
  const Sender& sender = qp.sender;
  const PortId port = qp.source_port;
  if (sender.failed || sender.una == sender.end || !s.ports[port].up) return false;
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

/// The egress port by which the first held packet of an ingress wants to leave its switch, or none.
inline PortId next_held(const State& s, PortId ingress, TrafficClass klass) {
  const NodeId node = s.in.port_node[ingress];
  const LocalPort local = s.local_port(ingress);
  for (const PortId port : s.ports_of(node)) {
    const Queue& queue = s.queues[s.at(port, klass)];
    for (Packet* packet = queue.departure; packet != queue.tail; packet = s.pool.next(packet))
      if (packet->ingress == static_cast<std::uint16_t>(local.value)) return port;
  }
  return PortId::none();
}

/// The cycle that a held queue leads to, from its lowest port on; empty if it leads to none.
inline std::vector<DeadlockRow> cycle_from(const State& s, PortId port, TrafficClass klass) {
  std::vector<PortId> path;
  auto begin = path.end();
  for (; begin == path.end(); begin = std::find(path.begin(), path.end(), port)) {
    path.push_back(port);
    port = next_held(s, s.peer_of(port), klass);
    if (port.is_none()) return {};
  }
  path.erase(path.begin(), begin);
  std::rotate(path.begin(), std::min_element(path.begin(), path.end()), path.end());
  std::vector<DeadlockRow> rows;
  for (const PortId each : path) {
    const Ingress& ingress = s.ingresses[s.at(s.peer_of(each), klass)];
    rows.push_back({each.value, klass.value, s.queues[s.at(each, klass)].bytes, ingress.used + ingress.headroom_used});
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
    if (has_packet_inbound(s, port) || has_packet_to_send(s, port, at_ps)) return {};
    if (held.is_none() && s.ports[port].up && s.ports[port].pending != 0 && !is_host(s, s.in.port_node[port]))
      held = port;
  }
  if (held.is_none()) return {};
  return cycle_from(s, held, lowest(s.ports[held].pending));
}

}  // namespace weftwork
