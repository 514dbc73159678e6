/// The graph of a job: connections and collectives as activities, with the weight of each on every link that it
/// crosses. A million ranks with all their communicators fit, since an activity is a few hops of eight bytes.
/// Source of the rules: weftwork.spec.job.Collect (rings, all-to-all) and docs/models/packet-engine.md (queue pairs).
#pragma once
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/ids.hpp"
#include "flow/ids.hpp"
#include "flow/network.hpp"
#include "flow/slots.hpp"

namespace weftwork::flow {

/// Bytes on the wire for each byte of payload: of links of the fabric, and of host interfaces.
struct Wire {
  double link = 1.0, host = 1.0;
};

/// Distinct weights by id, so that a hop is eight bytes and equal weights are equal ids.
class Weights {
 public:
  WeightId id(double weight) {
    if (!values_.empty() && weight == values_[last_]) return last_;
    if (2 * (values_.size() + 1) > table_.size()) grow();
    for (std::size_t at = place(weight);; at = (at + 1) & (table_.size() - 1)) {
      if (table_[at].is_none()) {
        table_[at] = values_.next_id();
        values_.push_back(weight);
      }
      if (values_[table_[at]] == weight) return last_ = table_[at];
    }
  }
  [[nodiscard]] double operator[](WeightId id) const { return values_[id]; }
  [[nodiscard]] auto ids() const { return values_.ids(); }
  [[nodiscard]] std::size_t size() const { return values_.size(); }

 private:
  [[nodiscard]] std::size_t place(double weight) const {
    const auto bits = std::bit_cast<std::uint64_t>(weight) * 0x9E3779B97F4A7C15ULL;
    return static_cast<std::size_t>(bits >> 32U) & (table_.size() - 1);
  }
  void grow() {
    table_.assign(table_.empty() ? 64 : 2 * table_.size(), WeightId::none());
    for (const WeightId weight : values_.ids()) {
      std::size_t at = place(values_[weight]);
      while (!table_[at].is_none()) at = (at + 1) & (table_.size() - 1);
      table_[at] = weight;
    }
  }
  IdVector<WeightId, double> values_;
  std::vector<WeightId> table_;
  WeightId last_;
};

/// One link that an activity of the graph crosses, in eight bytes.
struct GraphHop {
  LinkId link;
  WeightId weight;
};

/// Activities are numbered: connections by source rank, destination and channel, then the operations of communicators.
struct Graph {
  Slots meaning;

  IdVector<ActivityId, std::int64_t> hop_ptr{1};  // (A + 1)
  std::vector<GraphHop> hops;
  Weights weights;
  IdVector<ActivityId, std::int64_t> latency_ps;  // of its longest path

  IdVector<RankId, ConnectionId> first_connection;  // (R + 1), of each source rank
  IdVector<ConnectionId, RankId> source, destination;
  IdVector<ConnectionId, std::int32_t> channel;

  IdVector<CommunicatorId, std::int64_t> member_ptr{1};  // (C + 1)
  std::vector<RankId> members;                           // of each communicator, by coordinate
  IdVector<CommunicatorId, GroupId> group;
  IdVector<OperationId, CommunicatorId> communicator;
  IdVector<OperationId, ShapeId> shape;
  IdVector<OperationId, std::int64_t> flows;

  IdVector<RankId, std::int64_t> slot_ptr{1};  // (R + 1)
  std::vector<ActivityId> slots;               // of each rank, by slot of its program; kSkipped or kLater

  [[nodiscard]] auto activities() const { return latency_ps.ids(); }
  [[nodiscard]] auto connections() const { return source.ids(); }
  [[nodiscard]] auto operations() const { return communicator.ids(); }
  [[nodiscard]] auto communicators() const { return group.ids(); }
  [[nodiscard]] auto ranks() const { return id_range(RankId(0), slot_ptr.next_id() + -1); }

  [[nodiscard]] bool is_connection(ActivityId activity) const { return activity.index() < source.size(); }
  [[nodiscard]] ConnectionId connection_of(ActivityId activity) const { return ConnectionId(activity.value); }
  [[nodiscard]] OperationId operation_of(ActivityId activity) const {
    return OperationId(activity.index() - source.size());
  }
  [[nodiscard]] ActivityId activity_of(ConnectionId connection) const { return ActivityId(connection.value); }
  [[nodiscard]] ActivityId activity_of(OperationId operation) const {
    return ActivityId(source.size() + operation.index());
  }

  [[nodiscard]] std::span<const GraphHop> hops_of(ActivityId activity) const {
    return {hops.data() + hop_ptr[activity], hops.data() + hop_ptr[activity + 1]};
  }
  [[nodiscard]] std::span<const RankId> members_of(CommunicatorId of) const {
    return {members.data() + member_ptr[of], members.data() + member_ptr[of + 1]};
  }
  [[nodiscard]] std::span<const RankId> members_of(ActivityId operation) const {
    return members_of(communicator[operation_of(operation)]);
  }
  [[nodiscard]] IdSpan<SlotId, const ActivityId> slots_of(RankId rank) const {
    return IdSpan<SlotId, const ActivityId>({slots.data() + slot_ptr[rank], slots.data() + slot_ptr[rank + 1]});
  }
  [[nodiscard]] IdSpan<SlotId, ActivityId> slots_of(RankId rank) {
    return IdSpan<SlotId, ActivityId>({slots.data() + slot_ptr[rank], slots.data() + slot_ptr[rank + 1]});
  }
};

/// Adds up the hops of one activity, equal links together.
class Gather {
 public:
  explicit Gather(std::size_t links) : sum_(links, 0.0) {}

  void add(LinkId link, double weight) {
    double& sum = sum_[link];
    if (sum == 0.0) touched_.push_back(link);
    sum += weight;
  }
  /// Close the activity: its hops become the last row of the graph.
  void close(Graph& graph, std::int64_t latency_ps) {
    for (const LinkId link : touched_) {
      double& sum = sum_[link];
      graph.hops.push_back({link, graph.weights.id(tidy(sum))});
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
  IdVector<LinkId, double> sum_;  // 0 between activities
  std::vector<LinkId> touched_;
};

}  // namespace weftwork::flow
