/// The graph of a job: connections and collectives as activities, with the weight of each on every link that it
/// crosses. A million ranks with all their communicators fit, since an activity is a few hops of eight bytes.
/// Source of the rules: weftwork.spec.job.Collect (rings, all-to-all) and docs/models/packet-engine.md (queue pairs).
#pragma once
#include <bit>
#include <cmath>
#include <cstdint>
#include <span>
#include <vector>

#include "flow/network.hpp"
#include "flow/slots.hpp"

namespace weftwork::flow {

/// Bytes on the wire for each byte of payload: of links of the fabric, and of host interfaces.
struct Wire {
  double link = 1.0, host = 1.0;
};

/// Distinct doubles by number, so that a hop is eight bytes and equal weights are equal numbers.
class Weights {
 public:
  std::uint32_t number(double weight) {
    if (!values_.empty() && weight == values_[last_]) return last_;
    if (2 * (values_.size() + 1) > table_.size()) grow();
    for (std::size_t at = place(weight);; at = (at + 1) & (table_.size() - 1)) {
      if (table_[at] == kFree) {
        table_[at] = static_cast<std::uint32_t>(values_.size());
        values_.push_back(weight);
      }
      if (values_[table_[at]] == weight) return last_ = table_[at];
    }
  }
  [[nodiscard]] double operator[](std::uint32_t number) const { return values_[number]; }
  [[nodiscard]] std::size_t size() const { return values_.size(); }

 private:
  static constexpr std::uint32_t kFree = 0xFFFFFFFF;
  [[nodiscard]] std::size_t place(double weight) const {
    const auto bits = std::bit_cast<std::uint64_t>(weight) * 0x9E3779B97F4A7C15ULL;
    return static_cast<std::size_t>(bits >> 32U) & (table_.size() - 1);
  }
  void grow() {
    table_.assign(table_.empty() ? 64 : 2 * table_.size(), kFree);
    for (std::size_t i = 0; i < values_.size(); ++i) {
      std::size_t at = place(values_[i]);
      while (table_[at] != kFree) at = (at + 1) & (table_.size() - 1);
      table_[at] = static_cast<std::uint32_t>(i);
    }
  }
  std::vector<double> values_;
  std::vector<std::uint32_t> table_;
  std::uint32_t last_ = 0;
};

struct Share {
  std::int32_t link;
  std::uint32_t weight;  // in Graph::weights
};

/// Activities are numbered: connections by source rank, destination and channel, then the operations of communicators.
struct Graph {
  Slots meaning;

  std::vector<std::int64_t> hop_ptr{0};  // by activity
  std::vector<Share> hops;
  Weights weights;
  std::vector<std::int64_t> latency_ps;  // by activity, of its longest path

  std::vector<std::int64_t> connection_ptr;       // (R + 1) connections of each source rank
  std::vector<std::int32_t> source, destination;  // by connection
  std::vector<std::int32_t> channel;

  std::vector<std::int64_t> member_ptr{0};  // by communicator
  std::vector<std::int32_t> members;        // ranks, by coordinate
  std::vector<std::int32_t> group;          // by communicator, in Slots::groups
  std::vector<std::int32_t> communicator;   // by operation
  std::vector<std::int32_t> shape;          // by operation, in Slots::shapes
  std::vector<std::int64_t> flows;          // by operation

  std::vector<std::int64_t> slot_ptr{0};  // (R + 1)
  std::vector<std::int32_t> slots;        // activity, kSkipped or kLater

  [[nodiscard]] std::size_t activities() const { return latency_ps.size(); }
  [[nodiscard]] std::size_t connections() const { return source.size(); }
  [[nodiscard]] std::size_t operations() const { return communicator.size(); }
  [[nodiscard]] std::size_t communicators() const { return group.size(); }
  [[nodiscard]] std::size_t ranks() const { return slot_ptr.size() - 1; }
  [[nodiscard]] std::span<const Share> hops_of(std::size_t activity) const {
    return {hops.data() + hop_ptr[activity], hops.data() + hop_ptr[activity + 1]};
  }
  [[nodiscard]] std::span<const std::int32_t> members_of(std::size_t communicator_) const {
    return {members.data() + member_ptr[communicator_], members.data() + member_ptr[communicator_ + 1]};
  }
  [[nodiscard]] std::span<const std::int32_t> slots_of(std::size_t rank) const {
    return {slots.data() + slot_ptr[rank], slots.data() + slot_ptr[rank + 1]};
  }
};

/// Adds up the hops of one activity, equal links together.
class Gather {
 public:
  explicit Gather(std::size_t links) : sum_(links, 0.0) {}

  void add(std::int32_t link, double weight) {
    double& sum = sum_[static_cast<std::size_t>(link)];
    if (sum == 0.0) touched_.push_back(link);
    sum += weight;
  }
  /// Close the activity: its hops become the last row of the graph.
  void close(Graph& graph, std::int64_t latency_ps) {
    for (const std::int32_t link : touched_) {
      double& sum = sum_[static_cast<std::size_t>(link)];
      graph.hops.push_back({link, graph.weights.number(tidy(sum))});
      sum = 0.0;
    }
    touched_.clear();
    graph.hop_ptr.push_back(static_cast<std::int64_t>(graph.hops.size()));
    graph.latency_ps.push_back(latency_ps);
  }

 private:
  /// Sums of the same terms in another order must be equal: keep 44 bits of 53 (6e-14).
  static double tidy(double weight) {
    const auto bits = std::bit_cast<std::uint64_t>(weight);
    return std::bit_cast<double>((bits + 0x100U) & ~std::uint64_t{0x1FF});
  }
  std::vector<double> sum_;  // by link; 0 between activities
  std::vector<std::int32_t> touched_;
};

}  // namespace weftwork::flow
