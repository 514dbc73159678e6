/// The critical core: the part of a job whose paths do not fold.
///
/// Replicas are sets of ranks that meet others in large groups only. The slowest of them, guessed from rates at which
/// everything is active, are run one by one; all others go in lockstep, as their typical members do. Ranks and
/// activities are then folded by structure alone, whatever paths they take: a cell of activities is a *kind*. Kept are
///   - all activities of the slowest replicas;
///   - of each kind of the others the one of median rate, by which its kind goes;
///   - of kinds that replicas share (gradients) all, where they are few, else the slowest;
///   - whatever else crosses a saturated link of these: companions, which start with their kind, and for which nobody
///   waits.
/// What is kept out neither delays nor is seen. Approximate: docs/models/flow-engine-folding.md has the error where
/// exact runs are possible. The bracket is of two networks in which every kind has a rate of its own. In the fastest it
/// is that of the member which is fastest alone on its path: no transfer of the job can be faster, so the job cannot
/// end sooner. In the slowest it is capacity / weight of all activities of the job, the least over all links of all
/// members: max-min gives no transfer less, whatever else is active, so the job cannot end later.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <utility>
#include <vector>

#include "base/ids.hpp"
#include "flow/fold.hpp"
#include "flow/graph.hpp"
#include "flow/ids.hpp"
#include "flow/job.hpp"
#include "flow/network.hpp"
#include "flow/partition.hpp"
#include "flow/quotient.hpp"
#include "flow/rates.hpp"
#include "flow/refine.hpp"
#include "flow/replicas.hpp"

namespace weftwork::flow {

struct Core {
  Network network, fastest, slowest;
  Partition structure;
  std::int64_t kept = 0;      // activities of the graph that are in the core
  std::int64_t replicas = 0;  // that are run one by one
};

namespace detail {

using KindId = ActivityCell;  // of the structure

inline constexpr double kFull = 1.0 - 1e-9;
inline constexpr std::int64_t kLeastReplicas = 8;  // chosen: of fewer sets none is typical

/// Activities by kind.
struct Kinds {
  IdVector<KindId, std::int64_t> ptr;
  std::vector<ActivityId> activity;

  [[nodiscard]] std::size_t size() const { return ptr.size() - 1; }
  [[nodiscard]] auto ids() const { return id_range(KindId(0), KindId(size())); }
  explicit Kinds(const Partition& structure) : ptr(static_cast<std::size_t>(structure.activities) + 1, 0) {
    for (const KindId kind : structure.activity) ++ptr[kind + 1];
    for (const KindId kind : ids()) ptr[kind + 1] += ptr[kind];
    activity.resize(structure.activity.size());
    IdVector<KindId, std::int64_t> next = ptr;
    for (const ActivityId a : structure.activity.ids()) activity[next[structure.activity[a]]++] = a;
  }
  [[nodiscard]] std::span<const ActivityId> of(KindId kind) const {
    return {activity.data() + ptr[kind], activity.data() + ptr[kind + 1]};
  }
};

/// Rates with everything active, and which links are then saturated.
struct Busy {
  IdVector<ActivityId, double> rate;
  IdVector<ActivityId, LinkId> bottleneck;
  IdVector<LinkId, char> is_saturated;

  Busy(const Graph& graph, const Traits& traits)
      : bottleneck(graph.latency_ps.size()), is_saturated(traits.capacity.size(), 0) {
    CrossedConstraints crossed;
    IdVector<LinkId, ConstraintId> constraint_of(traits.capacity.size());
    IdVector<ConstraintId, LinkId> link_of;
    crossed.constraint.reserve(graph.hops.size());
    crossed.weight.reserve(graph.hops.size());
    for (const ActivityId a : graph.activities()) {
      for (const GraphHop& hop : graph.hops_of(a)) {
        ConstraintId& constraint = constraint_of[hop.link];
        if (constraint.is_none()) {
          constraint = link_of.next_id();
          link_of.push_back(hop.link);
        }
        crossed.constraint.push_back(constraint);
        crossed.weight.push_back(graph.weights[hop.weight]);
      }
      crossed.close();
    }
    for (const LinkId link : link_of) crossed.capacity.push_back(traits.capacity[link]);
    Filled filled = fill(crossed);
    const IdVector<ConstraintId, double> load = loads(crossed, filled.rate);
    for (const ConstraintId c : link_of.ids())
      is_saturated[link_of[c]] = load[c] >= crossed.capacity[c] * kFull ? 1 : 0;
    for (const ActivityId a : graph.activities())
      if (!filled.bottleneck[a].is_none()) bottleneck[a] = link_of[filled.bottleneck[a]];
    rate = std::move(filled.rate);
  }
};

enum class Keep : std::uint8_t { kOut, kWaited, kCompanion };

/// Chooses the activities of the core.
class Choice {
 public:
  IdVector<ActivityId, Keep> keep;
  std::int64_t companion_of = 1;  // how many companions one stands for

  Choice(const Graph& graph, const Kinds& kinds, const Busy& busy, const Chosen& chosen, const CoreSize& size)
      : keep(graph.latency_ps.size(), Keep::kOut), graph_(graph), busy_(busy), hot_(busy.is_saturated.size(), 0) {
    for (const KindId kind : kinds.ids()) {
      const auto own = kinds.of(kind);
      if (is_shared(own[0], chosen)) {
        if (own.size() <= static_cast<std::size_t>(size.few))
          for (const ActivityId a : own) keep[a] = Keep::kWaited;
        take_slowest(own, static_cast<std::size_t>(size.slowest));
      } else {
        bool is_heard = false;
        for (const ActivityId a : own)
          if (chosen.speaks[rank_of(a)] != 0) {
            take(a);
            is_heard = true;
          }
        if (!is_heard) take_slowest(own, 1);  // groups that replicas share split parties
      }
    }
    std::vector<std::pair<LinkId, ActivityId>> companions;  // a saturated link that each crosses first
    for (const ActivityId a : keep.ids()) {
      if (keep[a] != Keep::kOut) continue;
      const auto hops = graph.hops_of(a);
      const auto full = std::find_if(hops.begin(), hops.end(), [&](const GraphHop& hop) { return is_hot(hop.link); });
      if (full != hops.end()) companions.emplace_back(full->link, a);
    }
    std::sort(companions.begin(), companions.end());  // so that every link keeps its part
    const auto found = static_cast<std::int64_t>(companions.size());
    companion_of = std::max<std::int64_t>(1, (found + size.companions - 1) / size.companions);
    for (std::int64_t i = companion_of / 2; i < found; i += companion_of) keep[companions[i].second] = Keep::kCompanion;
  }

  /// Whether a link holds back an activity that is waited for.
  [[nodiscard]] bool is_hot(LinkId link) const { return hot_[link] != 0; }

 private:
  /// One of its ranks.
  [[nodiscard]] RankId rank_of(ActivityId a) const {
    return graph_.is_connection(a) ? graph_.source[graph_.connection_of(a)] : graph_.members_of(a)[0];
  }
  /// Whether several replicas take part.
  [[nodiscard]] bool is_shared(ActivityId a, const Chosen& chosen) const {
    if (graph_.is_connection(a)) return false;
    const auto members = graph_.members_of(a);
    return std::any_of(members.begin(), members.end(),
                       [&](RankId member) { return chosen.replica[member] != chosen.replica[members[0]]; });
  }

  /// Keep an activity, and its bottleneck.
  void take(ActivityId a) {
    keep[a] = Keep::kWaited;
    if (!busy_.bottleneck[a].is_none()) hot_[busy_.bottleneck[a]] = 1;
  }

  void take_slowest(std::span<const ActivityId> kind, std::size_t count) {
    order_.assign(kind.begin(), kind.end());
    const std::size_t end = std::min(order_.size(), count);
    std::partial_sort(
        order_.begin(), order_.begin() + static_cast<std::ptrdiff_t>(end), order_.end(),
        [&](ActivityId a, ActivityId b) { return std::pair(busy_.rate[a], a) < std::pair(busy_.rate[b], b); });
    for (std::size_t i = 0; i < end; ++i) take(order_[i]);
  }

  const Graph& graph_;
  const Busy& busy_;
  IdVector<LinkId, char> hot_;
  std::vector<ActivityId> order_;
};

/// The kept activities alone, links numbered as before: by kind, those that are waited for first. `kind_of` tells twice
/// the kind of each, and one more for companions.
inline Graph kept_part(const Graph& graph, const Kinds& kinds, const Choice& choice,
                       IdVector<ActivityId, std::int32_t>& kind_of) {
  Graph part;
  part.weights = graph.weights;
  for (const KindId kind : kinds.ids())
    for (const Keep wanted : {Keep::kWaited, Keep::kCompanion})
      for (const ActivityId a : kinds.of(kind)) {
        if (choice.keep[a] != wanted) continue;
        for (const GraphHop& hop : graph.hops_of(a))
          if (wanted == Keep::kWaited || choice.companion_of == 1 || choice.is_hot(hop.link)) part.hops.push_back(hop);
        part.hop_ptr.push_back(static_cast<std::int64_t>(part.hops.size()));
        part.latency_ps.push_back(graph.latency_ps[a]);
        kind_of.push_back(2 * kind.value + (wanted == Keep::kCompanion ? 1 : 0));
      }
  return part;
}

/// Actors, connections, communicators and operations of the structure; activities are for the caller to add.
inline Network skeleton(const Job& job, const Graph& graph, const Partition& structure) {
  Network network;
  network.folded = true;
  network.approximate = true;
  const Cells kinds(structure.activity, structure.activities);
  for (const KindId kind : kinds.ids()) {
    const ActivityId a = kinds.first[kind];
    if (graph.is_connection(a)) {
      const ConnectionId c = graph.connection_of(a);
      network.connections.push_back({structure.rank[graph.source[c]], structure.rank[graph.destination[c]],
                                     ActivityCell(0), 0, graph.channel[c], kinds.count[kind]});
    } else {
      const OperationId o = graph.operation_of(a);
      network.operations.push_back({structure.communicator[graph.communicator[o]], ActivityCell(0), 0, graph.flows[o]});
    }
  }
  add_communicators(graph, structure, network);
  const auto connections = static_cast<std::int32_t>(network.connections.size());
  add_actors(job, graph, structure, network, [&](ActivityId activity) {
    const std::int32_t kind = structure.activity[activity].value;
    return graph.is_connection(activity) ? kind : kind - connections;
  });
  return network;
}

/// Say which activities a kind has.
inline void give(Network& network, KindId kind, ActivityCell first, std::int32_t count, std::int32_t companions) {
  const auto tell = [&](auto& row) {
    row.first_activity = first;
    row.activities = count;
    row.companions = companions;
  };
  const std::size_t connections = network.connections.size();
  if (kind.index() < connections)
    tell(network.connections[ConnectionCell(kind.value)]);
  else
    tell(network.operations[OperationCell(kind.index() - connections)]);
}

/// A network in which each kind has a link to itself, of a given rate.
inline Network apart(const Network& skeleton, const IdVector<KindId, double>& rate,
                     const IdVector<KindId, std::int64_t>& latency_ps, const Kinds& kinds, std::size_t links) {
  Network network = skeleton;
  network.link_cell.assign(links, LinkCell::none());
  for (const KindId kind : rate.ids()) {
    if (rate[kind] < std::numeric_limits<double>::infinity()) {
      network.hops.push_back({network.capacity.next_id(), 1.0});
      network.capacity.push_back(rate[kind]);
      network.link_count.push_back(0);
    }
    network.hop_ptr.push_back(static_cast<std::int64_t>(network.hops.size()));
    network.latency_ps.push_back(latency_ps[kind]);
    network.activity_instances.push_back(static_cast<std::int64_t>(kinds.of(kind).size()));
    give(network, kind, kind, 1, 0);
  }
  return network;
}

}  // namespace detail

/// The critical core of a graph.
inline Core critical_core(const Job& job, const Graph& graph, const Traits& traits, const CoreSize& size,
                          std::int64_t cell_limit) {
  using detail::KindId;
  Core core;
  const detail::Busy busy(graph, traits);
  Chosen chosen = choose_replicas(job, graph, busy.rate, replicas_of(graph, detail::kLeastReplicas), size.slots);
  Traits structural = traits;
  structural.use_links = false;
  structural.party = IdSpan<RankId, const PartyId>(chosen.party.items());
  core.structure = stable(job, graph, structural, cell_limit);
  if (!core.structure.is_stable) {  // groups that replicas share make all of them different: one party, all in lockstep
    structural.party = {};
    core.structure = stable(job, graph, structural, 0);
    chosen.parties = 1;
    for (const RankId r : graph.ranks())
      chosen.speaks[r] = chosen.speaks[r] != 0 && chosen.party[r] == PartyId(0) ? 1 : 0;
  }
  core.replicas = chosen.parties;
  const detail::Kinds kinds(core.structure);
  const detail::Choice choice(graph, kinds, busy, chosen, size);
  IdVector<ActivityId, std::int32_t> kind_of;  // by activity of the part, ascending
  const Graph part = detail::kept_part(graph, kinds, choice, kind_of);
  core.kept = static_cast<std::int64_t>(part.latency_ps.size());
  Traits own = traits;
  own.kind = IdSpan<ActivityId, const std::int32_t>(kind_of.items());
  const Partition cells = stable(job, part, own, 0);

  const Network bare = detail::skeleton(job, graph, core.structure);
  core.network = bare;
  core.network.link_cell = cells.link;
  const detail::Cells links(cells.link, cells.links);
  for (const LinkCell c : links.ids()) {
    core.network.capacity.push_back(traits.capacity[links.first[c]]);
    core.network.link_count.push_back(static_cast<std::int32_t>(links.count[c]));
  }
  const detail::Cells activities(cells.activity, cells.activities);  // in the order of kinds
  detail::CellSum sum(cells.links);
  struct Part {  // of a kind
    ActivityCell first{0};
    std::int32_t waited = 0, companions = 0;
  };
  IdVector<KindId, Part> parts(kinds.size());
  for (const ActivityCell c : activities.ids()) {
    const ActivityId a = activities.first[c];
    const bool is_companion = kind_of[a] % 2 != 0;
    Part& of_kind = parts[KindId(kind_of[a] / 2)];
    if (!is_companion && of_kind.waited == 0) of_kind.first = c;
    ++(is_companion ? of_kind.companions : of_kind.waited);
    const auto times = static_cast<double>(is_companion ? choice.companion_of : 1);
    for (const GraphHop& hop : part.hops_of(a)) sum.add(cells.link[hop.link], times * part.weights[hop.weight]);
    sum.clear([&](LinkCell link, double weight) {
      core.network.hops.push_back(
          {link, weight * (static_cast<double>(activities.count[c]) / static_cast<double>(links.count[link]))});
    });
    core.network.hop_ptr.push_back(static_cast<std::int64_t>(core.network.hops.size()));
    core.network.latency_ps.push_back(part.latency_ps[a]);
    core.network.activity_instances.push_back(activities.count[c]);
  }
  for (const KindId kind : kinds.ids())
    detail::give(core.network, kind, parts[kind].first, parts[kind].waited, parts[kind].companions);

  IdVector<LinkId, double> all(traits.capacity.size(), 0.0);  // weight of everything
  for (const GraphHop& hop : graph.hops) all[hop.link] += graph.weights[hop.weight];
  constexpr double kUnlimited = std::numeric_limits<double>::infinity();
  IdVector<KindId, double> high(kinds.size(), 0.0), low(kinds.size(), kUnlimited);
  IdVector<KindId, std::int64_t> near_ps(kinds.size(), std::numeric_limits<std::int64_t>::max()),
      far_ps(kinds.size(), 0);
  for (const KindId kind : kinds.ids())
    for (const ActivityId a : kinds.of(kind)) {
      double alone = kUnlimited, least = kUnlimited;
      for (const GraphHop& hop : graph.hops_of(a)) {
        alone = std::min(alone, traits.capacity[hop.link] / graph.weights[hop.weight]);
        least = std::min(least, traits.capacity[hop.link] / all[hop.link]);
      }
      high[kind] = std::max(high[kind], alone);
      low[kind] = std::min(low[kind], least);
      near_ps[kind] = std::min(near_ps[kind], graph.latency_ps[a]);
      far_ps[kind] = std::max(far_ps[kind], graph.latency_ps[a]);
    }
  core.fastest = detail::apart(bare, high, near_ps, kinds, traits.capacity.size());
  core.slowest = detail::apart(bare, low, far_ps, kinds, traits.capacity.size());
  return core;
}

}  // namespace weftwork::flow
