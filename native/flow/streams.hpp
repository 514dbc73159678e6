/// Programs of actors, expanded as they run: one small interpreter per stream.
/// Source: docs/models/packet-engine.md, "The job", whose operations mean the same here.
#pragma once
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
  for (std::int32_t other = s.first_stream[static_cast<std::size_t>(actor)];
       other < s.first_stream[static_cast<std::size_t>(actor) + 1]; ++other) {
    const Stream& waiting = s.streams[static_cast<std::size_t>(other)];
    if (waiting.blocked == Blocked::kToken && waiting.token == token) wake(s, other, s.now_ps);
  }
}

/// Run a stream until it blocks or ends.
inline void run_stream(State& s, std::int32_t index) {
  for (;;) {
    Stream& stream = s.streams[static_cast<std::size_t>(index)];
    const OpRow& op = s.in.job.ops[static_cast<std::size_t>(stream.op)];
    const std::int64_t i = stream.counters.empty() ? 0 : stream.counters.back();
    const Blocked waited = stream.blocked;
    stream.blocked = Blocked::kNothing;
    if (waited == Blocked::kNothing) stream.since_ps = s.now_ps;
    switch (static_cast<OpCode>(op.code)) {
      case OpCode::kStop:
        stream.done = true;
        s.open_work -= 1;
        return;
      case OpCode::kCompute:
      case OpCode::kAt: {
        const bool at = static_cast<OpCode>(op.code) == OpCode::kAt;
        if (waited == Blocked::kTime || (at && op.value <= s.now_ps)) {
          if (stream.number == 0)
            spend(s, stream.actor, op.label, at ? Spent::kWaiting : Spent::kComputing, stream.since_ps, s.now_ps);
          stream.cause = {static_cast<std::int32_t>(op.label), false, s.now_ps};
          break;
        }
        stream.blocked = Blocked::kTime;
        const auto duration = static_cast<Ps>(std::llround(static_cast<double>(op.value) * s.factor_of(stream.actor)));
        wake(s, index, at ? op.value : s.now_ps + duration);
        return;
      }
      case OpCode::kSend: {
        const std::int32_t lane = lane_of(s, stream, op, i, false);
        if (lane < 0) break;
        stream.outstanding += 1;
        const std::int64_t rank = s.rank_of(stream.actor);
        const std::int64_t local = rank - s.in.job.first_rank(s.program_of(stream.actor));
        give_way(s, s.lanes[static_cast<std::size_t>(lane)], op);
        post(s, index, lane, op, message_size(s.in.job_tables(), op, local, i));
        break;
      }
      case OpCode::kReceive: {
        const std::int32_t lane = lane_of(s, stream, op, i, true);
        if (lane >= 0) claim(s, index, lane);
        break;
      }
      case OpCode::kCollect: {
        const std::int32_t operation = s.network->slot(stream.actor, stream.op);
        if (operation < 0) break;
        stream.outstanding += 1;
        post_call(s, index, operation, stream.op);
        break;
      }
      case OpCode::kWait:
        if (stream.outstanding == 0) break;
        stream.blocked = Blocked::kAll;
        return;
      case OpCode::kSignal:
        if (op.after_ps > 0)
          s.push(s.now_ps + op.after_ps, Event::kSignal, stream.actor,
                 static_cast<std::int64_t>(index) << 20 | op.value);
        else
          raise_token(s, stream.actor, op.value, stream.cause);
        break;
      case OpCode::kAwait: {
        const auto place = static_cast<std::size_t>(stream.actor * s.in.tokens + op.value);
        if (s.tokens[place] == 0) {
          stream.blocked = Blocked::kToken;
          stream.token = op.value;
          return;
        }
        s.tokens[place] -= 1;
        stream.cause = s.token_causes[place];
        if (waited == Blocked::kToken) record_wait(s, stream, op.label, stream.cause);
        break;
      }
      case OpCode::kMark:
        s.marks.push_back({stream.actor, op.value, s.now_ps});
        break;
      case OpCode::kLoop:
        if (op.value <= 0) {
          stream.op = op.target;
          continue;
        }
        stream.counters.push_back(0);
        break;
      case OpCode::kEnd: {
        const OpRow& loop = s.in.job.ops[static_cast<std::size_t>(op.target) - 1];
        if (++stream.counters.back() < loop.value) {
          stream.op = op.target;
          continue;
        }
        stream.counters.pop_back();
        break;
      }
    }
    stream.op += 1;
  }
}

}  // namespace weftwork::flow
