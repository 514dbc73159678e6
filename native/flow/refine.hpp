/// Colour refinement of links, activities, communicators and ranks together: the coarsest partition found by repeating
/// "what looks the same and has the same neighbours, is the same" until nothing changes. It is equitable: every member
/// of a class has as many neighbours, with equal weights, in every other class; so equal ones get equal rates and do
/// everything at the same time (docs/models/flow-engine-folding.md).
/// Source: Weisfeiler and Leman 1968; for linear programs and fair sharing, Grohe et al., ESA 2014,
/// doi:10.1007/978-3-662-44777-2_42. Colours are sums of 64-bit hashes, so a partition is verified before it is used.
#pragma once
#include <algorithm>
#include <bit>
#include <cstdint>
#include <numeric>
#include <span>
#include <stdexcept>
#include <vector>

#include "base/random.hpp"
#include "flow/graph.hpp"
#include "flow/links.hpp"

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

/// A class for every link, activity, communicator and rank; -1 for links that nothing crosses.
struct Partition {
  std::vector<std::int32_t> link, activity, communicator, rank;
  std::int32_t links = 0, activities = 0, communicators = 0, ranks = 0;
  int rounds = 0;
  bool is_stable = false;  // false: given up, since there would be more classes than allowed
};

/// What tells nodes apart before any neighbour is looked at.
struct Marks {
  std::span<const double> capacity;          // by link
  std::span<const std::uint64_t> link_fate;  // by link, equal for links whose capacity changes alike; empty: none does
  bool use_links = true;  // false: ranks and activities alone, whatever paths they take and however long these are
  std::span<const std::int32_t> rank;  // by rank, a mark of its own; empty: none
  std::span<const std::int32_t> kind;  // by activity; not empty: links and activities alone, with these kinds
};

namespace detail {

inline constexpr std::uint64_t kOfShape = std::uint64_t{1} << 32U;  // above all channels

/// One step of refinement: new colours of everything from the colours of neighbours.
class Refinement {
 public:
  std::vector<Colour> link, activity, communicator, rank;

  Refinement(const Job& job, const Graph& graph, const Marks& marks, std::uint64_t salt)
      : graph_(graph), use_links_(marks.use_links), use_ranks_(marks.kind.empty()), salt_(mix(salt, 0x5EED, 0)) {
    weight_.resize(graph.weights.size());
    for (std::size_t w = 0; w < weight_.size(); ++w)
      weight_[w] = mix(std::bit_cast<std::uint64_t>(graph.weights[static_cast<std::uint32_t>(w)]), 1, salt_);
    begin_links(marks);
    begin_activities(marks.kind);
    if (!use_ranks_) return;
    begin_ranks(job, marks.rank);
    communicator.resize(graph.communicators());
    for (std::size_t c = 0; c < communicator.size(); ++c)
      communicator[c] = mix(static_cast<std::uint64_t>(graph.group[c]), 5, salt_);
  }

  void step() {
    if (use_links_) step_links();
    step_communicators();
    step_activities();
    if (use_ranks_) step_ranks();
  }

 private:
  [[nodiscard]] Colour pair(Colour a, Colour b) const { return mix(a, b, salt_); }
  [[nodiscard]] Colour hop(Colour colour, std::uint32_t weight) const {
    std::uint64_t x = (colour ^ weight_[weight]) * 0x9E3779B97F4A7C15ULL;
    return (x ^ (x >> 29U)) * 0xBF58476D1CE4E5B9ULL;
  }

  void begin_links(const Marks& marks) {
    if (!use_links_) return;
    link.assign(marks.capacity.size(), 0);
    for (const Share& share : graph_.hops) link[static_cast<std::size_t>(share.link)] = 1;
    for (std::size_t l = 0; l < link.size(); ++l)
      if (link[l] != 0)
        link[l] = mix(std::bit_cast<std::uint64_t>(marks.capacity[l]), marks.link_fate.empty() ? 0 : marks.link_fate[l],
                      salt_) |
                  1U;  // 0 stays the colour of links that nothing crosses
    sum_.resize(link.size());
  }

  void begin_activities(std::span<const std::int32_t> kind) {
    activity.resize(graph_.activities());
    const std::size_t connections = graph_.connections();
    for (std::size_t a = 0; a < activity.size(); ++a) {
      if (!use_ranks_) {
        activity[a] = mix(static_cast<std::uint64_t>(kind[a]), 4, salt_);
        continue;
      }
      const std::uint64_t flows =
          a < connections || !use_links_ ? 0 : static_cast<std::uint64_t>(graph_.flows[a - connections]) + 1;
      const auto latency_ps = use_links_ ? static_cast<std::uint64_t>(graph_.latency_ps[a]) : 0;
      activity[a] = mix(latency_ps, flows, salt_);
    }
    if (!use_ranks_) return;
    for (std::size_t c = 0; c < connections; ++c)
      activity[c] = pair(activity[c], static_cast<std::uint64_t>(graph_.channel[c]));
    for (std::size_t o = 0; o < graph_.operations(); ++o)
      activity[connections + o] =
          mix(activity[connections + o], static_cast<std::uint64_t>(graph_.shape[o]) + kOfShape, salt_);
  }

  void begin_ranks(const Job& job, std::span<const std::int32_t> mark) {
    rank.resize(job.rank_class.size());
    for (std::size_t r = 0; r < rank.size(); ++r) {
      const auto program = job.rank_class[r];
      const double factor = job.rank_factor.empty() ? 1.0 : job.rank_factor[r];
      rank[r] = mix(static_cast<std::uint64_t>(program), std::bit_cast<std::uint64_t>(factor), salt_);
      if (!mark.empty()) rank[r] = pair(rank[r], static_cast<std::uint64_t>(mark[r]));
      const auto first = job.first_rank(program);
      for (const SizeRule& size : graph_.meaning.sizes[static_cast<std::size_t>(program)])
        rank[r] =
            pair(rank[r],
                 static_cast<std::uint64_t>(coordinate(tables_of(job), size, static_cast<std::int64_t>(r) - first)));
    }
  }

  void step_links() {
    std::fill(sum_.begin(), sum_.end(), 0);
    for (std::size_t a = 0; a < activity.size(); ++a) {
      const Colour own = activity[a];
      for (const Share& share : graph_.hops_of(a)) sum_[static_cast<std::size_t>(share.link)] += hop(own, share.weight);
    }
    for (std::size_t l = 0; l < link.size(); ++l)
      if (link[l] != 0) link[l] = pair(link[l], sum_[l]) | 1U;
  }

  void step_communicators() {
    for (std::size_t c = 0; c < communicator.size(); ++c) {
      Colour sum = 0;
      for (const std::int32_t member : graph_.members_of(c)) sum += pair(rank[static_cast<std::size_t>(member)], 7);
      communicator[c] = pair(communicator[c], sum);
    }
  }

  void step_activities() {
    const std::size_t connections = graph_.connections();
    for (std::size_t a = 0; a < activity.size(); ++a) {
      Colour sum = 0;
      if (use_links_)
        for (const Share& share : graph_.hops_of(a))
          sum += hop(link[static_cast<std::size_t>(share.link)], share.weight);
      if (!use_ranks_) {
        activity[a] = pair(activity[a], sum);
        continue;
      }
      const Colour ends = a < connections
                              ? pair(rank[static_cast<std::size_t>(graph_.source[a])],
                                     rank[static_cast<std::size_t>(graph_.destination[a])])
                              : communicator[static_cast<std::size_t>(graph_.communicator[a - connections])];
      activity[a] = pair(pair(activity[a], sum), ends);
    }
  }

  void step_ranks() {
    for (std::size_t r = 0; r < rank.size(); ++r) {
      Colour colour = rank[r];
      for (const std::int32_t slot : graph_.slots_of(r))
        colour = pair(colour, slot < 0 ? 11 : activity[static_cast<std::size_t>(slot)]);
      rank[r] = colour;
    }
  }

  const Graph& graph_;
  bool use_links_, use_ranks_;
  std::uint64_t salt_;
  std::vector<Colour> weight_;  // by number of the weight
  std::vector<Colour> sum_;     // by link
};

inline std::int32_t numbers(const std::vector<Colour>& colours, std::vector<std::int32_t>& classes, bool skip_zero) {
  Palette palette;
  classes.resize(colours.size());
  for (std::size_t i = 0; i < colours.size(); ++i)
    classes[i] = skip_zero && colours[i] == 0 ? -1 : palette.number(colours[i]);
  return palette.size();
}

/// Whether members of a class have, by another hash, the same neighbours as its first member.
inline bool agree(const std::vector<std::int32_t>& classes, std::int32_t count, const std::vector<Colour>& colours) {
  std::vector<Colour> first(static_cast<std::size_t>(count));
  std::vector<char> known(static_cast<std::size_t>(count), 0);
  for (std::size_t i = 0; i < classes.size(); ++i) {
    if (classes[i] < 0) continue;
    const auto c = static_cast<std::size_t>(classes[i]);
    if (known[c] != 0 && first[c] != colours[i]) return false;
    first[c] = colours[i];
    known[c] = 1;
  }
  return true;
}

}  // namespace detail

/// Whether a partition is equitable, by one step of refinement with hashes of their own from the numbers of classes.
inline bool is_equitable(const Job& job, const Graph& graph, const Marks& marks, const Partition& found) {
  detail::Refinement check(job, graph, marks, 0xC4EC4);
  const auto paint = [](std::vector<Colour>& colours, const std::vector<std::int32_t>& classes, std::uint64_t kind) {
    for (std::size_t i = 0; i < colours.size(); ++i) {
      if (classes[i] < 0) continue;
      // the initial colour stays in: classes must not mix what is different from the start
      colours[i] = mix(colours[i], static_cast<std::uint64_t>(classes[i]), kind) | 1U;
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
/// `class_limit` classes of activities (0: no limit).
inline Partition refine(const Job& job, const Graph& graph, const Marks& marks, std::int64_t class_limit,
                        std::uint64_t salt = 0) {
  detail::Refinement colours(job, graph, marks, salt);
  Partition found;
  for (;;) {
    ++found.rounds;
    colours.step();
    const std::int64_t before = std::int64_t{found.links} + found.activities + found.communicators + found.ranks;
    found.activities = detail::numbers(colours.activity, found.activity, false);
    if (class_limit > 0 && found.activities > class_limit) return found;
    found.links = detail::numbers(colours.link, found.link, true);
    found.communicators = detail::numbers(colours.communicator, found.communicator, false);
    found.ranks = detail::numbers(colours.rank, found.rank, false);
    // classes only split, so equal sums mean that no kind has more classes than before
    if (before == std::int64_t{found.links} + found.activities + found.communicators + found.ranks) break;
  }
  found.is_stable = true;
  return found;
}

/// What `refine` finds, verified.
inline Partition stable(const Job& job, const Graph& graph, const Marks& marks, std::int64_t class_limit) {
  for (std::uint64_t salt = 0; salt < 3; ++salt) {  // a collision of 64-bit hashes: take others
    Partition found = refine(job, graph, marks, class_limit, salt);
    if (!found.is_stable || is_equitable(job, graph, marks, found)) return found;
  }
  throw std::logic_error("colour refinement did not come to an equitable partition");
}

/// Every link, activity, communicator and rank for itself.
inline Partition identity(const Graph& graph, std::size_t links) {
  Partition found;
  const auto count = [](std::vector<std::int32_t>& classes, std::size_t size) {
    classes.resize(size);
    std::iota(classes.begin(), classes.end(), 0);
    return static_cast<std::int32_t>(size);
  };
  found.link.assign(links, -1);
  for (const Share& share : graph.hops) found.link[static_cast<std::size_t>(share.link)] = 0;
  for (std::int32_t& link : found.link)
    if (link == 0) link = found.links++;
  found.activities = count(found.activity, graph.activities());
  found.communicators = count(found.communicator, graph.communicators());
  found.ranks = count(found.rank, graph.ranks());
  found.is_stable = true;
  return found;
}

}  // namespace weftwork::flow
