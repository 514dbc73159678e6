/// The part of a job that completions touch: streams that wait, and mailboxes.
#pragma once
#include "base/flow_identity.hpp"
#include "packet/state.hpp"

namespace weftwork {

/// Let a stream go on at `at_ps`, by an agenda event; once, however many reasons there are.
inline void wake(State& s, std::int32_t index, Ps at_ps) {
  StreamState& stream = s.streams[static_cast<std::size_t>(index)];
  if (stream.queued) return;
  stream.queued = true;
  s.agendas[static_cast<std::size_t>(s.host_of(stream.rank))].push(
      at_ps, job_key(static_cast<std::uint64_t>(stream.rank), static_cast<std::uint64_t>(stream.stream)));
}

/// Something that a stream has posted is complete.
inline void complete_posted(State& s, std::int32_t index, Ps now_ps) {
  StreamState& stream = s.streams[static_cast<std::size_t>(index)];
  stream.outstanding -= 1;
  if (stream.wait == StreamWait::kAll && stream.outstanding == 0) wake(s, index, now_ps);
}

/// A message has arrived whole, by the queue pair `index` or, for -1, inside a server.
inline void deliver(State& s, std::uint64_t flow, std::int32_t index, Message& message, Ps now_ps) {
  message.delivered_at_ps = now_ps;
  if (!s.in.has_receives) return;
  Mailbox& box = s.mailboxes[flow];
  box.queue_pair = index;
  box.delivered += 1;
  if (box.delivered <= box.claimed)
    complete_posted(s, box.waiting[static_cast<std::size_t>(box.delivered - 1)], now_ps);
}

}  // namespace weftwork
