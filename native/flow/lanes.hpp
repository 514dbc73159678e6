/// Lanes: messages of one (source, destination, channel) on their way, and what their ends complete.
/// Source: docs/models/flow-engine.md. Leaves out: windows, credits, retransmissions; packets are a flow.
#pragma once
#include <bit>

#include "base/flow_identity.hpp"
#include "flow/inside.hpp"
#include "flow/state.hpp"

namespace weftwork::flow {

inline constexpr std::int64_t kOfMessage = 0, kOfCall = 1;  // the lowest bit of an activity of the fluid

/// Let a stream go on at `at_ps`; once, however many reasons there are.
inline void wake(State& s, std::int32_t index, Ps at_ps) {
  Stream& stream = s.streams[static_cast<std::size_t>(index)];
  if (stream.queued) return;
  stream.queued = true;
  s.push(at_ps, Event::kStream, index);
}

/// Something that a stream has posted is complete.
inline void complete_posted(State& s, std::int32_t index, const Cause& cause) {
  Stream& stream = s.streams[static_cast<std::size_t>(index)];
  stream.outstanding -= 1;
  stream.cause = cause;
  if (stream.wait == StreamWait::kAll) {  // what it waited for was under way from its begin on
    record_wait(s, stream, s.in.job.ops[static_cast<std::size_t>(stream.op)].label, cause);
    stream.since_ps = s.now_ps;
  }
  if (stream.wait == StreamWait::kAll && stream.outstanding == 0) wake(s, index, s.now_ps);
}

inline std::int32_t node_of_rank(const State& s, std::int64_t rank) {
  return s.in.job.rank_host[static_cast<std::size_t>(rank)];
}

/// What a message inside a server crosses; time is not told from it.
inline Way inside_way(const State& s, const Lane& lane) {
  const bool nvlink = is_nvlink(s, lane);
  Way way;
  way.hops = {{inside_link(s.links, s.in.job, lane.source, nvlink, false), 1.0},
              {inside_link(s.links, s.in.job, lane.destination, nvlink, true), 1.0}};
  return way;
}

/// The host interface behind the NIC port that receives, if it has one.
inline void append_host_interface(const State& s, std::int32_t port, Way& way) {
  const NicRow& nic = s.in.nic_behind(port);
  if (nic.pcie_rate_bps == 0 && nic.pcie_latency_ps == 0 && !s.links.has_host_interface(port)) return;
  Stage stage{0, 0, static_cast<double>(nic.pcie_latency_ps), false};
  if (nic.pcie_rate_bps > 0) {
    stage.packet_ps_per_byte = stage.spread_ps_per_byte = 1.0 / (static_cast<double>(nic.pcie_rate_bps) * kBytesPerPs);
  }
  way.stages.push_back(stage);
  if (!s.links.has_host_interface(port)) return;
  way.hops.push_back({s.links.host_interface(port), s.in.wire.host_factor()});
}

/// The way of packets between the ports of a lane. A message takes as long as over the slowest link of each stage.
inline Way fabric_way(const State& s, const Lane& lane) {
  const FabricView& fabric = s.in.fabric;
  const std::uint64_t flow = flow_identity(lane.source, lane.destination, lane.channel);
  Way way;
  Path path;
  s.router->path(lane.source_port, lane.destination_port, flow_entropy(s.in.job.seed, flow), queue_pair_number(flow),
                 way.hops, path);
  way.is_up = path.reachable;
  std::pair<std::int32_t, std::int32_t> tiers{-1, -1};
  std::vector<double> back_ps;  // by stage: the delay of the other direction
  for (Hop& hop : way.hops) {   // links side by side join the same tiers
    const double ps_per_byte = 1.0 / s.links.capacity[static_cast<std::size_t>(hop.link)];
    const auto delay_ps = [&](std::int32_t port) {
      return static_cast<double>(fabric.port_delay_ps[static_cast<std::size_t>(port)]);
    };
    const std::pair between{fabric.tier(fabric.owner(hop.link)), fabric.tier(fabric.next(hop.link))};
    if (between != tiers || hop.weight == 1.0) {
      way.stages.push_back({0, 0, 0, true});
      back_ps.push_back(0);
    }
    Stage& stage = way.stages.back();
    stage.spread_ps_per_byte = std::max(stage.spread_ps_per_byte, hop.weight * ps_per_byte);
    stage.packet_ps_per_byte = std::max(stage.packet_ps_per_byte, ps_per_byte);
    stage.delay_ps = std::max(stage.delay_ps, delay_ps(hop.link));
    back_ps.back() = std::max(back_ps.back(), delay_ps(fabric.peer(hop.link)));
    tiers = between;
    hop.weight *= s.in.wire.factor();
  }
  for (std::size_t i = 0; i < way.stages.size(); ++i)
    way.ack_ps +=
        back_ps[i] + static_cast<double>(s.in.wire.ack_bytes + s.in.wire.gap_bytes) * way.stages[i].packet_ps_per_byte;
  if (way.is_up) append_host_interface(s, lane.destination_port, way);
  for (const Hop& hop : way.hops)
    way.flow_ps_per_byte =
        std::max(way.flow_ps_per_byte, hop.weight / s.links.capacity[static_cast<std::size_t>(hop.link)]);
  return way;
}

/// The way between the ports of a lane by the routes that hold now; one that is known already is shared.
inline std::int32_t way_of(State& s, const Lane& lane) {
  Way way = lane.inside ? inside_way(s, lane) : fabric_way(s, lane);
  std::uint64_t key = way.is_up ? 1 : 0;
  for (const Hop& hop : way.hops)
    key = mix(key, static_cast<std::uint64_t>(hop.link), std::bit_cast<std::uint64_t>(hop.weight));
  std::vector<std::int32_t>& known = s.ways_of_key[key];
  const auto same = [](const Way& a, const Way& b) {
    return a.is_up == b.is_up && a.hops.size() == b.hops.size() &&
           std::equal(a.hops.begin(), a.hops.end(), b.hops.begin(),
                      [](const Hop& x, const Hop& y) { return x.link == y.link && x.weight == y.weight; });
  };
  for (const std::int32_t index : known)
    if (same(s.ways[static_cast<std::size_t>(index)].way, way)) return index;
  const auto index = static_cast<std::int32_t>(s.ways.size());
  known.push_back(index);
  if (!way.is_up) way.hops = {{s.links.count(), 1.0}};  // the link that is never up
  SharedWay& shared = s.ways.emplace_back();
  shared.way = std::move(way);
  shared.variable = s.fluid->add_variable(constraint_hops(shared.way.hops));
  shared.tier_weight = tier_weight(s, shared.way.hops);
  return index;
}

/// NIC ports of a lane by one column of the ranks' ports.
inline void take_ports(const State& s, Lane& lane, std::size_t column) {
  lane.destination_port = s.in.job.port(lane.destination, column);
  lane.source_port = s.in.job.port(lane.source, column);
  if (!lane.peer_rail) return;
  const auto base = [&](std::int32_t port) { return s.in.fabric.first(s.in.fabric.owner(port)); };
  lane.source_port = (base(lane.source_port) + lane.destination_port - base(lane.destination_port));
}

/// The ports of the first column, cyclic from its own, whose two ports were up at the last failover; else as it is.
inline void take_working_ports(const State& s, Lane& lane) {
  const Lane before = lane;
  for (std::size_t step = 0; step < s.in.job.columns(); ++step) {
    take_ports(s, lane, (static_cast<std::size_t>(lane.column) + step) % s.in.job.columns());
    if (!s.down_at_failover[static_cast<std::size_t>(lane.source_port)] &&
        !s.down_at_failover[static_cast<std::size_t>(lane.destination_port)])
      return;
  }
  lane = before;
}

inline std::int32_t open_lane(State& s, std::int64_t source, std::int64_t destination, const OpRow& op) {
  const std::uint64_t flow = flow_identity(source, destination, op.channel);
  const auto [found, is_new] = s.lane_of_flow.try_emplace(flow, static_cast<std::int32_t>(s.lanes.size()));
  const std::int32_t index = found->second;
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
inline void give_way(State& s, Lane& lane, const OpRow& op) {
  if (lane.way >= 0 || lane.folded >= 0) return;
  if (!lane.inside) {
    lane.column = static_cast<std::int32_t>(op.nic);
    lane.peer_rail = op.peer_rail != 0;
    take_ports(s, lane, static_cast<std::size_t>(lane.column));
    if (!s.down_at_failover.empty()) take_working_ports(s, lane);
  }
  lane.way = way_of(s, lane);
}

inline FoldOptions fold_options(const State& s, Folding folding) {
  FoldOptions options;
  options.folding = folding;
  options.wire = {s.in.wire.factor(), s.in.wire.host_factor()};
  return options;
}

/// Activities for which nobody waits start again, those that have ended.
inline void start_companions(State& s, std::int32_t first, std::int32_t count, double amount) {
  for (std::int32_t i = first; i < first + count; ++i) {
    char& busy = s.is_companion_busy[static_cast<std::size_t>(i)];
    if (busy != 0) continue;
    busy = 1;
    s.fluid->start(s.variable_of_activity[static_cast<std::size_t>(i)], -1 - std::int64_t{i}, amount,
                   static_cast<double>(s.now_ps));
  }
}

/// The head of a lane begins to flow.
inline void begin(State& s, std::int32_t index) {
  Lane const& lane = s.lanes[static_cast<std::size_t>(index)];
  Message& message = s.messages[static_cast<std::size_t>(lane.head)];
  const std::int64_t activity = std::int64_t{lane.head} << 1 | kOfMessage;
  const auto now = static_cast<double>(s.now_ps);
  message.began_at_ps = s.now_ps;
  if (s.is_ideal) {
    message.left = 1;
    s.push(s.now_ps, Event::kFlowEnds, activity);
    return;
  }
  if (lane.folded < 0) {
    message.left = 1;
    s.fluid->start(s.ways[static_cast<std::size_t>(lane.way)].variable, activity,
                   amount_of(s, lane, message.size_bytes), now);
    return;
  }
  const Connection& connection = s.network->connections[static_cast<std::size_t>(lane.folded)];
  message.left = connection.activities;
  for (std::int32_t i = 0; i < connection.activities; ++i)
    s.fluid->start(
        s.variable_of_activity[static_cast<std::size_t>(connection.first_activity) + static_cast<std::size_t>(i)],
        activity, amount_of(s, lane, message.size_bytes), now);
  start_companions(s, connection.first_activity + connection.activities, connection.companions,
                   amount_of(s, lane, message.size_bytes));
}

inline std::int32_t new_message(State& s) {
  if (s.free_messages.empty()) {
    s.messages.emplace_back();
    return static_cast<std::int32_t>(s.messages.size()) - 1;
  }
  const std::int32_t index = s.free_messages.back();
  s.free_messages.pop_back();
  s.messages[static_cast<std::size_t>(index)] = {};
  return index;
}

inline void post(State& s, std::int32_t stream, std::int32_t index, const OpRow& op, std::int64_t size_bytes) {
  const std::int32_t number = new_message(s);
  Lane& lane = s.lanes[static_cast<std::size_t>(index)];
  Message& message = s.messages[static_cast<std::size_t>(number)];
  message.size_bytes = size_bytes;
  message.ordinal = lane.messages++;
  message.posted_at_ps = s.now_ps;
  message.connection = index;
  message.stream = stream;
  message.label = static_cast<std::int32_t>(op.label);
  s.open_work += 1;
  if (lane.tail >= 0) s.messages[static_cast<std::size_t>(lane.tail)].next = number;
  lane.tail = number;
  const bool was_idle = lane.head < 0;
  if (was_idle) lane.head = number;
  if (lane.inside && lane.folded < 0 && !s.is_ideal)
    post_inside(s, index);
  else if (was_idle)
    begin(s, index);
}

/// What is left of a lone message's time when its last byte has flowed, and the time of its acknowledgement.
struct Rest {
  Ps delivery_ps, ack_ps;
};

inline Rest rest_of(State& s, const Lane& lane, std::int64_t size_bytes) {
  if (s.is_ideal || (lane.inside && lane.folded < 0)) return {0, 0};
  if (lane.folded >= 0) {
    const Connection& connection = s.network->connections[static_cast<std::size_t>(lane.folded)];
    Ps latency = 0;
    for (std::int32_t i = 0; i < connection.activities; ++i)
      latency = std::max(
          latency,
          s.network->latency_ps[static_cast<std::size_t>(connection.first_activity) + static_cast<std::size_t>(i)]);
    return {latency, lane.inside ? 0 : latency};
  }
  const Way& way = s.ways[static_cast<std::size_t>(lane.way)].way;
  // What the fluid took for it, had it been alone. Both are of the rates of the way as it was found: after a fault one
  // of today and one of then would leave no time for the delays.
  const double flowing = way.flow_ps_per_byte * amount_of(s, lane, size_bytes);
  const double alone = alone_ps(way, s.in.wire, size_bytes);
  return {static_cast<Ps>(std::llround(std::max(0.0, alone - flowing))), static_cast<Ps>(std::llround(way.ack_ps))};
}

/// The last byte of a lane's head has flowed: the next message follows at once, this one is on its last way.
inline void end_flow(State& s, std::int32_t number) {
  Message& message = s.messages[static_cast<std::size_t>(number)];
  if (--message.left > 0) return;
  const std::int32_t index = message.connection;
  Lane& lane = s.lanes[static_cast<std::size_t>(index)];
  record_flow(s, lane, message);
  s.push(s.now_ps + rest_of(s, lane, message.size_bytes).delivery_ps, Event::kDelivery, number);
  lane.head = message.next;
  if (lane.head < 0)
    lane.tail = -1;
  else
    begin(s, index);
}

/// Whether nobody asks for a message once it is over.
inline bool lane_is_folded(const State& s, const Message& message) {
  return s.lanes[static_cast<std::size_t>(message.connection)].folded >= 0;
}

inline void acknowledge(State& s, std::int32_t number) {
  Message& message = s.messages[static_cast<std::size_t>(number)];
  message.acked_at_ps = s.now_ps;
  s.end_ps = std::max(s.end_ps, s.now_ps);
  s.open_work -= 1;
  complete_posted(s, message.stream, {message.label, true, message.began_at_ps});
  if (s.network != nullptr && lane_is_folded(s, message)) s.free_messages.push_back(number);
}

/// A message has arrived whole.
inline void deliver(State& s, std::int32_t number) {
  Message& message = s.messages[static_cast<std::size_t>(number)];
  const std::int32_t index = message.connection;
  Lane& lane = s.lanes[static_cast<std::size_t>(index)];
  message.delivered_at_ps = s.now_ps;
  s.end_ps = std::max(s.end_ps, s.now_ps);
  s.delivered_bytes += message.size_bytes;
  if (lane.inside && lane.folded < 0) record_flow(s, lane, message);
  record_message(s, lane, message);
  const Cause cause{message.label, true, message.began_at_ps};
  const auto ordinal = static_cast<std::size_t>(lane.delivered++);
  if (lane.delivered <= lane.claimed) complete_posted(s, lane.claims[ordinal], cause);
  const Ps ack_ps = rest_of(s, lane, message.size_bytes).ack_ps;
  if (ack_ps > 0)
    s.push(s.now_ps + ack_ps, Event::kAck, number);
  else
    acknowledge(s, number);
}

/// The next message of a lane, which may have arrived already, is expected by a stream.
inline void claim(State& s, std::int32_t stream, std::int32_t index) {
  Lane& lane = s.lanes[static_cast<std::size_t>(index)];
  lane.claimed += 1;
  lane.claims.push_back(stream);
  if (lane.claimed > lane.delivered) s.streams[static_cast<std::size_t>(stream)].outstanding += 1;
}

/// All lanes between servers follow the routes, and their columns, that hold now; what is under way goes on there.
inline void reroute(State& s, bool chooses_columns) {
  for (std::size_t i = 0; i < s.lanes.size(); ++i) {
    Lane& lane = s.lanes[i];
    if (lane.inside || lane.way < 0) continue;  // the network has its own way of it
    if (chooses_columns) take_working_ports(s, lane);
    const std::int32_t before = lane.way;
    const std::int32_t after = way_of(s, lane);
    lane.way = after;
    if (after == before || lane.head < 0) continue;
    const auto now = static_cast<double>(s.now_ps);
    const std::int64_t activity = std::int64_t{lane.head} << 1 | kOfMessage;
    const double rest = s.fluid->stop(s.ways[static_cast<std::size_t>(before)].variable, activity, now);
    s.fluid->start(s.ways[static_cast<std::size_t>(after)].variable, activity, rest, now);
  }
}

}  // namespace weftwork::flow
