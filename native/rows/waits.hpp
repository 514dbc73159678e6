// Written by `python -m weftwork.engine.rows` from its declarations; change those.
// clang-format off
/// What a run waits for at its end.
#pragma once
#include <cstdint>
#include <span>

namespace weftwork {

/// Kinds of things that streams wait for.
enum class WaitKind : std::uint8_t {
  kSend = 0,
  kReceive = 1,
  kToken = 2,
  kCollective = 3,
  kTime = 4,
};

/// How far a thing has come.
enum class WaitState : std::uint8_t {
  kNotPosted = 0,
  kUnderWay = 1,
  kArrived = 2,
  kFailed = 3,
};

/// An incomplete thing that a stream waits for.
struct WaitRow {
  /// that waits; where ranks are folded the one that stands for those that are alike
  std::int64_t rank;
  /// among those of the rank
  std::int64_t stream;
  /// operation of the program at which the stream is
  std::int64_t stands_at;
  /// of the innermost loop
  std::int64_t turn;
  /// index into WAIT_KINDS
  std::int64_t kind;
  /// operation that asked for it
  std::int64_t op;
  /// other end of a message; of a collective the first rank that has not come; -1: none
  std::int64_t peer;
  /// -1: none
  std::int64_t channel;
  /// of the message on its channel, of the call in its group, number of a token; -1: none
  std::int64_t ordinal;
  /// -1: not known [byte]
  std::int64_t size_bytes;
  /// index into WAIT_STATES
  std::int64_t state;
  /// NIC_ROW port of a message that is posted; -1: none
  std::int64_t source_port;
  /// NIC_ROW port of a message that is posted; -1: none
  std::int64_t destination_port;
  /// members of a collective that have not come; of a send messages that came unasked
  std::int64_t missing;
};

/// One step of a deadlock: a class waits at a port, which the node of the next row's port has paused.
struct DeadlockRow {
  /// paused by the node of the next row's port; the last one by that of the first
  std::int64_t port;
  /// index of the class that is paused
  std::int64_t traffic_class;
  /// frames of that class that wait at the port [byte]
  std::int64_t waiting_bytes;
  /// what the far end's ingress holds of it, headroom included [byte]
  std::int64_t held_bytes;
};

}  // namespace weftwork
