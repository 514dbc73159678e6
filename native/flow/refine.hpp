/// Colour refinement of links, activities, communicators and ranks together: the coarsest partition found by repeating
/// "what looks the same and has the same neighbours, is the same" until nothing changes. It is equitable: every member
/// of a cell has as many neighbours, with equal weights, in every other cell; so equal ones get equal rates and do
/// everything at the same time (docs/models/flow-engine-folding.md).
/// Source: Weisfeiler and Leman 1968; for linear programs and fair sharing, Grohe et al., ESA 2014,
/// doi:10.1007/978-3-662-44777-2_42. Colours are sums of 64-bit hashes, so a partition is verified before it is used.
#pragma once
#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <span>
#include <stdexcept>
#include <vector>

#include "base/ids.hpp"
#include "base/job.hpp"
#include "base/random.hpp"
#include "flow/graph.hpp"
#include "flow/ids.hpp"
#include "flow/job.hpp"
#include "flow/links.hpp"
#include "flow/partition.hpp"
#include "flow/slots.hpp"

namespace weftwork::flow {

using Colour = std::uint64_t;

/// Counts distinct colours and gives them numbers, in the order of their first appearance.
class Palette {
 public:
  Palette() : table_(1024) {}

  /// The number of a colour.
  std::int32_t number(Colour colour) {
    if (count_ > 0 && colour == last_) return last_number_;
    if (2 * (static_cast<std::size_t>(count_) + 1) > table_.size()) grow();
    std::size_t at = place(colour);
    while (table_[at].number >= 0 && table_[at].colour != colour) at = (at + 1) & (table_.size() - 1);
    if (table_[at].number < 0) table_[at] = {colour, count_++};
    last_ = colour;
    return last_number_ = table_[at].number;
  }
  [[nodiscard]] std::int32_t size() const { return count_; }

 private:
  struct Entry {
    Colour colour = 0;
    std::int32_t number = -1;
  };
  [[nodiscard]] std::size_t place(Colour colour) const {
    return static_cast<std::size_t>(colour * 0x9E3779B97F4A7C15ULL >> 20U) & (table_.size() - 1);
  }
  void grow() {
    std::vector<Entry> old(4 * table_.size());
    old.swap(table_);
    for (const Entry& entry : old) {
      if (entry.number < 0) continue;
      std::size_t at = place(entry.colour);
      while (table_[at].number >= 0) at = (at + 1) & (table_.size() - 1);
      table_[at] = entry;
    }
  }
  std::vector<Entry> table_;
  std::int32_t count_ = 0, last_number_ = 0;
  Colour last_ = 0;
};

/// What tells things apart before any neighbour is looked at.
struct Traits {
  IdSpan<LinkId, const double> capacity;
  IdSpan<LinkId, const std::uint64_t> link_fate;  // equal for links whose capacity changes alike; empty: none does
  IdSpan<ActivityId, const std::uint64_t> activity_fate;  // equal where latencies change alike; empty: none does
  bool use_links = true;  // false: ranks and activities alone, whatever paths they take and however long these are
  IdSpan<RankId, const PartyId> party;          // empty: none
  IdSpan<ActivityId, const std::int32_t> kind;  // not empty: links and activities alone, with these kinds
};

namespace detail {

inline constexpr std::uint64_t kOfShape = std::uint64_t{1} << 32U;  // above all channels

/// One step of refinement: new colours of everything from the colours of neighbours.
class Refinement {
 public:
  IdVector<LinkId, Colour> link;
  IdVector<ActivityId, Colour> activity;
  IdVector<CommunicatorId, Colour> communicator;
  IdVector<RankId, Colour> rank;

  Refinement(const Job& job, const Graph& graph, const Traits& traits, std::uint64_t salt)
      : graph_(graph), use_links_(traits.use_links), use_ranks_(traits.kind.empty()), salt_(mix(salt, 0x5EED, 0)) {
    weight_.resize(graph.weights.size());
    for (const WeightId w : weight_.ids()) weight_[w] = mix(std::bit_cast<std::uint64_t>(graph.weights[w]), 1, salt_);
    begin_links(traits);
    begin_activities(traits);
    if (!use_ranks_) return;
    begin_ranks(job, traits.party);
    communicator.resize(graph.group.size());
    for (const CommunicatorId c : communicator.ids())
      communicator[c] = mix(static_cast<std::uint64_t>(graph.group[c].value), 5, salt_);
  }

  void step() {
    if (use_links_) step_links();
    step_communicators();
    step_activities();
    if (use_ranks_) step_ranks();
  }

 private:
  [[nodiscard]] Colour pair(Colour a, Colour b) const { return mix(a, b, salt_); }
  [[nodiscard]] Colour over(Colour colour, WeightId weight) const {
    std::uint64_t x = (colour ^ weight_[weight]) * 0x9E3779B97F4A7C15ULL;
    return (x ^ (x >> 29U)) * 0xBF58476D1CE4E5B9ULL;
  }

  void begin_links(const Traits& traits) {
    if (!use_links_) return;
    link.assign(traits.capacity.size(), 0);
    for (const GraphHop& hop : graph_.hops) link[hop.link] = 1;
    for (const LinkId l : link.ids())
      if (link[l] != 0)
        link[l] =
            mix(std::bit_cast<std::uint64_t>(traits.capacity[l]), traits.link_fate.empty() ? 0 : traits.link_fate[l],
                salt_) |
            1U;  // 0 stays the colour of links that nothing crosses
    sum_.resize(link.size());
  }

  void begin_activities(const Traits& traits) {
    activity.resize(graph_.latency_ps.size());
    for (const ActivityId a : activity.ids()) {
      if (!use_ranks_) {
        activity[a] = mix(static_cast<std::uint64_t>(traits.kind[a]), 4, salt_);
        continue;
      }
      const std::uint64_t flows = graph_.is_connection(a) || !use_links_
                                      ? 0
                                      : static_cast<std::uint64_t>(graph_.flows[graph_.operation_of(a)]) + 1;
      const auto latency_ps = use_links_ ? static_cast<std::uint64_t>(graph_.latency_ps[a]) : 0;
      activity[a] = mix(latency_ps, flows, salt_);
      if (!traits.activity_fate.empty()) activity[a] = pair(activity[a], traits.activity_fate[a]);
    }
    if (!use_ranks_) return;
    for (const ConnectionId c : graph_.connections()) {
      Colour& own = activity[graph_.activity_of(c)];
      own = pair(own, static_cast<std::uint64_t>(graph_.channel[c]));
    }
    for (const OperationId o : graph_.operations()) {
      Colour& own = activity[graph_.activity_of(o)];
      own = mix(own, static_cast<std::uint64_t>(graph_.shape[o].value) + kOfShape, salt_);
    }
  }

  void begin_ranks(const Job& job, IdSpan<RankId, const PartyId> party) {
    rank.resize(job.rank_count());
    for (const RankId r : job.ranks()) {
      const ProgramId program = job.rank_program[r];
      rank[r] = mix(static_cast<std::uint64_t>(program.value), std::bit_cast<std::uint64_t>(job.factor(r)), salt_);
      if (!party.empty()) rank[r] = pair(rank[r], static_cast<std::uint64_t>(party[r].value));
      const RankId first = job.first_rank(program);
      for (const SizeRule& size : graph_.meaning.sizes[program])
        rank[r] = pair(rank[r], static_cast<std::uint64_t>(coordinate(job.job_tables(), size, r - first)));
    }
  }

  void step_links() {
    std::fill(sum_.begin(), sum_.end(), 0);
    for (const ActivityId a : activity.ids()) {
      const Colour own = activity[a];
      for (const GraphHop& hop : graph_.hops_of(a)) sum_[hop.link] += over(own, hop.weight);
    }
    for (const LinkId l : link.ids())
      if (link[l] != 0) link[l] = pair(link[l], sum_[l]) | 1U;
  }

  void step_communicators() {
    for (const CommunicatorId c : communicator.ids()) {
      Colour sum = 0;
      for (const RankId member : graph_.members_of(c)) sum += pair(rank[member], 7);
      communicator[c] = pair(communicator[c], sum);
    }
  }

  void step_activities() {
    for (const ActivityId a : activity.ids()) {
      Colour sum = 0;
      if (use_links_)
        for (const GraphHop& hop : graph_.hops_of(a)) sum += over(link[hop.link], hop.weight);
      if (!use_ranks_) {
        activity[a] = pair(activity[a], sum);
        continue;
      }
      const Colour ends = graph_.is_connection(a) ? pair(rank[graph_.source[graph_.connection_of(a)]],
                                                         rank[graph_.destination[graph_.connection_of(a)]])
                                                  : communicator[graph_.communicator[graph_.operation_of(a)]];
      activity[a] = pair(pair(activity[a], sum), ends);
    }
  }

  void step_ranks() {
    for (const RankId r : rank.ids()) {
      Colour colour = rank[r];
      for (const ActivityId slot : graph_.slots_of(r)) colour = pair(colour, slot.is_none() ? 11 : activity[slot]);
      rank[r] = colour;
    }
  }

  const Graph& graph_;
  bool use_links_, use_ranks_;
  std::uint64_t salt_;
  IdVector<WeightId, Colour> weight_;
  IdVector<LinkId, Colour> sum_;
};

/// Cells of one colour each; returns how many there are.
template <typename I, typename Cell>
std::int32_t make_cells(const IdVector<I, Colour>& colours, IdVector<I, Cell>& cells, bool skip_zero) {
  Palette palette;
  cells.resize(colours.size());
  for (const I i : colours.ids())
    cells[i] = skip_zero && colours[i] == 0 ? Cell::none() : Cell(palette.number(colours[i]));
  return palette.size();
}

/// Whether members of a cell have, by another hash, the same neighbours as its first member.
template <typename I, typename Cell>
bool agree(const IdVector<I, Cell>& cells, std::int32_t count, const IdVector<I, Colour>& colours) {
  IdVector<Cell, Colour> first(static_cast<std::size_t>(count));
  IdVector<Cell, char> known(static_cast<std::size_t>(count), 0);
  for (const I i : colours.ids()) {
    const Cell c = cells[i];
    if (c.is_none()) continue;
    if (known[c] != 0 && first[c] != colours[i]) return false;
    first[c] = colours[i];
    known[c] = 1;
  }
  return true;
}

}  // namespace detail

/// Whether a partition is equitable, by one step of refinement with hashes of their own from the numbers of cells.
inline bool is_equitable(const Job& job, const Graph& graph, const Traits& traits, const Partition& found) {
  detail::Refinement check(job, graph, traits, 0xC4EC4);
  const auto paint = [](auto& colours, const auto& cells, std::uint64_t kind) {
    for (const auto i : colours.ids()) {
      if (cells[i].is_none()) continue;
      // the initial colour stays in: cells must not mix what is different from the start
      colours[i] = mix(colours[i], static_cast<std::uint64_t>(cells[i].value), kind) | 1U;
    }
  };
  paint(check.link, found.link, 1);
  paint(check.activity, found.activity, 2);
  paint(check.communicator, found.communicator, 3);
  paint(check.rank, found.rank, 4);
  check.step();
  return detail::agree(found.link, found.links, check.link) &&
         detail::agree(found.activity, found.activities, check.activity) &&
         detail::agree(found.communicator, found.communicators, check.communicator) &&
         detail::agree(found.rank, found.ranks, check.rank);
}

/// The coarsest equitable partition that refinement finds, or one that is not stable where that has more than
/// `cell_limit` cells of activities (0: no limit).
inline Partition refine(const Job& job, const Graph& graph, const Traits& traits, std::int64_t cell_limit,
                        std::uint64_t salt = 0) {
  detail::Refinement colours(job, graph, traits, salt);
  Partition found;
  for (;;) {
    ++found.rounds;
    colours.step();
    const std::int64_t before = std::int64_t{found.links} + found.activities + found.communicators + found.ranks;
    found.activities = detail::make_cells(colours.activity, found.activity, false);
    if (cell_limit > 0 && found.activities > cell_limit) return found;
    found.links = detail::make_cells(colours.link, found.link, true);
    found.communicators = detail::make_cells(colours.communicator, found.communicator, false);
    found.ranks = detail::make_cells(colours.rank, found.rank, false);
    // cells only split, so equal sums mean that no kind has more cells than before
    if (before == std::int64_t{found.links} + found.activities + found.communicators + found.ranks) break;
  }
  found.is_stable = true;
  return found;
}

/// What `refine` finds, verified.
inline Partition stable(const Job& job, const Graph& graph, const Traits& traits, std::int64_t cell_limit) {
  for (std::uint64_t salt = 0; salt < 3; ++salt) {  // a collision of 64-bit hashes: take others
    Partition found = refine(job, graph, traits, cell_limit, salt);
    if (!found.is_stable || is_equitable(job, graph, traits, found)) return found;
  }
  throw std::logic_error("colour refinement did not come to an equitable partition");
}

/// Every link, activity, communicator and rank for itself.
inline Partition identity(const Graph& graph, std::size_t links) {
  Partition found;
  const auto count = [](auto& cells, std::size_t size) {
    cells.resize(size);
    std::int32_t next = 0;
    for (auto& cell : cells) cell = std::remove_reference_t<decltype(cell)>(next++);
    return next;
  };
  found.link.assign(links, LinkCell::none());
  for (const GraphHop& hop : graph.hops) found.link[hop.link] = LinkCell(0);
  for (LinkCell& link : found.link)
    if (!link.is_none()) link = LinkCell(found.links++);
  found.activities = count(found.activity, graph.latency_ps.size());
  found.communicators = count(found.communicator, graph.group.size());
  found.ranks = count(found.rank, graph.ranks().size());
  found.is_stable = true;
  return found;
}

}  // namespace weftwork::flow
