/// A whole run of the fluid engine with known starts, for benchmarks and tests.
/// Leaves out: anything that depends on a completion (the executor).
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "flow/records.hpp"

namespace weftwork::flow {

/// Variables in rows: the hops of variable v are hop_constraint and hop_weight from variable_ptr[v] to
/// variable_ptr[v + 1]. Starts are in order of time.
struct FluidInput {
  std::span<const double> capacity;  // by constraint
  std::span<const std::int64_t> variable_ptr;
  std::span<const ConstraintId> hop_constraint;
  std::span<const double> hop_weight;
  std::span<const double> start_at_ps;
  std::span<const VariableId> start_variable;
  std::span<const double> start_amount;
  double tolerance;
  std::int64_t check_every;  // events between two comparisons with textbook filling; 0: none
};

struct FluidReport {
  std::vector<double> completed_at_ps;  // by start
  std::vector<double> carried_units;    // by constraint
  double worst_rate_error = 0;
  double cpu_s = 0;  // of this thread, from the first start to the last completion
  std::int64_t most_alive = 0;
  FluidStats stats;
};

/// @throws std::runtime_error if activities stall for ever
FluidReport run_fluid(const FluidInput& input);

}  // namespace weftwork::flow
