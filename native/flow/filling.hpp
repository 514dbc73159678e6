/// Progressive filling: all rates grow together; where a constraint is saturated, the variables on it keep what they
/// have. `Filling` gives all rates again in the order of the constraints' shares; `textbook_rates` does the same in the
/// plainest way, iteration by iteration over all constraints, and exists to check everything else.
/// Source: Bertsekas and Gallager, Data Networks, 2nd edition, section 6.5.2; with weights, a constraint is saturated
/// when the weighted sum of its rates is its capacity.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "base/ids.hpp"
#include "flow/ids.hpp"
#include "flow/records.hpp"
#include "flow/sharing.hpp"

namespace weftwork::flow {

class Filling {
 public:
  explicit Filling(Sharing& sharing) : s_(sharing), remaining_(sharing.constraints.size()) {}

  /// All rates, loads and bottlenecks from scratch. What rounding has left in the sums goes too.
  void run() {
    ++s_.stats.full;
    queue_.clear();
    fixed_.resize(s_.variables.size(), 0);
    ++iteration_;
    std::int64_t waiting = s_.enabled_variables;
    queue_.reserve(s_.active.size());
    s_.frozen.reserve(s_.active.size());
    for (const ConstraintId constraint : s_.active) {
      s_.freeze(constraint);
      Constraint& c = s_.constraints[constraint];
      c.is_dirty = false;
      c.total_weight = 0;
      for (const Element& element : c.elements) c.total_weight += s_.weight(element.variable, element.hop);
      remaining_[constraint] = {c.capacity, c.total_weight, c.total_weight,
                                static_cast<std::int64_t>(c.elements.size()), kInfinity};
      queue_.emplace_back(c.capacity / c.total_weight, constraint);
    }
    std::make_heap(queue_.begin(), queue_.end(), std::greater<>());
    while (waiting > 0 && !queue_.empty()) {
      const ConstraintId constraint = queue_.front().second;
      std::pop_heap(queue_.begin(), queue_.end(), std::greater<>());
      queue_.pop_back();
      if (remaining_[constraint].variables == 0) continue;
      const double share = share_of(constraint);
      if (!queue_.empty() && share > queue_.front().first) {  // shares only grow while others are served
        queue_.emplace_back(share, constraint);
        std::push_heap(queue_.begin(), queue_.end(), std::greater<>());
        continue;
      }
      waiting -= saturate(constraint, share);
    }
    for (const ConstraintId constraint : s_.frozen) finish(constraint);
  }

 private:
  struct Remaining {
    double capacity;
    double weight;
    double summed;  // weight when it was last a sum and not a difference
    std::int64_t variables;
    double share;
  };

  /// What each activity gets that is not fixed yet. Where little is left of a sum, the sum is made again: differences
  /// of large numbers would have lost it.
  double share_of(ConstraintId constraint) {
    Remaining& left = remaining_[constraint];
    if (left.weight < 1e-3 * left.summed) {
      left.weight = 0;
      for (const Element& element : s_.constraints[constraint].elements)
        if (fixed_[element.variable] != iteration_) left.weight += s_.weight(element.variable, element.hop);
      left.summed = left.weight;
    }
    return std::max(0.0, left.capacity / left.weight);
  }

  /// A constraint binds the variables that are left on it. Returns how many they are.
  std::int64_t saturate(ConstraintId constraint, double share) {
    const std::int64_t count = remaining_[constraint].variables;
    remaining_[constraint].share = share;
    for (const Element element : s_.constraints[constraint].elements) {
      if (fixed_[element.variable] == iteration_) continue;
      fixed_[element.variable] = iteration_;
      s_.bind(element.variable, element.hop);
      const auto activities = static_cast<double>(s_.activities(element.variable));
      for (const ConstraintHop& hop : s_.hops(element.variable)) {
        Remaining& left = remaining_[hop.constraint];
        left.capacity -= share * activities * hop.weight;
        left.weight -= activities * hop.weight;
        --left.variables;
      }
    }
    return count;
  }

  void finish(ConstraintId constraint) {
    Constraint& c = s_.constraints[constraint];
    c.is_new = false;
    if (c.active_at == kNone) {
      s_.load[constraint].share = kInfinity;
      return;
    }
    s_.load[constraint].share = remaining_[constraint].share;
    s_.load[constraint].load = c.capacity - remaining_[constraint].capacity;
    c.bound_weight = 0;
    for (const BoundVariable& row : c.bound_variables) c.bound_weight += row.weight;
    s_.set_range(constraint);
  }

  Sharing& s_;
  IdVector<ConstraintId, Remaining> remaining_;
  std::vector<std::pair<double, ConstraintId>> queue_;  // share, constraint: heap
  IdVector<VariableId, std::uint32_t> fixed_;           // the last iteration that fixed the variable's rate
  std::uint32_t iteration_ = 0;
};

/// Rates as the textbook has them; 0 for variables that are not enabled. Takes constraints x bottlenecks.
inline IdVector<VariableId, double> textbook_rates(const Sharing& s) {
  IdVector<VariableId, double> rates(s.variables.size(), 0.0);
  IdVector<VariableId, char> is_fixed(s.variables.size(), 0);
  const auto weights_left = [&](ConstraintId constraint) {
    double weight = 0;
    double capacity = s.constraints[constraint].capacity;
    for (const Element& element : s.constraints[constraint].elements) {
      const double its_weight = s.weight(element.variable, element.hop);
      if (is_fixed[element.variable] != 0)
        capacity -= its_weight * rates[element.variable];
      else
        weight += its_weight;
    }
    return std::pair{std::max(0.0, capacity), weight};
  };
  IdVector<ConstraintId, double> share(s.constraints.size(), kInfinity);
  const auto review = [&](ConstraintId constraint) {
    const auto [capacity, weight] = weights_left(constraint);
    share[constraint] = weight > 0 ? capacity / weight : kInfinity;
  };
  for (const ConstraintId constraint : s.active) review(constraint);
  while (true) {
    ConstraintId bottleneck;
    for (const ConstraintId constraint : s.active)
      if (share[constraint] < kInfinity && (bottleneck.is_none() || share[constraint] < share[bottleneck]))
        bottleneck = constraint;
    if (bottleneck.is_none()) return rates;
    std::vector<ConstraintId> changed;
    for (const Element& element : s.constraints[bottleneck].elements) {
      if (is_fixed[element.variable] != 0) continue;
      is_fixed[element.variable] = 1;
      rates[element.variable] = share[bottleneck];
      for (const ConstraintHop& hop : s.hops(element.variable)) changed.push_back(hop.constraint);
    }
    std::sort(changed.begin(), changed.end());
    changed.erase(std::unique(changed.begin(), changed.end()), changed.end());
    for (const ConstraintId constraint : changed) review(constraint);
  }
}

/// The largest relative difference between the rates and the textbook's.
inline double worst_rate_error(const Sharing& s) {
  const IdVector<VariableId, double> rates = textbook_rates(s);
  double worst = 0;
  for (const VariableId variable : rates.ids()) {
    const double difference = std::fabs(s.rate(variable) - rates[variable]);
    if (difference > 0 || std::isnan(difference))
      worst =
          std::max(worst, std::isnan(difference) || rates[variable] == 0 ? kInfinity : difference / rates[variable]);
  }
  return worst;
}

}  // namespace weftwork::flow
