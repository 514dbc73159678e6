/// The part of a job that completions touch: streams that wait, and mailboxes.
#pragma once
#include <cstdint>

#include "base/clock.hpp"
#include "base/flow_identity.hpp"
#include "base/ids.hpp"
#include "base/invariant.hpp"
#include "base/programs.hpp"
#include "packet/agenda.hpp"
#include "packet/hosts.hpp"
#include "packet/ids.hpp"
#include "packet/job_records.hpp"
#include "packet/job_state.hpp"
#include "packet/schedule.hpp"
#include "packet/setup.hpp"
#include "rows/transport.hpp"

namespace weftwork {

/// Let a stream go on at `at_ps`, by an agenda event; once, however many reasons there are.
inline void wake(const Setup& setup, Schedule& schedule, JobState& job, StreamId id, Ps at_ps) {
  StreamState& stream = job.streams[id];
  if (stream.queued) return;
  stream.queued = true;
  schedule.agendas[setup.host_of(stream.rank)].push(at_ps, job_key(id));
}

/// Something that a stream has posted is complete.
inline void complete_posted(const Setup& setup, Schedule& schedule, JobState& job, StreamId id, Ps now_ps) {
  StreamState& stream = job.streams[id];
  must_hold(stream.outstanding > 0, Invariant::stream_step_in_order, "at_ps rank stream outstanding", now_ps,
            stream.rank, id, stream.outstanding);
  stream.outstanding -= 1;
  if (stream.wait == StreamWait::kAll && stream.outstanding == 0) wake(setup, schedule, job, id, now_ps);
}

/// A message has arrived whole, by a queue pair or, with none, inside a server.
inline void deliver(const Setup& setup, Schedule& schedule, JobState& job, std::uint64_t flow, QueuePairId queue_pair,
                    Message& message, Ps now_ps) {
  must_hold(message.delivered_at_ps < 0 && message.acked_at_ps < 0 && message.posted_at_ps <= now_ps,
            Invariant::message_delivered_once, "at_ps queue_pair ordinal posted_at_ps delivered_at_ps", now_ps,
            queue_pair, message.ordinal, message.posted_at_ps, message.delivered_at_ps);
  message.delivered_at_ps = now_ps;
  if (!setup.in.has_receives) return;
  Mailbox& box = job.mailboxes[flow];
  box.queue_pair = queue_pair;
  box.delivered += 1;
  const std::int64_t number = setup.in.transport.matches_any != 0 ? box.delivered - 1 : message.ordinal;
  if (number >= box.claimed) return;
  box.completed += 1;
  must_hold(box.completed <= box.claimed && box.completed <= box.delivered, Invariant::receive_takes_one_message,
            "at_ps queue_pair completed claimed delivered", now_ps, queue_pair, box.completed, box.claimed,
            box.delivered);
  complete_posted(setup, schedule, job, box.waiting[ClaimId(number)].stream, now_ps);
}

/// Whether the message is there that a receive of this number on its channel waits for.
inline bool has_delivered(const Setup& setup, const Hosts& hosts, const Mailbox& box, std::int64_t number) {
  const TransportRow& transport = setup.in.transport;
  if (transport.in_any_order == 0 || transport.matches_any != 0 || box.queue_pair.is_none())
    return number < box.delivered;  // inside a server all is in order
  return hosts.queue_pairs[box.queue_pair].open_messages->is_whole(number);
}

}  // namespace weftwork
