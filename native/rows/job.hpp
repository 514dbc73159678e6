// Written by `python -m weftwork.engine.rows` from its declarations; change those.
// clang-format off
/// A job as both engines take it.
#pragma once
#include <cstdint>
#include <span>

namespace weftwork {

/// Codes of operations.
enum class OpCode : std::int64_t {
  kStop = 0,
  kCompute = 1,
  kAt = 2,
  kSend = 3,
  kReceive = 4,
  kWait = 5,
  kNotify = 6,
  kAwait = 7,
  kMilestone = 8,
  kLoop = 9,
  kEnd = 10,
  kCollect = 11,
};

/// Rules of the peer of an operation.
enum class PeerRule : std::int64_t {
  kShift = 0,
  kXor = 1,
  kTable = 2,
  kRank = 3,
};

/// An operation of a program.
struct OpRow {
  /// of the operation
  std::int64_t code;
  /// as the code says: a duration, an instant, a token, a name, a count or a row
  std::int64_t value;
  /// index of an operation: behind the end of a loop, or the first one of its body
  std::int64_t target;
  /// of the peer
  std::int64_t rule;
  /// of the peer's group in ranks
  std::int64_t stride;
  /// of the peer's group in ranks
  std::int64_t size;
  /// -1, or index in the tables: coordinate of each rank, then rank of each coordinate
  std::int64_t members;
  /// of the peer in its group, at the first turn of a loop
  std::int64_t shift;
  /// added to the shift at each further turn
  std::int64_t step;
  /// rule TABLE: index in the tables of the first entry, one for each rank
  std::int64_t table;
  /// of which a message is a span of parts, or all where there are no parts [byte]
  std::int64_t total_bytes;
  /// of the total; 0: it is not divided
  std::int64_t parts;
  /// number of the first part, before the digits
  std::int64_t part_offset;
  /// of the part's number, in the digits of the job
  std::int64_t first_digit;
  /// of the part's number
  std::int64_t digits;
  /// parts in a message
  std::int64_t span;
  /// from one part of a message to the next
  std::int64_t span_stride;
  /// of the span in a message
  std::int64_t copies;
  /// of the message
  std::int64_t channel;
  /// class index of the message's packets
  std::int64_t data_class;
  /// column of the ranks' ports
  std::int64_t nic;
  /// 1: the receiver's port numbers hold at both ends
  std::int64_t peer_rail;
  /// NOTIFY: delay of the token [ps]
  std::int64_t after_ps;
  /// of the time that the operation takes; -1: none; only the flow engine reads it
  std::int64_t label;
};

/// A term of the number of a part.
struct DigitRow {
  /// SHIFT or XOR
  std::int64_t rule;
  /// of the group in ranks
  std::int64_t stride;
  /// of the group in ranks
  std::int64_t size;
  /// -1, or index in the tables: coordinate of each rank, then rank of each coordinate
  std::int64_t members;
  /// of the coordinate, at the first turn of a loop
  std::int64_t shift;
  /// added to the shift at each further turn
  std::int64_t step;
  /// by which the coordinate is multiplied
  std::int64_t weight;
};

/// Ports of a rank inside its server.
struct GpuRow {
  /// unique in its server; -1: none
  std::int64_t nvlink_domain;
  /// of the rank's port, one direction [bit/s]
  std::int64_t nvlink_rate_bps;
  /// from GPU_ROW to GPU_ROW [ps]
  std::int64_t nvlink_latency_ps;
  /// of the rank's port, one direction [bit/s]
  std::int64_t pcie_rate_bps;
  /// from GPU_ROW to GPU_ROW [ps]
  std::int64_t pcie_latency_ps;
  /// in which messages take turns [byte]
  std::int64_t slice_bytes;
};

/// A stream of a program, ordered by program.
struct StreamRow {
  /// to which the stream belongs
  std::int64_t rank_program;
  /// index of its first operation
  std::int64_t first_op;
};

}  // namespace weftwork

namespace weftwork::flow {

/// Transfers of a collective.
enum class Pattern : std::int64_t {
  kRing = 0,
  kAllToAll = 1,
};

/// A collective as one operation, see weftwork.spec.job.Collect; only the flow engine reads it.
struct CollectRow {
  /// of its grid, in the axes of the job
  std::int64_t first_axis;
  /// of its grid
  std::int64_t axes;
  /// of its transfers
  std::int64_t pattern;
  /// that a member sends [byte]
  std::int64_t amount_bytes;
  /// of the collective, as its name says it [byte]
  std::int64_t size_bytes;
  /// of software [ps]
  std::int64_t overhead_ps;
  /// share of the rate inside servers
  double local_efficiency;
  /// share of the rate of the network
  double network_efficiency;
  /// share of the bytes that crosses the network
  double network_share;
  /// over which the bytes between two ranks are split evenly
  std::int64_t queue_pairs;
};

/// An axis of the grid of a collective.
struct AxisRow {
  /// in ranks
  std::int64_t stride;
  /// in ranks
  std::int64_t size;
};

}  // namespace weftwork::flow
