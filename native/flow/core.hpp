/// The critical core: what is left of a job whose paths do not fold.
///
/// Replicas are sets of ranks that meet others in large groups only. The slowest of them, guessed from rates at which
/// everything is active, are run one by one; all others go in lockstep, as their typical members do. Ranks and
/// activities are then folded by structure alone, whatever paths they take: a class of activities is a *kind*. Kept are
///   - all activities of the slowest replicas;
///   - of each kind of the others the one of median rate, by which its kind goes;
///   - of kinds that replicas share (gradients) all, where they are few, else the slowest;
///   - whatever else crosses a full link of these: companions, which start with their kind, and for which nobody waits.
/// What is kept out neither delays nor is seen. Approximate: docs/models/flow-engine-folding.md has the error where
/// exact runs are possible. The bracket is of two networks in which every kind has a rate of its own. In the fastest it
/// is that of the member which is fastest alone on its path: no transfer of the job can be faster, so the job cannot
/// end sooner. In the slowest it is capacity / weight of all activities of the job, the least over all links of all
/// members: max-min gives no transfer less, whatever else is active, so the job cannot end later.
#pragma once
#include <algorithm>
#include <cstdint>
#include <limits>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

#include "flow/quotient.hpp"
#include "flow/rates.hpp"
#include "flow/replicas.hpp"

namespace weftwork::flow {

/// How much is kept.
struct CoreSize {
  std::int64_t slots = 16'384;  // operations of all ranks of the replicas that are run; chosen: 21 of TP 8 and PP 16
  std::int32_t slowest = 4;     // of each kind that replicas share; chosen
  std::int32_t few = 256;       // kinds of no more are kept whole; chosen: the gradients of a stage
  std::int64_t companions = 60'000;  // chosen: of more, every second or third stands for them with as much more weight
};

struct Core {
  Network network, fastest, slowest;
  Partition structure;
  std::int64_t kept = 0;      // activities of the graph that are in the core
  std::int64_t replicas = 0;  // that are run one by one
};

namespace detail {

inline constexpr double kFull = 1.0 - 1e-9;
inline constexpr std::int64_t kLeastReplicas = 8;  // chosen: of fewer sets none is typical

/// Activities by kind.
struct Kinds {
  std::vector<std::int64_t> ptr;
  std::vector<std::int32_t> activity;

  explicit Kinds(const Partition& structure) : ptr(static_cast<std::size_t>(structure.activities) + 1, 0) {
    for (const std::int32_t kind : structure.activity) ++ptr[static_cast<std::size_t>(kind) + 1];
    std::partial_sum(ptr.begin(), ptr.end(), ptr.begin());
    activity.resize(structure.activity.size());
    std::vector<std::int64_t> next(ptr.begin(), ptr.end() - 1);
    for (std::size_t a = 0; a < structure.activity.size(); ++a)
      activity[static_cast<std::size_t>(next[static_cast<std::size_t>(structure.activity[a])]++)] =
          static_cast<std::int32_t>(a);
  }
  [[nodiscard]] std::size_t size() const { return ptr.size() - 1; }
  [[nodiscard]] std::span<const std::int32_t> of(std::size_t kind) const {
    return {activity.data() + ptr[kind], activity.data() + ptr[kind + 1]};
  }
};

/// Rates with everything active, and which links are then full.
struct Busy {
  std::vector<double> rate;
  std::vector<std::int32_t> bottleneck;  // a link of the graph, -1: none
  std::vector<char> full;                // by link

  Busy(const Graph& graph, const Marks& marks) : full(marks.capacity.size(), 0) {
    Shares shares;
    std::vector<std::int32_t> dense(marks.capacity.size(), -1), used;
    shares.link.reserve(graph.hops.size());
    shares.weight.reserve(graph.hops.size());
    for (std::size_t a = 0; a < graph.activities(); ++a) {
      for (const Share& share : graph.hops_of(a)) {
        std::int32_t& link = dense[static_cast<std::size_t>(share.link)];
        if (link < 0) {
          link = static_cast<std::int32_t>(used.size());
          used.push_back(share.link);
        }
        shares.link.push_back(link);
        shares.weight.push_back(graph.weights[share.weight]);
      }
      shares.close();
    }
    for (const std::int32_t link : used) shares.capacity.push_back(marks.capacity[static_cast<std::size_t>(link)]);
    Filled filled = fill(shares);
    const std::vector<double> load = loads(shares, filled.rate);
    for (std::size_t l = 0; l < used.size(); ++l)
      full[static_cast<std::size_t>(used[l])] = load[l] >= shares.capacity[l] * kFull ? 1 : 0;
    for (std::int32_t& link : filled.bottleneck)
      if (link >= 0) link = used[static_cast<std::size_t>(link)];
    rate = std::move(filled.rate);
    bottleneck = std::move(filled.bottleneck);
  }
};

enum class Keep : std::uint8_t { kOut, kWaited, kCompanion };

/// Chooses the activities of the core.
class Choice {
 public:
  std::vector<Keep> keep;         // by activity
  std::int64_t companion_of = 1;  // how many companions one stands for

  Choice(const Graph& graph, const Kinds& kinds, const Busy& busy, const Chosen& chosen, const CoreSize& size)
      : keep(graph.activities(), Keep::kOut), graph_(graph), busy_(busy), hot_(busy.full.size(), 0) {
    for (std::size_t kind = 0; kind < kinds.size(); ++kind) {
      const auto own = kinds.of(kind);
      if (is_shared(static_cast<std::size_t>(own[0]), chosen)) {
        if (own.size() <= static_cast<std::size_t>(size.few))
          for (const std::int32_t a : own) keep[static_cast<std::size_t>(a)] = Keep::kWaited;
        take_slowest(own, static_cast<std::size_t>(size.slowest));
      } else {
        bool is_heard = false;
        for (const std::int32_t a : own)
          if (chosen.speaks[static_cast<std::size_t>(rank_of(static_cast<std::size_t>(a)))] != 0) {
            take(static_cast<std::size_t>(a));
            is_heard = true;
          }
        if (!is_heard) take_slowest(own, 1);  // groups that replicas share split parties
      }
    }
    std::vector<std::pair<std::int32_t, std::int32_t>> companions;  // a full link that each crosses first
    for (std::size_t a = 0; a < keep.size(); ++a) {
      if (keep[a] != Keep::kOut) continue;
      const auto hops = graph.hops_of(a);
      const auto full = std::find_if(hops.begin(), hops.end(), [&](const Share& share) {
        return hot_[static_cast<std::size_t>(share.link)] != 0;
      });
      if (full != hops.end()) companions.emplace_back(full->link, static_cast<std::int32_t>(a));
    }
    std::sort(companions.begin(), companions.end());  // so that every link keeps its share
    const auto found = static_cast<std::int64_t>(companions.size());
    companion_of = std::max<std::int64_t>(1, (found + size.companions - 1) / size.companions);
    for (std::int64_t i = companion_of / 2; i < found; i += companion_of)
      keep[static_cast<std::size_t>(companions[static_cast<std::size_t>(i)].second)] = Keep::kCompanion;
  }

  [[nodiscard]] bool is_hot(std::int32_t link) const { return hot_[static_cast<std::size_t>(link)] != 0; }

 private:
  /// One of its ranks.
  [[nodiscard]] std::int32_t rank_of(std::size_t a) const {
    if (a < graph_.connections()) return graph_.source[a];
    return graph_.members_of(static_cast<std::size_t>(graph_.communicator[a - graph_.connections()]))[0];
  }
  /// Whether several replicas take part.
  [[nodiscard]] bool is_shared(std::size_t a, const Chosen& chosen) const {
    if (a < graph_.connections()) return false;
    const auto members = graph_.members_of(static_cast<std::size_t>(graph_.communicator[a - graph_.connections()]));
    return std::any_of(members.begin(), members.end(), [&](std::int32_t member) {
      return chosen.replica[static_cast<std::size_t>(member)] != chosen.replica[static_cast<std::size_t>(members[0])];
    });
  }

  /// Keep an activity, and mark the full link that holds it back.
  void take(std::size_t a) {
    keep[a] = Keep::kWaited;
    if (busy_.bottleneck[a] >= 0) hot_[static_cast<std::size_t>(busy_.bottleneck[a])] = 1;
  }

  void take_slowest(std::span<const std::int32_t> kind, std::size_t count) {
    order_.assign(kind.begin(), kind.end());
    const std::size_t end = std::min(order_.size(), count);
    std::partial_sort(order_.begin(), order_.begin() + static_cast<std::ptrdiff_t>(end), order_.end(),
                      [&](std::int32_t a, std::int32_t b) {
                        return std::pair(busy_.rate[static_cast<std::size_t>(a)], a) <
                               std::pair(busy_.rate[static_cast<std::size_t>(b)], b);
                      });
    for (std::size_t i = 0; i < end; ++i) take(static_cast<std::size_t>(order_[i]));
  }

  const Graph& graph_;
  const Busy& busy_;
  std::vector<char> hot_;  // by link
  std::vector<std::int32_t> order_;
};

/// The kept activities alone, links numbered as before: by kind, those that are waited for first. `kind` tells twice
/// the kind of each, and one more for companions.
inline Graph kept_part(const Graph& graph, const Kinds& kinds, const Choice& choice, std::vector<std::int32_t>& kind) {
  Graph part;
  part.weights = graph.weights;
  for (std::size_t k = 0; k < kinds.size(); ++k)
    for (const Keep wanted : {Keep::kWaited, Keep::kCompanion})
      for (const std::int32_t a : kinds.of(k)) {
        if (choice.keep[static_cast<std::size_t>(a)] != wanted) continue;
        for (const Share& share : graph.hops_of(static_cast<std::size_t>(a)))
          if (wanted == Keep::kWaited || choice.companion_of == 1 || choice.is_hot(share.link))
            part.hops.push_back(share);
        part.hop_ptr.push_back(static_cast<std::int64_t>(part.hops.size()));
        part.latency_ps.push_back(graph.latency_ps[static_cast<std::size_t>(a)]);
        kind.push_back(static_cast<std::int32_t>(2 * k) + (wanted == Keep::kCompanion ? 1 : 0));
      }
  return part;
}

/// Actors, connections, communicators and operations of the structure; activities are for the caller to add.
inline Network skeleton(const Job& job, const Graph& graph, const Partition& structure) {
  Network network;
  network.folded = true;
  network.approximate = true;
  const Classes kinds(structure.activity, structure.activities);
  std::int32_t connections = 0;
  for (std::size_t k = 0; k < kinds.size(); ++k) {
    const std::size_t a = kinds.of(k);
    if (a < graph.connections()) {
      const auto actor = [&](std::int32_t rank) { return structure.rank[static_cast<std::size_t>(rank)]; };
      network.connections.push_back(
          {actor(graph.source[a]), actor(graph.destination[a]), 0, 0, graph.channel[a], kinds.count[k]});
      connections = static_cast<std::int32_t>(k) + 1;
    } else {
      const std::size_t operation = a - graph.connections();
      network.operations.push_back({structure.communicator[static_cast<std::size_t>(graph.communicator[operation])], 0,
                                    0, graph.flows[operation]});
    }
  }
  add_communicators(graph, structure, network);
  add_actors(job, graph, structure, network, [&](std::size_t activity) {
    const std::int32_t kind = structure.activity[activity];
    return activity < graph.connections() ? kind : kind - connections;
  });
  return network;
}

/// Say which activities a kind has.
inline void give(Network& network, std::size_t kind, std::int32_t first, std::int32_t count, std::int32_t companions) {
  const auto tell = [&](auto& row) {
    row.first_activity = first;
    row.activities = count;
    row.companions = companions;
  };
  if (kind < network.connections.size())
    tell(network.connections[kind]);
  else
    tell(network.operations[kind - network.connections.size()]);
}

/// A network in which each kind has a link to itself, of a given rate.
inline Network apart(const Network& skeleton, std::span<const double> rate, std::span<const std::int64_t> latency_ps,
                     const Kinds& kinds, std::size_t links) {
  Network network = skeleton;
  network.link_class.assign(links, -1);
  for (std::size_t kind = 0; kind < rate.size(); ++kind) {
    if (rate[kind] < std::numeric_limits<double>::infinity()) {
      network.hops.push_back({static_cast<std::int32_t>(network.capacity.size()), 1.0});
      network.capacity.push_back(rate[kind]);
      network.link_count.push_back(0);
    }
    network.hop_ptr.push_back(static_cast<std::int64_t>(network.hops.size()));
    network.latency_ps.push_back(latency_ps[kind]);
    network.activity_instances.push_back(static_cast<std::int64_t>(kinds.of(kind).size()));
    give(network, kind, static_cast<std::int32_t>(kind), 1, 0);
  }
  return network;
}

}  // namespace detail

/// The critical core of a graph.
inline Core critical_core(const Job& job, const Graph& graph, const Marks& marks, const CoreSize& size,
                          std::int64_t class_limit) {
  Core core;
  const detail::Busy busy(graph, marks);
  Chosen chosen = choose_replicas(job, graph, busy.rate, replicas_of(graph, detail::kLeastReplicas), size.slots);
  Marks structural = marks;
  structural.use_links = false;
  structural.rank = chosen.party;
  core.structure = stable(job, graph, structural, class_limit);
  if (!core.structure.is_stable) {  // groups that replicas share make all of them different: one party, all in lockstep
    structural.rank = {};
    core.structure = stable(job, graph, structural, 0);
    chosen.parties = 1;
    for (std::size_t r = 0; r < graph.ranks(); ++r)
      chosen.speaks[r] = chosen.speaks[r] != 0 && chosen.party[r] == 0 ? 1 : 0;
  }
  core.replicas = chosen.parties;
  const detail::Kinds kinds(core.structure);
  const detail::Choice choice(graph, kinds, busy, chosen, size);
  std::vector<std::int32_t> kind_of;  // by activity of the part, ascending
  const Graph part = detail::kept_part(graph, kinds, choice, kind_of);
  core.kept = static_cast<std::int64_t>(part.activities());
  Marks own = marks;
  own.kind = kind_of;
  const Partition classes = stable(job, part, own, 0);

  const Network bare = detail::skeleton(job, graph, core.structure);
  core.network = bare;
  core.network.link_class = classes.link;
  const detail::Classes links(classes.link, classes.links);
  for (std::size_t c = 0; c < links.size(); ++c) {
    core.network.capacity.push_back(marks.capacity[links.of(c)]);
    core.network.link_count.push_back(static_cast<std::int32_t>(links.count[c]));
  }
  const detail::Classes activities(classes.activity, classes.activities);  // in the order of kinds
  detail::ClassSum sum(classes.links);
  std::vector<std::int32_t> first(kinds.size(), 0), count(2 * kinds.size(), 0);  // waited for, companions
  for (std::size_t c = 0; c < activities.size(); ++c) {
    const std::size_t a = activities.of(c);
    const auto kind = static_cast<std::size_t>(kind_of[a]);
    if (count[kind]++ == 0 && kind % 2 == 0) first[kind / 2] = static_cast<std::int32_t>(c);
    const auto times = static_cast<double>(kind % 2 == 0 ? 1 : choice.companion_of);
    for (const Share& share : part.hops_of(a))
      sum.add(classes.link[static_cast<std::size_t>(share.link)], times * part.weights[share.weight]);
    sum.clear([&](std::int32_t link, double weight) {
      core.network.hops.push_back({link, weight * (static_cast<double>(activities.count[c]) /
                                                   static_cast<double>(links.count[static_cast<std::size_t>(link)]))});
    });
    core.network.hop_ptr.push_back(static_cast<std::int64_t>(core.network.hops.size()));
    core.network.latency_ps.push_back(part.latency_ps[a]);
    core.network.activity_instances.push_back(activities.count[c]);
  }
  for (std::size_t kind = 0; kind < kinds.size(); ++kind)
    detail::give(core.network, kind, first[kind], count[2 * kind], count[2 * kind + 1]);

  std::vector<double> all(marks.capacity.size(), 0.0);  // weight of everything, by link
  for (const Share& share : graph.hops) all[static_cast<std::size_t>(share.link)] += graph.weights[share.weight];
  constexpr double kNone = std::numeric_limits<double>::infinity();
  std::vector<double> high(kinds.size(), 0.0), low(kinds.size(), kNone);
  std::vector<std::int64_t> near_ps(kinds.size(), std::numeric_limits<std::int64_t>::max()), far_ps(kinds.size(), 0);
  for (std::size_t kind = 0; kind < kinds.size(); ++kind)
    for (const std::int32_t a : kinds.of(kind)) {
      double alone = kNone, least = kNone;
      for (const Share& share : graph.hops_of(static_cast<std::size_t>(a))) {
        const auto l = static_cast<std::size_t>(share.link);
        alone = std::min(alone, marks.capacity[l] / graph.weights[share.weight]);
        least = std::min(least, marks.capacity[l] / all[l]);
      }
      high[kind] = std::max(high[kind], alone);
      low[kind] = std::min(low[kind], least);
      near_ps[kind] = std::min(near_ps[kind], graph.latency_ps[static_cast<std::size_t>(a)]);
      far_ps[kind] = std::max(far_ps[kind], graph.latency_ps[static_cast<std::size_t>(a)]);
    }
  core.fastest = detail::apart(bare, high, near_ps, kinds, marks.capacity.size());
  core.slowest = detail::apart(bare, low, far_ps, kinds, marks.capacity.size());
  return core;
}

}  // namespace weftwork::flow
