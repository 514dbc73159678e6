/// Input of a job's graph: borrowed arrays of the flow engine's input.
#pragma once
#include <cstdint>
#include <span>

#include "base/job.hpp"
#include "base/pins.hpp"
#include "flow/ids.hpp"

namespace weftwork::flow {

enum class Pattern : std::int64_t { kRing, kAllToAll };

/// A COLLECT row's own parameters, see weftwork.spec.job.Collect; `value` of the row indexes Job::collects.
struct CollectRow {
  std::int64_t first_axis, axes;  // of its Grid, in Job::axes
  std::int64_t pattern, amount_bytes, size_bytes, overhead_ps;
  double local_efficiency, network_efficiency, network_share;
  std::int64_t queue_pairs;  // over which what two ranks send each other is split evenly
};

struct AxisRow {
  std::int64_t stride, size;
};

/// A job of R ranks. Rows as in weftwork.engine.packet_input.
struct Job {
  std::uint64_t seed = 0;
  IdSpan<OpId, const OpRow> ops;
  std::span<const StreamRow> streams;  // ordered by program
  std::span<const std::int64_t> tables;
  std::span<const DigitRow> digits;
  IdSpan<CollectId, const CollectRow> collects;
  std::span<const AxisRow> axes;
  IdSpan<RankId, const ProgramId> rank_program;
  IdSpan<ProgramId, const std::int64_t> program_first_rank;  // from where the groups of a program count; empty: 0
  IdSpan<RankId, const NodeId> rank_host;
  std::span<const PortId> rank_ports;  // (R, columns), NIC ports
  IdSpan<RankId, const GpuRow> rank_gpu;
  IdSpan<RankId, const double> rank_factor;  // how many times longer a rank computes; empty: 1
  Pins pins;                                 // entropies of queue pairs that are given

  [[nodiscard]] auto ranks() const { return rank_program.ids(); }
  [[nodiscard]] std::size_t rank_count() const { return rank_program.size(); }
  [[nodiscard]] std::size_t columns() const { return rank_ports.empty() ? 1 : rank_ports.size() / rank_count(); }
  [[nodiscard]] PortId port(RankId rank, std::size_t column = 0) const {
    return rank_ports[rank.index() * columns() + column];
  }
  [[nodiscard]] RankId first_rank(ProgramId program) const {
    return program_first_rank.empty() ? RankId(0) : RankId(program_first_rank[program]);
  }
  [[nodiscard]] double factor(RankId rank) const { return rank_factor.empty() ? 1.0 : rank_factor[rank]; }
  [[nodiscard]] const CollectRow& collect(const OpRow& op) const { return collects[CollectId(op.value)]; }
  /// The entropy of a flow's queue pair where no policy chooses another.
  [[nodiscard]] std::uint16_t own_entropy(std::uint64_t flow) const { return pins.own_entropy(seed, flow); }
  [[nodiscard]] JobTables job_tables() const { return {tables, digits, rank_count()}; }
};

}  // namespace weftwork::flow
