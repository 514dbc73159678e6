/// From a graph and a partition of it to what the executor runs: a class of links is one link, a class of activities
/// one activity, a class of ranks one actor. With the identity as partition, the graph itself.
///
/// An activity class A puts weight W(A, L) = sum of its weights on the links of L / |L| on the one link that stands for
/// L: by equitability every link of L carries just that when every activity of A runs at rate 1.
#pragma once
#include <cstdint>
#include <utility>
#include <vector>

#include "flow/refine.hpp"

namespace weftwork::flow {

namespace detail {

/// The first member of each class, and how many there are.
struct Classes {
  std::vector<std::int32_t> first;
  std::vector<std::int64_t> count;

  Classes(const std::vector<std::int32_t>& of, std::int32_t classes)
      : first(static_cast<std::size_t>(classes), -1), count(static_cast<std::size_t>(classes), 0) {
    for (std::size_t i = 0; i < of.size(); ++i) {
      if (of[i] < 0) continue;
      const auto c = static_cast<std::size_t>(of[i]);
      if (count[c]++ == 0) first[c] = static_cast<std::int32_t>(i);
    }
  }
  [[nodiscard]] std::size_t size() const { return first.size(); }
  [[nodiscard]] std::size_t of(std::size_t c) const { return static_cast<std::size_t>(first[c]); }
};

/// Adds up weights by link class; the classes of the last activity are forgotten with `clear`.
class ClassSum {
 public:
  explicit ClassSum(std::int32_t classes) : sum_(static_cast<std::size_t>(classes), 0.0) {}
  void add(std::int32_t c, double weight) {
    double& sum = sum_[static_cast<std::size_t>(c)];
    if (sum == 0.0) touched_.push_back(c);
    sum += weight;
  }
  template <typename Take>
  void clear(Take&& take) {
    for (const std::int32_t c : touched_) {
      take(c, sum_[static_cast<std::size_t>(c)]);
      sum_[static_cast<std::size_t>(c)] = 0.0;
    }
    touched_.clear();
  }

 private:
  std::vector<double> sum_;
  std::vector<std::int32_t> touched_;
};

}  // namespace detail

/// Actors with their slots still naming activities of the graph; `number` turns one into what the executor knows.
template <typename Number>
void add_actors(const Job& job, const Graph& graph, const Partition& classes, Network& network, Number&& number) {
  const detail::Classes ranks(classes.rank, classes.ranks);
  network.rank_actor = classes.rank;
  network.op_slot = graph.meaning.op_slot;
  for (std::size_t c = 0; c < ranks.size(); ++c) {
    const std::size_t r = ranks.of(c);
    network.actor_rank.push_back(ranks.first[c]);
    network.actor_program.push_back(job.rank_class[r]);
    network.actor_ranks.push_back(ranks.count[c]);
    network.actor_factor.push_back(job.rank_factor.empty() ? 1.0 : job.rank_factor[r]);
    for (const std::int32_t slot : graph.slots_of(r))
      network.slots.push_back(slot < 0 ? slot : number(static_cast<std::size_t>(slot)));
    network.slot_ptr.push_back(static_cast<std::int64_t>(network.slots.size()));
  }
}

/// Communicators by class, with the distinct actors that take part.
inline void add_communicators(const Graph& graph, const Partition& classes, Network& network) {
  const detail::Classes found(classes.communicator, classes.communicators);
  std::vector<std::int32_t> last(static_cast<std::size_t>(classes.ranks), -1);
  for (std::size_t c = 0; c < found.size(); ++c) {
    const std::size_t k = found.of(c);
    const auto members = graph.members_of(k);
    const auto first = static_cast<std::int32_t>(network.participants.size());
    for (const std::int32_t rank : members) {
      const std::int32_t actor = classes.rank[static_cast<std::size_t>(rank)];
      if (std::cmp_equal(last[static_cast<std::size_t>(actor)], c)) continue;
      last[static_cast<std::size_t>(actor)] = static_cast<std::int32_t>(c);
      network.participants.push_back(actor);
    }
    const GroupRule& rule = graph.meaning.groups[static_cast<std::size_t>(graph.group[k])];
    network.communicators.push_back({first, static_cast<std::int32_t>(network.participants.size()) - first,
                                     static_cast<std::int32_t>(members.size()), rule.channel, found.count[c]});
  }
}

/// The network of the classes of an equitable partition. Classes of connections come before those of operations, as
/// activities do.
inline Network quotient(const Job& job, const Graph& graph, const Marks& marks, const Partition& classes) {
  Network network;
  network.folded = static_cast<std::size_t>(classes.ranks) < graph.ranks();
  network.link_class = classes.link;
  const detail::Classes links(classes.link, classes.links);
  for (std::size_t c = 0; c < links.size(); ++c) {
    network.capacity.push_back(marks.capacity[links.of(c)]);
    network.link_count.push_back(static_cast<std::int32_t>(links.count[c]));
  }
  const detail::Classes activities(classes.activity, classes.activities);
  detail::ClassSum sum(classes.links);
  std::int32_t connections = 0;
  for (std::size_t c = 0; c < activities.size(); ++c) {
    const std::size_t a = activities.of(c);
    const auto instances = static_cast<double>(activities.count[c]);
    for (const Share& share : graph.hops_of(a))
      sum.add(classes.link[static_cast<std::size_t>(share.link)], graph.weights[share.weight]);
    sum.clear([&](std::int32_t link, double weight) {
      network.hops.push_back(
          {link, weight * (instances / static_cast<double>(links.count[static_cast<std::size_t>(link)]))});
    });
    network.hop_ptr.push_back(static_cast<std::int64_t>(network.hops.size()));
    network.latency_ps.push_back(graph.latency_ps[a]);
    network.activity_instances.push_back(activities.count[c]);
    const auto activity = static_cast<std::int32_t>(c);
    if (a < graph.connections()) {
      const auto actor = [&](std::int32_t rank) { return classes.rank[static_cast<std::size_t>(rank)]; };
      network.connections.push_back(
          {actor(graph.source[a]), actor(graph.destination[a]), activity, 1, graph.channel[a], activities.count[c]});
      connections = activity + 1;
    } else {
      const std::size_t operation = a - graph.connections();
      network.operations.push_back({classes.communicator[static_cast<std::size_t>(graph.communicator[operation])],
                                    activity, 1, graph.flows[operation]});
    }
  }
  add_communicators(graph, classes, network);
  add_actors(job, graph, classes, network, [&](std::size_t activity) {
    const std::int32_t c = classes.activity[activity];
    return activity < graph.connections() ? c : c - connections;
  });
  return network;
}

}  // namespace weftwork::flow
