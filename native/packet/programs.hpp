/// Operations of programs in the packet engine: queue pairs open, messages are posted and claimed.
#pragma once
#include "base/programs.hpp"
#include "packet/receiver.hpp"
#include "packet/routes.hpp"
#include "packet/server.hpp"

namespace weftwork {

/// Path of first candidates between two NIC ports, added up with `add(port, forward_of_path)`; false if there is none.
template <typename Add>
bool follow_first_path(const State& s, PortId source, PortId destination, Add&& add) {
  const Routes routes(s.in.routes[RouteTableId(0)], s.in.node_kind.size());
  const AttachmentId attachment = s.in.attachment[destination];
  PortId port = source;
  for (std::size_t steps = 0; steps <= s.in.node_kind.size(); ++steps) {
    add(port);
    const PortId peer = s.peer_of(port);
    if (peer == destination) return true;
    const NodeId node = s.in.port_node[peer];
    if (s.in.node_kind[node] == 0) return false;
    const GroupId group = routes.group(node, attachment);
    if (group == Routes::kUnreachable) return false;
    port = group == Routes::kAttached ? s.peer_of(destination) : routes.port(routes.first(group));
  }
  return false;
}

inline Ps base_rtt_ps(const State& s, PortId source, PortId destination) {
  const TransportRow& transport = s.in.transport;
  Ps total = 0;
  std::int64_t bytes = transport.mtu_bytes + transport.data_overhead_bytes + transport.telemetry_bytes;
  std::int64_t hop_bytes = 0;  // that all switches so far have added
  const auto pass = [&](std::int64_t added_bytes) {
    return [&, added_bytes](PortId port) {
      total += s.ports[port].delay_ps +
               serialisation_ps(bytes + hop_bytes + transport.interframe_bytes, s.in.port_rate_bps[port]);
      hop_bytes += added_bytes;
    };
  };
  if (!follow_first_path(s, source, destination, pass(transport.telemetry_hop_bytes))) return 0;
  hop_bytes -= transport.telemetry_hop_bytes;  // the last link leads to no switch
  bytes = transport.ack_bytes + transport.echo_bytes + transport.telemetry_bytes;
  return follow_first_path(s, destination, source, pass(0)) ? total : 0;
}

/// The ports that a queue pair has by one column of `PacketInput.rank_ports`.
inline PortPair ports_of_column(const State& s, const QueuePair& qp, ColumnId column) {
  const PortId destination = s.in.rank_port(qp.destination_rank, column);
  if (!qp.peer_rail) return {s.in.rank_port(qp.source_rank, column), destination};
  const NodeId host = s.host_of(qp.source_rank);
  const PortId source = s.first_port(host) + s.local_port(destination);
  if (source >= s.end_port(host))
    throw LimitError("a server has no NIC port of the number that its peer's has; take rail: own, or equal servers");
  return {source, destination};
}

/// The ports of a queue pair that were up at the last failover; `otherwise` where an end has none.
inline PortPair working_ports(const State& s, const QueuePair& qp, PortPair otherwise) {
  return weftwork::working_ports(
      s.in.columns(), qp.column.index(), otherwise, [&](PortId port) { return !s.down_at_failover[port]; },
      [&](std::size_t column) { return ports_of_column(s, qp, ColumnId(column)); });
}

inline QueuePairId open_queue_pair(State& s, std::uint64_t flow, RankId source, RankId destination, const OpRow& op) {
  const QueuePairId id = s.queue_pairs.next_id();
  s.queue_pair_of_flow.emplace(flow, id);
  QueuePair& qp = s.queue_pairs.emplace();
  qp.flow = flow;
  qp.source_rank = source;
  qp.destination_rank = destination;
  qp.channel = static_cast<std::int32_t>(op.channel);
  qp.column = ColumnId(op.nic);
  qp.peer_rail = op.peer_rail != 0;
  PortPair ports = ports_of_column(s, qp, qp.column);
  if (!s.down_at_failover.empty()) ports = working_ports(s, qp, ports);
  qp.source_port = ports.source;
  qp.destination_port = ports.destination;
  qp.own_entropy = s.pins.own_entropy(s.in.seed, flow);
  qp.reverse_hash = carried_hash(s, qp, false, qp.own_entropy);
  Sender& sender = qp.sender;
  sender.entropy = qp.own_entropy;
  sender.hash = carried_hash(s, qp, true, qp.own_entropy);
  sender.credit_limit = s.in.transport.end_to_end_credits;
  sender.base_rtt_ps = base_rtt_ps(s, qp.source_port, qp.destination_port);
  sender.slot = add_slot(s, qp.source_port, id);
  qp.congestion = new_record(s, s.in.congestion.state);
  SenderState& state = sender_state(qp);
  state.rate_bps = static_cast<double>(s.rate_bps[qp.source_port]);
  state.window_bytes = kNoWindowBytes;
  if (s.in.path.step != nullptr) {
    qp.path = new_record(s, s.in.path.state);
    path_state(qp).entropy = qp.own_entropy;
  }
  stop_timers(qp);
  return id;
}

inline void post(State& s, StreamId stream, RankId destination, const OpRow& op, std::int64_t size_bytes, Ps now_ps) {
  const RankId source = s.streams[stream].rank;
  const std::uint64_t flow = flow_identity(source.value, destination.value, op.channel);
  const auto found = s.queue_pair_of_flow.find(flow);
  const QueuePairId id =
      found != s.queue_pair_of_flow.end() ? found->second : open_queue_pair(s, flow, source, destination, op);
  QueuePair& qp = s.queue_pairs[id];
  Sender& sender = qp.sender;
  const MessageId number = s.messages.next_id();
  Message& message = s.messages.emplace();
  const bool idle = sender.una == sender.end;
  const std::int64_t packets =
      std::max<std::int64_t>(1, (size_bytes + s.in.transport.mtu_bytes - 1) / s.in.transport.mtu_bytes);
  s.open_work += 1;
  message.size_bytes = size_bytes;
  message.posted_at_ps = now_ps;
  message.first = sender.end;
  message.end = sender.end + packets;
  message.queue_pair = id;
  message.stream = stream;
  message.op = static_cast<std::int32_t>(s.streams[stream].op);
  message.ordinal = qp.messages++;
  message.klass = TrafficClass(op.data_class);
  if (message.end > std::int64_t{UINT32_MAX})
    throw LimitError("a queue pair carries more than 2^32 packets; split the traffic over channels");
  sender.end = message.end;
  sender.end_bytes += size_bytes;
  if (!sender.last_message.is_none()) s.messages[sender.last_message].next = number;
  sender.last_message = number;
  if (sender.una_message.is_none()) sender.una_message = number;
  if (sender.nxt_message.is_none()) sender.nxt_message = number;
  if (qp.receiver.message.is_none()) qp.receiver.message = number;
  const Kind kind = sender.started ? Kind::kResume : Kind::kStart;
  if (!sender.failed && (!sender.started || idle)) {
    tell(s, qp, {.kind = kind}, now_ps);
    sender.started = true;
  }
  guard_credits(s, qp, now_ps);
  reconsider(s, qp);
  kick_nic(s, qp.source_port, now_ps);
}

inline void claim(State& s, StreamId id, RankId peer, const OpRow& op, Ps now_ps) {
  StreamState& stream = s.streams[id];
  const std::uint64_t flow = flow_identity(peer.value, stream.rank.value, op.channel);
  Mailbox& box = s.mailboxes[flow];
  const std::int64_t number = box.claimed++;
  box.waiting.push_back({id, static_cast<std::int32_t>(stream.op)});
  if (!has_delivered(s, box, number)) {
    stream.outstanding += 1;
    return;
  }
  box.completed += 1;
  if (s.in.transport.end_to_end_credits == 0 || box.queue_pair.is_none()) return;
  QueuePair& qp = s.queue_pairs[box.queue_pair];
  if (qp.receiver.last_credit_code == 0) send_reply(s, qp, box.queue_pair, PacketKind::kAck, nullptr, 0, now_ps);
}

inline void raise_token(State& s, RankId rank, std::int64_t token, Ps now_ps) {
  s.token(rank, token) += 1;
  const StreamId first = s.first_stream[rank];
  const std::span<const StreamState> streams(s.streams.items());
  offer_token(streams.first(s.first_stream[rank + 1].index()).subspan(first.index()), token,
              [&](std::int32_t place) { wake(s, first + place, now_ps); });
}

/// What operations do in the packet engine (`run_program`).
struct PacketProgram {
  State& s;
  StreamId id;
  Ps at_ps;
  StreamState& stream = s.streams[id];

  StreamProgress& progress() { return stream; }
  [[nodiscard]] std::span<const OpRow> ops() const { return s.in.ops; }
  [[nodiscard]] Ps now_ps() const { return at_ps; }
  [[nodiscard]] Ps compute_ps(const OpRow& op) const { return op.value; }
  std::int64_t& token(const OpRow& op) { return s.token(stream.rank, op.value); }
  void resume_at(Ps then_ps) { wake(s, id, then_ps); }
  void begin(StreamWait /*waited*/) {}
  void end_time(const OpRow& /*op*/) {}
  void take_token(const OpRow& /*op*/, StreamWait /*waited*/) {}
  void send(const OpRow& op, std::int64_t turn) {
    const RankId peer(peer_rank(s.in.job_tables(), op, stream.rank.value, turn));
    if (peer.is_none()) return;
    stream.outstanding += 1;
    const std::int64_t size_bytes = message_size(s.in.job_tables(), op, stream.rank.value, turn);
    if (s.host_of(peer) == s.host_of(stream.rank))
      post_inside(s, id, peer, op.channel, size_bytes, at_ps);
    else
      post(s, id, peer, op, size_bytes, at_ps);
  }
  void receive(const OpRow& op, std::int64_t turn) {
    const RankId peer(peer_rank(s.in.job_tables(), op, stream.rank.value, turn));
    if (!peer.is_none()) claim(s, id, peer, op, at_ps);
  }
  void collect(const OpRow& /*op*/) {}  // refused before the run
  void raise(const OpRow& op) {
    if (op.after_ps > 0)
      agenda_of_rank(s, stream.rank)
          .push(at_ps + op.after_ps, rank_key(AgendaKind::kNotify, stream.rank, static_cast<std::uint64_t>(op.value)));
    else
      raise_token(s, stream.rank, op.value, at_ps);
  }
  void milestone(const OpRow& op) { s.milestones.push_back({stream.rank.value, op.value, at_ps}); }
  void end() { s.open_work -= 1; }
};

/// Run a stream until it blocks or ends.
inline void run_stream(State& s, StreamId id, Ps now_ps) {
  PacketProgram program{s, id, now_ps};
  run_program(program);
}

}  // namespace weftwork
