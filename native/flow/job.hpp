/// Input of a job's graph: borrowed arrays of the flow engine's input.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/ids.hpp"
#include "base/job.hpp"
#include "base/pins.hpp"
#include "flow/ids.hpp"
#include "rows/flow_run.hpp"
#include "rows/job.hpp"

namespace weftwork::flow {

/// A job of R ranks.
struct Job : JobRows {
  Pins given;  // entropies of queue pairs

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
  [[nodiscard]] std::uint16_t own_entropy(std::uint64_t flow) const { return given.own_entropy(seed, flow); }
  [[nodiscard]] JobTables job_tables() const { return {tables, digits, rank_count()}; }
};

}  // namespace weftwork::flow
