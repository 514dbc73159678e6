/// Operations of programs in the packet engine: queue pairs open, messages are posted and claimed.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

#include "base/clock.hpp"
#include "base/failover.hpp"
#include "base/flow_identity.hpp"
#include "base/ids.hpp"
#include "base/invariant.hpp"
#include "base/job.hpp"
#include "base/limit_error.hpp"
#include "base/programs.hpp"
#include "packet/agenda.hpp"
#include "packet/fabric.hpp"
#include "packet/hashing.hpp"
#include "packet/hosts.hpp"
#include "packet/ids.hpp"
#include "packet/job.hpp"
#include "packet/job_records.hpp"
#include "packet/job_state.hpp"
#include "packet/packet.hpp"
#include "packet/pipe.hpp"
#include "packet/policy.hpp"
#include "packet/queue_pair_records.hpp"
#include "packet/receiver.hpp"
#include "packet/recovery.hpp"
#include "packet/routes.hpp"
#include "packet/schedule.hpp"
#include "packet/scheduling.hpp"
#include "packet/server.hpp"
#include "packet/setup.hpp"
#include "packet/state.hpp"
#include "packet/steps.hpp"
#include "rows/job.hpp"
#include "rows/policies.hpp"
#include "rows/transport.hpp"

namespace weftwork {

/// Path of first candidates between two NIC ports, added up with `add(port, forward_of_path)`; false if there is none.
template <typename Add>
bool follow_first_path(const Setup& setup, PortId source, PortId destination, Add&& add) {
  const Routes routes(setup.in.routes[RouteTableId(0)], setup.in.node_kind.size());
  const AttachmentId attachment = setup.in.attachment[destination];
  PortId port = source;
  for (std::size_t steps = 0; steps <= setup.in.node_kind.size(); ++steps) {
    add(port);
    const PortId peer = setup.peer_of(port);
    if (peer == destination) return true;
    const NodeId node = setup.in.port_node[peer];
    if (setup.in.node_kind[node] == 0) return false;
    const GroupId group = routes.group(node, attachment);
    if (group == Routes::kUnreachable) return false;
    port = group == Routes::kAttached ? setup.peer_of(destination) : routes.port(routes.first(group));
  }
  return false;
}

inline Ps base_rtt_ps(const Setup& setup, const Fabric& fabric, PortId source, PortId destination) {
  const TransportRow& transport = setup.in.transport;
  Ps total = 0;
  std::int64_t bytes = transport.mtu_bytes + transport.data_overhead_bytes + transport.telemetry_bytes;
  std::int64_t hop_bytes = 0;  // that all switches so far have added
  const auto pass = [&](std::int64_t added_bytes) {
    return [&, added_bytes](PortId port) {
      total += fabric.ports[port].delay_ps +
               serialisation_ps(bytes + hop_bytes + transport.interframe_bytes, setup.in.port_rate_bps[port]);
      hop_bytes += added_bytes;
    };
  };
  if (!follow_first_path(setup, source, destination, pass(transport.telemetry_hop_bytes))) return 0;
  hop_bytes -= transport.telemetry_hop_bytes;  // the last link leads to no switch
  bytes = transport.ack_bytes + transport.echo_bytes + transport.telemetry_bytes;
  return follow_first_path(setup, destination, source, pass(0)) ? total : 0;
}

/// The ports that a queue pair has by one column of `PacketInput.rank_ports`.
inline PortPair ports_of_column(const Setup& setup, const QueuePair& qp, ColumnId column) {
  const PortId destination = setup.in.rank_port(qp.destination_rank, column);
  if (!qp.peer_rail) return {setup.in.rank_port(qp.source_rank, column), destination};
  const NodeId host = setup.host_of(qp.source_rank);
  const PortId source = setup.first_port(host) + setup.local_port(destination);
  if (source >= setup.end_port(host))
    throw LimitError("a server has no NIC port of the number that its peer's has; take rail: own, or equal servers");
  return {source, destination};
}

/// The ports of a queue pair that were up at the last failover; `otherwise` where an end has none.
inline PortPair working_ports(const Setup& setup, const Hosts& hosts, const QueuePair& qp, PortPair otherwise) {
  return weftwork::working_ports(
      setup.in.columns(), qp.column.index(), otherwise, [&](PortId port) { return !hosts.down_at_failover[port]; },
      [&](std::size_t column) { return ports_of_column(setup, qp, ColumnId(column)); });
}

inline QueuePairId open_queue_pair(State& s, std::uint64_t flow, RankId source, RankId destination, const OpRow& op) {
  const QueuePairId id = s.hosts.queue_pairs.next_id();
  const bool is_fresh = s.hosts.queue_pair_of_flow.emplace(flow, id).second;
  must_hold(is_fresh, Invariant::slot_has_its_queue_pair, "queue_pair source destination channel", id, source,
            destination, op.channel);
  QueuePair& qp = s.hosts.queue_pairs.emplace();
  qp.flow = flow;
  qp.source_rank = source;
  qp.destination_rank = destination;
  qp.channel = static_cast<std::int32_t>(op.channel);
  qp.column = ColumnId(op.nic);
  qp.peer_rail = op.peer_rail != 0;
  PortPair ports = ports_of_column(s.setup, qp, qp.column);
  if (!s.hosts.down_at_failover.empty()) ports = working_ports(s.setup, s.hosts, qp, ports);
  qp.source_port = ports.source;
  qp.destination_port = ports.destination;
  must_hold(s.setup.in.port_node[ports.source] == s.setup.host_of(source) &&
                s.setup.in.port_node[ports.destination] == s.setup.host_of(destination),
            Invariant::slot_has_its_queue_pair, "queue_pair source source_port destination destination_port", id,
            source, ports.source, destination, ports.destination);
  qp.own_entropy = s.hosts.pins.own_entropy(s.setup.in.seed, flow);
  qp.reverse_hash = carried_hash(s.routing, qp, false, qp.own_entropy);
  Sender& sender = qp.sender;
  sender.entropy = qp.own_entropy;
  sender.hash = carried_hash(s.routing, qp, true, qp.own_entropy);
  sender.credit_limit = s.setup.in.transport.end_to_end_credits;
  sender.base_rtt_ps = base_rtt_ps(s.setup, s.fabric, qp.source_port, qp.destination_port);
  sender.slot = add_slot(s.setup, s.hosts, s.recordings, qp.source_port, id);
  qp.congestion = new_record(s.calls, s.setup.in.congestion.state);
  SenderState& state = sender_state(qp);
  state.rate_bps = static_cast<double>(s.fabric.rate_bps[qp.source_port]);
  state.window_bytes = kNoWindowBytes;
  if (s.setup.in.path.step != nullptr) {
    qp.path = new_record(s.calls, s.setup.in.path.state);
    path_state(qp).entropy = qp.own_entropy;
  }
  stop_timers(qp);
  return id;
}

inline void post(State& s, StreamId stream, RankId destination, const OpRow& op, std::int64_t size_bytes, Ps now_ps) {
  const RankId source = s.job.streams[stream].rank;
  const std::uint64_t flow = flow_identity(source.value, destination.value, op.channel);
  const auto found = s.hosts.queue_pair_of_flow.find(flow);
  const QueuePairId id =
      found != s.hosts.queue_pair_of_flow.end() ? found->second : open_queue_pair(s, flow, source, destination, op);
  QueuePair& qp = s.hosts.queue_pairs[id];
  Sender& sender = qp.sender;
  must_hold(qp.source_rank == source && qp.destination_rank == destination, Invariant::slot_has_its_queue_pair,
            "at_ps queue_pair source destination", now_ps, id, source, destination);
  must_hold(size_bytes >= 0 && sender.nxt <= sender.end, Invariant::packet_numbers_in_order,
            "at_ps queue_pair size_bytes nxt end", now_ps, id, size_bytes, sender.nxt, sender.end);
  const MessageId number = s.job.messages.next_id();
  Message& message = s.job.messages.emplace();
  const bool idle = sender.una == sender.end;
  const std::int64_t packets =
      std::max<std::int64_t>(1, (size_bytes + s.setup.in.transport.mtu_bytes - 1) / s.setup.in.transport.mtu_bytes);
  s.job.open_work += 1;
  message.size_bytes = size_bytes;
  message.posted_at_ps = now_ps;
  message.first = sender.end;
  message.end = sender.end + packets;
  message.queue_pair = id;
  message.stream = stream;
  message.op = static_cast<std::int32_t>(s.job.streams[stream].op);
  message.ordinal = qp.messages++;
  message.klass = TrafficClass(op.data_class);
  if (message.end > std::int64_t{UINT32_MAX})
    throw LimitError("a queue pair carries more than 2^32 packets; split the traffic over channels");
  sender.end = message.end;
  sender.end_bytes += size_bytes;
  must_hold(sender.last_message.is_none() == (message.ordinal == 0), Invariant::message_delivered_once,
            "at_ps queue_pair message ordinal before", now_ps, id, number, message.ordinal, sender.last_message);
  if (!sender.last_message.is_none()) s.job.messages[sender.last_message].next = number;
  sender.last_message = number;
  if (sender.una_message.is_none()) sender.una_message = number;
  if (sender.nxt_message.is_none()) sender.nxt_message = number;
  if (qp.receiver.message.is_none()) qp.receiver.message = number;
  must_hold(sender.nxt_bytes <= sender.end_bytes && inflight_bytes(sender) >= 0,
            Invariant::in_flight_bytes_are_sent_minus_acknowledged,
            "at_ps queue_pair inflight_bytes nxt_bytes end_bytes", now_ps, id, inflight_bytes(sender), sender.nxt_bytes,
            sender.end_bytes);
  const Kind kind = sender.started ? Kind::kResume : Kind::kStart;
  if (!sender.failed && (!sender.started || idle)) {
    tell(s, qp, {.kind = kind}, now_ps);
    sender.started = true;
  }
  guard_credits(s.setup, s.schedule, s.job, qp, now_ps);
  reconsider(s.setup, s.fabric, s.hosts, s.job, qp);
  kick_nic(s, qp.source_port, now_ps);
}

inline void claim(State& s, StreamId id, RankId peer, const OpRow& op, Ps now_ps) {
  StreamState& stream = s.job.streams[id];
  const std::uint64_t flow = flow_identity(peer.value, stream.rank.value, op.channel);
  Mailbox& box = s.job.mailboxes[flow];
  const std::int64_t number = box.claimed++;
  box.waiting.push_back({id, static_cast<std::int32_t>(stream.op)});
  must_hold(std::cmp_equal(box.waiting.size(), box.claimed), Invariant::receive_takes_one_message,
            "at_ps rank peer waiting claimed", now_ps, stream.rank, peer, box.waiting.size(), box.claimed);
  if (!has_delivered(s.setup, s.hosts, box, number)) {
    stream.outstanding += 1;
    return;
  }
  box.completed += 1;
  must_hold(box.completed <= box.claimed && box.completed <= box.delivered, Invariant::receive_takes_one_message,
            "at_ps rank peer completed claimed delivered", now_ps, stream.rank, peer, box.completed, box.claimed,
            box.delivered);
  if (s.setup.in.transport.end_to_end_credits == 0 || box.queue_pair.is_none()) return;
  QueuePair& qp = s.hosts.queue_pairs[box.queue_pair];
  if (qp.receiver.last_credit_code == 0) send_reply(s, qp, box.queue_pair, PacketKind::kAck, nullptr, 0, now_ps);
}

inline void raise_token(const Setup& setup, Schedule& schedule, JobState& job, RankId rank, std::int64_t token,
                        Ps now_ps) {
  must_hold(token >= 0 && std::cmp_less(token, job.tokens_of_rank), Invariant::stream_step_in_order,
            "at_ps rank token tokens", now_ps, rank, token, job.tokens_of_rank);
  job.token(rank, token) += 1;
  must_hold(job.token(rank, token) > 0, Invariant::stream_step_in_order, "at_ps rank token raised", now_ps, rank, token,
            job.token(rank, token));
  const StreamId first = job.first_stream[rank];
  const std::span<const StreamState> streams(job.streams.items());
  offer_token(streams.first(job.first_stream[rank + 1].index()).subspan(first.index()), token,
              [&](std::int32_t place) { wake(setup, schedule, job, first + place, now_ps); });
}

/// What operations do in the packet engine (`run_program`).
struct PacketProgram {
  State& s;
  StreamId id;
  Ps at_ps;
  StreamState& stream = s.job.streams[id];

  StreamProgress& progress() { return stream; }
  [[nodiscard]] std::span<const OpRow> ops() const { return s.setup.in.ops; }
  [[nodiscard]] Ps now_ps() const { return at_ps; }
  [[nodiscard]] Ps compute_ps(const OpRow& op) const { return op.value; }
  std::int64_t& token(const OpRow& op) { return s.job.token(stream.rank, op.value); }
  void resume_at(Ps then_ps) { wake(s.setup, s.schedule, s.job, id, then_ps); }
  void begin(StreamWait /*waited*/) {}
  void end_time(const OpRow& /*op*/) {}
  void take_token(const OpRow& /*op*/, StreamWait /*waited*/) {}
  void send(const OpRow& op, std::int64_t turn) {
    const RankId peer(peer_rank(s.setup.in.job_tables(), op, stream.rank.value, turn));
    if (peer.is_none()) return;
    stream.outstanding += 1;
    const std::int64_t size_bytes = message_size(s.setup.in.job_tables(), op, stream.rank.value, turn);
    if (s.setup.host_of(peer) == s.setup.host_of(stream.rank))
      post_inside(s.setup, s.schedule, s.job, id, peer, op.channel, size_bytes, at_ps);
    else
      post(s, id, peer, op, size_bytes, at_ps);
  }
  void receive(const OpRow& op, std::int64_t turn) {
    const RankId peer(peer_rank(s.setup.in.job_tables(), op, stream.rank.value, turn));
    if (!peer.is_none()) claim(s, id, peer, op, at_ps);
  }
  void collect(const OpRow& /*op*/) {}  // refused before the run
  void raise(const OpRow& op) {
    if (op.after_ps > 0)
      agenda_of_rank(s.setup, s.schedule, stream.rank)
          .push(at_ps + op.after_ps, rank_key(AgendaKind::kNotify, stream.rank, static_cast<std::uint64_t>(op.value)));
    else
      raise_token(s.setup, s.schedule, s.job, stream.rank, op.value, at_ps);
  }
  void milestone(const OpRow& op) {
    must_hold(s.job.milestones.empty() || s.job.milestones.back().at_ps <= at_ps ||
                  s.job.milestones.back().rank != stream.rank.value,
              Invariant::recordings_in_order_of_time, "at_ps rank", at_ps, stream.rank);
    s.job.milestones.push_back({.rank = stream.rank.value, .name = op.value, .at_ps = at_ps});
  }
  void end() {
    must_hold(stream.done, Invariant::stream_step_in_order, "at_ps rank stream operation", at_ps, stream.rank, id,
              stream.op);
    s.job.open_work -= 1;
    must_hold(s.job.open_work >= 0 && stream.outstanding >= 0, Invariant::work_is_counted_once,
              "at_ps rank open outstanding", at_ps, stream.rank, s.job.open_work, stream.outstanding);
  }
};

/// Run a stream until it blocks or ends.
inline void run_stream(State& s, StreamId id, Ps now_ps) {
  PacketProgram program{s, id, now_ps};
  const std::int64_t operations = static_cast<std::int64_t>(s.setup.in.ops.size());
  must_hold(!program.stream.done && program.stream.op < operations, Invariant::stream_step_in_order,
            "at_ps rank stream operation operations", now_ps, program.stream.rank, id, program.stream.op, operations);
  run_program(program);
  must_hold(program.stream.op < operations && program.stream.outstanding >= 0, Invariant::stream_step_in_order,
            "at_ps rank stream operation outstanding", now_ps, program.stream.rank, id, program.stream.op,
            program.stream.outstanding);
  must_hold(program.stream.done || program.stream.wait != StreamWait::kNothing, Invariant::stream_step_in_order,
            "at_ps rank stream operation", now_ps, program.stream.rank, id, program.stream.op);
}

}  // namespace weftwork
