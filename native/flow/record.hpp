/// What a run leaves behind: what the time of each actor went to, and what was communicated when.
#pragma once
#include "flow/state.hpp"

namespace weftwork::flow {

/// Time of an actor's first stream from `from_ps` to now; pieces of one kind that touch are one.
inline void spend(State& s, std::int32_t actor, std::int64_t label, Spent code, Ps from_ps, Ps to_ps) {
  if (to_ps <= from_ps) return;
  std::int64_t& last = s.last_segment[static_cast<std::size_t>(actor)];
  if (last >= 0) {
    SegmentRow& row = s.segments[static_cast<std::size_t>(last)];
    if (row.label == label && row.code == static_cast<std::int64_t>(code) && row.end_ps == from_ps) {
      row.end_ps = to_ps;
      return;
    }
  }
  last = static_cast<std::int64_t>(s.segments.size());
  s.segments.push_back({actor, label, static_cast<std::int64_t>(code), from_ps, to_ps});
}

/// A stream goes on: what it waited for is the label of the operation, or of what ended it.
inline void record_wait(State& s, const Stream& stream, std::int64_t own_label, const Cause& cause) {
  if (stream.number != 0) return;
  const std::int64_t label = own_label >= 0 ? own_label : cause.label;
  if (!cause.is_transfer) {
    spend(s, stream.actor, label, Spent::kWaiting, stream.since_ps, s.now_ps);
    return;
  }
  const Ps middle_ps = std::clamp(cause.began_at_ps, stream.since_ps, s.now_ps);
  spend(s, stream.actor, label, Spent::kWaiting, stream.since_ps, middle_ps);
  spend(s, stream.actor, label, Spent::kCommunicating, middle_ps, s.now_ps);
}

/// Payload that would take as long as the message does with its own headers.
inline double amount_of(const State& s, const Lane& lane, std::int64_t size_bytes) {
  if (lane.inside) return static_cast<double>(size_bytes);
  return static_cast<double>(s.in.wire.message_bytes(size_bytes)) / s.in.wire.factor();
}

/// Place in `State::done` of what a connection or an operation gets done: its class of activities; in a core, which has
/// many of them, its kind.
inline std::size_t done_of_connection(const State& s, std::int32_t connection) {
  if (s.network->approximate) return static_cast<std::size_t>(connection);
  return static_cast<std::size_t>(s.network->connections[static_cast<std::size_t>(connection)].first_activity);
}
inline std::size_t done_of_operation(const State& s, std::int32_t operation) {
  if (s.network->approximate) return s.network->connections.size() + static_cast<std::size_t>(operation);
  return static_cast<std::size_t>(s.network->operations[static_cast<std::size_t>(operation)].first_activity);
}

inline void record_message(State& s, const Lane& lane, const Message& message) {
  if (message.label < 0) return;
  const std::int32_t actor = s.streams[static_cast<std::size_t>(message.stream)].actor;
  const std::int64_t instances =
      lane.folded < 0 ? 1 : s.network->connections[static_cast<std::size_t>(lane.folded)].instances;
  s.activities.push_back({message.label, lane.channel, -1, actor, 2, instances, lane.inside ? 0 : 1, -1,
                          message.size_bytes, message.posted_at_ps, message.began_at_ps, message.delivered_at_ps});
}

/// Bytes by tier for each unit of amount over these hops.
inline std::vector<double> tier_weight(const State& s, std::span<const Hop> hops) {
  std::vector<double> weight(static_cast<std::size_t>(s.in.tiers), 0.0);
  if (weight.empty()) return weight;
  for (const Hop& hop : hops) {
    const auto link = static_cast<std::size_t>(hop.link);
    if (link < s.in.tier_of_port.size())
      weight[static_cast<std::size_t>(s.in.tier_of_port[link])] += hop.weight * s.ground.bundle_links[link];
    else if (std::cmp_less(hop.link, s.links.ports + 2 * s.links.ranks) && (link - s.in.tier_of_port.size()) % 2 == 0)
      weight.back() += hop.weight;  // what leaves a GPU inside its server
  }
  return weight;
}

/// Spread what has flowed from one instant to another over the tiers that it crossed; `flows` of it did.
inline void record_tiers(State& s, std::span<const double> weight, double amount, double flows, Ps from_ps, Ps to_ps) {
  if (!s.tier_bytes.is_on()) return;
  s.tier_bytes.each(from_ps, to_ps, [&](std::size_t bin, double share) {
    for (std::size_t tier = 0; tier < weight.size(); ++tier) s.tier_bytes.add(bin, tier, weight[tier] * amount * share);
  });
  s.tier_flows.each(from_ps, to_ps, [&](std::size_t bin, double share) {
    const double mean = flows * share * static_cast<double>(to_ps - from_ps);  // flow x time, divided by the bin later
    for (std::size_t tier = 0; tier < weight.size(); ++tier)
      if (weight[tier] > 0) s.tier_flows.add(bin, tier, mean);
  });
}

/// Hops as the fluid has them where a link is a constraint.
inline std::vector<ConstraintHop> constraint_hops(std::span<const Hop> hops) {
  std::vector<ConstraintHop> found;
  found.reserve(hops.size());
  for (const Hop& hop : hops) found.push_back({ConstraintId(hop.link), hop.weight});
  return found;
}

/// A message has flowed.
inline void record_flow(State& s, Lane& lane, const Message& message) {
  if (s.is_ideal) return;
  const double amount = amount_of(s, lane, message.size_bytes);
  if (lane.folded >= 0) {
    const Connection& connection = s.network->connections[static_cast<std::size_t>(lane.folded)];
    s.done[done_of_connection(s, lane.folded)] += amount;
    record_tiers(s, s.ground.tier_weight[done_of_connection(s, lane.folded)], amount,
                 static_cast<double>(connection.instances), message.began_at_ps, s.now_ps);
    return;
  }
  SharedWay& way = s.ways[static_cast<std::size_t>(lane.way)];
  lane.packets += lane.inside ? 0 : s.in.wire.packets(message.size_bytes);
  if (!lane.inside) way.packets += static_cast<double>(s.in.wire.packets(message.size_bytes));
  record_tiers(s, way.tier_weight, amount, 1.0, message.began_at_ps, s.now_ps);
  if (!s.port_bytes.is_on()) return;
  s.port_bytes.each(message.began_at_ps, s.now_ps, [&](std::size_t bin, double share) {
    for (const Hop& hop : way.way.hops)
      if (std::cmp_less(hop.link, s.in.tier_of_port.size()))
        s.port_bytes.add(bin, static_cast<std::size_t>(hop.link), hop.weight * amount * share);
  });
}

/// A call of a communicator has flowed.
inline void record_call_flow(State& s, std::int32_t communicator, const Call& call) {
  if (s.is_ideal) return;
  const OpRow& op = s.in.job.ops[static_cast<std::size_t>(call.row)];
  const auto amount = static_cast<double>(s.in.job.collects[static_cast<std::size_t>(op.value)].amount_bytes);
  const Operation& operation = s.network->operations[static_cast<std::size_t>(call.operation)];
  const auto instances =
      static_cast<double>(s.network->communicators[static_cast<std::size_t>(communicator)].instances);
  const double flows = instances * static_cast<double>(std::max<std::int64_t>(1, operation.flows));
  s.done[done_of_operation(s, call.operation)] += amount;
  record_tiers(s, s.ground.tier_weight[done_of_operation(s, call.operation)], amount, flows, call.began_at_ps,
               s.now_ps);
}

}  // namespace weftwork::flow
