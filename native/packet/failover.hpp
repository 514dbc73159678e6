/// Failover: queue pairs whose NIC ports have gone down go on by another column of their ranks' ports.
/// Source: docs/models/packet-engine.md, "Instants". Leaves out: packets under way, which keep the ports they have.
#pragma once
#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "base/clock.hpp"
#include "base/failover.hpp"
#include "base/ids.hpp"
#include "base/invariant.hpp"
#include "packet/agenda.hpp"
#include "packet/hashing.hpp"
#include "packet/hosts.hpp"
#include "packet/pipe.hpp"
#include "packet/programs.hpp"
#include "packet/queue_pair_records.hpp"
#include "packet/recordings.hpp"
#include "packet/recovery.hpp"
#include "packet/schedule.hpp"
#include "packet/scheduling.hpp"
#include "packet/setup.hpp"
#include "packet/state.hpp"
#include "packet/steps.hpp"
#include "packet/timers.hpp"
#include "rows/policies.hpp"

namespace weftwork {

/// Give up the slots of a queue pair at its ports; what the agenda holds for them finds nobody.
inline void leave_slots(const Setup& setup, Hosts& hosts, QueuePair& qp) {
  NicPort& source = nic_of(hosts, qp.source_port);
  Sender& sender = qp.sender;
  qp.paced_entry_at_ps = kOff;
  if (sender.standing == Standing::kPaced || setup.in.congestion.moves_departures) {
    std::erase_if(source.paced, [&](const NicPort::Paced& paced) { return paced.slot == sender.slot; });
    std::make_heap(source.paced.begin(), source.paced.end(), later_paced);
  }
  if (sender.standing == Standing::kReady) clear_ready(source, sender);
  sender.standing = Standing::kBlocked;
  must_hold(source.slots[sender.slot] != kMovedAway && &hosts.queue_pairs[source.slots[sender.slot]] == &qp,
            Invariant::slot_has_its_queue_pair, "port slot queue_pair", qp.source_port, sender.slot,
            source.slots[sender.slot]);
  must_hold(source.ready_count < source.slots.size(), Invariant::slot_has_its_queue_pair, "port slot ready slots",
            qp.source_port, sender.slot, source.ready_count, source.slots.size());
  const QueuePairId id = source.slots[sender.slot];
  source.slots[sender.slot] = kMovedAway;
  if (qp.receiver.slot.is_none()) return;
  QueuePairId& received = nic_of(hosts, qp.destination_port).receivers[qp.receiver.slot];
  must_hold(received == id, Invariant::slot_has_its_queue_pair, "port receiver_slot queue_pair", qp.destination_port,
            qp.receiver.slot, received);
  received = kMovedAway;
}

/// Take the next free slots at the new ports, where the timers go on.
inline void take_slots(const Setup& setup, Schedule& schedule, Hosts& hosts, Recordings& recordings, QueuePair& qp,
                       QueuePairId id, Ps now_ps) {
  Sender& sender = qp.sender;
  must_hold(sender.standing == Standing::kBlocked && qp.paced_entry_at_ps == kOff, Invariant::slot_has_its_queue_pair,
            "at_ps queue_pair standing paced_at_ps", now_ps, id, sender.standing, qp.paced_entry_at_ps);
  must_hold(sender.deadline_at_ps == kOff || sender.deadline_at_ps >= now_ps, Invariant::time_never_runs_back,
            "at_ps ends_at_ps queue_pair", now_ps, sender.deadline_at_ps, id);
  sender.slot = add_slot(setup, hosts, recordings, qp.source_port, id);
  sender.deadline_entry_at_ps = kOff;
  if (sender.deadline_at_ps != kOff) set_deadline(setup, schedule, qp, sender.deadline_at_ps);
  std::fill_n(sender.timer_entry_at_ps, kTimers, kOff);
  std::fill_n(qp.path_timer_entry_at_ps, kTimers, kOff);
  const std::uint64_t first_timer = sender.slot.index() * kSenderTimers;
  arm_timers(setup, schedule, qp.source_port, AgendaKind::kSenderTimer, first_timer, sender_state(qp).timer_at_ps,
             sender.timer_entry_at_ps, now_ps);
  if (qp.path != nullptr)
    arm_timers(setup, schedule, qp.source_port, AgendaKind::kSenderTimer, first_timer + kTimers,
               path_state(qp).timer_at_ps, qp.path_timer_entry_at_ps, now_ps);
  Receiver& receiver = qp.receiver;
  if (receiver.slot.is_none()) return;
  receiver.slot = add_receiver_slot(setup, hosts, recordings, qp.destination_port, id);
  if (qp.receiver_record == nullptr) return;
  std::fill_n(receiver.timer_entry_at_ps, kTimers, kOff);
  arm_timers(setup, schedule, qp.destination_port, AgendaKind::kReceiverTimer, receiver.slot.index() * kTimers,
             receiver_state(qp).timer_at_ps, receiver.timer_entry_at_ps, now_ps);
}

inline void move_to(State& s, QueuePairId id, const PortPair& ports, Ps now_ps) {
  QueuePair& qp = s.hosts.queue_pairs[id];
  must_hold(!s.hosts.nic_of_port[ports.source].is_none() && !s.hosts.nic_of_port[ports.destination].is_none(),
            Invariant::slot_has_its_queue_pair, "at_ps queue_pair source_port destination_port", now_ps, id,
            ports.source, ports.destination);
  must_hold(ports.source != qp.source_port || ports.destination != qp.destination_port,
            Invariant::slot_has_its_queue_pair, "at_ps queue_pair source_port destination_port", now_ps, id,
            ports.source, ports.destination);
  leave_slots(s.setup, s.hosts, qp);
  if (qp.receiver.kept_count > 0) {
    count_early(s.hosts, s.recordings, qp.destination_port, -qp.receiver.kept_count);
    count_early(s.hosts, s.recordings, ports.destination, qp.receiver.kept_count);
  }
  qp.source_port = ports.source;
  qp.destination_port = ports.destination;
  qp.reverse_hash = carried_hash(s.routing, qp, false, qp.own_entropy);
  qp.sender.hash = carried_hash(s.routing, qp, true, qp.sender.entropy);
  take_slots(s.setup, s.schedule, s.hosts, s.recordings, qp, id, now_ps);
  if (qp.sender.una < qp.sender.nxt) go_back(s.setup, s.hosts, qp);
  must_hold(inflight_bytes(qp.sender) == 0, Invariant::in_flight_bytes_are_sent_minus_acknowledged,
            "at_ps queue_pair inflight_bytes", now_ps, id, inflight_bytes(qp.sender));
  guard_credits(s.setup, s.schedule, s.job, qp, now_ps);
  reconsider(s.setup, s.fabric, s.hosts, s.job, qp);
}

/// All queue pairs choose their column again, in the order of their identity.
inline void fail_over(State& s, Ps now_ps) {
  std::vector<std::pair<std::uint64_t, QueuePairId>> order;
  order.reserve(s.hosts.queue_pairs.size());
  for (const QueuePairId id : s.hosts.queue_pairs.ids()) order.emplace_back(s.hosts.queue_pairs[id].flow, id);
  std::sort(order.begin(), order.end());
  for (const PortId port : s.fabric.ports.ids())  // what departs now comes before
    if (!s.hosts.nic_of_port[port].is_none()) drain_nic(s, port, now_ps);
  s.hosts.down_at_failover.resize(s.fabric.ports.size());
  for (const PortId port : s.fabric.ports.ids()) s.hosts.down_at_failover[port] = !s.fabric.ports[port].up;
  std::vector<QueuePairId> moved;
  for (const auto& [flow, id] : order) {
    const QueuePair& qp = s.hosts.queue_pairs[id];
    const PortPair ports = working_ports(s.setup, s.hosts, qp, {qp.source_port, qp.destination_port});
    if (ports.source == qp.source_port && ports.destination == qp.destination_port) continue;
    move_to(s, id, ports, now_ps);
    moved.push_back(id);
  }
  for (const QueuePairId id : moved) {
    const QueuePair& qp = s.hosts.queue_pairs[id];
    kick_nic(s, qp.source_port, now_ps);
    for (const PortId port : {qp.source_port, qp.destination_port})
      s.schedule.calendar.schedule(s.setup.in.port_node[port], now_ps);
  }
}

}  // namespace weftwork
