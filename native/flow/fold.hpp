/// From a job on a fabric to the network of the executor: folded, a critical core, or as it is. It is folded if that is
/// exact; the core is for jobs that are too large otherwise. Meaning: docs/models/flow-engine-folding.md.
#pragma once
#include <cstddef>
#include <cstdint>

#include "base/ids.hpp"
#include "flow/build.hpp"
#include "flow/graph.hpp"
#include "flow/ids.hpp"
#include "flow/job.hpp"
#include "flow/links.hpp"
#include "flow/network.hpp"
#include "flow/partition.hpp"
#include "flow/router.hpp"
#include "rows/flow_run.hpp"

namespace weftwork::flow {

/// How much is kept.
struct CoreSize {
  std::int64_t slots = 16'384;  // operations of all ranks of the replicas that are run; chosen: 21 of TP 8 and PP 16
  std::int32_t slowest = 4;     // of each kind that replicas share; chosen
  std::int32_t few = 256;       // kinds of no more are kept whole; chosen: the gradients of a stage
  std::int64_t companions = 60'000;  // chosen: of more, every second or third stands for them with as much more weight
};

struct FoldOptions {
  Folding folding = Folding::kAuto;
  std::int64_t cell_limit = 20'000;  // of activities; chosen: what the executor runs in seconds
  CoreSize core{};
  Wire wire;
  IdSpan<LinkId, const std::uint64_t> link_fate;          // see Traits
  IdSpan<ActivityId, const std::uint64_t> activity_fate;  // see Traits
  bool has_core = true;  // false: what does not fold exactly is run as it is, since paths change in mid-run
};

/// How it went, for people.
struct FoldFacts {
  std::int64_t ranks = 0, actors = 0;
  std::int64_t activities = 0, activity_cells = 0;
  std::int64_t links = 0, link_cells = 0;         // that anything crosses
  std::int64_t hops = 0, kept = 0, replicas = 0;  // of a core: activities, replicas that run one by one
  std::int64_t rounds = 0;
};

struct Folded {
  Network network;
  Network fastest, slowest;  // the bracket of a core, see core.hpp; else empty
  Graph graph;
  Partition cells;  // of the graph: `activity` has the cell of each in the network; of a core, its kind
  FoldFacts facts;
};

/// Fold a graph whose links have these capacities.
Folded fold(const Job& job, IdSpan<LinkId, const double> capacity, Graph built, const FoldOptions& options);

/// Fold a job on a fabric.
inline Folded fold(const Job& job, const Links& links, const Router& router, const FoldOptions& options) {
  return fold(job, IdSpan<LinkId, const double>(links.capacity.items()), build_graph(job, links, router, options.wire),
              options);
}

/// Bytes that every link carries when each activity of a cell has got `amount` of its cell done: exact for a core
/// too.
IdVector<LinkId, double> carried(const Graph& graph, const IdVector<ActivityId, ActivityCell>& cell_of,
                                 IdSpan<ActivityCell, const double> amount, std::size_t links);

}  // namespace weftwork::flow
