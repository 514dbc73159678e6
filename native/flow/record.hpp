/// Records of a run: the use of each actor's time, and all communication.
#pragma once
#include <unordered_map>

#include "flow/state.hpp"

namespace weftwork::flow {

/// Time of an actor's first stream from `from_ps` to now; pieces of one kind that touch are one, unless a milestone
/// stands between them.
inline void spend(State& s, ActorId actor, std::int64_t label, Spent code, Ps from_ps, Ps to_ps) {
  if (to_ps <= from_ps) return;
  std::int64_t& last = s.last_segment[actor];
  if (last >= 0) {
    SegmentRow& row = s.segments[last];
    if (row.label == label && row.code == static_cast<std::int64_t>(code) && row.end_ps == from_ps) {
      row.end_ps = to_ps;
      return;
    }
  }
  last = static_cast<std::int64_t>(s.segments.size());
  s.segments.push_back({actor.value, label, static_cast<std::int64_t>(code), from_ps, to_ps});
}

/// A stream goes on: what it waited for is the label of the operation, or of what ended it.
inline void record_wait(State& s, const StreamState& stream, std::int64_t own_label, const Cause& cause) {
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

/// Place in `State::done` of what a connection or an operation gets done: its cell of activities; in a core, where it
/// has many of them, its kind.
inline ActivityCell done_of(const State& s, ConnectionCell connection) {
  if (s.network->approximate) return ActivityCell(connection.value);
  return s.network->connections[connection].first_activity;
}
inline ActivityCell done_of(const State& s, OperationCell operation) {
  if (s.network->approximate) return ActivityCell(s.network->connections.size() + operation.index());
  return s.network->operations[operation].first_activity;
}

inline void record_message(State& s, const Lane& lane, const Message& message) {
  if (message.label < 0) return;
  const ActorId actor = s.streams[message.stream].actor;
  const std::int64_t instances = lane.folded.is_none() ? 1 : s.network->connections[lane.folded].instances;
  s.activities.push_back({message.label, lane.channel, -1, actor.value, 2, instances, lane.inside ? 0 : 1, -1,
                          message.size_bytes, message.posted_at_ps, message.began_at_ps, message.delivered_at_ps});
}

/// Bytes by tier for each unit of amount over these hops.
inline std::vector<double> tier_weight(const State& s, std::span<const Hop> hops) {
  std::vector<double> weight(static_cast<std::size_t>(s.in.tiers), 0.0);
  if (weight.empty()) return weight;
  for (const Hop& hop : hops) {
    if (const PortId port(hop.link.value); s.links.is_port(hop.link))
      weight[s.in.tier_of_port[port]] += hop.weight * s.bundle_links[port];
    else if (hop.link < s.links.pcie(RankId(0)) && (hop.link - s.links.inside(RankId(0))) % 2 == 0)
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
  std::unordered_map<std::int32_t, std::size_t> place;  // ways of several lengths may cross a link at several stages
  for (const Hop& hop : hops) {
    if (const auto [known, is_new] = place.try_emplace(hop.link.value, found.size()); !is_new)
      found[known->second].weight += hop.weight;
    else
      found.push_back({ConstraintId(hop.link.value), hop.weight});
  }
  return found;
}

/// A message has flowed.
inline void record_flow(State& s, Lane& lane, const Message& message) {
  if (s.is_ideal) return;
  const double amount = amount_of(s, lane, message.size_bytes);
  if (!lane.folded.is_none()) {
    const Connection& connection = s.network->connections[lane.folded];
    s.done[done_of(s, lane.folded)] += amount;
    record_tiers(s, s.tier_weight_of(done_of(s, lane.folded)), amount, static_cast<double>(connection.instances),
                 message.began_at_ps, s.now_ps);
    return;
  }
  lane.packets += lane.inside ? 0 : s.in.wire.packets(message.size_bytes);
  std::vector<double> weight = s.paths[lane.path].tier_weight;
  const double detoured = lane.adapted.share;
  if (detoured > 0.0) s.mix_tiers(weight, s.paths[lane.detour].tier_weight, detoured);
  record_tiers(s, weight, amount, 1.0, message.began_at_ps, s.now_ps);
  const auto record_part = [&](SharedPath& shared, double part) {
    if (!lane.inside) shared.packets += part * static_cast<double>(s.in.wire.packets(message.size_bytes));
    if (!s.port_bytes.is_on()) return;
    s.port_bytes.each(message.began_at_ps, s.now_ps, [&](std::size_t bin, double share) {
      for (const Hop& hop : shared.path.hops)
        if (s.links.is_port(hop.link)) s.port_bytes.add(bin, hop.link.index(), hop.weight * amount * part * share);
    });
  };
  if (detoured < 1.0) record_part(s.paths[lane.path], 1.0 - detoured);
  if (detoured > 0.0) record_part(s.paths[lane.detour], detoured);
}

/// A call of a communicator has flowed.
inline void record_call_flow(State& s, CommunicatorCell communicator, const CollectiveCall& call) {
  if (s.is_ideal) return;
  const OpRow& op = s.in.job.ops[call.row];
  const auto amount = static_cast<double>(s.in.job.collect(op).amount_bytes);
  const Operation& operation = s.network->operations[call.operation];
  const auto instances = static_cast<double>(s.network->communicators[communicator].instances);
  const double flows = instances * static_cast<double>(std::max<std::int64_t>(1, operation.flows));
  s.done[done_of(s, call.operation)] += amount;
  record_tiers(s, s.tier_weight_of(done_of(s, call.operation)), amount, flows, call.began_at_ps, s.now_ps);
}

}  // namespace weftwork::flow
