/// Operations of programs in the flow engine.
#pragma once
#include "base/programs.hpp"
#include "flow/calls.hpp"

namespace weftwork::flow {

/// The lane of a SEND (or of a RECEIVE, `incoming`), or none where the operation is skipped.
inline LaneId lane_of(State& s, const StreamState& stream, const OpRow& op, std::int64_t i, bool incoming) {
  if (s.network != nullptr) {
    const ConnectionCell connection = s.network->connection(stream.actor, OpId(stream.op));
    if (connection.value != kLater) return LaneId(connection.value);  // the first lanes are the network's
  }
  const RankId rank = s.rank_of(stream.actor);
  const RankId first = s.in.job.first_rank(s.program_of(stream.actor));
  const std::int64_t local = peer_rank(s.in.job.job_tables(), op, rank - first, i);
  if (local < 0) return LaneId::none();
  const RankId peer(first.value + local);
  return incoming ? open_lane(s, peer, rank, op) : open_lane(s, rank, peer, op);
}

inline void raise_token(State& s, ActorId actor, std::int64_t token, const Cause& cause) {
  const std::int64_t place = actor.value * s.in.tokens + token;
  s.tokens[place] += 1;
  s.token_causes[place] = cause;
  const StreamId first = s.first_stream[actor];
  const std::span<const StreamState> streams(s.streams.items());
  offer_token(streams.first(s.first_stream[actor + 1].index()).subspan(first.index()), token,
              [&](std::int32_t number) { wake(s, first + number, s.now_ps); });
}

/// What operations do in the flow engine (`run_program`), and what the time before their ends went to.
struct FlowProgram {
  State& s;
  StreamId index;
  StreamState& stream = s.streams[index];

  StreamProgress& progress() { return stream; }
  [[nodiscard]] std::span<const OpRow> ops() const { return s.in.job.ops.items(); }
  [[nodiscard]] Ps now_ps() const { return s.now_ps; }
  [[nodiscard]] Ps compute_ps(const OpRow& op) const {
    return static_cast<Ps>(std::llround(static_cast<double>(op.value) * s.factor_of(stream.actor)));
  }
  [[nodiscard]] std::int64_t token_place(const OpRow& op) const { return stream.actor.value * s.in.tokens + op.value; }
  std::int64_t& token(const OpRow& op) { return s.tokens[token_place(op)]; }
  void resume_at(Ps then_ps) { wake(s, index, then_ps); }
  void begin(StreamWait waited) {
    if (waited == StreamWait::kNothing) stream.since_ps = s.now_ps;
  }
  void end_time(const OpRow& op) {
    const bool computed = static_cast<OpCode>(op.code) == OpCode::kCompute;
    if (stream.number == 0)
      spend(s, stream.actor, op.label, computed ? Spent::kComputing : Spent::kWaiting, stream.since_ps, s.now_ps);
    stream.cause = {static_cast<std::int32_t>(op.label), false, s.now_ps};
  }
  void take_token(const OpRow& op, StreamWait waited) {
    stream.cause = s.token_causes[token_place(op)];
    if (waited == StreamWait::kToken) record_wait(s, stream, op.label, stream.cause);
  }
  void send(const OpRow& op, std::int64_t turn) {
    const LaneId lane = lane_of(s, stream, op, turn, false);
    if (lane.is_none()) return;
    stream.outstanding += 1;
    const RankId first = s.in.job.first_rank(s.program_of(stream.actor));
    give_path(s, s.lanes[lane], op);
    post(s, index, lane, op, message_size(s.in.job.job_tables(), op, s.rank_of(stream.actor) - first, turn));
  }
  void receive(const OpRow& op, std::int64_t turn) {
    const LaneId lane = lane_of(s, stream, op, turn, true);
    if (!lane.is_none()) claim(s, index, lane);
  }
  void collect(const OpRow& /*op*/) {
    const OperationCell operation = s.network->operation(stream.actor, OpId(stream.op));
    if (operation.is_none()) return;
    stream.outstanding += 1;
    post_call(s, index, operation, OpId(stream.op));
  }
  void raise(const OpRow& op) {
    if (op.after_ps > 0)
      s.push(s.now_ps + op.after_ps, Event::kNotify, stream.actor, std::int64_t{index.value} << 20 | op.value);
    else
      raise_token(s, stream.actor, op.value, stream.cause);
  }
  void milestone(const OpRow& op) {
    s.milestones.push_back({stream.actor.value, op.value, s.now_ps});
    if (stream.number == 0) s.last_segment[stream.actor] = -1;  // what follows belongs to another pass
  }
  void end() { s.open_work -= 1; }
};

/// Run a stream until it blocks or ends.
inline void run_stream(State& s, StreamId index) {
  FlowProgram program{s, index};
  run_program(program);
}

}  // namespace weftwork::flow
