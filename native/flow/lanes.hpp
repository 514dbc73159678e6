/// Lanes: messages of one (source, destination, channel) in flight, and what their ends complete.
/// Source: docs/models/flow-engine.md. Leaves out: windows, credits, retransmissions; packets are a flow.
#pragma once
#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "base/clock.hpp"
#include "base/failover.hpp"
#include "base/flow_identity.hpp"
#include "base/ids.hpp"
#include "base/programs.hpp"
#include "base/random.hpp"
#include "flow/adaptive.hpp"
#include "flow/fabric_view.hpp"
#include "flow/fluid.hpp"
#include "flow/ids.hpp"
#include "flow/job_state.hpp"
#include "flow/links.hpp"
#include "flow/losses.hpp"
#include "flow/message_path.hpp"
#include "flow/network.hpp"
#include "flow/record.hpp"
#include "flow/recordings.hpp"
#include "flow/records.hpp"
#include "flow/router.hpp"
#include "flow/run_clock.hpp"
#include "flow/server_links.hpp"
#include "flow/setup.hpp"
#include "flow/state.hpp"
#include "flow/traffic.hpp"
#include "rows/fabric.hpp"
#include "rows/flow_outcome.hpp"
#include "rows/job.hpp"
#include "rows/transport.hpp"

namespace weftwork::flow {

inline constexpr std::int64_t kOfMessage = 0, kOfCall = 1;  // the lowest bit of an activity of the fluid

/// Let a stream go on at `at_ps`; once, however many reasons there are.
inline void wake(JobState& job, RunClock& clock, StreamId index, Ps at_ps) {
  StreamState& stream = job.streams[index];
  if (stream.queued) return;
  stream.queued = true;
  clock.push(at_ps, Event::kStream, index);
}

/// Something that a stream has posted is complete.
inline void complete_posted(const Setup& setup, JobState& job, RunClock& clock, Recordings& recordings, StreamId index,
                            const Cause& cause) {
  StreamState& stream = job.streams[index];
  stream.outstanding -= 1;
  stream.cause = cause;
  if (stream.wait == StreamWait::kAll) {  // what it waited for was in progress from its begin on
    record_wait(clock, recordings, stream, setup.in.job.ops[OpId(stream.op)].label, cause);
    stream.since_ps = clock.now_ps;
  }
  if (stream.wait == StreamWait::kAll && stream.outstanding == 0) wake(job, clock, index, clock.now_ps);
}

inline NodeId node_of_rank(const Setup& setup, RankId rank) {
  return setup.in.job.rank_host[rank];
}

/// What a message inside a server crosses; time is not told from it.
inline MessagePath server_path(const Setup& setup, const Traffic& traffic, const Lane& lane) {
  const bool nvlink = is_nvlink(setup, lane);
  MessagePath path;
  path.hops = {{inside_link(traffic.links, setup.in.job, lane.source, nvlink, false), 1.0},
               {inside_link(traffic.links, setup.in.job, lane.destination, nvlink, true), 1.0}};
  return path;
}

/// The host interface behind the NIC port that receives, if it has one.
inline void append_host_interface(const Setup& setup, const Traffic& traffic, PortId port, MessagePath& path) {
  const NicRow& nic = setup.in.nic_behind(port);
  if (nic.pcie_rate_bps == 0 && nic.pcie_latency_ps == 0 && !traffic.links.has_host_interface(port)) return;
  Stage stage{0, 0, static_cast<double>(nic.pcie_latency_ps), false};
  if (nic.pcie_rate_bps > 0) {
    stage.packet_ps_per_byte = stage.spread_ps_per_byte = 1.0 / (static_cast<double>(nic.pcie_rate_bps) * kBytesPerPs);
  }
  path.stages.push_back(stage);
  if (!traffic.links.has_host_interface(port)) return;
  path.hops.push_back({traffic.links.host_interface(port), setup.in.wire.host_factor()});
}

/// The path of packets between the ports of a lane. A message takes as long as over the slowest link of each stage.
inline MessagePath fabric_path(const Setup& setup, const Traffic& traffic, const Lane& lane) {
  const FabricView& fabric = setup.in.fabric;
  const std::uint64_t flow = flow_identity(lane.source.value, lane.destination.value, lane.channel);
  MessagePath path;
  PathFacts facts;
  traffic.router->path(lane.source_port, lane.destination_port, setup.in.job.own_entropy(flow), queue_pair_number(flow),
                       queue_pair_hash(setup.in.job.seed, flow), path.hops, facts);
  path.is_up = facts.reachable;
  if (!traffic.loss.empty() && path.is_up)
    path.loss =
        path_loss(path.hops, static_cast<double>(facts.latency_ps), fabric, traffic.links, setup.in.wire, traffic.loss);
  std::pair<std::int32_t, std::int32_t> tiers{-1, -1};
  std::vector<double> back_ps;  // by stage: the delay of the other direction
  const bool has_stages = !facts.stage_ends.empty();
  std::size_t end = 0;          // of the last stage begun, where they are told
  for (Hop& hop : path.hops) {  // links side by side are told, or join the same tiers
    const double ps_per_byte = 1.0 / traffic.links.capacity[hop.link];
    const auto delay_ps = [&](PortId of) { return static_cast<double>(fabric.port_delay_ps[of]); };
    const PortId port(hop.link.value);
    const std::pair between{fabric.tier(fabric.owner(port)), fabric.tier(fabric.next(port))};
    const auto place = static_cast<std::size_t>(&hop - path.hops.data());
    if (has_stages ? place == end : between != tiers || hop.weight == 1.0) {
      if (has_stages) end = facts.stage_ends[path.stages.size()];
      path.stages.push_back({0, 0, 0, true});
      back_ps.push_back(0);
    }
    Stage& stage = path.stages.back();
    stage.spread_ps_per_byte = std::max(stage.spread_ps_per_byte, hop.weight * ps_per_byte);
    stage.packet_ps_per_byte = std::max(stage.packet_ps_per_byte, ps_per_byte);
    stage.delay_ps = std::max(stage.delay_ps, delay_ps(port));
    back_ps.back() = std::max(back_ps.back(), delay_ps(fabric.peer(port)));
    tiers = between;
    hop.weight *= setup.in.wire.factor();
  }
  for (std::size_t i = 0; i < path.stages.size(); ++i)
    path.ack_ps += back_ps[i] + static_cast<double>(setup.in.wire.ack_bytes + setup.in.wire.gap_bytes) *
                                    path.stages[i].packet_ps_per_byte;
  if (path.is_up) append_host_interface(setup, traffic, lane.destination_port, path);
  for (const ConstraintHop& hop : constraint_hops(path.hops))
    path.flow_ps_per_byte =
        std::max(path.flow_ps_per_byte, hop.weight / traffic.links.capacity[LinkId(hop.constraint.value)]);
  if (path.loss.data > 0.0)  // behind the time of a lone message, which loses nothing
    for (Hop& hop : path.hops) hop.weight *= path.loss.sent(setup.in.losses);
  return path;
}

/// The path between the ports of a lane by the routes that hold now; one that is known already is shared.
inline PathId path_of(const Setup& setup, Traffic& traffic, const Lane& lane) {
  MessagePath path = lane.inside ? server_path(setup, traffic, lane) : fabric_path(setup, traffic, lane);
  std::uint64_t key = path.is_up ? 1 : 0;
  for (const Hop& hop : path.hops)
    key = mix(key, static_cast<std::uint64_t>(hop.link.value), std::bit_cast<std::uint64_t>(hop.weight));
  std::vector<PathId>& known = traffic.paths_of_key[key];
  const auto same = [](const MessagePath& a, const MessagePath& b) {
    return a.is_up == b.is_up && a.hops.size() == b.hops.size() && a.stages.size() == b.stages.size() &&
           std::equal(a.hops.begin(), a.hops.end(), b.hops.begin(),
                      [](const Hop& x, const Hop& y) { return x.link == y.link && x.weight == y.weight; });
  };
  for (const PathId index : known)
    if (same(traffic.paths[index].path, path)) return index;
  const PathId index = traffic.paths.next_id();
  known.push_back(index);
  if (!path.is_up) path.hops = {{traffic.links.capacity.next_id(), 1.0}};  // the link that is never up
  SharedPath& shared = traffic.paths.emplace_back();
  shared.path = std::move(path);
  shared.variable = traffic.fluid->add_variable(constraint_hops(shared.path.hops));
  shared.tier_weight = tier_weight(setup, traffic, shared.path.hops);
  if (setup.in.adapts) shared.hops = constraint_hops(shared.path.hops);
  return index;
}

/// The paths of a lane by the routes that hold now.
inline void take_paths(const Setup& setup, Traffic& traffic, Lane& lane) {
  if (!setup.in.adapts || lane.inside) {
    lane.path = path_of(setup, traffic, lane);
    return;
  }
  traffic.router->take_detours(false);
  lane.path = path_of(setup, traffic, lane);
  traffic.router->take_detours(true);
  const PathId detour = path_of(setup, traffic, lane);
  lane.detour = detour == lane.path || !traffic.paths[detour].path.is_up ? PathId::none() : detour;
}

/// The variable by which the head of a lane flows from now on.
inline VariableId variable_now(const Setup& setup, Traffic& traffic, const RunClock& clock, Lane& lane) {
  const SharedPath& minimal = traffic.paths[lane.path];
  if (!setup.in.adapts || lane.inside || !minimal.path.is_up) return minimal.variable;
  std::span<const ConstraintHop> detour;
  if (!lane.detour.is_none()) detour = traffic.paths[lane.detour].hops;
  lane.adapted = offer(setup, traffic, minimal.hops, detour);
  if (lane.adapted.share == 0.0) return minimal.variable;
  const std::vector<ConstraintHop> hops = mixed_hops(minimal.hops, detour, lane.adapted.share);
  if (lane.variable.is_none())
    lane.variable = traffic.fluid->add_variable(hops);
  else
    traffic.fluid->set_hops(lane.variable, hops, static_cast<double>(clock.now_ps));
  return lane.variable;
}

/// The head of a lane flows no more.
inline void withdraw(Traffic& traffic, Lane& lane) {
  if (lane.adapted.rate == 0.0) return;
  std::span<const ConstraintHop> detour;
  if (!lane.detour.is_none()) detour = traffic.paths[lane.detour].hops;
  withdraw(traffic, traffic.paths[lane.path].hops, detour, lane.adapted);
}

/// NIC ports of a lane by one column of the ranks' ports.
inline PortPair ports_of_column(const Setup& setup, const Lane& lane, std::size_t column) {
  const PortPair ports{setup.in.job.port(lane.source, column), setup.in.job.port(lane.destination, column)};
  if (!lane.peer_rail) return ports;
  const auto base = [&](PortId port) { return setup.in.fabric.first(setup.in.fabric.owner(port)); };
  return {base(ports.source) + (ports.destination - base(ports.destination)), ports.destination};
}

/// The ports of a lane that worked at the last failover; where there are none, as it is.
inline void take_working_ports(const Setup& setup, const Traffic& traffic, Lane& lane) {
  const PortPair ports = working_ports(
      setup.in.job.columns(), static_cast<std::size_t>(lane.column), {lane.source_port, lane.destination_port},
      [&](PortId port) { return traffic.down_at_failover[port] == 0; },
      [&](std::size_t column) { return ports_of_column(setup, lane, column); });
  lane.source_port = ports.source;
  lane.destination_port = ports.destination;
}

inline LaneId open_lane(const Setup& setup, JobState& job, RankId source, RankId destination, const OpRow& op) {
  const std::uint64_t flow = flow_identity(source.value, destination.value, op.channel);
  const auto [found, is_new] = job.lane_of_flow.try_emplace(flow, job.lanes.next_id());
  const LaneId index = found->second;
  if (is_new) {
    Lane& lane = job.lanes.emplace_back();
    lane.source = source;
    lane.destination = destination;
    lane.channel = op.channel;
    lane.inside = node_of_rank(setup, source) == node_of_rank(setup, destination);
  }
  return index;
}

/// A lane has its ports from its first SEND on.
inline void give_path(const Setup& setup, Traffic& traffic, Lane& lane, const OpRow& op) {
  if (!lane.path.is_none() || !lane.folded.is_none()) return;
  if (!lane.inside) {
    lane.column = static_cast<std::int32_t>(op.nic);
    lane.peer_rail = op.peer_rail != 0;
    const PortPair ports = ports_of_column(setup, lane, static_cast<std::size_t>(lane.column));
    lane.source_port = ports.source;
    lane.destination_port = ports.destination;
    if (!traffic.down_at_failover.empty()) take_working_ports(setup, traffic, lane);
  }
  take_paths(setup, traffic, lane);
}

/// Activities for which nobody waits start again, those that have ended.
template <typename Row>
void start_companions(Traffic& traffic, const RunClock& clock, const Row& row, double amount) {
  for (const ActivityCell i : companions_of(row)) {
    char& busy = traffic.is_companion_busy[i];
    if (busy != 0) continue;
    busy = 1;
    traffic.fluid->start(traffic.variable_of_activity[i], -1 - std::int64_t{i.value}, amount,
                         static_cast<double>(clock.now_ps));
  }
}

/// The number of a message in the fluid.
inline std::int64_t activity_of(MessageId message) {
  return std::int64_t{message.value} << 1 | kOfMessage;
}

/// The head of a lane begins to flow.
inline void begin(const Setup& setup, Traffic& traffic, JobState& job, RunClock& clock, LaneId index) {
  Lane& lane = job.lanes[index];
  Message& message = job.messages[lane.head];
  const std::int64_t activity = activity_of(lane.head);
  const auto now = static_cast<double>(clock.now_ps);
  message.began_at_ps = clock.now_ps;
  lane.waited_ps = 0.0;
  lane.left_share = 1.0;
  if (setup.is_ideal) {
    message.left = 1;
    clock.push(clock.now_ps, Event::kFlowEnds, activity);
    return;
  }
  if (lane.folded.is_none()) {
    message.left = 1;
    const VariableId variable = variable_now(setup, traffic, clock, lane);
    traffic.fluid->start(variable, activity, amount_of(setup, lane, message.size_bytes), now);
    return;
  }
  const Connection& connection = setup.network->connections[lane.folded];
  message.left = connection.activities;
  for (const ActivityCell i : waited_for(connection)) {
    if (setup.in.adapts) adapt(setup, traffic, clock, i);
    traffic.fluid->start(traffic.variable_of_activity[i], activity, amount_of(setup, lane, message.size_bytes), now);
  }
  start_companions(traffic, clock, connection, amount_of(setup, lane, message.size_bytes));
}

inline MessageId new_message(JobState& job) {
  if (job.free_messages.empty()) {
    const MessageId index = job.messages.next_id();
    job.messages.emplace_back();
    return index;
  }
  const MessageId index = job.free_messages.back();
  job.free_messages.pop_back();
  job.messages[index] = {};
  return index;
}

inline void post(const Setup& setup, Traffic& traffic, JobState& job, RunClock& clock, StreamId stream, LaneId index,
                 const OpRow& op, std::int64_t size_bytes) {
  const MessageId number = new_message(job);
  Lane& lane = job.lanes[index];
  Message& message = job.messages[number];
  message.size_bytes = size_bytes;
  message.ordinal = lane.messages++;
  message.posted_at_ps = clock.now_ps;
  message.lane = index;
  message.stream = stream;
  message.label = static_cast<std::int32_t>(op.label);
  message.op = static_cast<std::int32_t>(job.streams[stream].op);
  job.open_work += 1;
  if (!lane.tail.is_none()) job.messages[lane.tail].next = number;
  lane.tail = number;
  const bool was_idle = lane.head.is_none();
  if (was_idle) lane.head = number;
  if (lane.inside && lane.folded.is_none() && !setup.is_ideal)
    post_inside(setup, job, clock, index);
  else if (was_idle)
    begin(setup, traffic, job, clock, index);
}

/// What is left of a lone message's time when its last byte has flowed, and the time of its acknowledgement.
struct Rest {
  Ps delivery_ps, ack_ps;
};

inline Rest rest_of(const Setup& setup, const Traffic& traffic, const Lane& lane, std::int64_t size_bytes) {
  if (setup.is_ideal || (lane.inside && lane.folded.is_none())) return {0, 0};
  if (!lane.folded.is_none()) {
    const Connection& connection = setup.network->connections[lane.folded];
    Ps latency = 0;
    for (const ActivityCell i : waited_for(connection)) latency = std::max(latency, latency_now_ps(setup, traffic, i));
    return {latency, lane.inside ? 0 : latency};
  }
  const MessagePath& path = traffic.paths[lane.adapted.share > 0.0 ? lane.detour : lane.path].path;
  // What the fluid took for it, had it been alone. Both are of the rates of the path as it was found: after a fault one
  // of today and one of then would leave no time for the delays.
  const double flowing = path.flow_ps_per_byte * amount_of(setup, lane, size_bytes);
  const double alone = alone_ps(path, setup.in.wire, size_bytes);
  Rest rest{static_cast<Ps>(std::llround(std::max(0.0, alone - flowing) + lane.waited_ps)),
            static_cast<Ps>(std::llround(path.ack_ps))};
  if (path.loss.data > 0.0) {
    const LossRules& rules = setup.in.losses;
    const auto packets = static_cast<double>(setup.in.wire.packets(size_bytes));
    rest.delivery_ps += static_cast<Ps>(std::llround(lane.left_share * packets * path.loss.wait_ps(rules, packets) +
                                                     path.loss.end_ps(rules, packets, rules.end_waits)));
    rest.ack_ps += static_cast<Ps>(std::llround(rules.end_waits * path.loss.reply * rules.timeout_ps));
  }
  return rest;
}

/// The last byte of a lane's head has flowed: the next message follows at once, this one's last bytes are in flight.
inline void end_flow(State& s, MessageId number) {
  Message& message = s.job.messages[number];
  if (--message.left > 0) return;
  const LaneId index = message.lane;
  Lane& lane = s.job.lanes[index];
  if (s.setup.in.adapts && !lane.folded.is_none())
    for (const ActivityCell i : waited_for(s.setup.network->connections[lane.folded])) let_go(s.setup, s.traffic, i);
  else
    withdraw(s.traffic, lane);
  record_flow(s.setup, s.traffic, s.clock, s.recordings, lane, message);
  s.clock.push(s.clock.now_ps + rest_of(s.setup, s.traffic, lane, message.size_bytes).delivery_ps, Event::kDelivery,
               number);
  lane.head = message.next;
  if (lane.head.is_none())
    lane.tail = MessageId::none();
  else
    begin(s.setup, s.traffic, s.job, s.clock, index);
}

/// Whether nobody asks for a message once it is over.
inline bool lane_is_folded(const JobState& job, const Message& message) {
  return !job.lanes[message.lane].folded.is_none();
}

inline void acknowledge(const Setup& setup, JobState& job, RunClock& clock, Recordings& recordings, MessageId number) {
  Message& message = job.messages[number];
  message.acked_at_ps = clock.now_ps;
  clock.end_ps = std::max(clock.end_ps, clock.now_ps);
  job.open_work -= 1;
  complete_posted(setup, job, clock, recordings, message.stream, {message.label, true, message.began_at_ps});
  if (setup.network != nullptr && lane_is_folded(job, message)) job.free_messages.push_back(number);
}

/// A message has arrived whole.
inline void deliver(State& s, MessageId number) {
  Message& message = s.job.messages[number];
  const LaneId index = message.lane;
  Lane& lane = s.job.lanes[index];
  message.delivered_at_ps = s.clock.now_ps;
  s.clock.end_ps = std::max(s.clock.end_ps, s.clock.now_ps);
  s.job.delivered_bytes += message.size_bytes;
  if (lane.inside && lane.folded.is_none()) record_flow(s.setup, s.traffic, s.clock, s.recordings, lane, message);
  record_message(s.setup, s.job, s.recordings, lane, message);
  const Cause cause{message.label, true, message.began_at_ps};
  const auto ordinal = static_cast<std::size_t>(lane.delivered++);
  if (lane.delivered <= lane.claimed)
    complete_posted(s.setup, s.job, s.clock, s.recordings, lane.claims[ordinal].stream, cause);
  const Ps ack_ps = rest_of(s.setup, s.traffic, lane, message.size_bytes).ack_ps;
  if (ack_ps > 0)
    s.clock.push(s.clock.now_ps + ack_ps, Event::kAck, number);
  else
    acknowledge(s.setup, s.job, s.clock, s.recordings, number);
}

/// The next message of a lane, which may have arrived already, is expected by a stream.
inline void claim(JobState& job, StreamId stream, LaneId index) {
  Lane& lane = job.lanes[index];
  lane.claimed += 1;
  lane.claims.push_back({stream, static_cast<std::int32_t>(job.streams[stream].op)});
  if (lane.claimed > lane.delivered) job.streams[stream].outstanding += 1;
}

/// What the head of a lane has waited on the path that it leaves, with so much left to flow.
inline void count_waits(const Setup& setup, const Traffic& traffic, const JobState& job, Lane& lane, PathId path,
                        double left) {
  const std::int64_t size_bytes = job.messages[lane.head].size_bytes;
  const double share = left / amount_of(setup, lane, size_bytes);
  const auto packets = static_cast<double>(setup.in.wire.packets(size_bytes));
  lane.waited_ps +=
      (lane.left_share - share) * packets * traffic.paths[path].path.loss.wait_ps(setup.in.losses, packets);
  lane.left_share = share;
}

/// All lanes between servers follow the routes, and their columns, that hold now; what is in flight goes on there.
inline void reroute(const Setup& setup, Traffic& traffic, JobState& job, const RunClock& clock, bool chooses_columns) {
  for (Lane& lane : job.lanes) {
    if (lane.inside || lane.path.is_none()) continue;  // the network has its own path of it
    if (chooses_columns) take_working_ports(setup, traffic, lane);
    const PathId before = lane.path, detour_before = lane.detour;
    const bool flows = !lane.head.is_none(), has_detoured = lane.adapted.share > 0.0;
    const bool is_offered = lane.adapted.rate > 0.0;
    withdraw(traffic, lane);
    take_paths(setup, traffic, lane);
    if (!flows || (lane.path == before && lane.detour == detour_before && !is_offered)) continue;
    const auto now = static_cast<double>(clock.now_ps);
    const std::int64_t activity = activity_of(lane.head);
    const double rest =
        traffic.fluid->stop(has_detoured ? lane.variable : traffic.paths[before].variable, activity, now);
    if (!traffic.loss.empty()) count_waits(setup, traffic, job, lane, before, rest);
    const VariableId variable = variable_now(setup, traffic, clock, lane);
    traffic.fluid->start(variable, activity, rest, now);
  }
}

}  // namespace weftwork::flow
