/// What the compiled steps of policies are called with: signals that they read, and records that they keep.
/// Invariants: a signal holds what the last call has filled in, and `signal_has_hops` says whether its arrays are not
/// zero; `step_calls` counts every call of every policy, in the order of the run.
#pragma once
#include <cstdint>
#include <memory>
#include <vector>

#include "packet/input.hpp"
#include "rows/policies.hpp"

namespace weftwork {

struct PolicyCalls {
  std::int64_t stop_before_call;  // the one that a repeated run is for; 0: none
  std::int64_t step_calls = 0;    // of all policies, so far
  bool signal_has_hops = false;   // the arrays of `signal` are not zero
  Signal signal{};
  PortSignal port_signal{};
  std::vector<std::unique_ptr<std::uint64_t[]>> records;  // of policies

  explicit PolicyCalls(const Input& input) : stop_before_call(input.stop_before_call) {}
};

}  // namespace weftwork
