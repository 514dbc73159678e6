/// What the operations of programs do in the flow engine.
#pragma once
#include "base/programs.hpp"
#include "flow/calls.hpp"

namespace weftwork::flow {

/// The lane of a SEND (or of a RECEIVE, `incoming`), or -1 where the operation is skipped.
inline std::int32_t lane_of(State& s, const Stream& stream, const OpRow& op, std::int64_t i, bool incoming) {
  if (s.network != nullptr) {
    const std::int32_t slot = s.network->slot(stream.actor, stream.op);
    if (slot != kLater) return slot;
  }
  const std::int64_t rank = s.rank_of(stream.actor);
  const std::int64_t first = s.in.job.first_rank(s.program_of(stream.actor));
  const std::int64_t local = peer_rank(s.in.job_tables(), op, rank - first, i);
  if (local < 0) return -1;
  const std::int64_t peer = first + local;
  return incoming ? open_lane(s, peer, rank, op) : open_lane(s, rank, peer, op);
}

inline void raise_token(State& s, std::int32_t actor, std::int64_t token, const Cause& cause) {
  const auto place = static_cast<std::size_t>(actor * s.in.tokens + token);
  s.tokens[place] += 1;
  s.token_causes[place] = cause;
  const std::int32_t first = s.first_stream[static_cast<std::size_t>(actor)];
  const auto end = static_cast<std::size_t>(s.first_stream[static_cast<std::size_t>(actor) + 1]);
  const std::span<const Stream> streams(s.streams);
  offer_token(streams.first(end).subspan(static_cast<std::size_t>(first)), token,
              [&](std::int32_t number) { wake(s, first + number, s.now_ps); });
}

/// What operations do in the flow engine (`run_program`), and what the time before their ends went to.
struct FlowProgram {
  State& s;
  std::int32_t index;
  Stream& stream = s.streams[static_cast<std::size_t>(index)];

  StreamProgress& progress() { return stream; }
  [[nodiscard]] std::span<const OpRow> ops() const { return s.in.job.ops; }
  [[nodiscard]] Ps now_ps() const { return s.now_ps; }
  [[nodiscard]] Ps compute_ps(const OpRow& op) const {
    return static_cast<Ps>(std::llround(static_cast<double>(op.value) * s.factor_of(stream.actor)));
  }
  [[nodiscard]] std::size_t token_place(const OpRow& op) const {
    return static_cast<std::size_t>(stream.actor * s.in.tokens + op.value);
  }
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
    const std::int32_t lane = lane_of(s, stream, op, turn, false);
    if (lane < 0) return;
    stream.outstanding += 1;
    const std::int64_t first = s.in.job.first_rank(s.program_of(stream.actor));
    give_way(s, s.lanes[static_cast<std::size_t>(lane)], op);
    post(s, index, lane, op, message_size(s.in.job_tables(), op, s.rank_of(stream.actor) - first, turn));
  }
  void receive(const OpRow& op, std::int64_t turn) {
    const std::int32_t lane = lane_of(s, stream, op, turn, true);
    if (lane >= 0) claim(s, index, lane);
  }
  void collect(const OpRow& /*op*/) {
    const std::int32_t operation = s.network->slot(stream.actor, stream.op);
    if (operation < 0) return;
    stream.outstanding += 1;
    post_call(s, index, operation, stream.op);
  }
  void raise(const OpRow& op) {
    if (op.after_ps > 0)
      s.push(s.now_ps + op.after_ps, Event::kNotify, stream.actor, static_cast<std::int64_t>(index) << 20 | op.value);
    else
      raise_token(s, stream.actor, op.value, stream.cause);
  }
  void milestone(const OpRow& op) { s.marks.push_back({stream.actor, op.value, s.now_ps}); }
  void end() { s.open_work -= 1; }
};

/// Run a stream until it blocks or ends.
inline void run_stream(State& s, std::int32_t index) {
  FlowProgram program{s, index};
  run_program(program);
}

}  // namespace weftwork::flow
