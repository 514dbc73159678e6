/// A policy: it sees and writes the records of rows/policies.hpp. It is a pointer to a compiled step besides what
/// rows/packet_run.hpp has of it, also the bytes of its parameters and of its first state.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "rows/packet_run.hpp"
#include "rows/policies.hpp"

namespace weftwork {

inline constexpr double kNoWindowBytes = 9007199254740992.0;  // NO_WINDOW_BYTES

constexpr std::uint32_t bit(Kind kind) {
  return 1U << static_cast<unsigned>(kind);
}

using StepFunction = std::int32_t (*)(void* params, void* state, void* signal);
using ReceiveFunction = std::int32_t (*)(void* params, void* state, void* shared, void* signal);
using PortFunction = std::int32_t (*)(void* params, void* state, void* ports, void* signal, void* candidates);

struct CongestionPolicy : CongestionSettings {
  StepFunction step = nullptr;
  ReceiveFunction receive = nullptr;
};

struct PathPolicy : PathSettings {
  StepFunction step = nullptr;  // null: constant entropy
};

struct PortPolicy : PortSettings {
  PortFunction step = nullptr;
};

/// Which call of a step failed. A run is repeated up to this call to have its records, which plain Python replays to
/// name file and line.
struct PolicyFailure {
  std::string kind;          // of policy, as scenarios spell it
  bool of_receiver = false;  // the receiver's step of a congestion control, else the first one
  std::int64_t call = 0;     // counted over all steps of the run, from 1
  // Records before the call; empty but in the repeated run.
  std::vector<std::uint8_t> state, shared, signal, candidates, ports;
  std::int64_t via_changes = 0;  // how often the step has changed `via` of the packet at this switch
  bool stands_still = false;     // it set a timer to its own instant once too often
};

}  // namespace weftwork
