/// The critical core: what is left of a job whose paths do not fold, when all replicas go in lockstep.
///
/// Ranks and activities are folded by structure alone, whatever paths they take: a *kind* is a class of activities that
/// every replica has. A kind begins everywhere at once and ends with its slowest member, so only the slowest matter.
/// They are looked for with everything active and with each kind alone; the core is, of each kind, the few slowest
/// activities, with all activities that cross a full link of theirs, and all of kinds that are few. What is kept out
/// neither delays nor is seen. Approximate: docs/models/flow-engine-folding.md has the error where exact runs are
/// possible. The bracket is of two networks in which every kind has a rate of its own. In the fastest it is that of the
/// member which is fastest alone on its path: no transfer of the job can be faster, so the job cannot end sooner. In
/// the slowest it is capacity / weight of all activities of the job, the least over all links of all members: max-min
/// gives no transfer less, whatever else is active, so the job cannot end later.
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

namespace weft::flow {

/// How much is kept: of each kind the `slowest`, and all of kinds of no more than `few`.
struct CoreSize {
  std::int32_t slowest = 4;  // chosen: one gives the iteration time within 0.1 % of four
  std::int32_t few = 256;    // chosen: the rings of data parallelism of a stage
};

struct Core {
  Network network, fastest, slowest;
  Partition structure;
  std::int64_t kept = 0;  // activities of the graph that are in the core
};

namespace detail {

inline constexpr double kFull = 1.0 - 1e-9;

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

/// Chooses the activities of the core.
class Choice {
 public:
  std::vector<char> keep;  // by activity

  Choice(const Graph& graph, const Marks& marks, const Kinds& kinds, const CoreSize& size)
      : keep(graph.activities(), 0), graph_(graph), marks_(marks), kinds_(kinds), slowest_(size.slowest) {
    hot_.assign(marks.capacity.size(), 0);
    dense_.assign(marks.capacity.size(), -1);
    std::vector<std::int32_t> all(graph.activities());
    std::iota(all.begin(), all.end(), 0);
    look(all);
    for (std::size_t kind = 0; kind < kinds.size(); ++kind) look(kinds.of(kind));
    for (std::size_t kind = 0; kind < kinds.size(); ++kind)
      if (kinds.of(kind).size() <= static_cast<std::size_t>(size.few))
        for (const std::int32_t a : kinds.of(kind)) keep[static_cast<std::size_t>(a)] = 1;
    for (std::size_t a = 0; a < keep.size(); ++a)
      for (const Share& share : graph.hops_of(a))
        if (hot_[static_cast<std::size_t>(share.link)] != 0) {
          keep[a] = 1;
          break;
        }
  }

 private:
  /// Solve for some activities, ordered by kind or all in order, and keep the slowest of each kind.
  void look(std::span<const std::int32_t> active) {
    Shares shares;
    used_.clear();
    for (const std::int32_t a : active) {
      for (const Share& share : graph_.hops_of(static_cast<std::size_t>(a))) {
        std::int32_t& link = dense_[static_cast<std::size_t>(share.link)];
        if (link < 0) {
          link = static_cast<std::int32_t>(used_.size());
          used_.push_back(share.link);
        }
        shares.link.push_back(link);
        shares.weight.push_back(graph_.weights[share.weight]);
      }
      shares.close();
    }
    for (const std::int32_t link : used_) {
      shares.capacity.push_back(marks_.capacity[static_cast<std::size_t>(link)]);
      dense_[static_cast<std::size_t>(link)] = -1;
    }
    const Filled filled = fill(shares);
    const std::vector<double> load = loads(shares, filled.rate);
    if (active.size() < graph_.activities() || kinds_.size() == 1) {
      slowest(shares, filled, load, active);
      return;
    }
    for (std::size_t kind = 0; kind < kinds_.size(); ++kind) slowest(shares, filled, load, kinds_.of(kind));
  }

  /// Keep the slowest of one kind, and mark the full links that hold them back.
  void slowest(const Shares& shares, const Filled& filled, std::span<const double> load,
               std::span<const std::int32_t> kind) {
    const std::vector<double>& rate = filled.rate;
    const bool is_all = rate.size() == graph_.activities();  // then an activity's row is its number
    order_.resize(kind.size());
    for (std::size_t i = 0; i < kind.size(); ++i) order_[i] = is_all ? kind[i] : static_cast<std::int32_t>(i);
    const auto many = std::min<std::size_t>(order_.size(), static_cast<std::size_t>(slowest_));
    std::partial_sort(order_.begin(), order_.begin() + static_cast<std::ptrdiff_t>(many), order_.end(),
                      [&](std::int32_t a, std::int32_t b) {
                        return std::pair(rate[static_cast<std::size_t>(a)], a) <
                               std::pair(rate[static_cast<std::size_t>(b)], b);
                      });
    for (std::size_t i = 0; i < many; ++i) {
      const auto row = static_cast<std::size_t>(order_[i]);
      const auto a = static_cast<std::size_t>(is_all ? order_[i] : kind[row]);
      keep[a] = 1;
      if (filled.bottleneck[row] >= 0) heat(static_cast<std::size_t>(filled.bottleneck[row]));
      if (a >= graph_.connections()) continue;  // a ring may have thousands of full links: one holds it back
      for (std::int64_t h = shares.ptr[row]; h < shares.ptr[row + 1]; ++h) {
        const auto dense = static_cast<std::size_t>(shares.link[static_cast<std::size_t>(h)]);
        if (load[dense] >= shares.capacity[dense] * kFull) heat(dense);
      }
    }
  }

  void heat(std::size_t dense) { hot_[static_cast<std::size_t>(used_[dense])] = 1; }

  const Graph& graph_;
  const Marks& marks_;
  const Kinds& kinds_;
  std::int32_t slowest_;
  std::vector<char> hot_;            // by link
  std::vector<std::int32_t> dense_;  // by link, its number in `shares`; -1 between solves
  std::vector<std::int32_t> used_;   // by number in `shares`
  std::vector<std::int32_t> order_;
};

/// The kept activities alone, links numbered as before.
inline Graph kept_part(const Graph& graph, const std::vector<char>& keep, const std::vector<std::int32_t>& order) {
  Graph part;
  part.weights = graph.weights;
  for (const std::int32_t a : order) {
    if (keep[static_cast<std::size_t>(a)] == 0) continue;
    const auto hops = graph.hops_of(static_cast<std::size_t>(a));
    part.hops.insert(part.hops.end(), hops.begin(), hops.end());
    part.hop_ptr.push_back(static_cast<std::int64_t>(part.hops.size()));
    part.latency_ps.push_back(graph.latency_ps[static_cast<std::size_t>(a)]);
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
inline void give(Network& network, std::size_t kind, std::int32_t first, std::int32_t count) {
  if (kind < network.connections.size()) {
    network.connections[kind].first_activity = first;
    network.connections[kind].activities = count;
  } else {
    Operation& operation = network.operations[kind - network.connections.size()];
    operation.first_activity = first;
    operation.activities = count;
  }
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
    give(network, kind, static_cast<std::int32_t>(kind), 1);
  }
  return network;
}

}  // namespace detail

/// The critical core of a graph.
inline Core critical_core(const Job& job, const Graph& graph, const Marks& marks, Partition structure,
                          const CoreSize& size) {
  Core core;
  core.structure = std::move(structure);
  const detail::Kinds kinds(core.structure);
  const detail::Choice choice(graph, marks, kinds, size);
  const Graph part = detail::kept_part(graph, choice.keep, kinds.activity);
  core.kept = static_cast<std::int64_t>(part.activities());
  std::vector<std::int32_t> kind_of;  // by activity of the part, ascending
  for (const std::int32_t a : kinds.activity)
    if (choice.keep[static_cast<std::size_t>(a)] != 0)
      kind_of.push_back(core.structure.activity[static_cast<std::size_t>(a)]);
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
  std::vector<std::int32_t> first(kinds.size(), 0), count(kinds.size(), 0);
  for (std::size_t c = 0; c < activities.size(); ++c) {
    const std::size_t a = activities.of(c);
    const auto kind = static_cast<std::size_t>(kind_of[a]);
    if (count[kind]++ == 0) first[kind] = static_cast<std::int32_t>(c);
    for (const Share& share : part.hops_of(a))
      sum.add(classes.link[static_cast<std::size_t>(share.link)], part.weights[share.weight]);
    sum.clear([&](std::int32_t link, double weight) {
      core.network.hops.push_back({link, weight * (static_cast<double>(activities.count[c]) /
                                                   static_cast<double>(links.count[static_cast<std::size_t>(link)]))});
    });
    core.network.hop_ptr.push_back(static_cast<std::int64_t>(core.network.hops.size()));
    core.network.latency_ps.push_back(part.latency_ps[a]);
    core.network.activity_instances.push_back(activities.count[c]);
  }
  for (std::size_t kind = 0; kind < kinds.size(); ++kind) detail::give(core.network, kind, first[kind], count[kind]);

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

}  // namespace weft::flow
