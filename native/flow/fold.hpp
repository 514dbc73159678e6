/// From a job on a fabric to the network that the executor runs: folded where that is exact, a critical core where it
/// is not and the job is too large, else as it is. Meaning: docs/models/flow-engine-folding.md.
#pragma once
#include <algorithm>
#include <cstdint>
#include <span>
#include <utility>

#include "flow/build.hpp"
#include "flow/core.hpp"

namespace weftwork::flow {

enum class Folding : std::int64_t {
  kAuto,   // exactly if that leaves few enough classes, else the core if the job has replicas, else not at all
  kNever,  // every rank its own actor
  kExact,  // exactly, however many classes are left
  kCore    // the core, also where it is not needed
};

struct FoldOptions {
  Folding folding = Folding::kAuto;
  std::int64_t class_limit = 20'000;  // of activities; chosen: what the executor runs in seconds
  CoreSize core{};
  Wire wire;
  std::span<const std::uint64_t> link_fate;  // by link, see Marks
};

/// How it went, for people.
struct FoldFacts {
  std::int64_t ranks = 0, actors = 0;
  std::int64_t activities = 0, activity_classes = 0;
  std::int64_t links = 0, link_classes = 0;       // that anything crosses
  std::int64_t hops = 0, kept = 0, replicas = 0;  // of a core: activities, replicas that run one by one
  std::int64_t rounds = 0;
};

struct Folded {
  Network network;
  Network fastest, slowest;  // the bracket of a core, see core.hpp; else empty
  Graph graph;
  Partition classes;  // of the graph: `activity` has the class of each in the network; of a core, its kind
  FoldFacts facts;
};

template <PathFinder Router>
Folded fold(const Job& job, const Links& links, const Router& router, const FoldOptions& options) {
  Folded out;
  out.graph = build_graph(job, links, router, options.wire);
  const Graph& graph = out.graph;
  const Marks marks{.capacity = links.capacity, .link_fate = options.link_fate, .rank = {}, .kind = {}};
  Folding folding = graph.meaning.has_later ? Folding::kNever : options.folding;
  if (folding == Folding::kAuto || folding == Folding::kExact) {
    out.classes = stable(job, graph, marks, folding == Folding::kAuto ? options.class_limit : 0);
    if (!out.classes.is_stable) folding = Folding::kCore;
  }
  if (folding == Folding::kCore) {
    Marks structural = marks;
    structural.use_links = false;
    Partition const structure =
        stable(job, graph, structural, options.folding == Folding::kCore ? 0 : options.class_limit);
    if (structure.is_stable) {
      out.facts.rounds = structure.rounds;
      Core core =
          critical_core(job, graph, marks, options.core, options.folding == Folding::kCore ? 0 : options.class_limit);
      out.network = std::move(core.network);
      out.fastest = std::move(core.fastest);
      out.slowest = std::move(core.slowest);
      out.classes = std::move(core.structure);
      out.facts.kept = core.kept;
      out.facts.replicas = core.replicas;
    } else {
      folding = Folding::kNever;
    }
  }
  if (folding == Folding::kNever) out.classes = identity(graph, links.capacity.size());
  if (folding != Folding::kCore) {
    out.facts.rounds = out.classes.rounds;
    out.network = quotient(job, graph, marks, out.classes);
  }
  out.facts.ranks = job.ranks();
  out.facts.actors = out.network.actors();
  out.facts.activities = static_cast<std::int64_t>(graph.activities());
  out.facts.activity_classes = out.network.activities();
  std::vector<char> crossed(links.capacity.size(), 0);
  for (const Share& share : graph.hops) crossed[static_cast<std::size_t>(share.link)] = 1;
  out.facts.links = std::count(crossed.begin(), crossed.end(), char{1});
  out.facts.link_classes = static_cast<std::int64_t>(out.network.capacity.size());
  out.facts.hops = static_cast<std::int64_t>(graph.hops.size());
  return out;
}

/// Bytes that every link carries when each activity of a class has got `amount` of its class done: exact for a core
/// too.
inline std::vector<double> carried(const Graph& graph, std::span<const std::int32_t> class_of,
                                   std::span<const double> amount, std::size_t links) {
  std::vector<double> bytes(links, 0.0);
  for (std::size_t a = 0; a < graph.activities(); ++a) {
    const double own = amount[static_cast<std::size_t>(class_of[a])];
    if (own == 0.0) continue;
    for (const Share& share : graph.hops_of(a))
      bytes[static_cast<std::size_t>(share.link)] += own * graph.weights[share.weight];
  }
  return bytes;
}

}  // namespace weftwork::flow
