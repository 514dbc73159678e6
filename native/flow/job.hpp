/// What the graph of a job is made from: the arrays of the flow engine's plan, borrowed.
#pragma once
#include <cstdint>
#include <span>

#include "base/job.hpp"

namespace weftwork::flow {

enum class Pattern : std::int64_t { kRing, kAllToAll };

/// A COLLECT row's own parameters, see weftwork.spec.job.Collect; `value` of the row indexes Job::collects.
struct CollectRow {
  std::int64_t first_axis, axes;  // of its Grid, in Job::axes
  std::int64_t pattern, amount_bytes, size_bytes, overhead_ps;
  double local_efficiency, network_efficiency, network_share;
};

struct AxisRow {
  std::int64_t stride, size;
};

/// A job of R ranks in C programs. Rows as in weftwork.engine.plan.
struct Job {
  std::uint64_t seed = 0;
  std::span<const OpRow> ops;
  std::span<const StreamRow> streams;  // ordered by program
  std::span<const std::int64_t> tables;
  std::span<const DigitRow> digits;
  std::span<const CollectRow> collects;
  std::span<const AxisRow> axes;
  std::span<const std::int32_t> rank_class;        // (R)
  std::span<const std::int64_t> class_first_rank;  // (C), from where the groups of a program count; empty: 0
  std::span<const std::int32_t> rank_host;         // (R), node of the fabric
  std::span<const std::int32_t> rank_ports;        // (R, columns), global ids of NIC ports
  std::span<const GpuRow> rank_gpu;                // (R)
  std::span<const double> rank_factor;             // (R), how many times longer a rank computes; empty: 1

  [[nodiscard]] std::int64_t ranks() const { return static_cast<std::int64_t>(rank_class.size()); }
  [[nodiscard]] std::size_t columns() const { return rank_class.empty() ? 1 : rank_ports.size() / rank_class.size(); }
  [[nodiscard]] std::int32_t port(std::int64_t rank, std::size_t column = 0) const {
    return rank_ports[static_cast<std::size_t>(rank) * columns() + column];
  }
  [[nodiscard]] std::int64_t first_rank(std::int64_t program) const {
    return class_first_rank.empty() ? 0 : class_first_rank[static_cast<std::size_t>(program)];
  }
};

}  // namespace weftwork::flow
