/// From a graph and a partition to the network of the executor: one link, activity or actor per cell. With the identity
/// as partition, the graph itself. (The cells of an equitable partition: Godsil and Royle, Algebraic Graph Theory,
/// 2001, section 9.3.)
///
/// A cell of activities A puts weight W(A, L) = sum of its weights on the links of L / |L| on the one link that stands
/// for L: by equitability every link of L carries just that when every activity of A runs at rate 1.
#pragma once
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "base/ids.hpp"
#include "flow/graph.hpp"
#include "flow/ids.hpp"
#include "flow/job.hpp"
#include "flow/network.hpp"
#include "flow/partition.hpp"
#include "flow/refine.hpp"
#include "flow/slots.hpp"

namespace weftwork::flow {

namespace detail {

/// The first member of each cell, and how many there are.
template <typename Cell, typename I>
struct Cells {
  IdVector<Cell, I> first;
  IdVector<Cell, std::int64_t> count;

  Cells(const IdVector<I, Cell>& cell_of, std::int32_t cells)
      : first(static_cast<std::size_t>(cells)), count(static_cast<std::size_t>(cells), 0) {
    for (const I i : cell_of.ids()) {
      const Cell c = cell_of[i];
      if (c.is_none()) continue;
      if (count[c]++ == 0) first[c] = i;
    }
  }
  [[nodiscard]] auto ids() const { return first.ids(); }
};

/// Adds up weights by cell of links; the cells of the last activity are forgotten with `clear`.
class CellSum {
 public:
  explicit CellSum(std::int32_t cells) : sum_(static_cast<std::size_t>(cells), 0.0) {}
  void add(LinkCell c, double weight) {
    double& sum = sum_[c];
    if (sum == 0.0) touched_.push_back(c);
    sum += weight;
  }
  template <typename Take>
  void clear(Take&& take) {
    for (const LinkCell c : touched_) {
      take(c, sum_[c]);
      sum_[c] = 0.0;
    }
    touched_.clear();
  }

 private:
  IdVector<LinkCell, double> sum_;
  std::vector<LinkCell> touched_;
};

}  // namespace detail

/// Actors with their slots still naming activities of the graph; `number` turns one into what the executor knows.
template <typename Number>
void add_actors(const Job& job, const Graph& graph, const Partition& cells, Network& network, Number&& number) {
  const detail::Cells ranks(cells.rank, cells.ranks);
  network.rank_actor = cells.rank;
  network.op_slot = graph.meaning.op_slot;
  for (const ActorId actor : ranks.ids()) {
    const RankId rank = ranks.first[actor];
    network.actor_rank.push_back(rank);
    network.actor_program.push_back(job.rank_program[rank]);
    network.actor_ranks.push_back(ranks.count[actor]);
    network.actor_factor.push_back(job.factor(rank));
    for (const ActivityId slot : graph.slots_of(rank))
      network.slots.push_back(slot.is_none() ? slot.value : number(slot));
    network.slot_ptr.push_back(static_cast<std::int64_t>(network.slots.size()));
  }
}

/// Cells of communicators, with the distinct actors that take part.
inline void add_communicators(const Graph& graph, const Partition& cells, Network& network) {
  const detail::Cells found(cells.communicator, cells.communicators);
  IdVector<ActorId, CommunicatorCell> last(static_cast<std::size_t>(cells.ranks));
  for (const CommunicatorCell c : found.ids()) {
    const CommunicatorId k = found.first[c];
    const auto members = graph.members_of(k);
    const auto first = static_cast<std::int32_t>(network.participants.size());
    for (const RankId rank : members) {
      const ActorId actor = cells.rank[rank];
      if (last[actor] == c) continue;
      last[actor] = c;
      network.participants.push_back(actor);
    }
    const GroupRule& rule = graph.meaning.groups[graph.group[k]];
    network.communicators.push_back({first, static_cast<std::int32_t>(network.participants.size()) - first,
                                     static_cast<std::int32_t>(members.size()), rule.channel, found.count[c]});
  }
}

/// The network of the cells of an equitable partition. Cells of connections come before those of operations, as
/// activities do.
inline Network quotient(const Job& job, const Graph& graph, const Traits& traits, const Partition& cells) {
  Network network;
  network.folded = std::cmp_less(cells.ranks, graph.ranks().size());
  network.link_cell = cells.link;
  const detail::Cells links(cells.link, cells.links);
  for (const LinkCell c : links.ids()) {
    network.capacity.push_back(traits.capacity[links.first[c]]);
    network.link_count.push_back(static_cast<std::int32_t>(links.count[c]));
  }
  const detail::Cells activities(cells.activity, cells.activities);
  detail::CellSum sum(cells.links);
  for (const ActivityCell activity : activities.ids()) {
    const ActivityId a = activities.first[activity];
    const std::int64_t instances = activities.count[activity];
    for (const GraphHop& hop : graph.hops_of(a)) sum.add(cells.link[hop.link], graph.weights[hop.weight]);
    sum.clear([&](LinkCell link, double weight) {
      network.hops.push_back(
          {link, weight * (static_cast<double>(instances) / static_cast<double>(links.count[link]))});
    });
    network.hop_ptr.push_back(static_cast<std::int64_t>(network.hops.size()));
    network.latency_ps.push_back(graph.latency_ps[a]);
    network.activity_instances.push_back(instances);
    if (graph.is_connection(a)) {
      const ConnectionId c = graph.connection_of(a);
      network.connections.push_back(
          {cells.rank[graph.source[c]], cells.rank[graph.destination[c]], activity, 1, graph.channel[c], instances});
    } else {
      const OperationId o = graph.operation_of(a);
      network.operations.push_back({cells.communicator[graph.communicator[o]], activity, 1, graph.flows[o]});
    }
  }
  add_communicators(graph, cells, network);
  const auto connections = static_cast<std::int32_t>(network.connections.size());
  add_actors(job, graph, cells, network, [&](ActivityId activity) {
    const std::int32_t c = cells.activity[activity].value;
    return graph.is_connection(activity) ? c : c - connections;
  });
  return network;
}

}  // namespace weftwork::flow
