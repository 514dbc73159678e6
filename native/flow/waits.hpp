/// Waits of a job's streams at the end of a run of the flow engine. Where ranks are folded a row is of the rank that
/// stands for those that are alike.
/// Source: docs/models/flow-engine.md.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "base/ids.hpp"
#include "base/programs.hpp"
#include "base/waits.hpp"
#include "flow/ids.hpp"
#include "flow/job_state.hpp"
#include "flow/network.hpp"
#include "flow/setup.hpp"
#include "rows/waits.hpp"

namespace weftwork::flow {

namespace detail {

inline WaitRow wait_row(const Setup& setup, const JobState& job, StreamId id, WaitKind kind, std::int64_t op) {
  const StreamState& stream = job.streams[id];
  return wait_of(setup.rank_of(stream.actor), stream.number, stream, kind, op);
}

/// Say what is known of a message that is posted.
inline void describe(const Lane& lane, const Message& message, WaitRow& row) {
  row.size_bytes = message.size_bytes;
  row.state = static_cast<std::int64_t>(message.delivered_at_ps >= 0 ? WaitState::kArrived : WaitState::kUnderWay);
  if (lane.inside || !lane.folded.is_none()) return;  // a connection of the network keeps no ports
  row.source_port = lane.source_port.value;
  row.destination_port = lane.destination_port.value;
}

/// The first participant that has not posted a call; none if all have.
inline ActorId who_is_missing(const Setup& setup, const JobState& job, CommunicatorCell communicator,
                              std::int64_t number) {
  const Communicator& of = setup.network->communicators[communicator];
  const auto& posted = job.communicators[communicator].posted;
  for (std::int32_t i = 0; i < of.participants; ++i) {
    const ActorId actor = setup.network->participants[static_cast<std::size_t>(of.first_participant + i)];
    const auto calls = posted.find(actor);
    if (calls == posted.end() || calls->second <= number) return actor;
  }
  return ActorId::none();
}

inline void add_calls(const Setup& setup, const JobState& job, std::vector<WaitRow>& found) {
  for (const CommunicatorCell communicator : job.communicators.ids()) {
    const Communicating& at = job.communicators[communicator];
    for (std::int64_t number = at.head; number < at.known(); ++number) {
      const CollectiveCall& call = at.call(number);
      const ActorId missing = who_is_missing(setup, job, communicator, number);
      const bool is_running = at.running && number == at.head;
      for (const StreamId stream : call.streams) {
        WaitRow row = wait_row(setup, job, stream, WaitKind::kCollective, call.row.value);
        row.peer = missing.is_none() ? -1 : setup.rank_of(missing).value;
        row.channel = setup.network->communicators[communicator].channel;
        row.ordinal = number;
        row.size_bytes = setup.in.job.collect(setup.in.job.ops[call.row]).size_bytes;
        row.state = static_cast<std::int64_t>(is_running ? WaitState::kUnderWay : WaitState::kNotPosted);
        row.missing = setup.network->communicators[communicator].participants - call.posted;
        found.push_back(row);
      }
    }
  }
}

}  // namespace detail

/// One row for each message, receive, collective, token or instant that a stream still waits for.
inline std::vector<WaitRow> waits_of(const Setup& setup, const JobState& job) {
  std::vector<WaitRow> found;
  IdVector<LaneId, std::vector<MessageId>> under_way(job.lanes.size());
  for (const MessageId id : job.messages.ids()) {
    const Message& message = job.messages[id];
    const Lane& lane = job.lanes[message.lane];
    if (message.delivered_at_ps < 0) under_way[message.lane].push_back(id);
    if (message.acked_at_ps >= 0) continue;
    WaitRow row = detail::wait_row(setup, job, message.stream, WaitKind::kSend, message.op);
    row.peer = lane.destination.value;
    row.channel = lane.channel;
    row.ordinal = message.ordinal;
    detail::describe(lane, message, row);
    found.push_back(row);
  }
  for (const LaneId id : job.lanes.ids()) {
    const Lane& lane = job.lanes[id];
    std::vector<MessageId>& posted = under_way[id];
    std::sort(posted.begin(), posted.end(),
              [&](MessageId a, MessageId b) { return job.messages[a].ordinal < job.messages[b].ordinal; });
    for (std::int64_t ordinal = lane.delivered; ordinal < lane.claimed; ++ordinal) {
      const Claim& claim = lane.claims[static_cast<std::size_t>(ordinal)];
      WaitRow row = detail::wait_row(setup, job, claim.stream, WaitKind::kReceive, claim.op);
      row.peer = lane.source.value;
      row.channel = lane.channel;
      row.ordinal = ordinal;
      const auto place = static_cast<std::size_t>(ordinal - lane.delivered);
      if (place < posted.size()) detail::describe(lane, job.messages[posted[place]], row);
      found.push_back(row);
    }
  }
  detail::add_calls(setup, job, found);
  for (const StreamId id : job.streams.ids()) {
    const StreamState& stream = job.streams[id];
    if (stream.done) continue;
    if (stream.wait == StreamWait::kTime) found.push_back(detail::wait_row(setup, job, id, WaitKind::kTime, stream.op));
    if (stream.wait != StreamWait::kToken) continue;
    found.push_back(detail::wait_row(setup, job, id, WaitKind::kToken, stream.op));
    found.back().ordinal = stream.token;
  }
  return found;
}

}  // namespace weftwork::flow
