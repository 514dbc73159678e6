/// Records of a run: the use of each actor's time, and all communication.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "base/clock.hpp"
#include "base/ids.hpp"
#include "flow/ids.hpp"
#include "flow/job_state.hpp"
#include "flow/network.hpp"
#include "flow/recordings.hpp"
#include "flow/records.hpp"
#include "flow/run_clock.hpp"
#include "flow/setup.hpp"
#include "flow/traffic.hpp"
#include "rows/flow_outcome.hpp"
#include "rows/job.hpp"

namespace weftwork::flow {

/// Time of an actor's first stream from `from_ps` to now; pieces of one kind that touch are one, unless a milestone
/// stands between them.
inline void spend(Recordings& recordings, ActorId actor, std::int64_t label, Spent code, Ps from_ps, Ps to_ps) {
  if (to_ps <= from_ps || !recordings.has_details) return;
  std::int64_t& last = recordings.last_segment[actor];
  if (last >= 0) {
    SegmentRow& row = recordings.segments[last];
    if (row.label == label && row.code == static_cast<std::int64_t>(code) && row.end_ps == from_ps) {
      row.end_ps = to_ps;
      return;
    }
  }
  last = static_cast<std::int64_t>(recordings.segments.size());
  recordings.segments.push_back({.actor = actor.value,
                                 .label = label,
                                 .code = static_cast<std::int64_t>(code),
                                 .start_ps = from_ps,
                                 .end_ps = to_ps});
}

/// A stream goes on: what it waited for is the label of the operation, or of what ended it.
inline void record_wait(const RunClock& clock, Recordings& recordings, const StreamState& stream,
                        std::int64_t own_label, const Cause& cause) {
  if (stream.number != 0) return;
  const std::int64_t label = own_label >= 0 ? own_label : cause.label;
  if (!cause.is_transfer) {
    spend(recordings, stream.actor, label, Spent::kWaiting, stream.since_ps, clock.now_ps);
    return;
  }
  const Ps middle_ps = std::clamp(cause.began_at_ps, stream.since_ps, clock.now_ps);
  spend(recordings, stream.actor, label, Spent::kWaiting, stream.since_ps, middle_ps);
  spend(recordings, stream.actor, label, Spent::kCommunicating, middle_ps, clock.now_ps);
}

/// Payload that would take as long as the message does with its own headers.
inline double amount_of(const Setup& setup, const Lane& lane, std::int64_t size_bytes) {
  if (lane.inside) return static_cast<double>(size_bytes);
  return static_cast<double>(setup.in.wire.message_bytes(size_bytes)) / setup.in.wire.factor();
}

/// Place in `Recordings::done` of what a connection or an operation gets done: its cell of activities; in a core, where
/// it has many of them, its kind.
inline ActivityCell done_of(const Setup& setup, ConnectionCell connection) {
  if (setup.network->approximate) return ActivityCell(connection.value);
  return setup.network->connections[connection].first_activity;
}
inline ActivityCell done_of(const Setup& setup, OperationCell operation) {
  if (setup.network->approximate) return ActivityCell(setup.network->connections.size() + operation.index());
  return setup.network->operations[operation].first_activity;
}

inline void record_message(const Setup& setup, const JobState& job, Recordings& recordings, const Lane& lane,
                           const Message& message) {
  if (message.label < 0 || !recordings.has_details) return;
  const ActorId actor = job.streams[message.stream].actor;
  const std::int64_t instances = lane.folded.is_none() ? 1 : setup.network->connections[lane.folded].instances;
  recordings.activities.push_back({.label = message.label,
                                   .channel = lane.channel,
                                   .pattern = -1,
                                   .actor = actor.value,
                                   .ranks = 2,
                                   .instances = instances,
                                   .flows = lane.inside ? 0 : 1,
                                   .operation = -1,
                                   .size_bytes = message.size_bytes,
                                   .posted_ps = message.posted_at_ps,
                                   .start_ps = message.began_at_ps,
                                   .end_ps = message.delivered_at_ps});
}

/// Bytes by tier for each unit of amount over these hops.
inline std::vector<double> tier_weight(const Setup& setup, const Traffic& traffic, std::span<const Hop> hops) {
  std::vector<double> weight(static_cast<std::size_t>(setup.in.tiers), 0.0);
  if (weight.empty()) return weight;
  for (const Hop& hop : hops) {
    if (const PortId port(hop.link.value); traffic.links.is_port(hop.link))
      weight[setup.in.tier_of_port[port]] += hop.weight * traffic.bundle_links[port];
    else if (hop.link < traffic.links.pcie(RankId(0)) && (hop.link - traffic.links.inside(RankId(0))) % 2 == 0)
      weight.back() += hop.weight;  // what leaves a GPU inside its server
  }
  return weight;
}

/// Spread what has flowed from one instant to another over the tiers that it crossed; `flows` of it did.
inline void record_tiers(Recordings& recordings, std::span<const double> weight, double amount, double flows,
                         Ps from_ps, Ps to_ps) {
  if (!recordings.tier_bytes.is_on()) return;
  recordings.tier_bytes.each(from_ps, to_ps, [&](std::size_t bin, double share) {
    for (std::size_t tier = 0; tier < weight.size(); ++tier)
      recordings.tier_bytes.add(bin, tier, weight[tier] * amount * share);
  });
  recordings.tier_flows.each(from_ps, to_ps, [&](std::size_t bin, double share) {
    const double mean = flows * share * static_cast<double>(to_ps - from_ps);  // flow x time, divided by the bin later
    for (std::size_t tier = 0; tier < weight.size(); ++tier)
      if (weight[tier] > 0) recordings.tier_flows.add(bin, tier, mean);
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
inline void record_flow(const Setup& setup, Traffic& traffic, const RunClock& clock, Recordings& recordings, Lane& lane,
                        const Message& message) {
  if (setup.is_ideal) return;
  const double amount = amount_of(setup, lane, message.size_bytes);
  if (!lane.folded.is_none()) {
    const Connection& connection = setup.network->connections[lane.folded];
    recordings.done[done_of(setup, lane.folded)] += amount;
    record_tiers(recordings, tier_weight_now(setup, traffic, done_of(setup, lane.folded)), amount,
                 static_cast<double>(connection.instances), message.began_at_ps, clock.now_ps);
    return;
  }
  lane.packets += lane.inside ? 0 : setup.in.wire.packets(message.size_bytes);
  std::vector<double> weight = traffic.paths[lane.path].tier_weight;
  const double detoured = lane.adapted.share;
  if (detoured > 0.0) mix_tiers(weight, traffic.paths[lane.detour].tier_weight, detoured);
  record_tiers(recordings, weight, amount, 1.0, message.began_at_ps, clock.now_ps);
  const auto record_part = [&](SharedPath& shared, double part) {
    if (!lane.inside) shared.packets += part * static_cast<double>(setup.in.wire.packets(message.size_bytes));
    if (!recordings.port_bytes.is_on()) return;
    recordings.port_bytes.each(message.began_at_ps, clock.now_ps, [&](std::size_t bin, double share) {
      for (const Hop& hop : shared.path.hops)
        if (traffic.links.is_port(hop.link))
          recordings.port_bytes.add(bin, hop.link.index(), hop.weight * amount * part * share);
    });
  };
  if (detoured < 1.0) record_part(traffic.paths[lane.path], 1.0 - detoured);
  if (detoured > 0.0) record_part(traffic.paths[lane.detour], detoured);
}

/// A call of a communicator has flowed.
inline void record_call_flow(const Setup& setup, const Traffic& traffic, const RunClock& clock, Recordings& recordings,
                             CommunicatorCell communicator, const CollectiveCall& call) {
  if (setup.is_ideal) return;
  const OpRow& op = setup.in.job.ops[call.row];
  const auto amount = static_cast<double>(setup.in.job.collect(op).amount_bytes);
  const Operation& operation = setup.network->operations[call.operation];
  const auto instances = static_cast<double>(setup.network->communicators[communicator].instances);
  const double flows = instances * static_cast<double>(std::max<std::int64_t>(1, operation.flows));
  recordings.done[done_of(setup, call.operation)] += amount;
  record_tiers(recordings, tier_weight_now(setup, traffic, done_of(setup, call.operation)), amount, flows,
               call.began_at_ps, clock.now_ps);
}

}  // namespace weftwork::flow
