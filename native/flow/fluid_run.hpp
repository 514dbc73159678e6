/// A whole run of the fluid engine with known starts, for benchmarks and tests.
/// Leaves out: anything that depends on a completion (the executor).
#pragma once
#include <cstdint>
#include <vector>

#include "flow/ids.hpp"
#include "flow/records.hpp"
#include "rows/flow_run.hpp"

namespace weftwork::flow {

struct FluidReport {
  std::vector<double> completed_at_ps;  // by start
  std::vector<double> carried_units;    // by constraint
  double worst_rate_error = 0;
  double cpu_s = 0;  // of this thread, from the first start to the last completion
  std::int64_t most_alive = 0;
  FluidStats stats;
};

/// The hops of variable v are hop_constraint and hop_weight from variable_ptr[v] to variable_ptr[v + 1].
/// @throws std::runtime_error if activities stall for ever
FluidReport run_fluid(const FluidInput& input);

}  // namespace weftwork::flow
