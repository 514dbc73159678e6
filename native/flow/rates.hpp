/// Weighted max-min sharing by progressive filling, from scratch: the rates at one instant. The engine itself keeps
/// rates up to date (flow/fluid.hpp); this serves to choose a critical core and to check. The words are those of
/// flow/records.hpp; a variable is one activity. Source: Bertsekas and Gallager, Data Networks, 1992, section 6.5.2,
/// with weights.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <utility>
#include <vector>

#include "base/ids.hpp"
#include "flow/ids.hpp"

namespace weftwork::flow {

/// Activities by the constraints that they cross, in compressed rows.
struct CrossedConstraints {
  IdVector<ActivityId, std::int64_t> ptr{1};
  std::vector<ConstraintId> constraint;
  std::vector<double> weight;
  IdVector<ConstraintId, double> capacity;

  [[nodiscard]] auto activities() const { return id_range(ActivityId(0), ptr.next_id() + -1); }
  [[nodiscard]] std::size_t size() const { return ptr.size() - 1; }
  void close() { ptr.push_back(static_cast<std::int64_t>(constraint.size())); }
};

/// What filling gives every activity.
struct Filled {
  IdVector<ActivityId, double> rate;              // infinite for those without constraints
  IdVector<ActivityId, ConstraintId> bottleneck;  // none for those
};

/// Rates with all activities active.
inline Filled fill(const CrossedConstraints& crossed) {
  const std::size_t constraints = crossed.capacity.size();
  IdVector<ConstraintId, std::int64_t> first(constraints + 1, 0);  // the transpose
  for (const ConstraintId c : crossed.constraint) ++first[c + 1];
  for (const ConstraintId c : crossed.capacity.ids()) first[c + 1] += first[c];
  std::vector<ActivityId> activity(crossed.constraint.size());
  {
    IdVector<ConstraintId, std::int64_t> next = first;
    for (const ActivityId a : crossed.activities())
      for (std::int64_t i = crossed.ptr[a]; i < crossed.ptr[a + 1]; ++i) activity[next[crossed.constraint[i]]++] = a;
  }
  IdVector<ConstraintId, double> rest = crossed.capacity, weight_sum(constraints, 0.0);
  IdVector<ConstraintId, std::int32_t> live(constraints, 0);  // activities without a rate: sums of weights leave dust
  for (std::size_t i = 0; i < crossed.constraint.size(); ++i) {
    weight_sum[crossed.constraint[i]] += crossed.weight[i];
    ++live[crossed.constraint[i]];
  }
  Filled filled{IdVector<ActivityId, double>(crossed.size(), std::numeric_limits<double>::infinity()),
                IdVector<ActivityId, ConstraintId>(crossed.size())};
  IdVector<ActivityId, char> is_fixed(crossed.size(), 0);
  using Waiting = std::pair<double, ConstraintId>;  // share
  std::vector<Waiting> heap;
  for (const ConstraintId c : live.ids())
    if (live[c] > 0) heap.emplace_back(rest[c] / weight_sum[c], c);
  const auto later = [](const Waiting& a, const Waiting& b) { return a > b; };
  std::make_heap(heap.begin(), heap.end(), later);
  while (!heap.empty()) {
    std::pop_heap(heap.begin(), heap.end(), later);
    const auto [before, constraint] = heap.back();
    heap.pop_back();
    if (live[constraint] == 0) continue;
    const double share = std::max(0.0, rest[constraint] / weight_sum[constraint]);
    if (!heap.empty() && share > heap.front().first && share > before) {
      heap.emplace_back(share, constraint);
      std::push_heap(heap.begin(), heap.end(), later);
      continue;
    }
    for (std::int64_t j = first[constraint]; j < first[constraint + 1]; ++j) {
      const ActivityId a = activity[j];
      if (is_fixed[a] != 0) continue;
      is_fixed[a] = 1;
      filled.rate[a] = share;
      filled.bottleneck[a] = constraint;
      for (std::int64_t i = crossed.ptr[a]; i < crossed.ptr[a + 1]; ++i) {
        const ConstraintId other = crossed.constraint[i];
        const double weight = crossed.weight[i];
        rest[other] -= share * weight;
        weight_sum[other] -= weight;
        --live[other];
      }
    }
  }
  return filled;
}

/// Bytes per ps on every constraint at given rates.
inline IdVector<ConstraintId, double> loads(const CrossedConstraints& crossed,
                                            const IdVector<ActivityId, double>& rate) {
  IdVector<ConstraintId, double> load(crossed.capacity.size(), 0.0);
  for (const ActivityId a : crossed.activities())
    for (std::int64_t i = crossed.ptr[a]; i < crossed.ptr[a + 1]; ++i)
      load[crossed.constraint[i]] += rate[a] * crossed.weight[i];
  return load;
}

}  // namespace weftwork::flow
