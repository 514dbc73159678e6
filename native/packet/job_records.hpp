/// Records of a job's messages, receives and programs.
#pragma once
#include <cstdint>

#include "base/clock.hpp"
#include "base/ids.hpp"
#include "base/programs.hpp"
#include "base/waits.hpp"
#include "packet/ids.hpp"
#include "rows/outcome.hpp"

namespace weftwork {

struct Message {
  std::int64_t size_bytes = 0;
  Ps posted_at_ps = 0, delivered_at_ps = -1, acked_at_ps = -1;
  std::int64_t first = 0, end = 0;  // packet numbers
  QueuePairId queue_pair;           // none inside a server
  LaneId lane;                      // none between servers
  MessageId next;                   // of the same queue pair or lane
  StreamId stream;
  std::int32_t ordinal = 0;
  std::int32_t op = 0;  // that posted it
  TrafficClass klass{0};
};

/// Receives of one (source, destination, channel), known to the destination before its first message too.
struct Mailbox {
  std::int64_t delivered = 0;
  std::int64_t claimed = 0;
  std::int64_t completed = 0;  // receives, of those that were claimed
  IdVector<ClaimId, Claim> waiting;
  QueuePairId queue_pair;  // none before its first message
};

struct StreamState : StreamProgress {
  RankId rank;
};

}  // namespace weftwork
