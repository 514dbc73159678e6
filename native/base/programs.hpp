/// Programs of ranks, expanded as they run: one interpreter for both engines. What an operation does to the network is
/// the engine's; what it does to the program is here. Source: weftwork.spec.job; docs/models/packet-engine.md, "The
/// job".
#pragma once
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/clock.hpp"
#include "base/ids.hpp"
#include "base/job.hpp"
#include "rows/job.hpp"

namespace weftwork {

enum class StreamWait : std::uint8_t { kNothing, kTime, kAll, kToken };

/// Where a stream is in its program; an engine's own record of a stream begins with it.
struct StreamProgress {
  std::int64_t op = 0;                 // of the job's operations
  std::int64_t token = -1;             // that it waits for
  std::int64_t outstanding = 0;        // posted, and not complete
  std::vector<std::int64_t> counters;  // of the loops around the operation, outermost first
  StreamWait wait = StreamWait::kNothing;
  bool queued = false;  // the engine will let it go on
  bool done = false;

  /// Turn of the innermost loop.
  [[nodiscard]] std::int64_t turn() const { return counters.empty() ? 0 : counters.back(); }
};

/// What an engine does for one stream of a program.
template <typename T>
concept ProgramHost = requires(T& host, const OpRow& op, std::int64_t turn, StreamWait waited, Ps at_ps) {
  { host.progress() } -> std::convertible_to<StreamProgress&>;
  { host.ops() } -> std::convertible_to<std::span<const OpRow>>;
  { host.now_ps() } -> std::convertible_to<Ps>;
  { host.compute_ps(op) } -> std::convertible_to<Ps>;
  { host.token(op) } -> std::convertible_to<std::int64_t&>;
  host.resume_at(at_ps);  // let the stream go on then
  host.begin(waited);     // an operation begins, or goes on after a wait
  host.end_time(op);      // a computation is over, or an instant has come
  host.take_token(op, waited);
  host.send(op, turn);  // adds to `outstanding` what is posted
  host.receive(op, turn);
  host.collect(op);
  host.raise(op);
  host.milestone(op);
  host.end();
};

/// Run a stream until it blocks or ends.
template <ProgramHost Host>
void run_program(Host& host) {
  StreamProgress& stream = host.progress();
  const IdSpan<OpId, const OpRow> ops{std::span<const OpRow>(host.ops())};
  for (;;) {
    const OpRow& op = ops[OpId(stream.op)];
    const StreamWait waited = stream.wait;
    stream.wait = StreamWait::kNothing;
    host.begin(waited);
    switch (static_cast<OpCode>(op.code)) {
      case OpCode::kStop:
        stream.done = true;
        host.end();
        return;
      case OpCode::kCompute:
      case OpCode::kAt: {
        const bool at = static_cast<OpCode>(op.code) == OpCode::kAt;
        if (waited == StreamWait::kTime || (at && op.value <= host.now_ps())) {
          host.end_time(op);
          break;
        }
        stream.wait = StreamWait::kTime;
        host.resume_at(at ? op.value : host.now_ps() + host.compute_ps(op));
        return;
      }
      case OpCode::kSend:
        host.send(op, stream.turn());
        break;
      case OpCode::kReceive:
        host.receive(op, stream.turn());
        break;
      case OpCode::kCollect:
        host.collect(op);
        break;
      case OpCode::kWait:
        if (stream.outstanding == 0) break;
        stream.wait = StreamWait::kAll;
        return;
      case OpCode::kNotify:
        host.raise(op);
        break;
      case OpCode::kAwait: {
        std::int64_t& token = host.token(op);
        if (token == 0) {
          stream.wait = StreamWait::kToken;
          stream.token = op.value;
          return;
        }
        token -= 1;
        host.take_token(op, waited);
        break;
      }
      case OpCode::kMilestone:
        host.milestone(op);
        break;
      case OpCode::kLoop:
        if (op.value <= 0) {
          stream.op = op.target;
          continue;
        }
        stream.counters.push_back(0);
        break;
      case OpCode::kEnd:
        if (++stream.counters.back() < ops[OpId(op.target - 1)].value) {
          stream.op = op.target;
          continue;
        }
        stream.counters.pop_back();
        break;
    }
    stream.op += 1;
  }
}

/// Call `resume(place)` for each of a rank's streams, by place among them, that waits for a token.
template <std::derived_from<StreamProgress> Stream, typename Resume>
void offer_token(std::span<const Stream> streams, std::int64_t token, Resume&& resume) {
  for (std::size_t place = 0; place < streams.size(); ++place)
    if (streams[place].wait == StreamWait::kToken && streams[place].token == token)
      resume(static_cast<std::int32_t>(place));
}

}  // namespace weftwork
