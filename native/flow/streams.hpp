/// Operations of programs in the flow engine.
#pragma once
#include <cstdint>
#include <span>

#include "base/clock.hpp"
#include "base/ids.hpp"
#include "base/job.hpp"
#include "base/programs.hpp"
#include "flow/calls.hpp"
#include "flow/ids.hpp"
#include "flow/job_state.hpp"
#include "flow/lanes.hpp"
#include "flow/network.hpp"
#include "flow/record.hpp"
#include "flow/recordings.hpp"
#include "flow/run_clock.hpp"
#include "flow/setup.hpp"
#include "flow/state.hpp"
#include "rows/flow_outcome.hpp"
#include "rows/job.hpp"

namespace weftwork::flow {

/// The lane of a SEND (or of a RECEIVE, `incoming`), or none where the operation is skipped.
inline LaneId lane_of(const Setup& setup, JobState& job, const StreamState& stream, const OpRow& op, std::int64_t i,
                      bool incoming) {
  if (setup.network != nullptr) {
    const ConnectionCell connection = setup.network->connection(stream.actor, OpId(stream.op));
    if (connection.value != kLater) return LaneId(connection.value);  // the first lanes are the network's
  }
  const RankId rank = setup.rank_of(stream.actor);
  const RankId first = setup.in.job.first_rank(setup.program_of(stream.actor));
  const std::int64_t local = peer_rank(setup.in.job.job_tables(), op, rank - first, i);
  if (local < 0) return LaneId::none();
  const RankId peer(first.value + local);
  return incoming ? open_lane(setup, job, peer, rank, op) : open_lane(setup, job, rank, peer, op);
}

inline void raise_token(const Setup& setup, JobState& job, RunClock& clock, ActorId actor, std::int64_t token,
                        const Cause& cause) {
  const std::int64_t place = actor.value * setup.in.tokens + token;
  job.tokens[place] += 1;
  job.token_causes[place] = cause;
  const StreamId first = job.first_stream[actor];
  const std::span<const StreamState> streams(job.streams.items());
  offer_token(streams.first(job.first_stream[actor + 1].index()).subspan(first.index()), token,
              [&](std::int32_t number) { wake(job, clock, first + number, clock.now_ps); });
}

/// What operations do in the flow engine (`run_program`), and what the time before their ends went to.
struct FlowProgram {
  State& s;
  StreamId index;
  StreamState& stream = s.job.streams[index];

  StreamProgress& progress() { return stream; }
  [[nodiscard]] std::span<const OpRow> ops() const { return s.setup.in.job.ops.items(); }
  [[nodiscard]] Ps now_ps() const { return s.clock.now_ps; }
  [[nodiscard]] Ps compute_ps(const OpRow& op) const {
    return static_cast<Ps>(std::llround(static_cast<double>(op.value) * s.setup.factor_of(stream.actor)));
  }
  [[nodiscard]] std::int64_t token_place(const OpRow& op) const {
    return stream.actor.value * s.setup.in.tokens + op.value;
  }
  std::int64_t& token(const OpRow& op) { return s.job.tokens[token_place(op)]; }
  void resume_at(Ps then_ps) { wake(s.job, s.clock, index, then_ps); }
  void begin(StreamWait waited) {
    if (waited == StreamWait::kNothing) stream.since_ps = s.clock.now_ps;
  }
  void end_time(const OpRow& op) {
    const bool computed = static_cast<OpCode>(op.code) == OpCode::kCompute;
    if (stream.number == 0)
      spend(s.recordings, stream.actor, op.label, computed ? Spent::kComputing : Spent::kWaiting, stream.since_ps,
            s.clock.now_ps);
    stream.cause = {static_cast<std::int32_t>(op.label), false, s.clock.now_ps};
  }
  void take_token(const OpRow& op, StreamWait waited) {
    stream.cause = s.job.token_causes[token_place(op)];
    if (waited == StreamWait::kToken) record_wait(s.clock, s.recordings, stream, op.label, stream.cause);
  }
  void send(const OpRow& op, std::int64_t turn) {
    const LaneId lane = lane_of(s.setup, s.job, stream, op, turn, false);
    if (lane.is_none()) return;
    stream.outstanding += 1;
    const RankId first = s.setup.in.job.first_rank(s.setup.program_of(stream.actor));
    give_path(s.setup, s.traffic, s.job.lanes[lane], op);
    post(s.setup, s.traffic, s.job, s.clock, index, lane, op,
         message_size(s.setup.in.job.job_tables(), op, s.setup.rank_of(stream.actor) - first, turn));
  }
  void receive(const OpRow& op, std::int64_t turn) {
    const LaneId lane = lane_of(s.setup, s.job, stream, op, turn, true);
    if (!lane.is_none()) claim(s.job, index, lane);
  }
  void collect(const OpRow& /*op*/) {
    const OperationCell operation = s.setup.network->operation(stream.actor, OpId(stream.op));
    if (operation.is_none()) return;
    stream.outstanding += 1;
    post_call(s.setup, s.job, s.clock, index, operation, OpId(stream.op));
  }
  void raise(const OpRow& op) {
    if (op.after_ps > 0)
      s.clock.push(s.clock.now_ps + op.after_ps, Event::kNotify, stream.actor,
                   std::int64_t{index.value} << 20 | op.value);
    else
      raise_token(s.setup, s.job, s.clock, stream.actor, op.value, stream.cause);
  }
  void milestone(const OpRow& op) {
    s.recordings.milestones.push_back({.actor = stream.actor.value, .name = op.value, .at_ps = s.clock.now_ps});
    if (stream.number == 0) s.recordings.last_segment[stream.actor] = -1;  // what follows belongs to another pass
  }
  void end() { s.job.open_work -= 1; }
};

/// Run a stream until it blocks or ends.
inline void run_stream(State& s, StreamId index) {
  FlowProgram program{s, index};
  run_program(program);
}

}  // namespace weftwork::flow
