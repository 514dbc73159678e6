/// How a job is folded; flow/fold.hpp says into what.
#include "flow/fold.hpp"

#include <algorithm>
#include <utility>

#include "flow/core.hpp"
#include "flow/quotient.hpp"
#include "flow/refine.hpp"

namespace weftwork::flow {

Folded fold(const Job& job, IdSpan<LinkId, const double> capacity, Graph built, const FoldOptions& options) {
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

IdVector<LinkId, double> carried(const Graph& graph, const IdVector<ActivityId, ActivityCell>& cell_of,
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
