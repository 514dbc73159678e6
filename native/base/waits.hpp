/// Waits of a job's streams at the end of a run: one row for each incomplete thing.
/// Source: docs/models/packet-engine.md, "Waits"; weftwork.engine.waits has the words.
#pragma once
#include <cstdint>

#include "base/ids.hpp"
#include "base/programs.hpp"

namespace weftwork {

enum class WaitKind : std::uint8_t { kSend, kReceive, kToken, kCollective, kTime };

/// How far it has come.
enum class WaitState : std::uint8_t { kNotPosted, kUnderWay, kArrived, kFailed };

struct WaitRow {
  std::int64_t rank;
  std::int64_t stream;      // among those of the rank
  std::int64_t stands_at;   // operation of the program at which the stream is
  std::int64_t turn;        // of the innermost loop
  std::int64_t kind;        // WaitKind
  std::int64_t op;          // that asked for it
  std::int64_t peer;        // other end of a message; of a collective the first rank that has not come; -1: none
  std::int64_t channel;     // -1: none
  std::int64_t ordinal;     // of the message on its channel, of the call in its group; of a token its number
  std::int64_t size_bytes;  // -1: not known
  std::int64_t state;       // WaitState
  std::int64_t source_port, destination_port;  // NIC ports of a message that is posted; -1 inside a server
  std::int64_t
      missing;  // members of a collective that have not come; of a send messages that arrived on its channel unasked
};

/// A wait of a stream of a rank of which nothing more is known: of no message that is posted.
inline WaitRow wait_of(RankId rank, std::int64_t stream, const StreamProgress& at, WaitKind kind, std::int64_t op) {
  WaitRow row{};
  row.rank = rank.value;
  row.stream = stream;
  row.stands_at = at.op;
  row.turn = at.turn();
  row.kind = static_cast<std::int64_t>(kind);
  row.op = op;
  row.peer = row.channel = row.ordinal = row.size_bytes = row.source_port = row.destination_port = -1;
  row.state = static_cast<std::int64_t>(WaitState::kNotPosted);
  return row;
}

/// A receive, or what else a stream waits for: who asked, by which operation.
struct Claim {
  StreamId stream;
  std::int32_t op;
};

}  // namespace weftwork
