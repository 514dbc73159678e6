/// The job of a flow run: its streams, what they wait for, and its messages and calls.
/// Invariants: `open_work` is the number of streams that have not ended and of messages and calls that are not
/// complete; messages of a lane are linked in the order of posting; the calls of a communicator run one after the
/// other.
#pragma once
#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "base/clock.hpp"
#include "base/ids.hpp"
#include "base/programs.hpp"
#include "base/waits.hpp"
#include "flow/ids.hpp"
#include "flow/traffic.hpp"

namespace weftwork::flow {

/// What the end of an operation was due to: what the time before it went to.
struct Cause {
  std::int32_t label = -1;
  bool is_transfer = false;
  Ps began_at_ps = 0;  // of the transfer: before, nothing was in progress
};

struct StreamState : StreamProgress {
  ActorId actor;
  std::int32_t number = 0;  // among the streams of the actor
  Ps since_ps = 0;          // when it was blocked
  Cause cause;              // of what completed last
};

struct Message {
  std::int64_t size_bytes = 0, ordinal = 0;
  Ps posted_at_ps = 0, began_at_ps = -1, delivered_at_ps = -1, acked_at_ps = -1;
  LaneId lane;
  StreamId stream;
  MessageId next;  // of the lane
  std::int32_t label = -1, left = 0;
  std::int32_t op = 0;  // that posted it
};

/// Messages of one (source, destination, channel), one after the other.
struct Lane {
  PathId detour;                     // of adaptive routing; none: there is no other way
  Adapted adapted;                   // of the head
  VariableId variable;               // of both ways
  RankId source{0}, destination{0};  // or representatives of actors
  std::int64_t channel = 0;
  std::int32_t column = 0;
  PortId source_port, destination_port;
  bool inside = false, peer_rail = false;
  bool queued = false;          // inside a server: known to its egress
  std::int64_t sent_bytes = 0;  // inside a server: of the head
  double waited_ps = 0;         // of the head, for timeouts on paths that it has left
  double left_share = 1;        // of the head, since it has its path
  ConnectionCell folded;        // of the network
  PathId path;                  // unless folded
  MessageId head, tail;
  std::int64_t messages = 0, packets = 0;
  std::int64_t claimed = 0, delivered = 0;
  std::vector<Claim> claims;  // in order
};

/// A rank's port inside its server: lanes in the order in which they were opened, and whose turn it is.
struct Egress {
  std::vector<LaneId> lanes;
  std::size_t next = 0;
  bool busy = false;
};

struct CollectiveCall {
  OperationCell operation;
  std::int32_t posted = 0, left = 0;
  OpId row;
  Ps posted_at_ps = 0, complete_at_ps = 0, ready_at_ps = 0, began_at_ps = -1;
  ActorId actor;  // who posted first
  std::vector<StreamId> streams;
};

struct Communicating {                // a communicator at work
  std::vector<CollectiveCall> calls;  // from number `first` on
  std::int64_t first = 0;             // calls before it have ended, and are forgotten
  std::int64_t head = 0;              // the call that runs, or is to run next
  bool running = false;
  std::unordered_map<ActorId, std::int64_t> posted;  // calls

  [[nodiscard]] std::int64_t known() const { return first + static_cast<std::int64_t>(calls.size()); }
  [[nodiscard]] CollectiveCall& call(std::int64_t number) { return calls[static_cast<std::size_t>(number - first)]; }
  [[nodiscard]] const CollectiveCall& call(std::int64_t number) const {
    return calls[static_cast<std::size_t>(number - first)];
  }

  /// The call at the head has ended.
  void pass() {
    head += 1;
    const std::int64_t ended = head - first;
    if (ended < kKeptCalls || 2 * ended < static_cast<std::int64_t>(calls.size())) return;
    calls.erase(calls.begin(), calls.begin() + ended);
    first = head;
  }

 private:
  static constexpr std::int64_t kKeptCalls = 16;  // chosen: with fewer it would move calls for each
};

struct JobState {
  IdVector<StreamId, StreamState> streams;
  IdVector<ActorId, StreamId> first_stream;  // (A + 1)
  std::vector<std::int64_t> tokens;          // by actor and token
  std::vector<Cause> token_causes;
  IdVector<MessageId, Message> messages;
  std::vector<MessageId> free_messages;  // of folded runs, which keep none
  IdVector<LaneId, Lane> lanes;
  std::unordered_map<std::uint64_t, LaneId> lane_of_flow;
  IdVector<CommunicatorCell, Communicating> communicators;
  std::unordered_map<ServerPortId, Egress> egresses;
  std::unordered_map<ServerPortId, Ps> ingress_free_ps;
  std::int64_t open_work = 0;
  std::int64_t delivered_bytes = 0;

  [[nodiscard]] auto actors() const { return id_range(ActorId(0), first_stream.next_id() + -1); }
};

}  // namespace weftwork::flow
