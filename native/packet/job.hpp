/// The part of a job that completions touch: streams that wait, and mailboxes.
#pragma once
#include "base/flow_identity.hpp"
#include "packet/state.hpp"

namespace weftwork {

/// Let a stream go on at `at_ps`, by an agenda event; once, however many reasons there are.
inline void wake(State& s, StreamId id, Ps at_ps) {
  StreamState& stream = s.streams[id];
  if (stream.queued) return;
  stream.queued = true;
  s.agendas[s.host_of(stream.rank)].push(at_ps, job_key(id));
}

/// Something that a stream has posted is complete.
inline void complete_posted(State& s, StreamId id, Ps now_ps) {
  StreamState& stream = s.streams[id];
  stream.outstanding -= 1;
  if (stream.wait == StreamWait::kAll && stream.outstanding == 0) wake(s, id, now_ps);
}

/// A message has arrived whole, by a queue pair or, with none, inside a server.
inline void deliver(State& s, std::uint64_t flow, QueuePairId queue_pair, Message& message, Ps now_ps) {
  message.delivered_at_ps = now_ps;
  if (!s.in.has_receives) return;
  Mailbox& box = s.mailboxes[flow];
  box.queue_pair = queue_pair;
  box.delivered += 1;
  const std::int64_t number = s.in.transport.matches_any != 0 ? box.delivered - 1 : message.ordinal;
  if (number >= box.claimed) return;
  box.completed += 1;
  complete_posted(s, box.waiting[ClaimId(number)].stream, now_ps);
}

/// Whether the message is there that a receive of this number on its channel waits for.
inline bool has_delivered(const State& s, const Mailbox& box, std::int64_t number) {
  const TransportRow& transport = s.in.transport;
  if (transport.in_any_order == 0 || transport.matches_any != 0 || box.queue_pair.is_none())
    return number < box.delivered;  // inside a server all is in order
  return s.queue_pairs[box.queue_pair].open_messages->is_whole(number);
}

}  // namespace weftwork
