/// From a job on a fabric to the network of the executor: folded, a critical core, or as it is. It is folded if that is
/// exact; the core is for jobs that are too large otherwise. Meaning: docs/models/flow-engine-folding.md.
#pragma once
#include <algorithm>
#include <cstdint>
#include <span>
#include <utility>

#include "flow/build.hpp"
#include "flow/core.hpp"

namespace weftwork::flow {

enum class Folding : std::int64_t {
  kAuto,   // exactly if that leaves few enough cells, else the core if the job has replicas, else not at all
  kNever,  // every rank its own actor
  kExact,  // exactly, however many cells are left
  kCore    // the core, also where it is not needed
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
inline Folded fold(const Job& job, IdSpan<LinkId, const double> capacity, Graph built, const FoldOptions& options) {
  Folded out;
  out.graph = std::move(built);
  const Graph& graph = out.graph;
  const Traits traits{.capacity = capacity,
                      .link_fate = options.link_fate,
                      .activity_fate = options.activity_fate,
                      .party = {},
                      .kind = {}};
  Folding folding = graph.meaning.has_later ? Folding::kNever : options.folding;
  if (folding == Folding::kAuto || folding == Folding::kExact) {
    out.cells = stable(job, graph, traits, folding == Folding::kAuto ? options.cell_limit : 0);
    if (!out.cells.is_stable) folding = Folding::kCore;
  }
  if (folding == Folding::kCore && !options.has_core) folding = Folding::kNever;
  if (folding == Folding::kCore) {
    Traits structural = traits;
    structural.use_links = false;
    Partition const structure =
        stable(job, graph, structural, options.folding == Folding::kCore ? 0 : options.cell_limit);
    if (structure.is_stable) {
      out.facts.rounds = structure.rounds;
      Core core =
          critical_core(job, graph, traits, options.core, options.folding == Folding::kCore ? 0 : options.cell_limit);
      out.network = std::move(core.network);
      out.fastest = std::move(core.fastest);
      out.slowest = std::move(core.slowest);
      out.cells = std::move(core.structure);
      out.facts.kept = core.kept;
      out.facts.replicas = core.replicas;
    } else {
      folding = Folding::kNever;
    }
  }
  if (folding == Folding::kNever) out.cells = identity(graph, capacity.size());
  if (folding != Folding::kCore) {
    out.facts.rounds = out.cells.rounds;
    out.network = quotient(job, graph, traits, out.cells);
  }
  out.facts.ranks = static_cast<std::int64_t>(job.rank_count());
  out.facts.actors = static_cast<std::int64_t>(out.network.actor_rank.size());
  out.facts.activities = static_cast<std::int64_t>(graph.latency_ps.size());
  out.facts.activity_cells = static_cast<std::int64_t>(out.network.latency_ps.size());
  IdVector<LinkId, char> crossed(capacity.size(), 0);
  for (const GraphHop& hop : graph.hops) crossed[hop.link] = 1;
  out.facts.links = std::count(crossed.begin(), crossed.end(), char{1});
  out.facts.link_cells = static_cast<std::int64_t>(out.network.capacity.size());
  out.facts.hops = static_cast<std::int64_t>(graph.hops.size());
  return out;
}

/// Fold a job on a fabric.
template <PathFinder Router>
Folded fold(const Job& job, const Links& links, const Router& router, const FoldOptions& options) {
  return fold(job, IdSpan<LinkId, const double>(links.capacity.items()), build_graph(job, links, router, options.wire),
              options);
}

/// Bytes that every link carries when each activity of a cell has got `amount` of its cell done: exact for a core
/// too.
inline IdVector<LinkId, double> carried(const Graph& graph, const IdVector<ActivityId, ActivityCell>& cell_of,
                                        IdSpan<ActivityCell, const double> amount, std::size_t links) {
  IdVector<LinkId, double> bytes(links, 0.0);
  for (const ActivityId a : graph.activities()) {
    const double own = amount[cell_of[a]];
    if (own == 0.0) continue;
    for (const GraphHop& hop : graph.hops_of(a)) bytes[hop.link] += own * graph.weights[hop.weight];
  }
  return bytes;
}

}  // namespace weftwork::flow
