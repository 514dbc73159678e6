/// The job: its streams, what they wait for, and its messages, between servers and inside them.
/// Invariants: `open_work` is the number of streams that have not ended and of messages that are not acknowledged; a
/// mailbox has completed the lesser of what was delivered and what was claimed; messages of a lane or a queue pair are
/// linked in the order of posting.
#pragma once
#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "base/ids.hpp"
#include "packet/containers.hpp"
#include "packet/input.hpp"
#include "packet/job_records.hpp"
#include "packet/server_records.hpp"
#include "rows/outcome.hpp"

namespace weftwork {

struct JobState {
  std::size_t tokens_of_rank;
  IdVector<StreamId, StreamState> streams;
  IdVector<RankId, StreamId> first_stream;  // one more at the end
  std::vector<std::int64_t> tokens;         // by rank, then token
  std::vector<MilestoneRecord> milestones;
  StableVector<MessageId, Message> messages;
  std::unordered_map<std::uint64_t, Mailbox> mailboxes;
  IdVector<LaneId, Lane> lanes;
  std::unordered_map<std::uint64_t, LaneId> lane_of_flow;
  IdVector<RankId, ServerRank> server_ranks;  // empty without messages inside a server
  std::int64_t delivered_bytes = 0;           // payload that has arrived once, for progress
  std::int64_t open_work = 0;                 // streams that have not ended and messages that are not acknowledged

  explicit JobState(const Input& input) : tokens_of_rank(static_cast<std::size_t>(input.tokens)) {}

  /// How often `token` was raised at a rank and not taken.
  [[nodiscard]] std::int64_t& token(RankId rank, std::int64_t token) {
    return tokens[rank.index() * tokens_of_rank + static_cast<std::size_t>(token)];
  }
};

}  // namespace weftwork
