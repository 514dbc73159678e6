/// Lanes: messages of one (source, destination, channel) in flight, and what their ends complete.
/// Source: docs/models/flow-engine.md. Leaves out: windows, credits, retransmissions; packets are a flow.
#pragma once
#include <bit>

#include "base/failover.hpp"
#include "base/flow_identity.hpp"
#include "flow/adaptive.hpp"
#include "flow/fluid.hpp"
#include "flow/server_links.hpp"
#include "flow/state.hpp"

namespace weftwork::flow {

inline constexpr std::int64_t kOfMessage = 0, kOfCall = 1;  // the lowest bit of an activity of the fluid

/// Let a stream go on at `at_ps`; once, however many reasons there are.
inline void wake(State& s, StreamId index, Ps at_ps) {
  StreamState& stream = s.streams[index];
  if (stream.queued) return;
  stream.queued = true;
  s.push(at_ps, Event::kStream, index);
}

/// Something that a stream has posted is complete.
inline void complete_posted(State& s, StreamId index, const Cause& cause) {
  StreamState& stream = s.streams[index];
  stream.outstanding -= 1;
  stream.cause = cause;
  if (stream.wait == StreamWait::kAll) {  // what it waited for was in progress from its begin on
    record_wait(s, stream, s.in.job.ops[OpId(stream.op)].label, cause);
    stream.since_ps = s.now_ps;
  }
  if (stream.wait == StreamWait::kAll && stream.outstanding == 0) wake(s, index, s.now_ps);
}

inline NodeId node_of_rank(const State& s, RankId rank) {
  return s.in.job.rank_host[rank];
}

/// What a message inside a server crosses; time is not told from it.
inline MessagePath server_path(const State& s, const Lane& lane) {
  const bool nvlink = is_nvlink(s, lane);
  MessagePath path;
  path.hops = {{inside_link(s.links, s.in.job, lane.source, nvlink, false), 1.0},
               {inside_link(s.links, s.in.job, lane.destination, nvlink, true), 1.0}};
  return path;
}

/// The host interface behind the NIC port that receives, if it has one.
inline void append_host_interface(const State& s, PortId port, MessagePath& path) {
  const NicRow& nic = s.in.nic_behind(port);
  if (nic.pcie_rate_bps == 0 && nic.pcie_latency_ps == 0 && !s.links.has_host_interface(port)) return;
  Stage stage{0, 0, static_cast<double>(nic.pcie_latency_ps), false};
  if (nic.pcie_rate_bps > 0) {
    stage.packet_ps_per_byte = stage.spread_ps_per_byte = 1.0 / (static_cast<double>(nic.pcie_rate_bps) * kBytesPerPs);
  }
  path.stages.push_back(stage);
  if (!s.links.has_host_interface(port)) return;
  path.hops.push_back({s.links.host_interface(port), s.in.wire.host_factor()});
}

/// The path of packets between the ports of a lane. A message takes as long as over the slowest link of each stage.
inline MessagePath fabric_path(const State& s, const Lane& lane) {
  const FabricView& fabric = s.in.fabric;
  const std::uint64_t flow = flow_identity(lane.source.value, lane.destination.value, lane.channel);
  MessagePath path;
  PathFacts facts;
  s.router->path(lane.source_port, lane.destination_port, s.in.job.own_entropy(flow), queue_pair_number(flow),
                 queue_pair_hash(s.in.job.seed, flow), path.hops, facts);
  path.is_up = facts.reachable;
  std::pair<std::int32_t, std::int32_t> tiers{-1, -1};
  std::vector<double> back_ps;  // by stage: the delay of the other direction
  const bool has_stages = !facts.stage_ends.empty();
  std::size_t end = 0;          // of the last stage begun, where they are told
  for (Hop& hop : path.hops) {  // links side by side are told, or join the same tiers
    const double ps_per_byte = 1.0 / s.links.capacity[hop.link];
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
    hop.weight *= s.in.wire.factor();
  }
  for (std::size_t i = 0; i < path.stages.size(); ++i)
    path.ack_ps +=
        back_ps[i] + static_cast<double>(s.in.wire.ack_bytes + s.in.wire.gap_bytes) * path.stages[i].packet_ps_per_byte;
  if (path.is_up) append_host_interface(s, lane.destination_port, path);
  for (const ConstraintHop& hop : constraint_hops(path.hops))
    path.flow_ps_per_byte =
        std::max(path.flow_ps_per_byte, hop.weight / s.links.capacity[LinkId(hop.constraint.value)]);
  return path;
}

/// The path between the ports of a lane by the routes that hold now; one that is known already is shared.
inline PathId path_of(State& s, const Lane& lane) {
  MessagePath path = lane.inside ? server_path(s, lane) : fabric_path(s, lane);
  std::uint64_t key = path.is_up ? 1 : 0;
  for (const Hop& hop : path.hops)
    key = mix(key, static_cast<std::uint64_t>(hop.link.value), std::bit_cast<std::uint64_t>(hop.weight));
  std::vector<PathId>& known = s.paths_of_key[key];
  const auto same = [](const MessagePath& a, const MessagePath& b) {
    return a.is_up == b.is_up && a.hops.size() == b.hops.size() && a.stages.size() == b.stages.size() &&
           std::equal(a.hops.begin(), a.hops.end(), b.hops.begin(),
                      [](const Hop& x, const Hop& y) { return x.link == y.link && x.weight == y.weight; });
  };
  for (const PathId index : known)
    if (same(s.paths[index].path, path)) return index;
  const PathId index = s.paths.next_id();
  known.push_back(index);
  if (!path.is_up) path.hops = {{s.links.capacity.next_id(), 1.0}};  // the link that is never up
  SharedPath& shared = s.paths.emplace_back();
  shared.path = std::move(path);
  shared.variable = s.fluid->add_variable(constraint_hops(shared.path.hops));
  shared.tier_weight = tier_weight(s, shared.path.hops);
  if (s.in.adapts) shared.hops = constraint_hops(shared.path.hops);
  return index;
}

/// The paths of a lane by the routes that hold now.
inline void take_paths(State& s, Lane& lane) {
  if (!s.in.adapts || lane.inside) {
    lane.path = path_of(s, lane);
    return;
  }
  s.router->take_detours(false);
  lane.path = path_of(s, lane);
  s.router->take_detours(true);
  const PathId detour = path_of(s, lane);
  lane.detour = detour == lane.path || !s.paths[detour].path.is_up ? PathId::none() : detour;
}

/// The variable by which the head of a lane flows from now on.
inline VariableId variable_now(State& s, Lane& lane) {
  const SharedPath& minimal = s.paths[lane.path];
  if (!s.in.adapts || lane.inside || !minimal.path.is_up) return minimal.variable;
  std::span<const ConstraintHop> detour;
  if (!lane.detour.is_none()) detour = s.paths[lane.detour].hops;
  lane.adapted = offer(s, minimal.hops, detour);
  if (lane.adapted.share == 0.0) return minimal.variable;
  const std::vector<ConstraintHop> hops = mixed_hops(minimal.hops, detour, lane.adapted.share);
  if (lane.variable.is_none())
    lane.variable = s.fluid->add_variable(hops);
  else
    s.fluid->set_hops(lane.variable, hops, static_cast<double>(s.now_ps));
  return lane.variable;
}

/// The head of a lane flows no more.
inline void withdraw(State& s, Lane& lane) {
  if (lane.adapted.rate == 0.0) return;
  std::span<const ConstraintHop> detour;
  if (!lane.detour.is_none()) detour = s.paths[lane.detour].hops;
  withdraw(s, s.paths[lane.path].hops, detour, lane.adapted);
}

/// NIC ports of a lane by one column of the ranks' ports.
inline PortPair ports_of_column(const State& s, const Lane& lane, std::size_t column) {
  const PortPair ports{s.in.job.port(lane.source, column), s.in.job.port(lane.destination, column)};
  if (!lane.peer_rail) return ports;
  const auto base = [&](PortId port) { return s.in.fabric.first(s.in.fabric.owner(port)); };
  return {base(ports.source) + (ports.destination - base(ports.destination)), ports.destination};
}

/// The ports of a lane that worked at the last failover; where there are none, as it is.
inline void take_working_ports(const State& s, Lane& lane) {
  const PortPair ports = working_ports(
      s.in.job.columns(), static_cast<std::size_t>(lane.column), {lane.source_port, lane.destination_port},
      [&](PortId port) { return s.down_at_failover[port] == 0; },
      [&](std::size_t column) { return ports_of_column(s, lane, column); });
  lane.source_port = ports.source;
  lane.destination_port = ports.destination;
}

inline LaneId open_lane(State& s, RankId source, RankId destination, const OpRow& op) {
  const std::uint64_t flow = flow_identity(source.value, destination.value, op.channel);
  const auto [found, is_new] = s.lane_of_flow.try_emplace(flow, s.lanes.next_id());
  const LaneId index = found->second;
  if (is_new) {
    Lane& lane = s.lanes.emplace_back();
    lane.source = source;
    lane.destination = destination;
    lane.channel = op.channel;
    lane.inside = node_of_rank(s, source) == node_of_rank(s, destination);
  }
  return index;
}

/// A lane has its ports from its first SEND on.
inline void give_path(State& s, Lane& lane, const OpRow& op) {
  if (!lane.path.is_none() || !lane.folded.is_none()) return;
  if (!lane.inside) {
    lane.column = static_cast<std::int32_t>(op.nic);
    lane.peer_rail = op.peer_rail != 0;
    const PortPair ports = ports_of_column(s, lane, static_cast<std::size_t>(lane.column));
    lane.source_port = ports.source;
    lane.destination_port = ports.destination;
    if (!s.down_at_failover.empty()) take_working_ports(s, lane);
  }
  take_paths(s, lane);
}

/// Activities for which nobody waits start again, those that have ended.
template <typename Row>
void start_companions(State& s, const Row& row, double amount) {
  for (const ActivityCell i : companions_of(row)) {
    char& busy = s.is_companion_busy[i];
    if (busy != 0) continue;
    busy = 1;
    s.fluid->start(s.variable_of_activity[i], -1 - std::int64_t{i.value}, amount, static_cast<double>(s.now_ps));
  }
}

/// The number of a message in the fluid.
inline std::int64_t activity_of(MessageId message) {
  return std::int64_t{message.value} << 1 | kOfMessage;
}

/// The head of a lane begins to flow.
inline void begin(State& s, LaneId index) {
  Lane& lane = s.lanes[index];
  Message& message = s.messages[lane.head];
  const std::int64_t activity = activity_of(lane.head);
  const auto now = static_cast<double>(s.now_ps);
  message.began_at_ps = s.now_ps;
  if (s.is_ideal) {
    message.left = 1;
    s.push(s.now_ps, Event::kFlowEnds, activity);
    return;
  }
  if (lane.folded.is_none()) {
    message.left = 1;
    const VariableId variable = variable_now(s, lane);
    s.fluid->start(variable, activity, amount_of(s, lane, message.size_bytes), now);
    return;
  }
  const Connection& connection = s.network->connections[lane.folded];
  message.left = connection.activities;
  for (const ActivityCell i : waited_for(connection)) {
    if (s.in.adapts) adapt(s, i);
    s.fluid->start(s.variable_of_activity[i], activity, amount_of(s, lane, message.size_bytes), now);
  }
  start_companions(s, connection, amount_of(s, lane, message.size_bytes));
}

inline MessageId new_message(State& s) {
  if (s.free_messages.empty()) {
    const MessageId index = s.messages.next_id();
    s.messages.emplace_back();
    return index;
  }
  const MessageId index = s.free_messages.back();
  s.free_messages.pop_back();
  s.messages[index] = {};
  return index;
}

inline void post(State& s, StreamId stream, LaneId index, const OpRow& op, std::int64_t size_bytes) {
  const MessageId number = new_message(s);
  Lane& lane = s.lanes[index];
  Message& message = s.messages[number];
  message.size_bytes = size_bytes;
  message.ordinal = lane.messages++;
  message.posted_at_ps = s.now_ps;
  message.lane = index;
  message.stream = stream;
  message.label = static_cast<std::int32_t>(op.label);
  message.op = static_cast<std::int32_t>(s.streams[stream].op);
  s.open_work += 1;
  if (!lane.tail.is_none()) s.messages[lane.tail].next = number;
  lane.tail = number;
  const bool was_idle = lane.head.is_none();
  if (was_idle) lane.head = number;
  if (lane.inside && lane.folded.is_none() && !s.is_ideal)
    post_inside(s, index);
  else if (was_idle)
    begin(s, index);
}

/// What is left of a lone message's time when its last byte has flowed, and the time of its acknowledgement.
struct Rest {
  Ps delivery_ps, ack_ps;
};

inline Rest rest_of(State& s, const Lane& lane, std::int64_t size_bytes) {
  if (s.is_ideal || (lane.inside && lane.folded.is_none())) return {0, 0};
  if (!lane.folded.is_none()) {
    const Connection& connection = s.network->connections[lane.folded];
    Ps latency = 0;
    for (const ActivityCell i : waited_for(connection)) latency = std::max(latency, s.latency_ps(i));
    return {latency, lane.inside ? 0 : latency};
  }
  const MessagePath& path = s.paths[lane.adapted.share > 0.0 ? lane.detour : lane.path].path;
  // What the fluid took for it, had it been alone. Both are of the rates of the path as it was found: after a fault one
  // of today and one of then would leave no time for the delays.
  const double flowing = path.flow_ps_per_byte * amount_of(s, lane, size_bytes);
  const double alone = alone_ps(path, s.in.wire, size_bytes);
  return {static_cast<Ps>(std::llround(std::max(0.0, alone - flowing))), static_cast<Ps>(std::llround(path.ack_ps))};
}

/// The last byte of a lane's head has flowed: the next message follows at once, this one's last bytes are in flight.
inline void end_flow(State& s, MessageId number) {
  Message& message = s.messages[number];
  if (--message.left > 0) return;
  const LaneId index = message.lane;
  Lane& lane = s.lanes[index];
  if (s.in.adapts && !lane.folded.is_none())
    for (const ActivityCell i : waited_for(s.network->connections[lane.folded])) let_go(s, i);
  else
    withdraw(s, lane);
  record_flow(s, lane, message);
  s.push(s.now_ps + rest_of(s, lane, message.size_bytes).delivery_ps, Event::kDelivery, number);
  lane.head = message.next;
  if (lane.head.is_none())
    lane.tail = MessageId::none();
  else
    begin(s, index);
}

/// Whether nobody asks for a message once it is over.
inline bool lane_is_folded(const State& s, const Message& message) {
  return !s.lanes[message.lane].folded.is_none();
}

inline void acknowledge(State& s, MessageId number) {
  Message& message = s.messages[number];
  message.acked_at_ps = s.now_ps;
  s.end_ps = std::max(s.end_ps, s.now_ps);
  s.open_work -= 1;
  complete_posted(s, message.stream, {message.label, true, message.began_at_ps});
  if (s.network != nullptr && lane_is_folded(s, message)) s.free_messages.push_back(number);
}

/// A message has arrived whole.
inline void deliver(State& s, MessageId number) {
  Message& message = s.messages[number];
  const LaneId index = message.lane;
  Lane& lane = s.lanes[index];
  message.delivered_at_ps = s.now_ps;
  s.end_ps = std::max(s.end_ps, s.now_ps);
  s.delivered_bytes += message.size_bytes;
  if (lane.inside && lane.folded.is_none()) record_flow(s, lane, message);
  record_message(s, lane, message);
  const Cause cause{message.label, true, message.began_at_ps};
  const auto ordinal = static_cast<std::size_t>(lane.delivered++);
  if (lane.delivered <= lane.claimed) complete_posted(s, lane.claims[ordinal].stream, cause);
  const Ps ack_ps = rest_of(s, lane, message.size_bytes).ack_ps;
  if (ack_ps > 0)
    s.push(s.now_ps + ack_ps, Event::kAck, number);
  else
    acknowledge(s, number);
}

/// The next message of a lane, which may have arrived already, is expected by a stream.
inline void claim(State& s, StreamId stream, LaneId index) {
  Lane& lane = s.lanes[index];
  lane.claimed += 1;
  lane.claims.push_back({stream, static_cast<std::int32_t>(s.streams[stream].op)});
  if (lane.claimed > lane.delivered) s.streams[stream].outstanding += 1;
}

/// All lanes between servers follow the routes, and their columns, that hold now; what is in flight goes on there.
inline void reroute(State& s, bool chooses_columns) {
  for (Lane& lane : s.lanes) {
    if (lane.inside || lane.path.is_none()) continue;  // the network has its own path of it
    if (chooses_columns) take_working_ports(s, lane);
    const PathId before = lane.path, detour_before = lane.detour;
    const bool flows = !lane.head.is_none(), has_detoured = lane.adapted.share > 0.0;
    const bool is_offered = lane.adapted.rate > 0.0;
    withdraw(s, lane);
    take_paths(s, lane);
    if (!flows || (lane.path == before && lane.detour == detour_before && !is_offered)) continue;
    const auto now = static_cast<double>(s.now_ps);
    const std::int64_t activity = activity_of(lane.head);
    const double rest = s.fluid->stop(has_detoured ? lane.variable : s.paths[before].variable, activity, now);
    const VariableId variable = variable_now(s, lane);
    s.fluid->start(variable, activity, rest, now);
  }
}

}  // namespace weftwork::flow
