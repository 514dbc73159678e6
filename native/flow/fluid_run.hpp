/// A whole run of the fluid engine on starts that are known beforehand: what benchmarks time and tests compare.
/// Leaves out: anything that depends on a completion (the executor).
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "flow/records.hpp"

namespace weftwork::flow {

/// Classes in rows: the hops of class c are hop_link and hop_weight from class_ptr[c] to class_ptr[c + 1]. Starts are
/// in order of time.
struct FluidPlan {
  std::span<const double> capacity;
  std::span<const std::int64_t> class_ptr;
  std::span<const std::int32_t> hop_link;
  std::span<const double> hop_weight;
  std::span<const double> start_at_ps;
  std::span<const std::int32_t> start_class;
  std::span<const double> start_amount;
  double tolerance;
  std::int64_t check_every;  // events between two comparisons with textbook filling; 0: none
};

struct FluidReport {
  std::vector<double> completed_at_ps;  // by start
  std::vector<double> carried_units;    // by link
  double worst_rate_error = 0;
  double cpu_s = 0;  // of this thread, from the first start to the last completion
  std::int64_t most_alive = 0;
  FluidStats stats;
};

/// @throws std::runtime_error if activities stall for ever
FluidReport run_fluid(const FluidPlan& plan);

}  // namespace weftwork::flow
