/// Failover: queue pairs whose NIC ports have gone down go on by another column of their ranks' ports.
/// Source: docs/models/packet-engine.md, "Instants". Leaves out: packets under way, which keep the ports they have.
#pragma once
#include "packet/programs.hpp"

namespace weftwork {

/// Give up the slots of a queue pair at its ports; what the agenda holds for them finds nobody.
inline void leave_slots(State& s, QueuePair& qp) {
  NicPort& source = nic_of(s, qp.source_port);
  Sender& sender = qp.sender;
  qp.paced_entry_at_ps = kOff;
  if (sender.standing == Standing::kPaced || s.in.congestion.moves_departures) {
    std::erase_if(source.paced, [&](const NicPort::Paced& paced) { return paced.slot == sender.slot; });
    std::make_heap(source.paced.begin(), source.paced.end(), later_paced);
  }
  if (sender.standing == Standing::kReady) clear_ready(source, sender);
  sender.standing = Standing::kBlocked;
  source.slots[sender.slot] = kMovedAway;
  if (!qp.receiver.slot.is_none()) nic_of(s, qp.destination_port).receivers[qp.receiver.slot] = kMovedAway;
}

/// Take the next free slots at the new ports, where the timers go on.
inline void take_slots(State& s, QueuePair& qp, QueuePairId id, Ps now_ps) {
  Sender& sender = qp.sender;
  sender.slot = add_slot(s, qp.source_port, id);
  sender.deadline_entry_at_ps = kOff;
  if (sender.deadline_at_ps != kOff) set_deadline(s, qp, sender.deadline_at_ps);
  std::fill_n(sender.timer_entry_at_ps, kTimers, kOff);
  std::fill_n(qp.path_timer_entry_at_ps, kTimers, kOff);
  const std::uint64_t first_timer = sender.slot.index() * kSenderTimers;
  arm_timers(s, qp.source_port, AgendaKind::kSenderTimer, first_timer, sender_state(qp).timer_at_ps,
             sender.timer_entry_at_ps, now_ps);
  if (qp.path != nullptr)
    arm_timers(s, qp.source_port, AgendaKind::kSenderTimer, first_timer + kTimers, path_state(qp).timer_at_ps,
               qp.path_timer_entry_at_ps, now_ps);
  Receiver& receiver = qp.receiver;
  if (receiver.slot.is_none()) return;
  receiver.slot = add_receiver_slot(s, qp.destination_port, id);
  if (qp.receiver_record == nullptr) return;
  std::fill_n(receiver.timer_entry_at_ps, kTimers, kOff);
  arm_timers(s, qp.destination_port, AgendaKind::kReceiverTimer, receiver.slot.index() * kTimers,
             receiver_state(qp).timer_at_ps, receiver.timer_entry_at_ps, now_ps);
}

inline void move_to(State& s, QueuePairId id, const PortPair& ports, Ps now_ps) {
  QueuePair& qp = s.queue_pairs[id];
  leave_slots(s, qp);
  if (qp.receiver.kept_count > 0) {
    count_early(s, qp.destination_port, -qp.receiver.kept_count);
    count_early(s, ports.destination, qp.receiver.kept_count);
  }
  qp.source_port = ports.source;
  qp.destination_port = ports.destination;
  qp.reverse_hash = carried_hash(s, qp, false, qp.own_entropy);
  qp.sender.hash = carried_hash(s, qp, true, qp.sender.entropy);
  take_slots(s, qp, id, now_ps);
  if (qp.sender.una < qp.sender.nxt) go_back(s, qp);
  guard_credits(s, qp, now_ps);
  reconsider(s, qp);
}

/// All queue pairs choose their column again, in the order of their identity.
inline void fail_over(State& s, Ps now_ps) {
  std::vector<std::pair<std::uint64_t, QueuePairId>> order;
  order.reserve(s.queue_pairs.size());
  for (const QueuePairId id : s.queue_pairs.ids()) order.emplace_back(s.queue_pairs[id].flow, id);
  std::sort(order.begin(), order.end());
  for (const PortId port : s.ports.ids())  // what departs now comes before
    if (!s.nic_of_port[port].is_none()) drain_nic(s, port, now_ps);
  s.down_at_failover.resize(s.ports.size());
  for (const PortId port : s.ports.ids()) s.down_at_failover[port] = !s.ports[port].up;
  std::vector<QueuePairId> moved;
  for (const auto& [flow, id] : order) {
    const QueuePair& qp = s.queue_pairs[id];
    const PortPair ports = working_ports(s, qp, {qp.source_port, qp.destination_port});
    if (ports.source == qp.source_port && ports.destination == qp.destination_port) continue;
    move_to(s, id, ports, now_ps);
    moved.push_back(id);
  }
  for (const QueuePairId id : moved) {
    const QueuePair& qp = s.queue_pairs[id];
    kick_nic(s, qp.source_port, now_ps);
    for (const PortId port : {qp.source_port, qp.destination_port}) s.calendar.schedule(s.in.port_node[port], now_ps);
  }
}

}  // namespace weftwork
