/// Timers of queue pairs in the agenda of their node: those that policies set, and that of retransmissions. Each has at
/// most one entry that counts; one that comes too early is pushed again.
#pragma once
#include <algorithm>
#include <cstdint>

#include "base/clock.hpp"
#include "base/ids.hpp"
#include "base/invariant.hpp"
#include "packet/agenda.hpp"
#include "packet/queue_pair_records.hpp"
#include "packet/schedule.hpp"
#include "packet/setup.hpp"
#include "rows/policies.hpp"
#include "rows/transport.hpp"

namespace weftwork {

/// Put a timer that ends at `at_ps` into the agenda, unless the entry at `entry_at_ps` comes in time.
inline void arm(Agenda& agenda, Ps& entry_at_ps, Ps at_ps, std::uint64_t key) {
  must_hold(at_ps >= 0, Invariant::timer_fires_when_it_is_set, "at_ps entry_at_ps kind", at_ps, entry_at_ps, key >> 60);
  if (entry_at_ps != kOff && entry_at_ps <= at_ps) return;
  entry_at_ps = at_ps;
  agenda.push(at_ps, key);
}

/// Timers of one slot of a sender: those of congestion control, then those of path selection.
inline constexpr std::uint64_t kSenderTimers = std::uint64_t{2} * kTimers;

/// Put the timers that a step has set into the agenda; `rest` is that of the first one's key.
inline void arm_timers(const Setup& setup, Schedule& schedule, PortId port, AgendaKind kind, std::uint64_t rest,
                       const std::int64_t* timer_at_ps, Ps* entry_at_ps, Ps now_ps) {
  static_assert(kTimers == 4 && kOff == -1);
  if ((timer_at_ps[0] & timer_at_ps[1] & timer_at_ps[2] & timer_at_ps[3]) == kOff) return;  // all of them are
  Agenda& agenda = schedule.agendas[setup.in.port_node[port]];
  for (int timer = 0; timer < kTimers; ++timer)
    if (timer_at_ps[timer] != kOff)
      arm(agenda, entry_at_ps[timer], std::max<Ps>(timer_at_ps[timer], now_ps),
          port_key(kind, setup.local_port(port), rest + static_cast<std::uint64_t>(timer)));
}

/// How long a sender waits for news of its packets.
inline Ps timeout_ps(const Setup& setup, const QueuePair& qp) {
  const TransportRow& transport = setup.in.transport;
  const Ps own_ps = reinterpret_cast<const SenderState*>(qp.congestion)->timeout_ps;
  if (own_ps > 0) [[unlikely]]
    return std::min(own_ps, kNeverPs);
  if (transport.timeout_low_ps > 0 && qp.sender.nxt - qp.sender.una <= transport.timeout_low_packets)
    return transport.timeout_low_ps;
  return transport.retransmission_timeout_ps;
}

inline constexpr std::int64_t kMostFirings = 10'000;  // weftwork.policies.standing_timers.MOST_FIRINGS

/// Count a firing; whether there have been so many at this instant that a step may set no timer to it any more.
inline bool fires_too_often(Firings& firings, Ps now_ps) {
  if (firings.at_ps != now_ps) firings = {now_ps, 0};
  return ++firings.count > kMostFirings;
}

/// Timers that have to fire at an instant, as bits.
inline unsigned due_timers(const std::int64_t* timer_at_ps, Ps now_ps) {
  unsigned due = 0;
  for (unsigned timer = 0; timer < kTimers; ++timer)
    if (timer_at_ps[timer] != kOff && timer_at_ps[timer] <= now_ps) due |= 1U << timer;
  return due;
}

/// The retransmission timer ends at `deadline_ps`, or, for kOff, is off.
inline void set_deadline(const Setup& setup, Schedule& schedule, QueuePair& qp, Ps deadline_ps) {
  Sender& sender = qp.sender;
  sender.deadline_at_ps = deadline_ps;
  if (deadline_ps == kOff) return;
  arm(schedule.agendas[setup.in.port_node[qp.source_port]], sender.deadline_entry_at_ps, deadline_ps,
      port_key(AgendaKind::kRetransmission, setup.local_port(qp.source_port), sender.slot.index()));
}

/// Take what a timer entry stands for; false if it is stale or must wait longer (it is then pushed again).
inline bool take_timer(Schedule& schedule, NodeId node, Ps& entry_at_ps, Ps at_ps, const AgendaEntry& entry) {
  if (entry_at_ps != entry.at_ps) return false;
  entry_at_ps = kOff;
  if (at_ps == kOff) return false;
  if (at_ps <= entry.at_ps) return true;
  must_hold(at_ps > entry.at_ps, Invariant::timer_fires_when_it_is_set, "entry_at_ps ends_at_ps node", entry.at_ps,
            at_ps, node);
  entry_at_ps = at_ps;
  schedule.agendas[node].push(at_ps, entry.key);
  return false;
}

}  // namespace weftwork
