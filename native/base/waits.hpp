/// Waits of a job's streams at the end of a run: one row for each incomplete thing.
/// Source: docs/models/packet-engine.md, "Waits"; weftwork.engine.waits has the words.
#pragma once
#include <cstdint>

#include "base/ids.hpp"
#include "base/programs.hpp"
#include "rows/waits.hpp"

namespace weftwork {

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
