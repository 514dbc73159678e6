/// Waits of a job's streams at the end of a run of the packet engine.
/// Source: docs/models/packet-engine.md, "Waits".
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/flow_identity.hpp"
#include "base/ids.hpp"
#include "base/programs.hpp"
#include "base/waits.hpp"
#include "packet/hosts.hpp"
#include "packet/ids.hpp"
#include "packet/job_records.hpp"
#include "packet/job_state.hpp"
#include "packet/queue_pair_records.hpp"
#include "packet/setup.hpp"
#include "packet/state.hpp"
#include "rows/waits.hpp"

namespace weftwork {

namespace detail {

inline WaitRow wait_row(const JobState& job, StreamId id, WaitKind kind, std::int64_t op) {
  const StreamState& stream = job.streams[id];
  return wait_of(stream.rank, id - job.first_stream[stream.rank], stream, kind, op);
}

/// Say what is known of a message that is posted.
inline void describe(const Hosts& hosts, const Message& message, WaitRow& row) {
  row.size_bytes = message.size_bytes;
  WaitState state = message.delivered_at_ps >= 0 ? WaitState::kArrived : WaitState::kUnderWay;
  if (!message.queue_pair.is_none()) {
    const QueuePair& qp = hosts.queue_pairs[message.queue_pair];
    row.source_port = qp.source_port.value;
    row.destination_port = qp.destination_port.value;
    if (qp.sender.failed && state == WaitState::kUnderWay) state = WaitState::kFailed;
  }
  row.state = static_cast<std::int64_t>(state);
}

}  // namespace detail

/// One row for each message, receive, token or instant that a stream still waits for.
inline std::vector<WaitRow> waits_of(const Setup& setup, const Hosts& hosts, const JobState& job) {
  std::vector<WaitRow> found;
  const bool matches_any = setup.in.transport.matches_any != 0;
  // Messages of a flow that a receive may wait for, in order: where any message completes any receive, all of them.
  std::unordered_map<std::uint64_t, std::vector<MessageId>> awaited;
  for (const MessageId id : job.messages.ids()) {
    const Message& message = job.messages[id];
    const std::uint64_t flow = flow_of(hosts, job, message);
    if (matches_any || message.delivered_at_ps < 0) awaited[flow].push_back(id);
    if (message.acked_at_ps >= 0) continue;
    WaitRow row = detail::wait_row(job, message.stream, WaitKind::kSend, message.op);
    const FlowEnds ends = flow_ends(flow);
    row.peer = ends.destination;
    row.channel = ends.channel;
    row.ordinal = message.ordinal;
    detail::describe(hosts, message, row);
    const auto box = job.mailboxes.find(flow);
    if (box != job.mailboxes.end()) row.missing = box->second.delivered - box->second.completed;
    found.push_back(row);
  }
  for (const auto& [flow, box] : job.mailboxes) {
    const auto found_messages = awaited.find(flow);
    const std::span<const MessageId> messages =
        found_messages == awaited.end() ? std::span<const MessageId>{} : found_messages->second;
    const std::int64_t left_out = matches_any ? 0 : box.delivered;  // messages that no receive waits for
    for (std::int64_t place = box.delivered - left_out;; ++place) {
      const bool is_posted = std::cmp_less(place, messages.size());
      const Message* message = is_posted ? &job.messages[messages[static_cast<std::size_t>(place)]] : nullptr;
      const std::int64_t ordinal = is_posted ? message->ordinal : left_out + place;
      if (ordinal >= box.claimed) break;
      const Claim& claim = box.waiting[ClaimId(ordinal)];
      WaitRow row = detail::wait_row(job, claim.stream, WaitKind::kReceive, claim.op);
      const FlowEnds ends = flow_ends(flow);
      row.peer = ends.source;
      row.channel = ends.channel;
      row.ordinal = ordinal;
      if (is_posted) detail::describe(hosts, *message, row);
      found.push_back(row);
    }
  }
  for (const StreamId id : job.streams.ids()) {
    const StreamState& stream = job.streams[id];
    if (stream.done) continue;
    if (stream.wait == StreamWait::kTime) found.push_back(detail::wait_row(job, id, WaitKind::kTime, stream.op));
    if (stream.wait != StreamWait::kToken) continue;
    found.push_back(detail::wait_row(job, id, WaitKind::kToken, stream.op));
    found.back().ordinal = stream.token;
  }
  return found;
}

}  // namespace weftwork
